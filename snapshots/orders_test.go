package snapshots_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/blob/orders"
)

// orderNow is the real time of the operations in TestEveryOrder. Earlier objects are old enough to prune.
var orderNow = time.Date(2024, 11, 24, 8, 0, 0, 0, time.UTC)

// builds is a builder that publishes one version with a body of its own.
func builds(body string) orders.Process {
	return orders.Process{Name: "builder of " + body, Run: func(ctx context.Context, s blob.Store) string {
		p := snapshots.Publisher{Store: s, Workers: 1, Now: func() time.Time { return orderNow }}
		base, err := p.LoadBase(ctx, nil)
		if err == nil {
			_, err = p.Publish(ctx, draftOf(base, bodies{"drivers": body, "calendar/2024": "c1"}))
		}
		return outcome("published", err)
	}}
}

// rollsBack makes version 1 current again.
var rollsBack = orders.Process{Name: "rollback", Run: func(ctx context.Context, s blob.Store) string {
	p := snapshots.Publisher{Store: s, Workers: 1, Now: func() time.Time { return orderNow }}
	_, err := p.Rollback(ctx, 1, "operator", "wrong result", raceDay)
	return outcome("rolled back", err)
}}

// prunes keeps the current version alone.
var prunes = orders.Process{Name: "prune", Run: func(ctx context.Context, s blob.Store) string {
	_, err := snapshots.Prune(ctx, s, 1, orderNow, false)
	return outcome("pruned", err)
}}

// outcome names the end of an operation by its error. An error without a name is a fault.
func outcome(done string, err error) string {
	for _, known := range []struct {
		name string
		err  error
	}{
		{"overtaken", snapshots.ErrBaseChanged},
		{"held", snapshots.ErrHeld},
		{"in doubt", blob.ErrUnknown},
		{"no answer", orders.ErrNoAnswer},
		{"target is gone", blob.ErrNotFound},
	} {
		if errors.Is(err, known.err) {
			return known.name
		}
	}
	if err != nil {
		return err.Error()
	}
	return done
}

// TestEveryOrder runs two operations on published versions in every order of their store calls, with a crash and a lost
// answer. The pointer always names a whole version, and its number only rises. A version is in the history if its
// operation was acknowledged, and is not if it was refused. The next build publishes, and a later prune leaves nothing over.
// With -short no answer is lost.
func TestEveryOrder(t *testing.T) {
	for _, test := range []struct {
		name      string
		processes []orders.Process
		lost      int
		outcomes  []string // some of those that must occur
	}{
		{"two builders", []orders.Process{builds("a"), builds("b")}, 1, []string{"published, overtaken", "published, published", "crashed, published"}},
		{"a builder and a prune", []orders.Process{builds("a"), prunes}, 1, []string{"published, pruned", "crashed, pruned"}},
		{"a rollback and a prune", []orders.Process{rollsBack, prunes}, 0, []string{"rolled back, pruned", "target is gone, pruned"}},
		{"a builder and a rollback", []orders.Process{builds("a"), rollsBack}, 0, []string{"published, overtaken", "overtaken, rolled back", "held, rolled back"}},
		{"two prunes", []orders.Process{prunes, prunes}, 0, []string{"pruned, pruned", "crashed, pruned"}},
	} {
		if testing.Short() {
			test.lost = 0
		}
		t.Run(test.name, func(t *testing.T) {
			old := orderNow.Add(-2 * snapshots.PruneAge)
			s := memblob.New(memblob.Clock(func() time.Time { return old }))
			publish(t, s, bodies{"drivers": "d1", "calendar/2024": "c1"})
			publish(t, s, bodies{"drivers": "d2", "calendar/2024": "c1"})
			ends := orders.Explore(t, orders.World{
				Store: s, Now: orderNow, Processes: test.processes, Crashes: 1, Lost: test.lost, Immutable: snapshots.Immutable,
				Always: currentIsWhole, Written: numberRises,
				End: func(t *testing.T, s blob.Store, outcomes []string) { checkEnd(t, s, test.processes, outcomes) },
			})
			for _, want := range test.outcomes {
				must.Hold(t, ends[want] != nil, "no order ends with %s", want)
			}
		})
	}
}

func currentIsWhole(t *testing.T, s blob.Store) {
	result, err := snapshots.Verify(t.Context(), s, 0, nil)
	must.Hold(t, err == nil && len(result.Faults) == 0, "current version %d: %v, %v", result.Version, result.Faults, err)
}

func numberRises(t *testing.T, before, after blob.Store) {
	old, _ := must.Get2(snapshots.LoadPointer(t.Context(), before))(t)
	now, _ := must.Get2(snapshots.LoadPointer(t.Context(), after))(t)
	must.Hold(t, now == old || now.Version > old.Version, "the pointer moves from version %d to %d", old.Version, now.Version)
}

// checkEnd compares the history with the outcomes, and lets a builder and a prune follow.
func checkEnd(t *testing.T, s blob.Store, processes []orders.Process, outcomes []string) {
	h := must.Get(snapshots.LoadHistory(t.Context(), s))(t)
	made := map[string]bool{} // names of the processes with a version in the history
	for _, m := range h.Manifests {
		for _, p := range processes {
			if body, builds := strings.CutPrefix(p.Name, "builder of "); builds && m.Entries[1].SHA256 == snapshots.Digest([]byte(body)) || !builds && m.RollbackOf == 1 {
				made[p.Name] = true
			}
		}
	}
	for i, p := range processes {
		switch outcome, was := outcomes[i], made[p.Name]; outcome {
		case "published", "rolled back":
			must.Hold(t, was, "%s: %s, but the history %v lacks it", p.Name, outcome, h.Versions)
		case "overtaken", "held", "target is gone":
			must.Hold(t, !was, "%s: %s, but it is in the history %v", p.Name, outcome, h.Versions)
		case "pruned", "in doubt", "no answer", orders.Crashed:
		default:
			t.Errorf("%s: %s", p.Name, outcome)
		}
	}
	p := snapshots.Publisher{Store: s, Workers: 1, Now: func() time.Time { return orderNow }}
	d := draftOf(must.Get(p.LoadBase(t.Context(), nil))(t), bodies{"drivers": "later", "calendar/2024": "c1"})
	d.EndHold = true
	must.Get(p.Publish(t.Context(), d))(t)
	must.Get(snapshots.Prune(t.Context(), s, 1, orderNow.Add(2*snapshots.PruneAge), false))(t)
	checkNothingLeftOver(t, s)
	wantServed(t, s, 0, "later")
}
