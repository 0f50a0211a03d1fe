package backtest_test

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gridcast/builder/predict"
	"gridcast/builder/predict/backtest"
	"gridcast/builder/predict/laps"
)

// ergast holds the lap times of the live picks.
const ergast = "../../../../shared/data/ergast-laps"

// TestPublishedLiveFigures holds the live picks to their published figures.
func TestPublishedLiveFigures(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds")
	}
	archive := allSeasons(t)
	if _, err := os.Stat(ergast); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no lap times at %s", ergast)
	}
	races, err := laps.Read(ergast, archive)
	if err != nil {
		t.Fatal(err)
	}
	report, err := backtest.LiveRun(t.Context(), archive, races, backtest.DefaultLiveConfig(2021, 2024))
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Checkpoints) != len(predict.Checkpoints) {
		t.Fatalf("got %d checkpoints, want %d", len(report.Checkpoints), len(predict.Checkpoints))
	}
	last := 2.
	for _, c := range report.Checkpoints {
		m, leader := c.Model, c.Baselines["leader"]
		if m.LogLoss >= leader.LogLoss || m.LogLoss >= last {
			t.Errorf("%d %%: log-loss %.3f, that of the running order %.3f, at the checkpoint before %.3f", c.Percent, m.LogLoss, leader.LogLoss, last)
		}
		last = m.LogLoss
		if before := c.Baselines["before"]; len(c.Reliability) != 10 || before.LogLoss < 1 || before.LogLoss > 1.5 || c.Percent > 0 && m.LogLoss >= before.LogLoss {
			t.Errorf("%d %%: log-loss %.3f, that of the pick before the race %.3f, %d bins", c.Percent, m.LogLoss, before.LogLoss, len(c.Reliability))
		}
		if c.Percent != predict.CountingCheckpoint {
			continue
		}
		// Of 90 races one was stopped before half distance.
		if c.Races != 89 || m.WinnerHitPct < 82 || m.LogLoss > .65 {
			t.Errorf("half distance: got %d races, hit %.1f %%, log-loss %.3f, want 89, at least 82 and at most .65", c.Races, m.WinnerHitPct, m.LogLoss)
		}
	}

	learnt, err := backtest.LearnLive(t.Context(), archive, races, 2025, backtest.DefaultLiveConfig(2025, 2025))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(predict.DefaultLiveWeights(), learnt, cmpopts.EquateApprox(0, .002)); diff != "" {
		t.Errorf("the published weights are not those of the data (-published +learnt):\n%s", diff)
	}
}

func TestLiveRunNeedsLapTimes(t *testing.T) {
	if _, err := backtest.LiveRun(t.Context(), embedded(t), nil, backtest.DefaultLiveConfig(2021, 2024)); err == nil {
		t.Error("got no error")
	}
}
