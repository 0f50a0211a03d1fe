package snapshots_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/notes"
)

const origin = "gridcast/test"

// keyFile makes a version key and returns its file.
func keyFile(t *testing.T, origin string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "version.key")
	must.Do(t, notes.MakeKey(file, origin))
	return file
}

func signers(t *testing.T, files ...string) *notes.Signers {
	t.Helper()
	return must.Get(notes.ReadSigners(files...))(t)
}

// publishSigned is publish with a version key. It bases nothing on a version that the key has not signed.
func publishSigned(t *testing.T, s blob.Store, key *notes.Signers, content bodies) int64 {
	t.Helper()
	key.New = true
	defer func() { key.New = false }()
	p := snapshots.Publisher{Store: s, Signers: key}
	r := must.Get(p.Publish(t.Context(), draftOf(ownBase(t, &p), content)))(t)
	return r.Version
}

// ownBase is the base of a publisher.
func ownBase(t *testing.T, p *snapshots.Publisher) *snapshots.Base {
	t.Helper()
	return must.Get(p.LoadBase(t.Context(), nil))(t)
}

// signedEdge is an edge with trusted keys, and a disk of its own.
type signedEdge struct {
	*edge

	config snapshots.FollowConfig
	until  atomic.Pointer[time.Time] // by fresh.note
}

// followSigned starts an edge that trusts keys.
func followSigned(t *testing.T, s blob.Store, keys ...*notes.Signers) *signedEdge {
	t.Helper()
	e := &signedEdge{}
	e.config = snapshots.FollowConfig{
		Store: s, Cache: memblob.New(), Ratchet: notes.NewRatchet(memblob.New(), "versions.json"),
		Fresh: func(fresh snapshots.Fresh) {
			if !fresh.Until.IsZero() {
				e.until.Store(&fresh.Until)
			}
		},
	}
	e.start(t, keys...)
	return e
}

// start runs the edge, with the disk that it has.
func (e *signedEdge) start(t *testing.T, keys ...*notes.Signers) {
	t.Helper()
	var public []string
	for _, key := range keys {
		public = append(public, key.Public()...)
	}
	trust := must.Get(notes.NewTrust(public...))(t)
	e.config.Trust = trust
	e.until.Store(nil)
	e.edge = followAs(t, e.config, nil)
	settle()
}

// settle waits until everything that happens within a minute has happened.
func settle() {
	must.Advance(time.Minute)
}

// want checks the version that the edge serves, and why it refuses the pointer's; nil: it does not.
func (e *signedEdge) want(t *testing.T, when string, version int64, refusal error) {
	t.Helper()
	settle()
	served := int64(0)
	if numbers := e.numbers(); len(numbers) > 0 {
		served = numbers[len(numbers)-1]
	}
	last := e.lastReport()
	if served != version || !errors.Is(last.Err, refusal) || (refusal == nil) != (last.Err == nil) {
		t.Errorf("%s: the edge serves version %d and reports %v, want version %d and %v", when, served, last.Err, version, refusal)
	}
	must.Hold(t, refusal == nil || last.State == snapshots.Refused, "%s: state %s, want refused", when, last.State)
}

// movePointer writes a pointer to a version as anybody can who may write to the bucket.
func movePointer(t *testing.T, s *memblob.Store, version int64, edit func(*snapshots.Pointer)) {
	t.Helper()
	p := snapshots.Pointer{Version: version, Signed: true, At: raceDay.Add(time.Duration(version) * time.Second)}
	if o, err := s.Get(t.Context(), snapshots.ManifestKey(version), 1<<20); err == nil {
		p.Manifest = snapshots.Digest(o.Data)
	}
	if edit != nil {
		edit(&p)
	}
	data := must.Get(json.Marshal(p))(t)
	s.Corrupt(snapshots.PointerKey, data)
}

func read(t *testing.T, s blob.Store, key string) []byte {
	t.Helper()
	o := must.Get(s.Get(t.Context(), key, 1<<20))(t)
	return o.Data
}

// TestWritersOfTheBucket lets an attacker write anything to the store. The edge stays with the last version that
// the publisher signed, and the next signed version ends the attack.
func TestWritersOfTheBucket(t *testing.T) {
	forged := bodies{"drivers": "forged"}
	unsigned := func(t *testing.T, s *memblob.Store, key *notes.Signers) {
		movePointer(t, s, 2, func(p *snapshots.Pointer) { p.Signed = false })
		p := snapshots.Publisher{Store: s, Signers: key}
		must.Get(p.Publish(t.Context(), draftOf(loadBase(t, s), forged)))(t)
	}
	tests := []struct {
		name    string
		attack  func(t *testing.T, s *memblob.Store)
		refusal error
	}{
		{"rollback", func(t *testing.T, s *memblob.Store) { movePointer(t, s, 1, nil) }, notes.ErrLower},
		{"no signature", func(t *testing.T, s *memblob.Store) { unsigned(t, s, nil) }, snapshots.ErrUnsigned},
		{"wrong key of the same origin", func(t *testing.T, s *memblob.Store) { unsigned(t, s, signers(t, keyFile(t, origin))) }, snapshots.ErrUnsigned},
		{"note removed", func(t *testing.T, s *memblob.Store) {
			_ = s.Delete(t.Context(), snapshots.NoteKey(2))
			movePointer(t, s, 2, func(p *snapshots.Pointer) { p.At = raceDay.Add(time.Hour) })
		}, snapshots.ErrUnsigned},
		{"note of another version", func(t *testing.T, s *memblob.Store) {
			unsigned(t, s, nil)
			s.Corrupt(snapshots.NoteKey(3), read(t, s, snapshots.NoteKey(2)))
			movePointer(t, s, 3, nil)
		}, snapshots.ErrUnsigned},
		{"manifest of another version", func(t *testing.T, s *memblob.Store) {
			movePointer(t, s, 2, func(p *snapshots.Pointer) { p.Manifest = snapshots.Digest(read(t, s, snapshots.ManifestKey(1))) })
		}, snapshots.ErrUnsigned},
		{"other bytes in the manifest", func(t *testing.T, s *memblob.Store) {
			s.Corrupt(snapshots.ManifestKey(2), edited(read(t, s, snapshots.ManifestKey(2)), "simulated", "real-real"))
			movePointer(t, s, 2, func(p *snapshots.Pointer) { p.At = raceDay.Add(time.Hour) })
		}, snapshots.ErrUnsigned},
		{"a signature cut off", func(t *testing.T, s *memblob.Store) {
			note := read(t, s, snapshots.NoteKey(2))
			s.Corrupt(snapshots.NoteKey(2), note[:len(note)-10])
			movePointer(t, s, 2, func(p *snapshots.Pointer) { p.At = raceDay.Add(time.Hour) })
		}, snapshots.ErrUnsigned},
		{"endless data in a note", func(t *testing.T, s *memblob.Store) {
			unsigned(t, s, nil)
			s.Corrupt(snapshots.NoteKey(3), bytes.Repeat([]byte("a line\n"), 10<<20))
			movePointer(t, s, 3, nil)
		}, snapshots.ErrUnsigned},
		{"a number that no note has", func(t *testing.T, s *memblob.Store) {
			movePointer(t, s, 1<<53, func(p *snapshots.Pointer) { p.Manifest = snapshots.Digest(nil) })
		}, snapshots.ErrUnsigned},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, key := memblob.New(), signers(t, keyFile(t, origin))
				publishSigned(t, s, key, bodies{"drivers": "d1"})
				publishSigned(t, s, key, bodies{"drivers": "d2"})
				var bodyReads atomic.Int64
				e := followSigned(t, faultblob.Wrap(s, func(_ context.Context, c faultblob.Call) faultblob.Fate {
					if strings.HasPrefix(c.Key, "objects/3") || strings.HasPrefix(c.Key, "deltas/3") || c.Key == snapshots.ManifestKey(3) {
						bodyReads.Add(1)
					}
					return faultblob.Fate{}
				}), key)
				e.want(t, "before", 2, nil)
				test.attack(t, s)
				e.want(t, "attacked", 2, test.refusal)
				must.Equal(t, "attacked", bodies{"drivers": "d2"}, e.lastContent())
				n := bodyReads.Load()
				must.Hold(t, n <= 0, "the edge read %d objects of a version without a signature", n)
				_ = e.stop()
				e.start(t, key)
				e.want(t, "attacked and started again", 2, test.refusal)
				movePointer(t, s, 2, nil) // an operator's repair, or the next version
				_ = s.Delete(t.Context(), snapshots.PointerKey)
				p := snapshots.Publisher{Store: s, Signers: key}
				base := loadBase(t, s)
				if r, err := p.Publish(t.Context(), draftOf(base, bodies{"drivers": "d3"})); err != nil {
					t.Fatal(err)
				} else {
					e.want(t, "healed", r.Version, nil)
				}
				_ = e.stop()
			})
		})
	}
}

// TestSignedLines signs notes with the right key and other lines. The edge refuses a version of another ledger,
// and ReadNote refuses a note with more lines.
func TestSignedLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, key := memblob.New(), signers(t, keyFile(t, origin))
		publishSigned(t, s, key, bodies{"drivers": "d1"})
		e := followSigned(t, s, key)
		movePointer(t, s, 1, func(p *snapshots.Pointer) { p.Signed = false })
		must.Get((&snapshots.Publisher{Store: s}).Publish(t.Context(), draftOf(loadBase(t, s), bodies{"drivers": "d2"})))(t)
		lines := []string{"version 2", "manifest " + snapshots.Digest(read(t, s, snapshots.ManifestKey(2))), "ledger simulated 4 " + snapshots.Digest([]byte("ledger"))}
		signed := must.Get(key.Sign(lines...))(t)
		must.Get(s.Create(t.Context(), snapshots.NoteKey(2), signed))(t)
		movePointer(t, s, 2, nil)
		e.want(t, "another ledger", 1, snapshots.ErrUnsigned)
		_ = e.stop()

		_, _, err := snapshots.ReadNote(key.Trust(), signed)
		must.Succeed(t, "read the note", err)
		_, _, err = snapshots.ReadNote(key.Trust(), must.Get(key.Sign(append(lines, "more")...))(t))
		must.Fail(t, "a note with more lines", err, snapshots.ErrUnsigned)
	})
}

// TestSignedBaseAlone checks that a publisher takes no document from a version that its key has not signed.
func TestSignedBaseAlone(t *testing.T) {
	s, key := memblob.New(), signers(t, keyFile(t, origin))
	publish(t, s, bodies{"drivers": "of anybody", "calendar/2024": "c1"})
	p := snapshots.Publisher{Store: s, Signers: key}
	must.Fail(t, "base that no key has signed", must.Err(p.LoadBase(t.Context(), nil)), snapshots.ErrNewKey)
	key.New = true
	base := ownBase(t, &p)
	if _, ok := base.Entry("drivers"); ok || base.Pointer.Version != 1 || base.Manifest.Ledger.Seq != 3 {
		t.Errorf("base without a signature: entry %v, version %d, ledger %d", ok, base.Pointer.Version, base.Manifest.Ledger.Seq)
	}
	r, err := p.Publish(t.Context(), draftOf(base, bodies{"drivers": "d1", "calendar/2024": "c1"}))
	if err != nil || r.Version != 2 || r.ObjectsWritten != 2 {
		t.Fatalf("first signed version: %+v, %v, want version 2 with 2 objects of its own", r, err)
	}
	key.New = false
	_, ok := ownBase(t, &p).Entry("drivers")
	must.Hold(t, ok, "the signed version is no base")
	unsigned := snapshots.Publisher{Store: s}
	for name, publish := range map[string]func() error{
		"publish": func() error {
			_, err := unsigned.Publish(t.Context(), draftOf(loadBase(t, s), bodies{"drivers": "d2"}))
			return err
		},
		"rollback": func() error {
			_, err := unsigned.Rollback(t.Context(), 1, "test", "why", raceDay)
			return err
		},
	} {
		must.Fail(t, fmt.Sprintf("%s without the key", name), publish(), snapshots.ErrNoSigner)
	}
	must.Fail(t, "rollback to a version of anybody", must.Err(p.Rollback(t.Context(), 1, "test", "why", raceDay)), snapshots.ErrNewKey)
	key.New = true
	r, err = p.Rollback(t.Context(), 1, "test", "why", raceDay)
	must.Hold(t, err == nil && r.Version == 3, "rollback with the key: %+v, %v", r, err)
}

// TestFresh checks that an edge learns until when its version is current, and is not deceived about it.
func TestFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, key := memblob.New(), signers(t, keyFile(t, origin))
		publisher := snapshots.Publisher{Store: s, Signers: key}
		freshen := func() {
			t.Helper()
			must.Do(t, publisher.Freshen(t.Context(), nil))
		}
		publishSigned(t, s, key, bodies{"drivers": "d1"})
		e := followSigned(t, s, key)
		left := func() time.Duration {
			if until := e.until.Load(); until != nil {
				return time.Until(*until).Round(time.Minute)
			}
			return 0
		}
		if left() != 0 {
			t.Errorf("without fresh.note the version is current for %v", left())
		}
		freshen()
		settle()
		if want := snapshots.FreshFor - time.Minute; left() != want {
			t.Errorf("signed a minute ago: current for %v, want %v", left(), want)
		}
		first := read(t, s, snapshots.FreshKey)
		must.Advance(snapshots.FreshEvery)
		freshen()
		publishSigned(t, s, key, bodies{"drivers": "d2"})
		settle()
		e.want(t, "a later version", 2, nil)
		if want := snapshots.FreshFor - 2*time.Minute; left() != want {
			t.Errorf("a note about the version before: current for %v, want %v", left(), want)
		}

		// Somebody holds the pointer at version 2, and lets the publisher's notes about version 3 pass.
		pointer := read(t, s, snapshots.PointerKey)
		publishSigned(t, s, key, bodies{"drivers": "d3"})
		freshen()
		s.Corrupt(snapshots.PointerKey, pointer)
		_ = e.stop()
		e.start(t, key)
		settle()
		until := e.until.Load()
		must.Hold(t, until == nil || e.numbers()[0] != 2, "a frozen edge believes that version 2 is current until %v", until)

		// An older note, a note of anybody and no note prolong nothing.
		for name, note := range map[string][]byte{"older": first, "unsigned": []byte("fresh 2\n"), "huge": bytes.Repeat([]byte("x"), 1<<20)} {
			s.Corrupt(snapshots.FreshKey, note)
			settle()
			until := e.until.Load()
			must.Hold(t, until == nil || time.Until(*until) <= snapshots.FreshFor-snapshots.FreshEvery, "%s: current until %v", name, until)
		}

		// The publisher gives no word for a version that somebody else made current.
		must.Fail(t, "pointer moved back", publisher.Freshen(t.Context(), nil), snapshots.ErrMovedBack)
		movePointer(t, s, 3, func(p *snapshots.Pointer) { p.Manifest = snapshots.Digest(nil) })
		must.Fail(t, "pointer to another manifest", publisher.Freshen(t.Context(), nil), snapshots.ErrUnsigned)
		_ = e.stop()
	})
}

// TestRotation replaces a key: two keys sign, then the new one alone. No edge misses a version.
func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, oldFile, newFile := memblob.New(), keyFile(t, origin), keyFile(t, origin)
		oldKey, newKey, both := signers(t, oldFile), signers(t, newFile), signers(t, oldFile, newFile)
		publishSigned(t, s, oldKey, bodies{"drivers": "d1"})
		patient, updated := followSigned(t, s, oldKey), followSigned(t, s, oldKey, newKey)
		publishSigned(t, s, both, bodies{"drivers": "d2"})
		patient.want(t, "the old key, two signatures", 2, nil)
		updated.want(t, "both keys, two signatures", 2, nil)
		publishSigned(t, s, newKey, bodies{"drivers": "d3"})
		patient.want(t, "the old key, the new signature", 2, snapshots.ErrUnsigned)
		updated.want(t, "both keys, the new signature", 3, nil)
		_ = updated.stop()
		updated.start(t, newKey)
		updated.want(t, "the new key", 3, nil)
		movePointer(t, s, 2, nil)
		updated.want(t, "rollback to two signatures", 3, notes.ErrLower)
		_, _ = patient.stop(), updated.stop()
	})
}

// TestStolenKey lets a thief sign the highest number there is. A new key goes on below it.
func TestStolenKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, stolenFile, newFile := memblob.New(), keyFile(t, origin), keyFile(t, origin)
		stolen, both, next := signers(t, stolenFile), signers(t, stolenFile, newFile), signers(t, newFile)
		publishSigned(t, s, stolen, bodies{"drivers": "d1"})
		e := followSigned(t, s, stolen)
		thief := memblob.New()
		publishSigned(t, thief, stolen, bodies{"drivers": "stolen"})
		highest := int64(1 << 53)
		manifest := edited(read(t, thief, snapshots.ManifestKey(1)), `"version":1,`, fmt.Sprintf(`"version":%d,`, highest))
		s.Corrupt(snapshots.ManifestKey(highest), manifest)
		for _, key := range []string{"objects/1/drivers.json.gz"} {
			s.Corrupt(key, read(t, thief, key))
		}
		note := must.Get(stolen.Sign(fmt.Sprintf("version %d", highest), "manifest "+snapshots.Digest(manifest), "ledger simulated 3 "+snapshots.Digest([]byte("ledger"))))(t)
		s.Corrupt(snapshots.NoteKey(highest), note)
		honest := read(t, s, snapshots.PointerKey)
		movePointer(t, s, highest, nil)
		e.want(t, "stolen", highest, nil)

		// The operator puts the pointer back, and signs with the new key too, then with it alone.
		s.Corrupt(snapshots.PointerKey, honest)
		e.want(t, "the stolen key alone", highest, notes.ErrLower)
		_ = s.Delete(t.Context(), snapshots.ManifestKey(highest))
		publishSigned(t, s, both, bodies{"drivers": "d2"})
		_ = e.stop()
		e.start(t, stolen, next)
		e.want(t, "both keys", 2, nil)
		publishSigned(t, s, next, bodies{"drivers": "d3"})
		_ = e.stop()
		e.start(t, next)
		e.want(t, "the new key", 3, nil)
		must.Equal(t, "content", bodies{"drivers": "d3"}, e.lastContent())
		_ = e.stop()
	})
}

// TestRatchetBeforeUse checks that the number of a version is on disk before the version is served.
func TestRatchetBeforeUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, key := memblob.New(), signers(t, keyFile(t, origin))
		publishSigned(t, s, key, bodies{"drivers": "d1"})
		e := followSigned(t, s, key)
		var full atomic.Bool
		disk := faultblob.Wrap(memblob.New(), func(_ context.Context, c faultblob.Call) faultblob.Fate {
			if full.Load() && c.Op.Writes() {
				return faultblob.Fate{Err: errors.New("no space left on device")}
			}
			return faultblob.Fate{}
		})
		_ = e.stop()
		e.config.Ratchet = notes.NewRatchet(disk, "versions.json")
		e.start(t, key)
		e.want(t, "room on the disk", 1, nil)
		full.Store(true)
		publishSigned(t, s, key, bodies{"drivers": "d2"})
		e.want(t, "no room on the disk", 1, snapshots.ErrRatchet)
		full.Store(false)
		e.want(t, "room again", 2, nil)

		// The edge dies between the ratchet and its copy, which is then lower. It serves the copy meanwhile.
		_ = e.stop()
		must.Do(t, e.config.Ratchet.Raise(t.Context(), []string{e.onlyKey(t, s)}, notes.Mark{Number: 3, Content: "of version 3"}))
		e.start(t, key)
		e.want(t, "copy below the ratchet", 2, notes.ErrLower)
		_ = e.stop()
	})
}

// onlyKey is the key that has signed version 1, as the ratchet names it.
func (e *signedEdge) onlyKey(t *testing.T, s blob.Store) string {
	t.Helper()
	n, err := e.config.Trust.Open(read(t, s, snapshots.NoteKey(1)))
	if err != nil || len(n.Keys) != 1 {
		t.Fatalf("keys %v, %v", n.Keys, err)
	}
	return n.Keys[0]
}

// TestPin serves one version, whatever is current, and only if it is signed.
func TestPin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, key := memblob.New(), signers(t, keyFile(t, origin))
		publish(t, s, bodies{"drivers": "d1"})
		for range 2 {
			publishSigned(t, s, key, bodies{"drivers": fmt.Sprint(time.Now())})
			settle()
		}
		e := followSigned(t, s, key)
		e.want(t, "before", 3, nil)
		_ = e.stop()
		e.config.Pin = 2
		e.start(t, key)
		e.want(t, "pinned to an earlier version", 2, nil)
		publishSigned(t, s, key, bodies{"drivers": "d4"})
		e.want(t, "a new version", 2, nil)
		_ = e.stop()
		e.start(t, key)
		e.want(t, "started again", 2, nil)
		_ = e.stop()
		e.config.Pin, e.config.Cache = 1, memblob.New()
		e.start(t, key)
		e.want(t, "pinned to an unsigned version", 0, snapshots.ErrUnsigned)
		_ = e.stop()
		e.config.Pin = 0
		e.start(t, key)
		e.want(t, "no longer pinned", 4, nil)
		_ = e.stop()
	})
}

// TestCrashOfASigningPublisher kills a publisher at each of its writes. The edge serves the signed version before
// or the one after, and the next run publishes.
func TestCrashOfASigningPublisher(t *testing.T) {
	for _, applied := range []bool{false, true} {
		for n, died := 1, true; died; n++ {
			synctest.Test(t, func(t *testing.T) {
				s, key := strict(t), signers(t, keyFile(t, origin))
				publishSigned(t, s, key, crashBefore)
				e := followSigned(t, s, key)
				mortal, dead := faultblob.Mortal(s, n, applied)
				p := snapshots.Publisher{Store: mortal, Workers: 1, Signers: key}
				_, err := p.Publish(t.Context(), draftOf(loadBase(t, s), crashAfter))
				settle()
				if died = dead(); died != (err != nil) {
					t.Errorf("write %d: killed %v, error %v", n, died, err)
				}
				current := loadBase(t, s).Pointer.Version
				e.want(t, fmt.Sprintf("write %d, applied %v", n, applied), current, nil)
				publishSigned(t, s, key, crashAfter)
				settle()
				e.want(t, fmt.Sprintf("after write %d", n), loadBase(t, s).Pointer.Version, nil)
				must.Equal(t, fmt.Sprintf("write %d, applied %v", n, applied), crashAfter, e.lastContent())
				_ = e.stop()
			})
		}
	}
}

// TestTwoSigningPublishers lets two publishers race for one base. One of them wins, and its note is the one of the
// current version.
func TestTwoSigningPublishers(t *testing.T) {
	s, key := strict(t), signers(t, keyFile(t, origin))
	publishSigned(t, s, key, bodies{"drivers": "d1"})
	base := loadBase(t, s)
	first, second := snapshots.Publisher{Store: s, Signers: key}, snapshots.Publisher{Store: s, Signers: signers(t, keyFile(t, origin))}
	must.Get(first.Publish(t.Context(), draftOf(base, bodies{"drivers": "d2"})))(t)
	must.Fail(t, "second publisher on the same base", must.Err(second.Publish(t.Context(), draftOf(base, bodies{"drivers": "d3"}))), snapshots.ErrBaseChanged)
	after := loadBase(t, s)
	must.Succeed(t, "note about the current version", must.Err(snapshots.OpenNote(key.Trust(), read(t, s, snapshots.NoteKey(2)), after.Pointer, after.Manifest.Ledger)))
	must.Succeed(t, "fresh.note after a lost race", first.Freshen(t.Context(), nil))
}

// TestPruneRemovesNotes removes the notes about pruned versions and keeps the others.
func TestPruneRemovesNotes(t *testing.T) {
	clock := &clock{now: time.Now()}
	s, key := memblob.New(memblob.Clock(clock.Now)), signers(t, keyFile(t, origin))
	for _, body := range []string{"d1", "d2", "d3"} {
		publishSigned(t, s, key, bodies{"drivers": body})
	}
	must.Get(snapshots.Prune(t.Context(), s, 2, clock.now.Add(2*snapshots.PruneAge), false))(t)
	left := keysOf(t, s, "notes/")
	must.Equal(t, "notes", []string{"notes/2", "notes/3"}, left)
}

// TestRollbackKeepsTheLog checks that the public log of a version never gets shorter. If the log of the current version
// is lost, or somebody else signed it, the new version has none.
func TestRollbackKeepsTheLog(t *testing.T) {
	key, other := signers(t, keyFile(t, origin)), signers(t, keyFile(t, origin))
	for name, test := range map[string]struct {
		alter func(s *memblob.Store)
		by    *notes.Signers
		want  bodies
	}{
		"whole":              {func(*memblob.Store) {}, key, bodies{"drivers": "d1", "log/checkpoint": "2", "log/tile/0/000": "t2"}},
		"signed by another":  {func(*memblob.Store) {}, other, bodies{"drivers": "d1"}},
		"a damaged tile":     {func(s *memblob.Store) { s.Corrupt("objects/2/log/tile/0/000.json.gz", []byte("x")) }, key, bodies{"drivers": "d1"}},
		"a damaged manifest": {func(s *memblob.Store) { s.Corrupt(snapshots.ManifestKey(2), []byte("x")) }, key, bodies{"drivers": "d1"}},
		"no note":            {func(s *memblob.Store) { _ = s.Delete(t.Context(), "notes/2") }, key, bodies{"drivers": "d1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := memblob.New()
			publishSigned(t, s, key, bodies{"drivers": "d1", "log/checkpoint": "1"})
			publishSigned(t, s, key, bodies{"drivers": "d2", "log/checkpoint": "2", "log/tile/0/000": "t2"})
			test.alter(s)
			test.by.New = test.by == other
			p := snapshots.Publisher{Store: s, Signers: test.by}
			must.Get(p.Rollback(t.Context(), 1, "test", "why", raceDay))(t)
			_, content := served(t, s)
			must.Equal(t, "after the rollback", test.want, content)
		})
	}
}
