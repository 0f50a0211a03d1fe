package backtest

import (
	"context"

	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/deploy/lab/laps"
)

// QualifiedAlone is the baseline f0 of a model with these explanations.
func QualifiedAlone(explain qualifiedAlone) predict.Model { return explain }

// LearnLive returns the weights learnt from all races before the year, with gaps and stops and from the order alone.
func LearnLive(ctx context.Context, archive *season.Archive, races []*laps.Race, year int, c LiveConfig) (full, ofOrder predict.LiveWeights, err error) {
	c.From, c.To = year, year-1
	held, err := forecasts(ctx, archive, races, c)
	if err != nil {
		return full, ofOrder, err
	}
	samples := samplesBefore(held, year, c.HalfLife)
	if full, err = predict.FitLive(samples, false); err == nil {
		ofOrder, err = predict.FitLive(samples, true)
	}
	return full, ofOrder, err
}
