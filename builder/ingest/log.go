package ingest

import (
	"context"
	"time"

	"gridcast/builder/assemble"
	"gridcast/builder/season"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/chain"
)

// LogPrefix begins the key of every file of the facts log.
const LogPrefix = "facts/log/"

// LogEntry is one file of the facts log. It records that an archive replaced another and why, or that
// a person accepted a held proposal.
type LogEntry struct {
	chain.Link
	ID      string              `json:"id"` // random, so that a writer recognises its own entry after a lost answer
	At      time.Time           `json:"at"` // race time
	Actor   string              `json:"actor"`
	Base    string              `json:"base,omitzero"`    // SHA-256 of the replaced archive
	Archive string              `json:"archive,omitzero"` // SHA-256 of the new archive
	Changes []assemble.Proposal `json:"changes,omitzero"`
	Renames []assemble.Rename   `json:"renames,omitzero"`
	Accept  string              `json:"accept,omitzero"` // ID of the accepted proposal
	Reason  string              `json:"reason,omitzero"`
	Manual  int64               `json:"hand,omitzero"` // number of the last manual entry in the archive
}

// FactsLog is the facts log, read up to some entry.
type FactsLog struct {
	chain.Journal[LogEntry]
	accepted map[string]bool // IDs of proposals
	origins  map[assemble.BlockID]Origin
	manual   int64 // highest LogEntry.Manual
}

// Origin says from which source the archive has a block of a round.
type Origin struct {
	At       time.Time `json:"at"`
	Source   string    `json:"source"`
	Revision string    `json:"revision,omitzero"`
	Archive  string    `json:"archive"` // the first archive with the block
	Accepted bool      `json:"accepted,omitzero"`
	Released bool      `json:"released,omitzero"` // a person released a manual entry, and the earlier block is back
}

// LoadFactsLog reads the facts log of a store. Damage is an error that wraps a *chain.DamageError.
func LoadFactsLog(ctx context.Context, store blob.Store) (*FactsLog, error) {
	l := &FactsLog{accepted: make(map[string]bool), origins: make(map[assemble.BlockID]Origin)}
	l.Journal = chain.Journal[LogEntry]{Name: "facts log", Chain: chain.Chain{Store: store, Prefix: LogPrefix}, Fold: l.fold}
	return l, l.Refresh(ctx)
}

func (l *FactsLog) fold(e *LogEntry) {
	if e.Accept != "" {
		l.accepted[e.Accept] = true
	}
	l.manual = max(l.manual, e.Manual)
	for _, c := range e.Changes {
		l.origins[c.BlockID()] = Origin{e.At, c.Source, c.Revision, e.Archive, c.Accepted, c.Released}
	}
}

// Origin returns the origin of a block, false for a block of the first archive.
func (l *FactsLog) Origin(year int, gp season.GrandPrixID, b assemble.Block) (Origin, bool) {
	o, ok := l.origins[assemble.BlockID{Year: year, GrandPrix: gp, Block: b}]
	return o, ok
}

// last returns the last entry that changed the archive, nil if none did.
func (l *FactsLog) last() *LogEntry {
	for i := len(l.Entries) - 1; i >= 0; i-- {
		if l.Entries[i].Archive != "" {
			return &l.Entries[i]
		}
	}
	return nil
}
