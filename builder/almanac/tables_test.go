package almanac_test

import (
	"cmp"
	"fmt"
	"math"
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

// placesIn returns the places of the competitors in races, the best first and none last: of a driver the best of a race, and of
// a constructor that of each car.
func placesIn(races []season.Round, constructors bool) map[season.Competitor][]int {
	all := map[season.Competitor][]int{}
	for _, r := range races {
		race := map[season.Competitor][]int{}
		for _, row := range r.Results {
			if row.Position > 0 {
				race[row.Competitor(constructors)] = append(race[row.Competitor(constructors)], row.Position)
			}
		}
		for c, places := range race {
			slices.Sort(places)
			if places = slices.Compact(places); !constructors {
				places = places[:1]
			}
			all[c] = append(all[c], places...)
		}
	}
	for c := range all {
		slices.Sort(all[c])
		all[c] = append(all[c], math.MaxInt)
	}
	return all
}

// standingsOf returns the rows of a championship as a source has them, and the tallies of those with a rank.
func standingsOf(c *almanac.Championship, constructors bool) (rows []season.Standing, tallies map[season.Competitor]almanac.Tally) {
	tallies = map[season.Competitor]almanac.Tally{}
	add := func(of season.Competitor, t almanac.Tally) {
		rows = append(rows, season.Standing{Competitor: of, Position: t.Position, Points: t.Points})
		if t.Position > 0 {
			tallies[of] = t
		}
	}
	if constructors {
		for _, s := range c.Constructors {
			add(season.Competitor{ID: string(s.Team.ID), Engine: s.Maker}, s.Tally)
		}
		return rows, tallies
	}
	for _, s := range c.Drivers {
		add(season.Competitor{ID: string(s.Driver.ID)}, s.Tally)
	}
	return rows, tallies
}

// tied are the rounds after which two drivers are equal in points and places. The source orders them by other facts.
var tied = []string{"2007 2", "2008 5", "2013 2", "2017 2", "2018 2", "2019 2", "2020 2", "2022 6"}

// TestTablesOfAllSeasons holds the tables after each round against the source's, and the wins and podiums against another
// count. The almanac has the source's tables of none of the rounds, of the first half, or of all. Without them it makes its
// own. At last a correction exchanges the first and the fifth of one race in each second season.
func TestTablesOfAllSeasons(t *testing.T) {
	whole := archivetest.Embedded(t).Facts()
	at := whole.Seasons[len(whole.Seasons)-1].LatestResult().ResultKnownAt().Add(time.Hour)
	const corrected = 5 // the index of the round
	for _, tt := range []struct {
		name    string
		halves  int // with tables of the source
		correct bool
	}{{"no tables", 0, false}, {"half the tables", 1, false}, {"all tables", 2, true}} {
		facts := whole
		facts.Seasons = slices.Clone(whole.Seasons)
		for i := range facts.Seasons {
			rounds := slices.Clone(facts.Seasons[i].Rounds)
			for j := tt.halves * len(rounds) / 2; j < len(rounds); j++ {
				rounds[j].DriverStandings, rounds[j].TeamStandings = nil, nil
			}
			facts.Seasons[i].Rounds = rounds
		}
		w := testseason.New(t, testseason.Config{Archive: must.Get(season.New(facts))(t), Opened: at, Until: testseason.Scheduled})
		for _, s := range whole.Seasons {
			if key, _ := w.Ledger.Fold().Key(s.Year, s.Rounds[corrected].GrandPrix); tt.correct && s.Year%2 == 0 {
				w.Decide(at, key, func(r *almanac.Round) ([]ledger.Event, error) {
					rows := slices.Clone(r.Valid())
					a, b := &rows[0], &rows[4]
					a.Driver, a.Team, a.Engine, b.Driver, b.Team, b.Engine = b.Driver, b.Team, b.Engine, a.Driver, a.Team, a.Engine
					return r.Correct(rows, nil, "a plank")
				})
			}
		}
		for _, y := range w.Almanac(at).Years {
			theirs, _ := whole.Season(y.Year)
			races, gained := slices.Clone(theirs.Rounds), map[season.Competitor]float64{}
			correct := tt.correct && y.Year%2 == 0
			if correct {
				rows := slices.Clone(races[corrected].Results)
				a, b := rows[0], rows[4]
				rows[0].Driver, rows[0].Team, rows[0].Engine, rows[4].Driver, rows[4].Team, rows[4].Engine = b.Driver, b.Team, b.Engine, a.Driver, a.Team, a.Engine
				races[corrected].Results = rows
				for _, constructors := range []bool{false, true} {
					gained[a.Competitor(constructors)] += b.Points - a.Points
					gained[b.Competitor(constructors)] += a.Points - b.Points
				}
			}
			for i, c := range y.Progress() {
				for _, constructors := range []bool{false, true} {
					if constructors && tt.halves < 2 && (y.Year == 2018 || y.Year == 2020 || y.Year < 2010) {
						if tt.halves == 0 && y.Year < 2010 && c.Constructors != nil {
							t.Errorf("%s, %d: there are constructors", tt.name, y.Year)
						}
						continue // only the source's tables show their decisions, and before 2010 whether there is a championship
					}
					want, places := races[i].Standings(constructors), placesIn(races[:i+1], constructors)
					if correct && i >= corrected {
						for n := range want {
							want[n].Points += gained[want[n].Competitor]
						}
						slices.SortStableFunc(want, func(a, b season.Standing) int {
							return cmp.Or(cmp.Compare(min(b.Position, 1), min(a.Position, 1)), cmp.Compare(b.Points, a.Points), slices.Compare(places[a.Competitor], places[b.Competitor]))
						})
						for n := range want {
							want[n].Position = min(want[n].Position, 1) * (n + 1)
						}
					}
					name := fmt.Sprintf("%s, %d after round %d, constructors %t", tt.name, y.Year, i+1, constructors)
					got, tallies := standingsOf(&c, constructors)
					pointless := func(s season.Standing) bool { return s.Points == 0 } // a source may leave them out
					if want, got = slices.DeleteFunc(want, pointless), slices.DeleteFunc(got, pointless); constructors || tt.halves > 0 || !slices.Contains(tied, fmt.Sprint(y.Year, " ", i+1)) {
						must.Equal(t, name, want, got)
					}
					for of, tally := range tallies {
						wins, podiums := 0, 0
						for _, place := range places[of] {
							wins, podiums = wins+max(0, 2-place), podiums+min(1, max(0, 4-place))
						}
						if tally.Wins != wins || tally.Podiums != podiums {
							t.Errorf("%s: %+v has %d wins and %d podiums, want %d and %d", name, of, tally.Wins, tally.Podiums, wins, podiums)
						}
					}
				}
			}
		}
	}
}

// TestEnteredSeasonIsTheSources: a view with the second half of a season entered by hand has the results, grids and tables of
// the source.
func TestEnteredSeasonIsTheSources(t *testing.T) {
	for _, year := range []int{2008, 2012, 2024} {
		facts := archivetest.Embedded(t).Facts()
		facts.Headshots = season.Headshots{}
		facts.Seasons = slices.DeleteFunc(slices.Clone(facts.Seasons), func(s season.Season) bool { return s.Year != year })
		theirs := facts.Seasons[0].Rounds
		half := len(theirs) / 2
		opened := theirs[half].StartsAt().AddDate(0, 0, -1)
		source := testseason.New(t, testseason.Config{Archive: must.Get(season.New(facts))(t), Opened: opened, Until: testseason.Scheduled})
		facts.Seasons = slices.Clone(facts.Seasons)
		facts.Seasons[0].Rounds = slices.Clone(theirs)
		for i := range facts.Seasons[0].Rounds[half:] {
			facts.Seasons[0].Rounds[half+i] = archivetest.Scheduled(&theirs[half+i])
		}
		w := testseason.New(t, testseason.Config{Archive: must.Get(season.New(facts))(t), Opened: opened, Until: testseason.Scheduled})
		at := opened
		for i := range theirs[half:] {
			key, _ := w.Ledger.Fold().Key(year, theirs[half+i].GrandPrix)
			at = theirs[half+i].StartsAt().Add(5 * time.Hour)
			w.Append(at, func(*ledger.Fold) ([]ledger.Event, error) {
				return []ledger.Event{source.Round(at, key).VerifySource("")}, nil
			})
		}
		v := almanac.Entered(w.Stored.Archive.AsOf(at), w.Ledger.Fold())
		for i, r := range v.Seasons[0].Rounds {
			name := fmt.Sprintf("%d, round %d: ", year, i+1)
			want := theirs[i]
			numbered := func(rows []season.Result) []season.Result {
				rows = slices.Clone(rows)
				for n := range rows {
					if entry := want.Entry(rows[n].Driver); entry != nil {
						rows[n].Number = cmp.Or(rows[n].Number, entry.Number)
					}
					if rows[n].Position == 0 {
						rows[n].Time = 0 // a disqualified driver's is not kept
					}
				}
				return rows
			}
			started := func(slots []season.GridSlot) (rows []season.GridSlot) { // from a place, which a row says without its penalty
				for _, s := range slots {
					if slices.ContainsFunc(want.Results, func(row season.Result) bool { return row.Driver == s.Driver && row.Grid > 0 }) {
						rows = append(rows, season.GridSlot{Driver: s.Driver, Team: s.Team, Position: s.Position})
					}
				}
				return rows
			}
			byNumber := func(entries []season.Entry) []season.Entry {
				return slices.SortedFunc(slices.Values(entries), func(a, b season.Entry) int { return cmp.Compare(a.Number, b.Number) })
			}
			must.Equal(t, name+"results", numbered(want.Results), numbered(r.Results))
			must.Equal(t, name+"sprint", numbered(want.SprintResults), numbered(r.SprintResults))
			must.Equal(t, name+"grid", started(want.Grid), started(r.Grid))
			must.Equal(t, name+"entries", byNumber(want.Entries), byNumber(r.Entries))
			must.Equal(t, name+"drivers", want.DriverStandings, r.DriverStandings)
			must.Equal(t, name+"teams", want.TeamStandings, r.TeamStandings)
		}
	}
}

// TestOldTablesMoveByCorrections: in a season in which only the best results count, the tables are the source's, moved by the
// results that differ from its own.
func TestOldTablesMoveByCorrections(t *testing.T) {
	facts := archiveOf(t, order{"ann", "bob", "cay"}, order{"ann", "cay", "bob"}, order{"dan", "cay", "bob"}).Facts()
	s := &facts.Seasons[0]
	s.Year = 1995 // with decisions that the source's tables have
	for i := range s.Rounds {
		s.Rounds[i].Date, s.Rounds[i].Start = s.Rounds[i].Date.AddDate(-30, 0, 0), s.Rounds[i].Start.AddDate(-30, 0, 0)
	}
	s.Rounds[1].DriverStandings[0].Points -= 7 // a result that does not count
	s.Rounds[2].DriverStandings, s.Rounds[2].TeamStandings = nil, nil
	w := testseason.New(t, testseason.Config{Archive: must.Get(season.New(facts))(t), Opened: preseason, Until: testseason.Scheduled})
	after := func() []string {
		y, _ := w.Almanac(preseason).Year(1995)
		return append(tables(y, false), tables(y, true)...)
	}
	must.Equal(t, "the source's", []string{
		"1 ann 25, 2 bob 18, 3 cay 15", "1 ann 43, 2 bob 33, 3 cay 33", "1 cay 51, 2 bob 48, 3 ann 43, 4 dan 25",
		"1 alpha 43, 2 beta 15", "1 alpha 83, 2 beta 33", "1 alpha 98, 2 beta 76",
	}, after())
	w.Decide(preseason, 1995002, func(r *almanac.Round) ([]ledger.Event, error) {
		rows := slices.Clone(r.Valid())
		rows[0].Driver, rows[1].Driver, rows[0].Team, rows[1].Team = rows[1].Driver, rows[0].Driver, rows[1].Team, rows[0].Team
		return r.Correct(rows, nil, "a plank")
	})
	must.Equal(t, "the second corrected", []string{
		"1 ann 25, 2 bob 18, 3 cay 15", "1 cay 40, 2 ann 36, 3 bob 33", "1 cay 58, 2 bob 48, 3 ann 36, 4 dan 25",
		"1 alpha 43, 2 beta 15", "1 alpha 76, 2 beta 40", "1 alpha 91, 2 beta 83",
	}, after())
	w.Append(preseason, func(f *ledger.Fold) ([]ledger.Event, error) {
		first, _ := f.Record(1995001)
		return first.Cancel("it was another race"), nil
	})
	must.Equal(t, "the first cancelled", []string{
		"1 cay 25, 2 bob 15, 3 ann 11", "1 cay 43, 2 bob 30, 3 dan 25, 4 ann 11", "1 alpha 33, 2 beta 25", "1 beta 68, 2 alpha 48",
	}, after())
	w.Append(preseason, func(*ledger.Fold) ([]ledger.Event, error) {
		return []ledger.Event{
			{Type: ledger.ChampionshipDecided, Year: 1995, Session: 1995002, Reason: "stewards", Championship: &ledger.Championship{Competitor: "eve", Points: 1}},
			{Type: ledger.ChampionshipDecided, Year: 1995, Session: 1995003, Reason: "stewards", Championship: &ledger.Championship{Competitor: "cay", Points: -20}},
		}, nil
	})
	must.Equal(t, "points decided", []string{"1 cay 25, 2 bob 15, 3 ann 11, 4 eve 1", "1 bob 30, 2 dan 25, 3 cay 23, 4 ann 11, 5 eve 1"}, after()[:2])
}

// TestSharedCars: a car counts once for its constructor, and a driver of several cars by the first place. A team with two
// engines is two constructors.
func TestSharedCars(t *testing.T) {
	facts := archiveOf(t, order{"ann", "cay", "bob", "dan"}).Facts()
	rows := facts.Seasons[0].Rounds[0].Results
	rows = slices.Insert(rows, 1, season.Result{Driver: "bob", Team: "alpha", Engine: "v6", Position: 1, Grid: 3, Laps: 50, Shared: true})
	rows[2].Engine, facts.Engines["v8"] = "v8", season.Engine{ID: "v8", Name: "V8"}
	facts.Seasons[0].Rounds[0].Results, facts.Seasons[0].Rounds[0].TeamStandings = rows, nil
	w := &world{testseason.New(t, testseason.Config{Archive: must.Get(season.New(facts))(t), Opened: startOf(2), Until: testseason.Scheduled}), t}
	w.decide(1, ledger.Championship{Constructors: true, Competitor: "beta", Points: -5}) // of the engine in the first car
	y, _ := w.Almanac(startOf(4)).Year(2025)
	var got []string
	for _, s := range y.Drivers() {
		got = append(got, fmt.Sprint(s.Driver.ID, " ", s.Wins, " ", s.Podiums))
	}
	for _, s := range y.Constructors() {
		got = append(got, fmt.Sprint(s.Team.ID, " ", s.Engine, " ", s.Wins, " ", s.Podiums, " ", s.Points))
	}
	must.Equal(t, "the podium", season.Podium{"ann", "cay", "bob"}, almanac.Podium(y.Rounds[0].Valid()))
	must.Equal(t, "wins and podiums", []string{"ann 1 1", "cay 0 1", "bob 1 1", "dan 0 0", "alpha  1 2 40", "beta V8 0 1 13", "beta V6 0 0 12"}, got)
}
