package keys

import (
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"

	"gridcast/edge/limit"
)

// maker makes one table.
type maker struct {
	tiers    Tiers
	names    []string // of tiers
	source   limit.Source
	previous *Table
	pace     pace

	table Table
}

// textSeed makes the sums of texts such that nobody can find two texts with one sum.
var textSeed = maphash.MakeSeed()

// readTexts reads the records of an encoded document. Those that the previous table was made
// of, as the same text in the same place, are in order and need not be decoded.
func (m *maker) readTexts(document []byte) error {
	m.begin(len(m.previous.read) + 1)
	var errs []error
	for text := range recordTexts(document) {
		if text == nil {
			return m.readDocument(document)
		}
		m.pace.step()
		i := len(m.table.read) + len(errs)
		sum := maphash.Bytes(textSeed, text)
		if entry := m.known(i, sum); entry != nil {
			m.append(entry, sum)
			continue
		}
		r, err := decodeRecord(text)
		if err == nil {
			err = m.add(r, sum)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("key %d: %w", i, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("decode keys: %w", err)
	}
	return nil
}

// readDocument reads a document of any layout, all of it.
func (m *maker) readDocument(document []byte) error {
	d, err := Decode(document)
	if err != nil {
		return err
	}
	m.begin(len(d.Keys))
	for i := range d.Keys {
		m.pace.step()
		if err := m.add(&d.Keys[i], unknownSum); err != nil {
			return err
		}
	}
	return nil
}

func (m *maker) begin(n int) { m.table = Table{read: make([]readRecord, 0, n)} }

// known returns the entry that the previous table has of the i-th text, if that had this sum.
func (m *maker) known(i int, sum uint64) *Entry {
	if i >= len(m.previous.read) || sum == unknownSum || m.previous.read[i].sum != sum {
		return nil
	}
	return m.previous.read[i].entry
}

// add makes the entry of a record.
func (m *maker) add(r *Record, sum uint64) error {
	var hash Hash
	if _, err := hex.Decode(hash[:], []byte(r.SHA256)); err != nil {
		return fmt.Errorf("%q: %w", r.ID, err)
	}
	old := m.previous.index.find(&hash)
	tier, configured := slices.BinarySearch(m.names, r.Tier)
	switch {
	case !r.Revoked.IsZero():
		m.append(refusedEntry(hash, old), sum)
	case !configured:
		m.append(refusedEntry(hash, old), unknownSum) // so that the next table names it too
		m.table.skipped = append(m.table.skipped, fmt.Sprintf("%s: tier %q is not configured", r.ID, r.Tier))
	default:
		m.append(newEntry(r, hash, tier, m.tiers[r.Tier], m.source, old), sum)
	}
	return nil
}

func (m *maker) append(entry *Entry, sum uint64) {
	m.table.read = append(m.table.read, readRecord{sum, entry})
	if entry.end != always {
		m.table.accepted++
	}
}

// fillIndex makes the entries that were read those of the table.
func (m *maker) fillIndex() error {
	m.table.index = newIndex(len(m.table.read))
	for i, r := range m.table.read {
		m.pace.step()
		if !m.table.index.put(r.entry) {
			return fmt.Errorf("decode keys: key %d (%q): id is taken", i, r.entry.id())
		}
	}
	return nil
}
