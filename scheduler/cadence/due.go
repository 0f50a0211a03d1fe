package cadence

import (
	"cmp"
	"slices"
	"time"
)

// Work is a kind of scheduled work, zero for none. It is no text, so that no misspelt kind compiles: its job would never run.
type Work uint8

// The kinds of work. Due work of one instant is listed in this order.
const (
	Poll   Work = iota + 1 // poll the sources
	Freeze                 // freeze the picks that are due
	Build                  // build and publish
	Verify                 // check everything published
)

// Reason names the reason for due work.
type Reason string

// The reasons, each for one kind of work.
const (
	PollWeek        Reason = "poll_week"
	PollWeekend     Reason = "poll_weekend"
	PollAwaiting    Reason = "poll_awaiting" // a grid or a result
	GridKnown       Reason = "grid_known"
	QualifyingStood Reason = "qualifying_stood"
	FreezeLatest    Reason = "freeze_latest"
	LightsOut       Reason = "lights_out"
	RaceWindowEnd   Reason = "race_window_end"
	YearTurn        Reason = "year_turn"
	CalendarKnown   Reason = "calendar_known" // the next season's
	Nightly         Reason = "nightly"
)

// Due is an instant at which work is due.
type Due struct {
	At     time.Time // UTC
	Work   Work
	Reason Reason
	Round  int64     // session key of its round; 0: no particular round
	Until  time.Time // the work must not be done from this instant on; zero: never too late

	Every time.Duration // due again at this interval, until another reason or the calendar changes it; 0: once
}

// TooLate reports whether the work must not be done any more at now.
func (d Due) TooLate(now time.Time) bool {
	return !d.Until.IsZero() && !now.Before(d.Until)
}

// compare orders by instant, then by kind of work, round and reason.
func compare(a, b Due) int {
	if order := a.At.Compare(b.At); order != 0 { // for nearly all pairs
		return order
	}
	return cmp.Or(cmp.Compare(a.Work, b.Work), cmp.Compare(a.Round, b.Round), cmp.Compare(a.Reason, b.Reason))
}

// sorted returns the instants for which keep is true, in order. The caller gives up all.
func sorted(all []Due, keep func(Due) bool) []Due {
	kept := slices.DeleteFunc(all, func(d Due) bool { return !keep(d) })
	slices.SortFunc(kept, compare)
	return kept
}

// Coming lists the instants after now, in order: all instants of every round and season, and the
// next poll and the next night.
func Coming(cal Calendar, now time.Time) []Due {
	all := append(instants(cal), nextPoll(cal, now), lastNight(now.Add(day)))
	return sorted(all, func(d Due) bool { return d.At.After(now) })
}

// Missed lists, in order, the instants after from up to and including now that a run must still catch
// up with: all but a freeze after lights out. Of polls and nights it lists only the
// last, because one run catches up with all.
func Missed(cal Calendar, from, now time.Time) []Due {
	all := append(instants(cal), lastPoll(cal, now), lastNight(now))
	return sorted(all, func(d Due) bool { return d.At.After(from) && !d.At.After(now) && !d.TooLate(now) })
}

// Overtaken lists, in order, the instants that a change of the calendar put into the past: the instants of
// after, up to and including now, that before did not have and that are not too late. When a
// start moves forward to three minutes from now, Overtaken holds the freeze that was due two minutes
// ago.
func Overtaken(before, after Calendar, now time.Time) []Due {
	if slices.Equal(before.Rounds, after.Rounds) && slices.Equal(before.Seasons, after.Seasons) {
		return nil
	}
	known := make(map[Due]bool)
	for _, d := range instants(before) {
		known[d] = true
	}
	return sorted(instants(after), func(d Due) bool { return !known[d] && !d.At.After(now) && !d.TooLate(now) })
}

// instants returns the single instants of rounds and seasons, in no particular order.
func instants(cal Calendar) []Due {
	all := make([]Due, 0, 5*len(cal.Rounds)+2*len(cal.Seasons))
	for _, r := range cal.Rounds {
		start := r.Start.UTC()
		all = append(all, Due{At: start, Work: Build, Reason: LightsOut, Round: r.Key})
		if !r.Verified {
			all = append(all, Due{At: r.WindowEnd.UTC(), Work: Build, Reason: RaceWindowEnd, Round: r.Key})
		}
		if r.Frozen {
			continue
		}
		all = append(all, Due{At: r.FreezeBy.UTC(), Work: Freeze, Reason: FreezeLatest, Round: r.Key, Until: start})
		// A later instant finds the pick frozen.
		if !r.GridKnown.IsZero() && r.GridKnown.Before(r.FreezeBy) {
			all = append(all, Due{At: r.GridKnown.UTC(), Work: Freeze, Reason: GridKnown, Round: r.Key, Until: start})
		}
		if !r.StoodBy.IsZero() && r.StoodBy.Before(r.FreezeBy) {
			all = append(all, Due{At: r.StoodBy.UTC(), Work: Freeze, Reason: QualifyingStood, Round: r.Key, Until: start})
		}
	}
	for _, s := range cal.Seasons {
		all = append(all,
			Due{At: s.Known.UTC(), Work: Build, Reason: CalendarKnown},
			Due{At: s.Begins.UTC(), Work: Build, Reason: YearTurn})
	}
	return all
}

// The nightly check runs at this time of the day, UTC.
const nightly = 2*time.Hour + 30*time.Minute

// day is the length of every day of UTC.
const day = 24 * time.Hour

func lastNight(now time.Time) Due {
	return Due{At: now.UTC().Add(-nightly).Truncate(day).Add(nightly), Work: Verify, Reason: Nightly}
}
