package season

import (
	"slices"
	"time"
)

// Instants that the source does not know are assumed: a session of unknown hour starts at
// 13:00 UTC, a qualifying of unknown date on the day before the race. Sessions are over an
// hour after their start, a race whose winner has no time after two.
const (
	assumedHour   = 13 * time.Hour
	sessionLength = time.Hour
	raceLength    = 2 * time.Hour
)

// StartsAt is lights out: Start, or 13:00 UTC of Date while the hour is unknown.
func (r *Round) StartsAt() time.Time {
	if r.Provisional() {
		return r.Date.Add(assumedHour)
	}
	return r.Start
}

// Provisional reports whether the hour of the start is unknown and StartsAt an assumption.
func (r *Round) Provisional() bool { return r.Start.IsZero() }

// Session returns when a session of the weekend is held, if its day is known.
func (r *Round) Session(kind SessionKind) (Session, bool) {
	for _, s := range r.Sessions {
		if s.Kind == kind {
			return s, true
		}
	}
	return Session{}, false
}

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

// GridKnownAt is when entries and grid are known: at the end of qualifying, or of a sprint
// that follows it, since such a sprint sets the grid.
func (r *Round) GridKnownAt() time.Time {
	known := r.QualifyingKnownAt()
	if s, ok := r.Session(Sprint); ok && !s.Start.IsZero() {
		known = later(known, s.Start.Add(sessionLength))
	}
	return known
}

// SprintKnownAt is the end of the sprint; a sprint of unknown hour is known with qualifying.
func (r *Round) SprintKnownAt() time.Time {
	if s, ok := r.Session(Sprint); ok && !s.Start.IsZero() {
		return s.Start.Add(sessionLength)
	}
	return r.QualifyingKnownAt()
}

// SessionKnownAt is when the outcome of a session is known. Practice and sprint qualifying of
// unknown hour are known with qualifying, and never later than the grid.
func (r *Round) SessionKnownAt(kind SessionKind) time.Time {
	switch kind {
	case Qualifying:
		return r.QualifyingKnownAt()
	case Sprint:
		return r.SprintKnownAt()
	}
	if s, ok := r.Session(kind); ok && !s.Start.IsZero() {
		return earlier(s.Start.Add(sessionLength), r.GridKnownAt())
	}
	return r.QualifyingKnownAt()
}

// ResultKnownAt is the end of the race: the start and the winner's time, or two hours where
// that is missing, as it is in a round without a result.
func (r *Round) ResultKnownAt() time.Time {
	if w := r.Winner(); w != nil && w.Time > 0 {
		return r.StartsAt().Add(w.Time)
	}
	return r.StartsAt().Add(raceLength)
}

// Held reports whether the outcome of a session before the race is known.
func (r *Round) Held(kind SessionKind) bool {
	switch kind {
	case Qualifying:
		return len(r.Qualifying) > 0
	case SprintQualifying:
		return len(r.SprintQualifying) > 0
	case Sprint:
		return len(r.SprintResults) > 0
	}
	i := slices.Index(practices[:], kind)
	return i >= 0 && len(r.Practice[i]) > 0
}

// Finished reports whether the result is known.
func (r *Round) Finished() bool { return len(r.Results) > 0 }

// Winner returns the first row of the race in first place, or nil. See Place.
func (r *Round) Winner() *Result { return r.Place(1) }

// Place returns the first row of the race in the given position, or nil if nobody holds it.
// Where a place was shared it is the driver whom the source shows first.
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

// Podium is the first three drivers of a race, or the three who are picked for them; empty where
// nobody holds the place.
type Podium [3]DriverID

// Score says whether the winner is the one that was picked, and how many of those picked finished
// on the podium, in any place.
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

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
