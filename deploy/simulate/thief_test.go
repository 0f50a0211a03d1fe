package simulate_test

import (
	"path/filepath"
	"time"

	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/notes"
)

// thief has the credentials of the store and no key of the operator.
type thief struct {
	w        *world
	sign     *notes.Signers // a key of its own
	pointers [][]byte       // the thief noted them
	last     time.Time      // of an attack
}

func newThief(w *world) *thief {
	file := filepath.Join(w.folder, "thief.key")
	must.Do(w.t, notes.MakeKey(file, notes.NewOrigin()))
	sign := must.Get(notes.ReadSigners(file))(w.t)
	sign.New = true
	return &thief{w: w, sign: sign}
}

// act puts an earlier pointer back, or publishes a version that the operator has not signed.
func (x *thief) act() {
	w, ctx := x.w, x.w.t.Context()
	o, err := w.disk.Get(ctx, snapshots.PointerKey, blob.MaxDocument)
	if err != nil {
		return
	}
	x.pointers = append(x.pointers, o.Data)
	if w.random.IntN(6) > 0 {
		return
	}
	x.last = time.Now()
	for _, g := range w.edges {
		if g.folder == "" && g.now != nil && g.now.edge.Status().Version == 0 {
			g.served = 0 // it remembers no version yet, so it takes the one of the thief
		}
	}
	if w.random.IntN(2) == 0 {
		w.note("thief moves the pointer back")
		must.Get(w.disk.Swap(ctx, snapshots.PointerKey, o.Tag, x.pointers[w.random.IntN(len(x.pointers))]))(w.t)
		return
	}
	base, err := snapshots.LoadBase(ctx, w.disk, nil)
	if err != nil {
		return
	}
	draft := snapshots.Draft{Base: base, EndHold: true, About: base.Manifest.About}
	for _, e := range base.Manifest.Entries {
		if e.Path == "drivers" {
			body := []byte(`{"ok":true,"data":[],"meta":{"api":"gridcast-v1","generated_at":"2024-05-13T00:00:00+00:00"}}`)
			draft.Variants = append(draft.Variants, snapshots.New(e.Path, body, nil, base.Manifest.BuiltAt))
		} else {
			draft.Variants = append(draft.Variants, snapshots.Reused(e))
		}
	}
	publisher := snapshots.Publisher{Store: w.disk, Signers: x.sign}
	receipt, err := publisher.Publish(ctx, draft)
	if err != nil {
		points.met(w, err)
		return
	}
	w.note("thief publishes")
	w.published(true)
	if w.random.IntN(2) == 0 {
		time.Sleep(3 * time.Second)
		w.clients.read() // no edge that trusts signatures serves the version, although an earlier or a strange key has signed it
	}
	// A version with the signature of another key waits for a person, because the operator may have a new key.
	must.Do(w.t, w.disk.Delete(ctx, snapshots.NoteKey(receipt.Version)))
}

// disturbs reports whether an edge that trusts no signatures may still serve a forgery of the thief.
func (x *thief) disturbs() bool { return !x.last.IsZero() && time.Since(x.last) < 10*time.Minute }
