package backtest_test

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gridcast/builder/predict"
	"gridcast/deploy/lab/backtest"
	"gridcast/deploy/lab/laps"
	"gridcast/deploy/must"
)

// ergast holds the lap times of the live picks.
const ergast = "../../../../shared/data/ergast-laps"

// TestPublishedLiveFigures holds the live picks to their published figures. In make test they learn once for four seasons.
func TestPublishedLiveFigures(t *testing.T) {
	must.Long(t, "takes ten seconds")
	archive := allSeasons(t)
	if _, err := os.Stat(ergast); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no lap times at %s", ergast)
	}
	races := must.Get(laps.Read(ergast, archive))(t)
	config := backtest.DefaultLiveConfig(2021, 2024)
	slack, hit := 1., 82.
	if firstSeason(0, 1) > 0 {
		config.Once, slack, hit = true, 1.5, 80
	}
	config.Model = fromGrid
	report := must.Get(backtest.LiveRun(t.Context(), archive, races, config))(t)
	if len(report.Checkpoints) != len(predict.Checkpoints)+1 {
		t.Fatalf("got %d checkpoints, want %d and the flag", len(report.Checkpoints), len(predict.Checkpoints))
	}
	for _, l := range report.LastLaps {
		off := func(o backtest.Outcomes) float64 { return math.Abs(o.Said - o.Came) }
		if off(l.Leaders) > .02*slack || off(l.Clear) > .03*slack || off(l.Podiums) > .02*slack || off(l.OrderPodiums) > .01*slack {
			t.Errorf("%d laps to go: %+v", l.LapsToGo, l)
		}
	}
	last := 2.
	for _, c := range report.Checkpoints {
		m, leader := c.Model, c.Baselines["leader"]
		must.Hold(t, m.LogLoss < leader.LogLoss && m.LogLoss < last,
			"%d %%: log-loss %.3f, that of the running order %.3f, at the checkpoint before %.3f", c.Percent, m.LogLoss, leader.LogLoss, last)
		last = m.LogLoss
		if before := c.Baselines["before"]; len(c.Reliability) != 10 || before.LogLoss < 1 || before.LogLoss > 1.5 || m.LogLoss >= before.LogLoss {
			t.Errorf("%d %%: log-loss %.3f, that of the pick before the race %.3f, %d bins", c.Percent, m.LogLoss, before.LogLoss, len(c.Reliability))
		}
		for name, podiums := range map[string]float64{"live": m.PodiumBrier, "order_only": c.Baselines["order_only"].PodiumBrier} {
			must.Hold(t, podiums <= leader.PodiumBrier+.001,
				"%s at %d %%: podium Brier %.3f, want at most the %.3f of the running order", name, c.Percent, podiums, leader.PodiumBrier)
		}
		if c.Percent != 50 {
			continue
		}
		// Of 90 races one was stopped before half distance.
		if c.Races != 89 || m.WinnerHitPct < hit || m.LogLoss > .65 {
			t.Errorf("half distance: got %d races, hit %.1f %%, log-loss %.3f, want 89, at least %g and at most .65", c.Races, m.WinnerHitPct, m.LogLoss, hit)
		}
	}

	learnt, ofOrder := must.Get2(backtest.LearnLive(t.Context(), archive, races, 2025, config))(t)
	for orderOnly, learnt := range map[bool]predict.LiveWeights{false: learnt, true: ofOrder} {
		if diff := cmp.Diff(predict.DefaultLiveWeights(orderOnly), learnt, cmpopts.EquateApprox(0, .002)); diff != "" {
			t.Errorf("order alone %v: the published weights are not those of the data (-published +learnt):\n%s", orderOnly, diff)
		}
	}
}

func TestLiveRunNeedsLapTimes(t *testing.T) {
	must.Fail(t, "got no error", must.Err(backtest.LiveRun(t.Context(), embedded(t), nil, backtest.DefaultLiveConfig(2021, 2024))))
}
