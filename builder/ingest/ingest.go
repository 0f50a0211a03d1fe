// Package ingest polls the sources and keeps the archive in use up to date. A poll stores the
// document of a source, package assemble judges all documents, and the applied changes go into the
// facts log, the ledger and a new archive. People enter facts on the same road: see Enter.
//
// Any number of schedulers may do so on one store. The scheduler that claims a source first polls
// it, and an archive replaces only the one that it was assembled from.
package ingest

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"gridcast/builder/archive"
	"gridcast/builder/assemble"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/builder/source"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/lock"
)

// Ingest polls the sources of a store. It is safe for concurrent use, one call at a time: a Poll
// takes as long as its slowest source. Stability, Arrived, PollStates and Provenance never wait.
type Ingest struct {
	Store   blob.Store
	Facts   *archive.Store
	Ledger  *ledger.Ledger
	Sources []Source // by falling precedence
	// Interval returns the wait between an answer at an instant of race time and the next poll.
	Interval func(now time.Time) time.Duration
	// Vouch tells the ledger the results of the archive on which it was opened, before facts are applied. If nil,
	// the ledger knows them.
	Vouch func(context.Context) error
	// Release is the release of this program. Another one judges the documents again.
	Release string
	Log     *slog.Logger

	mu        lock.Lock    // guards the fields below, and is held while sources are polled
	log       *FactsLog    // nil before the first read, and after a failed one
	manual    *ManualLog   // likewise
	fresh     ledger.Fresh // by the last refresh
	headshots *season.Headshots
	archive   string                     // SHA-256 of the archive that contested is about
	contested map[assemble.BlockID]bool  // blocks that wait for a person or that sources dispute
	doubted   map[assemble.BlockID]bool  // results that differ from the standings of their source
	documents map[string]source.Document // by source and sum of the payload; one of each source
	assembled assembled

	known atomic.Pointer[known] // read without mu
}

// Source is an upstream with its rights.
type Source struct {
	source.Upstream
	// CheckOnly sources are compared with the others and never published. The operator has not
	// accepted their terms, or has them for the comparison alone.
	CheckOnly bool
	// Every is the shortest interval between two polls. Zero leaves it to Ingest.Interval.
	Every time.Duration
}

// Outcome describes a Poll or an Apply.
type Outcome struct {
	Polled    []string         // sources that this scheduler sent a request
	Faults    map[string]error // by source; a fault does not stop the other sources
	Applied   []assemble.Proposal
	Held      []assemble.Proposal // until a person accepts them
	Disputed  []assemble.Proposal
	Confirmed []assemble.Confirmation // manual facts with which a source agrees
	Events    []ledger.Event          // appended to the ledger
	Archive   string                  // SHA-256 of the archive in use afterwards
	Changed   bool                    // this run replaced the archive
}

// Poll polls the sources that are due at now, or all sources, and applies the changes that pass the
// gates. A source that is down or sends an unreadable document is a fault in the outcome, never an
// error; its last good document counts. The error is that of the store, the ledger or the facts
// log, or says that the new facts contradict each other.
func (g *Ingest) Poll(ctx context.Context, now time.Time, all bool) (Outcome, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	outcome := Outcome{Faults: make(map[string]error)}
	states, err := g.pollAll(ctx, now, all, &outcome)
	if err != nil {
		return outcome, err
	}
	if done, err := g.judgedAlready(ctx, states, &outcome); err != nil || done {
		return outcome, err
	}
	return outcome, g.apply(ctx, now, states, &outcome)
}

// Apply applies the last documents and the manual entries again, without a poll.
func (g *Ingest) Apply(ctx context.Context, now time.Time) (Outcome, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	outcome := Outcome{Faults: make(map[string]error)}
	states, err := g.loadStates(ctx)
	if err != nil {
		return outcome, err
	}
	return outcome, g.apply(ctx, now, states, &outcome)
}

// loadStates returns the states of the sources, in their order.
func (g *Ingest) loadStates(ctx context.Context) ([]PollState, error) {
	states := make([]PollState, len(g.Sources))
	for i, s := range g.Sources {
		var err error
		if states[i], err = LoadPollState(ctx, g.Store, s.Name()); err != nil {
			return nil, err
		}
	}
	return states, nil
}

// Load reads the facts log and the states of all sources, so that Stability and the other views
// answer in a process that never polls.
func (g *Ingest) Load(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	log, err := LoadFactsLog(ctx, g.Store)
	if err != nil {
		return err
	}
	states, err := LoadPollStates(ctx, g.Store)
	if err != nil {
		return err
	}
	current, err := g.Facts.InUse(ctx)
	if err != nil {
		return err
	}
	g.log = log
	g.contestStates(current, states)
	return nil
}

// contestStates takes the contested and the doubted blocks of an archive from the states.
func (g *Ingest) contestStates(archive string, states []PollState) {
	var open []assemble.Proposal
	var doubted []assemble.BlockID
	for _, state := range states {
		open = append(append(open, state.Held...), state.Disputed...)
		doubted = append(doubted, state.Doubted...)
	}
	g.contest(archive, open, doubted)
	g.setKnown(states)
}

// contest sets the contested and the doubted blocks of an archive.
func (g *Ingest) contest(archive string, open []assemble.Proposal, doubted []assemble.BlockID) {
	g.archive, g.contested, g.doubted = archive, make(map[assemble.BlockID]bool), make(map[assemble.BlockID]bool)
	for _, id := range doubted {
		g.doubted[id] = true
	}
	for _, c := range open {
		g.contested[c.BlockID()] = true
	}
}

// Accept accepts a held proposal: the next run applies it in spite of the gates. Without a held
// proposal of that ID the error lists the IDs of the others.
func (g *Ingest) Accept(ctx context.Context, now time.Time, actor, id, reason string) (assemble.Proposal, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	states, err := g.loadStates(ctx)
	if err != nil {
		return assemble.Proposal{}, err
	}
	var held []string
	for _, state := range states {
		for _, c := range state.Held {
			if gate := c.Refused[0].Gate; c.ID == id && (gate == assemble.UnreadGate || gate == assemble.LedgerGate) {
				return c, fmt.Errorf("accept %s: %s; enter the facts by hand, or wait for the next revision", id, c.Refused[0].Reason)
			}
			if c.ID == id {
				return c, g.logAccept(ctx, LogEntry{ID: rand.Text(), At: now.UTC(), Actor: actor, Accept: id, Reason: reason})
			}
			held = append(held, c.ID)
		}
	}
	return assemble.Proposal{}, fmt.Errorf("accept %s: no change of that ID waits; waiting: %s", id, cmp.Or(strings.Join(held, " "), "none"))
}

// logAccept appends the entry of an accepted proposal.
func (g *Ingest) logAccept(ctx context.Context, e LogEntry) error {
	for {
		log, err := LoadFactsLog(ctx, g.Store)
		if err != nil {
			return err
		}
		e.Link = log.Head.Next()
		if won, err := log.Append(ctx, e); err != nil {
			return fmt.Errorf("accept %s: %w", e.Accept, err)
		} else if won {
			return nil
		}
	}
}
