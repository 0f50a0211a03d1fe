package cadence

import "time"

// instants are those that belong to a round and come once, in no particular order.
func instants(cal Calendar) []Due {
	var all []Due
	for _, r := range cal.Rounds {
		if r.State == Scheduled {
			all = append(all, r.instants()...)
		}
	}
	return all
}

// instants of a round that is scheduled.
func (r Round) instants() []Due {
	start := r.Start.UTC()
	all := []Due{{At: start, Work: Build, Reason: LightsOut, Round: r.Key}}
	if !r.Verified {
		all = append(all, Due{At: start.Add(RaceWindow), Work: Build, Reason: RaceWindowEnd, Round: r.Key})
	}
	if r.Frozen {
		return all
	}
	latest := start.Add(-FreezeLead)
	all = append(all, Due{At: latest, Work: Freeze, Reason: FreezeLatest, Round: r.Key, Until: start})
	// A grid that comes to be known later than that finds the pick frozen.
	if !r.GridKnown.IsZero() && r.GridKnown.Before(latest) {
		all = append(all, Due{At: r.GridKnown.UTC(), Work: Freeze, Reason: GridKnown, Round: r.Key, Until: start})
	}
	return all
}

// The night's check is made at this time of the day, UTC.
const nightly = 2*time.Hour + 30*time.Minute

func nextNight(now time.Time) Due {
	d := lastNight(now)
	d.At = d.At.Add(24 * time.Hour) // UTC days have no other length
	return d
}

func lastNight(now time.Time) Due {
	const day = 24 * time.Hour
	return Due{At: now.UTC().Add(-nightly).Truncate(day).Add(nightly), Work: Verify, Reason: Nightly}
}

func nextYearTurn(now time.Time) Due {
	return Due{At: next(time.January, now), Work: Build, Reason: YearTurn}
}

func lastYearTurn(now time.Time) Due {
	return Due{At: last(time.January, now), Work: Build, Reason: YearTurn}
}

func nextCalendarKnown(now time.Time) Due {
	return Due{At: next(time.October, now), Work: Build, Reason: CalendarKnown}
}

func lastCalendarKnown(now time.Time) Due {
	return Due{At: last(time.October, now), Work: Build, Reason: CalendarKnown}
}

// next is the first beginning of the month after now.
func next(month time.Month, now time.Time) time.Time {
	return last(month, now).AddDate(1, 0, 0)
}

// last is the latest beginning of the month at or before now.
func last(month time.Month, now time.Time) time.Time {
	now = now.UTC()
	t := time.Date(now.Year(), month, 1, 0, 0, 0, 0, time.UTC)
	if t.After(now) {
		return t.AddDate(-1, 0, 0)
	}
	return t
}
