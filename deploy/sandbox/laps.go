package sandbox

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"gridcast/builder"
	"gridcast/builder/archive"
	"gridcast/builder/live"
	"gridcast/builder/running"
	"gridcast/builder/season"
)

const (
	slot    = time.Second      // between two cars after the start
	pitStop = 20 * time.Second // that a pit stop costs
)

// made is a car of a replayed race.
type made struct {
	season.Result
	start, finish time.Duration // behind the winner, but for the stops
	stops         []int         // laps that end with one, before the last lap
}

// stopped returns the number of stops before the end of a lap.
func (c *made) stopped(lap int) (n int) {
	for _, l := range c.stops {
		if l < lap {
			n++
		}
	}
	return n
}

// lost is the time by which the car is behind the winner's mean pace at the end of a lap. It loses the time evenly, apart
// from its stops.
func (c *made) lost(lap, laps int) time.Duration {
	share := float64(lap) / float64(laps)
	lost := (1-share)*float64(c.start) + share*float64(c.finish) + (float64(c.stopped(lap))-share*float64(len(c.stops)))*float64(pitStop)
	return time.Duration(lost).Truncate(time.Millisecond)
}

// Order makes the observations of a finished race from grid, pit stops and result, because no archive has the laps: its start, the order after each lap, and its end. They begin with
// the grid and end with the result.
func Order(session int64, r *season.Round) []live.Observation {
	winner := r.Winner()
	if winner == nil || winner.Laps == 0 {
		return nil
	}
	pace := r.ResultKnownAt().Sub(r.StartsAt()) / time.Duration(winner.Laps)
	cars, behind := make([]made, 0, len(r.Results)), time.Duration(0)
	for _, row := range r.Results {
		if !row.Started() {
			continue
		}
		c := made{Result: row, start: time.Duration(cmp.Or(row.Grid, len(r.Results))) * slot}
		c.finish = c.start // of a car that retires
		if row.Outcome == season.Disqualified {
			c.finish = behind + pace
		}
		if row.Position > 0 {
			behind = max(behind+time.Millisecond, time.Duration(winner.Laps-row.Laps)*pace)
			if row.Time > 0 {
				behind = max(behind, row.Time-winner.Time)
			}
			c.finish = behind
		}
		for _, stop := range r.PitStops {
			if stop.Driver == row.Driver && stop.Lap < winner.Laps {
				c.stops = append(c.stops, stop.Lap)
			}
		}
		cars = append(cars, c)
	}
	seen := []live.Observation{{Session: session, At: r.StartsAt().Add(time.Second), Source: "replay", Phase: live.Started}}
	for lap := 1; lap <= winner.Laps; lap++ {
		out := func(c *made) int { return max(0, lap-c.Laps) * (1 - min(c.Position, 1)) } // for how many laps; these come last
		slices.SortStableFunc(cars, func(a, b made) int {
			return cmp.Or(cmp.Compare(out(&a), out(&b)), cmp.Compare(a.lost(lap, winner.Laps), b.lost(lap, winner.Laps)))
		})
		ahead := cars[0].lost(lap, winner.Laps)
		o := live.Observation{
			Session: session, At: r.StartsAt().Add(time.Duration(lap)*pace + ahead), Source: "replay", Lap: lap, Laps: max(r.ScheduledLaps, winner.Laps),
		}
		for i := range cars {
			c := &cars[i]
			stops, gap := c.stopped(lap), c.lost(lap, winner.Laps)-ahead
			car := live.Car{Driver: c.Driver, Stops: &stops, Out: out(c) > 0}
			if ms := int(gap.Milliseconds()); !car.Out && gap < pace {
				car.GapMS = &ms
			} else if !car.Out {
				car.LapsDown = min(int(gap/pace), lap-1)
			}
			o.Cars = append(o.Cars, car)
		}
		seen = append(seen, o)
	}
	over := live.Observation{Session: session, At: seen[len(seen)-1].At.Add(time.Second), Source: "replay", Phase: live.Over}
	if seen = append(seen, over); 2*winner.Laps < r.ScheduledLaps { // an early end counts when it is said twice
		over.At = over.At.Add(time.Second)
		seen = append(seen, over)
	}
	return seen
}

// ShowEarlier stores the laps of the race before an instant, so that /live has its timeline.
func ShowEarlier(ctx context.Context, b *builder.Builder, facts archive.Stored, at time.Time) error {
	r := running.Round(facts.Archive.AsOf(at), b.Ledger.Current(at))
	if r == nil {
		return nil
	}
	for _, o := range Order(r.Session, r.Facts) {
		o.Received = o.At
		if _, _, err := b.Observed().Append(ctx, running.Fixture(r), o); err != nil && !errors.Is(err, live.ErrHeld) {
			return err
		}
	}
	return nil
}
