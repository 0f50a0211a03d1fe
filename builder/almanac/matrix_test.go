package almanac_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/testseason"
)

// TestDecisionsTakenBack: every way to put a round off, before and after its start, with a pick and without one, can be taken back
// until a result counts: the race can be held at a new start, or at the start that it had, and then verified. A pick that
// was frozen before that start counts.
func TestDecisionsTakenBack(t *testing.T) {
	start := testseason.Belgium.Start
	off := map[string][]func(*almanac.Round) ([]ledger.Event, error){
		"postponed":             {func(r *almanac.Round) ([]ledger.Event, error) { return r.Postpone("fog") }},
		"cancelled":             {func(r *almanac.Round) ([]ledger.Event, error) { return r.Cancel("fog") }},
		"postponed, cancelled":  {func(r *almanac.Round) ([]ledger.Event, error) { return r.Postpone("fog") }, func(r *almanac.Round) ([]ledger.Event, error) { return r.Cancel("fog") }},
		"cancelled, reinstated": {func(r *almanac.Round) ([]ledger.Event, error) { return r.Cancel("fog") }, func(r *almanac.Round) ([]ledger.Event, error) { return r.Reinstate(start.AddDate(0, 0, 1), "dry") }, func(r *almanac.Round) ([]ledger.Event, error) { return r.Cancel("fog") }},
		"moved, cancelled":      {func(r *almanac.Round) ([]ledger.Event, error) { return r.Move(start.Add(time.Hour), "fog") }, func(r *almanac.Round) ([]ledger.Event, error) { return r.Cancel("fog") }},
		"started early":         {func(r *almanac.Round) ([]ledger.Event, error) { return r.Postpone("it is on") }},
	}
	for what, decisions := range off {
		for _, at := range []time.Time{start.Add(-30 * time.Minute), start.Add(time.Minute), testseason.Belgium.Over()} {
			for _, picked := range []string{"", "form", "grid"} {
				for _, back := range []string{"a new start", "the start that it had"} {
					name := fmt.Sprintf("%s at %s, pick on %q, %s", what, at.Format(time.TimeOnly), picked, back)
					w := deciding{testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled}), t}
					if picked != "" {
						w.Decide(start.Add(-time.Hour), testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) {
							pick := ledger.Pick{P1: "max-verstappen", P2: "lando-norris", P3: "charles-leclerc", WinProbability: .5, Model: "m"}
							return []ledger.Event{ledger.Freeze(r.Session, pick, r.Start, picked == "grid")}, nil
						})
					}
					failed := false
					for _, decide := range decisions {
						if err := w.Try(at, testseason.Belgium.Key, decide); err != nil {
							var refused *ledger.RefusedError
							if failed = true; what != "moved, cancelled" || !errors.As(err, &refused) || at.Before(start) {
								t.Errorf("%s: %v", name, err)
							}
							break
						}
					}
					if failed {
						continue // a race that has begun is not moved; the refusal names the way, which the other rows go
					}
					again, after := start, testseason.Belgium.Over().Add(time.Hour)
					if back == "a new start" {
						again = after.Add(time.Hour)
					}
					w.Decide(after, testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) { return r.Reinstate(again, "it is held") })
					r := w.Round(after, testseason.Belgium.Key)
					if !r.Start.Equal(again) || r.Off() {
						t.Errorf("%s: it starts at %s and is off: %t", name, r.Start, r.Off())
					}
					if counts := r.Pick != nil; back == "the start that it had" && counts != (picked != "") {
						t.Errorf("%s: the pick counts: %t", name, counts)
					}
					if err := w.Try(again.Add(4*time.Hour), testseason.Belgium.Key, (*almanac.Round).Verify); err != nil {
						t.Errorf("%s: verify: %v", name, err)
					}
				}
			}
		}
	}
}
