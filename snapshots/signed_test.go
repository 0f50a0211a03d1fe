package snapshots_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
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
		for text, failed := range map[string]error{"": nil, "unread": errStopped} { // an error keeps the text of the note before
			must.Do(t, publisher.Freshen(t.Context(), func(context.Context, string) (string, error) { return "known", nil }))
			must.Fail(t, "keys"+text, publisher.Freshen(t.Context(), func(_ context.Context, before string) (string, error) { return text + before, failed }), failed)
			must.Equal(t, "text about the keys", "known", must.Get(snapshots.ReadFresh(t.Context(), s, key.Trust()))(t).Keys)
		}
		must.Fail(t, "a version without a manifest", snapshots.CheckNote(t.Context(), s, 9, key.Trust()), blob.ErrNotFound)
		must.Do(t, s.Delete(t.Context(), snapshots.FreshKey))
		var asked atomic.Int64
		e := followSigned(t, faultblob.Wrap(s, func(_ context.Context, c faultblob.Call) (fate faultblob.Fate) {
			if c.Key == snapshots.FreshKey {
				asked.Add(1)
			}
			return fate
		}), key)
		must.Equal(t, "reads of the note in a minute, one each twenty seconds", int64(4), asked.Load())
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

		down := faultblob.Wrap(s, func(context.Context, faultblob.Call) faultblob.Fate { return faultblob.Fate{Err: errStopped} })
		must.Fail(t, "a store that does not answer", must.Err(snapshots.ReadFresh(t.Context(), down, key.Trust())), errStopped)
		other := signers(t, keyFile(t, origin)).Trust()
		must.Fail(t, "a version of another key", must.Err2(snapshots.ReadNote(other, read(t, s, snapshots.NoteKey(2)))), notes.ErrUntrusted)
		must.Fail(t, "a pointer of another key", must.Err(snapshots.OpenNote(other, read(t, s, snapshots.NoteKey(2)), snapshots.Pointer{}, snapshots.Ledger{})), notes.ErrUntrusted)
		must.Fail(t, "a note of another key", must.Err(snapshots.ReadFresh(t.Context(), s, other)), notes.ErrUntrusted)

		// A trusted key has signed something else.
		sign := func(lines ...string) []byte { return must.Get(key.Sign(lines...))(t) }
		manifest, until3339, keysLine := "manifest "+snapshots.Digest(nil), "good-until "+time.Now().UTC().Format(time.RFC3339), "keys k"
		for _, lines := range [][]string{
			nil,
			{"fresh 3", manifest, until3339},
			{"fresh x", manifest, until3339, keysLine},
			{"fresh 3", manifest, "good-until soon", keysLine},
			{"fresh 3", manifest, until3339, keysLine, keysLine},
		} {
			s.Corrupt(snapshots.FreshKey, sign(lines...))
			must.Fail(t, fmt.Sprintf("fresh.note of %q", lines), must.Err(snapshots.ReadFresh(t.Context(), s, key.Trust())), snapshots.ErrUnsigned)
		}
		for _, lines := range [][]string{{"version 3"}, {"version 3", "manifest ", "ledger  0 "}, {"version x", manifest, "ledger  0 "}, {"version 03", manifest, "ledger  0 "}} {
			must.Fail(t, fmt.Sprintf("note of %q", lines), must.Err2(snapshots.ReadNote(key.Trust(), sign(lines...))), snapshots.ErrUnsigned)
		}

		// The publisher gives no word for a version that somebody else made current.
		must.Fail(t, "pointer moved back", publisher.Freshen(t.Context(), nil), snapshots.ErrMovedBack)
		movePointer(t, s, 3, func(p *snapshots.Pointer) { p.Manifest = snapshots.Digest(nil) })
		must.Fail(t, "pointer to another manifest", publisher.Freshen(t.Context(), nil), snapshots.ErrUnsigned)
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
		movePointer(t, s, 1, nil)
		e.want(t, "a lower version", 2, notes.ErrLower)
		must.Hold(t, !errors.Is(e.lastReport().Err, snapshots.ErrRatchet), "the ratchet is not at fault: %v", e.lastReport().Err)

		_ = e.stop()
	})
}
