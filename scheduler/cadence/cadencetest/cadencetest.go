// Package cadencetest gives tests rounds and calendars, and compares the record of a season
// with a golden file.
package cadencetest

import (
	"slices"
	"time"

	"gridcast/scheduler/cadence"
)

// Weekend is a round whose qualifying ends 22 h before the race, which lasts 95 minutes.
func Weekend(key int64, start time.Time) cadence.Round {
	r := cadence.Round{Key: key, GridKnown: start.Add(-22 * time.Hour)}
	StartAt(&r, start)
	return r
}

// StartAt gives the round a start, and the instants that follow from it.
func StartAt(r *cadence.Round, start time.Time) {
	r.Start = start
	r.WeekendFrom, r.WeekendUntil = start.Add(-72*time.Hour), start.Add(24*time.Hour)
	r.FreezeBy, r.End, r.WindowEnd = start.Add(-5*time.Minute), start.Add(95*time.Minute), start.Add(4*time.Hour)
}

// Off takes the round off the calendar until it gets a start again.
func Off(r *cadence.Round) { r.Start = time.Time{} }

// Calendar holds the rounds with a start, and the seasons around them.
func Calendar(rounds ...cadence.Round) cadence.Calendar {
	cal := cadence.Calendar{Rounds: slices.DeleteFunc(slices.Clone(rounds), func(r cadence.Round) bool { return r.Start.IsZero() })}
	for year := 2025; year <= 2028; year++ {
		cal.Seasons = append(cal.Seasons, cadence.Season{
			Known:  time.Date(year-1, time.October, 1, 0, 0, 0, 0, time.UTC),
			Begins: time.Date(year, time.January, 1, 0, 0, 0, 0, time.UTC),
		})
	}
	return cal
}
