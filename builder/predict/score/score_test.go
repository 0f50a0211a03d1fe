package score_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gridcast/builder/predict"
	"gridcast/builder/predict/score"
	"gridcast/builder/season"
	"gridcast/deploy/must"
)

func TestScore(t *testing.T) {
	forecast := predict.Forecast{
		Candidates: []predict.Candidate{
			{Driver: "ann", Win: .6, Podium: .9}, {Driver: "bob", Win: .3, Podium: .8}, {Driver: "cat", Win: .1, Podium: .7}, {Driver: "dan", Win: 0, Podium: .6},
		},
		Podium: [3]season.DriverID{"ann", "bob", "cat"},
	}
	result := func(first, second, third season.DriverID) *season.Round {
		return &season.Round{Results: []season.Result{
			{Driver: first, Position: 1}, {Driver: second, Position: 2}, {Driver: third, Position: 3},
		}}
	}
	for _, tc := range []struct {
		name  string
		round *season.Round
		want  score.Score
	}{
		{"all right", result("ann", "bob", "cat"), score.Score{Hit: true, Podium: 3, Exact: 3, LogLoss: -math.Log(.6), Brier: .16 + .09 + .01, PodiumBrier: .50}},
		{"podium in another order", result("bob", "ann", "cat"), score.Score{Podium: 3, Exact: 1, LogLoss: -math.Log(.3), Brier: .36 + .49 + .01, PodiumBrier: .50}},
		{"one of three", result("ann", "dan", "eve"), score.Score{Hit: true, Podium: 1, Exact: 1, LogLoss: -math.Log(.6), Brier: .16 + .09 + .01, PodiumBrier: 2.30}},
		{"winner held for impossible", result("dan", "bob", "eve"), score.Score{Podium: 1, Exact: 1, LogLoss: -math.Log(1e-6), Brier: .36 + .09 + .01 + 1, PodiumBrier: 2.50}},
		{"winner no candidate", result("eve", "dan", "fay"), score.Score{LogLoss: -math.Log(1e-6), Brier: .36 + .09 + .01 + 1, PodiumBrier: 4.10}},
	} {
		tc.want.Confidence = .6
		got := score.New(forecast, tc.round)
		must.Equal(t, tc.name, tc.want, got, cmpopts.EquateApprox(0, 1e-12), cmpopts.IgnoreFields(got, "Podiums"))
	}
}

// TestScoreOfWholeOrders: a car that does not finish counts as behind the last place.
func TestScoreOfWholeOrders(t *testing.T) {
	r := &season.Round{Results: []season.Result{{Driver: "ann", Position: 1}, {Driver: "eve", Position: 2}, {Driver: "bob"}}}
	got := score.New(predict.Forecast{Candidates: []predict.Candidate{
		{Driver: "ann", Win: .6, Podium: .9, Places: []float64{.6, .3}, Out: .1}, {Driver: "bob", Win: .4, Podium: .8, Places: []float64{.4, .4}, Out: .2},
	}}, r)
	if want := (.16 + .01 + .16 + .64) / 4; math.Abs(got.RPS-want) > 1e-12 {
		t.Errorf("got a ranked probability score of %v, want %v", got.RPS, want)
	}
	if want := .01 + .64 + 1; math.Abs(got.PointsBrier-want) > 1e-12 { // eve was no candidate
		t.Errorf("got a Brier score of the points of %v, want %v", got.PointsBrier, want)
	}
	if bins := score.PodiumReliability([]score.Score{got}); len(bins) != 2 || bins[0].Said != .8 || bins[0].Won != 0 || bins[1].Said != .9 || bins[1].Won != 1 {
		t.Errorf("got %+v, want a bin for each driver", bins)
	}
}

// twenty are scores whose sums are easy: half are hits, with confidence 0.05 to 1.
func twenty() []score.Score {
	scores := make([]score.Score, 20)
	for i := range scores {
		scores[i] = score.Score{Confidence: float64(i+1) / 20, Hit: i >= 10, Podium: i % 4, Exact: i % 2, LogLoss: float64(i), Brier: .5}
	}
	return scores
}

func TestMetrics(t *testing.T) {
	got := score.NewMetrics(twenty())
	want := score.Metrics{
		WinnerHitPct: 50, PodiumPct: 50, ExactPodiumPct: 50. / 3, LogLoss: 9.5, Brier: .5,
		// The bins say .075, .175 … .975; the lower half won nothing, the upper half all.
		ECEPct: 100 * (.075 + .175 + .275 + .375 + .475 + .425 + .325 + .225 + .125 + .025) / 10,
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9), cmpopts.IgnoreFields(got, "Intervals")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The mean of 0 to 19 has a standard error of 1.29.
	if i := got.Intervals.LogLoss; math.Abs(i[0]-(9.5-2.53)) > .35 || math.Abs(i[1]-(9.5+2.53)) > .35 {
		t.Errorf("log-loss interval: got %v, want about [6.97 12.03]", i)
	}
	if diff := cmp.Diff(got, score.NewMetrics(twenty())); diff != "" {
		t.Errorf("a second run differs:\n%s", diff)
	}
}

func TestNoRacesHaveNoMetrics(t *testing.T) {
	if diff := cmp.Diff(score.Metrics{}, score.NewMetrics(nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReliabilityHasBinsOfEqualCount(t *testing.T) {
	for _, n := range []int{1, 3, 10, 19, 20, 305} {
		scores := make([]score.Score, n)
		for i := range scores {
			scores[i] = score.Score{Confidence: float64(n-i) / float64(n+1)}
		}
		table := score.Reliability(scores)
		if len(table) != min(n, 10) {
			t.Fatalf("%d races: got %d bins, want %d", n, len(table), min(n, 10))
		}
		total, last := 0, 0.0
		for _, b := range table {
			total += b.Races
			if b.Races < n/10 || b.Races > n/10+1 || b.Said <= last {
				t.Errorf("%d races: odd bin %+v", n, b)
			}
			last = b.Said
		}
		if total != n {
			t.Errorf("%d races: got %d in the bins", n, total)
		}
	}
}

func TestACalibratedForecasterIsNotFreeOfError(t *testing.T) {
	scores := make([]score.Score, 300)
	for i := range scores {
		scores[i].Confidence = .5
	}
	// The mean absolute deviation of a share of 30 around one half is 7.2 %.
	got := score.CalibratedECE(scores)
	if math.Abs(got.Mean-7.2) > .3 || got.Interval[0] > 5 || got.Interval[1] < 9 {
		t.Errorf("got %+v, want a mean of about 7.2", got)
	}
}

// TestIntervalsHoldTheirEstimate fails for a plain bootstrap of the calibration error, because
// races drawn twice make a forecaster look worse.
func TestIntervalsHoldTheirEstimate(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for _, n := range []int{10, 35, 340} {
		scores := make([]score.Score, n)
		for i := range scores {
			said := .2 + .6*rng.Float64()
			hit := rng.Float64() < said
			scores[i] = score.Score{Confidence: said, Hit: hit, LogLoss: rng.Float64(), Brier: rng.Float64(), PodiumBrier: rng.Float64(), Podium: rng.IntN(4)}
		}
		m := score.NewMetrics(scores)
		for name, v := range map[string]struct {
			estimate float64
			interval score.Interval
		}{
			"winner":       {m.WinnerHitPct, m.Intervals.WinnerHitPct},
			"podium":       {m.PodiumPct, m.Intervals.PodiumPct},
			"log-loss":     {m.LogLoss, m.Intervals.LogLoss},
			"brier":        {m.Brier, m.Intervals.Brier},
			"podium brier": {m.PodiumBrier, m.Intervals.PodiumBrier},
			"ece":          {m.ECEPct, m.Intervals.ECEPct},
		} {
			if v.estimate < v.interval[0] || v.estimate > v.interval[1] {
				t.Errorf("%d races, %s: %v does not hold %v", n, name, v.interval, v.estimate)
			}
		}
		for _, b := range score.Reliability(scores) {
			if b.Won < b.Interval[0] || b.Won > b.Interval[1] || b.Interval[0] < 0 || b.Interval[1] > 1 {
				t.Errorf("%d races: the interval of %+v", n, b)
			}
		}
	}
}
