package almanac_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/builder/testseason"
	"gridcast/deploy/must"
)

// Three rounds of a small season, one a week from Sunday 1 June 2025, 13:00 UTC.
var (
	firstStart = time.Date(2025, 6, 1, 13, 0, 0, 0, time.UTC)
	week       = 7 * 24 * time.Hour
	raceTime   = 90 * time.Minute
)

func startOf(round int) time.Time { return firstStart.Add(time.Duration(round-1) * week) }

// order is a finishing order by driver; ann and bob drive for alpha, cay and dan for beta.
type order []season.DriverID

var points = []float64{25, 18, 15, 12}

var teamOf = map[season.DriverID]season.TeamID{"ann": "alpha", "bob": "alpha", "cay": "beta", "dan": "beta"}

func (o order) results() []season.Result {
	rows := make([]season.Result, len(o))
	for i, d := range o {
		rows[i] = season.Result{Driver: d, Team: teamOf[d], Engine: "v6", Position: i + 1, Grid: i + 1, Laps: 50, Points: points[i]}
	}
	rows[0].Time = raceTime
	return rows
}

// archiveOf has a round for each order, with the standings that follow from them.
func archiveOf(t *testing.T, orders ...order) *season.Archive {
	t.Helper()
	drivers := map[season.DriverID]season.Driver{}
	for d := range teamOf {
		drivers[d] = season.Driver{ID: d, Name: string(d) + " smith", FirstName: string(d), LastName: "smith", Abbreviation: map[season.DriverID]string{"ann": "ANN", "bob": "BOB", "cay": "CAY", "dan": "DAN"}[d], Country: "GBR"}
	}
	facts := season.Facts{
		Source:   "test",
		Drivers:  drivers,
		Teams:    map[season.TeamID]season.Team{"alpha": {ID: "alpha", Name: "Alpha", Country: "GBR"}, "beta": {ID: "beta", Name: "Beta", Country: "ITA"}},
		Engines:  map[season.EngineID]season.Engine{"v6": {ID: "v6", Name: "V6"}},
		Circuits: map[season.CircuitID]season.Circuit{"ring": {ID: "ring", Name: "The Ring", Locality: "Town", Country: "Italy"}},
		Seasons:  []season.Season{{Year: 2025, Colours: map[season.TeamID]string{"alpha": "#112233"}}},
	}
	driverPoints, teamPoints := map[season.DriverID]float64{}, map[season.TeamID]float64{}
	for i, o := range orders {
		start := startOf(i + 1)
		r := season.Round{
			Number: i + 1, GrandPrix: season.GrandPrixID("gp-" + string(rune('a'+i))), Name: "Grand Prix " + string(rune('A'+i)), Circuit: "ring",
			Date: start.Truncate(24 * time.Hour), Start: start,
		}
		for n, d := range []season.DriverID{"ann", "bob", "cay", "dan"} {
			r.Entries = append(r.Entries, season.Entry{Driver: d, Team: teamOf[d], Engine: "v6", Number: n + 1})
			r.Grid = append(r.Grid, season.GridSlot{Driver: d, Team: teamOf[d], Position: n + 1})
		}
		if o != nil {
			r.Results = o.results()
			for _, row := range r.Results {
				driverPoints[row.Driver] += row.Points
				teamPoints[row.Team] += row.Points
			}
			r.DriverStandings, r.TeamStandings = ranked(driverPoints, teamPoints)
		}
		facts.Seasons[0].Rounds = append(facts.Seasons[0].Rounds, r)
	}
	return must.Get(season.New(facts))(t)
}

func ranked(drivers map[season.DriverID]float64, teams map[season.TeamID]float64) (d []season.DriverStanding, c []season.TeamStanding) {
	for len(d) < len(drivers) {
		var best season.DriverID
		for _, id := range []season.DriverID{"ann", "bob", "cay", "dan"} {
			taken := false
			for _, row := range d {
				taken = taken || row.Driver == id
			}
			if !taken && (best == "" || drivers[id] > drivers[best]) {
				best = id
			}
		}
		d = append(d, season.DriverStanding{Driver: best, Position: len(d) + 1, Points: drivers[best]})
	}
	first, second := season.TeamID("alpha"), season.TeamID("beta")
	if teams[second] > teams[first] {
		first, second = second, first
	}
	return d, []season.TeamStanding{{Team: first, Engine: "v6", Position: 1, Points: teams[first]}, {Team: second, Engine: "v6", Position: 2, Points: teams[second]}}
}

// world is a season of the test's own results, with a key for every round.
type world struct {
	*testseason.Season
	t *testing.T
}

func newWorld(t *testing.T, opened time.Time, orders ...order) *world {
	t.Helper()
	return &world{testseason.New(t, testseason.Config{Archive: archiveOf(t, orders...), Opened: opened, Until: testseason.Scheduled}), t}
}

// edit changes the facts of the season.
func (w *world) edit(edit func(rounds []season.Round)) *world {
	w.t.Helper()
	facts := w.Stored.Archive.Facts()
	facts.Seasons = slices.Clone(facts.Seasons)
	facts.Seasons[0].Rounds = slices.Clone(facts.Seasons[0].Rounds)
	edit(facts.Seasons[0].Rounds)

	w.Stored.Archive = must.Get(season.New(facts))(w.t)
	return w
}

// on appends the events that decide returns for a round's session.
func (w *world) on(at time.Time, round int, decide func(s ledger.RoundRecord) []ledger.Event) {
	w.t.Helper()
	w.Append(at, func(s *ledger.Fold) ([]ledger.Event, error) {
		session, ok := s.Record(2025000 + int64(round))
		if !ok {
			w.t.Fatalf("round %d has no session", round)
		}
		return decide(session), nil
	})
}

func (w *world) verify(at time.Time, round int, o order, reason string) {
	w.t.Helper()
	w.on(at, round, func(s ledger.RoundRecord) []ledger.Event {
		return []ledger.Event{s.Verify(almanac.Rows(o.results()), s.Start(startOf(round)), reason)}
	})
}

func (w *world) states(t time.Time) []almanac.State {
	var states []almanac.State
	for _, r := range w.Almanac(t).Years[0].Rounds {
		states = append(states, r.State)
	}
	return states
}

var preseason = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

func TestStatesMoveWithTheClockAndTheLedger(t *testing.T) {
	w := newWorld(t, preseason, order{"ann", "bob", "cay", "dan"}, order{"bob", "ann", "cay", "dan"}, nil)
	w.verify(startOf(1).Add(3*time.Hour), 1, order{"ann", "bob", "cay", "dan"}, "")
	w.on(startOf(2).Add(-time.Hour), 3, func(s ledger.RoundRecord) []ledger.Event { return s.Cancel("flood") })
	w.on(startOf(2).Add(time.Hour), 3, func(s ledger.RoundRecord) []ledger.Event {
		return []ledger.Event{s.Reinstate(startOf(4), "drained")}
	})
	const (
		scheduled = almanac.Scheduled
		live      = almanac.Live
		awaiting  = almanac.AwaitingResult
		finished  = almanac.Finished
		cancelled = almanac.Cancelled
	)
	for _, c := range []struct {
		what string
		at   time.Time
		want []almanac.State
	}{
		{"a second before the first start", startOf(1).Add(-time.Second), []almanac.State{scheduled, scheduled, scheduled}},
		{"at the first start", startOf(1), []almanac.State{live, scheduled, scheduled}},
		{"a second before it is verified", startOf(1).Add(3*time.Hour - time.Second), []almanac.State{live, scheduled, scheduled}},
		{"verified, straight from live", startOf(1).Add(3 * time.Hour), []almanac.State{finished, scheduled, scheduled}},
		{"the third is cancelled", startOf(2).Add(-time.Hour), []almanac.State{finished, scheduled, cancelled}},
		{"and comes back", startOf(2).Add(time.Hour), []almanac.State{finished, live, scheduled}},
		{"a second before the window ends", startOf(2).Add(almanac.RaceWindow - time.Second), []almanac.State{finished, live, scheduled}},
		{"nobody verified the second", startOf(2).Add(almanac.RaceWindow), []almanac.State{finished, awaiting, scheduled}},
		{"the third at its old start", startOf(3), []almanac.State{finished, awaiting, scheduled}},
		{"the third at its new start", startOf(4), []almanac.State{finished, awaiting, live}},
	} {
		must.Equal(t, c.what, c.want, w.states(c.at))
	}
}

func TestArchiveVouchesOnlyForRacesBeforeTheLedger(t *testing.T) {
	for _, c := range []struct {
		what   string
		opened time.Time
		want   almanac.State
	}{
		{"ended before", startOf(1).Add(raceTime + time.Second), almanac.Finished},
		{"ended at that instant", startOf(1).Add(raceTime), almanac.AwaitingResult},
		{"ended after", startOf(1).Add(raceTime - time.Second), almanac.AwaitingResult},
	} {
		w := newWorld(t, c.opened, order{"ann", "bob", "cay", "dan"})
		if got := w.states(startOf(1).Add(week))[0]; got != c.want {
			t.Errorf("the race %s the ledger was opened: got state %v, want %v", c.what, got, c.want)
		}
	}
	w := newWorld(t, startOf(1).Add(raceTime+time.Second), order{"ann", "bob", "cay", "dan"})
	w.edit(func(rounds []season.Round) {
		rounds[0].Sprint, rounds[0].SprintResults = true, order{"bob", "ann"}.results()
	})
	sprint := w.Almanac(startOf(1).Add(week)).Years[0].Rounds[0].Sprint()
	must.Hold(t, len(sprint) == 2 && sprint[0].Driver == "bob", "the archive vouches for the sprint %v", sprint)
}

func standings(y *almanac.Year) (rows []string, drivers []almanac.Tally) {
	for _, s := range y.Drivers() {
		rows = append(rows, string(s.Driver.ID))
		drivers = append(drivers, s.Tally)
	}
	return rows, drivers
}

// TestStandingsCountVerifiedRounds: every verified round counts, also after one that is not verified. A round
// that appears in the past takes no points away.
func TestStandingsCountVerifiedRounds(t *testing.T) {
	w := newWorld(t, preseason, order{"ann", "bob", "cay", "dan"}, order{"bob", "ann", "cay", "dan"}, order{"dan", "cay", "bob", "ann"})
	if y, _ := w.Almanac(startOf(1).Add(week)).Year(2025); len(y.Drivers()) != 0 || y.Constructors() != nil {
		t.Errorf("nothing is verified: got %d rows, want none", len(y.Drivers()))
	}
	// The third is verified before the second: the first and the third count.
	w.verify(startOf(1).Add(raceTime), 1, order{"ann", "bob", "cay", "dan"}, "")
	w.verify(startOf(3).Add(raceTime), 3, order{"dan", "cay", "bob", "ann"}, "")
	y, _ := w.Almanac(startOf(3).Add(raceTime)).Year(2025)
	_, got := standings(y)
	must.Equal(t, "leader after the first and the third round", almanac.Tally{Position: 1, Points: 37, Wins: 1, Podiums: 1}, got[0])
	w.verify(startOf(3).Add(2*raceTime), 2, order{"bob", "ann", "cay", "dan"}, "")
	y, _ = w.Almanac(startOf(3).Add(2 * raceTime)).Year(2025)
	names, got := standings(y)
	must.Equal(t, "order after three rounds", []string{"bob", "ann", "dan", "cay"}, names)
	must.Equal(t, "leader after three rounds", almanac.Tally{Position: 1, Points: 58, Wins: 1, Podiums: 3}, got[0])
}

// TestOldStandingsEndAtTheLastVerifiedRound: before 2010 points do not simply add, so that the standings are
// the source's after the last round up to which all results are verified.
func TestOldStandingsEndAtTheLastVerifiedRound(t *testing.T) {
	embedded := archivetest.Embedded(t)
	for _, c := range []struct{ year, gap, want int }{{2009, 4, 4}, {2009, 0, 0}, {2010, 4, 18}} { // of 17 and 19 rounds
		facts := embedded.Facts()
		facts.Headshots = season.Headshots{}
		facts.Seasons = slices.DeleteFunc(slices.Clone(facts.Seasons), func(s season.Season) bool { return s.Year != c.year })
		rounds := slices.Clone(facts.Seasons[0].Rounds)
		facts.Seasons[0].Rounds, rounds[c.gap].Results = rounds, nil
		w := testseason.New(t, testseason.Config{Archive: must.Get(season.New(facts))(t), Opened: preseason, Until: testseason.Scheduled})
		y, _ := w.Almanac(preseason).Year(c.year)
		wins := 0
		for _, row := range y.Drivers() {
			wins += row.Wins
		}
		must.Equal(t, fmt.Sprintf("%d without the result of round %d: races that the standings count", c.year, c.gap+1), c.want, wins)
	}
}

// TestSharedByTheSeason: an almanac uses the results of another one for a season with the same facts and decisions, and
// counts a season that differs.
func TestSharedByTheSeason(t *testing.T) {
	facts := archiveOf(t, order{"ann", "bob", "cay", "dan"}, order{"bob", "ann", "cay", "dan"}).Facts()
	at := startOf(4).AddDate(1, 0, 0)
	facts.Seasons = append(facts.Seasons, season.Season{Year: 2026, Rounds: []season.Round{{
		Number: 1, GrandPrix: "gp-a", Name: "Grand Prix A", Circuit: "ring", Date: at.Truncate(24 * time.Hour), Start: at,
		Entries: []season.Entry{{Driver: "eve", Team: "gamma", Engine: "v9", Number: 5}},
	}}})
	facts.Drivers["eve"], facts.Teams["gamma"], facts.Engines["v9"] = season.Driver{ID: "eve", Name: "Eve"}, season.Team{ID: "gamma", Name: "Gamma"}, season.Engine{ID: "v9", Name: "V9"}
	w := &world{testseason.New(t, testseason.Config{Archive: must.Get(season.New(facts))(t), Opened: preseason, Until: testseason.Scheduled}), t}
	counted := 0
	var results almanac.Results
	share := func(what string, want int) {
		t.Helper()
		a := w.Almanac(at)
		a.Reuse(results)
		counted = 0
		for range 2 {
			if got := almanac.Shared(a, a.Years[0], func(y *almanac.Year) int { counted++; return len(y.Drivers()) }); got != len(a.Years[0].Drivers()) {
				t.Errorf("%s: got %d", what, got)
			}
		}
		if counted != want {
			t.Errorf("%s: counted %d times, want %d", what, counted, want)
		}
		results = a.Results()
	}
	share("the first almanac", 1)
	share("the same facts", 0)
	w.decide(1, ledger.Championship{Competitor: "ann", Points: -5})
	share("a decision about a championship", 1)
	w.verify(at, 1, order{"ann", "bob", "cay", "dan"}, "")
	share("a verified result", 1)
	share("the same result", 0)
	w.Stored.Archive.Facts().Seasons[0].Rounds[0].Results[3].Laps-- // in the rows that the digest has covered
	share("a changed row", 1)
	w.on(at, 2, func(s ledger.RoundRecord) []ledger.Event {
		return []ledger.Event{s.Verify([]ledger.Row{{Driver: "eve", Team: "gamma", Engine: "v9", Position: 1}}, startOf(2), "")}
	})
	share("a result with names that only a later season of the source has", 1)
	facts.Drivers["eve"] = season.Driver{ID: "eve", Name: "Eve Jones"}
	share("the name of the driver", 1)
	facts.Teams["gamma"] = season.Team{ID: "gamma", Name: "Gamma Racing"}
	share("the name of the team", 1)
	facts.Engines["v9"] = season.Engine{ID: "v9", Name: "V9 turbo"}
	share("the name of the engine", 1)
}

// The source's standings may lag behind its results: points are the sum of the verified results, and the
// order follows. If they agree, the source's order stays.
func TestStandingsAreTheSumOfResults(t *testing.T) {
	w := newWorld(t, preseason, order{"ann", "bob", "cay", "dan"}, order{"bob", "ann", "cay", "dan"})
	w.edit(func(rounds []season.Round) {
		rounds[1].DriverStandings, rounds[1].TeamStandings = rounds[0].DriverStandings, rounds[0].TeamStandings
	})
	w.verify(startOf(1).Add(raceTime), 1, order{"ann", "bob", "cay", "dan"}, "")
	w.on(startOf(2).Add(raceTime), 2, func(s ledger.RoundRecord) []ledger.Event {
		rows := append(almanac.Rows(order{"bob", "ann", "cay", "dan"}.results()), ledger.Row{Driver: "eve", Team: "alpha", Engine: "v6", Position: 5, Points: 1}, ledger.Row{Driver: "fay", Team: "alpha", Engine: "v6", Position: 6})
		return []ledger.Event{s.Verify(rows, startOf(2), "")}
	})
	y, _ := w.Almanac(startOf(2).Add(2 * raceTime)).Year(2025)
	names, got := standings(y)
	must.Equal(t, "order", []string{"ann", "bob", "cay", "dan", "eve"}, names)
	var points []float64
	for _, row := range got {
		points = append(points, row.Points)
	}
	must.Equal(t, "points", []float64{43, 43, 30, 24, 1}, points)
	for _, row := range y.Constructors() {
		if want := map[string]float64{"Alpha": 87, "Beta": 54}[row.Team.Name]; row.Points != want {
			t.Errorf("%s has %g points, want %g", row.Team.Name, row.Points, want)
		}
	}
	w = newWorld(t, preseason, order{"ann"}, nil, nil)
	w.verify(startOf(1).Add(raceTime), 1, order{"ann"}, "")
	for round, rows := range map[int][]ledger.Row{2: {{Driver: "ann", Position: 1}, {Driver: "cay", Position: 31}, {Driver: "dan", Position: 30}}, 3: {{Driver: "bob", Position: 1, Points: 1}}} {
		w.on(startOf(3).Add(raceTime), round, func(s ledger.RoundRecord) []ledger.Event {
			for i := range rows {
				rows[i].Team, rows[i].Engine = teamOf[rows[i].Driver], "v6"
			}
			return []ledger.Event{s.Verify(rows, startOf(round), "")}
		})
	}
	y, _ = w.Almanac(startOf(3).Add(raceTime)).Year(2025)
	must.Equal(t, "a race without points, and the last place that breaks a tie",
		[]string{"1 ann 25", "1 ann 25, 2 cay 0, 3 dan 0", "1 ann 25, 2 bob 1, 3 dan 0, 4 cay 0"}, tables(y, false))
}

// The first race waits for its verification, and dan left after it. The source's standings after the second list him.
func TestStandingsNameTheTeamOfADriverWithoutAVerifiedRace(t *testing.T) {
	w := newWorld(t, preseason, order{"ann", "bob", "cay", "dan"}, order{"ann", "bob", "cay"})
	w.edit(func(rounds []season.Round) {
		rounds[1].Entries = slices.DeleteFunc(slices.Clone(rounds[1].Entries), func(e season.Entry) bool { return e.Driver == "dan" })
	})
	w.verify(startOf(2).Add(raceTime), 2, order{"ann", "bob", "cay"}, "")
	y, _ := w.Almanac(startOf(2).Add(2 * raceTime)).Year(2025)
	for _, row := range y.Drivers() {
		if want := w.Stored.Archive.Facts().Teams[teamOf[row.Driver.ID]]; row.Team != want {
			t.Errorf("%s drives for %q, want %q", row.Driver.ID, row.Team.Name, want.Name)
		}
	}
}

// dan races for one team, and does not get into the next race with the other. He gets into it in a race that a person enters and
// of which no source has entries, unless the result says otherwise.
func TestStandingsNameTheTeamOfTheLatestRace(t *testing.T) {
	for _, test := range []struct {
		noEntries bool
		status    season.Outcome
		want      season.TeamID
	}{{want: "beta"}, {noEntries: true, want: "alpha"}, {noEntries: true, status: season.DidNotQualify, want: "beta"}} {
		w := newWorld(t, preseason, order{"ann", "bob", "cay", "dan"}, order{"ann", "bob", "cay", "dan"})
		w.edit(func(rounds []season.Round) {
			rounds[1].Entries = slices.DeleteFunc(slices.Clone(rounds[1].Entries), func(e season.Entry) bool { return test.noEntries || e.Driver == "dan" })
			rounds[1].DriverStandings = nil
		})
		w.verify(startOf(1).Add(raceTime), 1, order{"ann", "bob", "cay", "dan"}, "")
		w.on(startOf(2).Add(raceTime), 2, func(s ledger.RoundRecord) []ledger.Event {
			rows := almanac.Rows(order{"ann", "bob", "cay", "dan"}.results())
			if rows[3].Team = "alpha"; test.status != "" {
				rows[3].Position, rows[3].Points, rows[3].Status = 0, 0, test.status
				rows = append(rows, ledger.Row{Driver: "eve", Team: "beta", Engine: "v6", Details: ledger.Details{Status: test.status}}) // she has never raced
			}
			return []ledger.Event{s.Verify(rows, s.Start(startOf(2)), "")}
		})
		y, _ := w.Almanac(startOf(2).Add(2 * raceTime)).Year(2025)
		for _, row := range y.Drivers() {
			want := cmp.Or(teamOf[row.Driver.ID], "beta")
			if row.Driver.ID == "dan" {
				want = test.want
			}
			must.Hold(t, row.Team.ID == want, "%+v: %s drives for %s, want %s", test, row.Driver.ID, row.Team.ID, want)
		}
	}
}

func TestComingRoundsAndDue(t *testing.T) {
	w := newWorld(t, preseason, order{"ann", "bob", "cay", "dan"}, nil, nil)
	w.on(preseason, 2, func(s ledger.RoundRecord) []ledger.Event {
		return []ledger.Event{s.Move(startOf(2), startOf(4), "storm")}
	})
	a := w.Almanac(startOf(1).Add(-time.Second))
	var names []string
	for _, r := range a.Coming() {
		names = append(names, r.Facts.Name)
	}
	must.Equal(t, "coming rounds", []string{"Grand Prix A", "Grand Prix C", "Grand Prix B"}, names)
	if got := a.DueAt(); !got.Equal(startOf(1)) {
		t.Errorf("due: got %s, want lights out at %s", got, startOf(1))
	}
	a = w.Almanac(startOf(1))
	must.Equal(t, "due while live", startOf(1).Add(almanac.RaceWindow), a.DueAt())
	if names := a.Coming(); len(names) != 2 {
		t.Errorf("coming at lights out: got %d rounds, want 2", len(names))
	}
	w.on(startOf(1), 2, func(s ledger.RoundRecord) []ledger.Event { return s.Cancel("flood") })
	if coming := w.Almanac(startOf(1)).Coming(); len(coming) != 1 || coming[0].Facts.Number != 3 {
		t.Errorf("without the cancelled round: %d come, want the third alone", len(coming))
	}
}

// TestSeasonAhead: an almanac looks ahead to the season with a coming race, or with a result that is awaited for less than two
// weeks. A race that is moved beyond the next season stays behind its races.
func TestSeasonAhead(t *testing.T) {
	facts := archiveOf(t, nil, nil).Facts()
	last, next := &facts.Seasons[0].Rounds[1], facts.Seasons[0].Rounds[0]
	last.Date, last.Start = last.Date.AddDate(0, 0, 200), last.Start.AddDate(0, 0, 200) // on 25 December
	next.Date, next.Start = next.Date.AddDate(1, 0, 0), next.Start.AddDate(1, 0, 0)
	awaited := last.Start.Add(almanac.RaceWindow + 2*week)
	facts.Seasons = append(facts.Seasons, season.Season{Year: 2026, Rounds: []season.Round{next}})
	w := &world{testseason.New(t, testseason.Config{Archive: must.Get(season.New(facts))(t), Opened: preseason, Until: testseason.Scheduled}), t}
	must.Equal(t, "the season ahead on the day before", 2025, w.Almanac(last.Start.AddDate(0, 0, -1)).Current)
	must.Equal(t, "the season ahead, a second before two weeks", 2025, w.Almanac(awaited.Add(-time.Second)).Current)
	must.Equal(t, "the season ahead after two weeks", 2026, w.Almanac(awaited).Current)
	must.Equal(t, "the season to look back at without a result", 2026, w.Almanac(awaited).Past())
	must.Equal(t, "the rounds of the season", 2, len(w.Round(awaited, 2025001).Season()))
	must.Equal(t, "the rounds of the season before", 2, len(w.Almanac(awaited).Rounds(2025)))
	of2026 := almanac.Join(w.Stored.Archive.AsOf(awaited), w.Ledger.AsOf(awaited), 2026)
	must.Equal(t, "the only year", []int{1, 2026}, []int{len(of2026.Years), of2026.Years[0].Year})
	w.on(preseason, 1, func(s ledger.RoundRecord) []ledger.Event {
		return []ledger.Event{s.Move(startOf(1), next.Start.Add(week), "war")}
	})
	a := w.Almanac(awaited)
	almanac.Shared(a, a.Years[1], func(*almanac.Year) int { return 0 }) // a digest of a season of one round
	coming := a.Coming()
	must.Equal(t, "the last to come", 2025, coming[len(coming)-1].Year)
	w.verify(last.Start.Add(raceTime), 2, order{"ann"}, "")
	must.Equal(t, "the season to look back at", 2025, w.Almanac(awaited.AddDate(2, 0, 0)).Past())
	must.Equal(t, "codes of a season without rounds", 0, len(newWorld(t, preseason).Almanac(preseason).Years[0].Codes()))
}

func TestGridIsThatOfTheLatestQualifying(t *testing.T) {
	w := newWorld(t, preseason, order{"ann", "bob", "cay", "dan"})
	if got := w.Almanac(startOf(1).Add(-48 * time.Hour)).Grid; len(got) != 0 {
		t.Errorf("before any qualifying: got %d drivers, want none", len(got))
	}
	facts := w.Stored.Archive.Facts()
	facts.Headshots = season.Headshots{Template: "https://example.org/{driver}/{code}", Drivers: []season.DriverID{"bob"}}
	w.Stored.Archive = must.Get(season.New(facts))(t)
	for _, a := range []*almanac.Almanac{w.Almanac(startOf(1)), almanac.Join(w.Stored.Archive.AsOf(startOf(1)), w.Ledger.AsOf(startOf(1)), 2024)} {
		var codes []string
		for _, e := range a.Grid {
			codes = append(codes, e.Code+e.Driver.HeadshotURL)
		}
		must.Equal(t, "grid", []string{"ANN", "BOBhttps://example.org/bob/BOB", "CAY", "DAN"}, codes)
	}
}

// The archive has the second round on its date; the ledger says that it was held
// after the third. Its points count from then on, and only then.
func TestPostponedRoundCountsWhenItIsHeld(t *testing.T) {
	first, second, third := order{"ann", "bob", "cay", "dan"}, order{"cay", "dan", "ann", "bob"}, order{"bob", "ann", "dan", "cay"}
	w := newWorld(t, preseason, first, second, third)
	points := func(at time.Time) map[string]float64 {
		y, _ := w.Almanac(at).Year(2025)
		got := map[string]float64{}
		for _, s := range y.Drivers() {
			got[string(s.Driver.ID)] = s.Points
		}
		for _, s := range y.Constructors() {
			got[string(s.Team.ID)] = s.Points
		}
		return got
	}
	raced := func(at time.Time) (rounds []int) {
		v := w.Stored.Archive.AsOf(at)
		for _, r := range almanac.Raced(v, w.Ledger.AsOf(at)).Seasons[0].Rounds {
			if r.Finished() && len(r.DriverStandings) > 0 && len(r.TeamStandings) > 0 {
				rounds = append(rounds, r.Number)
			}
		}
		for _, r := range v.Seasons[0].Rounds {
			must.Hold(t, !r.ResultKnownAt().Before(at) || r.Finished(), "a view has lost the result of %s", r.Name)
		}
		return rounds
	}
	w.verify(startOf(1).Add(raceTime), 1, first, "")
	w.on(startOf(2).Add(-time.Hour), 2, func(s ledger.RoundRecord) []ledger.Event { return s.Postpone(startOf(2), "fog") })
	w.on(startOf(2).Add(-time.Hour), 3, func(s ledger.RoundRecord) []ledger.Event {
		return []ledger.Event{s.Move(startOf(3), startOf(3).Add(time.Hour), "heat")}
	})
	must.Equal(t, "raced before the third, which was moved, has ended", []int{1}, raced(startOf(3).Add(raceTime)))
	must.Equal(t, "raced after it", []int{1, 3}, raced(startOf(3).Add(raceTime+time.Hour)))
	w.on(startOf(3).Add(raceTime+time.Hour), 3, func(s ledger.RoundRecord) []ledger.Event {
		return []ledger.Event{s.Verify(almanac.Rows(third.results()), startOf(3).Add(time.Hour), "")}
	})

	without := map[string]float64{"ann": 43, "bob": 43, "cay": 27, "dan": 27, "alpha": 86, "beta": 54}
	must.Equal(t, "while it is postponed", without, points(startOf(3).Add(raceTime+time.Hour)))
	w.on(startOf(3).Add(2*raceTime), 2, func(s ledger.RoundRecord) []ledger.Event {
		return []ledger.Event{s.Reinstate(startOf(5), "new date")}
	})
	must.Equal(t, "while it is not verified", without, points(startOf(5).Add(raceTime)))
	w.on(startOf(5).Add(2*raceTime), 2, func(s ledger.RoundRecord) []ledger.Event {
		return []ledger.Event{s.Verify(almanac.Rows(second.results()), startOf(5), "")}
	})
	with := map[string]float64{"ann": 58, "bob": 55, "cay": 52, "dan": 45, "alpha": 113, "beta": 97}
	must.Equal(t, "when it was held", with, points(startOf(5).Add(2*raceTime)))
	must.Equal(t, "raced as it ends", []int{1, 2, 3}, raced(startOf(5).Add(raceTime)))
}

// TestDayWithoutAnHour: a round of which only the day is known has the local hour of its last edition. It is scheduled until that
// day ends at the circuit, never live, and its pick is due as the day begins there. A round before the first known hours
// stays at 13:00 UTC.
func TestDayWithoutAnHour(t *testing.T) {
	facts := archivetest.Seasons(t, 2023, 2025)
	rounds := facts.Seasons[2].Rounds
	for i := range rounds {
		rounds[i] = archivetest.Scheduled(&rounds[i])
		rounds[i].Start = time.Time{}
	}
	a := must.Get(season.New(facts))(t)
	for gp, want := range map[season.GrandPrixID]string{
		"australia": "2025-03-16 04:00", // 15:00 in Melbourne
		"las-vegas": "2025-11-23 06:00", // 22:00 on the evening before, as in 2024
		"monaco":    "2025-05-25 13:00",
	} {
		at := func(now time.Time) *almanac.Round {
			for _, r := range almanac.Rounds(a.AsOf(now), new(ledger.Fold), 2025) {
				if r.Facts.GrandPrix == gp {
					return r
				}
			}
			t.Fatalf("no round %s", gp)
			return nil
		}
		start, _ := time.Parse("2006-01-02 15:04", want)
		zone := season.LocationOf(at(start).Facts.Circuit)
		y, m, d := start.In(zone).Date()
		begins, ends := time.Date(y, m, d, 0, 0, 0, 0, zone), time.Date(y, m, d+1, 0, 0, 0, 0, zone)
		if r := at(begins); !r.Start.Equal(start) || !r.Provisional || !r.FreezeBy().Equal(begins) {
			t.Errorf("%s: starts at %s, provisional %t, frozen by %s; want %s, frozen by %s", gp, r.Start, r.Provisional, r.FreezeBy(), start, begins)
		}
		for instant, state := range map[time.Time]almanac.State{
			begins: almanac.Scheduled, start.Add(time.Minute): almanac.Scheduled, ends.Add(-time.Second): almanac.Scheduled, ends: almanac.AwaitingResult,
		} {
			if got := at(instant).State; got != state {
				t.Errorf("%s at %s: state %s, want %s", gp, instant, got, state)
			}
		}
		for instant, due := range map[time.Time]bool{begins.Add(-time.Second): false, begins: true, begins.Add(7 * time.Hour): false} {
			if got := at(instant).PickDue(time.Time{}); got != due {
				t.Errorf("%s at %s: the pick is due: %t, want %t", gp, instant, got, due)
			}
		}
	}
	w := testseason.New(t, testseason.Config{Archive: a, Opened: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC), Until: testseason.Scheduled})
	must.Equal(t, "due as the day of Australia ends", "2025-03-16 13:00", w.Almanac(time.Date(2025, 3, 16, 5, 0, 0, 0, time.UTC)).DueAt().UTC().Format("2006-01-02 15:04"))
	if r, _ := facts.Round(2025, "las-vegas"); true {
		evening := r.Date.AddDate(0, 0, -1)
		known, _ := a.AsOf(r.Date).Round(2025, "las-vegas")
		if got := facts.UTCDay(r, evening); !got.Equal(r.Date) || !known.LocalDay().Equal(evening) {
			t.Errorf("Las Vegas on the evening of %s: the day in UTC is %s, and at the circuit %s", evening, got, known.LocalDay())
		}
	}
	if r, _ := facts.Round(2023, "monaco"); r.AssumedHour != 0 || r.StartsAt().Hour() != 13 {
		t.Errorf("history: %s starts at %s", r.Name, r.StartsAt())
	}
}
