package ledger

import (
	"context"
	"fmt"
	"slices"

	"gridcast/snapshots/blob"
)

// Audit reads the ledger in store anew and reports what it proves. It needs no other source
// and does not assume that Append wrote the files. It checks the chain, that every event keeps
// the rules, and, from the files alone, that every pick was frozen on its side of the start.
//
// noted are hashes of heads that somebody wrote down earlier, from a manifest or from /status.
// Each must be that of a file in the ledger: without one, an audit can not see that the last
// files were cut off, or that everything was written anew.
//
// The error is for a store that can not be read. What is wrong with the ledger is in the report.
func Audit(ctx context.Context, store blob.Store, noted ...string) (Report, error) {
	last, strangers, err := listed(ctx, store)
	if err != nil {
		return Report{}, fmt.Errorf("audit the ledger in %s: %w", store, err)
	}
	files, err := fetch(ctx, store, last)
	if err != nil {
		return Report{}, fmt.Errorf("audit the ledger in %s: %w", store, err)
	}
	a := &auditor{
		report: Report{Picks: []AuditedPick{}, Corrections: []Correction{}, Decisions: []Decision{}, Faults: []Fault{}},
		state:  newState(),
		picks:  map[int64]int{},
		ids:    map[string]string{},
	}
	if last == 0 {
		a.fault(Key(1), "the file that opens the ledger", "none")
	}
	for _, key := range strangers {
		a.fault(key, "nothing but ledger files", "a file of another name")
	}
	a.files(files)
	a.breaches()
	a.heads(noted)
	return a.report, nil
}

// auditor walks through the files once, oldest first.
type auditor struct {
	report Report
	state  *State
	hashes []string
	picks  map[int64]int     // by session: where in report.Picks the standing one is
	ids    map[string]string // event id: the file it was first seen in
}

func (a *auditor) fault(key, want, got string) {
	a.report.Faults = append(a.report.Faults, Fault{Key: key, Want: want, Got: got})
}

// files checks the chain up to its first break: after it nothing can be trusted.
func (a *auditor) files(files [][]byte) {
	var links chain
	for _, data := range files {
		f, damage := links.next(data)
		if damage != nil {
			a.fault(damage.Key, damage.Want, damage.Got)
			break
		}
		a.hashes = append(a.hashes, links.head.Hash)
		a.state.add(f, links.head)
		for _, e := range f.Events {
			a.event(Key(f.Seq), e)
		}
		a.report.Events += len(f.Events)
	}
	a.report.Kind, a.report.Opened, a.report.Head = a.state.kind, a.state.opened, links.head
}

// event adds an event to the tables of the report.
func (a *auditor) event(key string, e Event) {
	if first, ok := a.ids[e.ID]; ok {
		a.fault(key, "an event id of its own", fmt.Sprintf("%s, which is in %s too", e.ID, first))
	}
	a.ids[e.ID] = key
	switch e.Type {
	case PickFrozen, LivePickFrozen:
		a.pick(key, e)
	case PickVoided:
		if i, ok := a.picks[e.Session]; ok {
			a.report.Picks[i].Voided, a.report.Picks[i].Reason = e.At, e.Reason
			delete(a.picks, e.Session)
		}
	case ResultVerified:
		if e.Result != nil && (e.Result.Revision > 1 || e.Reason != "") {
			a.report.Corrections = append(a.report.Corrections, Correction{
				Round: a.round(e), Revision: e.Result.Revision, At: e.At, Actor: e.Actor, Reason: e.Reason,
			})
		}
	case RoundPostponed, RoundCancelled, RoundMoved, RoundReinstated:
		a.decision(e)
	}
}

// pick adds a frozen pick. Whether it stands follows from the files alone: it is the first
// since the last void, and was frozen on the right side of the start.
func (a *auditor) pick(key string, e Event) {
	p := AuditedPick{Round: a.round(e), Frozen: e.At, Start: e.Start, Live: e.Type == LivePickFrozen, Checkpoint: e.Checkpoint, Actor: e.Actor}
	if e.Pick != nil {
		p.Pick = *e.Pick
	}
	switch {
	case p.Live && !e.At.After(e.Start):
		a.fault(key, fmt.Sprintf("a live pick of %d frozen after its start %s", e.Session, instant(e.Start)), "one frozen at "+instant(e.At))
	case !p.Live && !e.At.Before(e.Start):
		a.fault(key, fmt.Sprintf("a pick of %d frozen before its start %s", e.Session, instant(e.Start)), "one frozen at "+instant(e.At))
	}
	if !p.Live {
		if _, again := a.picks[e.Session]; again {
			p.Extra = true
		} else {
			a.picks[e.Session] = len(a.report.Picks)
		}
		p.Late = a.passed(e)
	}
	a.report.Picks = append(a.report.Picks, p)
}

// passed says that a start of the round had come before the pick was frozen: it was put off
// only after that. Such a pick keeps the rules, but a reader should know.
func (a *auditor) passed(e Event) bool {
	return slices.ContainsFunc(a.report.Decisions, func(d Decision) bool {
		return d.Session == e.Session && !d.Was.IsZero() && !d.At.Before(d.Was)
	})
}

func (a *auditor) decision(e Event) {
	a.report.Decisions = append(a.report.Decisions, Decision{
		Round: a.round(e), Type: e.Type, At: e.At, Actor: e.Actor, Reason: e.Reason, Start: e.Start, Was: e.Was,
	})
}

func (a *auditor) round(e Event) Round {
	session, _ := a.state.Session(e.Session)
	return Round{Session: e.Session, Year: session.Year, GrandPrix: session.GrandPrix}
}

// breaches reports the events that break a rule, which readers ignore.
func (a *auditor) breaches() {
	for _, b := range a.state.breaches {
		a.fault(Key(b.Seq), "events that keep the rules", b.Err.Error())
	}
}

// heads looks for each noted hash in the chain.
func (a *auditor) heads(noted []string) {
	for _, hash := range noted {
		i := slices.Index(a.hashes, hash)
		if i < 0 {
			a.fault(Key(a.report.Head.Seq), "a file with the hash noted earlier, "+hash,
				fmt.Sprintf("no such file among %d: the ledger was cut or written anew", len(a.hashes)))
			continue
		}
		a.report.Noted = append(a.report.Noted, Head{Seq: int64(i) + 1, Hash: hash})
	}
}
