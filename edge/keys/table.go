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

// Table finds keys by their hash. It is safe for concurrent use. It shares its entries and
// their counters with the tables before and after it, and answers by the latest list of
// all of them, so replace it by the next one.
type Table struct {
	number   uint64
	serial   int64 // of the list
	index    *index
	records  []tableRecord // in the order of the document
	accepted int
	skipped  []string
}

// ErrOlder means that a list has a lower serial number than the table.
var ErrOlder = errors.New("keys document is older than the one in use")

// tableRecord is a record of the list behind the table.
type tableRecord struct {
	sum   uint64 // of its line, or unknownSum
	entry *Key
}

// unknownSum is the sum of a line that the next table must decode again.
const unknownSum = 0

// NewTable makes the table of an encoded list. Keys keep the counters of the previous table, which may be nil and
// must have the same tiers and source, so that a reload gives no key a fresh window. NewTable marks revoked keys as
// refused. It does the same with a key of an unconfigured tier, which Skipped names, because one wrong record must
// not delay the revocation of another key.
//
// A list changes a record at a time, so NewTable does not decode the lines of the previous table
// again. With a previous table it pauses between pieces of work, so that it
// leaves the processor to the running requests.
//
// NewTable refuses a list with a lower serial number than the previous one with ErrOlder. It changes
// the previous table only if there is no error.
func NewTable(list []byte, tiers Tiers, source limit.Source, previous *Table) (*Table, error) {
	b := tableBuilder{tiers: tiers, names: tiers.Names(), source: source, previous: previous, serving: previous != nil, since: time.Now()}
	if previous == nil {
		b.previous = &Table{index: newIndex(0)}
	}
	o, err := open(list, b.yield)
	if err == nil {
		b.table.serial = o.serial
		err = b.readLines(o.lines)
	}
	if err == nil && previous != nil && b.table.serial < previous.serial {
		// Keys that were revoked in between would be accepted again.
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
	table := b.table // a pointer into b would keep the decoded lines in memory, and all previous tables
	return &table, nil
}

// tables counts the tables of this process.
var tables atomic.Uint64

// Number is unique to the table. Knowledge about a key is valid as long as the number of the table
// is the same; a number keeps no table alive.
func (t *Table) Number() uint64 { return t.number }

// Serial is the serial number of the list.
func (t *Table) Serial() int64 { return t.serial }

// Len returns the number of keys in the table that are not revoked, expired ones included.
func (t *Table) Len() int { return t.accepted }

// Skipped names the keys that the table refuses although they are not revoked, with the reason.
func (t *Table) Skipped() []string { return t.skipped }

// tableBuilder makes one table: it reads the whole list, and then changes the index.
type tableBuilder struct {
	tiers    Tiers
	names    []string // of tiers
	source   limit.Source
	previous *Table

	serving bool      // previous answers requests meanwhile
	since   time.Time // end of the last pause

	table   Table           // its changed records have no entry yet
	changed []changedRecord // records that differ from the previous table
	dropped []*Key          // entries of the previous table that differ from the list
	added   int             // changed records of keys that are new to the index
}

// changedRecord is a record that the previous table does not hold in this place.
type changedRecord struct {
	at     int // in the document
	record *StoredKey
	hash   Hash
}

// lineSeed is secret, so that nobody can find two lines with one sum.
var lineSeed = maphash.MakeSeed()

// readLines reads the records of a sealed list. It does not decode a line that the previous table
// has in the same place, because that line is valid.
func (b *tableBuilder) readLines(lines []byte) error {
	previous := b.previous.records
	b.table.records = make([]tableRecord, 0, len(previous)+1)
	var errs []error
	n := 0
	for line := range bytes.Lines(lines) {
		b.step(n)
		sum := maphash.Bytes(lineSeed, textOf(line))
		if n < len(previous) && previous[n].sum == sum && sum != unknownSum {
			b.table.records = append(b.table.records, previous[n])
		} else {
			if n < len(previous) {
				b.dropped = append(b.dropped, previous[n].entry)
			}
			r, err := decodeLine(line)
			if err == nil {
				err = b.add(r, sum)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("key %d: %.300s", n, err.Error())) // it quotes the line, of any length
			}
			if len(errs) >= maxFaults {
				return errors.Join(errs...)
			}
		}
		n++
	}
	for _, r := range previous[min(n, len(previous)):] {
		b.dropped = append(b.dropped, r.entry)
	}
	return errors.Join(errs...)
}

// add notes a record that differs from the previous table.
func (b *tableBuilder) add(r *StoredKey, sum uint64) error {
	c := changedRecord{at: len(b.table.records), record: r}
	if _, err := hex.Decode(c.hash[:], []byte(r.SHA256)); err != nil {
		return fmt.Errorf("%q: %w", r.ID, err)
	}
	b.changed = append(b.changed, c)
	b.table.records = append(b.table.records, tableRecord{sum: sum})
	return nil
}

// checkIDs refuses two records with one ID: both changed, or one unchanged.
func (b *tableBuilder) checkIDs() error {
	free := make(map[uint64]bool, len(b.dropped)) // IDs of the previous table that are free again
	for i, e := range b.dropped {
		b.step(i)
		free[idBits(e.hash.prefix())] = true
	}
	taken := make(map[uint64]bool, len(b.changed))
	for i, c := range b.changed {
		b.step(i)
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
		// A moved entry keeps its counters in place, because requests go on counting there.
		b.table.index = newIndex(len(b.table.records))
		for i := range b.table.records {
			b.step(i)
			if r := &b.table.records[i]; r.entry != nil {
				old := r.entry
				r.entry = b.table.index.put(&old.hash, func(e *Key) { e.move(old) })
			}
		}
	}
	kept := make(map[*Key]bool, len(b.changed)) // dropped entries with a new line or place only
	for i, c := range b.changed {
		b.step(i)
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

// fill makes e the entry of a changed record. Call it before e is published.
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

// timeSlice is the longest work on a table without a pause while requests are running.
const timeSlice = 500 * time.Microsecond

// step yields at every sixteenth step of a loop.
func (b *tableBuilder) step(i int) {
	if i%16 == 0 {
		b.yield()
	}
}

// yield sleeps as long as the work has taken, at the end of each time slice. With one processor
// the Go scheduler would let requests wait for ten milliseconds before it interrupts the work.
func (b *tableBuilder) yield() {
	if !b.serving {
		return
	}
	if worked := time.Since(b.since); worked >= timeSlice {
		time.Sleep(min(worked, 4*timeSlice)) // no longer, if another process took the processor meanwhile
		b.since = time.Now()
	}
}
