package service

import (
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/scheduler/cadence"
)

// calendarOf tells the schedule what it has to know: the rounds to be held of last season, this
// one and those to come, and when a season's calendar becomes known and the season current. A
// round without a session key is left out: the next build assigns it.
func calendarOf(v *season.View, s *ledger.State, arrived func(int, season.GrandPrixID) time.Time) cadence.Calendar {
	var cal cadence.Calendar
	now := v.At.UTC().Year()
	for _, r := range almanac.Rounds(v, s, now-1) {
		if r.Session == 0 || r.Off() {
			continue
		}
		from, until := r.Weekend()
		var since time.Time
		if arrived != nil {
			since = arrived(r.Year, r.Facts.GrandPrix)
		}
		cal.Rounds = append(cal.Rounds, cadence.Round{
			Key: r.Session, Start: r.Start, WeekendFrom: from, WeekendUntil: until,
			GridKnown: r.Facts.GridKnownAt(), StoodBy: r.StoodBy(since), FreezeBy: r.FreezeBy(), End: r.End(), WindowEnd: r.WindowEnd(),
			Frozen: r.Pick != nil, Verified: r.Result != nil,
		})
	}
	for year := now - 1; year <= now+2; year++ {
		cal.Seasons = append(cal.Seasons, cadence.Season{Known: season.CalendarKnownAt(year), Begins: season.BeginsAt(year)})
	}
	return cal
}
