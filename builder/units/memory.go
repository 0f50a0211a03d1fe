package units

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"gridcast/builder/almanac"
	"gridcast/builder/check"
	"gridcast/builder/render"
	"gridcast/snapshots"
)

// Memory holds the verdicts on the units of the last version that it was given to keep, and their parts in the documents
// about all seasons. It holds no documents: those of 77 seasons take 35 MB, and a version needs them only for a season with
// a refused document. The zero value is empty. It is safe for concurrent use.
//
// Cache, by the digest of a season's inputs and its published documents: a build takes .12 s of processor time, and 1.1 s
// if it renders and checks all seasons.
type Memory struct {
	mu      sync.Mutex            // guards the other fields
	units   map[key]*check.Season // verdicts without faults
	results almanac.Results
}

// key is the digest of a unit's inputs and of its documents as they are published.
type key [sha256.Size]byte

// Render renders the documents of the almanac on a base, except those of the seasons that it remembers.
// It does not render derived documents. progress is called concurrently; it may be nil.
func (m *Memory) Render(ctx context.Context, base *snapshots.Base, a *almanac.Almanac, progress func(done, total int)) (*Version, error) {
	v := &Version{almanac: a, seasons: map[int]*unit{}, others: map[string]*Document{}}
	published := map[int][]snapshots.ManifestEntry{} // by season
	for _, entry := range base.Manifest.Entries {
		year := seasonOf(entry.Path)
		published[year] = append(published[year], entry)
	}
	m.mu.Lock()
	units := m.units
	a.Reuse(m.results)
	m.mu.Unlock()
	for year, inputs := range a.Digests() {
		u := &unit{documents: map[string]*Document{}, inputs: &inputs}
		if u.verdict = units[keyOf(inputs, published[year])]; u.verdict != nil {
			for _, entry := range published[year] {
				u.documents[entry.Path] = &Document{Path: entry.Path, Published: snapshots.Reused(entry), Reused: true, remembered: true}
			}
		}
		v.seasons[year] = u
	}
	variants := render.Variants(a)
	documents := make([]*Document, len(variants))
	var done atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, variant := range variants {
		if u := v.seasons[variant.Season()]; u != nil && u.verdict != nil {
			done.Add(1)
			continue
		}
		group.Go(func() error {
			documents[i] = Render(base, variant.Path(), a.At, func(at time.Time) ([]byte, error) { return render.Body(a, variant, at) })
			if progress != nil {
				progress(int(done.Add(1)), len(variants))
			}
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, d := range documents {
		if d == nil {
			continue
		}
		if u := v.seasons[seasonOf(d.Path)]; u != nil {
			u.documents[d.Path] = d
		} else {
			v.others[d.Path] = d
		}
	}
	return v, nil
}

// keyOf makes the key of a unit. The entries are in ascending order of their paths.
func keyOf(inputs almanac.Digest, entries []snapshots.ManifestEntry) key {
	text := inputs[:]
	for i := range entries {
		e := &entries[i]
		text = append(append(append(text, e.Path...), ' '), e.SHA256...)
		text = binary.BigEndian.AppendUint64(text, uint64(e.GeneratedAt.UnixNano()))
	}
	return sha256.Sum256(text)
}

// Keep remembers the seasons of a checked version that have no fault, and forgets all others.
func (m *Memory) Keep(v *Version) {
	units := make(map[key]*check.Season, len(v.seasons))
	for _, u := range v.seasons {
		if u.inputs == nil || u.verdict == nil || len(u.verdict.Faults) > 0 {
			continue
		}
		var entries []snapshots.ManifestEntry
		for _, path := range slices.Sorted(maps.Keys(u.documents)) {
			entries = append(entries, u.documents[path].Published.Entry())
		}
		units[keyOf(*u.inputs, entries)] = u.verdict
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.units, m.results = units, v.almanac.Results()
}
