package season

import (
	"hash/maphash"
	"iter"
	"maps"
	"slices"
	"time"
)

// Digest identifies facts within one process: equal facts have equal digests, in whatever slices and maps they lie. It
// has 64 bits under a random seed of the process, so two of a million different seasons share one with a chance of 1 in
// 30 million.
type Digest uint64

var seed = maphash.MakeSeed()

// Digests returns a digest for each season of the view, in order. It covers everything that the view
// shows of that season and of all seasons before it, with the drivers, teams, engines and circuits
// in their rows. Earlier seasons count because driver codes depend on them.
func (v *View) Digests() []Digest {
	digests := make([]Digest, len(v.Seasons))
	_ = sideBySide(len(digests), func(i int) error { // no call returns an error
		digests[i] = v.Seasons[i].digest(&v.Facts)
		return nil
	})
	for i := 1; i < len(digests); i++ {
		digests[i] = With(digests[i-1], digests[i])
	}
	return digests
}

// digest covers the season and the rows of the tables that it refers to.
func (s *Season) digest(tables *Facts) Digest {
	h := newHash()
	maphash.WriteComparable(h, s.Year)
	maphash.WriteComparable(h, len(s.Rounds))
	for i := range s.Rounds {
		s.Rounds[i].write(h)
	}
	named := s.firstSeen()
	writeTable(h, s.Colours, maps.Keys(s.Colours))
	writeTable(h, tables.Drivers, maps.Keys(named.drivers))
	writeTable(h, tables.Teams, maps.Keys(named.teams))
	writeTable(h, tables.Engines, maps.Keys(named.engines))
	writeTable(h, tables.Circuits, maps.Keys(named.circuits))
	return Digest(h.Sum64())
}

// Digest covers every fact of the round.
func (r *Round) Digest() Digest {
	h := newHash()
	r.write(h)
	return Digest(h.Sum64())
}

// With returns the digest of d and of a value without pointers.
func With[T comparable](d Digest, value T) Digest {
	h := newHash()
	maphash.WriteComparable(h, d)
	maphash.WriteComparable(h, value)
	return Digest(h.Sum64())
}

func newHash() *maphash.Hash {
	h := new(maphash.Hash)
	h.SetSeed(seed)
	return h
}

// write writes each field of the round. TestDigestsCoverEveryFact finds a field that is missing here.
func (r *Round) write(h *maphash.Hash) {
	for _, text := range []string{string(r.GrandPrix), r.Name, string(r.Circuit)} {
		maphash.WriteComparable(h, text)
	}
	maphash.WriteComparable(h, [3]int{r.Number, r.ScheduledLaps, int(r.AssumedHour)})
	maphash.WriteComparable(h, [2]bool{r.Street, r.Sprint})
	maphash.WriteComparable(h, r.CourseKm)
	maphash.WriteComparable(h, [2]instant{instantOf(r.Date), instantOf(r.Start)})
	maphash.WriteComparable(h, len(r.Sessions))
	for _, s := range r.Sessions {
		maphash.WriteComparable(h, s.Kind)
		maphash.WriteComparable(h, [2]instant{instantOf(s.Date), instantOf(s.Start)})
		maphash.WriteComparable(h, s.Cancelled)
	}
	for _, t := range tables {
		t.rows(r).write(h)
	}
}

// instant is a time without its zone. A time.Time points to its zone, and two zones of one name may lie in two places.
type instant struct {
	second     int64
	nanosecond int
	offset     int
}

func instantOf(t time.Time) instant {
	_, offset := t.Zone()
	return instant{t.Unix(), t.Nanosecond(), offset}
}

// writeTable writes the rows of the keys that the table has.
func writeTable[K ~string, V comparable](h *maphash.Hash, table map[K]V, keys iter.Seq[K]) {
	named := slices.Sorted(keys)
	maphash.WriteComparable(h, len(named))
	for _, key := range named {
		if row, ok := table[key]; ok {
			maphash.WriteComparable(h, key)
			maphash.WriteComparable(h, row)
		}
	}
}
