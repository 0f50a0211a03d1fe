package ingest_test

import (
	stdcmp "cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/archive/archivetest"
	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/builder/season"
	"gridcast/builder/source"
	"gridcast/builder/testseason"
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
	facts, err := d.Facts.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
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
	report, err := d.Poll(t.Context(), now, true)
	if err != nil {
		t.Fatal(err)
	}
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
	trial, err := one.Trial(t.Context(), now, enter)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"las-vegas grid by hand", "las-vegas entries by hand"}, blocks(trial.Applied)); diff != "" {
		t.Errorf("a trial would take (-want +got):\n%s", diff)
	}
	if r, _ := one.inUse(t); r.Grid != nil {
		t.Error("a trial changed the archive in use")
	}
	if err := one.Enter(t.Context(), now, enter); err != nil {
		t.Fatal(err)
	}
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
	if diff := cmp.Diff([]string{"las-vegas entries by herald"}, blocks(report.Applied)); diff != "" {
		t.Errorf("of the source there was taken (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"las-vegas grid by herald"}, blocks(report.Disputed)); diff != "" {
		t.Errorf("there is disputed (-want +got):\n%s", diff)
	}
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
	err = one.Enter(t.Context(), now, ingest.ManualEntry{Actor: "anna", Statements: []ingest.Statement{{BlockID: place(assemble.Qualifying), Entered: ingest.PartialRound{Qualifying: rows}}}})
	if err != nil {
		t.Fatal(err)
	}
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
	if err := two.Enter(t.Context(), now, ingest.ManualEntry{Actor: "operator:ben", Released: []assemble.BlockID{place(assemble.Grid)}}); err != nil {
		t.Fatal(err)
	}
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
	log, err := ingest.LoadFactsLog(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
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
		err := d.Enter(t.Context(), now, ingest.ManualEntry{Actor: "anna", Statements: []ingest.Statement{{BlockID: place, Entered: ingest.PartialRound{Grid: grid}}}})
		if err != nil {
			t.Fatal(err)
		}
		d.run(t, now)
		if r, _ := d.inUse(t); len(r.Grid) != len(grid) {
			t.Fatalf("the grid in use has %d slots, want %d", len(r.Grid), len(grid))
		}
	}
	if err := d.Enter(t.Context(), now, ingest.ManualEntry{Actor: "anna", Released: []assemble.BlockID{place}}); err != nil {
		t.Fatal(err)
	}
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
		out, err := d.Trial(t.Context(), now, ingest.ManualEntry{Statements: []ingest.Statement{statement}})
		if err != nil {
			t.Fatal(err)
		}
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
		if err := d.Enter(t.Context(), now, ingest.ManualEntry{Actor: "anna", Named: []assemble.Alias{alias}}); err != nil {
			t.Fatal(err)
		}
	}
	if report := d.run(t, now); len(report.Held) != 0 || !slices.Equal(blocks(report.Applied), []string{"las-vegas grid by herald"}) {
		t.Errorf("taken are %v, and there wait %v; want the grid of Las Vegas", blocks(report.Applied), blocks(report.Held))
	}
	if r, _ := d.inUse(t); !cmp.Equal(r.Grid, said.Grid) {
		t.Errorf("the grid in use is %+v", r.Grid)
	}
}
