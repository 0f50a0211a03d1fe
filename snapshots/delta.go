package snapshots

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"gridcast/snapshots/blob"
)

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
	Size   int64  `json:"size"`   // stored bytes
}

// encodeDelta returns the delta of a version and its bytes, or nil if the version has fewer than two new
// bodies.
func encodeDelta(version int64, variants []Variant) (Delta, []byte, error) {
	objects := fresh(variants)
	if len(objects) < 2 {
		return Delta{}, nil, nil
	}
	index, parts := make([]deltaBody, len(objects)), make([][]byte, 2+len(objects))
	for i, v := range objects {
		index[i] = deltaBody{strings.TrimPrefix(v.objectKey(version), objectsOf(version)), int64(len(v.data))}
		parts[2+i] = v.data
	}
	line, err := json.Marshal(index)
	if err != nil {
		return Delta{}, nil, fmt.Errorf("delta of version %d: %w", version, err)
	}
	parts[0], parts[1] = line, []byte{'\n'}
	data := slices.Concat(parts...)
	return Delta{version, Digest(data), int64(len(data)), len(index)}, data, nil
}

// decodeDelta returns the stored bytes of the bodies of a delta by their key.
func decodeDelta(version int64, data []byte) (map[string][]byte, error) {
	line, rest, _ := bytes.Cut(data, []byte{'\n'})
	var index []deltaBody
	if err := json.Unmarshal(line, &index); err != nil {
		return nil, err
	}
	bodies := make(map[string][]byte, len(index))
	for _, b := range index {
		if b.Size < 0 || b.Size > int64(len(rest)) {
			return nil, fmt.Errorf("%s: %d bytes, %d are left", b.Object, b.Size, len(rest))
		}
		bodies[objectsOf(version)+b.Object], rest = rest[:b.Size], rest[b.Size:]
	}
	return bodies, nil
}

// worthReading returns the deltas of which the given entries need at least half of the bodies.
func worthReading(deltas []Delta, entries []ManifestEntry) []Delta {
	needed := map[int64]int{}
	for _, e := range entries {
		needed[writtenIn(e.Object)]++
	}
	return slices.DeleteFunc(slices.Clone(deltas), func(d Delta) bool { return 2*needed[d.Version] < d.Bodies })
}

// readDeltas returns the stored bytes of missing bodies by their key. It does not return a body whose delta
// the stores do not have whole.
func (l loader) readDeltas(ctx context.Context, stores []blob.Store, m *Manifest, missing []*Body) map[string][]byte {
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
				return inAny(stores, func(s blob.Store) error {
					data, err := delta.object().Read(ctx, s)
					l.tick()
					if err == nil {
						read[i], err = decodeDelta(delta.Version, data)
					}
					return err
				})
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
