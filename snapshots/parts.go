package snapshots

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	fastjson "github.com/go-json-experiment/json"
	"golang.org/x/sync/errgroup"

	"gridcast/schemas/catalog"
	"gridcast/snapshots/blob"
)

// A manifest of many entries is stored in parts, which the manifests of later versions share. Each decade has
// a part, and so has each season from the one before the current season on, and the paths without a year. A publish that
// changes a few entries therefore writes only these. The manifest's own file lists the parts, the entries of a running
// race, and the entries that are newer than their part. A person finds the changes there.

// Part is a part of a manifest, stored as gzip under manifests/parts/<name>-<sha256>.json.gz.
type Part struct {
	Name   string `json:"name"`   // such as 2010s or 2026
	SHA256 string `json:"sha256"` // of the stored bytes
	Size   int64  `json:"size"`   // of the stored bytes

	content partFile // as stored; zero: not known
}

// partFile is the content of a part.
type partFile struct {
	Name    string          `json:"name"`
	Entries []ManifestEntry `json:"entries"` // by ascending path
}

const (
	partFolder = manifestFolder + "parts/"

	// minSplit is the number of entries from which a manifest has parts.
	minSplit = 64
	// entrySize is about the packed size of an entry in a manifest's own file, in bytes.
	entrySize = 100
)

func (p Part) object() Object {
	return Object{fmt.Sprintf("%s%s-%s.json.gz", partFolder, p.Name, p.SHA256), p.SHA256, p.Size}
}

// partOf returns the name of the part for a path, by its year or by the year with which its session key
// begins. A season that still changes has its own part; the others share that of their decade. The paths without a year
// share a part. A running race, which changes each lap, has none.
func partOf(path string, currentSeason int) string {
	for segment := range strings.SplitSeq(path, "/") {
		if len(segment) < 4 || strings.Trim(segment, "0123456789") != "" {
			continue
		}
		if segment[:4] >= strconv.Itoa(currentSeason-1) {
			return segment[:4]
		}
		return segment[:3] + "0s"
	}
	if catalog.Passing(path) {
		return ""
	}
	return "all"
}

// file is a stored file of a manifest.
type file struct {
	key  string
	data []byte
}

// encode returns the new files of a manifest, its own file last. It keeps a part of the base, from m.Parts,
// as long as that is cheaper than another one.
func (m Manifest) encode() ([]file, error) {
	var files []file
	m.Format = Format
	before := map[string]Part{}
	for _, part := range m.Parts {
		before[part.Name] = part
	}
	m.Parts = nil
	if len(m.Entries) >= minSplit {
		groups := map[string][]ManifestEntry{}
		for _, e := range m.Entries {
			name := partOf(e.Path, m.CurrentSeason)
			groups[name] = append(groups[name], e)
		}
		own := append([]ManifestEntry{}, groups[""]...)
		delete(groups, "")
		for _, name := range slices.Sorted(maps.Keys(groups)) {
			part := before[name]
			newer, ok := part.newer(groups[name], m.Version)
			if !ok {
				data, err := packJSON(partFile{name, groups[name]})
				if err != nil {
					return nil, err
				}
				part, newer = Part{Name: name, SHA256: Digest(data), Size: int64(len(data))}, nil
				files = append(files, file{part.object().Key, data})
			}
			m.Parts = append(m.Parts, part)
			own = append(own, newer...)
		}
		slices.SortFunc(own, byAscendingPath)
		m.Entries = own
	}
	data, err := packJSON(m)
	return append(files, file{ManifestKey(m.Version), data}), err
}

// newer returns the entries that differ from those of the part. It returns false if the part has one
// that the manifest has not. It also returns false if the manifests since the part have repeated so many newer ones
// that a new part takes fewer bytes.
func (p Part) newer(now []ManifestEntry, version int64) (newer []ManifestEntry, ok bool) {
	gone, repeated := len(p.content.Entries), int64(0)
	for _, e := range now {
		old, there := entryOf(p.content.Entries, e.Path)
		if there {
			gone--
		}
		if !old.equal(e) {
			newer = append(newer, e)
			repeated += version - writtenIn(e.Object)
		}
	}
	return newer, p.content.Name != "" && gone == 0 && repeated*entrySize < p.Size
}

// packJSON returns a file of a manifest as it is stored.
func packJSON(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	c := borrowCodec()
	defer codecs.Put(c)
	return c.encode(GZ, text)
}

// unpackJSON is the inverse of packJSON.
func unpackJSON(packed []byte, v any) error {
	c := borrowCodec()
	defer codecs.Put(c)
	err := c.gunzip.Reset(bytes.NewReader(packed))
	if err == nil {
		err = fastjson.UnmarshalRead(io.LimitReader(&c.gunzip, maxManifest), v) // in 40 % of the time of encoding/json
	}
	return err
}

// stored holds the files of a manifest and the content of its parts, both by store key.
type stored struct {
	files map[string][]byte
	parts map[string]partFile // never changed

	tolerant bool // leave out the entries of a part that is lost
}

// loadManifest reads the manifest of version. Its own file must have the given hash, unless that is empty. It
// does not read the files in known again, which were checked when they were read. It tries the stores in
// their order.
func loadManifest(ctx context.Context, version int64, hash string, known stored, stores ...blob.Store) (Manifest, stored, error) {
	key := ManifestKey(version)
	m, data, err := readManifest(ctx, version, hash, known, stores)
	if err != nil {
		return Manifest{}, stored{}, err
	}
	if err := m.checkParts(); err != nil {
		return Manifest{}, stored{}, fmt.Errorf("manifest %s: %w: %w", key, ErrDamaged, err)
	}
	contents, err := m.readParts(ctx, known, stores)
	if err != nil {
		return Manifest{}, stored{}, fmt.Errorf("manifest of version %d: part: %w", version, err)
	}
	now := stored{files: map[string][]byte{key: data}, parts: map[string]partFile{}}
	if err = m.join(contents, known, now); err == nil {
		err = m.check(version)
	}
	if err != nil {
		return Manifest{}, stored{}, fmt.Errorf("manifest %s: %w: %w", key, ErrDamaged, err)
	}
	return m, now, nil
}

// readManifest reads the manifest's own file, and returns its bytes too.
func readManifest(ctx context.Context, version int64, hash string, known stored, stores []blob.Store) (m Manifest, data []byte, err error) {
	key := ManifestKey(version)
	err = inAny(stores, func(s blob.Store) (err error) {
		o := blob.Object{Data: known.files[key]}
		if Digest(o.Data) != hash {
			o, err = s.Get(ctx, key, maxManifest)
		}
		if errors.Is(err, blob.ErrTooLarge) {
			err = fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if err != nil {
			return fmt.Errorf("read manifest of version %d: %w", version, err)
		}
		if got := Digest(o.Data); hash != "" && got != hash {
			return fmt.Errorf("manifest %s: %w: hash is %s, pointer says %s", key, ErrDamaged, got, hash)
		}
		m, data = Manifest{}, o.Data
		err = unpackJSON(data, &m)
		if m.Format > 0 && m.Format != Format { // other formats have other fields
			age := "an earlier"
			if m.Format > Format {
				age = "a newer"
			}
			return fmt.Errorf("manifest %s: %w: %s one, in format %d, and this one reads format %d alone; deploy/docs/upgrade.md", key, ErrBuild, age, m.Format, Format)
		}
		if err != nil {
			return fmt.Errorf("manifest %s: %w: %w", key, ErrDamaged, err)
		}
		return nil
	})
	return m, data, err
}

// readParts returns the stored bytes of the parts, in their order.
func (m *Manifest) readParts(ctx context.Context, known stored, stores []blob.Store) ([][]byte, error) {
	contents := make([][]byte, len(m.Parts))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(defaultWorkers)
	for i, part := range m.Parts {
		if data, ok := known.files[part.object().Key]; ok {
			contents[i] = data
			continue
		}
		group.Go(func() error {
			err := inAny(stores, func(s blob.Store) (err error) {
				contents[i], err = part.object().Read(ctx, s)
				return err
			})
			if known.tolerant && beyondRepair(err) {
				return nil
			}
			return err
		})
	}
	return contents, group.Wait()
}

// join unpacks the parts, notes them in now, and makes m.Entries those of all parts and of the manifest's own file.
func (m *Manifest) join(contents [][]byte, known, now stored) error {
	if len(m.Parts) == 0 {
		return nil
	}
	entries := map[string]*ManifestEntry{}
	for i := range m.Parts {
		part := &m.Parts[i]
		if contents[i] == nil {
			continue // it is lost
		}
		key := part.object().Key
		if part.content = known.parts[key]; part.content.Name == "" {
			err := unpackJSON(contents[i], &part.content)
			if err == nil && part.content.Name != part.Name {
				err = fmt.Errorf("it is part %q", part.content.Name)
			}
			if err != nil {
				return fmt.Errorf("part %s: %w", part.Name, err)
			}
		}
		now.files[key], now.parts[key] = contents[i], part.content
		for j := range part.content.Entries {
			e := &part.content.Entries[j]
			if _, twice := entries[e.Path]; twice {
				return fmt.Errorf("two parts have an entry for %s", e.Path)
			}
			entries[e.Path] = e
		}
	}
	for i := range m.Entries { // these are newer
		entries[m.Entries[i].Path] = &m.Entries[i]
	}
	m.Entries = make([]ManifestEntry, 0, len(entries))
	for _, path := range slices.Sorted(maps.Keys(entries)) {
		m.Entries = append(m.Entries, *entries[path])
	}
	return nil
}

// checkParts returns an error if the parts cannot be read.
func (m *Manifest) checkParts() error {
	if m.Format != Format {
		return fmt.Errorf("format %d, this program reads %d", m.Format, Format)
	}
	for _, part := range m.Parts {
		if err := part.object().check(maxManifest); err != nil {
			return fmt.Errorf("part %q: %w", part.Name, err)
		}
	}
	return nil
}

func byAscendingPath(a, b ManifestEntry) int { return strings.Compare(a.Path, b.Path) }

// entryOf returns the entry of a path. The entries are in ascending order of their paths.
func entryOf(entries []ManifestEntry, path string) (ManifestEntry, bool) {
	i, ok := slices.BinarySearchFunc(entries, path, func(e ManifestEntry, path string) int { return strings.Compare(e.Path, path) })
	if !ok {
		return ManifestEntry{}, false
	}
	return entries[i], true
}

// Delta is one object that repeats all bodies first written in a version, so that an edge reads them at once.
// It begins with a line of JSON, the list of its bodies. Their stored bytes follow in the same order. The
// objects of the entries stay the truth: a reader checks each body by the hash in its entry, and reads the
// objects if it does not get the delta.
type Delta struct {
	Version int64  `json:"version"`
	SHA256  string `json:"sha256"` // lower-case hex
	Size    int64  `json:"size"`   // bytes
	Bodies  int    `json:"bodies"` // at least 2
}

func (d Delta) object() Object {
	return Object{fmt.Sprintf("%s%d", deltaFolder, d.Version), d.SHA256, d.Size}
}

// deltaBody is a body in the first line of a delta.
type deltaBody struct {
	Object string `json:"object"` // store key, below the folder of the version's objects
	Size   uint64 `json:"size"`   // stored bytes
}

// encodeDelta returns the delta of a version and its bytes, or nil if the version has fewer than two new
// bodies.
func encodeDelta(version int64, variants []Variant) (Delta, []byte) {
	objects := fresh(variants)
	if len(objects) < 2 {
		return Delta{}, nil
	}
	index, parts := make([]deltaBody, len(objects)), make([][]byte, 2+len(objects))
	for i, v := range objects {
		index[i] = deltaBody{strings.TrimPrefix(v.objectKey(version), objectsOf(version)), uint64(len(v.data))}
		parts[2+i] = v.data
	}
	line, _ := json.Marshal(index) // keys and sizes are JSON
	parts[0], parts[1] = line, []byte{'\n'}
	data := slices.Concat(parts...)
	return Delta{version, Digest(data), int64(len(data)), len(index)}, data
}

// decodeDelta returns the stored bytes of the bodies of a delta by their key. It leaves out those that a damaged delta lacks.
func decodeDelta(version int64, data []byte) map[string][]byte {
	line, rest, _ := bytes.Cut(data, []byte{'\n'})
	var index []deltaBody
	_ = json.Unmarshal(line, &index)
	bodies := make(map[string][]byte, len(index))
	for _, b := range index {
		if b.Size > uint64(len(rest)) {
			break
		}
		bodies[objectsOf(version)+b.Object], rest = rest[:b.Size], rest[b.Size:]
	}
	return bodies
}

// worthReading returns the deltas of which the given entries need at least half of the bodies.
func worthReading(deltas []Delta, entries []ManifestEntry) []Delta {
	needed := map[int64]int{}
	for _, e := range entries {
		needed[writtenIn(e.Object)]++
	}
	return slices.DeleteFunc(slices.Clone(deltas), func(d Delta) bool { return 2*needed[d.Version] < d.Bodies })
}

// readDeltas returns the stored bytes of missing bodies by their key. It leaves out a body if it cannot read the delta.
func (l loader) readDeltas(ctx context.Context, store blob.Store, m *Manifest, missing []*Body) map[string][]byte {
	entries := make([]ManifestEntry, len(missing))
	for i, b := range missing {
		entries[i] = b.Entry
	}
	deltas := worthReading(m.Deltas, entries)
	read := make([]map[string][]byte, len(deltas))
	var group errgroup.Group
	group.SetLimit(defaultWorkers)
	for i, delta := range deltas {
		group.Go(func() error {
			return blob.Guard(func() error {
				data, err := delta.object().Read(ctx, store)
				l.tick()
				read[i] = decodeDelta(delta.Version, data)
				return err
			})
		})
	}
	_ = group.Wait() // the objects of the entries have the same bytes
	bodies := map[string][]byte{}
	for i := range read {
		maps.Copy(bodies, read[i])
	}
	return bodies
}
