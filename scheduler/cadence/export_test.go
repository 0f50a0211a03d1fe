package cadence

import "time"

// Coming lists the instants after now, in order: all instants of every round and season, and the
// next poll and the next night.
func Coming(cal Calendar, now time.Time) []Due {
	all := append(instants(cal), nextPoll(cal, now), lastNight(now.Add(day)))
	return sorted(all, func(d Due) bool { return d.At.After(now) })
}
