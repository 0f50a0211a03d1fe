package ledger

import (
	"slices"
	"time"
)

// Trial returns the state as it would be if the events were appended to s at the instant. It
// refuses what Append would refuse by the rules; s stays as it is.
func (s *Fold) Trial(at time.Time, events []Event) (*Fold, error) {
	events = slices.Clone(events)
	for i, e := range events {
		e.ID, e.Actor = "trial", "trial"
		events[i] = s.stamp(e, at.UTC().Round(0))
	}
	if err := s.admit(events); err != nil {
		return nil, err
	}
	trial := s.clone()
	for _, e := range events {
		trial.apply(e)
	}
	return trial, nil
}
