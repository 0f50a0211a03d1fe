package ledger_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gridcast/builder/ledger"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/orders"
)

// appends is a process that loads the ledger and appends the events that are due. It tries again after a lost answer, as a
// service does at its next turn.
func appends(name string, at time.Time, due func(s ledger.RoundRecord) []ledger.Event) orders.Process {
	return orders.Process{Name: name, Run: func(ctx context.Context, s blob.Store) string {
		var err error
		for range 2 {
			var l *ledger.Ledger
			if l, err = ledger.Open(ctx, s, ledger.Real, opened, name, ""); err != nil {
				continue
			}
			var written []ledger.Event
			written, err = decideOn(ctx, l, at, name, func(s *ledger.Fold) ([]ledger.Event, error) {
				round, _ := s.Record(monaco)
				return due(round), nil
			})
			if err == nil && len(written) == 0 {
				return "nothing to do"
			}
			if err == nil {
				return "appended"
			}
			if !errors.Is(err, blob.ErrUnknown) && !errors.Is(err, orders.ErrNoAnswer) {
				break
			}
		}
		switch {
		case errors.Is(err, ledger.ErrAlreadyFrozen):
			return "already frozen"
		case errors.Is(err, ledger.ErrNotHeld):
			return "round is cancelled"
		case errors.Is(err, blob.ErrUnknown):
			return "in doubt"
		case errors.Is(err, orders.ErrNoAnswer):
			return "no answer"
		}
		return err.Error()
	}}
}

// TestEveryOrder lets two processes append to one ledger in every order of their store calls, with a crash and a lost answer.
// With -short no answer is lost.
// The audit holds at every moment, no file changes, and a frozen pick stays unless an event voids it. An
// acknowledged event is in the ledger once, and a refused one is not.
func TestEveryOrder(t *testing.T) {
	before := start.Add(-time.Hour)
	freezes := func(name string) orders.Process {
		return appends(name, before, func(s ledger.RoundRecord) []ledger.Event {
			if s.Pick != nil {
				return nil
			}
			return one(ledger.Freeze(monaco, pick, start, true))
		})
	}
	insists := appends("insists", before, func(ledger.RoundRecord) []ledger.Event { return one(ledger.Freeze(monaco, pick, start, true)) })
	verifies := appends("verifies", before, func(ledger.RoundRecord) []ledger.Event {
		canada := ledger.RoundRecord{Key: 2026007}
		return one(canada.Verify(rows("leclerc", "norris", "russell"), start.Add(-7*24*time.Hour), ""))
	})
	cancels := appends("cancels", before, func(s ledger.RoundRecord) []ledger.Event { return s.Cancel("flood") })
	lost := 1
	if testing.Short() {
		lost = 0
	}
	for _, test := range []struct {
		name      string
		processes []orders.Process
		outcomes  []string // some of those that must occur
	}{
		{"a freeze and a verification", []orders.Process{freezes("freezes"), verifies}, []string{"appended, appended"}},
		{"two freezes", []orders.Process{freezes("freezes"), insists}, []string{"appended, already frozen", "nothing to do, appended"}},
		{"a freeze and a cancellation", []orders.Process{insists, cancels}, []string{"appended, appended", "round is cancelled, appended"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newStore(t)
			openWith(t, s)
			ends := orders.Explore(t, orders.World{
				Store: s, Now: before, Processes: test.processes, Crashes: 1, Lost: lost, Immutable: isLedgerFile,
				Always: mustBeGreen, Written: pickStays,
				End: func(t *testing.T, s blob.Store, outcomes []string) { checkEvents(t, s, test.processes, outcomes) },
			})
			for _, want := range test.outcomes {
				must.Hold(t, ends[want] != nil, "no order ends with %s", want)
			}
		})
	}
}

func pickStays(t *testing.T, before, after blob.Store) {
	old, now := must.Get(ledger.Load(t.Context(), before, ledger.Real))(t), must.Get(ledger.Load(t.Context(), after, ledger.Real))(t)
	must.Require(t, len(now.Files()) == len(old.Files())+1, "%d files follow %d", len(now.Files()), len(old.Files()))
	must.Equal(t, "the files before", old.Files(), now.Files()[:len(old.Files())])
	if was, is := session(t, old.Fold()), session(t, now.Fold()); was.Pick != nil && len(is.Voided) == 0 {
		must.Equal(t, "the frozen pick", was.Pick, is.Pick)
	}
}

// checkEvents compares the events of each process with its outcome.
func checkEvents(t *testing.T, s blob.Store, processes []orders.Process, outcomes []string) {
	l := must.Get(ledger.Load(t.Context(), s, ledger.Real))(t)
	files := map[string]int{} // by the actor
	for _, f := range l.Files() {
		files[f.Events[0].Actor]++
	}
	for i, p := range processes {
		switch outcome, n := outcomes[i], files[p.Name]; outcome {
		case "appended":
			must.Hold(t, n == 1, "%s: %s, and the ledger has %d of its files", p.Name, outcome, n)
		case "already frozen", "round is cancelled":
			must.Hold(t, n == 0, "%s: %s, and the ledger has %d of its files", p.Name, outcome, n)
		case "nothing to do", "in doubt", "no answer", orders.Crashed:
			must.Hold(t, n <= 1, "%s: %s, and the ledger has %d of its files", p.Name, outcome, n)
		default:
			t.Errorf("%s: %s", p.Name, outcome)
		}
	}
}

// TestAnswersOfAWrite: a write that fails in each way. After a lost answer the ledger reads back the file and goes on. If it
// cannot, the caller gets blob.ErrUnknown and no new head.
func TestAnswersOfAWrite(t *testing.T) {
	broken, unread := errors.New("disk on fire"), errors.New("no answer")
	for name, c := range map[string]struct {
		create, get faultblob.Fate
		again       bool // every write fails
		want        error
	}{
		"refused, outcome unknown":     {create: faultblob.Fate{Err: blob.ErrUnknown}},
		"done, answer lost":            {create: faultblob.Fate{Err: blob.ErrUnknown, Applied: true}},
		"refused, called a conflict":   {create: faultblob.Fate{Err: blob.ErrConflict}},
		"done, repeat called conflict": {create: faultblob.Fate{Err: blob.ErrConflict, Applied: true}},
		"refused":                      {create: faultblob.Fate{Err: broken}, want: broken},
		"never written":                {create: faultblob.Fate{Err: blob.ErrUnknown}, again: true, want: blob.ErrUnknown},
		"cannot be read back":          {create: faultblob.Fate{Err: blob.ErrUnknown, Applied: true}, get: faultblob.Fate{Err: unread}, want: blob.ErrUnknown},
	} {
		inner, created := newStore(t), 0
		openWith(t, inner)
		l := must.Get(ledger.Load(t.Context(), faultblob.Wrap(inner, func(_ context.Context, call faultblob.Call) faultblob.Fate {
			switch {
			case call.Op == faultblob.Create:
				if created++; created == 1 || c.again {
					return c.create
				}
			case call.Op == faultblob.Get && created > 0:
				return c.get
			}
			return faultblob.Fate{}
		}), ledger.Real))(t)
		before := l.Head()
		err := appendEvents(t.Context(), l, start.Add(-time.Hour), ledger.Freeze(monaco, pick, start, true))
		if !errors.Is(err, c.want) || (l.Head() == before) != (c.want != nil) {
			t.Errorf("%s: got %v and head %v, want %v", name, err, l.Head(), c.want)
		}
		mustBeGreen(t, inner)
	}
}

// TestConcurrentFreezes: of many goroutines of one process that freeze the pick of a round, one does. The others learn that it
// is frozen.
func TestConcurrentFreezes(t *testing.T) {
	store := newStore(t)
	l := openWith(t, store)
	var wait sync.WaitGroup
	var frozen, refused atomic.Int64
	for range 16 {
		wait.Go(func() {
			switch err := appendEvents(t.Context(), l, start.Add(-time.Hour), ledger.Freeze(monaco, pick, start, true)); {
			case err == nil:
				frozen.Add(1)
			case errors.Is(err, ledger.ErrAlreadyFrozen):
				refused.Add(1)
			}
		})
	}
	wait.Wait()
	must.Hold(t, frozen.Load() == 1 && refused.Load() == 15, "%d froze the pick, %d were refused", frozen.Load(), refused.Load())
	mustBeGreen(t, store)
}
