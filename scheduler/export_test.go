package scheduler

import (
	"time"

	"github.com/jonboulle/clockwork"
)

// NewRaceTime returns the clock that gocron gets.
func NewRaceTime(c Clock, look time.Duration) clockwork.Clock { return raceTime{race: c, look: look} }
