package f1db_test

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/season"
	"gridcast/builder/source/f1db"
	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/must"
)

// readRelease is a release with all that the importer said about it.
type readRelease struct {
	archive     *season.Archive
	report      f1db.Report
	done, total int // bytes
	err         error
}

// imported is the whole release, read once for all tests.
var imported struct {
	once sync.Once
	readRelease
}

func release(t testing.TB) string {
	t.Helper()
	must.Long(t, "reads a whole release")
	return sourcetest.Path(t, sourcetest.F1DB2024)
}

func wholeArchive(t testing.TB) *season.Archive { return whole(t).archive }

func whole(t testing.TB) *readRelease {
	t.Helper()
	path := release(t)
	imported.once.Do(func() { imported.readRelease = importAll(path) })
	if imported.err != nil {
		t.Fatal(imported.err)
	}
	return &imported.readRelease
}

// importAll imports all seasons of a release.
func importAll(path string) (r readRelease) {
	r.archive, r.report, r.err = f1db.Import(path, f1db.Options{Progress: func(_ string, d, n int) { r.done, r.total = d, n }})
	return r
}

func wholeRelease(t testing.TB) season.Facts {
	t.Helper()
	return wholeArchive(t).Facts()
}

// rawRow holds the keys of the release that the checks below read without the importer.
type rawRow struct {
	RaceID               int
	Year, Round          int
	PositionNumber       int
	DriverID             season.DriverID
	ConstructorID        season.TeamID
	EngineManufacturerID season.EngineID
	Points               float64
}

func rawTable(t *testing.T, name string) []rawRow {
	t.Helper()
	z := must.Get(zip.OpenReader(release(t)))(t)
	defer z.Close()
	f := must.Get(z.Open(name))(t)
	defer f.Close()
	var rows []rawRow
	must.Do(t, json.NewDecoder(f).Decode(&rows))
	return rows
}

func TestFinalStandingsEqualSeasonFiles(t *testing.T) {
	facts := wholeRelease(t)
	drivers, teams := make(map[int][]season.DriverStanding), make(map[int][]season.TeamStanding)
	for _, r := range rawTable(t, "f1db-seasons-driver-standings.json") {
		drivers[r.Year] = append(drivers[r.Year], season.DriverStanding{Driver: r.DriverID, Position: r.PositionNumber, Points: r.Points})
	}
	for _, r := range rawTable(t, "f1db-seasons-constructor-standings.json") {
		teams[r.Year] = append(teams[r.Year], season.TeamStanding{
			Team: r.ConstructorID, Engine: r.EngineManufacturerID, Position: r.PositionNumber, Points: r.Points,
		})
	}
	rows := 0
	for _, s := range facts.Seasons {
		last := s.Rounds[len(s.Rounds)-1]
		diff := cmp.Diff(drivers[s.Year], last.DriverStandings)
		must.Hold(t, diff == "", "%d drivers (-season file +archive):\n%s", s.Year, diff)
		if diff := cmp.Diff(teams[s.Year], last.TeamStandings); diff != "" {
			t.Errorf("%d teams (-season file +archive):\n%s", s.Year, diff)
		}
		rows += len(last.DriverStandings) + len(last.TeamStandings)
	}
	got, want := rows, 1637+700
	must.Hold(t, got == want, "compared %d standings, want %d", got, want)
	t.Logf("%d seasons, %d standings equal", len(facts.Seasons), rows)
}

func TestWinnersEqualRaceResults(t *testing.T) {
	facts := wholeRelease(t)
	type round struct{ year, number int }
	winners := make(map[round]season.DriverID) // the first shown
	for _, r := range rawTable(t, "f1db-races-race-results.json") {
		if key := (round{r.Year, r.Round}); r.PositionNumber == 1 && winners[key] == "" {
			winners[key] = r.DriverID
		}
	}
	races := 0
	for _, s := range facts.Seasons {
		for _, r := range s.Rounds {
			races++
			if got, want := r.Winner().Driver, winners[round{s.Year, r.Number}]; got != want {
				t.Errorf("%d round %d: winner %s, want %s", s.Year, r.Number, got, want)
			}
		}
	}
	must.Hold(t, races == 1125, "compared %d winners, want 1125", races)
	t.Logf("%d winners equal", races)
}

// TestFormsOfARelease: a zip and the folder with its files give the same facts, and the report counts them.
func TestFormsOfARelease(t *testing.T) {
	inZip, inFolder := importAll(zipped(t, world(t))), importAll(folder(t, world(t)))
	must.Do(t, errors.Join(inZip.err, inFolder.err))
	must.Equal(t, "facts", inZip.archive.Facts(), inFolder.archive.Facts())
	for name, form := range map[string]*readRelease{"whole": whole(t), "zip": &inZip, "folder": &inFolder} {
		must.Hold(t, form.done == form.total && form.done != 0, "%s: progress ended at %d of %d", name, form.done, form.total)
	}
	if r := whole(t).report; r.Seasons != 75 || r.Rounds != 1125 || r.Results != 26811 {
		t.Errorf("report says %d seasons, %d rounds, %d results, want 75, 1125, 26811", r.Seasons, r.Rounds, r.Results)
	}
}

// TestKnownRows checks the unusual rows of the data set.
func TestKnownRows(t *testing.T) {
	facts := wholeRelease(t)
	round := func(year, number int) *season.Round {
		for _, s := range facts.Seasons {
			for i := range s.Rounds {
				if s.Year == year && s.Rounds[i].Number == number {
					return &s.Rounds[i]
				}
			}
		}
		t.Fatalf("no round %d of %d", number, year)
		return nil
	}

	t.Run("a shared win", func(t *testing.T) {
		r := round(1951, 4)
		first, second := r.Results[0], r.Results[1]
		must.Hold(t, first.Driver == "luigi-fagioli" && first.Position == 1 && !first.Shared, "got %+v, want the driver of the car", first)
		if second.Driver != "juan-manuel-fangio" || second.Position != 1 || !second.Shared || second.Team != first.Team {
			t.Errorf("got %+v, want the driver who took it over", second)
		}
		if r.Winner().Driver != first.Driver {
			t.Errorf("winner %s, want the first shown", r.Winner().Driver)
		}
	})
	t.Run("relief drivers have no entry", func(t *testing.T) {
		e := round(1950, 1).Entry("tony-rolt")
		must.Hold(t, e == nil, "got %+v, want none: he took over the car during the race", e)
	})
	t.Run("who did not qualify has no entry", func(t *testing.T) {
		e := round(1989, 1).Entry("bernd-schneider")
		must.Hold(t, e != nil, "no entry for a driver who qualified")
		if e := round(1989, 2).Entry("bernd-schneider"); e != nil {
			t.Errorf("got %+v, want none", e)
		}
	})
	t.Run("pit lane", func(t *testing.T) {
		for _, g := range round(2018, 10).Grid {
			if g.Driver == "brendon-hartley" {
				must.Hold(t, g.Position == 0, "got grid position %d, want 0", g.Position)
				return
			}
		}
		t.Error("brendon-hartley is not on the grid")
	})
	t.Run("sprints of 2021 to 2024", func(t *testing.T) {
		held := make(map[int]int)
		for _, s := range facts.Seasons {
			for _, r := range s.Rounds {
				if r.Sprint != (len(r.SprintResults) > 0) {
					t.Errorf("%d round %d: sprint %v, %d sprint results", s.Year, r.Number, r.Sprint, len(r.SprintResults))
				}
				if r.Sprint {
					held[s.Year]++
				}
			}
		}
		if diff := cmp.Diff(map[int]int{2021: 3, 2022: 3, 2023: 6, 2024: 6}, held); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("hours are known in 2024 only", func(t *testing.T) {
		for _, s := range facts.Seasons {
			for _, r := range s.Rounds {
				if got, want := r.Provisional(), s.Year != 2024; got != want {
					t.Errorf("%d round %d: provisional %v, want %v", s.Year, r.Number, got, want)
				}
			}
		}
	})
	t.Run("qualifying in segments and in one session", func(t *testing.T) {
		q := round(2024, 24).Qualifying[0]
		must.Hold(t, q.Time == 0 && q.Segments[2] == 82595*time.Millisecond, "got %+v", q)
		if q := round(1988, 1).Qualifying[0]; q.Time == 0 || q.Segments[0] != 0 {
			t.Errorf("got %+v", q)
		}
	})
	t.Run("lineages", func(t *testing.T) {
		v := wholeArchive(t).AsOf(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC))
		for _, test := range []struct {
			team season.TeamID
			year int
			want season.TeamID
		}{
			{"rb", 2024, "minardi"},
			{"toro-rosso", 2010, "minardi"},
			{"alphatauri", 2021, "minardi"},
			{"aston-martin", 2024, "jordan"},
			{"alpine", 2024, "toleman"},
			{"mclaren", 2024, "mclaren"},
		} {
			got := v.Root(test.team, test.year)
			must.Hold(t, got == test.want, "root of %s in %d: %s, want %s", test.team, test.year, got, test.want)
		}
	})
}

// TestEntriesCoverStarters checks that every driver who started in an own car has an entry.
func TestEntriesCoverStarters(t *testing.T) {
	missing := 0
	for _, s := range wholeRelease(t).Seasons {
		for _, r := range s.Rounds {
			for i := range r.Results {
				row := &r.Results[i]
				if row.Started() && !row.Shared && r.Entry(row.Driver) == nil {
					missing++
					t.Errorf("%d round %d: %s started without an entry", s.Year, r.Number, row.Driver)
				}
			}
		}
	}
	t.Logf("%d starters without an entry", missing)
}

func BenchmarkImport(b *testing.B) {
	path := release(b)
	for b.Loop() {
		must.Get2(f1db.Import(path, f1db.Options{}))(b)
	}
}
