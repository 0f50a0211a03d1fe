package ledger

import (
	"time"

	"gridcast/builder/season"
)

// Session is what the ledger says of one round. The zero values mean that nothing was recorded.
type Session struct {
	Key       int64
	Year      int
	GrandPrix season.GrandPrixID

	Pick      *FrozenPick    // the one that counts; nil if there is none
	Voided    []VoidedPick   // picks made before, oldest first
	Live      []FrozenPick   // by ascending checkpoint
	Revisions []Verification // of the result, oldest first
	Override  Override
}

// FrozenPick is a pick and the circumstances that make it honest.
type FrozenPick struct {
	Pick
	EventID    string
	FrozenAt   time.Time
	Actor      string
	Start      time.Time // lights out that was valid then
	GridKnown  bool
	Checkpoint int // of a live pick, percent of the scheduled distance; 0: end of lap 1
}

// VoidedPick is a pick that no longer counts, and why.
type VoidedPick struct {
	FrozenPick
	VoidedAt time.Time
	Reason   string
}

// Verification is one revision of a result.
type Verification struct {
	Classification
	EventID string
	At      time.Time
	Actor   string
	Reason  string // of a correction
}

// Status is what an operator or a source decided about a round.
type Status string

// The statuses.
const (
	AsPlanned Status = "" // nothing decided, or reinstated
	Postponed Status = "postponed"
	Cancelled Status = "cancelled"
)

// Override is what was decided about a round against its calendar.
type Override struct {
	Status  Status
	Start   time.Time // the start decided on, which outranks the archive's; zero if none was
	Changes []Change  // oldest first
}

// Change is one decision about a round.
type Change struct {
	Type   Type
	At     time.Time
	Actor  string
	Reason string
	Start  time.Time // see Event
	Was    time.Time
}

// Result returns the revision of the result that counts, the last one; nil if none is verified.
func (s *Session) Result() *Verification {
	if len(s.Revisions) == 0 {
		return nil
	}
	return &s.Revisions[len(s.Revisions)-1]
}

// LivePick returns the live pick made at a checkpoint; nil if there is none.
func (s *Session) LivePick(checkpoint int) *FrozenPick {
	for i := range s.Live {
		if s.Live[i].Checkpoint == checkpoint {
			return &s.Live[i]
		}
	}
	return nil
}

// Start returns the start that is valid: the one decided on, else planned, which is what the
// archive says.
func (s *Session) Start(planned time.Time) time.Time {
	if s.Override.Start.IsZero() {
		return planned
	}
	return s.Override.Start
}
