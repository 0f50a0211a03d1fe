package scheduler

import (
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
)

// NewRaceTime returns the clock that gocron gets.
func NewRaceTime(c Clock, look time.Duration) clockwork.Clock { return raceTime{race: c, look: look} }

// Jobs returns gocron's jobs.
func (i *Intervals) Jobs() []gocron.Job { return i.cron.Jobs() }
