package scheduler

import (
	"errors"
	"fmt"
	"time"
)

// Config holds the settings of a Scheduler. Durations are race time unless they say otherwise.
type Config struct {
	// RetryMin is the wait before the first retry of a run that failed. Every further failure
	// doubles it, up to RetryMax. What has an end, such as a freeze, waits at most a quarter of
	// the time left, but never less than RetryMin.
	RetryMin time.Duration
	RetryMax time.Duration

	// CatchUp is how far back a job whose Since is unknown is taken to have missed its runs
	// when the scheduler starts.
	CatchUp time.Duration

	// Heartbeat is how often the schedule is made anew when nothing else is the occasion. It
	// bounds how late a run can be after the machine was suspended or its clock was set.
	Heartbeat time.Duration

	// StopGrace is how long, in real time, Stop waits for running jobs once it has cancelled
	// their context.
	StopGrace time.Duration
}

// DefaultConfig returns the settings that suit a service in real time.
func DefaultConfig() Config {
	return Config{
		RetryMin:  5 * time.Second,
		RetryMax:  5 * time.Minute,
		CatchUp:   36 * time.Hour,
		Heartbeat: time.Minute,
		StopGrace: 5 * time.Second,
	}
}

// Validate reports every setting that cannot be.
func (c Config) Validate() error {
	var faults []error
	for _, f := range []struct {
		name  string
		value time.Duration
	}{
		{"RetryMin", c.RetryMin},
		{"RetryMax", c.RetryMax},
		{"CatchUp", c.CatchUp},
		{"Heartbeat", c.Heartbeat},
		{"StopGrace", c.StopGrace},
	} {
		if f.value <= 0 {
			faults = append(faults, fmt.Errorf("scheduler: %s is %v, must be more than 0", f.name, f.value))
		}
	}
	if c.RetryMax < c.RetryMin {
		faults = append(faults, fmt.Errorf("scheduler: RetryMax %v is less than RetryMin %v", c.RetryMax, c.RetryMin))
	}
	return errors.Join(faults...)
}
