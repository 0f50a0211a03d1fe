package builder_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder"
	"gridcast/builder/almanac"
	"gridcast/builder/almanac/almanactest"
	"gridcast/builder/archive"
	"gridcast/builder/check"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/builder/render"
	"gridcast/builder/season"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/memblob"
)

// The Austrian Grand Prix of 2024, on which these tests turn.
const (
	austria    season.GrandPrixID = "austria"
	austriaKey int64              = 2024011
)

var (
	austriaQualified = time.Date(2024, 6, 29, 15, 0, 0, 0, time.UTC)
	austriaStart     = time.Date(2024, 6, 30, 13, 0, 0, 0, time.UTC)
)

// altered returns the shortened seasons, with the Austrian Grand Prix of 2024 edited.
func altered(t *testing.T, edit func(*season.Round)) *season.Archive {
	t.Helper()
	facts := shortened(t)
	year := &facts.Seasons[1]
	i := slices.IndexFunc(year.Rounds, func(r season.Round) bool { return r.GrandPrix == austria })
	edit(&year.Rounds[i])
	a, err := season.New(facts)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func asItWas(*season.Round)       {}
func withoutGrid(r *season.Round) { r.Grid = nil }
func withoutQualifying(r *season.Round) {
	r.Grid, r.Qualifying, r.Entries = nil, nil, nil
	r.Practice = [4][]season.TimedLap{}
}

// weekend is a ledger of the Austrian weekend, which is settled and decided on by hand.
type weekend struct {
	t       *testing.T
	store   blob.Store
	archive *season.Archive
	ledger  *ledger.Ledger
	policy  builder.Policy
}

// sum stands for the archive's file.
var sum = strings.Repeat("5a", 32)

func newWeekend(t *testing.T, edit func(*season.Round)) *weekend {
	t.Helper()
	w := &weekend{t: t, store: memblob.New(), archive: altered(t, edit), policy: builder.Policy{Model: predict.GridFrequency()}}
	opened := austriaStart.AddDate(0, 0, -5)
	l, err := ledger.Open(t.Context(), w.store, ledger.Simulated, opened, "test", "")
	if err != nil {
		t.Fatal(err)
	}
	w.ledger = l
	w.settle(opened)
	return w
}

// settle returns the types of the events that were due for the Austrian Grand Prix.
func (w *weekend) settle(at time.Time) []ledger.Type {
	w.t.Helper()
	events, err := w.policy.Settle(w.t.Context(), almanactest.Fresh(w.t, w.ledger), archive.Stored{Archive: w.archive, SHA256: sum}, at)
	if err != nil {
		w.t.Fatalf("settle at %s: %v", at, err)
	}
	var types []ledger.Type
	for _, e := range events {
		if e.Session == austriaKey {
			types = append(types, e.Type)
		}
	}
	return types
}

func (w *weekend) decide(at time.Time, decide func(*almanac.Round) ([]ledger.Event, error)) {
	w.t.Helper()
	if _, err := (almanac.Decider{Ledger: almanactest.Fresh(w.t, w.ledger), View: w.archive.AsOf(at), Actor: "operator:test"}).Decide(w.t.Context(), austriaKey, decide); err != nil {
		w.t.Fatalf("decide at %s: %v", at, err)
	}
}

func (w *weekend) round() ledger.RoundRecord {
	s, _ := w.ledger.Fold().Record(austriaKey)
	return s
}

func (w *weekend) wantNone(at time.Time) {
	w.t.Helper()
	if got := w.settle(at); len(got) > 0 {
		w.t.Fatalf("at %s: settled %v, want nothing", at, got)
	}
}

// wantFreeze settles, and expects that a pick is frozen from this order for this start.
func (w *weekend) wantFreeze(at, start time.Time, from predict.Order) {
	w.t.Helper()
	if got := w.settle(at); !slices.Equal(got, []ledger.Type{ledger.PickFrozen}) {
		w.t.Fatalf("at %s: settled %v, want a frozen pick", at, got)
	}
	forecast, err := w.policy.Model.Predict(w.archive.AsOf(at), 2024, austria)
	if err != nil {
		w.t.Fatal(err)
	}
	if forecast.Basis.Order != from {
		w.t.Errorf("predicted from %s, want %s", forecast.Basis.Order, from)
	}
	pick := w.round().Pick
	if got := [3]season.DriverID{pick.P1, pick.P2, pick.P3}; got != forecast.Podium {
		w.t.Errorf("froze %v, want the forecast %v", got, forecast.Podium)
	}
	if pick.Archive != sum || pick.Basis != ledger.Basis(from) || len(pick.Chances) != len(forecast.Candidates) {
		w.t.Errorf("froze %d chances from %s of the archive %s, want %d from %s of %s", len(pick.Chances), pick.Basis, pick.Archive, len(forecast.Candidates), from, sum)
	}
	for i, c := range pick.Chances {
		if want := forecast.Candidates[i]; c.Driver != want.Driver || float64(c.Win)/ledger.Certain != want.Win || float64(c.Podium)/ledger.Certain != want.Podium {
			w.t.Errorf("froze %+v, want %+v", c, want)
		}
	}
	if !pick.Start.Equal(start) || !pick.FrozenAt.Equal(at) || pick.GridKnown != (from == predict.FromGrid) {
		w.t.Errorf("frozen at %s for %s, grid known %v; want %s, %s, %v",
			pick.FrozenAt, pick.Start, pick.GridKnown, at, start, from == predict.FromGrid)
	}
}

func TestPickIsFrozenWhenTheGridIsKnown(t *testing.T) {
	w := newWeekend(t, asItWas)
	w.wantNone(austriaQualified.Add(-time.Second))
	w.wantFreeze(austriaQualified, austriaStart, predict.FromGrid)
	w.wantNone(austriaStart.Add(-almanac.LastFreeze))
}

func TestPickOnQualifyingThatHasStood(t *testing.T) {
	w := newWeekend(t, withoutGrid)
	stood := austriaQualified.Add(2 * time.Hour)
	w.wantNone(stood.Add(-time.Second))
	w.wantFreeze(stood, austriaStart, predict.FromQualifying)
	w.wantNone(austriaStart.Add(-almanac.LastFreeze))
}

// Qualifying that comes late stands from when it came.
func TestPickOnQualifyingThatCameLate(t *testing.T) {
	w := newWeekend(t, withoutGrid)
	came := austriaQualified.Add(5 * time.Hour)
	w.policy.Arrived = func(year int, gp season.GrandPrixID) time.Time {
		if year != 2024 || gp != austria {
			return time.Time{}
		}
		return came
	}
	w.wantNone(came.Add(2*time.Hour - time.Second))
	w.wantFreeze(came.Add(2*time.Hour), austriaStart, predict.FromQualifying)
}

// TestWholeOrdersAreFrozen: a pick of the default model keeps the chances of every place, of not finishing, and
// the expected points.
func TestWholeOrdersAreFrozen(t *testing.T) {
	w := newWeekend(t, asItWas)
	w.policy.Model = predict.NewV2(predict.DefaultParams())
	w.wantFreeze(austriaQualified, austriaStart, predict.FromGrid)
	expected := 0
	for _, c := range w.round().Pick.Chances {
		total := c.DNF
		for _, chance := range c.Positions {
			total += chance
		}
		if len(c.Positions) != 20 || total != ledger.Certain || c.DNF == 0 || c.Positions[0] != c.Win {
			t.Errorf("froze %+v", c)
		}
		expected += c.Points
	}
	// Ten cars score 101 points if at least ten finish.
	if expected < 100.9*ledger.Certain || expected > 101.001*ledger.Certain {
		t.Errorf("the drivers expect %d millionths of a point, want those of ten places", expected)
	}
}

func TestPickOnFormIsFrozenAtTheLastMoment(t *testing.T) {
	w := newWeekend(t, withoutQualifying)
	last := austriaStart.Add(-almanac.LastFreeze)
	w.wantNone(last.Add(-time.Second))
	w.wantFreeze(last, austriaStart, predict.FromForm)
}

// Qualifying that ends less than two hours before the start is not waited for.
func TestPickOnQualifyingJustBefore(t *testing.T) {
	w := newWeekend(t, func(r *season.Round) {
		withoutGrid(r)
		for i := range r.Sessions {
			if r.Sessions[i].Kind == season.Qualifying {
				r.Sessions = slices.Clone(r.Sessions)
				r.Sessions[i].Date, r.Sessions[i].Start = r.Date, r.Start.Add(-2*time.Hour)
			}
		}
	})
	last := austriaStart.Add(-almanac.LastFreeze)
	w.wantNone(last.Add(-time.Second))
	w.wantFreeze(last, austriaStart, predict.FromQualifying)
}

func TestNoPickAtLightsOut(t *testing.T) {
	w := newWeekend(t, asItWas)
	w.wantNone(austriaStart)
	w.wantNone(austriaStart.Add(24 * time.Hour))
	if w.round().Pick != nil {
		t.Error("a round that missed its moment has a pick")
	}
}

func TestRaceMovedForwardOnTheDay(t *testing.T) {
	forward := func(r *almanac.Round) ([]ledger.Event, error) {
		return r.Move(austriaStart.Add(-3*time.Hour), "storm in the afternoon")
	}
	decided, start := austriaStart.Add(-5*time.Hour), austriaStart.Add(-3*time.Hour)
	t.Run("without a grid", func(t *testing.T) {
		w := newWeekend(t, withoutQualifying)
		w.decide(decided, forward)
		w.wantNone(start.Add(-almanac.LastFreeze - time.Second))
		w.wantFreeze(start.Add(-almanac.LastFreeze), start, predict.FromForm)
	})
	t.Run("noticed after the new start", func(t *testing.T) {
		w := newWeekend(t, withoutQualifying)
		w.decide(decided, forward)
		w.wantNone(start)
		w.wantNone(austriaStart.Add(-almanac.LastFreeze))
	})
	t.Run("with a frozen pick", func(t *testing.T) {
		w := newWeekend(t, asItWas)
		w.wantFreeze(austriaQualified, austriaStart, predict.FromGrid)
		frozen := *w.round().Pick
		w.decide(decided, forward)
		w.wantNone(start.Add(-time.Minute))
		if diff := cmp.Diff(frozen, *w.round().Pick); diff != "" {
			t.Errorf("the pick is not the frozen one (-want +got):\n%s", diff)
		}
	})
}

func TestCancelledRound(t *testing.T) {
	w := newWeekend(t, asItWas)
	w.wantFreeze(austriaQualified, austriaStart, predict.FromGrid)
	w.decide(austriaQualified.Add(time.Hour), func(r *almanac.Round) ([]ledger.Event, error) { return r.Cancel("flood") })
	if r := w.round(); r.Pick != nil || len(r.Voided) != 1 {
		t.Errorf("after the cancellation: pick %v, %d voided; want none and 1", r.Pick, len(r.Voided))
	}
	w.wantNone(austriaQualified.Add(2 * time.Hour))
	w.decide(austriaQualified.Add(3*time.Hour), func(r *almanac.Round) ([]ledger.Event, error) { return r.Reinstate(time.Time{}, "dry again") })
	w.wantFreeze(austriaQualified.Add(3*time.Hour), austriaStart, predict.FromGrid)
	if r := w.round(); len(r.Voided) != 1 {
		t.Errorf("the voided pick is not kept: %d", len(r.Voided))
	}
}

func TestPostponedRound(t *testing.T) {
	postpone := func(r *almanac.Round) ([]ledger.Event, error) { return r.Postpone("fog") }
	later := austriaStart.AddDate(0, 0, 21)
	reinstate := func(r *almanac.Round) ([]ledger.Event, error) { return r.Reinstate(later, "new date") }

	t.Run("with the grid keeps its pick", func(t *testing.T) {
		w := newWeekend(t, asItWas)
		w.wantFreeze(austriaQualified, austriaStart, predict.FromGrid)
		frozen := *w.round().Pick
		w.decide(austriaStart.Add(-time.Hour), postpone)
		w.decide(austriaStart.AddDate(0, 0, 2), reinstate)
		w.wantNone(later.Add(-time.Minute))
		if diff := cmp.Diff(frozen, *w.round().Pick); diff != "" {
			t.Errorf("the pick is not the frozen one (-want +got):\n%s", diff)
		}
	})
	t.Run("with qualifying keeps it too", func(t *testing.T) {
		w := newWeekend(t, withoutGrid)
		w.wantFreeze(austriaQualified.Add(2*time.Hour), austriaStart, predict.FromQualifying)
		w.decide(austriaStart.Add(-time.Minute), postpone)
		if r := w.round(); r.Pick == nil || len(r.Voided) != 0 {
			t.Errorf("after the postponement: pick %v, %d voided; want one and none", r.Pick, len(r.Voided))
		}
	})
	t.Run("without either gets a new one", func(t *testing.T) {
		w := newWeekend(t, withoutQualifying)
		w.wantFreeze(austriaStart.Add(-almanac.LastFreeze), austriaStart, predict.FromForm)
		w.decide(austriaStart.Add(-time.Minute), postpone)
		if r := w.round(); r.Pick != nil || len(r.Voided) != 1 {
			t.Errorf("after the postponement: pick %v, %d voided; want none and 1", r.Pick, len(r.Voided))
		}
		w.wantNone(austriaStart.AddDate(0, 0, 1)) // though this archive has a result by then
		w.decide(austriaStart.AddDate(0, 0, 2), reinstate)
		w.wantNone(later.Add(-almanac.LastFreeze - time.Second))
		w.wantFreeze(later.Add(-almanac.LastFreeze), later, predict.FromForm)
	})
}

// TestWithdrawals: each driver who leaves the round between the freeze and the start is recorded once, and once more if the
// driver comes back. Readers see both with driver and instant; the frozen pick stays.
func TestWithdrawals(t *testing.T) {
	without := func(out ...int) func(*season.Round) { // the places on the grid that are empty
		return func(r *season.Round) {
			grid := slices.Clone(r.Grid)
			season.SortGrid(grid)
			r.Grid = nil
			for i, slot := range grid {
				if !slices.Contains(out, i) {
					r.Grid = append(r.Grid, slot)
				}
			}
		}
	}
	w := newWeekend(t, asItWas)
	w.wantFreeze(austriaQualified, austriaStart, predict.FromGrid)
	frozen := *w.round().Pick
	at := austriaQualified
	for _, step := range []struct {
		edit func(*season.Round)
		want []ledger.Type
	}{
		{without(0), []ledger.Type{ledger.DriverWithdrawn}},
		{without(0), nil},
		{without(0, 7), []ledger.Type{ledger.DriverWithdrawn}},
		{without(7), []ledger.Type{ledger.DriverReturned}},
		{without(0, 7), []ledger.Type{ledger.DriverWithdrawn}},
		{asItWas, []ledger.Type{ledger.DriverReturned, ledger.DriverReturned}},
	} {
		at = at.Add(time.Hour)
		w.archive = altered(t, step.edit)
		if got := w.settle(at); !slices.Equal(got, step.want) {
			t.Errorf("at %s: settled %v, want %v", at, got, step.want)
		}
	}
	last := at.Add(-time.Hour)
	w.archive = altered(t, without(3))
	w.wantNone(austriaStart)
	if diff := cmp.Diff(frozen, *w.round().Pick); diff != "" {
		t.Errorf("the pick is not the frozen one (-want +got):\n%s", diff)
	}

	a := almanac.Join(w.archive.AsOf(austriaStart), w.ledger.Fold(), 2024)
	var list wire.Success[[]wire.Change]
	var log wire.Success[wire.ChangesPage]
	for variant, into := range map[catalog.Variant]any{
		{Endpoint: catalog.Changes, Year: 2024}: &list, {Endpoint: catalog.ChangesLog, Page: 1}: &log,
	} {
		body, err := render.Body(a, variant, austriaStart)
		if err == nil {
			_, err = check.Body(variant.Path(), body)
		}
		if err == nil {
			err = json.Unmarshal(body, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(list.Data) != 6 || len(log.Data.Changes) != 6 {
		t.Fatalf("/changes has %d changes, its log %d, want 6", len(list.Data), len(log.Data.Changes))
	}
	want := wire.Change{
		SessionKey: austriaKey, GPName: "Austrian Grand Prix", Kind: wire.DriverWithdrawn, At: wire.Instant(last), By: "builder",
		Driver: "VER", DriverID: "max-verstappen",
	}
	if got := list.Data[2]; !time.Time(got.At).Equal(last) || got.Driver != want.Driver || got.DriverID != want.DriverID || got.Kind != want.Kind || got.By != want.By || got.Old != nil || got.New != nil {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := log.Data.Changes[0]; got.Kind != wire.DriverWithdrawn || got.DriverID != want.DriverID || got.Old != nil || got.New != nil {
		t.Errorf("the log begins with %+v, want the withdrawal of %s", got, want.DriverID)
	}
	feed, err := render.Feed(a, catalog.Feeds[1], austriaStart)
	if err != nil {
		t.Fatal(err)
	}
	for _, title := range []string{"Austrian Grand Prix 2024: Max Verstappen does not start", "Austrian Grand Prix 2024: Max Verstappen starts after all"} {
		if !strings.Contains(string(feed), title) {
			t.Errorf("/changes.atom lacks %q:\n%s", title, feed)
		}
	}
}

// A driver who is not in the grid after a pick on qualifying has withdrawn. No withdrawal is recorded while the round is
// postponed, and none without a pick.
func TestWithdrawalsOfOtherPicks(t *testing.T) {
	first := func(r *season.Round) { r.Grid = slices.Clone(r.Grid[1:]) }
	w := newWeekend(t, withoutGrid)
	w.wantFreeze(austriaQualified.Add(2*time.Hour), austriaStart, predict.FromQualifying)
	w.decide(austriaQualified.Add(3*time.Hour), func(r *almanac.Round) ([]ledger.Event, error) { return r.Postpone("fog") })
	w.archive = altered(t, first)
	w.wantNone(austriaQualified.Add(4 * time.Hour))
	w.decide(austriaQualified.Add(5*time.Hour), func(r *almanac.Round) ([]ledger.Event, error) { return r.Reinstate(time.Time{}, "dry") })
	if got := w.settle(austriaQualified.Add(6 * time.Hour)); !slices.Equal(got, []ledger.Type{ledger.DriverWithdrawn}) {
		t.Errorf("settled %v, want a withdrawal", got)
	}
	w.decide(austriaQualified.Add(7*time.Hour), func(r *almanac.Round) ([]ledger.Event, error) { return r.Cancel("flood") })
	w.archive = altered(t, asItWas)
	w.wantNone(austriaQualified.Add(8 * time.Hour))
}

// Another process with another model freezes after the first: nothing happens.
func TestSecondFreezeIsHarmless(t *testing.T) {
	w := newWeekend(t, asItWas)
	second, err := ledger.Open(t.Context(), w.store, ledger.Simulated, austriaStart, "other", "")
	if err != nil {
		t.Fatal(err)
	}
	w.wantFreeze(austriaQualified, austriaStart, predict.FromGrid)
	frozen, head := *w.round().Pick, w.ledger.Head()
	other := builder.Policy{Model: predict.PreviousWinner()}
	events, err := other.Settle(t.Context(), almanactest.Fresh(t, second), archive.Stored{Archive: w.archive}, austriaQualified)
	if err != nil || len(events) > 0 {
		t.Errorf("the second freeze: got events %v and error %v, want neither", events, err)
	}
	s, _ := second.Fold().Record(austriaKey)
	if diff := cmp.Diff(frozen, *s.Pick); diff != "" {
		t.Errorf("the other process sees another pick (-want +got):\n%s", diff)
	}
	if got := second.Head(); got != head {
		t.Errorf("the ledger went on to file %d, want %d", got.Seq, head.Seq)
	}
}

func TestRoundWithoutAnybodyHoldsNothingUp(t *testing.T) {
	opened := time.Date(2023, 3, 5, 15, 0, 0, 0, time.UTC) // Bahrain 2023, the first race the archive has
	a := altered(t, asItWas)
	facts := a.Facts()
	facts.Seasons = slices.Clone(facts.Seasons)
	facts.Seasons[0].Rounds = slices.Clone(facts.Seasons[0].Rounds)
	withoutQualifying(&facts.Seasons[0].Rounds[0])
	a, err := season.New(facts)
	if err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Open(t.Context(), memblob.New(), ledger.Simulated, opened.AddDate(0, 0, -1), "test", "")
	if err != nil {
		t.Fatal(err)
	}
	p := policy()
	before := facts.Seasons[0].Rounds[0].StartsAt().Add(-time.Minute)
	events, err := p.Settle(t.Context(), almanactest.Fresh(t, l), archive.Stored{Archive: a}, before)
	var unsettled *builder.UnsettledError
	if !errors.As(err, &unsettled) || !errors.Is(err, predict.ErrNobody) || len(events) != 1 || events[0].Type != ledger.KeysAssigned {
		t.Fatalf("nobody to pick from: got %v and error %v, want keys, and an error that says why there is no pick", events, err)
	}
}

// A pick that is due and cannot be made is an error, so that the job fails and the log says why.
func TestTwoDriversGiveNoPick(t *testing.T) {
	w := newWeekend(t, func(r *season.Round) { r.Grid = r.Grid[:2] })
	events, err := w.policy.Settle(t.Context(), almanactest.Fresh(t, w.ledger), archive.Stored{Archive: w.archive, SHA256: sum}, austriaQualified)
	if err == nil || !strings.Contains(err.Error(), "Austrian Grand Prix of 2024: no pick can be made of two drivers") {
		t.Errorf("got %v and error %v, want an error that names the round and its two drivers", events, err)
	}
}

func TestAutoVerification(t *testing.T) {
	const rule = 24 * time.Hour
	verified := []ledger.Type{ledger.ResultVerified}
	a := altered(t, asItWas)
	v := a.AsOf(austriaStart.AddDate(0, 0, 1))
	r, _ := v.Round(2024, austria)
	length := r.ResultKnownAt().Sub(austriaStart)

	t.Run("off", func(t *testing.T) {
		w := newWeekend(t, asItWas)
		w.wantNone(austriaStart.AddDate(0, 1, 0))
	})
	t.Run("on", func(t *testing.T) {
		w := newWeekend(t, asItWas)
		w.policy.AutoVerifyAfter = rule
		due := austriaStart.Add(length + rule)
		w.wantNone(due.Add(-time.Second))
		if got := w.settle(due); !slices.Equal(got, verified) {
			t.Errorf("settled %v, want a verified result", got)
		}
		w.wantNone(due.Add(time.Hour))
	})
	t.Run("of a race held later", func(t *testing.T) {
		w := newWeekend(t, asItWas)
		w.policy.AutoVerifyAfter = rule
		w.decide(austriaStart.Add(-time.Hour), func(r *almanac.Round) ([]ledger.Event, error) { return r.Postpone("fog") })
		w.wantNone(austriaStart.AddDate(0, 0, 3))
		later := austriaStart.AddDate(0, 0, 21)
		w.decide(austriaStart.AddDate(0, 0, 3), func(r *almanac.Round) ([]ledger.Event, error) { return r.Reinstate(later, "new date") })
		if got := w.settle(austriaStart.AddDate(0, 0, 4)); !slices.Equal(got, []ledger.Type{ledger.PickFrozen}) {
			t.Errorf("settled %v, want a pick for the new date", got)
		}
		due := later.Add(length + rule)
		w.wantNone(due.Add(-time.Second))
		if got := w.settle(due); !slices.Equal(got, verified) {
			t.Errorf("settled %v, want a verified result", got)
		}
	})
	t.Run("of a cancelled race", func(t *testing.T) {
		w := newWeekend(t, asItWas)
		w.policy.AutoVerifyAfter = rule
		w.decide(austriaStart.Add(-time.Hour), func(r *almanac.Round) ([]ledger.Event, error) { return r.Cancel("fog") })
		w.wantNone(austriaStart.AddDate(0, 1, 0))
	})
}
