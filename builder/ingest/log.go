package ingest

import (
	"context"
	"fmt"
	"time"

	"gridcast/builder/assemble"
	"gridcast/builder/season"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/chain"
)

// LogPrefix begins the key of every file of the facts log.
const LogPrefix = "facts/log/"

// Entry is one file of the facts log: an archive that followed another, and why; or that a person
// let a waiting change through. The log says what the service had and since when.
type Entry struct {
	chain.Link
	ID      string              `json:"id"` // random: tells a lost answer from a lost race
	At      time.Time           `json:"at"` // race time
	Actor   string              `json:"actor"`
	Base    string              `json:"base,omitzero"`    // SHA-256 of the archive before
	Archive string              `json:"archive,omitzero"` // and of the one that followed
	Changes []assemble.Proposal `json:"changes,omitzero"`
	Renames []assemble.Rename   `json:"renames,omitzero"`
	Accept  string              `json:"accept,omitzero"` // ID of a change that may be used
	Reason  string              `json:"reason,omitzero"`
	Hand    int64               `json:"hand,omitzero"` // the last file of what people entered that is in the archive
}

// Log is the facts log up to some file.
type Log struct {
	record[Entry]
	accepted map[string]bool
	since    map[assemble.BlockID]Origin
	hand     int64 // the highest of its entries
}

// record is a chain of entries, read up to its head. What an entry means is for whoever folds it.
type record[E any] struct {
	Entries []E // in order
	chain   chain.Chain
	head    chain.Head
}

// refresh reads what was appended since.
func (r *record[E]) refresh(ctx context.Context, fold func(E)) error {
	files, err := r.chain.After(ctx, r.head.Seq)
	if err != nil {
		return err
	}
	for _, f := range files {
		head, damage := r.chain.Follow(r.head, f.Data)
		if damage != nil {
			return damage
		}
		var e E
		if err := chain.Decode(f.Data, &e); err != nil {
			return fmt.Errorf("%s: %w", r.chain.Key(f.Seq), err)
		}
		r.head = head
		fold(e)
	}
	return nil
}

// append adds an entry, which has the link of the head, or returns false if somebody else was
// first; then the record is to be refreshed and the decision made again.
func (r *record[E]) append(ctx context.Context, e E, fold func(E)) (bool, error) {
	data, err := chain.Encode(e)
	if err != nil {
		return false, err
	}
	head, won, err := r.chain.Append(ctx, r.head, data)
	if err != nil || !won {
		return false, err
	}
	r.head = head
	fold(e)
	return true, nil
}

// Origin is where a block of a round came from, last.
type Origin struct {
	At       time.Time `json:"at"`
	Source   string    `json:"source"`
	Revision string    `json:"revision,omitzero"`
	Archive  string    `json:"archive"` // the first that had it
	Accepted bool      `json:"accepted,omitzero"`
	Released bool      `json:"released,omitzero"` // a person let go of what they had entered: it is as it was before
}

// LoadLog reads the facts log of a store. Damage is an error that wraps a *chain.DamageError.
func LoadLog(ctx context.Context, store blob.Store) (*Log, error) {
	l := &Log{accepted: make(map[string]bool), since: make(map[assemble.BlockID]Origin)}
	l.chain = chain.Chain{Store: store, Prefix: LogPrefix}
	return l, l.Refresh(ctx)
}

// Refresh reads what was appended since.
func (l *Log) Refresh(ctx context.Context) error {
	if err := l.refresh(ctx, l.fold); err != nil {
		return fmt.Errorf("read facts log: %w", err)
	}
	return nil
}

// append is that of a record.
func (l *Log) append(ctx context.Context, e Entry) (bool, error) {
	e.Link = l.head.Next()
	won, err := l.record.append(ctx, e, l.fold)
	if err != nil {
		return false, fmt.Errorf("append to facts log: %w", err)
	}
	return won, nil
}

func (l *Log) fold(e Entry) {
	l.Entries = append(l.Entries, e)
	if e.Accept != "" {
		l.accepted[e.Accept] = true
	}
	l.hand = max(l.hand, e.Hand)
	for _, c := range e.Changes {
		l.since[c.BlockID()] = Origin{e.At, c.Source, c.Revision, e.Archive, c.Accepted, c.Released}
	}
}

// Origin returns where a block came from; none for what the base archive had.
func (l *Log) Origin(year int, gp season.GrandPrixID, b assemble.Block) (Origin, bool) {
	o, ok := l.since[assemble.BlockID{Year: year, GrandPrix: gp, Block: b}]
	return o, ok
}

// last is the last entry that changed the archive; nil if there is none.
func (l *Log) last() *Entry {
	for i := len(l.Entries) - 1; i >= 0; i-- {
		if l.Entries[i].Archive != "" {
			return &l.Entries[i]
		}
	}
	return nil
}
