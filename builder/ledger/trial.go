package ledger

import (
	"slices"
	"time"
)

// Trial returns the fold that appending the events at the instant would give. It refuses the events that the
// rules of Append refuse. s stays unchanged.
func (s *Fold) Trial(at time.Time, events []Event) (*Fold, error) {
	events = slices.Clone(events)
	for i, e := range events {
		e.ID, e.Actor = "trial", "trial"
		events[i] = s.stamp(e, at.UTC().Round(0))
	}
	return s.admit(events)
}
