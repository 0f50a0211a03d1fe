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

// Table finds keys by their hash. It is immutable, but for the counters, which it shares with the tables before and
// after it. It is safe for concurrent use.
type Table struct {
	number   uint64
	serial   int64           // of the list
	keys     map[uint64]*Key // by the bits of their ID
	records  []tableRecord   // in the order of the document
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

// unknownSum stands for the sum of a line that the next table must decode again. No line has it, by the odds of a hash.
const unknownSum = 0

// NewTable makes the table of an encoded list. Keys keep the counters of the previous table, which may be nil and
// must have the same tiers and source, so that a reload gives no key a fresh window. NewTable marks revoked keys as
// refused. It does the same with a key of an unconfigured tier, which Skipped names, because one wrong record must
// not delay the revocation of another key.
//
// Cache, by the sum of a line under a secret seed: the table of 100,000 keys takes .14 s after a change of one, and 1.5 s from
// nothing. With a previous table it pauses between pieces of work, so that it
// leaves the processor to the running requests.
//
// NewTable refuses a list with a lower serial number than the previous one with ErrOlder.
func NewTable(list []byte, tiers Tiers, source limit.Source, previous *Table) (*Table, error) {
	b := tableBuilder{tiers: tiers, names: tiers.Names(), source: source, previous: previous, serving: previous != nil, since: time.Now()}
	if previous == nil {
		b.previous = &Table{}
	}
	o, err := open(list, b.yield)
	if err == nil && previous != nil && o.serial < previous.serial {
		// Keys that were revoked in between would be accepted again.
		err = fmt.Errorf("%w: serial number %d, in use is %d", ErrOlder, o.serial, previous.serial)
	}
	if err == nil {
		err = b.readLines(o.lines)
	}
	if err != nil {
		return nil, fmt.Errorf("decode keys: %w", err)
	}
	b.table.number, b.table.serial = tables.Add(1), o.serial
	table := b.table // a pointer into b would keep all previous tables in memory
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

// tableBuilder makes one table.
type tableBuilder struct {
	tiers    Tiers
	names    []string // of tiers
	source   limit.Source
	previous *Table

	serving bool      // previous answers requests meanwhile
	since   time.Time // end of the last pause

	table Table
}

// lineSeed is secret, so that nobody can find two lines with one sum.
var lineSeed = maphash.MakeSeed()

// readLines fills the table with the records of a sealed list. It does not decode a line that the previous table has in
// the same place, because that line is valid.
func (b *tableBuilder) readLines(lines []byte) error {
	previous := b.previous.records
	b.table.records = make([]tableRecord, 0, len(previous)+1) // a new list has one key more at most times
	b.table.keys = make(map[uint64]*Key, len(previous)+1)
	var errs []error
	n := 0
	for line := range bytes.Lines(lines) {
		b.yield()
		r := tableRecord{sum: maphash.Bytes(lineSeed, textOf(line))}
		var err error
		if n < len(previous) && previous[n].sum == r.sum {
			r.entry = previous[n].entry
		} else {
			err = b.read(line, &r)
		}
		if err == nil {
			err = b.add(r)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("key %d: %.300s", n, err.Error())) // it quotes the line, of any length
		}
		if len(errs) >= maxFaults {
			break
		}
		n++
	}
	return errors.Join(errs...)
}

// read makes the entry of a line that differs from the previous table's.
func (b *tableBuilder) read(line []byte, r *tableRecord) error {
	stored, err := decodeLine(line)
	if err != nil {
		return err
	}
	text, _ := hex.DecodeString(stored.SHA256) // decodeLine has checked its form
	e := &Key{hash: Hash(text), end: always}
	r.entry = e
	if old := b.previous.Find(&e.hash); old != nil {
		e.Counter, e.Usage = old.Counter, old.Usage
	} else {
		e.Usage = new(Usage)
	}
	tier, configured := slices.BinarySearch(b.names, stored.Tier)
	switch {
	case !stored.Revoked.IsZero():
	case !configured:
		r.sum = unknownSum // so that the next table names it too
		b.table.skipped = append(b.table.skipped, fmt.Sprintf("%s: tier %q is not configured", stored.ID, stored.Tier))
	default:
		e.accept(stored, tier, b.tiers[stored.Tier], b.source)
	}
	return nil
}

// add puts a record into the table. It refuses a second one with the same ID.
func (b *tableBuilder) add(r tableRecord) error {
	id := r.entry.hash.idBits()
	if b.table.keys[id] != nil {
		return fmt.Errorf("%q: id is taken", r.entry.id())
	}
	b.table.keys[id] = r.entry
	b.table.records = append(b.table.records, r)
	if r.entry.end != always {
		b.table.accepted++
	}
	return nil
}

// timeSlice is the longest work on a table without a pause while requests are running.
const timeSlice = 500 * time.Microsecond

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
