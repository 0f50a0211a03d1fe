package scheduler

import (
	"context"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
)

// NewRaceTime returns the clock that gocron gets.
func NewRaceTime(c Clock, look time.Duration) clockwork.Clock { return raceTime{race: c, look: look} }

// SharedJobs returns gocron's jobs in a context of Share.
func SharedJobs(ctx context.Context) []gocron.Job {
	return ctx.Value(shared{}).(gocron.Scheduler).Jobs()
}
