package season

import (
	"cmp"
	"slices"
	"time"
)

// Assumptions about instants that the source does not have: a session starts at 13:00 UTC and takes an
// hour, qualifying is on the day before the race, a race without a winner's time takes two hours.
const (
	assumedHour   = 13 * time.Hour
	sessionLength = time.Hour
	raceLength    = 2 * time.Hour
)

// StartsAt is lights out: Start, or while the hour is unknown AssumedHour, in history 13:00 UTC.
func (r *Round) StartsAt() time.Time {
	if r.Provisional() {
		return r.Date.Add(cmp.Or(r.AssumedHour, assumedHour))
	}
	return r.Start
}

// Provisional reports whether the hour of the start is unknown and StartsAt an assumption.
func (r *Round) Provisional() bool { return r.Start.IsZero() }

// SortSessions sorts the sessions of a weekend by time. Sessions of unknown hour follow the others of their day.
func SortSessions(sessions []Session) {
	untimed := func(s Session) int {
		if s.Start.IsZero() {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(sessions, func(a, b Session) int {
		return cmp.Or(a.Date.Compare(b.Date), cmp.Compare(untimed(a), untimed(b)), a.Start.Compare(b.Start))
	})
}

// SortGrid sorts a grid by position. The pit lane starts last.
func SortGrid(slots []GridSlot) {
	slices.SortStableFunc(slots, func(a, b GridSlot) int { return ComparePlaces(a.Position, b.Position) })
}

// ComparePlaces orders places from the first to the last, with 0, no place, behind them.
func ComparePlaces(a, b int) int { return cmp.Compare(uint(a-1), uint(b-1)) }

// Session returns the time of a session of the weekend, if its day is known and it is not cancelled.
func (r *Round) Session(kind SessionKind) (Session, bool) {
	for _, s := range r.Sessions {
		if s.Kind == kind && !s.Cancelled {
			return s, true
		}
	}
	return Session{}, false
}

// Cancelled reports whether a session was announced and is not held.
func (r *Round) Cancelled(kind SessionKind) bool {
	return !r.TookPlace(kind) && slices.ContainsFunc(r.Sessions, func(s Session) bool { return s.Kind == kind && s.Cancelled })
}

// HasSprint reports whether the weekend has a sprint that is not cancelled.
func (r *Round) HasSprint() bool { return r.Sprint && !r.Cancelled(Sprint) }

// QualifyingStartsAt is the start of qualifying: 13:00 UTC of its day if the hour is unknown,
// of the day before the race if the day is unknown too.
func (r *Round) QualifyingStartsAt() time.Time {
	s, ok := r.Session(Qualifying)
	switch {
	case !ok:
		return r.Date.AddDate(0, 0, -1).Add(assumedHour)
	case s.Start.IsZero():
		return s.Date.Add(assumedHour)
	}
	return s.Start
}

// QualifyingKnownAt is the end of qualifying.
func (r *Round) QualifyingKnownAt() time.Time { return r.QualifyingStartsAt().Add(sessionLength) }

// GridKnownAt is the instant at which entries and grid are known: the end of qualifying, or of a later
// sprint, because such a sprint sets the grid.
func (r *Round) GridKnownAt() time.Time { return Later(r.QualifyingKnownAt(), r.SprintKnownAt()) }

// sprintFirst is the first season in which sprints are held before qualifying, and do not follow it.
const sprintFirst = 2024

// SprintKnownAt is the end of the sprint. If its hour is unknown, it is the end of qualifying, or, where the sprint
// followed qualifying, the length of a session later.
func (r *Round) SprintKnownAt() time.Time {
	if s, ok := r.Session(Sprint); ok && !s.Start.IsZero() {
		return s.Start.Add(sessionLength)
	}
	if r.Sprint && r.Date.Year() < sprintFirst {
		return r.QualifyingKnownAt().Add(sessionLength)
	}
	return r.QualifyingKnownAt()
}

// SessionKnownAt is the instant at which the outcome of a session is known. Practice and sprint
// qualifying of unknown hour are known with qualifying, and never later than the grid.
func (r *Round) SessionKnownAt(kind SessionKind) time.Time {
	switch kind {
	case Qualifying:
		return r.QualifyingKnownAt()
	case Sprint:
		return r.SprintKnownAt()
	}
	if s, ok := r.Session(kind); ok && !s.Start.IsZero() {
		return slices.MinFunc([]time.Time{s.Start.Add(sessionLength), r.GridKnownAt()}, time.Time.Compare)
	}
	return r.QualifyingKnownAt()
}

// ResultKnownAt is the end of the race: the start plus the winner's time, or plus two hours if the
// winner's time is unknown.
func (r *Round) ResultKnownAt() time.Time {
	if w := r.Winner(); w != nil && w.Time > 0 {
		return r.StartsAt().Add(w.Time)
	}
	return r.StartsAt().Add(raceLength)
}

// knownAt is the instant from which all tables are known.
func (r *Round) knownAt() time.Time { return Later(r.GridKnownAt(), r.ResultKnownAt()) }

// TookPlace reports whether the outcome of a session before the race is known.
func (r *Round) TookPlace(kind SessionKind) bool {
	return slices.Contains(kinds, kind) && slices.ContainsFunc(tables, func(t table) bool { return t.section == Section(kind) && t.rows(r).len() > 0 })
}

// Finished reports whether the result is known.
func (r *Round) Finished() bool { return len(r.Results) > 0 }

// Winner returns the first row of the race in first place, or nil. See Place.
func (r *Round) Winner() *Result { return r.Place(1) }

// Place returns the first row of the race with a position, or nil if there is none. Of a shared place
// it returns the driver that the source lists first.
func (r *Round) Place(position int) *Result {
	for i := range r.Results {
		if r.Results[i].Position == position {
			return &r.Results[i]
		}
	}
	return nil
}

// Podium returns the drivers on the first three places. See Place.
func (r *Round) Podium() Podium {
	var podium Podium
	for i := range podium {
		if row := r.Place(i + 1); row != nil {
			podium[i] = row.Driver
		}
	}
	return podium
}

// Podium holds the first three drivers of a race, or of a pick. An entry is empty if the place is vacant.
type Podium [3]DriverID

// Score compares a pick with the finish: whether the pick has the winner, and how many picked drivers
// finished on the podium in any place.
func (finished Podium) Score(picked Podium) (winner bool, onPodium int) {
	for _, d := range picked {
		if d != "" && slices.Contains(finished[:], d) {
			onPodium++
		}
	}
	return picked[0] != "" && picked[0] == finished[0], onPodium
}

// Entry returns the driver's entry, or nil.
func (r *Round) Entry(driver DriverID) *Entry {
	for i := range r.Entries {
		if r.Entries[i].Driver == driver {
			return &r.Entries[i]
		}
	}
	return nil
}

// Later returns the later of two instants.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
