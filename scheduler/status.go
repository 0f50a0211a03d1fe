package scheduler

import (
	"time"

	"gridcast/scheduler/cadence"
)

// Status is how a job stands. It is a copy: it never changes and may be kept.
type Status struct {
	Name    string
	Running bool
	Pending bool // a run is needed and about to begin, or begins when the one running ends

	Next       time.Time      // race time of the next run as far as known; zero: none
	NextReason cadence.Reason // why
	NextRound  int64          // session key of the round it is for, if any

	LastStart    time.Time     // race time; zero: never
	LastEnd      time.Time     // race time; zero: never
	LastDuration time.Duration // real time
	LastReason   string        // why it ran: Trigger.String
	LastSuccess  time.Time     // race time of the end of the last run without an error
	LastError    string        // of the last run; empty: none
	Attempt      int           // of the run under way or of the retry to come; 0: neither

	Runs     int64 // that have ended, since the scheduler was made
	Failures int64 // of them, with an error
}
