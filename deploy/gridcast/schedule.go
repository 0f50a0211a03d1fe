package main

import (
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/scheduler/cadence"
)

// calendarOf tells the schedule what it has to know of the rounds of last season, this one and
// those to come.
func calendarOf(v *season.View, s *ledger.State) cadence.Calendar {
	var cal cadence.Calendar
	for i := range v.Seasons {
		year := &v.Seasons[i]
		if year.Year < v.At.UTC().Year()-1 {
			continue
		}
		for j := range year.Rounds {
			if r, ok := roundOf(year.Year, &year.Rounds[j], s); ok {
				cal.Rounds = append(cal.Rounds, r)
			}
		}
	}
	return cal
}

var states = map[ledger.Status]cadence.State{
	ledger.AsPlanned: cadence.Scheduled,
	ledger.Postponed: cadence.Postponed,
	ledger.Cancelled: cadence.Cancelled,
}

// roundOf returns false for a round that has no session key yet: the next build assigns it.
func roundOf(year int, r *season.Round, s *ledger.State) (cadence.Round, bool) {
	key, ok := s.Key(year, r.GrandPrix)
	if !ok {
		return cadence.Round{}, false
	}
	said, _ := s.Session(key)
	start := said.Start(r.StartsAt())
	moved := start.Sub(r.StartsAt())
	return cadence.Round{
		Key:            key,
		Start:          start,
		GridKnown:      r.GridKnownAt(),
		ResultExpected: r.ResultKnownAt().Add(moved),
		State:          states[said.Override.Status],
		Frozen:         said.Pick != nil,
		Verified:       said.Result() != nil || r.ResultKnownAt().Before(s.OpenedAt()),
	}, true
}
