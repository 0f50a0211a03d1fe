package snapshots_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/notes"
)

// flip changes one bit of a stored file.
func flip(t *testing.T, s *memblob.Store, key string) {
	t.Helper()
	data := bytes.Clone(read(t, s, key))
	data[len(data)/2] ^= 4
	s.Corrupt(key, data)
}

// TestHeal damages each kind of file of a version. The next build of a new process mends it: afterwards the version can
// be read whole, and it has the same content.
func TestHeal(t *testing.T) {
	content := decades().with(verified("now"))
	const object = "objects/2/standings/drivers/2026.json.gz"
	part := func(s *memblob.Store) (key string) {
		for info := range s.List(t.Context(), "manifests/parts/2026-") {
			key = info.Key
		}
		return key
	}
	for name, damage := range map[string]func(s *memblob.Store){
		"pointer":               func(s *memblob.Store) { flip(t, s, snapshots.PointerKey); s.Corrupt(snapshots.PointerKey, []byte("{")) },
		"pointer of no number":  func(s *memblob.Store) { s.Corrupt(snapshots.PointerKey, []byte(`{"version":9223372036854775807}`)) },
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
				r := build(content)
				must.Hold(t, r.Version <= 3, "version %d, want 2 or 3", r.Version)
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
}

// TestHealFromMemory mends files that a running publisher has in memory, under their own names. A publisher that cannot
// write them keeps its base.
func TestHealFromMemory(t *testing.T) {
	s := memblob.New()
	full := false
	p := snapshots.Publisher{Store: faultblob.Wrap(s, func(_ context.Context, c faultblob.Call) faultblob.Fate {
		if full && c.Op.Writes() {
			return faultblob.Fate{Err: errors.New("no space left on device")}
		}
		return faultblob.Fate{}
	})}
	must.Get(p.Publish(t.Context(), draftOf(ownBase(t, &p), decades())))(t)
	base := ownBase(t, &p)
	for info := range s.List(t.Context(), "manifests/") {
		flip(t, s, info.Key)
	}
	full = true
	if _, err := base.Heal(t.Context(), nil, nil); err == nil || !strings.Contains(err.Error(), "again") {
		t.Errorf("full disk: %v", err)
	}
	full = false
	healed, err := base.Heal(t.Context(), nil, nil)
	if err != nil || healed.Damage != nil || len(healed.Repaired) < 2 {
		t.Errorf("healed %v, damage %v, %v; want every file of the manifest", healed.Repaired, healed.Damage, err)
	}
	_, content := served(t, s)
	must.Hold(t, cmp.Diff(decades(), content) == "", "the version is not the same as before")
}

// TestHeldPointerIsReplaced checks that no repair ends the hold of an operator.
func TestHeldPointerIsReplaced(t *testing.T) {
	s := memblob.New()
	for _, body := range []string{"d1", "d2"} {
		publish(t, s, bodies{"drivers": body})
	}
	rollback(t, s, 1)
	s.Corrupt(snapshots.PointerKey, []byte("{"))
	p := snapshots.Publisher{Store: s}
	base := ownBase(t, &p)
	must.Hold(t, base.Pointer.Held && base.Pointer.Version == 3 && base.Pointer.Reason != "",
		"pointer %+v, want version 3, held", base.Pointer)
}

// TestNumbersAreCountedFromOurNotes lets a writer of the bucket name any version current. The next build goes on from
// the version that the key has signed, or refuses if another key may be meant. It never takes a number or a document
// from the writer, and a rollback is always possible.
func TestNumbersAreCountedFromOurNotes(t *testing.T) {
	stolenFile, otherFile := keyFile(t, origin), keyFile(t, origin)
	for name, test := range map[string]struct {
		number int64
		signer string // of the note about the number; empty: nobody
		want   error
	}{
		"the highest number":                       {1 << 53, "", nil},
		"a number of 2^53-1":                       {1<<53 - 1, "", nil},
		"the next number":                          {3, "", nil},
		"the next number, in the name of a key":    {3, otherFile, snapshots.ErrNewKey},
		"a high number, in the name of a key":      {1 << 53, otherFile, nil},
		"an unreachable number of the stolen key":  {1 << 53, stolenFile, nil},
		"an unreachable number of it, 2^53-1":      {1<<53 - 1, stolenFile, nil},
		"a version of before":                      {1, "", nil},
		"just beyond the gap, with the stolen key": {2 + 2*snapshots.MaxGap, stolenFile, nil},
	} {
		for _, running := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, running %t", name, running), func(t *testing.T) {
				s, key := memblob.New(), signers(t, stolenFile)
				publishSigned(t, s, key, bodies{"drivers": "d1"})
				publishSigned(t, s, key, bodies{"drivers": "d2"})
				if test.number > 2 {
					thief := memblob.New()
					publish(t, thief, bodies{"drivers": "stolen"})
					s.Corrupt("objects/1/drivers.json.gz", read(t, thief, "objects/1/drivers.json.gz"))
					manifest := edited(read(t, thief, snapshots.ManifestKey(1)), `"version":1,`, fmt.Sprintf(`"version":%d,`, test.number))
					s.Corrupt(snapshots.ManifestKey(test.number), manifest)
					if test.signer != "" {
						note := must.Get(signers(t, test.signer).Sign(fmt.Sprintf("version %d", test.number), "manifest "+snapshots.Digest(manifest), "ledger simulated 3 "+snapshots.Digest([]byte("ledger"))))(t)
						s.Corrupt(snapshots.NoteKey(test.number), note)
					}
				}
				movePointer(t, s, test.number, nil)
				if !running {
					key = signers(t, stolenFile)
				}
				p := snapshots.Publisher{Store: s, Signers: key}
				base, err := p.LoadBase(t.Context(), nil)
				if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
					t.Fatalf("base: got %v, want %v", err, test.want)
				}
				if err == nil {
					// A new process cannot tell a pointer that was moved back to a version of its own. The number goes on all the same.
					r, err := p.Publish(t.Context(), draftOf(base, bodies{"drivers": "d3"}))
					must.Hold(t, err == nil && (r.Version == 3 || r.Version == 4 && test.number == 3),
						"next build: version %d, %v; want the next number", r.Version, err)
				}
				if errors.Is(test.want, snapshots.ErrNewKey) {
					r, err := p.Rollback(t.Context(), 2, "test", "a stranger", raceDay)
					must.Hold(t, err == nil && r.Version == 4, "rollback with the key: version %d, %v", r.Version, err)
				}
				next := signers(t, keyFile(t, origin))
				p.Signers = next
				must.Fail(t, "rollback with a new key", must.Err(p.Rollback(t.Context(), 2, "test", "key stolen", raceDay)), snapshots.ErrNewKey)
				next.New = true
				r, err := p.Rollback(t.Context(), 2, "test", "key stolen", raceDay)
				must.Hold(t, err == nil && r.Version <= 5, "rollback with --new-key: version %d, %v", r.Version, err)
				wantServed(t, s, 0, "d2")
			})
		}
	}
}

// TestAnotherKeyIsRefused checks that a publisher whose key never signed here says so, unless the new key is meant.
func TestAnotherKeyIsRefused(t *testing.T) {
	s, key, other := memblob.New(), signers(t, keyFile(t, origin)), signers(t, keyFile(t, notes.NewOrigin()))
	publishSigned(t, s, key, bodies{"drivers": "d1"})
	p := snapshots.Publisher{Store: s, Signers: other}
	must.Fail(t, "another key", must.Err(p.LoadBase(t.Context(), nil)), snapshots.ErrNewKey)
	other.New = true
	base := ownBase(t, &p)
	_, ok := base.Entry("drivers")
	must.Hold(t, !ok, "the new key takes a document that it has not signed")
	r, err := p.Publish(t.Context(), draftOf(base, bodies{"drivers": "d1"}))
	must.Hold(t, err == nil && r.Version == 2 && r.ObjectsWritten == 1, "new key: %+v, %v", r, err)
	must.Fail(t, "the old key after the new one", must.Err((&snapshots.Publisher{Store: s, Signers: key}).LoadBase(t.Context(), nil)), snapshots.ErrNewKey)
}

// TestUnsignedAbove: after an unsigned version of a stranger the publisher publishes a higher one, also without a change,
// because an edge without trusted keys has the stranger's and refuses a lower one.
func TestUnsignedAbove(t *testing.T) {
	s, key, other := memblob.New(), signers(t, keyFile(t, origin)), signers(t, keyFile(t, notes.NewOrigin()))
	publishSigned(t, s, key, bodies{"drivers": "d1"})
	forged := publishSigned(t, s, other, bodies{"drivers": "forged"})
	must.Do(t, s.Delete(t.Context(), snapshots.NoteKey(forged)))
	p := snapshots.Publisher{Store: s, Signers: key}
	must.Get(p.Publish(t.Context(), draftOf(ownBase(t, &p), bodies{"drivers": "d1"})))(t)
	version, content := served(t, s)
	must.Hold(t, version > forged && content["drivers"] == "d1", "version %d with %v follows the forged version %d", version, content, forged)
}
