package builder_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/check"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/builder/render"
	"gridcast/builder/season"
	"gridcast/builder/testseason"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
	"gridcast/snapshots/blob/memblob"
)

// The Austrian Grand Prix of 2024, on which these tests turn.
const austria season.GrandPrixID = "austria"

var (
	austriaKey       = testseason.Austria.Key
	austriaQualified = testseason.Austria.Qualified
	austriaStart     = testseason.Austria.Start
	over             = testseason.Austria.Over()
)

// altered returns the shortened seasons, with the Austrian Grand Prix of 2024 edited.
func altered(t *testing.T, edit func(*season.Round)) *season.Archive {
	t.Helper()
	facts := testseason.ShortFacts(t, testseason.Austria)
	year := &facts.Seasons[1]
	i := slices.IndexFunc(year.Rounds, func(r season.Round) bool { return r.GrandPrix == austria })
	edit(&year.Rounds[i])
	return must.Get(season.New(facts))(t)
}

func asItWas(*season.Round)       {}
func withoutGrid(r *season.Round) { r.Grid = nil }
func withoutQualifying(r *season.Round) {
	r.Grid, r.Qualifying, r.Entries = nil, nil, nil
	r.Practice = [4][]season.TimedLap{}
}

// weekend is the Austrian weekend, which is settled and decided on by hand.
type weekend struct {
	*testseason.Season
	t *testing.T
}

// sum stands for the archive's file.
var sum = strings.Repeat("5a", 32)

func newWeekend(t *testing.T, edit func(*season.Round)) *weekend {
	t.Helper()
	return weekendOf(t, edit, testseason.Config{Until: testseason.Scheduled})
}

func weekendOf(t *testing.T, edit func(*season.Round), c testseason.Config) *weekend {
	t.Helper()
	c.Archive = altered(t, edit)
	return &weekend{testseason.New(t, c), t}
}

// settle returns the types of the events that were due for the Austrian Grand Prix.
func (w *weekend) settle(at time.Time) []ledger.Type {
	w.t.Helper()
	var types []ledger.Type
	for _, e := range w.Settle(at) {
		if e.Session == austriaKey {
			types = append(types, e.Type)
		}
	}
	return types
}

func (w *weekend) decide(at time.Time, decide func(*almanac.Round) ([]ledger.Event, error)) {
	w.t.Helper()
	w.Decide(at, austriaKey, decide)
}

func (w *weekend) round() ledger.RoundRecord {
	s, _ := w.Ledger.Fold().Record(austriaKey)
	return s
}

func (w *weekend) wantNone(at time.Time) {
	w.t.Helper()
	got := w.settle(at)
	must.Require(w.t, len(got) == 0, "at %s: settled %v, want nothing", at, got)
}

// wantFreeze settles, and expects that a pick is frozen from this order for this start.
func (w *weekend) wantFreeze(at, start time.Time, from predict.Order) {
	w.t.Helper()
	got := w.settle(at)
	must.Require(w.t, slices.Equal(got, []ledger.Type{ledger.PickFrozen}), "at %s: settled %v, want a frozen pick", at, got)
	forecast := must.Get(w.Policy.Model.Predict(w.Stored.Archive.AsOf(at), 2024, austria))(w.t)
	must.Hold(w.t, forecast.Basis.Order == from, "predicted from %s, want %s", forecast.Basis.Order, from)
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

// act is a step of a weekend.
type act func(*weekend)

func none(at time.Time) act { return func(w *weekend) { w.t.Helper(); w.wantNone(at) } }

func frozen(at, start time.Time, from predict.Order) act {
	return func(w *weekend) { w.t.Helper(); w.wantFreeze(at, start, from) }
}

func decided(at time.Time, decide func(*almanac.Round) ([]ledger.Event, error)) act {
	return func(w *weekend) { w.t.Helper(); w.decide(at, decide) }
}

func settled(at time.Time, want ledger.Type) act {
	return func(w *weekend) {
		w.t.Helper()
		must.Equal(w.t, "settled at "+at.String(), []ledger.Type{want}, w.settle(at))
	}
}

// stands says whether the round has a pick, and how many picks were voided.
func stands(picked bool, voided int) act {
	return func(w *weekend) {
		w.t.Helper()
		if r := w.round(); (r.Pick != nil) != picked || len(r.Voided) != voided {
			w.t.Errorf("pick %v, %d voided; want a pick: %t, and %d", r.Pick, len(r.Voided), picked, voided)
		}
	}
}

func has(edit func(*season.Round)) act {
	return func(w *weekend) { w.Stored.Archive = altered(w.t, edit) }
}

func auto(w *weekend) { w.Policy.AutoVerifyAfter = 24 * time.Hour }

// TestWeekends: a pick is frozen once, when the grid is known or qualifying has stood, or on form at the last moment,
// and stays frozen. A result is verified by the rule once it has stood. Decisions move, postpone and cancel both.
func TestWeekends(t *testing.T) {
	const grid, qualifying, form = predict.FromGrid, predict.FromQualifying, predict.FromForm
	type events = []ledger.Event
	stood, last := austriaQualified.Add(2*time.Hour), austriaStart.Add(-almanac.LastFreeze)
	earlier, later, morning := austriaStart.Add(-3*time.Hour), austriaStart.AddDate(0, 0, 21), austriaStart.Add(-5*time.Hour)
	came := austriaQualified.Add(5 * time.Hour)
	forward := func(r *almanac.Round) (events, error) { return r.Move(earlier, "storm in the afternoon") }
	postpone := func(r *almanac.Round) (events, error) { return r.Postpone("fog") }
	cancel := func(r *almanac.Round) (events, error) { return r.Cancel("flood") }
	back := func(r *almanac.Round) (events, error) { return r.Reinstate(time.Time{}, "dry again") }
	reinstate := func(r *almanac.Round) (events, error) { return r.Reinstate(later, "new date") }
	view := altered(t, asItWas).AsOf(austriaStart.AddDate(0, 0, 1))
	r, _ := view.Round(2024, austria)
	length := r.ResultKnownAt().Sub(austriaStart)
	due, dueLater := austriaStart.Add(length+24*time.Hour), later.Add(length+24*time.Hour)
	for name, test := range map[string]struct {
		edit func(*season.Round)
		acts []act
	}{
		"the grid is known":        {asItWas, []act{none(austriaQualified.Add(-time.Second)), frozen(austriaQualified, austriaStart, grid), none(last)}},
		"qualifying has stood":     {withoutGrid, []act{none(stood.Add(-time.Second)), frozen(stood, austriaStart, qualifying), none(last)}},
		"form, at the last moment": {withoutQualifying, []act{none(last.Add(-time.Second)), frozen(last, austriaStart, form)}},
		"no pick at lights out":    {asItWas, []act{none(austriaStart), none(austriaStart.Add(24 * time.Hour)), stands(false, 0)}},
		"qualifying that came late stands from when it came": {withoutGrid, []act{func(w *weekend) {
			w.Policy.Arrived = func(year int, gp season.GrandPrixID) (at time.Time) {
				if year == 2024 && gp == austria {
					at = came
				}
				return at
			}
		}, none(came.Add(2*time.Hour - time.Second)), frozen(came.Add(2*time.Hour), austriaStart, qualifying)}},
		"qualifying that ends less than two hours before the start is not waited for": {func(r *season.Round) {
			withoutGrid(r)
			for i := range r.Sessions {
				if r.Sessions[i].Kind == season.Qualifying {
					r.Sessions = slices.Clone(r.Sessions)
					r.Sessions[i].Date, r.Sessions[i].Start = r.Date, r.Start.Add(-2*time.Hour)
				}
			}
		}, []act{none(last.Add(-time.Second)), frozen(last, austriaStart, qualifying)}},

		"moved forward on the day, without a grid": {withoutQualifying, []act{
			decided(morning, forward), none(earlier.Add(-almanac.LastFreeze - time.Second)), frozen(earlier.Add(-almanac.LastFreeze), earlier, form),
		}},
		"moved forward, noticed after the new start": {withoutQualifying, []act{decided(morning, forward), none(earlier), none(last)}},
		"moved forward, with a frozen pick": {asItWas, []act{
			frozen(austriaQualified, austriaStart, grid), decided(morning, forward), none(earlier.Add(-time.Minute)), stands(true, 0),
		}},
		"cancelled and reinstated": {asItWas, []act{
			frozen(austriaQualified, austriaStart, grid), decided(austriaQualified.Add(time.Hour), cancel), stands(false, 1), none(austriaQualified.Add(2 * time.Hour)),
			decided(austriaQualified.Add(3*time.Hour), back), frozen(austriaQualified.Add(3*time.Hour), austriaStart, grid), stands(true, 1),
		}},
		"postponed with the grid, it keeps its pick": {asItWas, []act{
			frozen(austriaQualified, austriaStart, grid), decided(austriaStart.Add(-time.Hour), postpone), decided(austriaStart.AddDate(0, 0, 2), reinstate),
			none(later.Add(-time.Minute)), stands(true, 0),
		}},
		"postponed with qualifying, it keeps its pick": {withoutGrid, []act{frozen(stood, austriaStart, qualifying), decided(austriaStart.Add(-time.Minute), postpone), stands(true, 0)}},
		"postponed without either, it gets a new pick": {withoutQualifying, []act{
			frozen(last, austriaStart, form), decided(austriaStart.Add(-time.Minute), postpone), stands(false, 1),
			none(austriaStart.AddDate(0, 0, 1)), // though this archive has a result by then
			decided(austriaStart.AddDate(0, 0, 2), reinstate), none(later.Add(-almanac.LastFreeze - time.Second)), frozen(later.Add(-almanac.LastFreeze), later, form),
		}},
		"withdrawn after a pick on qualifying, but not while it is postponed or without a pick": {withoutGrid, []act{
			frozen(stood, austriaStart, qualifying), decided(stood.Add(time.Hour), postpone),
			has(func(r *season.Round) { r.Grid = slices.Clone(r.Grid[1:]) }), none(stood.Add(2 * time.Hour)),
			decided(stood.Add(3*time.Hour), back), settled(stood.Add(4*time.Hour), ledger.DriverWithdrawn),
			decided(stood.Add(5*time.Hour), cancel), has(asItWas), none(stood.Add(6 * time.Hour)),
		}},

		"no rule verifies":   {asItWas, []act{none(austriaStart.AddDate(0, 1, 0))}},
		"the rule verifies":  {asItWas, []act{auto, none(due.Add(-time.Second)), settled(due, ledger.ResultVerified), none(due.Add(time.Hour))}},
		"not when cancelled": {asItWas, []act{auto, decided(austriaStart.Add(-time.Hour), cancel), none(austriaStart.AddDate(0, 1, 0))}},
		"the rule verifies a race that is held later": {asItWas, []act{
			auto, decided(austriaStart.Add(-time.Hour), postpone), none(austriaStart.AddDate(0, 0, 3)), decided(austriaStart.AddDate(0, 0, 3), reinstate),
			settled(austriaStart.AddDate(0, 0, 4), ledger.PickFrozen), none(dueLater.Add(-time.Second)), settled(dueLater, ledger.ResultVerified),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWeekend(t, test.edit)
			var first *ledger.FrozenPick
			for _, act := range test.acts {
				act(w)
				pick := w.round().Pick
				if first != nil && pick != nil {
					must.Equal(t, "the frozen pick", first, pick)
				}
				first = pick
			}
		})
	}
}

// TestWholeOrdersAreFrozen: a pick of the default model keeps the chances of every place, of not finishing, and
// the expected points.
func TestWholeOrdersAreFrozen(t *testing.T) {
	w := newWeekend(t, asItWas)
	w.Policy.Model = predict.NewV2(predict.DefaultParams())
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
		w.Stored.Archive = altered(t, step.edit)
		got := w.settle(at)
		must.Hold(t, slices.Equal(got, step.want), "at %s: settled %v, want %v", at, got, step.want)
	}
	last := at.Add(-time.Hour)
	w.Stored.Archive = altered(t, without(3))
	w.wantNone(austriaStart)
	must.Equal(t, "the pick is not the frozen one", frozen, *w.round().Pick)

	a := almanac.Join(w.Stored.Archive.AsOf(austriaStart), w.Ledger.Fold(), 2024)
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
		must.Do(t, err)
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
	feed := must.Get(render.Feed(a, catalog.Feeds[1], austriaStart))(t)
	must.Show(t, "/changes.atom", string(feed), "Austrian Grand Prix 2024: Max Verstappen does not start", "Austrian Grand Prix 2024: Max Verstappen starts after all")
}

func TestRoundWithoutAnybodyHoldsNothingUp(t *testing.T) {
	opened := time.Date(2023, 3, 5, 15, 0, 0, 0, time.UTC) // Bahrain 2023, the first race the archive has
	a := altered(t, asItWas)
	facts := a.Facts()
	facts.Seasons = slices.Clone(facts.Seasons)
	facts.Seasons[0].Rounds = slices.Clone(facts.Seasons[0].Rounds)
	withoutQualifying(&facts.Seasons[0].Rounds[0])
	a = must.Get(season.New(facts))(t)
	l := must.Get(ledger.Open(t.Context(), memblob.New(), ledger.Simulated, opened.AddDate(0, 0, -1), "test", ""))(t)
	p := policy()
	before := facts.Seasons[0].Rounds[0].StartsAt().Add(-time.Minute)
	events, err := p.Settle(t.Context(), testseason.Fresh(t, l), archive.Stored{Archive: a}, before)
	var unsettled *builder.UnsettledError
	if !errors.As(err, &unsettled) || !errors.Is(err, predict.ErrNobody) || len(events) != 1 || events[0].Type != ledger.KeysAssigned {
		t.Fatalf("nobody to pick from: got %v and error %v, want keys, and an error that says why there is no pick", events, err)
	}
}

// A pick that is due and cannot be made is an error, so that the job fails and the log says why.
func TestTwoDriversGiveNoPick(t *testing.T) {
	w := newWeekend(t, func(r *season.Round) { r.Grid = r.Grid[:2] })
	golden.Sentence(t, "two drivers give no pick", must.Err(w.Policy.Settle(t.Context(), testseason.Fresh(t, w.Ledger), archive.Stored{Archive: w.Stored.Archive, SHA256: sum}, austriaQualified)))
}
