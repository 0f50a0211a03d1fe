package almanac

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gridcast/builder/ledger"
	"gridcast/builder/season"
)

// Decision is a decision of an operator about a round.
type Decision string

// The decisions, by the names of the commands.
const (
	Verify    Decision = "verify"
	Correct   Decision = "correct"
	Postpone  Decision = "postpone"
	Cancel    Decision = "cancel"
	Move      Decision = "move"
	Reinstate Decision = "reinstate"
	Release   Decision = "release"
)

// ErrVouched means that a round is not open to decisions, because the archive vouches for its result.
var ErrVouched = errors.New("the archive vouches for its result, which was known before the ledger was opened")

// Allowed returns the decisions that the ledger would accept now.
func (r *Round) Allowed() []Decision {
	const reason = "why"
	other := []ledger.Row{{Driver: "somebody", Team: "else", Position: 1}}
	later := season.Later(r.view.At, r.Start).Add(time.Hour).Truncate(time.Second)
	var allowed []Decision
	for _, trial := range []struct {
		action Decision
		events func() ([]ledger.Event, error)
	}{
		{Verify, r.Verify},
		{Correct, func() ([]ledger.Event, error) { return r.Correct(other, nil, reason) }},
		{Postpone, func() ([]ledger.Event, error) { return r.Postpone(reason) }},
		{Cancel, func() ([]ledger.Event, error) { return r.Cancel(reason) }},
		{Move, func() ([]ledger.Event, error) { return r.Move(later, reason) }},
		{Reinstate, func() ([]ledger.Event, error) { return r.Reinstate(later, reason) }},
		{Release, func() ([]ledger.Event, error) { return r.Release(reason) }},
	} {
		events, err := trial.events()
		if err == nil {
			_, _, err = r.Trial(events)
		}
		if err == nil {
			allowed = append(allowed, trial.action)
		}
	}
	return allowed
}

func (r *Round) advice() string {
	allowed := r.Allowed()
	names := make([]string, len(allowed))
	for i, a := range allowed {
		names[i] = string(a)
	}
	return "allowed now: " + cmp.Or(strings.Join(names, ", "), "nothing")
}

// Verify returns the event that verifies the source's classification as the first revision.
func (r *Round) Verify() ([]ledger.Event, error) {
	switch {
	case r.Vouched():
		return nil, fmt.Errorf("verify %d: %w", r.Session, ErrVouched)
	case r.Record.Result() == nil && r.Source() == nil:
		return nil, fmt.Errorf("verify %d: the source has no classification yet; gridcast results enter enters one by hand", r.Session)
	case r.Record.Result() != nil:
		return nil, fmt.Errorf("verify %d: %w as revision %d; gridcast results correct makes another",
			r.Session, ledger.ErrAlreadyVerified, r.Record.Result().Revision)
	}
	return []ledger.Event{r.VerifySource("")}, nil
}

// VerifySource returns the event that makes the source's classifications, of the race and of the weekend's
// sprint, the next revision of the result. The reason is required from the second revision on.
func (r *Round) VerifySource(reason string) ledger.Event {
	e := r.Record.Verify(r.WithDetails(Rows(r.Facts.Results), r.Facts.Results), r.Start, reason)
	e.Result.Sprint = r.WithDetails(r.SourceSprint(), r.Facts.SprintResults)
	return e
}

// Correct returns the event that makes the rows the next revision of the result, and the sprint rows
// that of the sprint; nil sprint rows keep the valid classification. The event has the details of the rows, and for
// the rest the source's: see WithDetails.
func (r *Round) Correct(rows, sprint []ledger.Row, reason string) ([]ledger.Event, error) {
	if reason == "" {
		return nil, fmt.Errorf("correct %d: a reason is required", r.Session)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("correct %d: the source has no classification yet; give one as a file", r.Session)
	}
	if r.Result != nil && !changed(r.Valid(), rows) && (sprint == nil || !changed(r.Sprint(), sprint)) {
		return nil, fmt.Errorf("correct %d: %w: the classification is the one that counts", r.Session, ledger.ErrUnchanged)
	}
	if sprint == nil && (r.Result == nil || r.Result.Sprint == nil) {
		sprint = r.SourceSprint() // from now on it counts as published
	}
	e := r.Record.Verify(r.WithDetails(rows, r.Facts.Results), r.Start, reason)
	e.Result.Sprint = r.WithDetails(sprint, r.Facts.SprintResults)
	return []ledger.Event{e}, nil
}

// Postpone returns the events that take the round off its date.
func (r *Round) Postpone(reason string) ([]ledger.Event, error) {
	was := r.Start
	if r.Provisional {
		was = time.Time{}
	}
	return r.decided(Postpone, r.Record.Postpone(was, reason)...)
}

// Cancel returns the events that call the round off.
func (r *Round) Cancel(reason string) ([]ledger.Event, error) {
	return r.decided(Cancel, r.Record.Cancel(reason)...)
}

// Move returns the event that gives the round another start.
func (r *Round) Move(start time.Time, reason string) ([]ledger.Event, error) {
	return r.decided(Move, r.Record.Move(r.Start, start, reason))
}

// Reinstate returns the event that puts the round back, at a start or, if that is zero, at the
// one that its calendar says.
func (r *Round) Reinstate(start time.Time, reason string) ([]ledger.Event, error) {
	if start.IsZero() && r.Record.Override.Status != ledger.AsPlanned && !r.view.At.Before(r.Facts.StartsAt()) {
		return nil, fmt.Errorf("reinstate %d: the start in the calendar, %s, has passed: give the start with --start, which may be that one if the race was held then",
			r.Session, r.Facts.StartsAt().UTC().Format(time.RFC3339))
	}
	return r.decided(Reinstate, r.Record.Reinstate(start, reason))
}

// Release returns the event that releases the start that a person gave the round: from then on the
// start follows the sources.
func (r *Round) Release(reason string) ([]ledger.Event, error) {
	return r.decided(Release, r.Record.Release(r.Start, r.Facts.StartsAt(), reason))
}

// decided refuses events whose fault the ledger cannot know.
func (r *Round) decided(action Decision, events ...ledger.Event) ([]ledger.Event, error) {
	if r.Vouched() {
		return nil, fmt.Errorf("%s %d: %w", action, r.Session, ErrVouched)
	}
	return events, nil
}

// Trial returns the ledger's state behind the round, and the state after the
// events. The error is the reason for refusing an event.
func (r *Round) Trial(events []ledger.Event) (before, after *ledger.Fold, err error) {
	after, err = r.state.Trial(r.view.At, events)
	return r.state, after, err
}

// Publishable returns the fault that clients would see after an event, from the
// ledger before it and after it; builder.Publishable is one.
type Publishable func(v *season.View, before, after *ledger.Fold, session int64) error

// Decider appends the decisions of one actor to a ledger, as of the instant of its view.
type Decider struct {
	Ledger      ledger.Fresh
	View        *season.View
	Actor       string
	Publishable Publishable // a decision with a fault is not appended, because the ledger cannot take it back; nil allows all
}

// Decide appends the events that decide returns for a round. It calls decide again, with the round at that
// time, when another process appended first. The error of a refused event names the allowed decisions;
// for an unknown session key it wraps ledger.ErrUnknownSession.
func (d Decider) Decide(ctx context.Context, session int64, decide func(*Round) ([]ledger.Event, error)) ([]ledger.Event, error) {
	var seen *Round
	events, err := d.Ledger.Append(ctx, d.View.At, d.Actor, func(s *ledger.Fold) ([]ledger.Event, error) {
		rounds := Rounds(d.View, s, ledger.YearOf(session))
		i := slices.IndexFunc(rounds, func(r *Round) bool { return r.Session == session && session != 0 })
		if i < 0 {
			return nil, unknownSession(session)
		}
		seen = rounds[i]
		events, err := decide(seen)
		if err != nil {
			return nil, err
		}
		before, after, refused := seen.Trial(events)
		if refused == nil && d.Publishable != nil { // otherwise Append refuses it too, and names the allowed decisions
			if err := d.Publishable(d.View, before, after, session); err != nil {
				return nil, fmt.Errorf("%d: nothing is written, for it could not be published: %w", session, err)
			}
		}
		return events, nil
	})
	var refused *ledger.RefusedError
	if errors.As(err, &refused) && !errors.Is(err, ledger.ErrOlder) {
		return nil, fmt.Errorf("%w; %s", err, seen.advice())
	}
	return events, err
}
