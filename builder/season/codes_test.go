package season_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/season"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
)

var (
	codePattern = regexp.MustCompile(`^[A-Z]{3}$`)
	forever     = at("2100-01-01T00:00:00Z")
)

func TestCodesAreAbbreviationsSince2007(t *testing.T) {
	v := embedded(t).AsOf(forever)
	codes := 0
	for _, s := range v.Seasons {
		for id, code := range v.Codes(s.Year) {
			codes++
			if want := v.Drivers[id].Abbreviation; code != want {
				t.Errorf("%d: %s has code %s, want %s", s.Year, id, code, want)
			}
		}
	}
	must.Hold(t, codes >= 18*20, "only %d codes were compared", codes)
	t.Logf("%d codes", codes)
}

// TestCodesDoNotDependOnTheArchive compares the codes of the embedded seasons with those of all
// seasons, which count more earlier starts.
func TestCodesDoNotDependOnTheArchive(t *testing.T) {
	few, all := embedded(t).AsOf(forever), whole(t).AsOf(forever)
	for _, s := range few.Seasons {
		diff := cmp.Diff(all.Codes(s.Year), few.Codes(s.Year))
		must.Hold(t, diff == "", "%d (-all +embedded):\n%s", s.Year, diff)
	}
}

// TestCodesOfAnotherHistory: without a start in any season, identifiers alone decide.
func TestCodesOfAnotherHistory(t *testing.T) {
	v := whole(t).AsOf(forever)
	other := *v
	other.Seasons = slices.Clone(v.Seasons)
	for i := range other.Seasons {
		other.Seasons[i].Rounds = slices.Clone(v.Seasons[i].Rounds)
		for j := range other.Seasons[i].Rounds {
			other.Seasons[i].Rounds[j].Results = nil
		}
	}
	differ := 0
	for _, s := range v.Seasons {
		if !cmp.Equal(other.Codes(s.Year), v.Codes(s.Year)) {
			differ++
		}
	}
	must.Hold(t, differ != 0, "codes without earlier starts are the same in all seasons, want a difference")
}

func TestCodesOfAllSeasons(t *testing.T) {
	v := whole(t).AsOf(forever)
	changed := 0
	for _, s := range v.Seasons {
		taken := make(map[string]season.DriverID)
		codes := v.Codes(s.Year)
		for id, code := range codes {
			if !codePattern.MatchString(code) {
				t.Errorf("%d: %s has code %q", s.Year, id, code)
			}
			if other, ok := taken[code]; ok {
				t.Errorf("%d: %s and %s have code %s", s.Year, id, other, code)
			}
			taken[code] = id
			if code != v.Drivers[id].Abbreviation {
				changed++
			}
		}
		for _, r := range s.Rounds {
			for _, row := range r.Results {
				if codes[row.Driver] == "" {
					t.Errorf("%d round %d: %s has no code", s.Year, r.Number, row.Driver)
				}
			}
			for _, row := range r.DriverStandings {
				if codes[row.Driver] == "" {
					t.Errorf("%d round %d: %s of the standings has no code", s.Year, r.Number, row.Driver)
				}
			}
		}
	}
	t.Logf("%d codes differ from the abbreviation", changed)
}

// TestCodesStay walks through every season and checks that no code changes.
func TestCodesStay(t *testing.T) {
	a := whole(t)
	step := 1
	if testing.Short() {
		step = 10
	}
	f := a.Facts()
	for i := 0; i < len(f.Seasons); i += step {
		s := &f.Seasons[i]
		var instants []time.Time
		for j := range s.Rounds {
			for _, p := range parts(&s.Rounds[j]) {
				if p.name == "qualifying" || p.name == "grid" || p.name == "result" { // other sessions give no codes
					instants = append(instants, p.at)
				}
			}
		}
		slices.SortFunc(instants, time.Time.Compare)
		var before map[season.DriverID]string
		for _, now := range slices.CompactFunc(instants, time.Time.Equal) {
			codes := a.AsOf(now).Codes(s.Year)
			for id, code := range before {
				if codes[id] != code {
					t.Fatalf("%d: the code of %s changed from %s to %q at %s", s.Year, id, code, codes[id], now)
				}
			}
			before = codes
		}
	}
}

// TestCodeRules checks the codes of the drivers of one race, in the order of their starts.
func TestCodeRules(t *testing.T) {
	driver := func(id, abbreviation, surname string) season.Driver {
		return season.Driver{ID: season.DriverID(id), Abbreviation: abbreviation, LastName: surname}
	}
	many := make([]season.Driver, 0, 40)
	for i := range 40 {
		many = append(many, driver(fmt.Sprintf("li-%02d", i), "LI", "Li"))
	}
	golden.Table(t, "testdata/codes.txt", func(input string) string {
		var drivers []season.Driver
		starts := map[season.DriverID]int{} // in the season before
		for line := range strings.SplitSeq(input, "; ") {
			words := strings.Split(line, ",")
			drivers = append(drivers, driver(words[0], words[1], words[2]))
			if len(words) > 3 {
				starts[season.DriverID(words[0])] = must.Get(strconv.Atoi(words[3]))(t)
			}
		}
		var codes []string
		for id, code := range race(t, drivers, starts).Codes(2020) {
			codes = append(codes, fmt.Sprint(id, " ", code))
		}
		slices.Sort(codes)
		return strings.Join(codes, ", ")
	})
	t.Run("more than the letters of a name give", func(t *testing.T) {
		codes := race(t, many, nil).Codes(2020)
		got := len(slices.Compact(slices.Sorted(maps.Values(codes))))
		must.Hold(t, got == 40, "%d different codes for 40 drivers: %v", got, codes)
	})
	t.Run("unknown season", func(t *testing.T) {
		codes := race(t, many, nil).Codes(2030)
		must.Hold(t, codes == nil, "got %v", codes)
	})
}

// race returns the view of a season with one race of the drivers. In the season before, each driver has
// as many starts as starts gives.
func race(t *testing.T, drivers []season.Driver, starts map[season.DriverID]int) *season.View {
	t.Helper()
	f := season.Facts{
		Drivers:  make(map[season.DriverID]season.Driver),
		Circuits: map[season.CircuitID]season.Circuit{"c": {ID: "c"}},
	}
	now := season.Round{Number: 1, GrandPrix: "g", Name: "G", Circuit: "c", Date: at("2020-06-01T00:00:00Z")}
	for i, d := range drivers {
		f.Drivers[d.ID] = d
		now.Entries = append(now.Entries, season.Entry{Driver: d.ID, Number: i + 1})
	}
	earlier := season.Season{Year: 2019}
	for n := 1; n <= 3; n++ {
		r := season.Round{
			Number: n, GrandPrix: season.GrandPrixID(fmt.Sprint("g", n)), Name: "G", Circuit: "c",
			Date: at("2019-06-01T00:00:00Z").AddDate(0, 0, 7*n),
		}
		for id, count := range starts {
			row := season.Result{Driver: id, Outcome: season.DidNotStart}
			if count >= n {
				row.Outcome = season.DidNotFinish
			}
			r.Results = append(r.Results, row)
		}
		earlier.Rounds = append(earlier.Rounds, r)
	}
	f.Seasons = []season.Season{earlier, {Year: 2020, Rounds: []season.Round{now}}}
	a := must.Get(season.New(f))(t)
	return a.AsOf(forever)
}

func BenchmarkCodes(b *testing.B) {
	v := whole(b).AsOf(forever)
	for b.Loop() {
		v.Codes(2024)
	}
}
