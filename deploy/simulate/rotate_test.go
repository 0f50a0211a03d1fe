package simulate_test

import (
	"path/filepath"

	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/notes"
)

// rotation is the replacement of the version key, as the documentation describes it.
type rotation struct {
	step  int            // of rotate, that is done
	files []string       // with which publishers sign
	trust notes.Trust    // of the edge that trusts signatures
	old   *notes.Signers // the key that is replaced
	next  *notes.Signers
}

// newSigners returns the keys of a process that publishes.
func (w *world) newSigners() *notes.Signers {
	return must.Get(notes.ReadSigners(w.rotation.files...))(w.t)
}

// rotate does the next step of the replacement of the version key.
func (w *world) rotate() {
	x, edge := &w.rotation, w.edges[0]
	both := []string{filepath.Join(w.folder, "version.key"), filepath.Join(w.folder, "next.key")}
	switch x.step {
	case 0: // the edge trusts both keys
		x.old = w.newSigners()
		must.Do(w.t, notes.MakeKey(both[1], x.old.Origin()))
		x.next = must.Get(notes.ReadSigners(both[1]))(w.t)
		x.trust = must.Get(notes.ReadSigners(both...))(w.t).Trust()
		edge.stop()
		edge.start()
	case 1: // both keys sign
		x.files = both
		w.restartSchedulers()
	case 2: // the new key signs alone
		if !w.servedWith(edge, x.old) || !w.servedWith(edge, x.next) {
			return
		}
		x.files = both[1:]
		w.restartSchedulers()
	case 3: // the edge trusts the new key alone, and the old one falls into the hands of the thief
		if !w.servedWith(edge, x.next) {
			return
		}
		x.trust = x.next.Trust()
		edge.stop()
		edge.start()
		x.old.New = true
		w.thief.sign = x.old
	default:
		return
	}
	x.step++
	w.note("step %d of the rotation of the version key", x.step)
}

func (w *world) restartSchedulers() {
	for _, s := range w.schedulers {
		s.sign = w.newSigners()
		if s.now != nil {
			s.stop(w.random.IntN(2) == 0)
			s.start()
		}
	}
}

// servedWith reports whether an edge serves a version that a key has signed.
func (w *world) servedWith(g *gate, by *notes.Signers) bool {
	if g.now == nil {
		return false
	}
	version := g.now.edge.Status().Version
	return version > 0 && snapshots.CheckNote(w.t.Context(), w.disk, version, by.Trust()) == nil
}
