package ledger

import (
	"fmt"
	"time"

	"gridcast/builder/season"
)

// Report is what an audit found. Its slices are tables in the order of the ledger, empty but
// not nil where there is nothing to tell.
type Report struct {
	Kind        Kind          `json:"kind"`
	Opened      time.Time     `json:"opened,omitzero"`
	Head        Head          `json:"head"` // the last file of the part that is whole
	Events      int           `json:"events"`
	Picks       []AuditedPick `json:"picks"`
	Corrections []Correction  `json:"corrections"`
	Decisions   []Decision    `json:"decisions"`
	Noted       []Head        `json:"noted,omitempty"` // hashes noted earlier that were found
	Faults      []Fault       `json:"faults"`          // the first is where the record breaks
}

// Fault is a place where the ledger is not what it should be.
type Fault struct {
	Key  string `json:"key"` // of the file
	Want string `json:"want"`
	Got  string `json:"got"`
}

func (f Fault) String() string { return fmt.Sprintf("%s: expected %s, found %s", f.Key, f.Want, f.Got) }

// Round says which round a line is about. Year and grand prix are zero for an unknown key.
type Round struct {
	Session   int64              `json:"session_key"`
	Year      int                `json:"year"`
	GrandPrix season.GrandPrixID `json:"grand_prix"`
}

// AuditedPick is a freeze as it stands in the ledger.
type AuditedPick struct {
	Round
	Pick
	Live       bool      `json:"live,omitzero"`
	Checkpoint int       `json:"checkpoint_pct,omitzero"` // of a live pick
	Frozen     time.Time `json:"frozen_at"`
	Start      time.Time `json:"start"` // lights out that was valid when it was frozen
	Actor      string    `json:"actor"`
	Voided     time.Time `json:"voided_at,omitzero"`
	Reason     string    `json:"reason,omitzero"` // why it was voided
	Extra      bool      `json:"extra,omitzero"`  // another pick stood already, so this one never counted
	Late       bool      `json:"late,omitzero"`   // frozen after an earlier start had passed and was put off in hindsight
}

// Margin is how long before the start the pick was frozen; negative for a live pick.
func (p AuditedPick) Margin() time.Duration { return p.Start.Sub(p.Frozen) }

// Correction is a revision of a result that was decided on for a reason: every one after the
// first, and a first that is not the source's.
type Correction struct {
	Round
	Revision int       `json:"revision"`
	At       time.Time `json:"at"`
	Actor    string    `json:"actor"`
	Reason   string    `json:"reason"`
}

// Decision is a change to the calendar.
type Decision struct {
	Round
	Type   Type      `json:"type"`
	At     time.Time `json:"at"`
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
	Start  time.Time `json:"start,omitzero"` // the new one, if any
	Was    time.Time `json:"was,omitzero"`   // the one before, where it is known
}

// Green says that the ledger is whole and every event in it keeps the rules.
func (r Report) Green() bool { return len(r.Faults) == 0 }

// Err returns nil if the report is green, else an error that names the first fault.
func (r Report) Err() error {
	if r.Green() {
		return nil
	}
	if more := len(r.Faults) - 1; more > 0 {
		return fmt.Errorf("the ledger does not hold: %s (and %d more)", r.Faults[0], more)
	}
	return fmt.Errorf("the ledger does not hold: %s", r.Faults[0])
}
