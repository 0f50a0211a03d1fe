package backtest_test

import (
	"slices"
	"testing"

	"gridcast/deploy/lab/backtest"
	"gridcast/deploy/lab/score"
	"gridcast/deploy/must"
)

func TestPairingShowsASmallSteadyDifference(t *testing.T) {
	scores := make([]score.Score, 20)
	for i := range scores {
		scores[i].Hit, scores[i].LogLoss = i >= 10, float64(i)
	}
	better := slices.Clone(scores)
	for i := range better {
		better[i].LogLoss -= .1 + .01*float64(i%3)
	}
	d := backtest.Compare(better, scores)
	must.Hold(t, d.LogLoss.Mean <= -.1 && d.LogLoss.Interval[1] < 0, "log-loss: got %+v, want an interval below 0", d.LogLoss)
	must.Hold(t, d.WinnerHitPct == (backtest.Paired{}), "hits: got %+v, want no difference", d.WinnerHitPct)
}
