package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gridcast/deploy/operator"
	"gridcast/schemas/wire"
)

// raceView is the running race, for the form of an order by hand.
type raceView struct {
	operator.RunningRace

	Stale   bool
	NextLap int
	Next    *wire.LiveCheckpoint // the next live pick; nil: there is none
	Chances chart                // of the likeliest winners, by lap
	Leaders []raceLine           // of the chart, the likeliest first
}

type raceLine struct {
	Class, Driver string
	Win           *wire.Percent
}

// Seen is the instant of the latest observation.
func (r *raceView) Seen() time.Time { return time.Time(r.ObservedAt) }

func (c *Console) collectRace(ctx context.Context, p *page) {
	now, ok := c.Operator.Running(ctx)
	if !ok || now.State == wire.LiveNone {
		return
	}
	until := time.Time(now.ValidUntil)
	p.Race = &raceView{RunningRace: now, NextLap: now.Lap + 1, Stale: !until.IsZero() && p.RaceTime.After(until)}
	for i := range p.Race.Checkpoints {
		if p.Race.Next == nil && p.Race.Checkpoints[i].Status == wire.CheckpointPending {
			p.Race.Next = &p.Race.Checkpoints[i]
		}
	}
	p.Race.plot()
}

// plot draws the chances to win of the five likeliest drivers, lap by lap.
func (r *raceView) plot() {
	win := func(c wire.LiveCar) wire.Percent { return *cmp.Or(c.WinPct, new(wire.Percent)) }
	likeliest := slices.Clone(r.Order)
	slices.SortStableFunc(likeliest, func(a, b wire.LiveCar) int { return cmp.Compare(win(b), win(a)) })
	r.Chances = newChart()
	r.Chances.ticks(max(r.Laps, r.Lap, 1), 100)
	for i, driver := range likeliest[:min(5, len(likeliest))] {
		var points strings.Builder
		for _, lap := range r.Timeline {
			for _, c := range lap.Order {
				if c.Driver == driver.Driver && c.WinPct != nil {
					x, y := r.Chances.at(float64(lap.Lap)/float64(max(r.Laps, r.Lap)), float64(win(c))/1000)
					fmt.Fprintf(&points, "%d,%d ", x, y)
				}
			}
		}
		of := raceLine{fmt.Sprintf("car%d", i), driver.Driver, driver.WinPct}
		r.Leaders, r.Chances.Lines = append(r.Leaders, of), append(r.Chances.Lines, line{of.Class, points.String()})
	}
}
