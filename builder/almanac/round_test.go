package almanac_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/builder/testseason"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
)

func TestPickIsDue(t *testing.T) {
	qualified := startOf(1).AddDate(0, 0, -1).Add(time.Hour) // of unknown date: the day before, at 13:00 UTC
	noGrid := func(rounds []season.Round) { rounds[0].Grid, rounds[0].Qualifying = nil, rounds[0].Qualifying[:1] }
	noOrder := func(rounds []season.Round) { rounds[0].Grid, rounds[0].Qualifying = nil, nil }
	later := startOf(1).Add(48 * time.Hour)
	for name, tt := range map[string]struct {
		edit    func([]season.Round)
		decide  func(ledger.RoundRecord) []ledger.Event
		arrived time.Time
		at      time.Time
		want    bool
	}{
		"before qualifying":            {at: qualified.Add(-time.Second)},
		"on the grid":                  {edit: func(rounds []season.Round) { rounds[0].Grid = rounds[0].Grid[:1] }, at: qualified, want: true},
		"on qualifying alone":          {edit: noGrid, at: qualified.Add(2*time.Hour - time.Second)},
		"on qualifying that stands":    {edit: noGrid, at: qualified.Add(2 * time.Hour), want: true},
		"on qualifying that came late": {edit: noGrid, arrived: qualified.Add(time.Second), at: qualified.Add(2 * time.Hour)},
		"on form, early":               {edit: noOrder, at: startOf(1).Add(-almanac.LastFreeze - time.Second)},
		"on form, at last":             {edit: noOrder, at: startOf(1).Add(-almanac.LastFreeze), want: true},
		"a second before the start":    {at: startOf(1).Add(-time.Second), want: true},
		"at the start":                 {at: startOf(1)},
		"cancelled":                    {decide: func(s ledger.RoundRecord) []ledger.Event { return s.Cancel("flood") }, at: startOf(1).Add(-time.Second)},
		"with a result, before the start that the source has now": {edit: func(rounds []season.Round) { rounds[0].Results = nil }, decide: func(s ledger.RoundRecord) []ledger.Event {
			return []ledger.Event{s.Verify(almanac.Rows(order{"ann"}.results()), preseason.Add(-time.Hour), "")}
		}, at: qualified},
		"frozen": {decide: func(s ledger.RoundRecord) []ledger.Event {
			return []ledger.Event{ledger.Freeze(s.Key, ledger.Pick{P1: "ann", P2: "bob", P3: "cay", WinProbability: .5, Model: "m"}, startOf(1), false)}
		}, at: qualified},
		"moved behind a race that took place": {decide: func(s ledger.RoundRecord) []ledger.Event { return []ledger.Event{s.Move(startOf(1), later, "fog")} }, at: later.Add(-time.Second)},
	} {
		w := newWorld(t, preseason, order{"ann", "bob", "cay", "dan"})
		w.edit(func(rounds []season.Round) {
			for _, slot := range rounds[0].Grid {
				rounds[0].Qualifying = append(rounds[0].Qualifying, season.QualifyingRow{Driver: slot.Driver, Team: slot.Team, Position: slot.Position})
			}
			if tt.edit != nil {
				tt.edit(rounds)
			}
		})
		if tt.decide != nil {
			w.on(preseason, 1, tt.decide)
		}
		must.Equal(t, name, tt.want, w.Round(tt.at, 2025001).PickDue(tt.arrived))
	}
}

func TestNotStarting(t *testing.T) {
	ann := season.DriverID("ann")
	row := func(r ledger.Row) *ledger.Classification {
		return &ledger.Classification{Rows: []ledger.Row{{Driver: ann, Position: 1}, r}}
	}
	for name, tt := range map[string]struct {
		grid, entries []season.DriverID
		basis         ledger.Basis
		result        *ledger.Classification
		want          []season.DriverID
	}{
		"all on the grid":                {grid: []season.DriverID{"ann", "bob"}, entries: []season.DriverID{ann}},
		"not on the grid":                {grid: []season.DriverID{ann}, entries: []season.DriverID{"ann", "bob"}, want: []season.DriverID{"bob"}},
		"entered":                        {entries: []season.DriverID{"ann", "bob"}},
		"not entered any more":           {entries: []season.DriverID{ann}, want: []season.DriverID{"bob"}},
		"not entered, of a pick on form": {entries: []season.DriverID{ann}, basis: ledger.OnForm},
		"no entries are known":           {},
		"classified":                     {grid: []season.DriverID{ann}, result: row(ledger.Row{Driver: "bob", Position: 2})},
		"retired":                        {result: row(ledger.Row{Driver: "bob", Details: ledger.Details{Status: season.DidNotFinish}})},
		"did not start":                  {result: row(ledger.Row{Driver: "bob", Details: ledger.Details{Status: season.DidNotStart}}), want: []season.DriverID{"bob"}},
		"not in the result":              {result: row(ledger.Row{Driver: "cay", Position: 2}), want: []season.DriverID{"bob"}},
	} {
		r := almanac.Round{Facts: &season.Round{}, Result: tt.result}
		for _, d := range tt.grid {
			r.Facts.Grid = append(r.Facts.Grid, season.GridSlot{Driver: d})
		}
		for _, d := range tt.entries {
			r.Facts.Entries = append(r.Facts.Entries, season.Entry{Driver: d})
		}
		must.Equal(t, name+", without a pick", 0, len(r.NotStarting()))
		r.Pick = &ledger.FrozenPick{Basis: tt.basis, Chances: []ledger.Chance{{Driver: ann}, {Driver: "bob"}}}
		must.Equal(t, name, tt.want, r.NotStarting())
	}
}

// TestFieldAndTeams: the field of a round is that of all its tables, else that of the last round before it that has one. The
// team of a driver is that of the entry, else of the last entry before the round.
func TestFieldAndTeams(t *testing.T) {
	w := newWorld(t, preseason, nil, nil, nil)
	entry := func(d season.DriverID, team season.TeamID) []season.Entry {
		return []season.Entry{{Driver: d, Team: team, Engine: "v6"}}
	}
	for name, tt := range map[string]struct {
		edit  func(rounds []season.Round)
		field []season.DriverID // of the second round
		team  season.TeamID     // of ann
	}{
		"nothing": {edit: func([]season.Round) {}},
		"each table": {edit: func(rounds []season.Round) {
			rounds[0].Entries, rounds[2].Entries = entry("ann", "beta"), entry("ann", "beta")
			rounds[1].Entries, rounds[1].Grid = entry("ann", "alpha"), []season.GridSlot{{Driver: "bob", Position: 1}}
			rounds[1].Qualifying, rounds[1].Results = []season.QualifyingRow{{Driver: "cay", Position: 1}}, []season.Result{{Driver: "dan", Team: "beta", Engine: "v6", Position: 1}}
		}, field: []season.DriverID{"ann", "bob", "cay", "dan"}, team: "alpha"},
		"the round before": {edit: func(rounds []season.Round) {
			rounds[0].Entries, rounds[2].Entries = entry("ann", "beta"), entry("bob", "alpha")
		}, field: []season.DriverID{"ann"}, team: "beta"},
		"only the round after": {edit: func(rounds []season.Round) { rounds[2].Entries = entry("ann", "beta") }},
	} {
		w.edit(func(rounds []season.Round) {
			for i := range rounds {
				rounds[i].Entries, rounds[i].Grid, rounds[i].Qualifying, rounds[i].Results = nil, nil, nil, nil
			}
			tt.edit(rounds)
		})
		r := w.Round(startOf(4), 2025002)
		field := r.Field()
		slices.Sort(field)
		must.Equal(t, name+": the field", tt.field, field)
		must.Equal(t, name+": the team of ann", tt.team, r.TeamOf("ann"))
	}
	w.edit(func(rounds []season.Round) {
		rounds[0].Entries, rounds[1].Entries, rounds[2].Entries = entry("ann", "beta"), entry("ann", "alpha"), entry("bob", "alpha")
	})
	must.Equal(t, "the field of the last round", []season.DriverID{"bob"}, w.Round(startOf(4), 2025003).Field())
	must.Equal(t, "the latest team", season.TeamID("alpha"), w.Round(startOf(4), 2025003).TeamOf("ann"))
}

func TestFindDriver(t *testing.T) {
	w := testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled})
	r := w.Round(testseason.Belgium.Over(), testseason.Belgium.Key)
	for text, want := range map[string]season.DriverID{"max-verstappen": "max-verstappen", "VER": "max-verstappen", "ham": "lewis-hamilton"} {
		must.Equal(t, text, want, must.Get(r.FindDriver(text))(t))
	}
	must.Equal(t, "the place in a pick that is not frozen", 0, (&almanac.Round{}).PickedFor("ann"))
	must.Equal(t, "the place in a pick", 2, (&almanac.Round{Pick: &ledger.FrozenPick{Pick: ledger.Pick{P1: "bob", P2: "ann"}}}).PickedFor("ann"))
	_, err := r.FindDriver("nobody")
	golden.Sentence(t, "no driver", err)
}

// TestSpokenDriversHaveCodes: a driver who is only in a pick or a result, also in one that no longer counts, has a code in the
// season.
func TestSpokenDriversHaveCodes(t *testing.T) {
	pick := func(p3 season.DriverID) ledger.Pick {
		return ledger.Pick{P1: "one-eve", P2: "two-eve", P3: p3, WinProbability: .5, Model: "m"}
	}
	freeze := func(w *world, p3 season.DriverID) {
		w.on(startOf(1).Add(-2*time.Hour), 1, func(s ledger.RoundRecord) []ledger.Event {
			return []ledger.Event{ledger.Freeze(s.Key, pick(p3), startOf(1), true)}
		})
	}
	chances := func(drivers ...season.DriverID) (all []ledger.Chance) {
		for i, d := range drivers {
			all = append(all, ledger.Chance{Driver: d, Win: max(0, 1-i) * ledger.Certain, Podium: min(1, max(0, 3-i)) * ledger.Certain})
		}
		return all
	}
	foresee := func(w *world) {
		w.on(preseason, 1, func(s ledger.RoundRecord) []ledger.Event {
			return []ledger.Event{{Type: ledger.ForecastNoted, Session: s.Key, Step: ledger.StepForm, Model: "m", Chances: chances("fay", "gil", "hal")}}
		})
	}
	freezeAll := func(w *world, drivers ...season.DriverID) {
		w.on(startOf(1).Add(-2*time.Hour), 1, func(s ledger.RoundRecord) []ledger.Event {
			e := ledger.Freeze(s.Key, pick(drivers[2]), startOf(1), true)
			e.Pick.WinProbability, e.Chances = 1, chances(drivers...)
			return []ledger.Event{e}
		})
	}
	rows := func(o order) []ledger.Row {
		rows := almanac.Rows(o.results())
		rows[len(rows)-1].Team = "beta"
		return rows
	}
	verify := func(w *world, after time.Duration, fourth season.DriverID, sprint order) {
		w.on(startOf(1).Add(raceTime+after), 1, func(s ledger.RoundRecord) []ledger.Event {
			e := s.Verify(rows(order{"ann", "bob", "cay", fourth}), startOf(1), "a plank")
			if sprint != nil {
				e.Result.Sprint = rows(sprint)
			}
			return []ledger.Event{e}
		})
	}
	for name, speak := range map[string]func(w *world){
		"pick":              func(w *world) { freeze(w, "eve") },
		"chances of a pick": func(w *world) { freezeAll(w, "one-eve", "two-eve", "ann", "eve") },
		"voided pick with a withdrawal": func(w *world) {
			freezeAll(w, "one-eve", "two-eve", "ann", "eve")
			w.on(startOf(1).Add(-time.Hour), 1, func(s ledger.RoundRecord) []ledger.Event {
				return append([]ledger.Event{{Type: ledger.DriverWithdrawn, Session: s.Key, Driver: "eve", Start: startOf(1)}}, s.Cancel("flood")...)
			})
		},
		"voided pick": func(w *world) {
			freeze(w, "eve")
			w.on(startOf(1).Add(-time.Hour), 1, func(s ledger.RoundRecord) []ledger.Event { return s.Cancel("flood") })
		},
		"live pick": func(w *world) {
			w.on(startOf(1).Add(time.Hour), 1, func(s ledger.RoundRecord) []ledger.Event {
				return []ledger.Event{ledger.FreezeLive(s.Key, pick("eve"), startOf(1), almanac.ScoredCheckpoint, ledger.Observation{At: startOf(1).Add(time.Hour), Lap: 25, SHA256: strings.Repeat("5a", 32)})}
			})
		},
		"result": func(w *world) { verify(w, 0, "eve", nil) },
		"result before": func(w *world) {
			verify(w, 0, "eve", nil)
			verify(w, time.Hour, "two-eve", nil)
		},
		"sprint": func(w *world) { verify(w, 0, "dan", order{"ann", "eve"}) },
	} {
		w := newWorld(t, preseason, nil, nil)
		foresee(w)
		speak(w)
		y := w.Almanac(startOf(2).Add(-48 * time.Hour)).Years[0]
		codes := y.Codes() // the first in a pick has the code of all three
		if codes["eve"] == "" || strings.HasPrefix(name, "result") && codes["eve"] != "EVE" || strings.Contains(name, "pick") && (codes["one-eve"] != "EVE" || codes["two-eve"] == "" || codes["two-eve"] >= codes["eve"]) {
			t.Errorf("%s: the codes are %v", name, codes)
		}
		foreseen := maps.Clone(codes)
		maps.Copy(foreseen, map[season.DriverID]string{"fay": "FAY", "gil": "GIL", "hal": "HAL"})
		must.Equal(t, name+": the codes in forecasts", foreseen, y.Rounds[0].ForecastCodes())
		silent := newWorld(t, preseason, nil, nil).Almanac(startOf(2).Add(-48 * time.Hour)).Years[0]
		must.Equal(t, name+": a season without the driver", "", silent.Codes()["eve"])
	}
}
