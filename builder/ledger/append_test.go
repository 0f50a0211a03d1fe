package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/dirblob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

// Several processes append to one store at once. Every event is there once, in the order of its process.
func TestConcurrentAppends(t *testing.T) {
	const appenders, each = 6, 8
	for name, store := range map[string]blob.Store{
		"memory":    newStore(t),
		"directory": newDir(t),
	} {
		t.Run(name, func(t *testing.T) {
			openWith(t, store)
			var wait sync.WaitGroup
			for who := range appenders {
				wait.Go(func() {
					l, err := ledger.Load(t.Context(), store, ledger.Real)
					if err != nil {
						t.Error(err)
						return
					}
					for i := range each {
						gp := season.GrandPrixID(fmt.Sprintf("gp-%d-%d", who, i))
						_, err := decideOn(t.Context(), l, opened, strconv.Itoa(who), func(s *ledger.Fold) ([]ledger.Event, error) {
							keys, err := ledger.AssignKeys(s, []season.Season{calendar(2027, gp)})
							return []ledger.Event{{Type: ledger.KeysAssigned, Keys: keys}}, err
						})
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
			wait.Wait()

			l := must.Get(ledger.Load(t.Context(), store, ledger.Real))(t)
			next := map[string]int{}
			for _, entry := range l.Files()[2:] {
				who := entry.Events[0].Actor
				want := season.GrandPrixID(fmt.Sprintf("gp-%s-%d", who, next[who]))
				must.Equal(t, fmt.Sprintf("file %d", entry.Seq), want, entry.Events[0].Keys[0].GrandPrix)
				next[who]++
			}
			if got, want := len(l.Files()), 2+appenders*each; got != want {
				t.Errorf("got %d files, want %d", got, want)
			}
			mustBeGreen(t, store)
		})
	}
}

// Of many that freeze the pick of one round, one does; the others learn that it is frozen.
func TestConcurrentFreezes(t *testing.T) {
	store := newStore(t)
	shared := openWith(t, store)
	var wait sync.WaitGroup
	results := make(chan error, 16)
	for i := range cap(results) {
		wait.Go(func() {
			l := shared // half of them are goroutines of one process
			if i%2 == 0 {
				own, err := ledger.Load(t.Context(), store, ledger.Real)
				if err != nil {
					results <- err
					return
				}
				l = own
			}
			results <- appendEvents(t.Context(), l, start.Add(-time.Hour), ledger.Freeze(monaco, pick, start, true))
		})
	}
	wait.Wait()
	close(results)
	frozen := 0
	for err := range results {
		if err == nil {
			frozen++
		} else if !errors.Is(err, ledger.ErrAlreadyFrozen) {
			t.Errorf("got %v, want ErrAlreadyFrozen", err)
		}
	}
	if frozen != 1 {
		t.Errorf("the pick was frozen %d times", frozen)
	}
	mustBeGreen(t, store)
}

func newDir(t *testing.T) blob.Store {
	t.Helper()
	return must.Get(dirblob.Open(t.TempDir()))(t)
}

// script appends the life of a round, six files with those of openWith.
var script = []func(s ledger.RoundRecord) (time.Time, []ledger.Event){
	func(ledger.RoundRecord) (time.Time, []ledger.Event) {
		return start.Add(-3 * time.Hour), one(ledger.Freeze(monaco, pick, start, false))
	},
	func(s ledger.RoundRecord) (time.Time, []ledger.Event) {
		return start.Add(-2 * time.Hour), s.Postpone(start, "flood")
	},
	func(s ledger.RoundRecord) (time.Time, []ledger.Event) {
		return start.Add(-time.Hour), one(s.Reinstate(start.Add(24*time.Hour), "dry"))
	},
	func(s ledger.RoundRecord) (time.Time, []ledger.Event) {
		return start.Add(30 * time.Hour), one(s.Verify(rows("leclerc", "norris", "russell"), start.Add(24*time.Hour), ""))
	},
}

func runScript(ctx context.Context, store blob.Store) error {
	l, err := ledger.Open(ctx, store, ledger.Real, opened, "builder", "")
	if err != nil {
		return err
	}
	if err := appendEvents(ctx, l, opened, keyEvent(monaco, 2026, "monaco")); err != nil {
		return err
	}
	for _, do := range script {
		s, _ := l.Fold().Record(monaco)
		at, events := do(s)
		if err := appendEvents(ctx, l, at, events...); err != nil {
			return err
		}
	}
	return nil
}

// Every write of a round's life fails once, in each way. The ledger always ends up whole, with every event once.
func TestFailingWrites(t *testing.T) {
	broken := errors.New("disk on fire")
	const writes = 6
	for name, c := range map[string]struct {
		fate    faultblob.Fate
		succeed bool // in spite of it
	}{
		"refused, outcome unknown":     {faultblob.Fate{Err: blob.ErrUnknown}, true},
		"done, answer lost":            {faultblob.Fate{Err: blob.ErrUnknown, Applied: true}, true},
		"refused, called a conflict":   {faultblob.Fate{Err: blob.ErrConflict}, true},
		"done, repeat called conflict": {faultblob.Fate{Err: blob.ErrConflict, Applied: true}, true},
		"refused":                      {faultblob.Fate{Err: broken}, false},
	} {
		for position := range writes {
			t.Run(fmt.Sprintf("%s/write %d", name, position+1), func(t *testing.T) {
				inner := newStore(t)
				created := 0
				store := faultblob.Wrap(inner, func(_ context.Context, call faultblob.Call) faultblob.Fate {
					if call.Op != faultblob.Create {
						return faultblob.Fate{}
					}
					created++
					if created == position+1 {
						return c.fate
					}
					return faultblob.Fate{}
				})
				err := runScript(t.Context(), store)
				if c.succeed && err != nil {
					t.Fatalf("got %v, want success", err)
				}
				if !c.succeed && !errors.Is(err, broken) {
					t.Fatalf("got %v, want %v", err, broken)
				}
				want := writes
				if !c.succeed {
					want = position // the files before the one that failed
				}
				if l, err := ledger.Load(t.Context(), inner, ledger.AnyKind); want > 0 && (err != nil || len(l.Files()) != want) {
					t.Errorf("in the store: %v, want %d files", err, want)
				}
				if want > 0 {
					mustBeGreen(t, inner)
				}
			})
		}
	}
}

// Somebody else takes the place at every write: the append is decided again on his.
func TestOvertakenAtEveryWrite(t *testing.T) {
	inner := newStore(t)
	openWith(t, inner)
	rival, err := ledger.Load(t.Context(), inner, ledger.Real)
	must.Do(t, err)
	overtaken := 0
	store := faultblob.Wrap(inner, func(ctx context.Context, call faultblob.Call) faultblob.Fate {
		if call.Op == faultblob.Create && overtaken < 5 {
			overtaken++
			must.Succeed(t, "appendEvents", appendEvents(ctx, rival, opened, keyEvent(2028000+int64(overtaken), 2028, season.GrandPrixID(strconv.Itoa(overtaken)))))
		}
		return faultblob.Fate{}
	})
	l := must.Get(ledger.Load(t.Context(), store, ledger.Real))(t)
	decided := 0
	_, err = decideOn(t.Context(), l, opened, "builder", func(s *ledger.Fold) ([]ledger.Event, error) {
		decided++
		keys, err := ledger.AssignKeys(s, []season.Season{calendar(2028, "late")})
		return []ledger.Event{{Type: ledger.KeysAssigned, Keys: keys}}, err
	})
	if err != nil || decided != 6 {
		t.Errorf("got %v after %d decisions, want success at the sixth", err, decided)
	}
	if got, _ := l.Fold().Key(2028, "late"); got != 2028006 {
		t.Errorf("key: got %d, want 2028006, the first free after those of the rival", got)
	}
	mustBeGreen(t, inner)
}

// A store that never gives an answer leaves the caller with ErrUnknown, not with a guess.
func TestOutcomeStaysUnknown(t *testing.T) {
	for name, c := range map[string]struct{ create, get faultblob.Fate }{
		"never written":     {create: faultblob.Fate{Err: blob.ErrUnknown}},
		"can not read back": {create: faultblob.Fate{Err: blob.ErrUnknown, Applied: true}, get: faultblob.Fate{Err: errors.New("down")}},
	} {
		t.Run(name, func(t *testing.T) {
			inner := newStore(t)
			openWith(t, inner)
			writing := false
			store := faultblob.Wrap(inner, func(_ context.Context, call faultblob.Call) faultblob.Fate {
				switch {
				case call.Op == faultblob.Create:
					writing = true
					return c.create
				case call.Op == faultblob.Get && writing:
					return c.get
				}
				return faultblob.Fate{}
			})
			l, err := ledger.Load(t.Context(), store, ledger.Real)
			must.Do(t, err)
			before := l.Head()
			err = appendEvents(t.Context(), l, start.Add(-time.Hour), ledger.Freeze(monaco, pick, start, true))
			if !errors.Is(err, blob.ErrUnknown) || l.Head() != before {
				t.Errorf("got %v and head %v, want ErrUnknown and head %v", err, l.Head(), before)
			}
		})
	}
}

// life is the life of a round: at each instant a service appends the events that are due and not there yet. A
// process that starts again goes through all of it again.
var life = []struct {
	at  time.Time
	due func(s ledger.RoundRecord) []ledger.Event
}{
	{start.Add(-20 * time.Hour), func(s ledger.RoundRecord) []ledger.Event {
		if s.Pick != nil || len(s.Voided) > 0 {
			return nil
		}
		return one(fullFreeze(ledger.OnForm))
	}},
	{start.Add(-2 * time.Hour), func(s ledger.RoundRecord) []ledger.Event {
		if len(s.Override.Changes) > 0 {
			return nil
		}
		return s.Postpone(start, "flood") // two events in one file: the pick is void with it
	}},
	{start.Add(-time.Hour), func(s ledger.RoundRecord) []ledger.Event {
		if s.Override.Status != ledger.Postponed {
			return nil
		}
		return one(s.Reinstate(start.Add(24*time.Hour), "dry"))
	}},
	{start.Add(20 * time.Hour), func(s ledger.RoundRecord) []ledger.Event {
		if s.Pick != nil {
			return nil
		}
		return one(ledger.Freeze(monaco, pick, start.Add(24*time.Hour), true))
	}},
	{start.Add(26 * time.Hour), func(s ledger.RoundRecord) []ledger.Event {
		if s.Result() != nil {
			return nil
		}
		return one(s.Verify(rows("leclerc", "norris", "russell"), start.Add(24*time.Hour), ""))
	}},
	{start.Add(300 * time.Hour), func(s ledger.RoundRecord) []ledger.Event {
		if len(s.Revisions) > 1 {
			return nil
		}
		return one(s.Verify(rows("norris", "leclerc", "russell"), start.Add(24*time.Hour), "a penalty"))
	}},
}

// runLife opens the ledger and appends a whole life. It returns the head of the last append that was
// acknowledged.
func runLife(ctx context.Context, store blob.Store) (acknowledged ledger.Head, err error) {
	l, err := ledger.Open(ctx, store, ledger.Real, opened, "builder", anArchive)
	if err != nil {
		return ledger.Head{}, err
	}
	acknowledged = l.Head()
	if _, err := decideOn(ctx, l, opened, "builder", func(s *ledger.Fold) ([]ledger.Event, error) {
		if _, known := s.Record(monaco); known {
			return nil, nil
		}
		return one(keyEvent(monaco, 2026, "monaco")), nil
	}); err != nil {
		return acknowledged, err
	}
	acknowledged = l.Head()
	for _, d := range life {
		_, err := decideOn(ctx, l, d.at, "builder", func(s *ledger.Fold) ([]ledger.Event, error) {
			session, _ := s.Record(monaco)
			return d.due(session), nil
		})
		if err != nil {
			return acknowledged, err
		}
		acknowledged = l.Head()
	}
	return acknowledged, nil
}

// A process is killed at each of its writes in turn, then another one goes on. The ledger is whole. It has every
// event once, and all files that the first process saw acknowledged.
func TestCrashAtEveryWrite(t *testing.T) {
	quiet := memblob.New()
	must.Get(runLife(t.Context(), quiet))(t)
	undisturbed := must.Get(ledger.Load(t.Context(), quiet, ledger.Real))(t)
	want := session(t, undisturbed.Fold())
	files := 2 + len(life)
	for _, applied := range []bool{false, true} {
		for n := 1; n <= files+1; n++ {
			t.Run(fmt.Sprintf("write %d, applied %v", n, applied), func(t *testing.T) {
				inner := newStore(t)
				store, died := faultblob.Mortal(inner, n, applied)
				acknowledged, err := runLife(t.Context(), store)
				if died() != (err != nil) || died() != (n <= files) {
					t.Fatalf("killed: %v, with %v; want it at writes 1 to %d", died(), err, files)
				}
				if _, err := runLife(t.Context(), inner); err != nil {
					t.Fatalf("the next process: %v", err)
				}
				l := must.Get(ledger.Load(t.Context(), inner, ledger.Real))(t)
				if got := len(l.Files()); got != files {
					t.Errorf("%d files, want %d: every step once", got, files)
				}
				if acknowledged.Seq > 0 && l.Files()[acknowledged.Seq-1].Hash != acknowledged.Hash {
					t.Errorf("file %d is not the one that the first process saw acknowledged", acknowledged.Seq)
				}
				ids := cmpopts.IgnoreFields(ledger.FrozenPick{}, "EventID")
				if diff := cmp.Diff(want, session(t, l.Fold()), ids); diff != "" {
					t.Errorf("the round (-undisturbed +after the crash):\n%s", diff)
				}
				mustBeGreen(t, inner)
			})
		}
	}
}
