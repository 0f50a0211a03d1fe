package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/chain"
)

// Findings are the result of an audit. Its slices are tables in the order of the ledger, empty but never nil.
// Drivers have the ids of the files.
type Findings struct {
	Kind        Kind            `json:"kind"`
	Opened      time.Time       `json:"opened,omitzero"`
	Head        Head            `json:"head"` // the last file of the part that is whole
	Events      int             `json:"events"`
	Picks       []AuditedPick   `json:"picks"`
	Corrections []Correction    `json:"corrections"`
	Decisions   []AuditedChange `json:"decisions"`
	Noted       []Head          `json:"noted,omitempty"` // hashes noted earlier that were found
	Faults      []Fault         `json:"faults"`          // the first is where the record breaks
}

// Fault is a place where the ledger is wrong.
type Fault struct {
	Key  string `json:"key"` // of the file
	Want string `json:"want"`
	Got  string `json:"got"`
}

func (f Fault) String() string { return fmt.Sprintf("%s: expected %s, found %s", f.Key, f.Want, f.Got) }

// AuditedPick is a freeze in the ledger. Here and below, year and Grand Prix are zero for an unknown session key.
type AuditedPick struct {
	KeyAssignment
	Pick
	Live       bool `json:"live,omitzero"`
	Checkpoint int  `json:"checkpoint_pct,omitzero"` // of a live pick
	// Observation names the input of a live pick; nil for other picks.
	Observation *Observation `json:"observation,omitzero"`

	Basis   Basis     `json:"basis,omitzero"`
	Archive string    `json:"archive,omitzero"`
	Frozen  time.Time `json:"frozen_at"` // by the clock of the writer
	// Recorded is the instant of the head, if that was later than Frozen: one of the two clocks was wrong.
	// The ledger cannot tell which one. A head that somebody noted in between can.
	Recorded time.Time `json:"recorded_at,omitzero"`
	Start    time.Time `json:"start"` // lights out that was valid when it was frozen
	Actor    string    `json:"actor"`
	Voided   time.Time `json:"voided_at,omitzero"`
	Reason   string    `json:"reason,omitzero"` // why it was voided
	Extra    bool      `json:"extra,omitzero"`  // an earlier pick counts, so this one never did
	Late     bool      `json:"late,omitzero"`   // frozen after an earlier start had passed, which was put off afterwards
}

// Margin is how long before the start the pick was frozen; negative for a live pick.
func (p AuditedPick) Margin() time.Duration { return p.Start.Sub(p.Frozen) }

// Correction is a revision of a result with a reason: every one after the first, and a first one that differs from
// the source's.
type Correction struct {
	KeyAssignment
	Revision int       `json:"revision"`
	At       time.Time `json:"at"`
	Actor    string    `json:"actor"`
	Reason   string    `json:"reason"`
}

// AuditedChange is a change to the calendar.
type AuditedChange struct {
	KeyAssignment
	CalendarChange
}

// Green reports whether the ledger is whole and all events keep the rules.
func (r Findings) Green() bool { return len(r.Faults) == 0 }

// Err returns nil if the findings are green, else an error that names the first fault.
func (r Findings) Err() error {
	if r.Green() {
		return nil
	}
	return fmt.Errorf("the ledger does not hold: %s (the first of %d faults)", r.Faults[0], len(r.Faults))
}

// Audit reads the whole ledger from store and checks it. It needs no other source, and does not assume that Append
// wrote the files. It checks the chain, the rules of every event, and that every pick was frozen on the right side
// of the start.
//
// noted are hashes of heads that the caller noted earlier, from a manifest or from /status. Each must be the hash
// of a file in the ledger. Without a noted hash, an audit cannot see that the last files were cut off, or that the
// whole ledger was replaced.
//
// The error is for a store that cannot be read. Faults of the ledger are in the findings.
func Audit(ctx context.Context, store blob.Store, noted ...string) (Findings, error) {
	files, rest, err := chain.Chain{Store: store, Prefix: Prefix}.Load(ctx)
	if err != nil {
		return Findings{}, fmt.Errorf("audit the ledger in %s: %w", store, err)
	}
	a := &auditor{
		report: Findings{Picks: []AuditedPick{}, Corrections: []Correction{}, Decisions: []AuditedChange{}, Faults: []Fault{}},
		state:  newState(),
		picks:  map[int64]int{},
		ids:    map[string]string{},
	}
	for _, key := range rest.Foreign {
		a.fault(key, "nothing but ledger files", "a file of another name")
	}
	if len(files) == 0 && rest.Gap == nil {
		a.fault(Key(1), "the file that opens the ledger", "none")
	}
	// The chain is followed up to its first break: after it nothing can be trusted.
	var hashes []string
	for _, file := range files {
		f, head, err := follow(a.state, file)
		var damage *DamageError
		if errors.As(err, &damage) {
			a.fault(damage.Key, damage.Want, damage.Got)
			rest.Gap = nil
			break
		}
		if err != nil {
			return Findings{}, fmt.Errorf("audit the ledger in %s: %w", store, err)
		}
		hashes = append(hashes, head.Hash)
		a.state.add(f, head)
		for _, e := range f.Events {
			a.event(Key(f.Seq), e)
		}
		a.report.Events += len(f.Events)
	}
	if rest.Gap != nil {
		a.fault(rest.Gap.Key, rest.Gap.Want, rest.Gap.Got)
	}
	a.report.Kind, a.report.Opened, a.report.Head = a.state.kind, a.state.opened, a.state.head
	for _, b := range a.state.breaches {
		a.fault(Key(b.Seq), "events that keep the rules", b.Err.Error())
	}
	for _, hash := range noted {
		i := slices.Index(hashes, hash)
		if i < 0 {
			a.fault(Key(a.report.Head.Seq), "a file with the hash noted earlier, "+hash,
				fmt.Sprintf("no such file among %d: the ledger was cut or written anew", len(hashes)))
			continue
		}
		a.report.Noted = append(a.report.Noted, Head{Seq: int64(i) + 1, Hash: hash})
	}
	return a.report, nil
}

// auditor walks through the events once, oldest first.
type auditor struct {
	report Findings
	state  *Fold
	picks  map[int64]int     // by session: where in report.Picks the one that counts is
	ids    map[string]string // event id: the file it was first seen in
}

func (a *auditor) fault(key, want, got string) {
	a.report.Faults = append(a.report.Faults, Fault{Key: key, Want: want, Got: got})
}

func (a *auditor) event(key string, e Event) {
	if first, ok := a.ids[e.ID]; ok {
		a.fault(key, "an event id of its own", fmt.Sprintf("%s, which is in %s too", e.ID, first))
	}
	a.ids[e.ID] = key
	record, _ := a.state.Record(e.Session)
	round := KeyAssignment{Session: e.Session, Year: record.Year, GrandPrix: record.GrandPrix}
	switch e.Type {
	case PickFrozen, LivePickFrozen:
		a.pick(key, round, e)
	case PickVoided:
		if i, ok := a.picks[e.Session]; ok {
			a.report.Picks[i].Voided, a.report.Picks[i].Reason = e.When(), e.Reason
			delete(a.picks, e.Session)
		}
	case ResultVerified:
		if e.Result != nil && e.Reason != "" {
			a.report.Corrections = append(a.report.Corrections, Correction{
				KeyAssignment: round, Revision: e.Result.Revision, At: e.When(), Actor: e.Actor, Reason: e.Reason,
			})
		}
	case RoundPostponed, RoundCancelled, RoundMoved, RoundReinstated, RoundReleased, ChampionshipDecided:
		a.report.Decisions = append(a.report.Decisions, AuditedChange{round, e.calendarChange(time.Time{})})
		if _, counts := a.picks[e.Session]; !counts && record.Pick != nil { // it was restored
			for i, p := range slices.Backward(a.report.Picks) { // which lack it, if it is a later event of this file
				if p.Session == e.Session && !p.Live && p.Frozen.Equal(record.Pick.FrozenAt) {
					a.report.Picks[i].Voided, a.report.Picks[i].Reason = time.Time{}, ""
					a.picks[e.Session] = i
					break
				}
			}
		}
	}
}

// pick adds a frozen pick. It counts if it is the first since the last void, and was frozen on the right side of
// the start.
func (a *auditor) pick(key string, round KeyAssignment, e Event) {
	p := AuditedPick{
		KeyAssignment: round, Frozen: e.When(), Start: e.Start, Actor: e.Actor, Basis: e.Basis, Archive: e.Archive,
		Live: e.Type == LivePickFrozen, Checkpoint: e.Checkpoint, Observation: e.Observation,
	}
	if e.Pick != nil {
		p.Pick = *e.Pick
	}
	if !e.Made.IsZero() {
		p.Recorded = e.At
	}
	if p.Live {
		if !p.Frozen.After(e.Start) {
			a.fault(key, fmt.Sprintf("a live pick of %d frozen after its start %s", e.Session, instant(e.Start)), "one frozen at "+instant(p.Frozen))
		}
	} else {
		if !p.Frozen.Before(e.Start) {
			a.fault(key, fmt.Sprintf("a pick of %d frozen before its start %s", e.Session, instant(e.Start)), "one frozen at "+instant(p.Frozen))
		}
		if _, again := a.picks[e.Session]; again {
			p.Extra = true
		} else {
			a.picks[e.Session] = len(a.report.Picks)
		}
		// A start of the round had passed when the pick was frozen, and was put off only afterwards. Such a
		// pick keeps the rules, but the audit says so.
		p.Late = slices.ContainsFunc(a.report.Decisions, func(d AuditedChange) bool {
			return d.Session == e.Session && !d.Was.IsZero() && !d.At.Before(d.Was)
		})
	}
	a.report.Picks = append(a.report.Picks, p)
}
