package cadence

import "time"

// instants are those that belong to a round or a season and come once, in no particular order.
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
		// What comes later than that finds the pick frozen.
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
