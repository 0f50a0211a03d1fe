package almanac_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/builder/testseason"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
)

// decide appends a decision about a championship, in force from a round on, and returns the id of its event.
func (w *world) decide(round int, c ledger.Championship) string {
	w.t.Helper()
	at := startOf(3).Add(2 * raceTime)
	w.Append(at, func(*ledger.Fold) ([]ledger.Event, error) {
		return []ledger.Event{{Type: ledger.ChampionshipDecided, Year: 2025, Session: 2025000 + int64(round), Reason: "stewards", Championship: &c}}, nil
	})
	all := w.Ledger.Fold().AllChampionship(2025)
	return all[len(all)-1].EventID
}

// tables lists the constructors or the drivers after each counted round.
func tables(y *almanac.Year, constructors bool) (all []string) {
	for _, after := range y.Progress() {
		var rows []string
		for _, s := range after.Drivers {
			if !constructors {
				rows = append(rows, fmt.Sprintf("%d %s %g", s.Position, s.Driver.ID, s.Points))
				if s.Excluded != (s.Position == 0) {
					rows = append(rows, "of which the exclusion is wrong")
				}
			}
		}
		for _, s := range after.Constructors {
			if constructors {
				rows = append(rows, fmt.Sprintf("%d %s %g", s.Position, s.Team.ID, s.Points))
			}
		}
		all = append(all, strings.Join(rows, ", "))
	}
	return all
}

func TestDecisionsCountInTheTables(t *testing.T) {
	ann, cay := order{"ann", "cay", "bob", "dan"}, order{"cay", "ann", "dan", "bob"}
	for name, tt := range map[string]struct {
		from         int
		decisions    []ledger.Championship
		early        *ledger.Championship // entered last, from the round before on
		restored     bool                 // the first of them
		constructors bool
		want         []string
	}{
		"nothing": {
			constructors: true, want: []string{"1 alpha 40, 2 beta 30", "1 alpha 70, 2 beta 70", "1 alpha 110, 2 beta 100"},
		},
		"points taken from a round in the middle": {
			from: 2, decisions: []ledger.Championship{{Constructors: true, Competitor: "alpha", Points: -15}}, constructors: true,
			want: []string{"1 alpha 40, 2 beta 30", "1 beta 70, 2 alpha 55", "1 beta 100, 2 alpha 95"},
		},
		"points added": {
			from: 3, decisions: []ledger.Championship{{Constructors: true, Competitor: "beta", Points: 10.5}}, constructors: true,
			want: []string{"1 alpha 40, 2 beta 30", "1 alpha 70, 2 beta 70", "1 beta 110.5, 2 alpha 110"},
		},
		"a tie by a decision, broken by wins": {
			from: 3, decisions: []ledger.Championship{{Constructors: true, Competitor: "alpha", Points: -10}}, constructors: true,
			want: []string{"1 alpha 40, 2 beta 30", "1 alpha 70, 2 beta 70", "1 alpha 100, 2 beta 100"},
		},
		"two decisions about a team": {
			from:         1,
			decisions:    []ledger.Championship{{Constructors: true, Competitor: "alpha", Points: -15}, {Constructors: true, Competitor: "alpha", Points: -2.5}},
			constructors: true, want: []string{"1 beta 30, 2 alpha 22.5", "1 beta 70, 2 alpha 52.5", "1 beta 100, 2 alpha 92.5"},
		},
		"the first of two restored": {
			from: 1, restored: true,
			decisions:    []ledger.Championship{{Constructors: true, Competitor: "alpha", Points: -15}, {Constructors: true, Competitor: "alpha", Points: -2.5}},
			constructors: true, want: []string{"1 alpha 37.5, 2 beta 30", "1 beta 70, 2 alpha 67.5", "1 alpha 107.5, 2 beta 100"},
		},
		"more points taken than there are": {
			from: 1, decisions: []ledger.Championship{{Constructors: true, Competitor: "alpha", Points: -50}}, constructors: true,
			want: []string{"1 beta 30, 2 alpha -10", "1 beta 70, 2 alpha 20", "1 beta 100, 2 alpha 60"},
		},
		"a driver excluded": {
			from: 3, decisions: []ledger.Championship{{Competitor: "ann", Excluded: true}},
			want: []string{"1 ann 25, 2 cay 18, 3 bob 15, 4 dan 12", "1 ann 43, 2 cay 43, 3 bob 27, 4 dan 27", "1 cay 61, 2 bob 42, 3 dan 39, 0 ann 68"},
		},
		"a driver excluded, whose team keeps its points": {
			from: 3, decisions: []ledger.Championship{{Competitor: "ann", Excluded: true}}, constructors: true,
			want: []string{"1 alpha 40, 2 beta 30", "1 alpha 70, 2 beta 70", "1 alpha 110, 2 beta 100"},
		},
		"excluded and restored": {
			from: 1, decisions: []ledger.Championship{{Constructors: true, Competitor: "alpha", Excluded: true}}, restored: true, constructors: true,
			want: []string{"1 alpha 40, 2 beta 30", "1 alpha 70, 2 beta 70", "1 alpha 110, 2 beta 100"},
		},
		"an entry that ends and one that begins": {
			from: 2, decisions: []ledger.Championship{{Constructors: true, Competitor: "alpha", NewEntry: true}}, constructors: true,
			want: []string{"1 alpha 40, 2 beta 30", "1 beta 70, 2 alpha 30, 0 alpha 40", "1 beta 100, 2 alpha 70, 0 alpha 40"},
		},
		"points taken from the entry that begins": {
			from:         2,
			decisions:    []ledger.Championship{{Constructors: true, Competitor: "alpha", NewEntry: true}, {Constructors: true, Competitor: "alpha", Points: -4}},
			constructors: true, want: []string{"1 alpha 40, 2 beta 30", "1 beta 70, 2 alpha 26, 0 alpha 40", "1 beta 100, 2 alpha 66, 0 alpha 40"},
		},
		"points taken from the entry that ends, entered later": {
			from:         2,
			decisions:    []ledger.Championship{{Constructors: true, Competitor: "alpha", NewEntry: true}},
			early:        &ledger.Championship{Constructors: true, Competitor: "alpha", Points: -4},
			constructors: true, want: []string{"1 alpha 36, 2 beta 30", "1 beta 70, 2 alpha 30, 0 alpha 36", "1 beta 100, 2 alpha 70, 0 alpha 36"},
		},
		"points taken twice, the first entered later": {
			from: 2, decisions: []ledger.Championship{{Constructors: true, Competitor: "alpha", Points: -4}},
			early:        &ledger.Championship{Constructors: true, Competitor: "alpha", Points: -2},
			constructors: true, want: []string{"1 alpha 38, 2 beta 30", "1 beta 70, 2 alpha 64", "1 alpha 104, 2 beta 100"},
		},
		"two entries that end, the first entered later": {
			from: 3, decisions: []ledger.Championship{{Constructors: true, Competitor: "alpha", NewEntry: true}},
			early:        &ledger.Championship{Constructors: true, Competitor: "alpha", NewEntry: true},
			constructors: true, want: []string{"1 alpha 40, 2 beta 30", "1 beta 70, 2 alpha 30, 0 alpha 40", "1 beta 100, 2 alpha 40, 0 alpha 40, 0 alpha 30"},
		},
		"points for a competitor without results": {
			from: 2, decisions: []ledger.Championship{{Competitor: "eve", Points: 30}},
			want: []string{"1 ann 25, 2 cay 18, 3 bob 15, 4 dan 12", "1 ann 43, 2 cay 43, 3 eve 30, 4 bob 27, 5 dan 27", "1 ann 68, 2 cay 61, 3 bob 42, 4 dan 39, 5 eve 30"},
		},
		"a competitor without results, excluded": {
			from: 2, decisions: []ledger.Championship{{Competitor: "eve", Excluded: true}},
			want: []string{"1 ann 25, 2 cay 18, 3 bob 15, 4 dan 12", "1 ann 43, 2 cay 43, 3 bob 27, 4 dan 27", "1 ann 68, 2 cay 61, 3 bob 42, 4 dan 39"},
		},
		"a competitor without results": {
			from: 3, decisions: []ledger.Championship{{Constructors: true, Competitor: "gamma", Points: -5}}, constructors: true,
			want: []string{"1 alpha 40, 2 beta 30", "1 alpha 70, 2 beta 70", "1 alpha 110, 2 beta 100, 3 gamma -5"},
		},
	} {
		w := newWorld(t, preseason, ann, cay, ann)
		for i, o := range []order{ann, cay, ann} {
			w.verify(startOf(i+1).Add(raceTime), i+1, o, "")
		}
		var ids []string
		for _, c := range tt.decisions {
			ids = append(ids, w.decide(tt.from, c))
		}
		changes := len(tt.decisions)
		if tt.early != nil {
			w.decide(tt.from-1, *tt.early)
			changes++
		}
		if tt.restored {
			first := tt.decisions[0]
			w.decide(tt.from, ledger.Championship{Constructors: first.Constructors, Competitor: first.Competitor, Restores: ids[0]})
		}
		a := w.Almanac(startOf(3).Add(week))
		y, _ := a.Year(2025)
		must.Equal(t, name+": tables", tt.want, tables(y, tt.constructors))
		if tt.restored {
			changes++
		}
		must.Equal(t, name+": events in the log", changes, len(a.Log()))
		if got := a.Changes(2025); len(got) != changes || changes > 0 && got[0].Restored != tt.restored || tt.restored && *got[0].Championship != tt.decisions[0] {
			t.Errorf("%s: got %+v, want %d changes", name, got, changes)
		}
		then, _ := w.Almanac(startOf(3).Add(raceTime)).Year(2025)
		if got := tables(then, true)[2]; got != "1 alpha 110, 2 beta 100" {
			t.Errorf("%s: before the decision was made: got %s", name, got)
		}
	}
	w := newWorld(t, preseason, ann, cay)
	w.verify(startOf(1).Add(raceTime), 1, ann, "")
	w.decide(2, ledger.Championship{Constructors: true, Competitor: "alpha", Points: -15})
	facts := w.Stored.Archive.Facts()
	facts.Seasons = []season.Season{{Year: 2025, Rounds: facts.Seasons[0].Rounds[:1]}}
	w.Stored.Archive = must.Get(season.New(facts))(t)
	y, _ := w.Almanac(startOf(4)).Year(2025)
	must.Equal(t, "points taken from a round that the archive has lost", []string{"1 beta 30, 2 alpha 25"}, tables(y, true))
}

// The decisions of the past follow from the tables of the source alone, and each of them has a name.
func TestArchiveKnowsDecisions(t *testing.T) {
	a := archivetest.Embedded(t)
	facts := a.Facts()
	last := facts.Seasons[len(facts.Seasons)-1].LatestResult().ResultKnownAt()
	all := testseason.New(t, testseason.Config{Opened: last.Add(time.Hour), Until: testseason.Scheduled}).Almanac(last.Add(time.Hour))
	var got []string
	for i := range all.Years {
		if offers := all.Years[i].Offers(); offers != nil {
			t.Errorf("%d: its tables offer %+v", all.Years[i].Year, offers)
		}
		for _, d := range all.Years[i].Decisions() {
			got = append(got, fmt.Sprintf("%d %s %s from %d: %s", all.Years[i].Year, d.Competitor, &d.Championship, d.Session, d.Reason))
		}
	}
	want := []string{
		"2007 mclaren excluded from 2007001: excluded for the possession of confidential documents of Ferrari",
		"2018 force-india excluded and entered anew from 2018013: the team changed its owner: its entry was excluded, and it entered anew",
		"2020 racing-point 15 points taken from 2020005: brake ducts designed by another team",
	}
	must.Equal(t, "decisions", want, got)
	for year, want := range map[int]string{2018: "7 force-india 52", 2020: "4 racing-point 195"} {
		y, _ := all.Year(year)
		after := tables(y, true)
		if got := after[len(after)-1]; !strings.Contains(got, want) {
			t.Errorf("%d: got %s, want %s", year, got, want)
		}
	}
	y, _ := all.Year(2018)
	must.Equal(t, "entries of 2018", []int{1, 2, 0}, []int{y.Entry("force-india", y.Rounds[11]), y.Entry("force-india", y.Rounds[12]), y.Entry("mclaren", y.Rounds[12])})
	for year, want := range map[int]int{1990: 0, 1991: 1} { // not all results of 1990 counted
		old := archiveOf(t, order{"ann", "cay", "bob", "dan"}, nil).Facts()
		old.Seasons[0].Year = year
		rounds := old.Seasons[0].Rounds
		for i := range rounds {
			rounds[i].Date, rounds[i].Start = rounds[i].Date.AddDate(year-2025, 0, 0), rounds[i].Start.AddDate(year-2025, 0, 0)
		}
		rounds[0].DriverStandings[0].Points -= 5
		w := testseason.New(t, testseason.Config{Archive: must.Get(season.New(old))(t), Opened: startOf(3), Until: testseason.Scheduled})
		must.Equal(t, fmt.Sprint("decisions of ", year), want, len(w.Almanac(startOf(3)).Years[0].Decisions()))
		w.Append(startOf(3), func(s *ledger.Fold) ([]ledger.Event, error) {
			second, _ := s.Record(int64(year)*1000 + 2)
			return []ledger.Event{second.Verify(almanac.Rows(order{"ann"}.results()), rounds[1].Start, "")}, nil
		})
		entered := almanac.Entered(w.Stored.Archive.AsOf(startOf(3)), w.Ledger.Fold()).Seasons[0].Rounds[1]
		must.Equal(t, fmt.Sprint("a table after a result entered of ", year), want > 0, entered.DriverStandings != nil)
	}
}

// TestNamesOfADecision: a change names the competitor, and has the identifier that stays.
func TestNamesOfADecision(t *testing.T) {
	w := newWorld(t, preseason, order{"ann", "cay", "bob", "dan"})
	w.decide(1, ledger.Championship{Competitor: "ann", Excluded: true})
	w.decide(1, ledger.Championship{Constructors: true, Competitor: "alpha", Excluded: true})
	must.Get(testseason.Fresh(t, w.Ledger).Append(t.Context(), startOf(3).Add(2*raceTime), "source:f1db", func(*ledger.Fold) ([]ledger.Event, error) {
		return []ledger.Event{ledger.Rename("ann", "alpha")}, nil // the driver now has the identifier of the team
	}))(t)
	w.Stored.Archive.Facts().Teams["alpha"] = season.Team{ID: "alpha", Name: "Alpha Racing"}
	var got []string
	for _, c := range w.Almanac(startOf(4)).Changes(2025) {
		name, id := c.Competitor()
		got = append(got, name+" "+id)
	}
	must.Equal(t, "competitors", []string{"Alpha Racing alpha", "Alpha ann"}, got)
}

// A table that departs from the results offers a decision, if the results are the verified ones.
func TestTableOffersDecision(t *testing.T) {
	ann, cay := order{"ann", "cay", "bob", "dan"}, order{"cay", "ann", "dan", "bob"}
	orders, three := []order{ann, cay, ann}, order{"ann", "cay", "bob"}
	lost := func(rounds []season.Round, of string, points float64) {
		for i := range rounds {
			teams, drivers := slices.Clone(rounds[i].TeamStandings), slices.Clone(rounds[i].DriverStandings)
			for j := range teams {
				if string(teams[j].Team) == of {
					teams[j].Points -= points
				}
			}
			for j := range drivers {
				if string(drivers[j].Driver) == of {
					drivers[j].Points -= points
				}
			}
			rounds[i].TeamStandings, rounds[i].DriverStandings = teams, drivers
		}
	}
	taken := func(from, points int) func([]season.Round) {
		return func(rounds []season.Round) { lost(rounds[from-1:], "alpha", float64(points)) }
	}
	type decided []struct { // by a person, from a round on
		from int
		ledger.Championship
	}
	deducted := func(from int, team string, points float64) decided {
		return decided{{from, ledger.Championship{Constructors: true, Competitor: team, Points: -points}}}
	}
	anew := decided{{2, ledger.Championship{Constructors: true, Competitor: "alpha", NewEntry: true}}}
	for name, tt := range map[string]struct {
		table    func([]season.Round)
		source   []order // nil: orders
		verified []order
		decided  decided
		want     []string
	}{
		"the sum":             {table: func([]season.Round) {}, verified: orders},
		"points taken":        {table: taken(2, 15), verified: orders, want: []string{"2 alpha 15 points taken"}},
		"fewer points":        {table: taken(2, 15), verified: orders, decided: deducted(2, "alpha", 10), want: []string{"2 alpha 5 points taken"}},
		"entered by a person": {table: taken(2, 15), verified: orders, decided: deducted(2, "alpha", 15)},
		"only a person's":     {table: func([]season.Round) {}, verified: orders, decided: deducted(2, "alpha", 15)},
		"all points taken":    {table: taken(2, 40), verified: orders, want: []string{"2 alpha 40 points taken"}},
		"a new entry":         {table: taken(2, 40), verified: orders, decided: anew},
		"of another team":     {table: taken(2, 40), verified: orders, decided: slices.Concat(deducted(1, "beta", 5), anew)},
		"of the entry before": {
			table: func(rounds []season.Round) { taken(1, 4)(rounds[:1]); taken(1, 36+4)(rounds[1:]) }, verified: orders, decided: slices.Concat(deducted(1, "alpha", 4), anew),
		},
		"of the entry after":   {table: func(rounds []season.Round) { taken(2, 40)(rounds); taken(3, 4)(rounds) }, verified: orders, decided: slices.Concat(anew, deducted(3, "alpha", 4))},
		"excluded by a person": {table: func(rounds []season.Round) { rounds[2].DriverStandings[0].Position = 0 }, verified: orders, decided: decided{{3, ledger.Championship{Competitor: "ann", Excluded: true}}}},
		"a driver and a team":  {table: func(rounds []season.Round) { taken(2, 15)(rounds); lost(rounds[1:], "ann", 1) }, verified: orders, want: []string{"2 ann 1 points taken", "2 alpha 15 points taken"}},
		"two teams":            {table: func(rounds []season.Round) { taken(2, 15)(rounds); lost(rounds[1:], "beta", 5) }, verified: orders, want: []string{"2 alpha 15 points taken", "2 beta 5 points taken"}},
		"two drivers":          {table: func(rounds []season.Round) { lost(rounds[1:], "ann", 1); lost(rounds[1:], "bob", 2) }, verified: orders, want: []string{"2 ann 1 points taken", "2 bob 2 points taken"}},
		"three drivers": {table: func(rounds []season.Round) {
			lost(rounds[1:], "ann", 1)
			lost(rounds[1:], "bob", 2)
			lost(rounds[1:], "cay", 3)
		}, verified: orders},
		"given, then taken":    {table: func(rounds []season.Round) { taken(2, -1)(rounds); taken(3, 6)(rounds) }, verified: orders, want: []string{"2 alpha 5 points taken"}},
		"taken and given back": {table: func(rounds []season.Round) { taken(2, 1)(rounds[:2]) }, verified: orders},
		"an entry that ended": {
			table: func(rounds []season.Round) {
				taken(2, 40)(rounds)
				for i := range rounds[1:] {
					rounds[1+i].TeamStandings = append(rounds[1+i].TeamStandings, season.TeamStanding{Team: "alpha", Engine: "v6", Points: 40})
				}
			}, verified: orders, want: []string{"2 alpha excluded and entered anew"},
		},
		"other results":        {table: taken(2, 15), verified: []order{ann, ann, ann}},
		"another first result": {table: taken(2, 15), verified: []order{cay, cay, ann}},
		"a driver without points and rank": {
			table: func(rounds []season.Round) {
				rounds[2].DriverStandings = append(slices.Clone(rounds[2].DriverStandings), season.DriverStanding{Driver: "dan"})
			}, source: []order{three, three, three}, verified: []order{three, three, three},
		},
		"not verified yet": {table: taken(2, 15), verified: orders[:1]},
		"a driver without a rank": {
			table: func(rounds []season.Round) { rounds[2].DriverStandings[0].Position = 0 }, verified: orders, want: []string{"3 ann excluded"},
		},
		"excluded with the last point": {
			table: func(rounds []season.Round) { lost(rounds[2:], "ann", 67); rounds[2].DriverStandings[0].Position = 0 }, verified: orders,
			decided: decided{{3, ledger.Championship{Competitor: "ann", Points: -67}}}, want: []string{"3 ann excluded"},
		},
		"points taken, then excluded": {
			table: func(rounds []season.Round) { lost(rounds[1:], "ann", 5); rounds[2].DriverStandings[0].Position = 0 }, verified: orders, want: []string{"2 ann 5 points taken", "3 ann excluded"},
		},
		"a table that lags": {
			table: func(rounds []season.Round) { rounds[2].DriverStandings = rounds[1].DriverStandings }, verified: orders,
		},
	} {
		source := orders
		if tt.source != nil {
			source = tt.source
		}
		w := newWorld(t, preseason, source...)
		w.Stored.Archive.Facts().Teams["alpha"] = season.Team{ID: "alpha", Name: "Alpha Racing", Country: "GBR"}
		w.edit(tt.table)
		for i, o := range tt.verified {
			w.verify(startOf(i+1).Add(raceTime), i+1, o, "")
		}
		for _, d := range tt.decided {
			w.decide(d.from, d.Championship)
		}
		at := startOf(3).Add(3 * raceTime)
		v, s := w.Stored.Archive.AsOf(at), w.Ledger.Fold()
		var got []string
		for _, o := range almanac.Offers(almanac.Rounds(v, s, 2025)) {
			got = append(got, fmt.Sprintf("%d %s %s", o.From.Facts.Number, o.Competitor, &o.Championship))
		}
		must.Equal(t, name+": offers", tt.want, got)
		var missing []string
		for _, m := range almanac.Missing(v, s, at) {
			if m.Code == almanac.DecisionWaits {
				missing = append(missing, m.Text)
				if strings.HasPrefix(name, "two ") {
					golden.Sentence(t, fmt.Sprint("an offer for ", name, " ", len(missing)), m.Text+": "+m.Fix)
				}
			}
		}
		if len(missing) != len(tt.want) {
			t.Errorf("%s: missing %q, want %d", name, missing, len(tt.want))
		}
	}
	first := newWorld(t, startOf(2), orders[0])
	must.Equal(t, "offers of one round", 0, len(almanac.Offers(almanac.Rounds(first.Stored.Archive.AsOf(startOf(2)), first.Ledger.Fold(), 2025))))
	if got := almanac.Offers(nil); got != nil {
		t.Errorf("of no rounds: got %+v", got)
	}
}

func TestUnknownCompetitorNamesTheNearest(t *testing.T) {
	w := newWorld(t, preseason, order{"ann", "cay", "bob", "dan"})
	w.Stored.Archive.Facts().Drivers["eve"] = season.Driver{ID: "eve", Name: "eve"}
	w.Stored.Archive.Facts().Drivers["dan"] = season.Driver{ID: "dan", Name: "dan", Abbreviation: "QED"}
	w.on(startOf(1).Add(raceTime), 1, func(s ledger.RoundRecord) []ledger.Event {
		return []ledger.Event{s.Verify([]ledger.Row{{Driver: "fay", Team: "alpha", Position: 1}}, startOf(1), "")} // no source has fay
	})
	w.edit(func(rounds []season.Round) { // she has no code
		rounds[0].Practice[0] = []season.TimedLap{{Driver: "eve", Team: "alpha", Time: time.Minute}}
	})
	y, _ := w.Almanac(startOf(1).Add(week)).Year(2025)
	for text, want := range map[string]string{"ann": "ann", "CAY": "cay", "bob smith": "bob", "qed": "dan", "Fay": "fay"} {
		if id, _, err := y.Competitor(false, text); id != want || err != nil {
			t.Errorf("%s: got %s, %v, want %s", text, id, err, want)
		}
	}
	if id, name, err := y.Competitor(true, "Beta"); id != "beta" || name != "Beta" || err != nil {
		t.Errorf("Beta: got %s, %s, %v", id, name, err)
	}
	_, _, err := y.Competitor(false, "")
	must.Fail(t, "no text", err, almanac.ErrNoCompetitor)
	_, _, err = y.Competitor(true, "alfa")
	must.Fail(t, "alfa", err, almanac.ErrNoCompetitor)
	golden.Sentence(t, "a competitor alfa", err)
	_, _, err = (&almanac.Year{Year: 2026}).Competitor(false, "ann")
	golden.Sentence(t, "a competitor of a season without drivers", err)
}
