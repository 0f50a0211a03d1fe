package predict_test

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/builder/source/f1db"
)

const release = "../../../shared/data/f1db/f1db-json-splitted.zip"

var importRelease = sync.OnceValues(func() (*season.Archive, error) {
	a, _, err := f1db.Import(release, f1db.Options{})
	return a, err
})

// published is shared by the tests here: what it remembers saves time and changes nothing.
var published = predict.NewR2(predict.DefaultParams())

// allSeasons returns the whole F1DB release; the test is skipped where it is not there.
func allSeasons(t testing.TB) *season.Archive {
	t.Helper()
	if _, err := os.Stat(release); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no F1DB release at %s", release)
	}
	a, err := importRelease()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// explained returns the explanation of the forecast at the instant the grid was known.
func explained(t testing.TB, m *predict.R2, a *season.Archive, year int, gp season.GrandPrixID) predict.Explanation {
	t.Helper()
	r, ok := a.AsOf(time.Date(year+1, 1, 1, 0, 0, 0, 0, time.UTC)).Round(year, gp)
	if !ok {
		t.Fatalf("no %d %s", year, gp)
	}
	e, err := m.Explain(a.AsOf(r.GridKnownAt()), year, gp)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// near fails unless got is within tolerance of want.
func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s: got %.4f, want %.4f within %.4f", what, got, want, tolerance)
	}
}

// The reference values below come from an independent implementation of the same recipe in
// another language. It differs in what it does with a driver without a qualifying time and in
// the order in which new cars enter, hence the tolerances of a few thousandths.

func TestPaceOfAWorkedRace(t *testing.T) {
	e := explained(t, published, allSeasons(t), 2024, "abu-dhabi")

	// The level of all cars together means nothing, so cars are compared with McLaren's. The
	// lineages begin with Tyrrell (Mercedes) and Stewart (Red Bull).
	cars := map[season.TeamID][2]float64{"ferrari": {1.608, 1.464}, "tyrrell": {1.495, 1.493}, "stewart": {2.048, 1.981}}
	drivers := map[season.DriverID][2]float64{
		"max-verstappen": {-.710, -.653}, "lando-norris": {-.336, -.325}, "carlos-sainz-jr": {-.325, -.252}, "oscar-piastri": {-.101, -.048},
	}
	i := slices.IndexFunc(e.Paces, func(p predict.Pace) bool { return p.Team == "mclaren" })
	mclaren := e.Paces[i]
	found := 0
	for _, p := range e.Paces {
		if want, ok := cars[p.Team]; ok {
			near(t, string(p.Team)+" qualifying", p.Qualifying-mclaren.Qualifying, want[0]-1.423, .003)
			near(t, string(p.Team)+" race", p.Race-mclaren.Race, want[1]-1.337, .003)
			found++
		}
		if want, ok := drivers[p.Driver]; ok {
			near(t, string(p.Driver)+" qualifying", p.Qualifying, want[0], .015)
			near(t, string(p.Driver)+" race", p.Race, want[1], .015)
			found++
		}
	}
	if found != len(cars)+len(drivers) {
		t.Errorf("found %d of %d cars and drivers", found, len(cars)+len(drivers))
	}

	weekend := map[season.DriverID][2]float64{
		"lando-norris": {0, 0}, "oscar-piastri": {-.2654, -.2194}, "carlos-sainz-jr": {-.3630, -.4042},
		"max-verstappen": {-.4257, -.3928}, "pierre-gasly": {-1.0648, -.8527}, "george-russell": {-.6557, -.5729},
	}
	ratings := map[season.DriverID][2]float64{"lando-norris": {.7782, 1.3073}, "max-verstappen": {1.7429, .6925}}
	for _, s := range e.Starters {
		if want, ok := weekend[s.Driver]; ok {
			near(t, string(s.Driver)+" race pace", s.Features[predict.RacePace], want[0], .0015)
			near(t, string(s.Driver)+" qualifying pace", s.Features[predict.QualifyingPace], want[1], .0015)
		}
		if want, ok := ratings[s.Driver]; ok {
			near(t, string(s.Driver)+" rating", s.Features[predict.DriverRating], want[0], .0003)
			near(t, string(s.Driver)+" team rating", s.Features[predict.TeamRating], want[1], .0003)
		}
	}
}

func TestChancesOfWorkedRaces(t *testing.T) {
	for _, tc := range []struct {
		gp   season.GrandPrixID
		want map[season.DriverID]float64
	}{
		{"abu-dhabi", map[season.DriverID]float64{"lando-norris": .5747, "oscar-piastri": .1440, "max-verstappen": .1403, "carlos-sainz-jr": .0801, "george-russell": .0230}},
		{"miami", map[season.DriverID]float64{"max-verstappen": .8534, "charles-leclerc": .0740, "carlos-sainz-jr": .0279, "sergio-perez": .0227, "lando-norris": .0121}},
	} {
		e := explained(t, published, allSeasons(t), 2024, tc.gp)
		checkChances(t, e.Forecast, 20)
		for _, c := range e.Forecast.Candidates[:5] {
			near(t, string(tc.gp)+" "+string(c.Driver), c.Win, tc.want[c.Driver], .006)
		}
	}
}

func TestWeightsOfTheFits(t *testing.T) {
	a := allSeasons(t)

	// The first race of 2025, with nothing known but who was there last.
	e := explainedNext(t, published, a)
	for i, want := range []struct {
		races   int
		weights map[predict.Feature]float64
	}{
		{357, map[predict.Feature]float64{
			predict.GridSlot: .9791, predict.QualifyingGap: .1176, predict.OnPole: -.4139, predict.RacePace: 1.0481,
			predict.QualifyingPace: .4338, predict.DriverRating: .4644, predict.TeamRating: .4593, predict.TeamMateForm: .3405,
		}},
		{209, map[predict.Feature]float64{
			predict.GridSlot: .9472, predict.QualifyingGap: .2040, predict.OnPole: -.4483, predict.RacePace: .9739,
			predict.QualifyingPace: .4161, predict.DriverRating: .5174, predict.TeamRating: .4947, predict.TeamMateForm: .2524,
		}},
		{357, map[predict.Feature]float64{
			predict.GridSlot: .9615, predict.QualifyingGap: .0511, predict.OnPole: -.3745, predict.FinishForm: .2609,
			predict.PracticeGap: -.0534, predict.TeamMateForm: .4504, predict.TeamPoints: .6424, predict.Leads: -.0925,
			predict.TeamRating: .2263, predict.SmallestGap: .1203, predict.RacePace: 1.0219,
			predict.QualifyingPace: .4066, predict.DriverRating: .1726,
		}},
		{209, map[predict.Feature]float64{
			predict.GridSlot: .9271, predict.QualifyingGap: .1092, predict.OnPole: -.4036, predict.FinishForm: .3729,
			predict.PracticeGap: -.1069, predict.TeamMateForm: .2619, predict.TeamPoints: .5741, predict.Leads: .0073,
			predict.TeamRating: .2808, predict.SmallestGap: .2119, predict.RacePace: .9053,
			predict.QualifyingPace: .3826, predict.DriverRating: .1513,
		}},
	} {
		f := e.Fits[i]
		if f.Races != want.races {
			t.Errorf("fit %d: got %d races, want %d", i, f.Races, want.races)
		}
		near(t, "sharpness", f.Sharpness, 1.252, .001)
		for j, feature := range f.Features {
			if w, ok := want.weights[feature]; ok {
				near(t, feature.String(), f.Weights[j], w, .02)
			}
		}
	}
}

// explainedNext explains a forecast of a first race of the season after the archive, on the
// last grid known.
func explainedNext(t *testing.T, m *predict.R2, a *season.Archive) predict.Explanation {
	t.Helper()
	v := a.AsOf(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))
	last := v.Seasons[len(v.Seasons)-1]
	next := season.Round{Number: 1, GrandPrix: "next", Grid: last.Rounds[len(last.Rounds)-1].Grid}
	v.Seasons = append(slices.Clone(v.Seasons), season.Season{Year: last.Year + 1, Rounds: []season.Round{next}})
	e, err := m.Explain(v, last.Year+1, "next")
	if err != nil {
		t.Fatal(err)
	}
	return e
}
