package score_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gridcast/builder/predict"
	base "gridcast/builder/predict/score"
	"gridcast/builder/season"
	"gridcast/deploy/lab/score"
	"gridcast/deploy/must"
)

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
		scores[i].Score = base.Score{Confidence: float64(i+1) / 20, Hit: i >= 10, Podium: i % 4, Exact: i % 2, LogLoss: float64(i), Brier: .5}
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
	plain := make([]base.Score, 20)
	for i, s := range twenty() {
		plain[i] = s.Score
	}
	must.Equal(t, "the figures of the service", base.Metrics{
		WinnerHitPct: base.Estimate{Value: got.WinnerHitPct, Interval: got.Intervals.WinnerHitPct},
		PodiumPct:    base.Estimate{Value: got.PodiumPct, Interval: got.Intervals.PodiumPct},
		LogLoss:      base.Estimate{Value: got.LogLoss, Interval: got.Intervals.LogLoss},
		Brier:        base.Estimate{Value: got.Brier, Interval: got.Intervals.Brier},
	}, base.NewMetrics(plain))
}

func TestNoRacesHaveNoMetrics(t *testing.T) {
	if diff := cmp.Diff(score.Metrics{}, score.NewMetrics(nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
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
			scores[i].Score = base.Score{Confidence: said, Hit: hit, LogLoss: rng.Float64(), Brier: rng.Float64(), PodiumBrier: rng.Float64(), Podium: rng.IntN(4)}
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
