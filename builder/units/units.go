// Package units makes the documents of a version, one season at a time, and remembers them.
//
// A season is one unit: its documents are rendered, checked and remembered together. The key of a unit
// is the digest of everything that its documents are made from:
//
//   - facts, ledger records and states: see almanac.Digest;
//   - for each document that is published already, its path, its hash and its generated_at.
//
// So a unit is found again only if rendering it would give exactly the documents of the base. A Memory
// belongs to one process, hence the release of the program is no part of the key. Documents about no
// single season are rendered and checked for each version.
package units

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
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
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
)

// Document is one document of a version, or a feed.
type Document struct {
	Path      string
	Body      []byte            // nil if it is the one of the base and was not read
	Published snapshots.Variant // unset if Fault is not nil
	Reused    bool              // Published is the entry of the base
	Fault     error             // why it could not be rendered

	remembered bool // rendering gives the entry of the base, so that Body is rendered when it is needed
}

// Render renders a document as of the instant at which the base first rendered it. If that gives the
// bytes of the base, the document keeps them, with their codings and their tag. Else it is rendered as
// of now.
func Render(base *snapshots.Base, path string, now time.Time, render func(at time.Time) ([]byte, error)) *Document {
	d := &Document{Path: path}
	if entry, ok := base.Entry(path); ok {
		if d.Body, d.Fault = render(entry.GeneratedAt); d.Fault != nil {
			return d
		}
		if snapshots.Digest(d.Body) == entry.SHA256 {
			d.Published, d.Reused = snapshots.Reused(entry), true
			return d
		}
	}
	if d.Body, d.Fault = render(now); d.Fault == nil {
		d.Fault = d.pack(now)
	}
	return d
}

// pack makes a new variant of the body.
func (d *Document) pack(at time.Time) error {
	if d.Path == (catalog.Variant{Endpoint: catalog.NextRace}).Path() {
		d.Published = snapshots.Unfinished(d.Path, d.Body)
		return nil
	}
	packed, err := snapshots.Pack(d.Body)
	d.Published = snapshots.New(d.Path, d.Body, packed, at)
	return err
}

// Version is the documents of a version in the making. It is not safe for concurrent use.
type Version struct {
	almanac *almanac.Almanac
	seasons map[int]*unit        // by year
	others  map[string]*Document // by path: about no single season, or derived
}

// unit is the documents of one season.
type unit struct {
	documents map[string]*Document // by path
	inputs    *almanac.Digest      // of its facts, records and states; nil if documents were put in from elsewhere
	verdict   *check.Season        // nil until the documents have been checked
}

// seasonOf returns the year of the unit that a document belongs to, 0 if it belongs to none.
func seasonOf(path string) int {
	v, err := catalog.ParsePath(path)
	if err != nil || v.Endpoint.Derived() {
		return 0
	}
	return v.Season()
}

// Document returns the document of a path, nil if there is none.
func (v *Version) Document(path string) *Document {
	if u := v.seasons[seasonOf(path)]; u != nil {
		return u.documents[path]
	}
	return v.others[path]
}

// Put adds a document, or puts it in the place of another. Its unit is then checked again, and not
// remembered.
func (v *Version) Put(d *Document) {
	year := seasonOf(d.Path)
	if year == 0 {
		v.others[d.Path] = d
		return
	}
	u := v.seasons[year]
	if u == nil {
		u = &unit{documents: map[string]*Document{}}
		v.seasons[year] = u
	}
	u.documents[d.Path] = d
	u.inputs, u.verdict = nil, nil
}

// Drop removes a derived document.
func (v *Version) Drop(path string) { delete(v.others, path) }

// Documents returns all documents by path.
func (v *Version) Documents() map[string]*Document {
	all := maps.Clone(v.others)
	for _, u := range v.seasons {
		maps.Copy(all, u.documents)
	}
	return all
}

// Seasons returns the years of the seasons, ascending.
func (v *Version) Seasons() []int { return slices.Sorted(maps.Keys(v.seasons)) }

// Check checks the documents as clients read them. It reads a season only if it has no verdict on it.
func (v *Version) Check(current int) check.Faults {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for year, u := range v.seasons {
		if u.verdict == nil {
			group.Go(func() error {
				verdict := check.Read(year, v.bodies(u.documents), reused(u.documents))
				u.verdict = &verdict
				return nil
			})
		}
	}
	_ = group.Wait() // no call returns an error
	verdicts := make([]check.Season, 0, len(v.seasons))
	for _, year := range v.Seasons() {
		verdicts = append(verdicts, *v.seasons[year].verdict)
	}
	return check.Version(catalog.Known{Current: current, Seasons: v.Seasons()}, verdicts, v.bodies(v.others), reused(v.others))
}

// reused tells the documents that have passed their schema when the base was published.
func reused(documents map[string]*Document) func(path string) bool {
	return func(path string) bool { return documents[path].Reused }
}

// BodiesFrom returns the bodies of the documents about no single season and about the seasons from a year on, by path.
func (v *Version) BodiesFrom(year int) map[string][]byte {
	bodies := v.bodies(v.others)
	for of, u := range v.seasons {
		if of >= year {
			maps.Copy(bodies, v.bodies(u.documents))
		}
	}
	return bodies
}

// bodies returns the bodies of documents, by path. It leaves out those of the base that were not read.
func (v *Version) bodies(documents map[string]*Document) map[string][]byte {
	bodies := make(map[string][]byte, len(documents))
	for path, d := range documents {
		if d.remembered {
			d.remembered = false
			if variant, err := catalog.ParsePath(path); err == nil {
				d.Body, d.Fault = render.Body(v.almanac, variant, d.Published.Entry().GeneratedAt)
			}
		}
		if d.Body != nil {
			bodies[path] = d.Body
		}
	}
	return bodies
}

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

// Refused is a document that was not published as rendered, because it failed its check. The version has
// the document of its base instead, or an empty one if the base has none.
type Refused struct {
	Path string
	Err  error
}

// Refuse checks the version and replaces each document that fails with the one of the base, so that a wrong
// document keeps no other from being published. It repeats this until nothing fails but documents of the
// base.
//
// If the archive is an older one and lacks a season, its documents stay too. Then the documents about no
// single season stay as well, because they would contradict it.
func (v *Version) Refuse(ctx context.Context, base *snapshots.Base, a *almanac.Almanac) ([]Refused, error) {
	v.keepLostSeasons(base, a)
	refused := map[string]error{}
	faults := check.Faults{}
	for path, d := range v.Documents() {
		if d.Fault != nil {
			faults[path] = d.Fault
		}
	}
	for {
		replaced := false
		for _, path := range slices.Sorted(maps.Keys(faults)) {
			if _, before := refused[path]; before {
				continue // it is the document of the base; nothing better is known
			}
			refused[path], replaced = faults[path], true
			if err := v.restore(ctx, base, a, path); err != nil {
				return nil, fmt.Errorf("keep %s as it was: %w", path, err)
			}
		}
		if len(faults) > 0 && !replaced {
			break
		}
		if faults = v.Check(Current(base, a)); len(faults) == 0 {
			break
		}
	}
	all := make([]Refused, 0, len(refused))
	for _, path := range slices.Sorted(maps.Keys(refused)) {
		all = append(all, Refused{Path: path, Err: refused[path]})
	}
	return all, nil
}

// keepLostSeasons marks the documents that stay because the almanac lacks a season of the base.
func (v *Version) keepLostSeasons(base *snapshots.Base, a *almanac.Almanac) {
	has := func(year int) bool { _, ok := a.Year(year); return ok }
	if !slices.ContainsFunc(base.Manifest.Seasons, func(year int) bool { return !has(year) }) {
		return
	}
	var lost error
	for _, entry := range base.Manifest.Entries {
		variant, err := catalog.ParsePath(entry.Path)
		if err != nil {
			continue // a feed, or a document of another release
		}
		year := variant.Season()
		if year != 0 && !has(year) && v.Document(entry.Path) == nil {
			lost = fmt.Errorf("the archive no longer has the season %d", year)
			v.Put(&Document{Path: entry.Path, Fault: lost})
		}
	}
	if lost != nil {
		for path, d := range v.others {
			if variant, _ := catalog.ParsePath(path); !variant.Endpoint.Derived() || path == (catalog.Variant{Endpoint: catalog.Live}).Path() {
				d.Fault = lost
			}
		}
	}
}

// restore replaces the document of a path by the base's. If the base has none, readers get an empty document; a derived
// document is left out, because a later version brings it.
func (v *Version) restore(ctx context.Context, base *snapshots.Base, a *almanac.Almanac, path string) error {
	variant, err := catalog.ParsePath(path)
	if err != nil {
		return err
	}
	d := &Document{Path: path}
	if entry, ok := base.Entry(path); ok {
		d.Published, d.Reused = snapshots.Reused(entry), true
		d.Body, err = base.Body(ctx, entry)
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			d.Body = nil // the nightly check reports a damaged store, and nothing here needs the bytes
		}
		v.Put(d)
		return nil
	}
	if variant.Endpoint.Derived() {
		v.Drop(path)
		return nil
	}
	if d.Body, err = Empty(path, a.At); err == nil {
		err = d.pack(a.At)
	}
	v.Put(d)
	return err
}

// Empty returns the document of a path that readers get if no version has one without a fault.
func Empty(path string, generatedAt time.Time) ([]byte, error) {
	variant, err := catalog.ParsePath(path)
	if err != nil {
		return nil, err
	}
	switch variant.Endpoint {
	case catalog.NextRace:
		return wire.Marshal(&wire.Countdown{Rounds: []wire.CountdownRound{}})
	case catalog.ChangesLog:
		return wire.Marshal(wire.Wrap(wire.ChangesPage{Page: max(variant.Page, 0), Changes: []wire.LoggedChange{}}, generatedAt))
	case catalog.Accuracy:
		return wire.Marshal(wire.Wrap(wire.Accuracy{}, generatedAt))
	case catalog.Overview:
		return wire.Marshal(wire.Wrap(wire.NewOverview(variant.Year), generatedAt))
	}
	return wire.Marshal(wire.Wrap([]struct{}{}, generatedAt))
}

// Current returns the default year of a version: the one of the almanac, or of the base if the archive has
// lost that season.
func Current(base *snapshots.Base, a *almanac.Almanac) int {
	if _, ok := a.Year(base.Manifest.CurrentSeason); !ok && base.Manifest.CurrentSeason > a.Current {
		return base.Manifest.CurrentSeason
	}
	return a.Current
}
