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

// Table finds keys by their hash. It is safe for concurrent use. It shares its entries, and what
// they count, with the tables before and after it, and speaks of the latest document that one of
// them was made of: it is to be replaced by the next one.
type Table struct {
	number   uint64
	serial   int64 // of the document
	index    *index
	records  []tableRecord // in the order of the document
	accepted int
	skipped  []string
}

// ErrOlder says that a document has a lower serial number than the one that is used.
var ErrOlder = errors.New("keys document is older than the one in use")

// tableRecord is a record of the document that was read.
type tableRecord struct {
	sum   uint64 // of its line, or unknownSum
	entry *Key
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
//
// A document with a lower serial number than the previous one is refused with ErrOlder. The
// previous table is changed only if there is no error.
func NewTable(list []byte, tiers Tiers, source limit.Source, previous *Table) (*Table, error) {
	b := tableBuilder{tiers: tiers, names: tiers.Names(), source: source, previous: previous, serving: previous != nil, since: time.Now()}
	if previous == nil {
		b.previous = &Table{index: newIndex(0)}
	}
	lines, serial, err := open(list, b.yield)
	if err == nil {
		b.table.serial = serial
		err = b.readLines(lines)
	}
	if err == nil && previous != nil && b.table.serial < previous.serial {
		// Keys that were revoked in between would work again.
		err = fmt.Errorf("%w: serial number %d, in use is %d", ErrOlder, b.table.serial, previous.serial)
	}
	if err == nil {
		err = b.checkIDs()
	}
	if err != nil {
		return nil, fmt.Errorf("decode keys: %w", err)
	}
	b.apply()
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

// Len returns how many keys the table holds that are not revoked, expired ones included.
func (t *Table) Len() int { return t.accepted }

// Skipped says which keys were left out although they are not revoked, and why.
func (t *Table) Skipped() []string { return t.skipped }

// tableBuilder makes one table: it reads all of the document, and then changes the index.
type tableBuilder struct {
	tiers    Tiers
	names    []string // of tiers
	source   limit.Source
	previous *Table

	serving bool      // requests are answered from previous meanwhile
	since   time.Time // when the work went on after the last pause

	table   Table           // its records have no entry yet where they are changed
	changed []changedRecord // those that are not as in the previous table
	dropped []*Key        // those of the previous table that are not as in the document
	added   int             // changed records of keys that the index does not have
}

// changedRecord is a record that the previous table does not have, or not in this place.
type changedRecord struct {
	at     int // in the document
	record *StoredKey
	hash   Hash
}

// lineSeed makes the sums of lines such that nobody can find two lines with one sum.
var lineSeed = maphash.MakeSeed()

// readLines reads the records of a sealed document. Those that the previous table was made of,
// as the same line in the same place, are in order and need not be decoded.
func (b *tableBuilder) readLines(lines []byte) error {
	known := b.previous.records
	b.table.records = make([]tableRecord, 0, len(known)+1)
	var errs []error
	n := 0
	for line := range bytes.Lines(lines) {
		if n%16 == 0 {
			b.yield()
		}
		sum := maphash.Bytes(lineSeed, textOf(line))
		if n < len(known) && known[n].sum == sum && sum != unknownSum {
			b.table.records = append(b.table.records, known[n])
		} else {
			if n < len(known) {
				b.dropped = append(b.dropped, known[n].entry)
			}
			r, err := decodeLine(line)
			if err == nil {
				err = b.add(r, sum)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("key %d: %w", n, err))
			}
		}
		n++
	}
	for _, r := range known[min(n, len(known)):] {
		b.dropped = append(b.dropped, r.entry)
	}
	return errors.Join(errs...)
}

// add notes a record that is not as in the previous table.
func (b *tableBuilder) add(r *StoredKey, sum uint64) error {
	c := changedRecord{at: len(b.table.records), record: r}
	if _, err := hex.Decode(c.hash[:], []byte(r.SHA256)); err != nil {
		return fmt.Errorf("%q: %w", r.ID, err)
	}
	b.changed = append(b.changed, c)
	b.table.records = append(b.table.records, tableRecord{sum: sum})
	return nil
}

// checkIDs refuses two records with one ID: both changed, or one as in the previous table.
func (b *tableBuilder) checkIDs() error {
	free := make(map[uint64]bool, len(b.dropped)) // IDs of the previous table that may be used again
	for i, e := range b.dropped {
		if i%16 == 0 {
			b.yield()
		}
		free[idBits(e.hash.prefix())] = true
	}
	taken := make(map[uint64]bool, len(b.changed))
	for i, c := range b.changed {
		if i%16 == 0 {
			b.yield()
		}
		id := idBits(c.hash.prefix())
		if taken[id] || !free[id] && b.previous.index.hasID(&c.hash) {
			return fmt.Errorf("key %d (%q): id is taken", c.at, c.record.ID)
		}
		taken[id] = true
		if b.previous.index.find(&c.hash) == nil {
			b.added++
		}
	}
	return nil
}

// apply makes the entries of the changed records current, and fills the table with all.
func (b *tableBuilder) apply() {
	previous := b.previous.index
	b.table.index = previous
	if previous.full(b.added) {
		// Entries that move keep their counters where they are: requests go on counting there.
		b.table.index = newIndex(len(b.table.records))
		for i := range b.table.records {
			if i%16 == 0 {
				b.yield()
			}
			if r := &b.table.records[i]; r.entry != nil {
				old := r.entry
				r.entry = b.table.index.put(&old.hash, func(e *Key) { e.move(old) })
			}
		}
	}
	kept := make(map[*Key]bool, len(b.changed)) // of dropped ones: only their line or place is new
	for i, c := range b.changed {
		if i%16 == 0 {
			b.yield()
		}
		old := previous.find(&c.hash)
		entry := b.table.index.put(&c.hash, func(e *Key) { b.fill(e, &c, old) })
		b.table.records[c.at].entry, kept[entry] = entry, true
	}
	for _, e := range b.dropped {
		if slot := b.table.index.slot(&e.hash); slot.current.Load() == e && !kept[e] {
			slot.current.Store(gone)
		}
	}
	for _, r := range b.table.records {
		if r.entry.end != always {
			b.table.accepted++
		}
	}
}

// fill makes an entry that nobody reads yet that of a changed record.
func (b *tableBuilder) fill(e *Key, c *changedRecord, old *Key) {
	tier, configured := slices.BinarySearch(b.names, c.record.Tier)
	switch {
	case !c.record.Revoked.IsZero():
		e.refuse(c.hash, old)
	case !configured:
		e.refuse(c.hash, old)
		b.table.records[c.at].sum = unknownSum // so that the next table names it too
		b.table.skipped = append(b.table.skipped, fmt.Sprintf("%s: tier %q is not configured", c.record.ID, c.record.Tier))
	default:
		e.fill(c.record, c.hash, tier, b.tiers[c.record.Tier], b.source, old)
	}
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
