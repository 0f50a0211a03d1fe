package titles_test

import (
	"os"
	"testing"

	"gridcast/builder/predict"
	"gridcast/builder/predict/title"
	"gridcast/builder/source/f1db"
	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/lab/titles"
	"gridcast/deploy/must"
)

// TestRecord is the bar of the odds: walk-forward, at three stages of every season.
func TestRecord(t *testing.T) {
	must.Long(t, "takes ten seconds")
	a, _ := must.Get2(f1db.Import(sourcetest.Path(t, sourcetest.F1DB2026), f1db.Options{}))(t)
	c := title.DefaultConfig()
	slack := 0.
	if os.Getenv("GRIDCAST_SEASONS") == "" {
		c.Runs /= 20 // in a tenth of the time
		slack = .015
	}
	record := must.Get(titles.Score(t.Context(), a, 2010, 2025, predict.NewV2(predict.DefaultParams()), c))(t)
	within, counted := 0, 0
	for i, most := range []float64{.335, .4704, .3704} {
		if s := record.Stages[i]; s.Drivers.LogLoss > most+slack || s.Drivers.LogLoss >= s.Drivers.Replay {
			t.Errorf("drivers after %.0f %%: log-loss %.3f, want at most %.3f and less than the %.3f of drawn rounds", 100*s.Part, s.Drivers.LogLoss, most, s.Drivers.Replay)
		}
	}
	for _, stage := range record.Stages {
		for name, s := range map[string]titles.Scores{"drivers": stage.Drivers, "teams": stage.Teams} {
			t.Logf("%s after %.0f %%: log-loss %.3f, replay %.3f, leader %.3f, share %.3f; %d hits, leader %d of %d; said %.2f; within %d of %d",
				name, 100*stage.Part, s.LogLoss, s.Replay, s.Leader, s.Share, s.Hits, s.LeadHits, s.Seasons, s.Said, s.Within, s.Counted)
			if s.Seasons != 16 || s.LogLoss >= s.Leader || s.LogLoss >= s.Share || s.Hits < s.LeadHits {
				t.Errorf("%s after %.0f %%: not better than the leader, or than the share of points: %+v", name, 100*stage.Part, s)
			}
			within, counted = within+s.Within, counted+s.Counted
		}
	}
	if share := float64(within) / float64(counted); share < .70 || share > .90 {
		t.Errorf("%.0f %% of the points at the end are within their interval of 80 %%", 100*share)
	}
}
