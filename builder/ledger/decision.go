package ledger

import (
	"errors"
	"fmt"
	"time"
)

// Postpone returns the events that take the round off its date, to be held later: the
// decision, and the end of a pick that was made without the grid. Was is the start valid until
// now, zero if its hour is unknown.
func (s *Session) Postpone(was time.Time, reason string) []Event {
	events := []Event{{Type: RoundPostponed, Session: s.Key, Was: was.UTC(), Reason: reason}}
	if s.Pick != nil && !s.Pick.GridKnown {
		events = append(events, s.void("postponed before the grid was known"))
	}
	return events
}

// Cancel returns the events that call the round off: the decision, and the end of its pick.
func (s *Session) Cancel(reason string) []Event {
	events := []Event{{Type: RoundCancelled, Session: s.Key, Reason: reason}}
	if s.Pick != nil {
		events = append(events, s.void("cancelled"))
	}
	return events
}

// Move returns the event that gives the round another start. Was is the one valid until now.
func (s *Session) Move(was, start time.Time, reason string) Event {
	return Event{Type: RoundMoved, Session: s.Key, Was: was.UTC(), Start: start.UTC(), Reason: reason}
}

// Reinstate returns the event that puts a postponed or cancelled round back, at a start or,
// if that is zero, at the one that its calendar says.
func (s *Session) Reinstate(start time.Time, reason string) Event {
	return Event{Type: RoundReinstated, Session: s.Key, Start: start.UTC(), Reason: reason}
}

func (s *Session) void(reason string) Event {
	return Event{Type: PickVoided, Session: s.Key, Reason: reason}
}

// checkDecision: nothing is decided about a round that has a verified result, or that would
// leave it as it is. A postponed or cancelled round is reinstated before it is moved. A start
// is decided on before it comes, and moved before the one it replaces comes: lights out can
// not be taken back. A delay announced later is a postponement, which the audit shows as one.
func (s *Session) checkDecision(e Event) error {
	if len(s.Revisions) > 0 {
		return ErrAlreadyVerified
	}
	if valid := s.Start(e.Was); !e.Was.IsZero() && !valid.Equal(e.Was) {
		return fmt.Errorf("the start now valid is %s, not %s", instant(valid), instant(e.Was))
	}
	if !e.Start.IsZero() && !e.At.Before(e.Start) {
		return fmt.Errorf("%w: the new start %s has passed", ErrStarted, instant(e.Start))
	}
	if e.Start.Nanosecond() != 0 {
		return fmt.Errorf("%w: not %s", ErrNoStart, instant(e.Start))
	}
	status := s.Override.Status
	switch e.Type {
	case RoundPostponed:
		if status == Postponed {
			return fmt.Errorf("%w: it is postponed", ErrUnchanged)
		}
		if status == Cancelled {
			return errors.New("it is cancelled; reinstate it first")
		}
	case RoundCancelled:
		if status == Cancelled {
			return fmt.Errorf("%w: it is cancelled", ErrUnchanged)
		}
	case RoundMoved:
		if status != AsPlanned {
			return fmt.Errorf("%w: it is %s; reinstate it with the new start", ErrNotHeld, status)
		}
		if !e.At.Before(e.Was) {
			return fmt.Errorf("%w: lights out was at %s; postpone and reinstate it", ErrStarted, instant(e.Was))
		}
		if e.Start.Equal(e.Was) {
			return fmt.Errorf("%w: it starts at %s", ErrUnchanged, instant(e.Was))
		}
	case RoundReinstated:
		if status == AsPlanned {
			return fmt.Errorf("%w: it is neither postponed nor cancelled", ErrUnchanged)
		}
	}
	return nil
}
