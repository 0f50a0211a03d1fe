package ledger

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"
)

// add folds a file into s, which must not be shared yet. Events that break a rule are noted
// and otherwise left out.
func (s *State) add(f File, head Head) {
	for _, e := range f.Events {
		if err := s.Check(e); err != nil {
			s.breaches = append(s.breaches, Breach{Seq: f.Seq, Event: e, Err: err})
			continue
		}
		s.apply(e)
	}
	if e, err := s.checkSettled(f.Events); err != nil {
		s.breaches = append(s.breaches, Breach{Seq: f.Seq, Event: e, Err: err})
	}
	s.head, s.at = head, f.Events[0].At
}

// admit checks the events of one append, each against the state that the ones before it leave.
func (s *State) admit(events []Event) error {
	trial := s.clone()
	for _, e := range events {
		if err := trial.Check(e); err != nil {
			return err
		}
		trial.apply(e)
	}
	_, err := trial.checkSettled(events)
	return err
}

// change replaces a session by a copy that edit may change. The copy's slices are clipped, so
// that appending to them leaves those of the original alone.
func (s *State) change(key int64, edit func(*Session)) {
	c := *s.sessions[key]
	c.Voided, c.Live, c.Revisions = slices.Clip(c.Voided), slices.Clip(c.Live), slices.Clip(c.Revisions)
	c.Override.Changes = slices.Clip(c.Override.Changes)
	edit(&c)
	s.sessions[key] = &c
}

// apply makes an event's change. The event has passed Check.
func (s *State) apply(e Event) {
	s.at = e.At
	switch e.Type {
	case Opened:
		s.kind, s.opened = e.Kind, e.At
	case KeysAssigned:
		s.assign(e.Keys)
	case PickFrozen:
		s.change(e.Session, func(c *Session) { c.Pick = frozen(e) })
	case LivePickFrozen:
		s.change(e.Session, func(c *Session) {
			c.Live = append(c.Live, *frozen(e))
			slices.SortFunc(c.Live, func(a, b FrozenPick) int { return cmp.Compare(a.Checkpoint, b.Checkpoint) })
		})
	case PickVoided:
		s.change(e.Session, func(c *Session) {
			c.Voided = append(c.Voided, VoidedPick{FrozenPick: *c.Pick, VoidedAt: e.At, Reason: e.Reason})
			c.Pick = nil
		})
	case ResultVerified:
		s.change(e.Session, func(c *Session) {
			c.Revisions = append(c.Revisions, Verification{
				Classification: *e.Result, EventID: e.ID, At: e.At, Actor: e.Actor, Reason: e.Reason,
			})
		})
	case RoundPostponed, RoundCancelled, RoundMoved, RoundReinstated:
		s.change(e.Session, func(c *Session) { c.Override.decide(e) })
	default:
		panic(errors.New("BUG: ledger: apply of an event that Check would refuse: " + string(e.Type)))
	}
}

// assign binds keys to rounds, in a copy of the keys known before.
func (s *State) assign(keys []KeyAssignment) {
	s.keys = maps.Clone(s.keys)
	for _, k := range keys {
		s.keys[roundID{k.Year, k.GrandPrix}] = k.Session
		s.sessions[k.Session] = &Session{Key: k.Session, Year: k.Year, GrandPrix: k.GrandPrix}
	}
	s.order = make([]int64, 0, len(s.sessions))
	for key := range s.sessions {
		s.order = append(s.order, key)
	}
	slices.Sort(s.order)
}

func frozen(e Event) *FrozenPick {
	return &FrozenPick{
		Pick: *e.Pick, EventID: e.ID, FrozenAt: e.At, Actor: e.Actor,
		Start: e.Start, GridKnown: e.GridKnown, Checkpoint: e.Checkpoint,
	}
}

// decide takes over an operator's or a source's decision about the round.
func (o *Override) decide(e Event) {
	switch e.Type {
	case RoundPostponed:
		o.Status, o.Start = Postponed, time.Time{} // the date is off, also one decided on before
	case RoundCancelled:
		o.Status = Cancelled
	case RoundReinstated:
		o.Status = AsPlanned
	}
	if !e.Start.IsZero() {
		o.Start = e.Start
	}
	o.Changes = append(o.Changes, Change{
		Type: e.Type, At: e.At, Actor: e.Actor, Reason: e.Reason, Start: e.Start, Was: e.Was,
	})
}
