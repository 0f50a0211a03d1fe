package simulate_test

import (
	"context"
	"errors"
	"time"

	"gridcast/deploy/must"
	"gridcast/deploy/operator"
	"gridcast/snapshots"
	"gridcast/snapshots/backup"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/memblob"
)

// copies is the place of the backups.
type copies struct {
	place *memblob.Store
	at    time.Time // of the last complete one; zero: there is none
}

// backUp copies the store while it is in use. The operator copies no version of a stranger.
func (w *world) backUp(o *operator.Operator) {
	pointer, _, err := snapshots.LoadPointer(w.t.Context(), w.disk)
	if err != nil || w.witness.isForged(pointer.Version) {
		return
	}
	at := time.Now()
	if _, err := w.do(o, operator.BackupStore{To: w.copies.place}, false); err == nil {
		w.copies.at = at
	}
}

// disaster loses a part of the store, or all of it. The operator stops the schedulers and restores the backup.
func (w *world) disaster() {
	if w.copies.at.IsZero() {
		return
	}
	for _, s := range w.schedulers {
		s.stop(w.random.IntN(2) == 0)
	}
	all := w.random.IntN(2) == 0
	if all {
		w.lose("", 1)
	} else {
		must.Do(w.t, w.disk.Delete(w.t.Context(), snapshots.PointerKey))
		w.lose("objects/", 2+w.random.IntN(20))
		w.lose("manifests/", 2+w.random.IntN(20))
	}
	w.note("the store is lost, all of it: %t", all)
	last := w.witness.top()
	w.restore()
	if all {
		w.clients.forget(w.copies.at)
		w.clients.lost = last
		w.witness.forget()
		w.subscribers.restored()
		w.readRecord(w.copies.place)
	}
	w.witness.record = nil // so that every byte is compared
	for _, g := range w.edges {
		if !g.clear.IsZero() {
			g.clear = time.Now()
		}
	}
	w.checkRecord()
}

// lose deletes one of n objects of a folder.
func (w *world) lose(folder string, n int) {
	for info, err := range w.disk.List(w.t.Context(), folder) {
		must.Do(w.t, err)
		if n == 1 || w.random.IntN(n) == 0 {
			must.Do(w.t, w.disk.Delete(w.t.Context(), info.Key))
		}
	}
}

// restore restores the last backup. A restore that breaks off is run again.
func (w *world) restore() {
	sign := w.newSigners()
	sign.New = w.rotation.step > 1 // the backup may be older than the key
	for try := range 10 {
		l := w.newLine("restore")
		if try < 5 {
			l.set(w.weather())
		}
		if w.random.IntN(3) == 0 && try < 5 {
			l.killAfter(1 + w.random.IntN(400))
		}
		store := l.store()
		o := &operator.Operator{Store: store, Sign: sign, SignKeys: w.keySigners, Name: "restore", Now: w.now}
		action := operator.RestoreStore{From: w.copies.place, Above: w.witness.top(), Open: func(context.Context) (blob.Store, error) { return store, nil }}
		answer, err := w.do(o, action, true)
		if err == nil || errors.Is(err, backup.ErrNotLost) {
			w.note("restored: %s", answer.Text)
			return
		}
		if try == 9 {
			w.fail("the store cannot be restored: %v", err)
		}
		w.tick()
	}
}

// forget gives up the knowledge of changes of keys since an instant, because the restored list lacks them, and of answers.
func (c *clients) forget(since time.Time) {
	for _, k := range c.keys {
		if k.changed.After(since) {
			k.revoking, k.revoked = true, time.Time{} // it works, or it does not
		}
	}
	clear(c.picks)
	clear(c.results)
}

// forget gives up the record, of which the store may have lost the end.
func (x *witness) forget() {
	clear(x.lasting)
	clear(x.picks)
	clear(x.revisions)
	clear(x.voids)
	x.record = nil
}

// isForged reports whether a stranger has published a version.
func (x *witness) isForged(version int64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.forged[version]
}

// top returns the highest version that an edge may have served.
func (x *witness) top() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	top := int64(0)
	for v := range x.versions {
		top = max(top, v)
	}
	return top
}
