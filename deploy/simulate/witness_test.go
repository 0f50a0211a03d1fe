package simulate_test

import (
	"bytes"
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"gridcast/builder/ledger"
	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/memblob"
)

// witness knows the published versions, from the writes that reached the store alone.
type witness struct {
	mu        sync.Mutex
	versions  map[int64]bool
	bodies    map[string]map[string][]int64 // by path and digest: the versions with it
	highest   int64
	firstAt   time.Time
	latest    time.Time      // when the latest version was published
	forged    map[int64]bool // by somebody without a key
	faults    []string
	lasting   map[string][]byte // files that never change
	record    *ledger.Ledger
	picks     map[int64]ledger.FrozenPick
	revisions map[int64][]ledger.Verification
	voids     map[int64]bool
}

func (x *witness) init() {
	x.versions, x.bodies, x.forged = map[int64]bool{}, map[string]map[string][]int64{}, map[int64]bool{}
	x.lasting = map[string][]byte{}
	x.picks, x.revisions, x.voids = map[int64]ledger.FrozenPick{}, map[int64][]ledger.Verification{}, map[int64]bool{}
}

// witnessed is the store, which tells the witness of each write that was applied.
type witnessed struct {
	*memblob.Store

	w *world
}

func (s witnessed) Create(ctx context.Context, key string, data []byte) (blob.Tag, error) {
	tag, err := s.Store.Create(ctx, key, data)
	if err == nil {
		s.w.wrote(key)
	}
	return tag, err
}

func (s witnessed) Swap(ctx context.Context, key string, old blob.Tag, data []byte) (blob.Tag, error) {
	tag, err := s.Store.Swap(ctx, key, old, data)
	if err == nil {
		s.w.wrote(key)
	}
	return tag, err
}

func (w *world) wrote(key string) {
	if key == snapshots.PointerKey {
		w.published(false)
	}
}

// published notes the current version.
func (w *world) published(forged bool) {
	x := &w.witness
	x.mu.Lock()
	defer x.mu.Unlock()
	ctx := context.Background()
	pointer, _, err := snapshots.LoadPointer(ctx, w.disk)
	if err != nil {
		x.faults = append(x.faults, "the published pointer cannot be read: "+err.Error())
		return
	}
	if x.versions[pointer.Version] {
		return // held or released
	}
	m, err := snapshots.LoadManifest(ctx, w.disk, pointer.Version)
	if err != nil {
		x.faults = append(x.faults, "the manifest of a published version cannot be read: "+err.Error())
		return
	}
	if !forged && pointer.Version < x.highest {
		x.faults = append(x.faults, "a lower version was published")
	}
	if len(x.versions) == 0 {
		x.firstAt = time.Now()
	}
	x.versions[pointer.Version], x.latest = true, time.Now()
	x.forged[pointer.Version] = forged
	if !forged {
		x.highest = max(x.highest, pointer.Version)
	}
	for path, e := range m.ByPath() {
		if x.bodies[path] == nil {
			x.bodies[path] = map[string][]int64{}
		}
		x.bodies[path][e.SHA256] = append(x.bodies[path][e.SHA256], pointer.Version)
	}
}

// of returns the versions that have a body.
func (x *witness) of(path, digest string) ([]int64, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	versions := slices.Clone(x.bodies[path][digest])
	return versions, len(versions) > 0
}

// first returns the number of published versions.
func (x *witness) first() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.versions)
}

func (x *witness) voided(session int64) bool { return x.voids[session] }

// growing are the folders of files that are created once and stay.
var growing = []string{"ledger/", "audit/", "facts/log/", "facts/hand/", "live/", "log/"}

// checkRecord checks that files, picks and revisions only grow.
func (w *world) checkRecord() {
	x := &w.witness
	x.mu.Lock()
	faults := slices.Clone(x.faults)
	x.mu.Unlock()
	if len(faults) > 0 {
		w.fail("%s", strings.Join(faults, "\n"))
	}
	w.readRecord(w.disk)
}

// readRecord compares the record in a store with what it has been, and remembers it.
func (w *world) readRecord(store *memblob.Store) {
	x := &w.witness
	ctx := w.t.Context()
	seen := map[string]bool{}
	for _, folder := range growing {
		for info, err := range store.List(ctx, folder) {
			must.Do(w.t, err)
			seen[info.Key] = true
			if known, ok := x.lasting[info.Key]; ok && int64(len(known)) == info.Size && x.record != nil {
				continue
			}
			o := must.Get(store.Get(ctx, info.Key, blob.MaxDocument))(w.t)
			if known, ok := x.lasting[info.Key]; ok && folder != "log/" && !bytes.Equal(known, o.Data) {
				w.fail("%s has changed", info.Key)
			}
			x.lasting[info.Key] = o.Data
		}
	}
	for key := range x.lasting {
		if !seen[key] && !strings.HasPrefix(key, "log/") {
			w.fail("%s has gone", key)
		}
	}
	l := x.record
	if l == nil {
		var err error
		if l, err = ledger.Load(ctx, store, ledger.AnyKind); err != nil {
			return // it is not opened yet
		}
	}
	if store == w.disk {
		x.record = l
	}
	if _, err := l.Refresh(ctx); err != nil {
		w.fail("the ledger cannot be read: %v", err)
	}
	for r := range l.Fold().Records() {
		w.checkRound(r)
	}
}

func (w *world) checkRound(r ledger.RoundRecord) {
	x := &w.witness
	if len(r.Voided) > 0 {
		x.voids[r.Key] = true
	}
	known, had := x.picks[r.Key]
	voided := func(id string) bool {
		return slices.ContainsFunc(r.Voided, func(v ledger.VoidedPick) bool { return v.EventID == id })
	}
	switch {
	case had && (r.Pick == nil || r.Pick.EventID != known.EventID) && !voided(known.EventID):
		w.fail("the pick of %d has gone: it was %+v", r.Key, known.Pick)
	case r.Pick != nil && had && r.Pick.EventID == known.EventID && r.Pick.Pick != known.Pick:
		w.fail("the pick of %d was %+v and is %+v", r.Key, known.Pick, r.Pick.Pick)
	case r.Pick != nil:
		x.picks[r.Key] = *r.Pick
	}
	if before := x.revisions[r.Key]; len(r.Revisions) < len(before) {
		w.fail("the result of %d has lost a revision", r.Key)
	}
	for i, v := range r.Revisions {
		if i > 0 && v.Reason == "" {
			w.fail("revision %d of %d has no reason", i+1, r.Key)
		}
		if before := x.revisions[r.Key]; i < len(before) && !reflect.DeepEqual(before[i].Rows, v.Rows) {
			w.fail("revision %d of %d has changed", i+1, r.Key)
		}
	}
	x.revisions[r.Key] = slices.Clone(r.Revisions)
}
