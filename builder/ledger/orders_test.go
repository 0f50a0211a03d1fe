package ledger_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"gridcast/builder/ledger"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
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
