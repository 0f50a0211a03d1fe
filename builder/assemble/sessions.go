package assemble

import (
	"slices"

	"gridcast/builder/season"
)

// lostSessions returns the round of a source with the sessions that it no longer has before the race. They are cancelled,
// because readers have them in their calendars. A session that was held or that another source cancelled stays as it is.
func (a *assembly) lostSessions(ours, theirs *season.Round) *season.Round {
	if len(theirs.Sessions) == 0 {
		return theirs // it knows no sessions of the weekend
	}
	round := *theirs
	round.Sessions = slices.Clone(theirs.Sessions)
	has := func(kind season.SessionKind) bool {
		return slices.ContainsFunc(round.Sessions, func(s season.Session) bool { return s.Kind == kind })
	}
	known := slices.Clone(ours.Sessions)
	if ours.Sprint && !slices.ContainsFunc(known, func(s season.Session) bool { return s.Kind == season.Sprint }) {
		known = append(known, season.Session{Kind: season.Sprint, Date: ours.Date.AddDate(0, 0, -1)})
	}
	for _, s := range known {
		ofSprint := s.Kind == season.Sprint || s.Kind == season.SprintQualifying
		switch {
		case has(s.Kind), theirs.Held(s.Kind), ofSprint && theirs.Sprint:
		case s.Cancelled, !ours.Held(s.Kind) && a.Now.Before(ours.StartsAt()):
			s.Cancelled = true
			round.Sessions = append(round.Sessions, s)
		}
	}
	season.SortSessions(round.Sessions)
	return &round
}
