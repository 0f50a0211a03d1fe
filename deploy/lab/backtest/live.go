package backtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"gridcast/builder/predict"
	"gridcast/builder/predict/portable"
	"gridcast/builder/season"
	"gridcast/deploy/lab/laps"
	"gridcast/deploy/lab/score"
)

// LiveConfig selects the seasons and the model of the live picks.
type LiveConfig struct {
	From, To int           // seasons, inclusive
	Learn    int           // number of seasons before From for the first fit; later fits use more
	HalfLife float64       // seasons after which a race counts half
	Once     bool          // learn from the races before From alone, not anew for each season
	Model    predict.Model // the forecast before the race

	// Progress is called after each forecast; may be nil.
	Progress func(phase string, done, total int)
}

// DefaultLiveConfig measures the published live model.
func DefaultLiveConfig(from, to int) LiveConfig {
	return LiveConfig{From: from, To: to, Learn: 14, HalfLife: 8, Model: predict.NewV2(predict.DefaultParams())}
}

// LiveReport is the outcome of LiveRun. Its JSON form is stable.
type LiveReport struct {
	From        int          `json:"from"`
	To          int          `json:"to"`
	ModelName   string       `json:"model_name"`
	Checkpoints []Checkpoint `json:"checkpoints"`
	LastLaps    []LastLap    `json:"last_laps"` // from the flag back
}

// LastLap compares chances with outcomes when the leader has completed all but a few laps.
type LastLap struct {
	LapsToGo int      `json:"laps_to_go"` // 0: the flag
	Leaders  Outcomes `json:"leaders"`    // their chances of the win
	Clear    Outcomes `json:"clear"`      // the same, of leaders more than five seconds ahead
	Podiums  Outcomes `json:"podiums"`    // chances of a podium above one half

	OrderPodiums Outcomes `json:"order_podiums"` // the same, from the order alone
}

// Outcomes is the mean of some chances and the share of them that came.
type Outcomes struct {
	Chances int     `json:"chances"`
	Said    float64 `json:"said"`
	Came    float64 `json:"came"`
}

func (o *Outcomes) add(said float64, came bool) {
	n := float64(o.Chances)
	o.Chances++
	o.Said = (o.Said*n + said) / (n + 1)
	o.Came = (o.Came*n + indicator(came)) / (n + 1)
}

// lastLaps is the number of laps before the flag that LastLap describes.
const lastLaps = 5

// add adds the forecasts of one moment.
func (l *LastLap) add(state predict.RaceState, f, order predict.Forecast, podium []season.DriverID) {
	leader := state.Cars[0].Driver
	won := leader == podium[0]
	for _, c := range f.Candidates {
		if c.Driver == leader {
			l.Leaders.add(c.Win, won)
			if len(state.Cars) > 1 && state.Cars[1].Gap > 5*time.Second {
				l.Clear.add(c.Win, won)
			}
		}
	}
	for of, f := range map[*Outcomes]predict.Forecast{&l.Podiums: f, &l.OrderPodiums: order} {
		for _, c := range f.Candidates {
			if c.Podium > .5 {
				of.add(c.Podium, slices.Contains(podium, c.Driver))
			}
		}
	}
}

// Checkpoint holds the scores of the picks at one checkpoint.
type Checkpoint struct {
	Percent int `json:"checkpoint_pct"` // of the scheduled distance; 0 is the end of the first lap, 100 the flag
	Part
	Differences map[string]Difference `json:"differences"`
	Reliability []score.Bin           `json:"reliability"`
}

// The baselines: the first three of the running order, the pick before the race, and the model without gaps and stops.
const (
	leaderNow  = "leader"
	beforeRace = "before"
	orderOnly  = "order_only"
)

// moments is the number of moments of a race, evenly over its distance, from which a fit learns. Each checkpoint is one of
// them. It learns from the first five laps and the last five as well.
const moments = 20

// checkpoints are those of the report: the service's, and the flag.
var checkpoints = append(slices.Clone(predict.Checkpoints), 100)

// teachingLaps returns the laps from which a fit learns.
func teachingLaps(scheduled int) []int {
	laps := make([]int, 0, moments+10)
	for k := range moments {
		laps = append(laps, predict.CheckpointLap(100*k/moments, scheduled))
	}
	for k := range 5 {
		laps = append(laps, min(k+1, scheduled), max(1, scheduled-k))
	}
	slices.Sort(laps)
	return slices.Compact(laps)
}

// liveRace is a race with its forecast and its moments.
type liveRace struct {
	laps    *laps.Race
	round   *season.Round
	before  predict.Forecast
	podium  []season.DriverID
	moments map[int]liveMoment // by the laps that the leader has completed; none behind the end of a stopped race
}

// liveMoment is the state of a race as it is predicted and as a sample.
type liveMoment struct {
	state  predict.RaceState
	sample predict.LiveSample
}

// LiveRun measures live picks at the checkpoints. It learns the weights of a season from the
// seasons before it, with the forecasts that were possible then.
func LiveRun(ctx context.Context, archive *season.Archive, races []*laps.Race, c LiveConfig) (*LiveReport, error) {
	held, err := forecasts(ctx, archive, races, c)
	if err != nil {
		return nil, err
	}
	report := &LiveReport{From: c.From, To: c.To, ModelName: c.Model.Name(), LastLaps: make([]LastLap, lastLaps)}
	for left := range report.LastLaps {
		report.LastLaps[left].LapsToGo = left
	}
	model := map[int][]score.Score{}
	baselines := map[string]map[int][]score.Score{leaderNow: {}, beforeRace: {}, orderOnly: {}}
	n := 0
	var weights, ofOrder predict.LiveWeights
	for year := c.From; year <= c.To; year++ {
		if year == c.From || !c.Once {
			samples := samplesBefore(held, year, c.HalfLife)
			if weights, err = predict.FitLive(samples, false); err != nil {
				return nil, fmt.Errorf("live backtest of %d: %w", year, err)
			}
			if ofOrder, err = predict.FitLive(samples, true); err != nil {
				return nil, fmt.Errorf("live backtest of %d from the order alone: %w", year, err)
			}
		}
		for i, r := range held {
			if r.laps.Year != year {
				continue
			}
			n++
			for _, lap := range slices.Sorted(maps.Keys(r.moments)) {
				m := r.moments[lap]
				f, err := weights.Live(m.state, r.before)
				if err != nil {
					return nil, fmt.Errorf("live backtest of %d %s: %w", year, r.round.GrandPrix, err)
				}
				byHand := m.state
				byHand.OrderOnly = true
				order, err := ofOrder.Live(byHand, r.before)
				if err != nil {
					return nil, fmt.Errorf("live backtest of %d %s: %w", year, r.round.GrandPrix, err)
				}
				if left := r.round.ScheduledLaps - lap; left < lastLaps {
					report.LastLaps[left].add(m.state, f, order, r.podium)
				}
				for _, percent := range checkpoints {
					if predict.CheckpointLap(percent, r.round.ScheduledLaps) != lap {
						continue
					}
					model[percent] = append(model[percent], score.New(f, r.round))
					for name, f := range map[string]predict.Forecast{leaderNow: positionFrequency(held[:i], m.state, percent), beforeRace: r.before, orderOnly: order} {
						baselines[name][percent] = append(baselines[name][percent], score.New(f, r.round))
					}
				}
			}
		}
	}
	if n == 0 {
		return nil, fmt.Errorf("live backtest from %d to %d: no lap times", c.From, c.To)
	}
	for _, percent := range checkpoints {
		c := Checkpoint{
			Percent: percent, Reliability: score.Reliability(model[percent]), Differences: map[string]Difference{},
			Part: Part{Races: len(model[percent]), Model: score.NewMetrics(model[percent]), Baselines: map[string]score.Metrics{}},
		}
		for name, scores := range baselines {
			c.Baselines[name], c.Differences[name] = score.NewMetrics(scores[percent]), Compare(model[percent], scores[percent])
		}
		report.Checkpoints = append(report.Checkpoints, c)
	}
	return report, nil
}

// forecasts predicts every race with lap times from the facts known before it.
func forecasts(ctx context.Context, archive *season.Archive, races []*laps.Race, c LiveConfig) ([]*liveRace, error) {
	facts := archive.Facts()
	view := season.View{Facts: facts}
	races = slices.DeleteFunc(slices.Clone(races), func(l *laps.Race) bool {
		return l.Year < c.From-c.Learn || l.Year > max(c.To, c.From-1)
	})
	var held []*liveRace
	for i, l := range races {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("forecasts of %d: %w", l.Year, err)
		}
		r, ok := view.Round(l.Year, l.GrandPrix)
		if !ok {
			return nil, fmt.Errorf("lap times of %d %s: the archive has no such race", l.Year, l.GrandPrix)
		}
		f, err := c.Model.Predict(archive.AsOf(r.GridKnownAt()), l.Year, r.GrandPrix)
		if err != nil {
			return nil, fmt.Errorf("forecast of %d %s: %w", l.Year, r.GrandPrix, err)
		}
		race := &liveRace{laps: l, round: r, before: f, moments: map[int]liveMoment{}}
		for place := range 3 {
			if row := r.Place(place + 1); row != nil {
				race.podium = append(race.podium, row.Driver)
			}
		}
		for _, lap := range teachingLaps(r.ScheduledLaps) {
			state, ok := l.At(lap, r.ScheduledLaps)
			if !ok {
				continue
			}
			sample, err := predict.NewLiveSample(state, f, race.podium)
			if err != nil {
				return nil, fmt.Errorf("lap times of %d %s: %w", l.Year, r.GrandPrix, err)
			}
			race.moments[lap] = liveMoment{state, sample}
		}
		held = append(held, race)
		if c.Progress != nil {
			c.Progress("races", i+1, len(races))
		}
	}
	return held, nil
}

// at returns the state of the race at a checkpoint, and false if it was stopped before.
func (r *liveRace) at(percent int) (predict.RaceState, bool) {
	m, ok := r.moments[predict.CheckpointLap(percent, r.round.ScheduledLaps)]
	return m.state, ok
}

// samplesBefore returns the moments of every race before the year, of equal weight together.
func samplesBefore(held []*liveRace, year int, halfLife float64) []predict.LiveSample {
	var samples []predict.LiveSample
	for _, r := range held {
		age := year - 1 - r.laps.Year
		if age < 0 {
			continue
		}
		for _, lap := range slices.Sorted(maps.Keys(r.moments)) {
			sample := r.moments[lap].sample
			sample.Weight = portable.Exp2(-float64(age)/halfLife) / moments
			samples = append(samples, sample)
		}
	}
	return samples
}

// positionFrequency gives every running car the smoothed frequencies with which earlier cars in its position at
// the checkpoint won, and finished on the podium.
func positionFrequency(before []*liveRace, state predict.RaceState, percent int) predict.Forecast {
	f := predict.Forecast{}
	wins, podiums := make([]float64, len(state.Cars)), make([]float64, len(state.Cars))
	total, races := 0.0, 1.0
	for i := range wins {
		wins[i] = 1 / float64((i+1)*(i+1))
		total += wins[i]
		podiums[i] = indicator(i < len(f.Podium)) // one race with this finishing order
	}
	for _, r := range before {
		past, ok := r.at(percent)
		if !ok || len(r.podium) == 0 {
			continue
		}
		races++
		for i, c := range past.Cars[:min(len(past.Cars), len(wins))] {
			if c.Driver == r.podium[0] {
				wins[i]++
				total++
			}
			podiums[i] += indicator(slices.Contains(r.podium, c.Driver))
		}
	}
	for i, c := range state.Cars {
		f.Candidates = append(f.Candidates, predict.Candidate{Driver: c.Driver, Win: wins[i] / total, Podium: podiums[i] / races})
		if i < len(f.Podium) {
			f.Podium[i] = c.Driver
		}
	}
	return f
}
