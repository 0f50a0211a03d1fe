package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gridcast/builder/season"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/chain"
	"gridcast/snapshots/blob/lock"
)

// Prefix begins the key of every file of the logs.
const Prefix = "live/"

// Format is the format of every file.
const Format = 1

// file is the content of live/<session>/<n>.json: one observation, and the hash of the file before. Its bytes are
// canonical JSON.
type file struct {
	chain.Link
	Format      int         `json:"format"` // 1
	Observation Observation `json:"observation"`
}

// Log keeps the observations of races in a store, each race in a chain of files of its own. A file is created once and
// never changes, so several schedulers agree on the observations. It is safe for concurrent use.
type Log struct {
	Store blob.Store

	mu    lock.Lock       // guards races
	races map[int64]*Tape // as read last; a Tape never changes
}

// Tape is the log of a race up to its head.
type Tape struct {
	Head         chain.Head // its hash names all observations; zero: there are none
	Observations []Stored   // in the order of their files
}

// UpTo returns the tape up to the file with a hash, nil if there is none.
func (t *Tape) UpTo(hash string) *Tape {
	for i, o := range t.Observations {
		if o.SHA256 == hash {
			return &Tape{Head: chain.Head{Seq: o.Seq, Hash: hash}, Observations: t.Observations[:i+1]}
		}
	}
	return nil
}

// AsOf returns the tape up to the last observation that was received at an instant or before.
func (t *Tape) AsOf(at time.Time) *Tape {
	for i := len(t.Observations) - 1; i >= 0; i-- {
		if o := &t.Observations[i]; !o.Received.After(at) {
			return t.UpTo(o.SHA256)
		}
	}
	return &Tape{}
}

// Race reduces the tape, judged by the race that it belongs to. The drivers get the ids that current gives them.
func (t *Tape) Race(of Fixture, current func(season.DriverID) season.DriverID) Race {
	observations := slices.Clone(t.Observations)
	for i := range observations {
		o := &observations[i]
		o.Cars = slices.Clone(o.Cars)
		for j := range o.Cars {
			o.Cars[j].Driver = current(o.Cars[j].Driver)
		}
	}
	return Reduce(observations, of)
}

// Heard returns the latest line of a source, also if it did not count; nil if no source has sent one.
func (t *Tape) Heard() (latest *Observation) {
	for i := range t.Observations {
		if o := &t.Observations[i].Observation; !o.Hand && (latest == nil || o.Received.After(latest.Received)) {
			latest = o
		}
	}
	return latest
}

// Refresh returns the log of a race. It costs one read if nothing is new. After an error that wraps a *chain.DamageError, Known
// has no log of the race, so that nothing is frozen from it, and each later call reads every file again.
func (l *Log) Refresh(ctx context.Context, session int64) (*Tape, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refresh(ctx, session)
}

// Known returns the log of a race as it was read last, nil if it was not.
func (l *Log) Known(session int64) *Tape {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.races[session]
}

func (l *Log) chain(session int64) chain.Chain {
	return chain.Chain{Store: l.Store, Prefix: fmt.Sprintf("%s%d/", Prefix, session)}
}

// refresh reads the files that are new. The caller holds l.mu.
func (l *Log) refresh(ctx context.Context, session int64) (*Tape, error) {
	t, err := l.follow(ctx, l.races[session], l.chain(session))
	if damage := (*chain.DamageError)(nil); errors.As(err, &damage) {
		delete(l.races, session)
		err = fmt.Errorf("%w: gridcast store restore brings the file back, once a changed one is removed; without a backup remove all later files of the race, too", err)
	}
	if err != nil {
		return nil, fmt.Errorf("read the observations of %d: %w", session, err)
	}
	if l.races == nil {
		l.races = map[int64]*Tape{}
	}
	l.races[session] = t
	return t, nil
}

// follow returns the log with the files after the known ones; known is nil if none was read.
func (l *Log) follow(ctx context.Context, known *Tape, c chain.Chain) (t *Tape, err error) {
	t = &Tape{}
	var files []chain.File
	var rest chain.Rest
	if known == nil {
		files, rest, err = c.Load(ctx)
	} else {
		t.Head, t.Observations = known.Head, slices.Clip(known.Observations)
		files, err = c.After(ctx, known.Head.Seq)
	}
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		o, head, err := read(c, t.Head, f)
		if err != nil {
			return nil, err
		}
		t.Head, t.Observations = head, append(t.Observations, Stored{Observation: o, Seq: head.Seq, SHA256: head.Hash})
	}
	if rest.Gap != nil {
		return nil, rest.Gap
	}
	return t, nil
}

// read decodes the file after head. The error is a *chain.DamageError if that is no observation.
func read(c chain.Chain, head chain.Head, f chain.File) (Observation, chain.Head, error) {
	if f.Err != nil && !errors.Is(f.Err, blob.ErrTooLarge) {
		return Observation{}, head, f.Err
	}
	var content file
	if err := cmp.Or(f.Err, chain.Decode(f.Data, &content)); err != nil {
		return Observation{}, head, &chain.DamageError{Key: c.Key(f.Seq), Want: "an observation in canonical form", Got: err.Error()}
	}
	next, damage := c.Follow(head, f.Data)
	if damage != nil {
		return Observation{}, head, damage
	}
	if content.Format != Format {
		return Observation{}, head, fmt.Errorf("%s has format %d, this program reads %d", c.Key(f.Seq), content.Format, Format)
	}
	return content.Observation, next, nil
}

// Append judges an observation with its Received instant by the race and by the observations before, adds it to the log of
// its race, and reports whether it is news. A lap that the log has, and a phase that changes nothing, are no news, and no
// file is written. The error wraps ErrImplausible if the observation cannot be true, ErrNoEffect if a person's order or
// phase would change nothing, and ErrHeld if the observation is stored but does not count, or not fully.
func (l *Log) Append(ctx context.Context, of Fixture, o Observation) (*Tape, bool, error) {
	o.At, o.Received, of.Session = o.At.UTC().Round(0), o.Received.UTC().Round(0), o.Session
	if err := o.Check(); err != nil {
		return nil, false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		t, err := l.refresh(ctx, o.Session)
		if err != nil {
			return nil, false, err
		}
		news, verdict := t.judge(of, &o)
		if !news {
			return t, false, verdict
		}
		data, err := chain.Encode(file{Link: t.Head.Next(), Format: Format, Observation: o})
		if err != nil {
			return t, false, fmt.Errorf("observation of %d: %w", o.Session, err)
		}
		if _, won, err := l.chain(o.Session).Append(ctx, t.Head, data); err != nil {
			return t, false, fmt.Errorf("store the observation of %d: %w", o.Session, err)
		} else if won {
			t, err = l.refresh(ctx, o.Session)
			return t, true, cmp.Or(err, verdict)
		}
	}
}
