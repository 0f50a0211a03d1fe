// Package ledger is the append-only record of the promises of gridcast and the decisions of operators and
// sources: session keys, frozen picks, verified results and changes to the calendar. An event in the ledger
// never changes; a later event corrects it.
//
// The ledger is a chain of files in a blob.Store, ledger/00000001.json and so on, one for each append. File
// describes their format. Open and Load read the ledger. Ledger.Fold and Ledger.AsOf fold its events.
// Ledger.Refresh and then Fresh.Append add events, after checking them against the fold. Audit proves the
// ledger from the store alone, without trusting Append.
//
// Append refuses an event that breaks a rule. If a faulty or hostile program writes one, every reader ignores
// it and the audit reports it. For example, only the first freeze of a round since its last void counts.
//
// Times are race time, in UTC. The package has no clock. Instants in the ledger never decrease. If a wrong
// clock put the head into the future, the next event gets the instant of the head, and records its own clock in
// Event.Made. The rules judge the event by Made, so that one wrong clock cannot stop a pick from being frozen.
package ledger

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"gridcast/builder/season"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/chain"
	"gridcast/snapshots/blob/lock"
)

var (
	// ErrNotOpened says that the store holds no ledger.
	ErrNotOpened = errors.New("there is no ledger")
	// ErrKind says that the ledger is of the other kind, or that the caller named no kind.
	ErrKind = errors.New("wrong kind of ledger")
	// ErrClock says that the caller's clock is ahead of another one.
	ErrClock = errors.New("the clock is ahead")
	// ErrNewer says that a newer gridcast wrote a file, in a format that this one cannot read.
	ErrNewer = errors.New("written by a newer gridcast: upgrade every builder and scheduler of the store")
	// ErrEarlier says that an earlier gridcast wrote a file, in a format that this one cannot read.
	ErrEarlier = errors.New("made by an earlier build of gridcast, whose stores this one cannot read: deploy/docs/upgrade.md")
)

// MaxAhead is how far the clock of an append may be ahead of another clock.
const MaxAhead = 5 * time.Second

// Head identifies a state of the ledger: its last file.
type Head = chain.Head

// DamageError names the first place where the files in the store are no whole ledger. Nothing after that place
// can be trusted.
type DamageError = chain.DamageError

// Clock tells the real time, and how far it may be off; see blob.Clock.
type Clock func(context.Context) (at time.Time, within time.Duration, err error)

// Ledger is the record in a store, as far as it has been read. It is safe for concurrent use;
// any number of Ledgers, in any number of processes, may append to the same store.
type Ledger struct {
	files chain.Chain
	kind  Kind // that the caller wants; AnyKind: to read only

	mu     lock.Lock // held to move on to a later record, through the I/O that it takes
	clocks []Clock   // guarded by mu; the clocks to compare with
	read   atomic.Pointer[record]
}

// record holds the files that were read. It is immutable, except for the spare capacity of files: only the
// holder of Ledger.mu appends there.
type record struct {
	files []File
	state *Fold // folded from all files
}

// Open returns the ledger in store, which must be of the kind. If there is none, Open starts one at the
// instant, in the name of the actor. archive is the lower-case hex SHA-256 of the archive in use, which vouches
// for its results of races that have ended: see Fold.Vouches. If it is empty, the instant alone decides.
func Open(ctx context.Context, store blob.Store, kind Kind, at time.Time, actor, archive string) (*Ledger, error) {
	l, err := load(ctx, store, kind)
	if err != nil {
		return nil, fmt.Errorf("open the ledger in %s: %w", store, err)
	}
	_, err = Fresh{l}.Append(ctx, at, actor, func(s *Fold) ([]Event, error) {
		if s.Kind() != AnyKind {
			return nil, nil
		}
		return []Event{{Type: Opened, Kind: kind, Archive: archive}}, nil
	})
	if err != nil {
		return nil, fmt.Errorf("open the ledger in %s: %w", store, err)
	}
	return l, nil
}

// Load returns the ledger in store, which must be of the kind unless that is AnyKind, without
// ever writing. The error wraps ErrNotOpened if there is none, ErrKind if it is of the other
// kind, ErrNewer or ErrEarlier if it is of another format, and a *DamageError if it is not whole.
func Load(ctx context.Context, store blob.Store, kind Kind) (*Ledger, error) {
	l, err := load(ctx, store, kind)
	if err == nil && l.Head().Seq == 0 {
		err = ErrNotOpened
	}
	if err != nil {
		return nil, fmt.Errorf("load the ledger in %s: %w", store, err)
	}
	return l, nil
}

func load(ctx context.Context, store blob.Store, kind Kind) (*Ledger, error) {
	l := &Ledger{files: chain.Chain{Store: store, Prefix: Prefix}, kind: kind}
	if clock, ok := store.(blob.Clock); ok {
		l.clocks = append(l.clocks, clock.StoreTime)
	}
	l.read.Store(&record{state: newState()})
	files, rest, err := l.files.Load(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.extend(files); err != nil {
		return nil, err
	}
	if rest.Gap != nil {
		return nil, rest.Gap
	}
	return l, nil
}

// UseClock adds a clock with which Append compares the instants of a real ledger. The store's clock, if it has
// one, is already among them.
func (l *Ledger) UseClock(c Clock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clocks = append(l.clocks, c)
}

// Vouch tells the ledger the results of the archive that it was opened on, at Fold.OpenedAt. Fold.Vouches then
// goes by them. For a ledger that names no archive, Vouch does nothing.
func (l *Ledger) Vouch(opening *season.View) {
	l.mu.Lock()
	defer l.mu.Unlock()
	read := l.read.Load()
	if read.state.openedOn == "" {
		return
	}
	state := read.state.clone()
	state.vouched = map[roundID]bool{}
	for _, year := range opening.Seasons {
		for i := range year.Rounds {
			if r := &year.Rounds[i]; r.Finished() {
				state.vouched[roundID{year.Year, r.GrandPrix}] = true
			}
		}
	}
	l.read.Store(&record{files: read.files, state: state})
}

// Fresh is a ledger that was just read to its end. Only Refresh makes one, so that every decision starts from
// the latest state.
type Fresh struct{ ledger *Ledger }

// Refresh reads the files that others appended since the last time. Without such files it costs one read. After
// an error the ledger stays unchanged.
func (l *Ledger) Refresh(ctx context.Context) (Fresh, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Fresh{l}, l.refresh(ctx)
}

func (l *Ledger) refresh(ctx context.Context) error {
	files, err := l.files.After(ctx, l.Head().Seq)
	if err != nil {
		return fmt.Errorf("read the ledger: %w", err)
	}
	return l.extend(files)
}

// extend adds files to the record. The caller holds mu, or has just made l.
func (l *Ledger) extend(files []chain.File) error {
	if len(files) == 0 {
		return nil
	}
	next := *l.read.Load()
	next.state = next.state.clone()
	for _, file := range files {
		f, head, err := follow(next.state, file)
		if err != nil {
			return err
		}
		if l.kind != AnyKind && f.Kind != l.kind {
			return fmt.Errorf("%w: it is %s, not %s", ErrKind, f.Kind, l.kind)
		}
		next.files = append(next.files, f)
		next.state.add(f, head)
	}
	l.read.Store(&next)
	return nil
}

// follow checks that next is the file after the head of s, without judging its events, and returns it. The error
// is a *DamageError if next is no such file, ErrNewer or ErrEarlier if it has another format, or the error of reading it.
func follow(s *Fold, next chain.File) (File, Head, error) {
	files := chain.Chain{Prefix: Prefix}
	damage := func(want, got string) (File, Head, error) {
		return File{}, Head{}, &DamageError{Key: files.Key(s.head.Seq + 1), Want: want, Got: got}
	}
	if errors.Is(next.Err, blob.ErrTooLarge) {
		return damage("a ledger file", next.Err.Error())
	}
	if next.Err != nil {
		return File{}, Head{}, next.Err
	}
	f, err := DecodeFile(next.Data)
	if errors.Is(err, ErrNewer) || errors.Is(err, ErrEarlier) {
		return File{}, Head{}, fmt.Errorf("%s: %w", files.Key(s.head.Seq+1), err)
	}
	if err != nil {
		return damage("a ledger file with the checksum of its content", err.Error())
	}
	head, broken := files.Follow(s.head, next.Data)
	if broken != nil {
		return File{}, Head{}, broken
	}
	if len(f.Events) == 0 {
		return damage("at least one event", "none")
	}
	first := f.Events[0]
	if s.head.Seq == 0 {
		if first.Type != Opened || first.Kind != f.Kind || checkKind(f.Kind) != nil {
			return damage("a first event that opens a real or simulated ledger",
				fmt.Sprintf("%s %q in a file of kind %q", first.Type, first.Kind, f.Kind))
		}
	} else if f.Kind != s.kind {
		return damage(fmt.Sprintf("kind %q", s.kind), fmt.Sprintf("%q", f.Kind))
	}
	if first.At.Before(s.at) {
		return damage("an instant not before "+instant(s.at), instant(first.At))
	}
	for _, e := range f.Events {
		if !e.At.Equal(first.At) || !e.Made.Equal(first.Made) {
			return damage("events of one instant, "+instant(first.At), instant(e.At))
		}
	}
	f.Hash = head.Hash
	return f, head, nil
}

// Append adds the events that decide returns as one file: all of them, or none. It returns them with their ids,
// instant and actor. The instant is at, the caller's clock. If the head lies later, the events get its instant,
// and at becomes their Event.Made.
//
// decide gets the latest state that was read. If another process appends first, Append reads the new files and
// calls decide again with the new state, so decide must depend on its state alone. If decide returns no events
// or an error, Append writes nothing and returns that error.
//
// The error wraps a *RefusedError if an event breaks a rule, and ErrKind if the ledger was not opened for
// appending. It wraps blob.ErrUnknown if the store does not answer whether the file was written: the next
// Refresh tells. Append also holds a real ledger to the other clocks, of the store and of UseClock. The error
// wraps ErrClock if at is more than MaxAhead ahead of one of them, and no pick is frozen if any of them shows
// that its race has started.
func (f Fresh) Append(ctx context.Context, at time.Time, actor string, decide func(*Fold) ([]Event, error)) ([]Event, error) {
	l := f.ledger
	if l.kind == AnyKind {
		return nil, fmt.Errorf("append to the ledger: %w: it was loaded to be read only", ErrKind)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		decided, err := decide(l.Fold())
		if err != nil || len(decided) == 0 {
			return nil, err
		}
		events := make([]Event, len(decided))
		for i, e := range decided {
			e.ID, e.Actor = rand.Text(), actor
			events[i] = l.Fold().stamp(e, at)
		}
		won, err := l.write(ctx, events)
		if err != nil {
			return nil, fmt.Errorf("append to the ledger: %w", err)
		}
		if won {
			return events, nil
		}
		if err := l.refresh(ctx); err != nil {
			return nil, fmt.Errorf("append to the ledger: %w", err)
		}
	}
}

// write checks the events and creates the file after the head. It returns false if another process created that
// file first.
func (l *Ledger) write(ctx context.Context, events []Event) (won bool, err error) {
	if _, err := l.Fold().admit(events); err != nil {
		return false, err
	}
	if err := l.checkClock(ctx, events); err != nil {
		return false, err
	}
	head := l.Head()
	data, err := File{Seq: head.Seq + 1, Previous: head.Hash, Kind: l.kind, Events: events}.Encode()
	if err == nil {
		_, err = DecodeFile(data)
	}
	if err != nil {
		return false, fmt.Errorf("the events cannot be written down as they are: %w", err)
	}
	// The random ids make the file differ from every other writer's, so a lost answer can be resolved.
	if _, won, err = l.files.Append(ctx, head, data); !won || err != nil {
		return false, err
	}
	return true, l.extend([]chain.File{{Data: data}})
}

// CheckClock returns ErrClock if the caller's clock, which shows at, is more than a minute ahead of the store's, which all
// builders share. If the store's cannot be read, the other clocks of a real ledger count. Append is stricter, because an
// event stays for ever.
func (l *Ledger) CheckClock(ctx context.Context, at time.Time) error {
	if l.kind != Real {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, clock := range l.clocks { // the store's is the first
		if now, within, err := clock(ctx); err == nil {
			return checkAhead(at, now, time.Minute+within)
		}
	}
	return nil
}

// checkAhead returns ErrClock if a clock that shows at is more than allowed ahead of another one, which shows now.
func checkAhead(at, now time.Time, allowed time.Duration) error {
	if at.Sub(now) <= allowed {
		return nil
	}
	return fmt.Errorf("%w: it shows %s, %s later than another; set it right, nothing was written; a running process takes ten minutes to accept a clock that was set, and a restart accepts it at once",
		ErrClock, instant(at), at.Sub(now).Round(time.Millisecond))
}

// checkClock compares the events of a real ledger with the other clocks. It skips a clock that cannot be read,
// because a pick must not be lost for want of a second clock.
func (l *Ledger) checkClock(ctx context.Context, events []Event) error {
	if l.kind != Real {
		return nil
	}
	for _, clock := range l.clocks {
		now, within, err := clock(ctx)
		if err != nil {
			continue
		}
		if err := checkAhead(events[0].When(), now, MaxAhead+within); err != nil {
			return err
		}
		for _, e := range events {
			if e.Type == PickFrozen && !now.Add(-within).Before(e.Start) {
				return &RefusedError{Event: e, Err: fmt.Errorf("%w: lights out was at %s, and by another clock it is %s",
					ErrStarted, instant(e.Start), instant(now.UTC()))}
			}
		}
	}
	return nil
}

// Head returns the last file that has been read.
func (l *Ledger) Head() Head { return l.Fold().head }

// Fold returns the fold of all events that were read.
func (l *Ledger) Fold() *Fold { return l.read.Load().state }

// Current returns the fold for a service whose clock shows t. For a real ledger it has all events, also those of
// a machine with a clock ahead of t. For a simulated ledger it is AsOf(t), because its past can be asked for.
func (l *Ledger) Current(t time.Time) *Fold {
	if s := l.Fold(); s.kind == Real {
		return s
	}
	return l.AsOf(t)
}

// AsOf returns the fold of the events up to the last one written at t or before, by the clock of its writer.
// Every earlier event counts, even if its own instant is later than t.
func (l *Ledger) AsOf(t time.Time) *Fold {
	r := l.read.Load()
	known := len(r.files)
	for known > 0 && r.files[known-1].Events[0].When().After(t) {
		known--
	}
	return r.upTo(known)
}

// UpTo returns the fold of the files up to seq, inclusive: the ledger as it was with that head. Files that were
// not read are left out.
func (l *Ledger) UpTo(seq int64) *Fold {
	r := l.read.Load()
	return r.upTo(int(min(max(seq, 0), int64(len(r.files)))))
}

func (r *record) upTo(n int) *Fold {
	if n == len(r.files) {
		return r.state
	}
	state := newState()
	state.vouched = r.state.vouched
	for _, f := range r.files[:n] {
		state.add(f, Head{Seq: f.Seq, Hash: f.Hash})
	}
	return state
}

// Files returns the files that were read, oldest first. The slice is shared: callers only read it.
func (l *Ledger) Files() []File {
	r := l.read.Load()
	return r.files[:len(r.files):len(r.files)]
}

// StepAccepted is the time after which Steady accepts a step of the wall clock.
const StepAccepted = 10 * time.Minute

// Steady returns a clock that cannot be set, for Ledger.UseClock where the store has none. It starts at the time
// of wall and advances by elapsed, which reads a monotonic clock. A wall clock that is set while the process runs
// therefore differs from it.
//
// If a step of the wall clock lasts for StepAccepted, Steady accepts it: the machine may have slept, while its
// monotonic clock stood still, or the wall clock may have been wrong before.
func Steady(wall func() time.Time, elapsed func() time.Duration) Clock {
	var (
		mu      sync.Mutex
		zero    = wall().Round(0).Add(-elapsed()) // the instant at which elapsed was 0
		step    time.Duration                     // by how much the wall clock was found off; 0: it was not
		stepped time.Duration                     // elapsed when it was first found so
	)
	return func(context.Context) (time.Time, time.Duration, error) {
		mu.Lock()
		defer mu.Unlock()
		now := elapsed()
		off := wall().Round(0).Sub(zero.Add(now))
		switch {
		case off.Abs() <= MaxAhead:
			step = 0
		case (off - step).Abs() > MaxAhead:
			step, stepped = off, now
		case now-stepped >= StepAccepted:
			zero, step = zero.Add(off), 0
		}
		return zero.Add(now), 0, nil
	}
}
