// Package cadence tells which work is due at which instant: a pure function of a calendar and an instant.
//
// It runs nothing, has no clock, and holds no rule of racing: the given calendar names
// the instants of every round and season. Coming lists the instants ahead, Missed those that passed
// without a run and must be caught up, Overtaken those that a change of the calendar put into the past. All instants are UTC, for every
// location of the given times, and intervals include their end but not their beginning,
// so that consecutive intervals neither lose nor double an instant.
//
// The due work:
//
//	poll    every hour, on the hour
//	        every 5 minutes on a race weekend
//	        every minute while a grid is awaited (from the instant it can be known to the
//	        start, without a frozen pick) or a result (from the end of the race to the end of
//	        the weekend, without a verified result)
//	freeze  when the grid can be known, when qualifying has been unchanged for long enough, and at
//	        the latest instant for it, while there is no frozen pick; never at the start or after it
//	build   at lights out; when the race window ends without a verified result; when a season's
//	        calendar becomes known, and when the season becomes the current one
//	verify  every night at 02:30 UTC: after the evening races of the Americas and before those
//	        of the far east
//
// Polls are whole multiples of their interval in UTC. They depend neither on the start of a
// process nor on earlier runs.
package cadence

import "time"

// Calendar holds every round and season whose instants may matter: past, present and next, in any
// order. It omits cancelled and postponed rounds. This package never changes it.
type Calendar struct {
	Rounds  []Round
	Seasons []Season
}

// Round holds the instants of a round that is to be held.
type Round struct {
	Key          int64     // session key; names the round in Due
	Start        time.Time // valid start, or the assumed one while the hour is unknown
	WeekendFrom  time.Time // news is expected from here
	WeekendUntil time.Time // to here
	GridKnown    time.Time // the grid can be known from here; zero: not before the start
	StoodBy      time.Time // qualifying alone is enough for a pick from here; zero: not before FreezeBy
	FreezeBy     time.Time // the latest instant of the freeze
	End          time.Time // a result can be expected from here
	WindowEnd    time.Time // a round without a verified result awaits it from here
	Frozen       bool      // has a frozen pick that is not void
	Verified     bool      // has a verified result
}

// Season holds the instants of a season.
type Season struct {
	Known  time.Time // its calendar becomes known
	Begins time.Time // it becomes the current one
}
