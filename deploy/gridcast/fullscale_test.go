package main

import (
	"archive/zip"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gridcast/builder/bulk"
	"gridcast/builder/bulk/bulktest"
	"gridcast/builder/check"
	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/must"
	"gridcast/schemas/catalog"
	"gridcast/schemas/docs"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/dirblob"
)

// sourceRow holds the compared fields of F1DB's own files.
type sourceRow struct {
	ID             string
	Name           string
	Year, Round    int
	RaceID         int
	PositionNumber int
	DriverID       string
	ConstructorID  string
	Points         float64
	TotalRaceWins  int
	TotalPodiums   int

	TotalRaceStarts, TotalPolePositions, TotalFastestLaps, TotalChampionshipWins, TotalRacesHeld int
	TotalPoints                                                                                  float64

	PositionText, GridPenalty string

	Order              int `json:"positionDisplayOrder"`
	DriverNumber       string
	Laps               *int
	GridPositionNumber int
	TimeMillis         int64
	ReasonRetired      string
	SharedCar          bool

	Q1Millis, Q2Millis, Q3Millis int64
	Stop, Lap                    int
}

// sourceTable reads a table of the release without the importer.
func sourceTable(t *testing.T, release, name string) []sourceRow {
	t.Helper()
	z := must.Get(zip.OpenReader(release))(t)
	defer z.Close()
	f := must.Get(z.Open("f1db-" + name + ".json"))(t)
	defer f.Close()
	var rows []sourceRow
	must.Do(t, json.NewDecoder(f).Decode(&rows))
	return rows
}

func namesOf(rows []sourceRow) map[string]string {
	names := map[string]string{}
	for _, r := range rows {
		names[r.ID] = r.Name
	}
	return names
}

// TestAllSeasons imports, publishes and serves 1950 to 2024 by the real binary, and compares the answers
// to a client with the release's own files.
func TestAllSeasons(t *testing.T) {
	t.Parallel() // fills the time in which others wait
	release := sourcetest.Path(t, sourcetest.F1DB2024)
	dir := t.TempDir()

	began := time.Now()
	gridcast(t, dir, "archive", "import", "f1db", release, "--store", "dir:store")
	imported := time.Since(began)

	var receipt snapshots.Receipt
	must.Do(t, json.Unmarshal([]byte(gridcast(t, dir, "build", "--json", "--store", "dir:store")), &receipt))
	key := newKey(t, dir, "dir:store", "pro")
	began = time.Now()
	server := startServer(t, dir, "edge", "--store", "dir:store")
	ready := time.Since(began)
	resident := residentMiB(t, server.cmd.Process.Pid)
	c := newClient(server.url, key)

	drivers, constructors := namesOf(sourceTable(t, release, "drivers")), namesOf(sourceTable(t, release, "constructors"))
	winners := map[[2]int]string{}
	for _, r := range sourceTable(t, release, "races-race-results") {
		at := [2]int{r.Year, r.Round}
		if _, shared := winners[at]; r.PositionNumber == 1 && !shared {
			winners[at] = drivers[r.DriverID]
		}
	}
	driverRows, teamRows := byYear(sourceTable(t, release, "seasons-driver-standings")), byYear(sourceTable(t, release, "seasons-constructor-standings"))
	totals := map[string]sourceRow{}
	for _, r := range sourceTable(t, release, "seasons-drivers") {
		totals[fmt.Sprint(r.Year, drivers[r.DriverID])] = r
	}

	var rounds, standings, teams int
	for year := 1950; year <= 2024; year++ {
		query := "&year=" + strconv.Itoa(year)
		codes := map[string]string{}
		var got, want []string
		for _, s := range data[[]wire.DriverStanding](t, c.get(t, "/standings?type=drivers"+query)) {
			got = append(got, fmt.Sprintf("%d %s %v", s.Position, s.Name, s.Points))
			codes[s.Driver] = s.Name
			if total := totals[fmt.Sprint(year, s.Name)]; s.Wins != total.TotalRaceWins || s.Podiums != total.TotalPodiums {
				t.Errorf("%d %s: got %d wins and %d podiums, F1DB has %d and %d", year, s.Name, s.Wins, s.Podiums, total.TotalRaceWins, total.TotalPodiums)
			}
		}
		for _, r := range driverRows[year] {
			want = append(want, fmt.Sprintf("%d %s %v", r.PositionNumber, drivers[r.DriverID], r.Points))
		}
		sameRows(t, fmt.Sprintf("drivers' championship of %d", year), got, want)
		standings += len(got)

		got, want = nil, nil
		for _, s := range data[[]wire.ConstructorStanding](t, c.get(t, "/standings?type=constructors"+query)) {
			got = append(got, fmt.Sprintf("%d %s %v", s.Position, s.Team, s.Points))
		}
		for _, r := range teamRows[year] {
			want = append(want, fmt.Sprintf("%d %s %v", r.PositionNumber, constructors[r.ConstructorID], r.Points))
		}
		sameRows(t, fmt.Sprintf("constructors' championship of %d", year), got, want)
		teams += len(got)

		for _, e := range data[[]wire.CalendarEntry](t, c.get(t, "/calendar?year="+strconv.Itoa(year))) {
			if winner := winners[[2]int{year, e.Round}]; e.Status != wire.Finished || codes[e.Winner] != winner {
				t.Errorf("%d round %d: got %s won by %s (%s), want %s", year, e.Round, e.Status, e.Winner, codes[e.Winner], winner)
			}
			rounds++
		}
	}
	published := documents(t, filepath.Join(dir, "store"))
	comparePenalties(t, published, sourceTable(t, release, "races-starting-grid-positions"))
	compareRows(t, published, func(name string) []sourceRow { return sourceTable(t, release, name) })
	compareTables(t, published)
	for _, kind := range []string{"drivers", "constructors"} {
		want := map[string]sourceRow{}
		for _, r := range sourceTable(t, release, kind) {
			want[r.ID] = r
		}
		careers := slices.Concat(data[[]wire.Career](t, c.get(t, "/careers?type="+kind)), data[[]wire.Career](t, c.get(t, "/former-careers?type="+kind)))
		compareCareers(t, kind, careers, want)
	}
	held := map[string]int{}
	for _, r := range sourceTable(t, release, "circuits") {
		held[r.ID] = r.TotalRacesHeld
	}
	for _, circuit := range data[[]wire.CircuitRecord](t, c.get(t, "/circuits")) {
		wins := 0
		for _, w := range circuit.Winners {
			wins += w.Wins
		}
		if circuit.RacesHeld != held[circuit.ID] || wins < circuit.RacesHeld || circuit.LapRecord == nil {
			t.Errorf("%s: %d races, %d wins, lap record %v; F1DB has %d races", circuit.ID, circuit.RacesHeld, wins, circuit.LapRecord, held[circuit.ID])
		}
		delete(held, circuit.ID)
	}
	maps.DeleteFunc(held, func(_ string, races int) bool { return races == 0 })
	must.Hold(t, len(held) == 0, "/circuits lacks %v", held)
	must.Hold(t, rounds == len(winners) && rounds == 1125,
		"compared %d rounds, the release has %d winners, want 1125", rounds, len(winners))
	t.Logf("75 seasons: %d rounds, %d driver standings, %d constructor standings equal F1DB's", rounds, standings, teams)
	t.Logf("import %.1f s, build %.1f s of %d variants (%d objects, %.1f MiB), edge ready in %.2f s, resident %.0f MiB, on %d cores",
		imported.Seconds(), receipt.Seconds, receipt.Variants, receipt.ObjectsWritten, float64(receipt.BytesWritten)/(1<<20), ready.Seconds(), resident, runtime.NumCPU())
}

// comparePenalties compares the starting grid of every round with F1DB's: place, pit lane and
// penalty. The places lost follow from the qualifying of the same document.
func comparePenalties(t *testing.T, published map[string][]byte, grid []sourceRow) {
	t.Helper()
	want := map[[2]int][]string{}
	for _, r := range grid {
		want[[2]int{r.Year, r.Round}] = append(want[[2]int{r.Year, r.Round}], fmt.Sprintf("%s %d %t %s", r.DriverID, r.PositionNumber, r.PositionText == "PL", r.GridPenalty))
	}
	penalties := 0
	for year := 1950; year <= 2024; year++ {
		for _, w := range documentOf[[]wire.Weekend](t, published, catalog.Variant{Endpoint: catalog.Weekends, Year: year}) {
			var got []string
			for _, s := range documentOf[[]wire.WeekendSessions](t, published, catalog.Variant{Endpoint: catalog.Sessions, SessionKey: w.SessionKey}) {
				for _, g := range s.Grid {
					penalty := ""
					switch {
					case g.ToTheBack:
						penalty = "SFB"
					case g.Penalty > 0:
						penalty = strconv.Itoa(g.Penalty)
					}
					if penalty != "" {
						penalties++
					}
					got = append(got, fmt.Sprintf("%s %d %t %s", g.DriverID, g.Position, g.PitLane, penalty))
					qualified := 0
					for _, q := range s.Qualifying {
						if q.DriverID == g.DriverID {
							qualified = q.Position
						}
					}
					if lost := g.PlacesLost; g.Qualified != qualified || (lost != nil) != (g.Position > 0 && qualified > 0) || lost != nil && *lost != g.Position-qualified {
						t.Errorf("%d round %d, %s: got place %d after %d in qualifying, %v lost; qualifying says %d", year, w.Round, g.DriverID, g.Position, g.Qualified, lost, qualified)
					}
				}
			}
			sameRows(t, fmt.Sprintf("grid of round %d of %d", w.Round, year), got, want[[2]int{year, w.Round}])
		}
	}
	t.Logf("%d penalties on the grids equal F1DB's", penalties)
}

// compareRows compares every row of the classifications, of qualifying, fastest laps and pit stops with F1DB's.
func compareRows(t *testing.T, published map[string][]byte, table func(name string) []sourceRow) {
	t.Helper()
	type key struct {
		table       string
		year, round int
	}
	want := map[key][]string{}
	read := func(name string, text func(sourceRow) string) {
		rows := table(name)
		slices.SortStableFunc(rows, func(a, b sourceRow) int { return cmp.Compare(a.Order, b.Order) })
		if strings.HasSuffix(name, "race-results") { // /results lists those without a position last
			slices.SortStableFunc(rows, func(a, b sourceRow) int { return cmp.Compare(uint(a.PositionNumber-1), uint(b.PositionNumber-1)) })
		}
		for _, r := range rows {
			at := key{name, r.Year, r.Round}
			want[at] = append(want[at], text(r))
		}
	}
	classified := func(r sourceRow) string {
		laps := "unknown"
		switch {
		case r.Laps == nil && !r.SharedCar && r.PositionText != "DSQ":
			laps = "0" // not started
		case r.Laps != nil && (*r.Laps > 0 || r.PositionText != "DSQ"):
			laps = strconv.Itoa(*r.Laps)
		}
		number, _ := strconv.Atoi(r.DriverNumber)
		return fmt.Sprintf("%d %s %s no. %d, grid %d, %s laps, %v points %s %t", r.PositionNumber, r.DriverID, r.ConstructorID, number, r.GridPositionNumber, laps, r.Points, r.ReasonRetired, r.SharedCar)
	}
	qualified := func(r sourceRow) string {
		return fmt.Sprintf("%d %s %d %d %d %d", r.PositionNumber, r.DriverID, r.TimeMillis, r.Q1Millis, r.Q2Millis, r.Q3Millis)
	}
	const race, sprint, qualifying, sprintQualifying = "races-race-results", "races-sprint-race-results", "races-qualifying-results", "races-sprint-qualifying-results"
	const laps, stops = "races-fastest-laps", "races-pit-stops"
	read(race, classified)
	read(sprint, classified)
	read(qualifying, qualified)
	read(sprintQualifying, qualified)
	read(laps, func(r sourceRow) string { return fmt.Sprintf("%s %d %d", r.DriverID, r.Lap, r.TimeMillis) })
	read(stops, func(r sourceRow) string { return fmt.Sprintf("%s %d %d %d", r.DriverID, r.Stop, r.Lap, r.TimeMillis) })

	rows := 0
	for year := 1950; year <= 2024; year++ {
		rounds := map[int64]int{}
		for _, w := range documentOf[[]wire.Weekend](t, published, catalog.Variant{Endpoint: catalog.Weekends, Year: year}) {
			rounds[w.SessionKey] = w.Round
		}
		got := map[key][]string{}
		add := func(table string, session int64, text string) {
			at := key{table, year, rounds[session]}
			got[at] = append(got[at], text)
			rows++
		}
		for _, r := range documentOf[[]wire.ResultRecord](t, published, catalog.Variant{Endpoint: catalog.Results, Year: year}) {
			for table, classification := range map[string][]wire.ResultRow{race: r.Race, sprint: r.Sprint} {
				for _, row := range classification {
					laps := "unknown"
					if row.Laps != nil {
						laps = strconv.Itoa(*row.Laps)
					}
					add(table, r.SessionKey, fmt.Sprintf("%d %s %s no. %d, grid %d, %s laps, %v points %s %t",
						row.Position, row.DriverID, row.TeamID, row.Number, row.Grid, laps, row.Points, row.Reason, row.Shared))
				}
			}
			for _, s := range documentOf[[]wire.WeekendSessions](t, published, catalog.Variant{Endpoint: catalog.Sessions, SessionKey: r.SessionKey}) {
				for table, session := range map[string][]wire.QualifyingRow{qualifying: s.Qualifying, sprintQualifying: s.SprintQualifying} {
					for _, q := range session {
						add(table, r.SessionKey, fmt.Sprintf("%d %s %d %d %d %d", q.Position, q.DriverID, q.TimeMS, q.Q1MS, q.Q2MS, q.Q3MS))
					}
				}
				for _, lap := range s.FastestLaps {
					add(laps, r.SessionKey, fmt.Sprintf("%s %d %d", lap.DriverID, lap.Lap, lap.TimeMS))
				}
				for _, stop := range s.PitStops {
					add(stops, r.SessionKey, fmt.Sprintf("%s %d %d %d", stop.DriverID, stop.Stop, stop.Lap, stop.TimeMS))
				}
			}
		}
		for session, round := range rounds {
			for _, table := range []string{race, sprint, qualifying, sprintQualifying, laps, stops} {
				at := key{table, year, round}
				if session == 2023010 && table == qualifying { // F1DB lists a driver without a place a second time
					want[at] = slices.DeleteFunc(want[at], func(row string) bool { return row == "0 valtteri-bottas 0 0 0 0" })
				}
				sameRows(t, fmt.Sprintf("%s of %d", table, session), got[at], want[at])
			}
		}
	}
	t.Logf("%d rows of results and sessions equal F1DB's", rows)
}

// figures are the counts of a driver in a season.
type figures struct {
	starts, classified, retired, wins, podiums int
	points                                     float64
}

// compareTables compares every figure that stands in two documents of a season: careers and progress with the results,
// head-to-head with results and sessions, the download with all documents; and the careers of all seasons with their sum.
// It makes the downloads of every tenth season, with GRIDCAST_SEASONS=all of each.
func compareTables(t *testing.T, published map[string][]byte) {
	t.Helper()
	whole := map[string]figures{}       // of all seasons, by driver
	covered := map[int][]docs.Covered{} // by the first season of the fact, and by the one before
	for _, c := range docs.Coverage() {
		from := must.Get(strconv.Atoi(c.From))(t)
		covered[from], covered[from-1] = append(covered[from], c), append(covered[from-1], c)
	}
	compared := 0
	for year := 1950; year <= 2024; year++ {
		variant := func(endpoint catalog.Name, kind string) catalog.Variant {
			return catalog.Variant{Endpoint: endpoint, Type: kind, Year: year}
		}
		results := documentOf[[]wire.ResultRecord](t, published, variant(catalog.Results, ""))
		seasonal, wins := map[string]figures{}, map[string][]int64{} // by driver; the session keys of the wins
		for _, r := range results {
			best := map[string]wire.ResultRow{} // a driver of several cars counts with the best place
			for _, row := range r.Race {
				f := seasonal[row.DriverID]
				f.points += row.Points
				seasonal[row.DriverID] = f
				if before, twice := best[row.DriverID]; !twice || uint(row.Position-1) < uint(before.Position-1) {
					best[row.DriverID] = row
				}
			}
			for _, row := range r.Sprint {
				f := seasonal[row.DriverID]
				f.points += row.Points
				seasonal[row.DriverID] = f
			}
			for id, row := range best {
				f := seasonal[id]
				switch row.Status {
				case wire.Classified, wire.DidNotFinish, wire.Disqualified, wire.NotClassified:
					f.starts++
				}
				switch {
				case row.Position > 0:
					f.classified++
				case row.Status == wire.DidNotFinish:
					f.retired++
				}
				if row.Position == 1 {
					f.wins++
					wins[id] = append(wins[id], r.SessionKey)
				}
				if row.Position >= 1 && row.Position <= 3 {
					f.podiums++
				}
				seasonal[id] = f
			}
		}
		for _, c := range documentOf[[]wire.Career](t, published, variant(catalog.Careers, catalog.DriversType)) {
			sameFigures(t, fmt.Sprintf("%d: career of %s", year, c.ID), c, seasonal[c.ID])
			f, w := seasonal[c.ID], whole[c.ID]
			whole[c.ID] = figures{w.starts + f.starts, w.classified + f.classified, w.retired + f.retired, w.wins + f.wins, w.podiums + f.podiums, w.points + f.points}
			compared++
		}
		standings := map[string]wire.DriverStanding{}
		for _, s := range documentOf[[]wire.DriverStanding](t, published, variant(catalog.Standings, catalog.DriversType)) {
			standings[s.Driver] = s
		}
		for _, p := range documentOf[[]wire.DriverProgress](t, published, variant(catalog.StandingsProgress, catalog.DriversType)) {
			for _, round := range p.Rounds {
				won := 0
				for _, r := range results {
					if slices.Contains(wins[p.DriverID], r.SessionKey) && r.SessionKey <= round.SessionKey {
						won++
					}
				}
				must.Hold(t, round.Wins == won,
					"%d: %s has %d wins after round %d, the results %d", year, p.DriverID, round.Wins, round.Round, won)
				compared++
			}
			last := p.Rounds[len(p.Rounds)-1]
			if s := standings[p.Driver]; last.Position != s.Position || last.Points != s.Points || last.Wins != s.Wins {
				t.Errorf("%d: %s ends in position %d with %v points, the standings say %d and %v", year, p.DriverID, last.Position, last.Points, s.Position, s.Points)
			}
		}
		for _, h := range documentOf[[]wire.HeadToHead](t, published, variant(catalog.HeadToHead, "")) {
			var first, second int
			for _, r := range results {
				a, b := placeFor(r, h.First.DriverID, h.TeamID), placeFor(r, h.Second.DriverID, h.TeamID)
				switch {
				case a == 0 || b == 0 || a == b:
				case a < b:
					first++
				default:
					second++
				}
			}
			if first != h.First.RaceAhead || second != h.Second.RaceAhead {
				t.Errorf("%d: %s and %s raced %d to %d, the results say %d to %d", year, h.First.DriverID, h.Second.DriverID, h.First.RaceAhead, h.Second.RaceAhead, first, second)
			}
			compared++
		}
		if year%10 != 4 && covered[year] == nil && os.Getenv("GRIDCAST_SEASONS") != "all" {
			continue // a download takes much longer than the rest of its season
		}
		season := bulk.Season{Year: year, Rounds: map[catalog.Name][]int64{}}
		for _, r := range results {
			if _, ok := published[catalog.Variant{Endpoint: catalog.Sessions, SessionKey: r.SessionKey}.Path()]; ok {
				season.Rounds[catalog.Sessions] = append(season.Rounds[catalog.Sessions], r.SessionKey)
			}
		}
		slices.Sort(season.Rounds[catalog.Sessions])
		zipped, err := season.Zip(published)
		if err == nil {
			err = check.Bulk(zipped, season.Named(published), nil)
		}
		must.Hold(t, err == nil, "download of %d: %v", year, err)
		bulktest.CheckKeys(t, zipped)
		for _, c := range covered[year] {
			if has, want := bulktest.Has(t, zipped, c.File, c.Column), c.From == strconv.Itoa(year); has != want {
				t.Errorf("%d: %s has a value of %s: %t; the documentation says %s from %s", year, c.File, c.Column, has, c.Fact, c.From)
			}
		}
	}
	for _, endpoint := range []catalog.Name{catalog.Careers, catalog.FormerCareers} {
		for _, c := range documentOf[[]wire.Career](t, published, catalog.Variant{Endpoint: endpoint, Type: catalog.DriversType}) {
			sameFigures(t, "all seasons: career of "+c.ID, c, whole[c.ID])
			delete(whole, c.ID)
		}
	}
	for id := range whole {
		t.Errorf("%s is in no career of all seasons", id)
	}
	identities := documentOf[[]wire.Identity](t, published, catalog.Variant{Endpoint: catalog.Identifiers, Type: catalog.DriversType})
	t.Logf("%d figures of 75 seasons agree with the results; %d drivers have identifiers", compared, len(identities))
}

func sameFigures(t *testing.T, what string, c wire.Career, want figures) {
	t.Helper()
	got := figures{c.Starts, c.Classified, c.Retired, c.Wins, c.Podiums, want.points}
	must.Hold(t, got == want && math.Abs(c.Points-want.points) <= .001,
		"%s: got %+v and %v points, the results say %+v", what, got, c.Points, want)
}

// placeFor returns the best place of a driver for a team in a race, 0 without one.
func placeFor(r wire.ResultRecord, driver, team string) (place int) {
	for _, row := range r.Race {
		if row.DriverID == driver && row.TeamID == team && row.Position > 0 && (place == 0 || row.Position < place) {
			place = row.Position
		}
	}
	return place
}

// documents returns the bodies of the published version, by path. The limit of a key allows no request for each of them.
func documents(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	store, err := dirblob.Open(folder)
	must.Do(t, err)
	base := must.Get(snapshots.LoadBase(t.Context(), store, nil))(t)
	bodies := map[string][]byte{}
	for _, entry := range base.Manifest.Entries {
		if bodies[entry.Path], err = base.Body(t.Context(), entry); err != nil {
			t.Fatal(err)
		}
	}
	return bodies
}

// documentOf returns the data of a published document; nothing if there is none.
func documentOf[T any](t *testing.T, documents map[string][]byte, v catalog.Variant) (none T) {
	t.Helper()
	body, ok := documents[v.Path()]
	if !ok {
		return none
	}
	return data[T](t, answer{body: body})
}

// compareCareers compares careers with the totals of F1DB. Points of constructors differ: F1DB counts those of the
// constructors' championship, which began in 1958 and took the best car of a race alone until 1978.
func compareCareers(t *testing.T, kind string, careers []wire.Career, want map[string]sourceRow) {
	t.Helper()
	// Alboreto and the first to set it share the fastest lap of a race, which F1DB counts for the first alone.
	shared := map[string]int{"michele-alboreto": 1, "ferrari": 1}
	for _, got := range careers {
		w := want[got.ID]
		delete(want, got.ID)
		counts := [...]int{got.Starts, got.Wins, got.Podiums, got.Poles, got.FastestLaps - shared[got.ID], got.Titles}
		if of := [...]int{w.TotalRaceStarts, w.TotalRaceWins, w.TotalPodiums, w.TotalPolePositions, w.TotalFastestLaps, w.TotalChampionshipWins}; counts != of {
			t.Errorf("%s: starts, wins, podiums, poles, fastest laps, titles are %v, F1DB has %v", got.ID, counts, of)
		}
		must.Hold(t, kind != "drivers" || math.Abs(got.Points-w.TotalPoints) <= .01,
			"%s: %v points, F1DB has %v", got.ID, got.Points, w.TotalPoints)
	}
	for id, w := range want {
		must.Hold(t, w.TotalRaceStarts <= 0, "%s has no career", id)
	}
}

func byYear(rows []sourceRow) map[int][]sourceRow {
	years := map[int][]sourceRow{}
	for _, r := range rows {
		years[r.Year] = append(years[r.Year], r)
	}
	return years
}

func sameRows(t *testing.T, what string, got, want []string) {
	t.Helper()
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("%s: got\n%s\nwant\n%s", what, g, w)
	}
}

// residentMiB reads the resident memory of a process, 0 where the system has no such file.
func residentMiB(t *testing.T, pid int) float64 {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if kib, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n := must.Get(strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(kib), " kB")))(t)
			return float64(n) / 1024
		}
	}
	return 0
}
