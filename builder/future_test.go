package builder_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/almanac"
	"gridcast/builder/almanac/almanactest"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/schemas/wire"
	"gridcast/snapshots/blob/memblob"
)

// An operator with a clock two days ahead postpones the last race of the year, a day before the grid of
// Austria is known. Nothing needs a repair: the pick is frozen on the grid, the result is verified, and
// both are published at once.
func TestEventOfTheFuture(t *testing.T) {
	for _, kind := range []ledger.Kind{ledger.Real, ledger.Simulated} {
		t.Run(string(kind), func(t *testing.T) {
			w := &weekend{t: t, store: memblob.New(), archive: altered(t, asItWas), policy: builder.Policy{Model: predict.GridFrequency()}}
			opened := austriaStart.AddDate(0, 0, -5)
			var err error
			if w.ledger, err = ledger.Open(t.Context(), w.store, kind, opened, "test", ""); err != nil {
				t.Fatal(err)
			}
			b := w.builder()
			build(t, b, opened)
			wrong := austriaQualified.Add(48 * time.Hour)
			if _, err := (almanac.Decider{Ledger: almanactest.Fresh(t, w.ledger), View: w.archive.AsOf(wrong), Actor: "operator:test"}).Decide(t.Context(), 2024012, func(r *almanac.Round) ([]ledger.Event, error) {
				return r.Postpone("floods")
			}); err != nil {
				t.Fatal(err)
			}

			out := build(t, b, austriaQualified)
			if len(out.Events) != 1 || out.Events[0].Type != ledger.PickFrozen || out.Unchanged {
				t.Fatalf("on the grid: settled %v, published %t; want a pick, published", out.Events, !out.Unchanged)
			}
			if got := w.shown().Pick; got.SessionKey != austriaKey || got.Result != nil {
				t.Errorf("shown: %+v, want the pick", got)
			}
			over := austriaStart.Add(3 * time.Hour)
			w.decide(over, (*almanac.Round).Verify)
			if out := build(t, b, over); out.Unchanged {
				t.Error("the verified result was not published")
			}
			if got := w.shown(); got.Pick.Result == nil || got.Calendar.Status != wire.Finished {
				t.Errorf("shown: %+v, want the result", got)
			}
			if audit := mustAudit(t, w); !audit.Green() || !audit.Picks[0].Recorded.Equal(wrong) {
				t.Errorf("audit: blames %s, picks %+v", blamed(audit), audit.Picks)
			}
		})
	}
}

// By a clock that is ahead nothing is written and nothing published.
func TestClockThatIsAhead(t *testing.T) {
	w := newWeekend(t, asItWas)
	var err error
	w.store = memblob.New()
	if w.ledger, err = ledger.Open(t.Context(), w.store, ledger.Real, austriaStart.AddDate(0, 0, -5), "test", ""); err != nil {
		t.Fatal(err)
	}
	now := austriaStart.AddDate(0, 0, -4)
	w.ledger.UseClock(func(context.Context) (time.Time, time.Duration, error) { return now, 0, nil })
	b, head := w.builder(), w.ledger.Head()
	if _, err := b.Build(t.Context(), builder.Request{At: now.Add(time.Hour)}); !errors.Is(err, ledger.ErrClock) {
		t.Errorf("an hour ahead: got %v, want ErrClock", err)
	}
	if w.ledger.Head() != head {
		t.Error("it wrote to the ledger")
	}
	build(t, b, now)
}

// nameless is a model without a name. The ledger refuses its picks.
type nameless struct{ predict.Model }

func (nameless) Name() string { return "" }

// If the ledger refuses one event, Build appends and publishes all others, and reports the refusal.
func TestRefusedEventIsPublishedAround(t *testing.T) {
	const spainKey = int64(2024010) // its race is a week before that of Austria
	w := &weekend{t: t, store: memblob.New(), archive: altered(t, asItWas), policy: builder.Policy{Model: predict.GridFrequency()}}
	var err error
	if w.ledger, err = ledger.Open(t.Context(), w.store, ledger.Simulated, austriaStart.AddDate(0, 0, -10), "test", ""); err != nil {
		t.Fatal(err)
	}
	b := w.builder()
	build(t, b, austriaQualified.Add(-time.Hour))
	b.Policy.Model, b.Policy.AutoVerifyAfter = nameless{b.Policy.Model}, time.Hour
	over := austriaStart.Add(-time.Minute)
	out, err := b.Build(t.Context(), builder.Request{At: over})
	var refused *ledger.RefusedError
	if !errors.As(err, &refused) || refused.Event.Type != ledger.PickFrozen {
		t.Fatalf("got %v, want the refusal of the pick", err)
	}
	if out.Version == 0 || len(out.Events) != 1 || out.Events[0].Session != spainKey || out.Events[0].Type != ledger.ResultVerified {
		t.Errorf("settled %v and published version %d; want the result of Spain, published", out.Events, out.Version)
	}
	// The next one, with a model that works, has it all.
	b.Policy.Model = predict.GridFrequency()
	if out := build(t, b, over); len(out.Events) != 1 || out.Unchanged {
		t.Errorf("settled %v, published %t; want the pick", out.Events, !out.Unchanged)
	}
}
