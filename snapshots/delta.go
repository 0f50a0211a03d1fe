package snapshots

import (
	"context"
	"fmt"
	"strings"

	"gridcast/snapshots/blob"
)

// Delta is one object that repeats all bodies first written in a version, so that an edge with the version
// before reads them at once. It is the stored bytes of these bodies in the order of their entries, and nothing
// else: the entries say where each body ends, and prove it by its hash. The objects of the entries stay the
// truth, and a reader without the delta reads them instead.
type Delta struct {
	SHA256 string `json:"sha256"` // lower-case hex
	Size   int64  `json:"size"`   // bytes
}

func deltaKey(version int64) string { return fmt.Sprintf("%s%d", deltaFolder, version) }

// delta returns the object with the delta. The version has none if the size is zero.
func (m *Manifest) delta() Object { return Object{deltaKey(m.Version), m.Delta.SHA256, m.Delta.Size} }

// firstWritten says whether the entry's object is first written in the version.
func (e ManifestEntry) firstWritten(version int64) bool {
	return strings.HasPrefix(e.Object, ObjectKey(version, e.Path))
}

// deltaOf returns the bytes of the delta for the variants of a draft. It returns nil without a base, because
// readers without the version before need other bodies too, and nil for a single body.
func (d *Draft) deltaOf(variants []Variant) []byte {
	if d.Base.Empty() {
		return nil
	}
	var delta []byte
	bodies := 0
	for _, v := range variants {
		if !v.reused {
			delta, bodies = append(delta, v.data...), bodies+1
		}
	}
	if bodies < 2 {
		return nil
	}
	return delta
}

// readDelta returns the stored bytes of the missing bodies by their key. It returns none if the version has no delta, if
// fewer than two of the missing bodies are in it, or if the stores do not have it whole.
func (l loader) readDelta(ctx context.Context, stores []blob.Store, m *Manifest, missing []*Body) map[string][]byte {
	wanted := 0
	for _, b := range missing {
		if b.Entry.firstWritten(m.Version) {
			wanted++
		}
	}
	if m.Delta.Size == 0 || wanted < 2 {
		return nil
	}
	var rest []byte
	err := inAny(stores, func(s blob.Store) (err error) {
		rest, err = m.delta().Read(ctx, s)
		l.tick()
		return err
	})
	if err != nil {
		return nil // the objects of the entries have the same bytes
	}
	bodies := map[string][]byte{}
	for _, e := range m.Entries {
		if object := e.object(); e.firstWritten(m.Version) && object.Size <= int64(len(rest)) {
			bodies[object.Key], rest = rest[:object.Size], rest[object.Size:]
		}
	}
	return bodies
}
