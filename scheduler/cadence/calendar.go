// Package cadence says what falls due when: a pure function of a calendar and an instant.
//
// It runs nothing, has no clock, and holds no rule of racing: the calendar that it is handed names
// the instants of every round and season. Coming lists the instants ahead, Next the first of them
// for one kind of work, Missed those that passed unattended and must be made good, Overtaken
// those that a change of the calendar put into the past. All instants are UTC, whatever the
// location of the times handed in, and intervals include their end but not their beginning,
// so that consecutive intervals neither lose nor double an instant.
//
// What falls due:
//
//	poll    every hour, on the hour
//	        every 5 minutes on a race weekend
//	        every minute while a grid is awaited (from the instant it can be known to the
//	        start, without a frozen pick) or a result (from the end of the race to the end of
//	        the weekend, without a verified result)
//	freeze  when the grid can be known, when qualifying has stood, and at the latest instant for
//	        it, while there is no frozen pick; never at the start or after it
//	build   at lights out; when the race window ends without a verified result; when a season's
//	        calendar becomes known, and when the season becomes the current one
//	verify  every night at 02:30 UTC: after the evening races of the Americas and before those
//	        of the far east
//
// Polls are whole multiples of their interval in UTC: they depend neither on when a process
// was started nor on what ran before.
package cadence

import "time"

// Calendar is every round and season whose instants may matter: past, present and next, in any
// order. A round that is off is not in it. It is never changed by this package.
type Calendar struct {
	Rounds  []Round
	Seasons []Season
}

// Round is what the schedule has to know of a round that is to be held.
type Round struct {
	Key          int64     // session key; names the round in Due
	Start        time.Time // lights out as now valid, or as assumed while the hour is unknown
	WeekendFrom  time.Time // from when news is expected
	WeekendUntil time.Time // and until when
	GridKnown    time.Time // from when the grid can be known; zero: not before the start
	StoodBy      time.Time // from when qualifying alone is enough for a pick; zero: not before FreezeBy
	FreezeBy     time.Time // when the pick is frozen at the latest
	End          time.Time // from when a result can be expected
	WindowEnd    time.Time // from when a round without a verified result awaits it
	Frozen       bool      // has a frozen pick that is not void
	Verified     bool      // has a verified result
}

// Season is what the schedule has to know of a season.
type Season struct {
	Known  time.Time // its calendar becomes known
	Begins time.Time // it becomes the current one
}
