package ingest_test

import (
	stdcmp "cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/almanac"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/builder/season"
	"gridcast/builder/source"
	"gridcast/builder/stewards"
	"gridcast/builder/testseason"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/memblob"
)

// herald is a source with the facts that a test gives it.
type herald struct {
	name          string // empty: herald
	revision      string
	facts         season.Facts
	down          error
	noncommercial bool
	sparse        bool
	unreadable    bool
	told          int // revisions of tellOfAustria
}

func (h *herald) Name() string { return stdcmp.Or(h.name, "herald") }
func (h *herald) Licence() source.Licence {
	return source.Licence{Name: "CC0", NonCommercial: h.noncommercial}
}

func (h *herald) Fetch(_ context.Context, _ time.Time, _, _ int, known source.Known) (source.Payload, error) {
	switch {
	case h.down != nil:
		return source.Payload{}, h.down
	case known.SHA256 == source.Sum([]byte(h.revision)):
		return source.Payload{NotModified: true}, nil
	}
	return source.Payload{Packed: []byte(h.revision), Revision: h.revision}, nil
}

func (h *herald) Read(packed []byte) (source.Document, error) {
	if h.unreadable {
		return source.Document{}, errors.New("of another format")
	}
	return source.Document{Source: h.Name(), Revision: string(packed), From: 2024, To: 2031, Facts: h.facts, Sparse: h.sparse}, nil
}

// desk is a scheduler on a store, with a source.
type desk struct {
	*ingest.Ingest
	source *herald
}

const weekend = season.GrandPrixID("las-vegas")

// newDesks opens schedulers on one store with one season up to the Saturday of a weekend, which has
// the calendar alone.
func newDesks(t *testing.T, now time.Time, n int) (blob.Store, []*desk, season.Facts) {
	t.Helper()
	facts, whole := archivetest.Seasons(t, 2024, 2024), archivetest.Seasons(t, 2024, 2024)
	facts.Lineages, facts.Headshots = nil, season.Headshots{}
	for i := range facts.Seasons[0].Rounds {
		if r := &facts.Seasons[0].Rounds[i]; !r.StartsAt().Before(now) {
			r.Entries, r.Practice, r.Qualifying, r.Grid, r.Results = nil, [4][]season.TimedLap{}, nil, nil, nil
			r.SprintQualifying, r.SprintGrid, r.SprintResults = nil, nil, nil
			r.FastestLaps, r.PitStops, r.DriverStandings, r.TeamStandings = nil, nil, nil, nil
		}
	}
	file, store := archivetest.Stored(t, facts), memblob.New()
	var desks []*desk
	for range n {
		d := &desk{source: &herald{revision: "one", facts: season.Facts{}}}
		world := testseason.New(t, testseason.Config{Stored: file, Store: store, Opened: now.Add(-time.Hour), Until: testseason.Scheduled})
		d.Ingest = ingestOf(world, ingest.Source{Upstream: d.source})
		d.Interval = func(time.Time) time.Duration { return 0 }
		desks = append(desks, d)
	}
	return store, desks, whole
}

// inUse returns the round of the weekend in the archive in use, and the sum of the archive.
func (d *desk) inUse(t *testing.T) (season.Round, string) {
	t.Helper()
	facts := must.Get(d.Facts.Load(t.Context()))(t)
	return *roundIn(t, facts.Archive.Facts(), weekend), facts.SHA256
}

func roundIn(t *testing.T, f season.Facts, gp season.GrandPrixID) *season.Round {
	t.Helper()
	r, ok := f.Round(2024, gp)
	if !ok {
		t.Fatalf("no %s in 2024", gp)
	}
	return r
}

func (d *desk) run(t *testing.T, now time.Time) ingest.Outcome {
	t.Helper()
	report := must.Get(d.Poll(t.Context(), now, true))(t)
	return report
}

func blocks(changes []assemble.Proposal) []string {
	var said []string
	for _, c := range changes {
		said = append(said, string(c.GrandPrix)+" "+string(c.Block)+" by "+c.Source)
	}
	return said
}

// TestByHand: manual facts are in use on every scheduler. They win over a source that disagrees until
// they are released, and a source that agrees confirms them.
func TestByHand(t *testing.T) {
	now := time.Date(2024, 11, 23, 12, 0, 0, 0, time.UTC)
	store, desks, whole := newDesks(t, now, 2)
	one, two := desks[0], desks[1]
	said := roundIn(t, whole, weekend)
	place := func(b assemble.Block) assemble.BlockID {
		return assemble.BlockID{Year: 2024, GrandPrix: weekend, Block: b}
	}
	grid := slices.Clone(said.Grid)
	grid[0], grid[1] = grid[1], grid[0]
	grid[0].Position, grid[1].Position = 1, 2
	enter := ingest.ManualEntry{Actor: "operator:anna", Reason: "all sources are down", Statements: []ingest.Statement{
		{BlockID: place(assemble.Entries), Entered: ingest.PartialRound{GrandPrix: weekend, Entries: said.Entries}, Assumed: true},
		{BlockID: place(assemble.Grid), Entered: ingest.PartialRound{GrandPrix: weekend, Grid: grid}},
	}}

	// Looking at it changes nothing.
	trial := must.Get(one.Trial(t.Context(), now, enter))(t)
	must.Equal(t, "a trial would take", []string{"las-vegas grid by hand", "las-vegas entries by hand"}, blocks(trial.Applied))
	if r, _ := one.inUse(t); r.Grid != nil {
		t.Error("a trial changed the archive in use")
	}
	must.Do(t, one.Enter(t.Context(), now, enter))
	// The other scheduler finds it by itself; the one that entered it has nothing left to do.
	if report := two.run(t, now); !report.Changed {
		t.Errorf("the other scheduler took nothing: %+v", report)
	}
	r, sum := one.inUse(t)
	if diff := cmp.Diff(grid, r.Grid); diff != "" {
		t.Errorf("the grid in use (-entered +got):\n%s", diff)
	}
	if report := one.run(t, now); report.Changed || report.Archive != sum {
		t.Errorf("the archive flips: %s, then %s", sum, report.Archive)
	}

	// A source has another grid, and another entry list: the person's grid stays and is disputed,
	// the assumed entries yield.
	entries := slices.Clone(said.Entries)
	entries[0].Number = 99
	for _, d := range desks {
		d.source.revision, d.source.facts = "two", saying(whole, func(r *season.Round) { r.Grid, r.Entries = said.Grid, entries })
	}
	now = now.Add(time.Hour)
	report := two.run(t, now)
	must.Equal(t, "of the source there was taken", []string{"las-vegas entries by herald"}, blocks(report.Applied))
	must.Equal(t, "there is disputed", []string{"las-vegas grid by herald"}, blocks(report.Disputed))
	r, sum = two.inUse(t)
	if diff := cmp.Diff(grid, r.Grid); diff != "" {
		t.Errorf("the grid in use (-entered +got):\n%s", diff)
	}
	if report := one.run(t, now); report.Changed || report.Archive != sum {
		t.Errorf("the archive flips: %s, then %s", sum, report.Archive)
	}

	// A source that agrees confirms it.
	for _, d := range desks {
		d.source.revision, d.source.facts = "three", saying(whole, func(r *season.Round) { r.Grid = grid })
	}
	if report := one.run(t, now.Add(time.Minute)); len(report.Confirmed) != 1 || report.Confirmed[0].Block != assemble.Grid || len(report.Disputed) != 0 {
		t.Errorf("confirmed are %+v and disputed %+v, want the grid confirmed", report.Confirmed, report.Disputed)
	}

	// One that has the same order with times adds those.
	rows := slices.Clone(said.Qualifying)
	for i := range rows {
		rows[i].Time, rows[i].Segments = 0, [3]time.Duration{}
	}
	must.Do(t, one.Enter(t.Context(), now, ingest.ManualEntry{Actor: "anna", Statements: []ingest.Statement{{BlockID: place(assemble.Qualifying), Entered: ingest.PartialRound{Qualifying: rows}}}}))
	one.run(t, now.Add(2*time.Minute))
	for _, d := range desks {
		d.source.revision, d.source.facts = "three and a half", saying(whole, func(r *season.Round) { r.Qualifying = said.Qualifying })
	}
	for _, d := range []*desk{two, one, two} {
		report := d.run(t, now.Add(3*time.Minute))
		if len(report.Confirmed) != 1 || len(report.Disputed) != 0 {
			t.Errorf("confirmed are %+v and disputed %+v, want qualifying confirmed", report.Confirmed, report.Disputed)
		}
		if r, _ := d.inUse(t); !cmp.Equal(r.Qualifying, said.Qualifying) {
			t.Error("the times of the source are not in use")
		}
	}

	// After its release the grid is that of the source, on both schedulers, once.
	for _, d := range desks {
		d.source.revision, d.source.facts = "four", saying(whole, func(r *season.Round) { r.Grid = said.Grid })
	}
	now = now.Add(time.Hour)
	must.Do(t, two.Enter(t.Context(), now, ingest.ManualEntry{Actor: "operator:ben", Released: []assemble.BlockID{place(assemble.Grid)}}))
	one.run(t, now)
	r, sum = one.inUse(t)
	if diff := cmp.Diff(said.Grid, r.Grid); diff != "" {
		t.Errorf("the grid in use after the release (-source +got):\n%s", diff)
	}
	for _, d := range desks {
		if report := d.run(t, now.Add(time.Minute)); report.Changed || report.Archive != sum || len(report.Applied) != 0 {
			t.Errorf("after the release it goes on: %+v", report)
		}
	}
	log := must.Get(ingest.LoadFactsLog(t.Context(), store))(t)
	if origin, _ := log.Origin(2024, weekend, assemble.Grid); origin.Source != "herald" || origin.Revision != "four" {
		t.Errorf("the grid came from %+v, want the source's fourth revision", origin)
	}
}

// TestReleasedWithoutASource: without a source, the release of a manual fact restores the fact before.
func TestReleasedWithoutASource(t *testing.T) {
	now := time.Date(2024, 11, 23, 12, 0, 0, 0, time.UTC)
	_, desks, whole := newDesks(t, now, 1)
	d := desks[0]
	d.source.down = &source.Fault{Kind: source.Unreachable, Err: context.DeadlineExceeded}
	said := roundIn(t, whole, weekend)
	place := assemble.BlockID{Year: 2024, GrandPrix: weekend, Block: assemble.Grid}
	for _, grid := range [][]season.GridSlot{said.Grid, said.Grid[:16]} { // entered twice
		must.Do(t, d.Enter(t.Context(), now, ingest.ManualEntry{Actor: "anna", Statements: []ingest.Statement{{BlockID: place, Entered: ingest.PartialRound{Grid: grid}}}}))
		d.run(t, now)
		if r, _ := d.inUse(t); len(r.Grid) != len(grid) {
			t.Fatalf("the grid in use has %d slots, want %d", len(r.Grid), len(grid))
		}
	}
	must.Do(t, d.Enter(t.Context(), now, ingest.ManualEntry{Actor: "anna", Released: []assemble.BlockID{place}}))
	if report := d.run(t, now); len(report.Faults) != 1 || !report.Changed {
		t.Errorf("the release changed nothing: %+v", report)
	}
	if r, _ := d.inUse(t); r.Grid != nil {
		t.Errorf("after the release there is still a grid: %v", r.Grid)
	}
}

// TestGatesForPeople: manual facts pass the same gates, unless they are forced.
func TestGatesForPeople(t *testing.T) {
	now := time.Date(2024, 11, 23, 1, 0, 0, 0, time.UTC) // before qualifying, at 06:00
	_, desks, whole := newDesks(t, now, 1)
	d := desks[0]
	statement := ingest.Statement{
		BlockID: assemble.BlockID{Year: 2024, GrandPrix: weekend, Block: assemble.Qualifying},
		Entered: ingest.PartialRound{Qualifying: roundIn(t, whole, weekend).Qualifying},
	}
	for _, forced := range []bool{false, true} {
		statement.Forced = forced
		out := must.Get(d.Trial(t.Context(), now, ingest.ManualEntry{Statements: []ingest.Statement{statement}}))(t)
		if waits := len(out.Held) == 1 && out.Held[0].Refused[0].Gate == assemble.EarlyGate; waits == forced {
			t.Errorf("forced %t: there wait %+v", forced, out.Held)
		}
	}
}

// saying returns the facts of a source with a changed round of the weekend.
func saying(whole season.Facts, change func(*season.Round)) season.Facts {
	said := whole
	year := season.Season{Year: 2024}
	for _, r := range whole.Seasons[0].Rounds {
		r = archivetest.Scheduled(&r)
		if r.GrandPrix == weekend {
			change(&r)
		}
		year.Rounds = append(year.Rounds, r)
	}
	said.Seasons = []season.Season{year}
	return said
}

// TestNamed: a person can merge a source's names of a team and a Grand Prix into ours.
func TestNamed(t *testing.T) {
	now := time.Date(2024, 11, 23, 12, 0, 0, 0, time.UTC)
	_, desks, whole := newDesks(t, now, 1)
	d := desks[0]
	said := roundIn(t, whole, weekend)
	grid := slices.Clone(said.Grid)
	for i := range grid {
		if grid[i].Team == "rb" {
			grid[i].Team = "racing-bulls"
		}
	}
	d.source.revision, d.source.facts = "two", saying(whole, func(r *season.Round) { r.GrandPrix, r.Grid = "nevada", grid })
	d.source.facts.Teams = maps.Clone(whole.Teams)
	d.source.facts.Teams["racing-bulls"] = season.Team{ID: "racing-bulls", Name: "Racing Bulls"}
	if report := d.run(t, now); len(report.Held) == 0 || len(report.Applied) != 0 {
		t.Errorf("a Grand Prix under another name was taken: %+v", report)
	}
	for _, c := range d.run(t, now).Held {
		if len(c.Refused) == 0 {
			t.Errorf("%s of %s waits, and nothing says why", c.Block, c.GrandPrix)
		}
	}
	for _, alias := range []assemble.Alias{{Kind: assemble.RoundAlias, From: "nevada", To: "las-vegas"}, {Kind: assemble.TeamAlias, From: "racing-bulls", To: "rb"}} {
		must.Do(t, d.Enter(t.Context(), now, ingest.ManualEntry{Actor: "anna", Named: []assemble.Alias{alias}}))
	}
	if report := d.run(t, now); len(report.Held) != 0 || !slices.Equal(blocks(report.Applied), []string{"las-vegas grid by herald"}) {
		t.Errorf("taken are %v, and there wait %v; want the grid of Las Vegas", blocks(report.Applied), blocks(report.Held))
	}
	if r, _ := d.inUse(t); !cmp.Equal(r.Grid, said.Grid) {
		t.Errorf("the grid in use is %+v", r.Grid)
	}
}

// TestPlanCalendar: a calendar file gives an entry of all that differs from the facts in use, and the
// moves of starts that are published.
func TestPlanCalendar(t *testing.T) {
	for _, test := range []struct {
		what, file       string // first entries separated by ---, if any
		said, new, moved []string
		moves            int
		fault            string
	}{
		{"nothing new", "grand_prix,start\nalps,2030-03-10T13:00:00Z\n", nil, nil, nil, 0, ""},
		{"a start moves", "grand_prix,start\nbay,2030-03-24T15:00:00Z\n", []string{"bay start"}, nil, []string{"bay"}, 1, ""},
		{"another day, at the hour that is known", "grand_prix,start\nbay,2030-03-25\n", []string{"bay start"}, nil, []string{"bay"}, 1, ""},
		{"a new round at a known circuit", "grand_prix,name,circuit,start\ngulf,Grand Prix of gulf,ring,2030-06-02T13:00:00Z\n", []string{"gulf calendar", "gulf start"}, []string{"Grand Prix of gulf"}, nil, 0, ""},
		{
			"a new round at a new circuit", "grand_prix,name,circuit,circuit_name,locality,country,start\nhills,Grand Prix of hills,hilltop,Hilltop,Hill,Italy,2031-03-02\n",
			[]string{"hills calendar", "hills start"},
			[]string{"Grand Prix of hills"},
			nil, 0, "",
		},
		{"other sessions", "grand_prix,start,practice-1\ncape,2030-04-07T13:00:00Z,2030-04-05T11:00:00Z\n", []string{"cape sessions"}, nil, nil, 0, ""},
		{
			"the first hour of a new round",
			"grand_prix,name,circuit,start\nhills,Grand Prix of hills,ring,2031-03-02\n---\ngrand_prix,start\nhills,2031-03-02T13:00:00Z\n",
			[]string{"hills start"},
			nil,
			[]string{"hills"},
			0, "",
		},
		{"a season that is over", "grand_prix,start\nalps,2029-03-10T13:00:00Z\n", nil, nil, nil, 0, "line 2: 2029-03-10 is outside the seasons 2030 to 2032; archive import changes other seasons"},
		{"a start that the ledger refuses", "grand_prix,start\nalps,2030-03-01T13:00:00Z\n", nil, nil, nil, 0, `line 2: Grand Prix of alps of 2030: ledger refuses round_moved of 2030001: that start has passed: 2030-03-01T13:00:00Z; if the race began then, postpone it and reinstate it with that start`},
		{"no calendar", "", nil, nil, nil, 0, "the calendar is empty: the first line names the columns"},
	} {
		t.Run(test.what, func(t *testing.T) {
			s := newSmall(t)
			read := func(file string) (ingest.CalendarPlan, error) {
				stored := must.Get(s.Facts.Load(t.Context()))(t)
				facts := stored.Archive.Facts()
				return ingest.PlanCalendar([]byte(file), nil, &facts, s.Ledger.Fold(), opening, "announced")
			}
			earlier, file, two := strings.Cut(test.file, "---\n")
			if !two {
				file = earlier
			} else if plan, err := read(earlier); err != nil {
				t.Fatal(err)
			} else if err := s.Enter(t.Context(), opening, plan.Entry); err != nil {
				t.Fatal(err)
			} else if _, err := s.Apply(t.Context(), opening); err != nil {
				t.Fatal(err)
			}
			plan, err := read(file)
			if test.fault != "" {
				if err == nil || err.Error() != test.fault {
					t.Errorf("got %v, want %s", err, test.fault)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var said, added, moved []string
			for _, st := range plan.Entry.Statements {
				said = append(said, string(st.GrandPrix)+" "+string(st.Block))
			}
			for _, r := range plan.New {
				added = append(added, r.Name)
			}
			for _, m := range plan.Moved {
				moved = append(moved, m.Name[len("Grand Prix of "):])
			}
			must.Equal(t, "statements, new rounds and moved starts", [][]string{test.said, test.new, test.moved}, [][]string{said, added, moved})
			if len(plan.Moves) != test.moves || test.moves > 0 && plan.Moves[0].Reason != "announced" {
				t.Errorf("moves are %+v, want %d", plan.Moves, test.moves)
			}
			must.Do(t, s.Enter(t.Context(), opening, plan.Entry))
			if outcome, err := s.Apply(t.Context(), opening); err != nil || len(outcome.Held) > 0 || outcome.Changed != (len(said) > 0) {
				t.Errorf("entered: got %+v, %v", outcome, err)
			}
		})
	}
}

// TestDriversEntry: a list of drivers becomes the entries, the qualifying or the grid of a round; without
// an entry list the drivers are assumed to take part.
func TestDriversEntry(t *testing.T) {
	s := newSmall(t)
	s.commit(map[string][]byte{raceFolder("alps") + "race-results.yml": raced("anna-arno", "bert-berg", "carl-coda")})
	at := smallStart("alps").Add(4 * time.Hour)
	s.poll(t, at)
	stored := must.Get(s.Facts.Load(t.Context()))(t)
	view := stored.Archive.AsOf(at)
	var bay *almanac.Round
	for _, r := range almanac.Rounds(view, s.Ledger.Fold(), 2030) {
		if r.Facts.GrandPrix == "bay" {
			bay = r
		}
	}
	for _, test := range []struct {
		block  assemble.Block
		listed bool
		text   string
		want   []string
	}{
		{assemble.Entries, false, "ARN\nBER", []string{"entries"}},
		{assemble.Qualifying, false, "BER ARN\nNEW = Nina Newby, ITA, rosso, 9", []string{"qualifying", "entries assumed"}},
		{assemble.Grid, true, "BER ARN\n--\nCOD", []string{"grid"}},
	} {
		var entries []season.Entry
		if test.listed {
			entries = view.Seasons[0].Rounds[0].Entries
		}
		roster := stewards.NewRoster(view, 2030, "bay", entries)
		list, err := roster.Read(test.text)
		if err != nil {
			t.Fatal(err)
		}
		entry := ingest.DriversEntry(bay, test.block, roster, list)
		var got []string
		for _, st := range entry.Statements {
			text := string(st.Block)
			if st.Assumed {
				text += " assumed"
			}
			got = append(got, text)
		}
		if !slices.Equal(got, test.want) || len(entry.Drivers) != len(list.New) {
			t.Errorf("%s: got %v and %d new drivers, want %v and %d", test.block, got, len(entry.Drivers), test.want, len(list.New))
		}
		trial, err := s.Trial(t.Context(), smallStart("bay").Add(-time.Hour), entry)
		if err != nil || len(trial.Applied) != len(test.want) {
			t.Errorf("%s: a trial gives %+v, %v, want %v applied", test.block, trial.Applied, err, test.want)
		}
	}
}
