// Package cadence says what falls due when: a pure function of a calendar and an instant.
//
// It runs nothing and has no clock. Coming lists the instants ahead, Next the first of them
// for one kind of work, Missed those that passed unattended and must be made good, Overtaken
// those that a change of the calendar put into the past. All instants are UTC, whatever the
// location of the times handed in, and intervals include their end but not their beginning,
// so that consecutive intervals neither lose nor double an instant.
//
// What falls due:
//
//	poll    every hour, on the hour
//	        every 5 minutes on a race weekend: from 72 h before the start to 24 h after it
//	        every minute while a grid is awaited (from the instant it can be known to the
//	        start, without a frozen pick) or a result (from the instant it is expected to
//	        24 h after the start, without a verified result)
//	freeze  when the grid can be known, and 5 minutes before the start then valid, while there
//	        is no frozen pick; never at the start or after it
//	build   at lights out; 4 h later, when the race window ends without a verified result;
//	        at the turn of the year; on 1 October, when the next season's calendar becomes known
//	verify  every night at 02:30 UTC: after the evening races of the Americas and before those
//	        of the far east
//
// Polls are whole multiples of their interval in UTC: they depend neither on when a process
// was started nor on what ran before. A postponed or cancelled round has no instants; one that
// comes back has them again.
package cadence

import "time"

// State is where a round stands in the calendar, as far as the schedule needs to know.
type State string

// The states of a round. Only a scheduled one has instants.
const (
	Scheduled State = "scheduled"
	Postponed State = "postponed"
	Cancelled State = "cancelled"
)

// Calendar is every round whose instants may matter: those of the season past, present and
// next, in any order. It is never changed by this package.
type Calendar struct {
	Rounds []Round
}

// Round is what the schedule has to know of a round.
type Round struct {
	Key            int64     // session key; names the round in Due
	Start          time.Time // lights out as now valid, or as assumed while the hour is unknown
	GridKnown      time.Time // from when the grid can be known; zero: not before the start
	ResultExpected time.Time // from when a result can be expected; zero: Start + RaceLength
	State          State
	Frozen         bool // has a frozen pick that is not void
	Verified       bool // has a verified result
}

// The distances from a round's start.
const (
	FreezeLead  = 5 * time.Minute // a pick is frozen no later than this before the start
	RaceLength  = 2 * time.Hour   // a race takes this long where nothing better is known
	RaceWindow  = 4 * time.Hour   // after this a round without verified result awaits it
	WeekendLead = 72 * time.Hour  // a race weekend begins this long before the start
	WeekendTail = 24 * time.Hour  // and ends this long after it
)

// resultExpected is ResultExpected, or what stands in for it.
func (r Round) resultExpected() time.Time {
	if r.ResultExpected.IsZero() {
		return r.Start.Add(RaceLength)
	}
	return r.ResultExpected
}
