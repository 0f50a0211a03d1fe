package snapshots

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"gridcast/snapshots/blob"
)

// A manifest of many entries is stored in parts, which the manifests of later versions share. Each decade has
// a part, and so has each season from the one before the current season on. A publish that changes a few
// entries therefore writes only these. The manifest's own file lists the parts, the entries without a part,
// and the entries that are newer than their part. A person finds the changes there.

// Part is a part of a manifest, stored under manifests/parts/<name>-<sha256>.json.
type Part struct {
	Name   string `json:"name"` // such as 2010s or 2026
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`

	entries []ManifestEntry // as stored; nil: not known
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
	// maxNewer is the number of newer entries after which a part is written again: those of a dozen
	// race weekends.
	maxNewer = 40
)

func (p Part) object() Object {
	return Object{fmt.Sprintf("%s%s-%s.json", partFolder, p.Name, p.SHA256), p.SHA256, p.Size}
}

// partOf returns the name of the part for a path, by its year or by the year with which its session key
// begins. A season that still changes has its own part; the others share that of their decade. A path
// without a year has no part.
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
	return ""
}

// file is a stored file of a manifest.
type file struct {
	key  string
	data []byte
}

// encode returns the new files of a manifest, its own file last. It keeps a part of the base, from m.Parts,
// if most of the entries in it are unchanged.
func (m Manifest) encode() ([]file, error) {
	var files []file
	m.Format = format
	if len(m.Entries) < minSplit {
		m.Parts = nil
	} else {
		before := map[string]Part{}
		for _, part := range m.Parts {
			before[part.Name] = part
		}
		groups := map[string][]ManifestEntry{}
		for _, e := range m.Entries {
			name := partOf(e.Path, m.CurrentSeason)
			groups[name] = append(groups[name], e)
		}
		inline := groups[""]
		delete(groups, "")
		m.Parts = nil
		for _, name := range slices.Sorted(maps.Keys(groups)) {
			part := before[name]
			newer, ok := part.newer(groups[name])
			if !ok {
				data, err := json.Marshal(partFile{name, groups[name]})
				if err != nil {
					return nil, err
				}
				part, newer = Part{Name: name, SHA256: Digest(data), Size: int64(len(data))}, nil
				files = append(files, file{part.object().Key, data})
			}
			m.Parts = append(m.Parts, part)
			inline = append(inline, newer...)
		}
		m.Entries = append([]ManifestEntry{}, slices.SortedFunc(slices.Values(inline), byAscendingPath)...)
	}
	data, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return append(files, file{ManifestKey(m.Version), data}), nil
}

// newer returns the entries that differ from those of the part. It returns false if they are too many, or if
// the part has an entry that the manifest has not.
func (p Part) newer(entries []ManifestEntry) ([]ManifestEntry, bool) {
	stored := byPath(p.entries)
	var newer []ManifestEntry
	for _, e := range entries {
		old, ok := stored[e.Path]
		if !ok || !old.equal(e) {
			newer = append(newer, e)
		}
		delete(stored, e.Path)
	}
	return newer, p.entries != nil && len(stored) == 0 && len(newer) <= maxNewer
}

// stored holds the files of a manifest and the entries of its parts, both by store key.
type stored struct {
	files map[string][]byte
	parts map[string][]ManifestEntry // never changed
}

// loadManifest reads the manifest of version. Its own file must have the given hash, unless that is empty. It
// does not read the files in known again, which were checked when they were read. It tries the stores in
// their order.
func loadManifest(ctx context.Context, version int64, hash string, known stored, stores ...blob.Store) (Manifest, stored, error) {
	key := ManifestKey(version)
	var m Manifest
	now := stored{map[string][]byte{}, map[string][]ManifestEntry{}}
	err := inAny(stores, func(s blob.Store) (err error) {
		o := blob.Object{Data: known.files[key]}
		if o.Data == nil || Digest(o.Data) != hash {
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
		m = Manifest{}
		if err := json.Unmarshal(o.Data, &m); err != nil {
			return fmt.Errorf("manifest %s: %w: %w", key, ErrDamaged, err)
		}
		now.files[key] = o.Data
		return nil
	})
	if err != nil {
		return Manifest{}, stored{}, err
	}
	if err := m.checkParts(); err != nil {
		return Manifest{}, stored{}, fmt.Errorf("manifest %s: %w: %w", key, ErrDamaged, err)
	}
	contents := make([][]byte, len(m.Parts))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(defaultWorkers)
	for i, part := range m.Parts {
		if data, ok := known.files[part.object().Key]; ok {
			contents[i] = data
			continue
		}
		group.Go(func() error {
			return inAny(stores, func(s blob.Store) (err error) {
				contents[i], err = part.object().Read(groupCtx, s)
				return err
			})
		})
	}
	if err := group.Wait(); err != nil {
		return Manifest{}, stored{}, fmt.Errorf("manifest of version %d: part: %w", version, err)
	}
	merged := map[string]ManifestEntry{}
	for i := range m.Parts {
		key := m.Parts[i].object().Key
		content := partFile{Entries: known.parts[key]}
		if content.Entries != nil {
			// The part was parsed before.
		} else if err := json.Unmarshal(contents[i], &content); err != nil || content.Entries == nil {
			return Manifest{}, stored{}, fmt.Errorf("manifest %s: %w: part %s: %w", ManifestKey(version), ErrDamaged, m.Parts[i].Name, errors.Join(errors.New("no entries"), err))
		}
		m.Parts[i].entries = content.Entries
		now.files[key], now.parts[key] = contents[i], content.Entries
		for _, e := range content.Entries {
			if _, twice := merged[e.Path]; twice {
				return Manifest{}, stored{}, fmt.Errorf("manifest %s: %w: two parts have an entry for %s", ManifestKey(version), ErrDamaged, e.Path)
			}
			merged[e.Path] = e
		}
	}
	if len(m.Parts) > 0 {
		maps.Copy(merged, byPath(m.Entries)) // these are newer
		m.Entries = slices.SortedFunc(maps.Values(merged), byAscendingPath)
	}
	if err := m.check(version); err != nil {
		return Manifest{}, stored{}, fmt.Errorf("manifest %s: %w: %w", key, ErrDamaged, err)
	}
	return m, now, nil
}

// checkParts returns an error if the parts cannot be read.
func (m *Manifest) checkParts() error {
	if m.Format != format {
		return fmt.Errorf("format %d, this program reads %d", m.Format, format)
	}
	for _, part := range m.Parts {
		object := part.object()
		if err := blob.CheckKey(object.Key); err != nil {
			return fmt.Errorf("part %q: %w", part.Name, err)
		}
		if len(part.SHA256) != 2*hashSize || part.Size < 0 || part.Size > maxManifest {
			return fmt.Errorf("part %s: hash %q and size %d are impossible", part.Name, part.SHA256, part.Size)
		}
	}
	return nil
}

func byAscendingPath(a, b ManifestEntry) int { return strings.Compare(a.Path, b.Path) }

func byPath(entries []ManifestEntry) map[string]ManifestEntry {
	index := make(map[string]ManifestEntry, len(entries))
	for _, e := range entries {
		index[e.Path] = e
	}
	return index
}
