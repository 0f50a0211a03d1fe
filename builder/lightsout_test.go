package builder_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/check/checktest"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/builder/testseason"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
)

// gaps are the chances that an archive lacks a fact.
type gaps struct {
	lastYear                                                 float64 // of last season: all of its sessions
	entries, qualifying, grid, results, standings, hour, day float64 // of each round of this one
	future                                                   float64 // the last round
}

// patchy makes an archive of two small seasons, 2025 as it was and 2026 as it comes, that lacks
// things by chance. The drivers change from one to the other, so that some have no code yet.
func patchy(t *testing.T, r *rand.Rand, g gaps) *season.Archive {
	t.Helper()
	lacks := func(chance float64) bool { return r.Float64() < chance }
	names := []string{"ann-abel", "bob-baker", "cay-cole", "dan-dorn", "eve-east", "fay-fox", "gil-gray"}
	facts := season.Facts{
		Source: "test", Drivers: map[season.DriverID]season.Driver{}, Teams: map[season.TeamID]season.Team{},
		Engines:  map[season.EngineID]season.Engine{"v6": {ID: "v6", Name: "V6"}},
		Circuits: map[season.CircuitID]season.Circuit{"ring": {ID: "ring", Name: "The Ring", Locality: "Town", Country: "Italy"}},
	}
	team := func(driver int) season.TeamID { return season.TeamID([]string{"alpha", "beta", "gamma"}[driver%3]) }
	for i, name := range names {
		id := season.DriverID(name)
		facts.Drivers[id] = season.Driver{
			ID: id, Name: name, FirstName: name[:3], LastName: name[4:], Country: "GBR",
			Abbreviation: string([]byte{name[4] - 32, name[5] - 32, name[6] - 32}),
		}
		facts.Teams[team(i)] = season.Team{ID: team(i), Name: string(team(i)), Country: "GBR"}
	}
	for _, year := range []int{2025, 2026} {
		s := season.Season{Year: year}
		first := 0 // this year the first driver is gone and the last is new
		if year == 2026 {
			first = 1
		}
		empty := year == 2025 && lacks(g.lastYear)
		points := map[season.DriverID]float64{}
		teamPoints := map[season.TeamID]float64{}
		for n := 1; n <= 3; n++ {
			if year == 2026 && n == 3 && lacks(g.future) {
				break
			}
			start := time.Date(year, time.March, 14*n, 13, 0, 0, 0, time.UTC)
			round := season.Round{
				Number: n, GrandPrix: season.GrandPrixID(fmt.Sprintf("gp-%d", n)), Name: fmt.Sprintf("Grand Prix %d", n), Circuit: "ring",
				Date: start.Truncate(24 * time.Hour), Start: start,
				Sessions: []season.Session{{Kind: season.Qualifying, Date: start.Truncate(24*time.Hour).AddDate(0, 0, -1), Start: start.AddDate(0, 0, -1)}},
			}
			this := year == 2026
			if this && lacks(g.hour) {
				round.Start = time.Time{}
			}
			if this && lacks(g.day) {
				round.Sessions = nil
			}
			order := r.Perm(6)
			for place, i := range order {
				driver := season.DriverID(names[first+i])
				slot := season.GridSlot{Driver: driver, Team: team(i), Position: place + 1}
				round.Entries = append(round.Entries, season.Entry{Driver: driver, Team: team(i), Engine: "v6", Number: i + 1})
				round.Qualifying = append(round.Qualifying, season.QualifyingRow{Driver: driver, Team: team(i), Position: place + 1})
				round.Grid = append(round.Grid, slot)
				row := season.Result{Driver: driver, Team: team(i), Engine: "v6", Position: place + 1, Grid: place + 1, Laps: 50, Points: float64(25 - 4*place)}
				if place == 0 {
					row.Time = 90 * time.Minute
				}
				round.Results = append(round.Results, row)
				points[driver] += row.Points
				teamPoints[row.Team] += row.Points
			}
			for driver := range points {
				round.DriverStandings = append(round.DriverStandings, season.DriverStanding{Driver: driver, Points: points[driver]})
			}
			slices.SortFunc(round.DriverStandings, func(a, b season.DriverStanding) int {
				return cmpPoints(a.Points, b.Points, string(a.Driver), string(b.Driver))
			})
			for i := range round.DriverStandings {
				round.DriverStandings[i].Position = i + 1
			}
			for name := range teamPoints {
				round.TeamStandings = append(round.TeamStandings, season.TeamStanding{Team: name, Engine: "v6", Points: teamPoints[name]})
			}
			slices.SortFunc(round.TeamStandings, func(a, b season.TeamStanding) int {
				return cmpPoints(a.Points, b.Points, string(a.Team), string(b.Team))
			})
			for i := range round.TeamStandings {
				round.TeamStandings[i].Position = i + 1
			}
			switch {
			case empty:
				round.Entries, round.Qualifying, round.Grid, round.Results, round.DriverStandings, round.TeamStandings = nil, nil, nil, nil, nil, nil
			case this:
				if lacks(g.entries) {
					round.Entries = nil
				}
				if lacks(g.qualifying) {
					round.Qualifying = nil
				}
				if lacks(g.grid) {
					round.Grid = nil
				}
				if lacks(g.results) {
					round.Results = nil
				}
				if lacks(g.standings) {
					round.DriverStandings = nil
				}
				if lacks(g.standings) {
					round.TeamStandings = nil
				}
			}
			s.Rounds = append(s.Rounds, round)
		}
		facts.Seasons = append(facts.Seasons, s)
	}
	return must.Get(season.New(facts))(t)
}

func cmpPoints(a, b float64, x, y string) int {
	switch {
	case a != b && a > b, a == b && x < y:
		return -1
	}
	return 1
}

// onArchive is a builder in memory on an archive that a test may replace.
func onArchive(t *testing.T, inUse **season.Archive, opened time.Time, policy builder.Policy) *builder.Builder {
	t.Helper()
	b := testseason.New(t, testseason.Config{Archive: *inUse, Opened: opened, Policy: policy}).Builder
	b.Facts = func(context.Context) (archive.Stored, error) {
		return archive.Stored{Archive: *inUse, SHA256: sum}, nil
	}
	return b
}

// With any gaps in the archive, every build publishes a version that passes all checks, at every instant
// that matters. A race has a pick at its start if any driver was known, and the pick is served.
func TestNothingStopsLightsOut(t *testing.T) {
	worlds := 16
	if testing.Short() {
		worlds = 2
	}
	const some = 0.4
	for seed := range worlds {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		g := gaps{entries: some, qualifying: some, grid: some, results: some, standings: some, hour: some, day: some, future: some}
		if seed%4 == 3 {
			g.lastYear = 1 // drivers are known from this season alone
		}
		t.Run(fmt.Sprintf("world %d", seed), func(t *testing.T) { nothingStops(t, r, g) })
	}
}

func nothingStops(t *testing.T, r *rand.Rand, g gaps) {
	// Archives follow one another: the one in use may be an older one, or know less.
	archives := []*season.Archive{patchy(t, r, g), patchy(t, r, g)}
	inUse := archives[0]
	opened := time.Date(2025, 9, 1, 0, 0, 0, 0, time.UTC)
	b := onArchive(t, &inUse, opened, builder.Policy{Model: predict.GridFrequency(), AutoVerifyAfter: 24 * time.Hour})
	for _, at := range instants(opened, archives) {
		if r.IntN(6) == 0 {
			inUse = archives[r.IntN(2)]
		}
		outcome, err := b.Build(t.Context(), builder.Request{At: at})
		must.Require(t, err == nil && len(outcome.Refused) == 0, "build at %s: refused %v, error %v", at, outcome.Refused, err)
		if !outcome.Unchanged {
			holds(t, b.Store)
		}
		v := inUse.AsOf(at)
		for i := range v.Seasons {
			for j := range v.Seasons[i].Rounds {
				hasPick(t, b.Ledger.Fold(), inUse, v.Seasons[i].Year, &v.Seasons[i].Rounds[j], at)
			}
		}
	}
}

// instants are those at which something changes: calendars known, qualifying over, it has stood,
// the last freeze, lights out, the end of the window, verified, the turn of the year.
func instants(opened time.Time, archives []*season.Archive) []time.Time {
	all := []time.Time{opened, season.CalendarKnownAt(2026), season.BeginsAt(2026), season.CalendarKnownAt(2027), season.BeginsAt(2027)}
	for _, a := range archives {
		s := a.Facts().Seasons[1]
		for i := range s.Rounds {
			start, known := s.Rounds[i].StartsAt(), s.Rounds[i].QualifyingKnownAt()
			all = append(all, known.Add(-time.Second), known, known.Add(2*time.Hour), start.Add(-5*time.Minute), start,
				start.Add(90*time.Minute), start.Add(4*time.Hour), start.Add(26*time.Hour))
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	return slices.CompactFunc(all, time.Time.Equal)
}

// holds reads the published version as a client would.
func holds(t *testing.T, store blob.Store) {
	t.Helper()
	base := must.Get(snapshots.LoadBase(t.Context(), store, nil))(t)
	bodies := map[string][]byte{}
	for _, e := range base.Manifest.Entries {
		bodies[e.Path] = must.Get(base.Body(t.Context(), e))(t)
	}
	known := catalog.Known{Current: base.Manifest.CurrentSeason, Seasons: base.Manifest.Seasons}
	maps.DeleteFunc(bodies, func(path string, _ []byte) bool { // no variants
		return strings.HasPrefix(path, "feeds/") || strings.HasPrefix(path, catalog.Portraits)
	})
	must.Do(t, checktest.Err(checktest.Bodies(known, bodies, func(string) bool { return false })))
}

// hasPick checks that a round that has started has a pick if there was anything to choose from, and
// none if there was not.
func hasPick(t *testing.T, s *ledger.Fold, a *season.Archive, year int, r *season.Round, at time.Time) {
	t.Helper()
	key, ok := s.Key(year, r.GrandPrix)
	if !ok || year < 2026 || !at.Equal(r.StartsAt()) {
		return
	}
	session, _ := s.Record(key)
	_, err := predict.GridFrequency().Predict(a.AsOf(at.Add(-5*time.Minute)), year, r.GrandPrix)
	if pick := session.Pick; (pick != nil) == errors.Is(err, predict.ErrNobody) {
		t.Errorf("round %d of %d has the pick %v at lights out; what there was to choose from: %v", r.Number, year, pick, err)
	}
}

// A document that fails its check keeps its earlier bytes. The others are published, and the outcome lists
// it. An event that would make a document fail is not appended.
func TestOneWrongDocumentStopsNoOther(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	good := patchy(t, r, gaps{})
	facts := good.Facts()
	broken := season.Facts{
		Source: facts.Source, Teams: facts.Teams, Engines: facts.Engines, Seasons: facts.Seasons, Drivers: facts.Drivers,
		Circuits: map[season.CircuitID]season.Circuit{"ring": {ID: "ring"}}, // without a name
	}
	wrong := must.Get(season.New(broken))(t)
	first := facts.Seasons[1].Rounds[0]
	inUse := good
	b := onArchive(t, &inUse, first.Start.AddDate(0, 0, -7), builder.Policy{Model: predict.GridFrequency()})
	before, err := b.Build(t.Context(), builder.Request{At: first.Start.AddDate(0, 0, -7)})
	if err != nil || len(before.Refused) > 0 {
		t.Fatal(before.Refused, err)
	}
	inUse = wrong
	after := must.Get(b.Build(t.Context(), builder.Request{At: first.QualifyingKnownAt()}))(t)
	var paths []string
	for _, d := range after.Refused {
		paths = append(paths, d.Path)
	}
	if want := []string{
		"calendar/2025", "calendar/2026", "circuits/2025", "circuits/2026", "circuits/all", "identifiers/circuits", "next-race", "overview", "overview/2025", "overview/2026",
		"weekends/2025", "weekends/2026",
		"weekends/session/2025001", "weekends/session/2025002", "weekends/session/2025003",
		"weekends/session/2026001", "weekends/session/2026002", "weekends/session/2026003",
		"feeds/calendar.ics", // which would say otherwise than the weekends
	}; !slices.Equal(paths, want) {
		t.Errorf("refused %v, want %v", paths, want)
	}
	if after.Version <= before.Version || len(after.Events) == 0 {
		t.Errorf("version %d after %d, events %v: want the pick frozen and published", after.Version, before.Version, after.Events)
	}
	base := must.Get(snapshots.LoadBase(t.Context(), b.Store, nil))(t)
	var published []string
	for _, d := range base.Manifest.Refused {
		if d.Reason == "" || d.Version != before.Version {
			t.Errorf("%s: refused for %q, keeps version %d; want a reason and version %d", d.Path, d.Reason, d.Version, before.Version)
		}
		published = append(published, d.Path)
	}
	must.Hold(t, slices.Equal(published, paths), "the manifest says that %v are refused, want %v", published, paths)
	entry, _ := base.Entry(fmt.Sprintf("predictions/session/%d", after.Events[0].Session))
	body := must.Get(base.Body(t.Context(), entry))(t)
	var picks wire.Success[[]wire.PredictionRecord]
	if err := json.Unmarshal(body, &picks); err != nil || len(picks.Data) != 1 {
		t.Errorf("the pick is not served: %s", body)
	}
	if again, err := b.Build(t.Context(), builder.Request{At: first.Start}); err != nil || again.Unchanged {
		t.Fatalf("build at lights out: %+v, %v", again, err)
	}
	later := must.Get(snapshots.LoadBase(t.Context(), b.Store, nil))(t)
	for _, d := range later.Manifest.Refused {
		if d.Path == "next-race" && d.Version == before.Version {
			return
		}
	}
	t.Errorf("version %d keeps %v, want next-race of version %d", later.Pointer.Version, later.Manifest.Refused, before.Version)
}

// A version lists the facts that are overdue or will be before the next version is due. It does not list
// facts that have come.
func TestMissingFactsArePublished(t *testing.T) {
	whole := patchy(t, rand.New(rand.NewPCG(5, 6)), gaps{})
	bare := patchy(t, rand.New(rand.NewPCG(5, 6)), gaps{grid: 1})
	first := whole.Facts().Seasons[1].Rounds[0]
	inUse := bare
	b := onArchive(t, &inUse, first.Start.AddDate(0, 0, -7), builder.Policy{Model: predict.GridFrequency()})
	build := func(at time.Time) snapshots.Manifest {
		t.Helper()
		must.Get(b.Build(t.Context(), builder.Request{At: at}))(t)
		base := must.Get(snapshots.LoadBase(t.Context(), b.Store, nil))(t)
		return base.Manifest
	}
	overdue := func(m snapshots.Manifest, at time.Time) (codes []string) {
		for _, fact := range m.Missing {
			if fact.OverdueAt(at) {
				codes = append(codes, fact.Code)
			}
		}
		return codes
	}
	m := build(first.Start.Add(-3 * time.Hour))
	for _, c := range []struct {
		at   time.Time
		want []string
	}{
		{first.Start.Add(-3 * time.Hour), nil},
		{first.Start.Add(-31 * time.Minute), nil},
		{first.Start.Add(-30 * time.Minute), []string{"grid_overdue"}},
		{first.Start.Add(-time.Second), []string{"grid_overdue"}},
		{first.Start, nil},
	} {
		if got := overdue(m, c.at); !slices.Equal(got, c.want) {
			t.Errorf("%s before the start the version of three hours before says %v is overdue, want %v", first.Start.Sub(c.at), got, c.want)
		}
	}
	again := build(first.Start.Add(-2 * time.Hour))
	must.Hold(t, again.Version == m.Version, "version %d after %d: nothing has changed", again.Version, m.Version)
	inUse = whole
	if m := build(first.Start.Add(-20 * time.Minute)); len(overdue(m, first.Start.Add(-20*time.Minute))) > 0 {
		t.Errorf("with a grid the version says %+v", m.Missing)
	}
}

// A result that would make the standings invalid is not verified, neither by the rule nor by a
// person, and keeps nothing else from being published; once the archive is right, it is.
func TestNothingUnpublishableIsAppended(t *testing.T) {
	good := patchy(t, rand.New(rand.NewPCG(3, 4)), gaps{})
	facts := good.Facts()
	facts.Teams = map[season.TeamID]season.Team{"alpha": {ID: "alpha"}, "beta": facts.Teams["beta"], "gamma": facts.Teams["gamma"]}
	nameless := must.Get(season.New(facts))(t)
	first := facts.Seasons[1].Rounds[0]
	inUse := nameless
	b := onArchive(t, &inUse, first.Start.AddDate(0, 0, -1), builder.Policy{Model: predict.GridFrequency(), AutoVerifyAfter: time.Hour})
	must.Get(b.Build(t.Context(), builder.Request{At: first.Start.Add(-time.Hour)}))(t)
	key, _ := b.Ledger.Fold().Key(2026, first.GrandPrix)
	verified := func() bool { s, _ := b.Ledger.Fold().Record(key); return s.Result() != nil }

	over := first.ResultKnownAt().Add(time.Hour)
	outcome, err := b.Build(t.Context(), builder.Request{At: over})
	var unsettled *builder.UnsettledError
	if !errors.As(err, &unsettled) || outcome.Version == 0 || verified() {
		t.Errorf("got version %d, verified %v and error %v; want a version, nothing verified and an UnsettledError", outcome.Version, verified(), err)
	}
	_, err = almanac.Decider{Ledger: testseason.Fresh(t, b.Ledger), View: inUse.AsOf(over), Actor: "operator:test", Publishable: builder.Publishable}.Decide(t.Context(), key, (*almanac.Round).Verify)
	golden.Sentence(t, "an operator verifies a result without standings", err)
	must.Hold(t, !verified(), "an operator verifies it all the same")
	inUse = good
	if _, err := b.Build(t.Context(), builder.Request{At: over.Add(time.Minute)}); err != nil || !verified() {
		t.Errorf("with the team's name: verified %v, error %v; want it verified", verified(), err)
	}
}

// An older archive without the season takes nothing back. The documents of the season stay, with the next
// race, so that its start comes. The seasons of the archive are published.
func TestOlderArchiveTakesNothingBack(t *testing.T) {
	good := patchy(t, rand.New(rand.NewPCG(5, 6)), gaps{})
	facts := good.Facts()
	facts.Seasons = facts.Seasons[:1]
	older := must.Get(season.New(facts))(t)
	start := good.Facts().Seasons[1].Rounds[0].Start
	inUse := good
	b := onArchive(t, &inUse, start.AddDate(0, 0, -7), builder.Policy{Model: predict.GridFrequency()})
	must.Get(b.Build(t.Context(), builder.Request{At: start.Add(-time.Hour)}))(t)
	before := must.Get(snapshots.LoadBase(t.Context(), b.Store, nil))(t)
	inUse = older
	outcome, err := b.Build(t.Context(), builder.Request{At: start.Add(-time.Minute)})
	must.Require(t, err == nil && len(outcome.Refused) != 0, "refused %v, error %v; want the season of 2026 to stay as it was", outcome.Refused, err)
	holds(t, b.Store)
	after := must.Get(snapshots.LoadBase(t.Context(), b.Store, nil))(t)
	got := after.Manifest.CurrentSeason
	must.Hold(t, got == 2026, "the current season is %d, want 2026 as before", got)
	for _, entry := range before.Manifest.Entries {
		now, ok := after.Entry(entry.Path)
		must.Hold(t, ok && now.SHA256 == entry.SHA256, "%s is not as it was", entry.Path)
	}
}
