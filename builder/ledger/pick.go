package ledger

import (
	"errors"
	"fmt"
	"time"
)

// Freeze returns the event that freezes the pick of a round. The start is the one now valid,
// see Session.Start; gridKnown says that the pick was made with the grid.
func Freeze(session int64, pick Pick, start time.Time, gridKnown bool) Event {
	return Event{Type: PickFrozen, Session: session, Pick: &pick, Start: start.UTC(), GridKnown: gridKnown}
}

// FreezeLive returns the event that freezes a live pick at a checkpoint, in percent of the
// scheduled distance, 0 for the end of lap 1. The start is that of the race.
func FreezeLive(session int64, pick Pick, start time.Time, checkpoint int) Event {
	return Event{Type: LivePickFrozen, Session: session, Pick: &pick, Start: start.UTC(), Checkpoint: checkpoint}
}

// checkFreeze: a pick is frozen before the start then valid, while the round is to be held and
// has no pick and no result. Where a start was decided on, that is the valid one.
func (s *Session) checkFreeze(e Event) error {
	if s.Pick != nil {
		return fmt.Errorf("%w at %s", ErrAlreadyFrozen, instant(s.Pick.FrozenAt))
	}
	if len(s.Revisions) > 0 {
		return ErrAlreadyVerified
	}
	if err := s.checkHeld(e); err != nil {
		return err
	}
	if !e.At.Before(e.Start) {
		return fmt.Errorf("%w: lights out was at %s", ErrStarted, instant(e.Start))
	}
	return e.Pick.check()
}

// checkLiveFreeze: a live pick is frozen after the start and before the result is verified,
// once for each checkpoint.
func (s *Session) checkLiveFreeze(e Event) error {
	if live := s.LivePick(e.Checkpoint); live != nil {
		return fmt.Errorf("%w at %s", ErrAlreadyFrozen, instant(live.FrozenAt))
	}
	if e.Checkpoint < 0 || e.Checkpoint >= 100 {
		return fmt.Errorf("a checkpoint is 0 to 99 percent of the distance, not %d", e.Checkpoint)
	}
	if len(s.Revisions) > 0 {
		return ErrAlreadyVerified
	}
	if err := s.checkHeld(e); err != nil {
		return err
	}
	if !e.At.After(e.Start) {
		return fmt.Errorf("%w: lights out is at %s", ErrNotStarted, instant(e.Start))
	}
	return e.Pick.check()
}

// checkVoid: only the frozen pick of a race without result is voided, and only because the
// round is cancelled, or postponed when the pick was made without the grid.
func (s *Session) checkVoid() error {
	if s.Pick == nil {
		return errors.New("there is no pick")
	}
	if len(s.Revisions) > 0 {
		return ErrAlreadyVerified
	}
	if !s.mustVoid() {
		return errors.New("a pick stands unless its round is cancelled, or postponed before the grid was known")
	}
	return nil
}

// mustVoid says that there is a pick that can not stand.
func (s *Session) mustVoid() bool {
	if s.Pick == nil {
		return false
	}
	return s.Override.Status == Cancelled || s.Override.Status == Postponed && !s.Pick.GridKnown
}

// checkSettled refuses an append that leaves a pick which should have been voided with it, and
// names the event to blame.
func (s *State) checkSettled(events []Event) (Event, error) {
	for _, e := range events {
		if session, ok := s.sessions[e.Session]; ok && session.mustVoid() {
			return e, &RefusedError{Event: e, Err: errors.New("the pick has to be voided in the same append")}
		}
	}
	return Event{}, nil
}

// checkHeld: the round is to be held, and at the start that the event says.
func (s *Session) checkHeld(e Event) error {
	if s.Override.Status != AsPlanned {
		return fmt.Errorf("%w: it is %s", ErrNotHeld, s.Override.Status)
	}
	if valid := s.Start(e.Start); !valid.Equal(e.Start) {
		return fmt.Errorf("the start now valid is %s, not %s", instant(valid), instant(e.Start))
	}
	return nil
}

// check: three different drivers, a probability and a model.
func (p *Pick) check() error {
	if p.P1 == "" || p.P2 == "" || p.P3 == "" || p.P1 == p.P2 || p.P1 == p.P3 || p.P2 == p.P3 {
		return fmt.Errorf("a pick is three different drivers, not %q, %q, %q", p.P1, p.P2, p.P3)
	}
	if !(p.WinProbability > 0 && p.WinProbability <= 1) { // refuses NaN too
		return fmt.Errorf("win probability %v is not in (0, 1]", p.WinProbability)
	}
	if p.Model == "" {
		return errors.New("the model is required")
	}
	return nil
}

func instant(t time.Time) string { return t.Format(time.RFC3339Nano) }
