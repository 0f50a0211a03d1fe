package snapshots_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

// flip changes one bit of a stored file.
func flip(t *testing.T, s *memblob.Store, key string) {
	t.Helper()
	data := bytes.Clone(read(t, s, key))
	data[len(data)/2] ^= 4
	s.Corrupt(key, data)
}

// differing are the parts of an error that differ by the release of a compressor.
var differing = regexp.MustCompile(`(\d+ (bytes )?of (hash )?)?[0-9a-f]{64}`)

// TestHeal damages each kind of file of a version. The next build of a new process mends it: afterwards the version can
// be read whole, and it has the same content. The golden has the faults that the process names, and what it writes.
func TestHeal(t *testing.T) {
	texts := map[string]string{}
	content := decades().with(verified("now"))
	const object = "objects/2/standings/drivers/2026.json.gz"
	part := func(s *memblob.Store) (key string) {
		for info := range s.List(t.Context(), "manifests/parts/2026-") {
			key = info.Key
		}
		return key
	}
	for name, damage := range map[string]func(s *memblob.Store){
		"pointer":              func(s *memblob.Store) { flip(t, s, snapshots.PointerKey); s.Corrupt(snapshots.PointerKey, []byte("{")) },
		"pointer of no number": func(s *memblob.Store) { s.Corrupt(snapshots.PointerKey, []byte(`{"version":9223372036854775807}`)) },
		"pointer far beyond": func(s *memblob.Store) {
			s.Corrupt(snapshots.PointerKey, []byte(`{"version":9007199254740991,"manifest":"`+snapshots.Digest(nil)+`"}`))
		},
		"huge pointer":          func(s *memblob.Store) { s.Corrupt(snapshots.PointerKey, make([]byte, blob.MaxDocument+1)) },
		"manifest":              func(s *memblob.Store) { flip(t, s, snapshots.ManifestKey(2)) },
		"every manifest":        func(s *memblob.Store) { flip(t, s, snapshots.ManifestKey(1)); flip(t, s, snapshots.ManifestKey(2)) },
		"no manifest":           func(s *memblob.Store) { _ = s.Delete(t.Context(), snapshots.ManifestKey(2)) },
		"part":                  func(s *memblob.Store) { flip(t, s, part(s)) },
		"no part":               func(s *memblob.Store) { _ = s.Delete(t.Context(), part(s)) },
		"object":                func(s *memblob.Store) { flip(t, s, object) },
		"delta":                 func(s *memblob.Store) { flip(t, s, "deltas/2") },
		"object and delta":      func(s *memblob.Store) { flip(t, s, object); flip(t, s, "deltas/2") },
		"no object":             func(s *memblob.Store) { _ = s.Delete(t.Context(), object); _ = s.Delete(t.Context(), "deltas/2") },
		"claim":                 func(s *memblob.Store) { flip(t, s, "versions/2.json") },
		"object, part, pointer": func(s *memblob.Store) { flip(t, s, object); flip(t, s, part(s)); flip(t, s, snapshots.PointerKey) },
		"note": func(s *memblob.Store) {
			if _, err := s.Get(t.Context(), snapshots.NoteKey(2), 1<<20); err == nil {
				flip(t, s, snapshots.NoteKey(2))
			}
		},
	} {
		for _, signed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, signed %t", name, signed), func(t *testing.T) {
				s, file := memblob.New(), keyFile(t, origin)
				p := &snapshots.Publisher{Store: s}
				again := func() { // a new process
					if signed {
						p.Signers = signers(t, file)
					}
				}
				build := func(content bodies) snapshots.Receipt {
					t.Helper()
					base := must.Get(ownBase(t, p).Heal(t.Context(), nil, nil))(t)
					return must.Get(p.Publish(t.Context(), draftOf(base, content)))(t)
				}
				again()
				build(decades())
				build(content)
				again()
				damage(s)
				base := must.Get(ownBase(t, p).Heal(t.Context(), nil, nil))(t)
				r := must.Get(p.Publish(t.Context(), draftOf(base, content)))(t)
				text := fmt.Sprintf("version %d: %d written, %d reused\n", r.Version, r.ObjectsWritten, r.ObjectsReused) + strings.Join(base.Repaired, "\n")
				if base.Damage != nil {
					text += "damage: " + base.Damage.Error()
				}
				if text = differing.ReplaceAllString(strings.TrimSpace(text), "HASH"); texts[name] == "" {
					texts[name] = text
				} else if texts[name] != text {
					texts[name] += "\nsigned, " + text
				}
				again()
				version, got := served(t, s)
				must.Equal(t, fmt.Sprintf("version %d after the repair", version), content, got)
				if r, err := snapshots.Verify(t.Context(), s, 0, nil); err != nil || len(r.Faults) > 0 {
					t.Errorf("verify: %v, %v", r.Faults, err)
				}
				r = build(content)
				must.Hold(t, r.Unchanged, "another build publishes version %d, although everything is whole", r.Version)
				if signed {
					if err := snapshots.CheckNote(t.Context(), s, version, p.Signers.Trust()); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	golden.Inputs(t, "testdata/heals.txt", texts)
}

// TestBadReadsOfANote: a process that finds no pointer goes on from the highest version, also when the first reads of its
// note are damaged.
func TestBadReadsOfANote(t *testing.T) {
	s, key := memblob.New(), signers(t, keyFile(t, origin))
	publishSigned(t, s, key, decades())
	highest := publishSigned(t, s, key, decades().with(verified("now")))
	must.Do(t, s.Delete(t.Context(), snapshots.PointerKey))
	for bad := range 4 {
		reads := 0
		store := faultblob.Wrap(s, func(_ context.Context, c faultblob.Call) (fate faultblob.Fate) {
			if c.Op == faultblob.Get && c.Key == snapshots.NoteKey(highest) {
				if reads++; reads <= bad {
					fate.Mangle = func(data []byte) []byte { return data[:len(data)/2] }
				}
			}
			return fate
		})
		base := ownBase(t, &snapshots.Publisher{Store: store, Signers: key})
		must.Equal(t, fmt.Sprintf("the version after %d bad reads", bad), highest, base.Pointer.Version)
	}
}

// TestHealFromMemory mends files that a running publisher has in memory, under their own names. A publisher that cannot
// write them keeps its base. It leaves alone the files that its caller does not choose.
func TestHealFromMemory(t *testing.T) {
	s, key := memblob.New(), signers(t, keyFile(t, origin))
	full, down := false, false
	p := snapshots.Publisher{Signers: key, Store: faultblob.Wrap(s, func(_ context.Context, c faultblob.Call) faultblob.Fate {
		if down {
			return faultblob.Fate{Err: errStopped}
		}
		if full && c.Op.Writes() {
			return faultblob.Fate{Err: errors.New("no space left on device")}
		}
		return faultblob.Fate{}
	})}
	must.Get(p.Publish(t.Context(), draftOf(ownBase(t, &p), decades())))(t)
	base := ownBase(t, &p)
	must.Hold(t, must.Get(p.LoadBase(t.Context(), base))(t) == base, "the base is read again, though nothing was published")
	for _, key := range keysOf(t, s, "manifests/", snapshots.NoteKey(1)) {
		flip(t, s, key)
	}
	left, err := base.Heal(t.Context(), func(string) bool { return false }, nil)
	must.Hold(t, err == nil && left == base, "without a chosen file: got another base, %v", err)
	down = true
	must.Fail(t, "heal without an answer", must.Err(base.Heal(t.Context(), nil, nil)), errStopped)
	full, down = true, false
	golden.Sentence(t, "heal on a full disk", must.Err(base.Heal(t.Context(), nil, nil)))
	full = false
	healed, err := base.Heal(t.Context(), nil, nil)
	must.Hold(t, err == nil && healed.Damage == nil, "damage %v, %v", healed.Damage, err)
	golden.Sentence(t, "heal from memory", differing.ReplaceAllString(strings.Join(healed.Repaired, "; "), "HASH"))
	_, content := served(t, s)
	must.Hold(t, cmp.Diff(decades(), content) == "", "the version is not the same as before")
}

// TestImpossibleDelta: a repair and an edge leave a delta alone whose list of bodies is longer than its bytes.
func TestImpossibleDelta(t *testing.T) {
	s := memblob.New()
	publish(t, s, bodies{"drivers": "d", "next-race": "n"})
	delta := edited(read(t, s, "deltas/1"), `"size":`, `"size":9`)
	s.Corrupt("deltas/1", delta)
	m, _, _ := written(t, s, 1)
	m.Deltas[0].SHA256, m.Deltas[0].Size = snapshots.Digest(delta), int64(len(delta))
	point(t, s, m)
	_, content := served(t, s)
	must.Equal(t, "content", bodies{"drivers": "d", "next-race": "n"}, content)
	must.Do(t, s.Delete(t.Context(), "objects/1/drivers.json.gz"))
	golden.Sentence(t, "heal with an impossible delta", must.Get(ownBase(t, &snapshots.Publisher{Store: s}).Heal(t.Context(), nil, nil))(t).Damage)
}
