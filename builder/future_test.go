package builder_test

import (
	"errors"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/builder/testseason"
	"gridcast/deploy/must"
	"gridcast/schemas/wire"
)

// An operator with a clock two days ahead postpones the last race of the year, a day before the grid of
// Austria is known. Nothing needs a repair: the pick is frozen on the grid, the result is verified, and
// both are published at once.
func TestEventOfTheFuture(t *testing.T) {
	for _, kind := range []ledger.Kind{ledger.Real, ledger.Simulated} {
		t.Run(string(kind), func(t *testing.T) {
			w := weekendOf(t, asItWas, testseason.Config{Kind: kind})
			b := w.builder()
			build(t, b, testseason.Austria.Opened)
			wrong := austriaQualified.Add(48 * time.Hour)
			w.Decide(wrong, 2024012, func(r *almanac.Round) ([]ledger.Event, error) {
				return r.Postpone("floods")
			})

			out := build(t, b, austriaQualified)
			if len(out.Events) != 1 || out.Events[0].Type != ledger.PickFrozen || out.Unchanged {
				t.Fatalf("on the grid: settled %v, published %t; want a pick, published", out.Events, !out.Unchanged)
			}
			got := w.shown().Pick
			must.Hold(t, got.SessionKey == austriaKey && got.Result == nil, "shown: %+v, want the pick", got)
			w.decide(over, (*almanac.Round).Verify)
			if out := build(t, b, over); out.Unchanged {
				t.Error("the verified result was not published")
			}
			if got := w.shown(); got.Pick.Result == nil || got.Calendar.Status != wire.Finished {
				t.Errorf("shown: %+v, want the result", got)
			}
			if audit := mustAudit(t, w.Store); !audit.Green() || !audit.Picks[0].Recorded.Equal(wrong) {
				t.Errorf("audit: blames %s, picks %+v", blamed(audit), audit.Picks)
			}
		})
	}
}

// nameless is a model without a name. The ledger refuses its picks.
type nameless struct{ predict.Model }

func (nameless) Name() string { return "" }

// If the ledger refuses one event, Build appends and publishes all others, and reports the refusal.
func TestRefusedEventIsPublishedAround(t *testing.T) {
	const spainKey = int64(2024010) // its race is a week before that of Austria
	w := weekendOf(t, asItWas, testseason.Config{Opened: austriaStart.AddDate(0, 0, -10)})
	b := w.builder()
	build(t, b, austriaQualified.Add(-time.Hour))
	b.Policy.Model, b.Policy.AutoVerifyAfter = nameless{b.Policy.Model}, time.Hour
	over := austriaStart.Add(-time.Minute)
	out, err := b.Build(t.Context(), builder.Request{At: over})
	var refused *ledger.RefusedError
	must.Require(t, errors.As(err, &refused) && refused.Event.Type == ledger.PickFrozen, "got %v, want the refusal of the pick", err)
	if out.Version == 0 || len(out.Events) != 1 || out.Events[0].Session != spainKey || out.Events[0].Type != ledger.ResultVerified {
		t.Errorf("settled %v and published version %d; want the result of Spain, published", out.Events, out.Version)
	}
	// The next one, with a model that works, has it all.
	b.Policy.Model = predict.GridFrequency()
	if out := build(t, b, over); len(out.Events) != 1 || out.Unchanged {
		t.Errorf("settled %v, published %t; want the pick", out.Events, !out.Unchanged)
	}
}
