package blob_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

type list struct {
	Names []string `json:"names"`
}

const listKey = "lists/names.json"

func add(name string) func(*list) error {
	return func(l *list) error {
		l.Names = append(l.Names, name)
		return nil
	}
}

// storedNames returns the content of the list; nil if the store has none.
func storedNames(t *testing.T, store blob.Store) []string {
	t.Helper()
	l, _ := must.Get2(blob.Document[list]{Store: store, Key: listKey}.Load(t.Context()))(t)
	return l.Names
}

// TestUpdateWhenTheStoreFails has a row for each way a write and the reading after it can end.
func TestUpdateWhenTheStoreFails(t *testing.T) {
	lost := fmt.Errorf("answer lost: %w", blob.ErrUnknown)
	conflict := fmt.Errorf("other tag: %w", blob.ErrConflict)
	for _, tt := range []struct {
		name   string
		before []string          // nil: there is no object
		gets   []faultblob.Fate  // of the first reads
		swaps  []faultblob.Fate  // of the first writes
		others map[string]string // the name that another process adds before a call, such as "swap 1"
		last   *faultblob.Fate   // of all later writes
		edit   func(*list) error // nil: add "mine"
		err    error
		not    error // that err must not wrap
		want   []string
		edits  int
	}{
		{name: "no object", want: []string{"mine"}, edits: 1},
		{name: "an object", before: []string{"a"}, want: []string{"a", "mine"}, edits: 1},
		{name: "nothing to change", before: []string{"a"}, edit: func(*list) error { return nil }, want: []string{"a"}, last: &faultblob.Fate{Err: errRefused}, edits: 1},
		{name: "no object and nothing to change", edit: func(*list) error { return nil }, last: &faultblob.Fate{Err: errRefused}, edits: 1},
		{name: "edit fails", before: []string{"a"}, edit: func(*list) error { return errRefused }, err: errRefused, want: []string{"a"}, edits: 1},
		{name: "unreadable", before: []string{"a"}, gets: []faultblob.Fate{{Err: errRefused}}, err: errRefused, want: []string{"a"}},
		{name: "refused", before: []string{"a"}, swaps: []faultblob.Fate{{Err: errRefused}}, err: errRefused, not: blob.ErrUnknown, want: []string{"a"}, edits: 1},
		{name: "another process is faster", before: []string{"a"}, others: map[string]string{"swap 1": "b"}, want: []string{"a", "b", "mine"}, edits: 2},
		{name: "another process is faster twice", others: map[string]string{"swap 1": "b", "swap 2": "c"}, want: []string{"b", "c", "mine"}, edits: 3},
		{name: "applied, answer lost", before: []string{"a"}, swaps: []faultblob.Fate{{Err: lost, Applied: true}}, want: []string{"a", "mine"}, edits: 1},
		{name: "applied, answer lost, no object before", swaps: []faultblob.Fate{{Err: lost, Applied: true}}, want: []string{"mine"}, edits: 1},
		{name: "not applied, answer lost", before: []string{"a"}, swaps: []faultblob.Fate{{Err: lost}}, want: []string{"a", "mine"}, edits: 2},
		{name: "another process makes the same change first", before: []string{"a"}, others: map[string]string{"swap 1": "mine"}, want: []string{"a", "mine", "mine"}, edits: 2},
		{
			name: "answer lost, applied during the next attempt", before: []string{"a"}, swaps: []faultblob.Fate{{Err: lost}}, others: map[string]string{"swap 2": "mine"},
			want: []string{"a", "mine"}, edits: 2,
		},
		{
			name: "applied, answer lost, replaced by another process", before: []string{"a"}, swaps: []faultblob.Fate{{Err: lost, Applied: true}}, others: map[string]string{"get 2": "b"},
			want: []string{"a", "mine", "b", "mine"}, edits: 2,
		},
		{name: "another process is faster, answer lost", before: []string{"a"}, swaps: []faultblob.Fate{{Err: lost}}, others: map[string]string{"swap 1": "b"}, want: []string{"a", "b", "mine"}, edits: 2},
		{
			name: "applied, answer lost, unreadable", before: []string{"a"}, gets: []faultblob.Fate{{}, {Err: errRefused}}, swaps: []faultblob.Fate{{Err: lost, Applied: true}},
			err: blob.ErrUnknown, want: []string{"a", "mine"}, edits: 1,
		},
		{name: "answer lost, then refused", swaps: []faultblob.Fate{{Err: lost}, {Err: errRefused}}, err: blob.ErrUnknown, edits: 2},
		{name: "every answer lost", last: &faultblob.Fate{Err: lost}, err: blob.ErrUnknown, edits: 50},
		{name: "a conflict at every write", before: []string{"a"}, last: &faultblob.Fate{Err: conflict}, err: blob.ErrConflict, not: blob.ErrUnknown, want: []string{"a"}, edits: 50},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := memblob.New()
				if tt.before != nil {
					must.Get((blob.Document[list]{Store: inner, Key: listKey}).Update(t.Context(), func(l *list) error { l.Names = tt.before; return nil }))(t)
				}
				calls := map[faultblob.Op]int{}
				store := faultblob.Wrap(inner, func(_ context.Context, call faultblob.Call) faultblob.Fate {
					calls[call.Op]++
					n := calls[call.Op]
					if other := tt.others[fmt.Sprintf("%s %d", call.Op, n)]; other != "" {
						if _, err := (blob.Document[list]{Store: inner, Key: listKey}).Update(t.Context(), add(other)); err != nil {
							t.Error(err)
						}
					}
					switch {
					case call.Op == faultblob.Get && n <= len(tt.gets):
						return tt.gets[n-1]
					case call.Op == faultblob.Swap && n <= len(tt.swaps):
						return tt.swaps[n-1]
					case call.Op == faultblob.Swap && tt.last != nil:
						return *tt.last
					}
					return faultblob.Fate{}
				})
				edit, edits := tt.edit, 0
				if edit == nil {
					edit = add("mine")
				}
				got, err := blob.Document[list]{Store: store, Key: listKey}.Update(t.Context(), func(l *list) error {
					edits++
					return edit(l)
				})
				must.Hold(t, errors.Is(err, tt.err) && (tt.not == nil || !errors.Is(err, tt.not)),
					"got the error %v, want %v and not %v", err, tt.err, tt.not)
				must.Hold(t, !strings.Contains(fmt.Sprint(err), "earlier write") || errors.Is(err, blob.ErrUnknown), "an error without a doubt speaks of one: %v", err)
				must.Hold(t, strings.Count(fmt.Sprint(err), lost.Error()) <= 1, "an error repeats a doubt: %v", err)
				must.Equal(t, "the store", tt.want, storedNames(t, inner))
				diff := cmp.Diff(tt.want, got.Names)
				must.Hold(t, err != nil || diff == "", "returned (-want +got):\n%s", diff)
				must.Hold(t, edits == tt.edits, "edit ran %d times, want %d", edits, tt.edits)
			})
		})
	}
}

// TestUpdateEndsWithItsContext shows that an Update that meets conflicts ends when its context
// does, with the cause and with the doubt about its write.
func TestUpdateEndsWithItsContext(t *testing.T) {
	for name, tt := range map[string]struct {
		fate    faultblob.Fate
		unknown bool
	}{
		"conflicts":    {faultblob.Fate{Err: blob.ErrConflict}, false},
		"lost answers": {faultblob.Fate{Err: blob.ErrUnknown}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := faultblob.Wrap(memblob.New(), func(_ context.Context, call faultblob.Call) faultblob.Fate {
					if call.Op.Writes() {
						return tt.fate
					}
					return faultblob.Fate{}
				})
				ctx, cancel := context.WithTimeoutCause(t.Context(), 300e6, errRefused)
				defer cancel()
				_, err := blob.Document[list]{Store: store, Key: listKey}.Update(ctx, add("mine"))
				must.Hold(t, errors.Is(err, errRefused) && errors.Is(err, blob.ErrUnknown) == tt.unknown,
					"got %v, want the cause of the end, unknown: %t", err, tt.unknown)
			})
		})
	}
}

// TestDocumentSwap shows that a swap against an old tag writes nothing.
func TestDocumentSwap(t *testing.T) {
	d := blob.Document[list]{Store: memblob.New(), Key: listKey}
	tag := must.Get(d.Swap(t.Context(), "", list{Names: []string{"a"}}))(t)
	must.Get(d.Swap(t.Context(), tag, list{Names: []string{"b"}}))(t)
	must.Fail(t, "a stale tag", must.Err(d.Swap(t.Context(), tag, list{Names: []string{"c"}})), blob.ErrConflict)
	must.Fail(t, "a content without JSON", must.Err(blob.Document[any]{Store: d.Store, Key: "other"}.Swap(t.Context(), "", make(chan int))))
	must.Equal(t, "the bytes", "{\n  \"names\": [\n    \"b\"\n  ]\n}", string(must.Get(d.Store.Get(t.Context(), listKey, 100))(t).Data))
}

// TestDamagedDocument shows that Update leaves a damaged object alone, and one that has a field
// which this program would delete.
func TestDamagedDocument(t *testing.T) {
	for _, damaged := range []string{"nonsense", `{"names":["a"]} {}`, `{"names":["a"],"owner":"b"}`, strings.Repeat(" ", 101)} {
		store := memblob.New()
		tag := must.Get(store.Create(t.Context(), listKey, []byte(damaged)))(t)
		d := blob.Document[list]{Store: store, Key: listKey, Limit: 100}
		must.Fail(t, fmt.Sprintf("%.30q was loaded", damaged), must.Err2(d.Load(t.Context())))
		must.Fail(t, fmt.Sprintf("%.30q was updated", damaged), must.Err(d.Update(t.Context(), add("mine"))))
		object, err := store.Get(t.Context(), listKey, 1000)
		must.Hold(t, err == nil && object.Tag == tag, "%.30q was replaced by %s, %v", damaged, object.Data, err)
	}
}

// syncer is a store in which an object waits for the disk.
type syncer struct {
	blob.Store
	err error
}

func (s syncer) Sync(context.Context, string) error { return s.err }

// TestUpdateWaitsForTheDisk finds an object as it shall be, which another writer may not have synced, and then none.
func TestUpdateWaitsForTheDisk(t *testing.T) {
	d := blob.Document[list]{Store: syncer{memblob.New(), blob.ErrUnsynced}, Key: listKey}
	same := func(*list) error { return nil }
	must.Succeed(t, "there is no object", must.Err(d.Update(t.Context(), same)))
	must.Get(d.Update(t.Context(), add("a")))(t)
	must.Fail(t, "the object may not survive a crash", must.Err(d.Update(t.Context(), same)), blob.ErrUnsynced)
	must.Get(d.Store.Create(t.Context(), "a/b", []byte("mine")))(t)
	must.Fail(t, "an earlier claim may not survive it", must.Err(blob.Claim(t.Context(), d.Store, "a/b", []byte("mine"))), blob.ErrUnsynced)
}

// TestDocumentHeals damages and deletes a document that has a copy, and its copy. Only an exact copy comes back.
func TestDocumentHeals(t *testing.T) {
	s := memblob.New()
	d := blob.Document[map[string]int]{Store: s, Key: "keys/keys.json", Copied: true}
	heal := func(want bool) {
		t.Helper()
		healed, err := d.Heal(t.Context())
		must.Require(t, healed == want && err == nil, "got %t, %v; want %t", healed, err, want)
	}
	holds := func(n int) {
		t.Helper()
		m, _, err := d.Load(t.Context())
		must.Require(t, err == nil && m["n"] == n, "got %v, %v; want %d", m, err, n)
	}
	heal(false) // there is no object
	for _, copied := range []bool{false, true} {
		first := blob.Document[map[string]int]{Store: s, Key: fmt.Sprint("first/", copied), Copied: copied}
		must.Get(first.Update(t.Context(), func(m *map[string]int) error { *m = map[string]int{}; return nil }))(t)
		_, err := s.Get(t.Context(), blob.CopyOf(first.Key), 100)
		must.Hold(t, (err == nil) == copied, "a copy of a first object, %t: got %v", copied, err)
	}
	failing := func(key string, op faultblob.Op) blob.Document[map[string]int] {
		u := d
		u.Store = faultblob.Wrap(s, func(_ context.Context, call faultblob.Call) (fate faultblob.Fate) {
			if call == (faultblob.Call{Op: op, Key: key}) {
				fate.Err = errRefused
			}
			return fate
		})
		return u
	}
	set := func(n int) func(*map[string]int) error {
		return func(m *map[string]int) error { *m = map[string]int{"n": n}; return nil }
	}
	must.Fail(t, "a first object that cannot be written", must.Err(failing(d.Key, faultblob.Swap).Update(t.Context(), set(9))), errRefused)
	heal(false) // the change that failed left no copy
	must.Succeed(t, "a first object whose copy cannot be written", must.Err(failing(blob.CopyOf(d.Key), faultblob.Create).Update(t.Context(), set(1))))
	holds(1)
	heal(false) // but makes the copy
	must.Fail(t, "an object that cannot be read", must.Err(failing(d.Key, faultblob.Get).Heal(t.Context())), errRefused)
	stuck := failing(blob.CopyOf(d.Key), faultblob.Swap)
	must.Fail(t, "a copy that cannot be written", must.Err(stuck.Update(t.Context(), set(7))), errRefused)
	holds(1) // the copy comes first
	must.Get(d.Update(t.Context(), set(2)))(t)
	s.Corrupt(d.Key, []byte("{"))
	must.Fail(t, "a copy that cannot be read", must.Err(failing(blob.CopyOf(d.Key), faultblob.Get).Heal(t.Context())), errRefused)
	must.Fail(t, "an object that cannot be written", must.Err(failing(d.Key, faultblob.Swap).Heal(t.Context())), errRefused)
	heal(true) // by the copy of the last change
	holds(2)

	s.Corrupt(d.Key, nil) // not a new document, and no reason to empty the copy
	must.Fail(t, "an object without bytes", must.Err2(d.Load(t.Context())), blob.ErrDamaged)
	heal(true)
	holds(2)

	s.Corrupt(d.Key, []byte(`{"n": 3}`)) // a program without copies
	heal(false)
	s.Corrupt(d.Key, []byte("["))
	heal(true)
	holds(3)

	s.Corrupt(blob.CopyOf(d.Key), []byte("["))
	holds(3)
	heal(false) // the copy follows the object
	s.Corrupt(d.Key, []byte("["))
	heal(true)
	holds(3)

	s.Corrupt(d.Key, []byte("["))
	must.Get(d.Update(t.Context(), func(m *map[string]int) error { (*m)["n"]++; return nil }))(t)
	holds(4) // a change heals first

	lose := func() {
		t.Helper()
		must.Do(t, s.Delete(t.Context(), d.Key))
		must.Fail(t, "a lost object is not a new one", must.Err2(d.Load(t.Context())), blob.ErrDamaged)
	}
	lose()
	must.Get(d.Update(t.Context(), func(m *map[string]int) error { (*m)["n"]++; return nil }))(t)
	holds(5) // a lost one, too
	lose()
	heal(true)
	holds(5)
	lose()
	short := d
	short.Limit = 3
	must.Fail(t, "a lost object whose copy is too large", must.Err2(short.Load(t.Context())), blob.ErrDamaged)
	must.Fail(t, "a lost object whose copy cannot be read", must.Err(failing(blob.CopyOf(d.Key), faultblob.Get).Update(t.Context(), set(1))), errRefused)
	must.Fail(t, "an object with a copy that cannot be read", must.Err2(failing(blob.CopyOf(d.Key), faultblob.Get).Load(t.Context())), errRefused)
	late := d
	late.Store = faultblob.Wrap(s, func(_ context.Context, call faultblob.Call) (fate faultblob.Fate) {
		if call.Key == blob.CopyOf(d.Key) {
			must.Get(d.Heal(t.Context()))(t)
		}
		return fate
	})
	must.Succeed(t, "an object that comes between two looks", must.Err2(late.Load(t.Context())))
	lose()
	s.Corrupt(blob.CopyOf(d.Key), []byte("["))
	must.Fail(t, "a lost object whose copy is damaged", must.Err(d.Update(t.Context(), set(1))), blob.ErrDamaged)
	edits := d
	edits.Copied = false
	must.Get(edits.Update(t.Context(), set(5)))(t)
	holds(5)

	s.Corrupt(d.Key, []byte("["))
	s.Corrupt(blob.CopyOf(d.Key), []byte("["))
	heal(false)
	must.Do(t, s.Delete(t.Context(), blob.CopyOf(d.Key)))
	heal(false)
	must.Fail(t, "a damaged document with a damaged copy can be read", must.Err2(d.Load(t.Context())))
}
