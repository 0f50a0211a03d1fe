package keys

import (
	"sync/atomic"
	"time"

	"gridcast/edge/limit"
)

// Table finds keys by their hash. It is immutable and safe for concurrent use; the counters
// of its entries are shared with the tables before and after it.
type Table struct {
	number   uint64
	index    index
	read     []readRecord // in the order of the document
	accepted int
	skipped  []string
}

// readRecord is a record that was read and is in order.
type readRecord struct {
	sum   uint64 // of its text, or unknownSum
	entry *Entry
}

// unknownSum is the sum of a text that must be decoded again.
const unknownSum = 0

// NewTable makes the table of an encoded document. Keys keep the counters they had in the
// previous table, which may be nil and must be of the same tiers and source, so that a reload
// gives nobody a fresh window. Revoked keys are refused. So is a key of a tier that is not
// configured, which is named by Skipped: one wrong record must not keep the revocation of
// another from taking effect.
//
// Documents are changed a record at a time, so the texts of records that the previous table
// was made of are not decoded again. With a previous table the work is spread, so that it does
// not keep a processor from the requests that are being served.
func NewTable(document []byte, tiers Tiers, source limit.Source, previous *Table) (*Table, error) {
	m := maker{tiers: tiers, names: tiers.Names(), source: source, pace: pace{hurry: previous == nil, since: time.Now()}}
	if previous == nil {
		previous = &Table{index: newIndex(0)}
	}
	m.previous = previous
	if err := m.readTexts(document); err != nil {
		return nil, err
	}
	if err := m.fillIndex(); err != nil {
		return nil, err
	}
	m.table.number = tables.Add(1)
	return &m.table, nil
}

// tables is how many have been made.
var tables atomic.Uint64

// Number is the table's own. What is known of a key holds as long as the number of the table
// is the same, and a number keeps no table alive.
func (t *Table) Number() uint64 { return t.number }

// Lookup returns the entry of a key that is accepted at now, which is real time, or nil. It
// does not allocate.
func (t *Table) Lookup(hash Hash, now time.Time) *Entry {
	entry := t.index.find(&hash)
	if entry == nil || !entry.Accepts(now) {
		return nil
	}
	return entry
}

// Len returns how many keys the table holds that are not revoked, expired ones included.
func (t *Table) Len() int { return t.accepted }

// Skipped says which keys were left out although they are not revoked, and why.
func (t *Table) Skipped() []string { return t.skipped }
