package score_test

import (
	"math"
	"testing"

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
	for _, tc := range []struct {
		name   string
		podium season.Podium
		want   score.Score
	}{
		{"all right", season.Podium{"ann", "bob", "cat"}, score.Score{Hit: true, Podium: 3, Exact: 3, LogLoss: -math.Log(.6), Brier: .16 + .09 + .01, PodiumBrier: .50}},
		{"podium in another order", season.Podium{"bob", "ann", "cat"}, score.Score{Podium: 3, Exact: 1, LogLoss: -math.Log(.3), Brier: .36 + .49 + .01, PodiumBrier: .50}},
		{"one of three", season.Podium{"ann", "dan", "eve"}, score.Score{Hit: true, Podium: 1, Exact: 1, LogLoss: -math.Log(.6), Brier: .16 + .09 + .01, PodiumBrier: 2.30}},
		{"winner held for impossible", season.Podium{"dan", "bob", "eve"}, score.Score{Podium: 1, Exact: 1, LogLoss: -math.Log(1e-6), Brier: .36 + .09 + .01 + 1, PodiumBrier: 2.50}},
		{"winner no candidate", season.Podium{"eve", "dan", "fay"}, score.Score{LogLoss: -math.Log(1e-6), Brier: .36 + .09 + .01 + 1, PodiumBrier: 4.10}},
	} {
		tc.want.Confidence = .6
		must.Equal(t, tc.name, tc.want, score.Of(forecast, tc.podium), cmpopts.EquateApprox(0, 1e-12))
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
		must.Hold(t, total == n, "%d races: got %d in the bins", n, total)
	}
}
