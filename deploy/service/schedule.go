package service

import (
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/scheduler/cadence"
)

// calendarOf returns the input of the schedule: the rounds of last season, this season and later ones, and
// the instants at which a season's calendar becomes known and the season current. It leaves out a round
// without a session key, because the next build assigns one.
func calendarOf(v *season.View, s *ledger.Fold, arrived func(int, season.GrandPrixID) time.Time) cadence.Calendar {
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
