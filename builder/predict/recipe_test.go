package predict_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"sync"
	"testing"

	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/builder/source/f1db"
	"gridcast/deploy/must"
)

// release is the F1DB release of the reference values and the published figures.
const release = "../../../shared/data/f1db/f1db-2026-json-splitted.zip"

var importRelease = sync.OnceValues(func() (*season.Archive, error) {
	a, _, err := f1db.Import(release, f1db.Options{})
	return a, err
})

// published is shared by the tests of this file. Its caches save time and do not change results.
var published = predict.NewV2(predict.DefaultParams())

// allSeasons returns the whole F1DB release. It skips the test if the release is absent.
func allSeasons(t testing.TB) *season.Archive {
	t.Helper()
	if _, err := os.Stat(release); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no F1DB release at %s: put f1db-json-splitted.zip of a release after the Hungarian Grand Prix of 2026 there", release)
	}
	return must.Get(importRelease())(t)
}

// explained returns the explanation of the forecast at the instant at which the grid was known.
func explained(t testing.TB, m *predict.Ranked, a *season.Archive, year int, gp season.GrandPrixID) predict.Explanation {
	t.Helper()
	return must.Get(m.Explain(withGrid(t, a, year, gp), year, gp))(t)
}

// withGrid returns the view of the instant at which the grid was known.
func withGrid(t testing.TB, a *season.Archive, year int, gp season.GrandPrixID) *season.View {
	t.Helper()
	facts := a.Facts()
	r, ok := facts.Round(year, gp)
	must.Require(t, ok, "no %d %s", year, gp)
	return a.AsOf(r.GridKnownAt())
}

// near fails unless got is within tolerance of want.
func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	must.Hold(t, math.Abs(got-want) <= tolerance, "%s: got %.4f, want %.4f within %.4f", what, got, want, tolerance)
}

// The reference values below come from an independent implementation of the same recipe in another
// language. It treats drivers without a qualifying time differently, and adds new cars in another order.
// The tolerances of a few thousandths allow for both.

func TestPaceOfAWorkedRace(t *testing.T) {
	must.Long(t, "learns from all seasons")
	e := explained(t, published, allSeasons(t), 2024, "abu-dhabi")

	// The common level of all cars has no meaning, so that cars are compared with McLaren's. The
	// lineages begin with Tyrrell (Mercedes) and Stewart (Red Bull).
	cars := map[season.TeamID][2]float64{"ferrari": {1.608, 1.464}, "tyrrell": {1.495, 1.493}, "stewart": {2.048, 1.981}}
	drivers := map[season.DriverID][2]float64{
		"max-verstappen": {-.710, -.653}, "lando-norris": {-.336, -.325}, "carlos-sainz-jr": {-.325, -.252}, "oscar-piastri": {-.101, -.048},
	}
	paces := must.Get(published.Paces(withGrid(t, allSeasons(t), 2024, "abu-dhabi"), 2024, "abu-dhabi"))(t)
	i := slices.IndexFunc(paces, func(p predict.Pace) bool { return p.Team == "mclaren" })
	mclaren := paces[i]
	found := 0
	for _, p := range paces {
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
	must.Hold(t, found == len(cars)+len(drivers), "found %d of %d cars and drivers", found, len(cars)+len(drivers))

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

// worked is a race with all values of the reference. Each driver has the chances by R2, by the fits
// without ratings, by qualifying alone and by the mixture, and the chance of a podium. Zeros are left
// out. The chances of a podium are this package's own: TestPlacesAreThoseOfDraws checks how they follow
// from the others.
type worked struct {
	year    int
	gp      season.GrandPrixID
	weights predict.Weights
	drivers map[season.DriverID][5]float64
	podium  [3]season.DriverID
}

var workedRaces = []worked{
	{2014, "australia", predict.Weights{.1, .8, .1}, map[season.DriverID][5]float64{
		"lewis-hamilton":  {.6225, .6203, .5425, .6270, .9068},
		"nico-rosberg":    {.1680, .2243, .1145, .2087, .7324},
		"fernando-alonso": {.1031, .0623, .0194, .0597, .4797},
	}, [3]season.DriverID{"lewis-hamilton", "nico-rosberg", "fernando-alonso"}},
	{2022, "bahrain", predict.Weights{.1, .8, .1}, map[season.DriverID][5]float64{
		"max-verstappen":  {.5502, .4853, .2726, .4715, .8695},
		"charles-leclerc": {.2238, .3209, .4590, .3261, .7761},
		"carlos-sainz-jr": {.0720, .1013, .1340, .1023, .5230},
	}, [3]season.DriverID{"max-verstappen", "charles-leclerc", "carlos-sainz-jr"}},
	{2022, "saudi-arabia", predict.Weights{.1753, .7138, .1109}, map[season.DriverID][5]float64{
		"charles-leclerc": {.2885, .3835, .3451, .3735, .7782},
		"max-verstappen":  {.2951, .2359, .0569, .2170, .6606},
		"sergio-perez":    {.1702, .1497, .4188, .1777, .5363},
		"carlos-sainz-jr": {.1383, .1514, .1037, .1480, .5410},
	}, [3]season.DriverID{"charles-leclerc", "max-verstappen", "carlos-sainz-jr"}},
	{2022, "miami", predict.Weights{.3941, .5491, .0568}, map[season.DriverID][5]float64{
		"charles-leclerc": {.3408, .4144, .4757, .3943, .8168},
		"max-verstappen":  {.4319, .3631, .1197, .3722, .8228},
	}, [3]season.DriverID{}},
	{2022, "abu-dhabi", predict.Weights{.8605, .1116, .0280}, map[season.DriverID][5]float64{
		"max-verstappen": {.7068, .7048, .5007, .7029, .9269},
		"sergio-perez":   {.0923, .0884, .2316, .0947, .5558},
	}, [3]season.DriverID{}},
	{2024, "miami", predict.Weights{.8467, .1112, .0421}, map[season.DriverID][5]float64{
		"max-verstappen":  {.8486, .7982, .4583, .8334, .9673},
		"charles-leclerc": {.0780, .0975, .2494, .0852, .6823},
	}, [3]season.DriverID{}},
	{2024, "abu-dhabi", predict.Weights{.8519, .1067, .0414}, map[season.DriverID][5]float64{
		"lando-norris":   {.5726, .6374, .4800, .5801, .8968},
		"oscar-piastri":  {.1436, .1445, .2180, .1475, .6568},
		"max-verstappen": {.1407, .0996, .0522, .1313, .5264},
	}, [3]season.DriverID{}},
}

func TestChancesOfWorkedRaces(t *testing.T) {
	must.Long(t, "learns from all seasons")
	const tolerance = .002
	a := allSeasons(t)
	for _, w := range workedRaces {
		name := fmt.Sprint(w.year, " ", w.gp, " ")
		e := explained(t, published, a, w.year, w.gp)
		checkChances(t, e.Forecast, len(e.Starters))
		for j, want := range w.weights {
			near(t, fmt.Sprint(name, "weight ", j), e.Weights[j], want, tolerance)
		}
		found := 0
		for _, s := range e.Starters {
			want, ok := w.drivers[s.Driver]
			if !ok {
				continue
			}
			found++
			for j := range 3 {
				near(t, fmt.Sprint(name, s.Driver, " expert ", j), s.Experts[j], want[j], tolerance)
			}
			c := e.Forecast.Candidates[slices.IndexFunc(e.Forecast.Candidates, func(c predict.Candidate) bool { return c.Driver == s.Driver })]
			near(t, fmt.Sprint(name, s.Driver), c.Win, want[3], tolerance)
			near(t, fmt.Sprint(name, s.Driver, " podium"), c.Podium, want[4], tolerance)
		}
		must.Hold(t, found == len(w.drivers), "%s: found %d of %d drivers", name, found, len(w.drivers))
		if w.podium != [3]season.DriverID{} && e.Forecast.Podium != w.podium {
			t.Errorf("%s: picked %v, want %v", name, e.Forecast.Podium, w.podium)
		}
	}
}

// TestR2StaysToBeHad: the model before the mixture is still available, and predicts by the first expert alone.
func TestR2StaysToBeHad(t *testing.T) {
	v := atGrid(t, embedded(t), 2012, "italy")
	e := must.Get(ofEmbedded.Explain(v, 2012, "italy"))(t)
	f := forecast(t, must.Get(predict.ByName("r2"))(t), v, 2012, "italy")
	for _, s := range e.Starters {
		c := f.Candidates[slices.IndexFunc(f.Candidates, func(c predict.Candidate) bool { return c.Driver == s.Driver })]
		near(t, string(s.Driver), c.Win, s.Experts[0], 2e-6) // chances are millionths
	}
	must.Fail(t, "a name that no model has", must.Err(predict.ByName("r3")))
	for _, name := range predict.Names {
		must.Succeed(t, name, must.Err(predict.ByName(name)))
	}
}

func TestWeightsOfTheFits(t *testing.T) {
	must.Long(t, "learns from all seasons")
	a := allSeasons(t)

	e := explained(t, published, a, 2025, "australia")
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
		must.Hold(t, f.Races == want.races, "fit %d: got %d races, want %d", i, f.Races, want.races)
		near(t, "sharpness", f.Sharpness, 1.252, .001)
		for j, feature := range f.Features {
			if w, ok := want.weights[feature]; ok {
				near(t, feature.String(), f.Weights[j], w, .02)
			}
		}
	}
}

// TestWeightsOfTheSmallFits checks the fits without ratings and of qualifying alone.
func TestWeightsOfTheSmallFits(t *testing.T) {
	order := []predict.Feature{predict.GridSlot, predict.QualifyingGap, predict.OnPole, predict.RacePace, predict.QualifyingPace, predict.TeamMateForm}
	for _, tc := range []struct {
		year int
		gp   season.GrandPrixID
		fits [3][7]float64 // sharpness, then the weights in order
	}{
		{2024, "bahrain", [3][7]float64{
			{1.2840, .8735, .2458, -.3250, 1.5024, .6637, .7771},
			{1.2840, .8031, .3703, -.3058, 1.5447, .6190, .8209},
			{1.1912, 1.4109, 1.5024, -1.0712},
		}},
		{2022, "bahrain", [3][7]float64{
			{1.2214, .9072, .2086, -.3145, 1.1660, .7582, .6691},
			{1.1912, .8496, .4256, -.3601, 1.0487, .6720, .6884},
			{1.1912, 1.4402, 1.3721, -1.0667},
		}},
	} {
		e := explained(t, published, allSeasons(t), tc.year, tc.gp)
		for i, want := range tc.fits {
			f := e.Fits[4+i]
			near(t, fmt.Sprint(tc.year, " fit ", i, " sharpness"), f.Sharpness, want[0], .001)
			for j, feature := range f.Features {
				near(t, fmt.Sprint(tc.year, " fit ", i, " ", feature), f.Weights[j], want[1+slices.Index(order, feature)], .005)
			}
		}
	}
}
