package predict_test

import (
	"slices"
	"testing"
	"time"

	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/deploy/must"
)

func noPractice(r *season.Round) { r.Practice = [4][]season.TimedLap{} }

func noQualifying(r *season.Round) { r.Qualifying = nil }

func noGrid(r *season.Round) { r.Grid = nil }

// TestMissingSessions removes sessions from the race weekends of three seasons, for a model that has
// learnt with all of them. The loss must be about the worth of the session.
func TestMissingSessions(t *testing.T) {
	must.Long(t, "makes hundreds of picks")
	tests := []struct {
		name    string
		change  func(*season.Round)
		most    float64 // largest allowed loss, nats per race
		order   predict.Order
		missing []season.SessionKind
	}{
		{"practice", noPractice, .02, predict.FromGrid, []season.SessionKind{season.Practice1}},
		{"qualifying times", noQualifying, .05, predict.FromGrid, []season.SessionKind{season.Qualifying}},
		{"practice and qualifying times", func(r *season.Round) { noPractice(r); noQualifying(r) }, .08, predict.FromGrid, []season.SessionKind{season.Practice1, season.Qualifying}},
		{"sprint", func(r *season.Round) { r.SprintQualifying, r.SprintGrid, r.SprintResults = nil, nil, nil }, .02, predict.FromGrid, nil},
		{"grid", noGrid, .10, predict.FromQualifying, nil},
		{"grid and qualifying", func(r *season.Round) { noGrid(r); noQualifying(r) }, .40, predict.FromForm, []season.SessionKind{season.Qualifying}},
		{"everything but the entries", func(r *season.Round) { noGrid(r); noQualifying(r); noPractice(r) }, .45, predict.FromForm, []season.SessionKind{season.Practice1, season.Qualifying}},
	}
	changes := []func(*season.Round){func(*season.Round) {}}
	for _, tc := range tests {
		changes = append(changes, tc.change)
	}
	totals := make([]float64, len(changes))
	for _, year := range []int{2016, 2019, 2022} {
		for k, loss := range logLosses(t, ofEmbedded, year, changes) {
			totals[k] += loss / 3
		}
	}
	for i, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if lost := totals[i+1] - totals[0]; lost > tc.most || lost < -.03 {
				t.Errorf("without it the log-loss moves by %.3f, want at most %.2f", lost, tc.most)
			}
			v := changed(atGrid(t, embedded(t), 2019, "canada"), 2019, "canada", tc.change)
			f := forecast(t, ofEmbedded, v, 2019, "canada")
			checkChances(t, f, 20)
			if f.Basis.Order != tc.order || !slices.Equal(f.Basis.Missing, tc.missing) {
				t.Errorf("basis: got %+v, want order %s and missing %v", f.Basis, tc.order, tc.missing)
			}
		})
	}
}

// TestMissingHistory removes kinds of facts from all earlier races.
func TestMissingHistory(t *testing.T) {
	must.Long(t, "learns many times")
	v := atGrid(t, embedded(t), 2012, "italy")
	full := forecast(t, predict.NewV2(predict.DefaultParams()), v, 2012, "italy")
	for _, tc := range []struct {
		name   string
		change func(*season.Round)
	}{
		{"fastest laps", func(r *season.Round) { r.FastestLaps = nil }},
		{"championship", func(r *season.Round) { r.DriverStandings, r.TeamStandings = nil, nil }},
		{"practice", noPractice},
		{"race times", func(r *season.Round) {
			r.Results = slices.Clone(r.Results)
			for i := range r.Results {
				r.Results[i].Time = 0
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := *v
			w.Seasons = slices.Clone(v.Seasons)
			for i := range w.Seasons {
				s := &w.Seasons[i]
				s.Rounds = slices.Clone(s.Rounds)
				for j := range s.Rounds {
					tc.change(&s.Rounds[j])
				}
			}
			f := forecast(t, predict.NewV2(predict.DefaultParams()), &w, 2012, "italy")
			checkChances(t, f, 24)
			if got, want := f.Winner(), full.Winner(); got.Driver != want.Driver || got.Win < want.Win-.15 || got.Win > want.Win+.15 {
				t.Errorf("got %+v, want about the %+v with everything", got, want)
			}
		})
	}
}

// TestUnusualWeekends: a forecast stays sensible with new drivers, teams, grids and rules.
func TestUnusualWeekends(t *testing.T) {
	must.Long(t, "learns many times")
	a, m := embedded(t), ofEmbedded
	v := atGrid(t, a, 2024, "italy")
	usual := forecast(t, m, v, 2024, "italy")
	r, _ := v.Round(2024, "italy")
	pole := r.Grid[0].Driver
	chance := func(f predict.Forecast, d season.DriverID) float64 {
		for _, c := range f.Candidates {
			if c.Driver == d {
				return c.Win
			}
		}
		return 0
	}

	t.Run("new driver on pole", func(t *testing.T) {
		f := forecast(t, m, changed(v, 2024, "italy", func(r *season.Round) { replaceDriver(r, pole, "new-driver") }), 2024, "italy")
		checkChances(t, f, 20)
		if got, known := chance(f, "new-driver"), chance(usual, pole); got > known || got < .1 {
			t.Errorf("got %.3f, want less than the %.3f of the known driver, but a fair chance", got, known)
		}
	})
	t.Run("new team on pole", func(t *testing.T) {
		team := r.Grid[0].Team
		f := forecast(t, m, changed(v, 2024, "italy", func(r *season.Round) { replaceTeam(r, team, "new-team") }), 2024, "italy")
		checkChances(t, f, 20)
		if got, known := chance(f, pole), chance(usual, pole); got > known || got < .05 {
			t.Errorf("got %.3f, want less than the %.3f with the known team, but a fair chance", got, known)
		}
	})
	t.Run("half the grid with penalties", func(t *testing.T) {
		f := forecast(t, m, changed(v, 2024, "italy", func(r *season.Round) {
			half := len(r.Grid) / 2
			r.Grid = append(slices.Clone(r.Grid[half:]), r.Grid[:half]...)
			for i := range r.Grid {
				r.Grid[i].Position = i + 1
			}
		}), 2024, "italy")
		checkChances(t, f, 20)
		if got, before := chance(f, pole), chance(usual, pole); got > before-.1 {
			t.Errorf("starting eleventh instead of first: got %.3f, want clearly less than %.3f", got, before)
		}
		lucky := r.Grid[len(r.Grid)/2].Driver
		if got, before := chance(f, lucky), chance(usual, lucky); got < 5*before || got > chance(f, pole) {
			t.Errorf("%s on pole in a slow car: got %.3f, want far more than %.3f, but no favourite", lucky, got, before)
		}
	})
	t.Run("start from the pit lane", func(t *testing.T) {
		f := forecast(t, m, changed(v, 2024, "italy", func(r *season.Round) {
			r.Grid = append(slices.Clone(r.Grid[1:]), r.Grid[0])
			for i := range r.Grid {
				r.Grid[i].Position = i + 1
			}
			r.Grid[len(r.Grid)-1].Position = 0
		}), 2024, "italy")
		if got := chance(f, pole); got > .1 {
			t.Errorf("got %.3f, want at most .1", got)
		}
	})
	t.Run("first round under new rules", func(t *testing.T) {
		first, _ := a.AsOf(time.Date(2022, 2, 1, 0, 0, 0, 0, time.UTC)).Season(2022)
		gp := first.Rounds[0].GrandPrix
		v := atGrid(t, a, 2022, gp)
		f := forecast(t, m, v, 2022, gp)
		checkChances(t, f, 20)
		old := predict.DefaultParams()
		old.Pace.RuleYears = nil
		trusting := forecast(t, predict.NewV2(old), v, 2022, gp)
		// Under new rules for cars the forecast does not rest on last year's best car.
		if got, with := chance(f, "lewis-hamilton"), chance(trusting, "lewis-hamilton"); got >= with {
			t.Errorf("last year's best car: got %.3f, want less than the %.3f of old rules", got, with)
		}
	})
	t.Run("before any session", func(t *testing.T) {
		at := time.Date(2024, 2, 1, 0, 0, 0, 0, time.UTC)
		f := forecast(t, m, a.AsOf(at), 2024, "bahrain")
		checkChances(t, f, 20)
		if f.Basis.Order != predict.FromForm || f.Winner().Driver != "max-verstappen" {
			t.Errorf("got %+v from %s, want last year's champion from form", f.Winner(), f.Basis.Order)
		}
	})
}

// replaceDriver replaces a driver in all sessions of a weekend.
func replaceDriver(r *season.Round, from, to season.DriverID) {
	for i := range r.Practice {
		r.Practice[i] = slices.Clone(r.Practice[i])
		for j := range r.Practice[i] {
			if r.Practice[i][j].Driver == from {
				r.Practice[i][j].Driver = to
			}
		}
	}
	for i := range r.Qualifying {
		if r.Qualifying[i].Driver == from {
			r.Qualifying[i].Driver = to
		}
	}
	for i := range r.Grid {
		if r.Grid[i].Driver == from {
			r.Grid[i].Driver = to
		}
	}
}

// replaceTeam replaces a team in all sessions of a weekend.
func replaceTeam(r *season.Round, from, to season.TeamID) {
	for i := range r.Qualifying {
		if r.Qualifying[i].Team == from {
			r.Qualifying[i].Team = to
		}
	}
	for i := range r.Grid {
		if r.Grid[i].Team == from {
			r.Grid[i].Team = to
		}
	}
}
