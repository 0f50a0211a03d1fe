package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"gridcast/builder/season"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/chain"
)

// Prefix begins the key of every file of the logs.
const Prefix = "live/"

// format is the format of every file.
const format = 1

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

	mu    sync.Mutex      // guards races
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

// Race reduces the tape. The drivers get the ids that current gives them.
func (t *Tape) Race(current func(season.DriverID) season.DriverID) Race {
	r := Reduce(t.Observations)
	for i := range r.Moments {
		m := &r.Moments[i]
		m.Cars = slices.Clone(m.Cars)
		for j := range m.Cars {
			m.Cars[j].Driver = current(m.Cars[j].Driver)
		}
	}
	return r
}

// Refresh returns the log of a race. It costs one read if nothing is new.
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
	known, c := l.races[session], l.chain(session)
	var files []chain.File
	var err error
	if known == nil {
		known = &Tape{}
		files, _, err = c.Load(ctx)
	} else {
		files, err = c.After(ctx, known.Head.Seq)
	}
	if err != nil {
		return nil, fmt.Errorf("read the observations of %d: %w", session, err)
	}
	t := &Tape{Head: known.Head, Observations: slices.Clip(known.Observations)}
	for _, f := range files {
		o, head, err := read(c, t.Head, f)
		if err != nil {
			return nil, fmt.Errorf("read the observations of %d: %w", session, err)
		}
		t.Head, t.Observations = head, append(t.Observations, Stored{Observation: o, Seq: head.Seq, SHA256: head.Hash})
	}
	if l.races == nil {
		l.races = map[int64]*Tape{}
	}
	l.races[session] = t
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
	if content.Format != format {
		return Observation{}, head, fmt.Errorf("%s has format %d, this program reads %d", c.Key(f.Seq), content.Format, format)
	}
	return content.Observation, next, nil
}

// ErrImplausible says that an observation cannot follow on the log, so that its source is wrong.
var ErrImplausible = errors.New("impossible after what was observed before")

// Append adds an observation with its Received instant to the log of its race, and reports whether it is news. A lap that
// the log has, a phase that changes nothing, and a source's order while a person's order counts are no news, and
// no file is written.
func (l *Log) Append(ctx context.Context, o Observation) (*Tape, bool, error) {
	o.At, o.Received = o.At.UTC().Round(0), o.Received.UTC().Round(0)
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
		if news, err := t.admits(&o); err != nil || !news {
			return t, false, err
		}
		data, err := chain.Encode(file{Link: t.Head.Next(), Format: format, Observation: o})
		if err != nil {
			return t, false, fmt.Errorf("observation of %d: %w", o.Session, err)
		}
		if _, won, err := l.chain(o.Session).Append(ctx, t.Head, data); err != nil {
			return t, false, fmt.Errorf("store the observation of %d: %w", o.Session, err)
		} else if won {
			t, err = l.refresh(ctx, o.Session)
			return t, true, err
		}
	}
}

// fastestLap is a time that no leader beats.
const fastestLap = 40 * time.Second

// admits says whether the log is to have the observation.
func (t *Tape) admits(o *Observation) (bool, error) {
	before := Reduce(t.Observations)
	switch {
	case o.Released:
		return before.Hand, nil
	case o.Hand:
		return true, nil
	case o.Phase == "" && before.Hand:
		return false, nil
	case slices.ContainsFunc(t.Observations, func(s Stored) bool { return o.Lap > 0 && s.Lap == o.Lap }):
		return false, nil
	}
	if last := before.Latest(); last != nil && o.Lap > last.Lap {
		if laps, passed := o.Lap-last.Lap, o.Seen().Sub(last.Seen()); time.Duration(laps-1)*fastestLap > max(passed, 0) {
			return false, fmt.Errorf("observation of %d: %w: lap %d only %s after lap %d", o.Session, ErrImplausible, o.Lap, passed.Round(time.Second), last.Lap)
		}
	}
	after := Reduce(append(t.Observations[:len(t.Observations):len(t.Observations)], Stored{Observation: *o}))
	return len(after.Moments) > len(before.Moments) || len(after.Turns) > len(before.Turns), nil
}
