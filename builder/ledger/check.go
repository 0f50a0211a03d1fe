package ledger

import (
	"errors"
	"fmt"
	"slices"
)

// Why an event is refused, for callers that act on it. All come wrapped in a *RefusedError.
var (
	// ErrAlreadyFrozen: the pick, or the live pick of the checkpoint, is frozen already. Whoever
	// wanted it frozen need do nothing.
	ErrAlreadyFrozen = errors.New("already frozen")
	// ErrStarted: too late, lights out that was valid then has come.
	ErrStarted = errors.New("the race has started")
	// ErrNotStarted: too early, lights out that was valid then has not come.
	ErrNotStarted = errors.New("the race has not started")
	// ErrAlreadyVerified: the result has been verified.
	ErrAlreadyVerified = errors.New("the result is already verified")
	// ErrUnchanged: the correction or decision would change nothing.
	ErrUnchanged = errors.New("nothing would change")
	// ErrNotHeld: the round is postponed or cancelled.
	ErrNotHeld = errors.New("the round is postponed or cancelled")
	// ErrNoStart: a race starts at a whole second.
	ErrNoStart = errors.New("a start is a whole second")
	// ErrUnknownSession: the session key was never assigned.
	ErrUnknownSession = errors.New("unknown session key")
)

// RefusedError says which event a ledger refused, and why.
type RefusedError struct {
	Event Event
	Err   error
}

func (e *RefusedError) Error() string {
	if e.Event.Session == 0 {
		return fmt.Sprintf("ledger refuses %s: %v", e.Event.Type, e.Err)
	}
	return fmt.Sprintf("ledger refuses %s of %d: %v", e.Event.Type, e.Event.Session, e.Err)
}

func (e *RefusedError) Unwrap() error { return e.Err }

// Check returns nil if e may follow on s, else a *RefusedError. Beside the rule of its type,
// an event has an id, an instant not before the last one, an actor, and no field that its type
// does not use; the first event and no other opens the ledger.
func (s *State) Check(e Event) error {
	if err := s.check(e); err != nil {
		return &RefusedError{Event: e, Err: err}
	}
	return nil
}

func (s *State) check(e Event) error {
	if e.ID == "" || e.At.IsZero() || e.Actor == "" {
		return errors.New("id, instant and actor are required")
	}
	if e.At.Before(s.at) {
		return fmt.Errorf("%w: %s is before %s", ErrOlder, instant(e.At), instant(s.at))
	}
	if err := checkFields(e); err != nil {
		return err
	}
	if (e.Type == Opened) != (s.kind == AnyKind) {
		return errors.New("the first event and no other opens the ledger")
	}
	switch e.Type {
	case Opened:
		return checkKind(e.Kind)
	case KeysAssigned:
		return s.checkKeys(e.Keys)
	}
	session, ok := s.sessions[e.Session]
	if !ok {
		return fmt.Errorf("%w %d", ErrUnknownSession, e.Session)
	}
	switch e.Type {
	case PickFrozen:
		return session.checkFreeze(e)
	case PickVoided:
		return session.checkVoid()
	case LivePickFrozen:
		return session.checkLiveFreeze(e)
	case ResultVerified:
		return session.checkVerify(e)
	default:
		return session.checkDecision(e)
	}
}

func checkKind(k Kind) error {
	if k != Real && k != Simulated {
		return fmt.Errorf("a ledger is %s or %s, not %q", Real, Simulated, k)
	}
	return nil
}

// field is one of the fields of an Event that not all types use.
type field string

// fieldsOf says which fields an event of a type needs and which it may have. The rest are
// absent.
var fieldsOf = map[Type]struct{ need, may []field }{
	Opened:          {need: []field{"kind"}},
	KeysAssigned:    {need: []field{"keys"}},
	PickFrozen:      {need: []field{"session_key", "pick", "start"}, may: []field{"grid_known"}},
	PickVoided:      {need: []field{"session_key", "reason"}},
	LivePickFrozen:  {need: []field{"session_key", "pick", "start"}, may: []field{"checkpoint_pct"}},
	ResultVerified:  {need: []field{"session_key", "result", "start"}, may: []field{"reason"}},
	RoundPostponed:  {need: []field{"session_key", "reason"}, may: []field{"was"}},
	RoundCancelled:  {need: []field{"session_key", "reason"}},
	RoundMoved:      {need: []field{"session_key", "reason", "start", "was"}},
	RoundReinstated: {need: []field{"session_key", "reason"}, may: []field{"start"}},
}

// checkFields refuses an event of unknown type, one that lacks a field, and one with a field
// its type does not use.
func checkFields(e Event) error {
	fields, ok := fieldsOf[e.Type]
	if !ok {
		return fmt.Errorf("unknown type of event %q", e.Type)
	}
	for _, f := range []struct {
		name field
		set  bool
	}{
		{"session_key", e.Session != 0},
		{"reason", e.Reason != ""},
		{"kind", e.Kind != AnyKind},
		{"keys", e.Keys != nil},
		{"pick", e.Pick != nil},
		{"checkpoint_pct", e.Checkpoint != 0},
		{"start", !e.Start.IsZero()},
		{"was", !e.Was.IsZero()},
		{"grid_known", e.GridKnown},
		{"result", e.Result != nil},
	} {
		if needed := slices.Contains(fields.need, f.name); needed && !f.set {
			return fmt.Errorf("%s is required", f.name)
		} else if f.set && !needed && !slices.Contains(fields.may, f.name) {
			return fmt.Errorf("%s has no meaning here", f.name)
		}
	}
	return nil
}
