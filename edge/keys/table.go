package keys

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"sync/atomic"
	"time"

	"gridcast/edge/limit"
)

// Table finds keys by their hash. It is immutable and safe for concurrent use; the counters
// of its entries are shared with the tables before and after it.
type Table struct {
	number   uint64
	serial   int64 // of the document
	index    index
	records  []tableRecord // in the order of the document
	accepted int
	skipped  []string
}

// tableRecord is a record of the document that was read.
type tableRecord struct {
	sum   uint64 // of its line, or unknownSum
	entry *Entry
}

// unknownSum is the sum of a line that must be decoded again.
const unknownSum = 0

// NewTable makes the table of an encoded document. Keys keep the counters they had in the
// previous table, which may be nil and must be of the same tiers and source, so that a reload
// gives nobody a fresh window. Revoked keys are refused. So is a key of a tier that is not
// configured, which is named by Skipped: one wrong record must not keep the revocation of
// another from taking effect.
//
// Documents are changed a record at a time, so the lines of records that the previous table
// was made of are not decoded again. With a previous table the work is spread, so that it does
// not keep a processor from the requests that are being served.
func NewTable(document []byte, tiers Tiers, source limit.Source, previous *Table) (*Table, error) {
	b := tableBuilder{tiers: tiers, names: tiers.Names(), source: source, previous: previous, serving: previous != nil, since: time.Now()}
	if previous == nil {
		b.previous = &Table{index: newIndex(0)}
	}
	if len(document) > MaxSize {
		return nil, fmt.Errorf("decode keys: %d bytes, the most is %d", len(document), MaxSize)
	}
	lines, serial, sealed, err := unseal(document, b.yield)
	switch {
	case err != nil:
		return nil, fmt.Errorf("decode keys: %w", err)
	case sealed:
		b.table.serial = serial
		err = b.readLines(lines)
	default:
		err = b.readAny(document)
	}
	if err == nil {
		err = b.fillIndex()
	}
	if err != nil {
		return nil, err
	}
	b.table.number = tables.Add(1)
	return &b.table, nil
}

// tables is how many have been made.
var tables atomic.Uint64

// Number is the table's own. What is known of a key holds as long as the number of the table
// is the same, and a number keeps no table alive.
func (t *Table) Number() uint64 { return t.number }

// Serial is the serial number of the document, 0 if it has none.
func (t *Table) Serial() int64 { return t.serial }

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

// tableBuilder makes one table.
type tableBuilder struct {
	tiers    Tiers
	names    []string // of tiers
	source   limit.Source
	previous *Table

	serving bool      // requests are answered from previous meanwhile
	since   time.Time // when the work went on after the last pause

	table Table
}

// lineSeed makes the sums of lines such that nobody can find two lines with one sum.
var lineSeed = maphash.MakeSeed()

// readLines reads the records of a sealed document. Those that the previous table was made of,
// as the same line in the same place, are in order and need not be decoded.
func (b *tableBuilder) readLines(lines []byte) error {
	b.table.records = make([]tableRecord, 0, len(b.previous.records)+1)
	known := b.previous.records
	var errs []error
	for line := range bytes.Lines(lines) {
		n := len(b.table.records) + len(errs)
		if n%16 == 0 {
			b.yield()
		}
		sum := maphash.Bytes(lineSeed, line)
		if n < len(known) && known[n].sum == sum && sum != unknownSum {
			b.append(known[n].entry, sum)
			continue
		}
		r, err := decodeLine(line)
		if err == nil {
			err = b.add(r, sum)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("key %d: %w", n, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("decode keys: %w", err)
	}
	return nil
}

// readAny reads a document of any layout, all of it.
func (b *tableBuilder) readAny(document []byte) error {
	d, err := decodeAny(document)
	if err != nil {
		return err
	}
	b.table.serial = d.Serial
	b.table.records = make([]tableRecord, 0, len(d.Keys))
	for i := range d.Keys {
		if i%16 == 0 {
			b.yield()
		}
		if err := b.add(&d.Keys[i], unknownSum); err != nil {
			return fmt.Errorf("decode keys: key %d: %w", i, err)
		}
	}
	return nil
}

// add makes the entry of a record.
func (b *tableBuilder) add(r *Record, sum uint64) error {
	var hash Hash
	if _, err := hex.Decode(hash[:], []byte(r.SHA256)); err != nil {
		return fmt.Errorf("%q: %w", r.ID, err)
	}
	old := b.previous.index.find(&hash)
	tier, configured := slices.BinarySearch(b.names, r.Tier)
	switch {
	case !r.Revoked.IsZero():
		b.append(refusedEntry(hash, old), sum)
	case !configured:
		b.append(refusedEntry(hash, old), unknownSum) // so that the next table names it too
		b.table.skipped = append(b.table.skipped, fmt.Sprintf("%s: tier %q is not configured", r.ID, r.Tier))
	default:
		b.append(newEntry(r, hash, tier, b.tiers[r.Tier], b.source, old), sum)
	}
	return nil
}

func (b *tableBuilder) append(entry *Entry, sum uint64) {
	b.table.records = append(b.table.records, tableRecord{sum, entry})
	if entry.end != always {
		b.table.accepted++
	}
}

// fillIndex makes the entries that were read those of the table.
func (b *tableBuilder) fillIndex() error {
	b.table.index = newIndex(len(b.table.records))
	for i, r := range b.table.records {
		if i%16 == 0 {
			b.yield()
		}
		if !b.table.index.put(r.entry) {
			return fmt.Errorf("decode keys: key %d (%q): id is taken", i, r.entry.id())
		}
	}
	return nil
}

// timeSlice is how long a table is worked at without a pause while requests are answered.
const timeSlice = 500 * time.Microsecond

// yield sleeps as long as the work has taken, at the end of each time slice. On one processor
// the scheduler would let requests wait for ten milliseconds before it interrupted the work.
func (b *tableBuilder) yield() {
	if !b.serving {
		return
	}
	if worked := time.Since(b.since); worked >= timeSlice {
		time.Sleep(min(worked, 4*timeSlice)) // not for as long as something else kept it from its work
		b.since = time.Now()
	}
}
