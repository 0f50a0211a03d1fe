package keys_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gridcast/deploy/must"
	"gridcast/edge/keys"
	"gridcast/edge/limit"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/notes"
)

// TestListHeldBack keeps a newer list of keys from an edge. fresh.note says that there is one, so that the edge reports it,
// and takes no older list on a new disk.
func TestListHeldBack(t *testing.T) {
	for _, trusting := range []bool{false, true} {
		t.Run(fmt.Sprintf("signed lists %t", trusting), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { heldBack(t, trusting) })
		})
	}
}

func heldBack(t *testing.T, trusting bool) {
	operator, trust := signingKey(t), notes.Trust{}
	if trusting {
		trust = operator.Trust()
	}
	store, seen := memblob.New(), memblob.New() // the publisher's view, and the edge's
	change := func(edit func(*keys.List) error) []byte {
		t.Helper()
		must.Do(t, keys.Update(t.Context(), store, signed(operator, edit)))
		return read(t, store)
	}
	fresh := func(before string) string {
		t.Helper()
		return must.Get(keys.FreshText(store, trust)(t.Context(), before))(t)
	}
	word := ""
	follow := func(folder string) (*keys.Follower, func()) {
		f := keys.NewFollower(keys.FollowerConfig{
			Store: seen, CacheDir: folder, Trust: trust, Tiers: keys.DefaultTiers(), Limits: limit.Memory{}, Log: slog.New(slog.DiscardHandler),
			Fresh: func(context.Context) (string, error) { return word, nil },
		})
		return f, running(t.Context(), t, f)
	}
	want := func(when string, f *keys.Follower, n int, behind, refused bool) {
		t.Helper()
		settle()
		h := f.Health()
		if count(f) != n || (h.Behind != "") != behind || h.Stale(time.Now()) != (behind || refused) || strings.Contains(h.Problem, "lower") != refused {
			t.Errorf("%s: %d keys, behind %q, problem %q; want %d keys, behind %t, refused %t", when, count(f), h.Behind, h.Problem, n, behind, refused)
		}
	}

	word = fresh("")
	must.Hold(t, word == "", "no list: text %q", word)
	change(add("one"))
	first := change(add("two"))
	must.Get(seen.Create(t.Context(), keys.Object, first))(t)
	word = fresh("")
	folder := t.TempDir()
	f, stop := follow(folder)
	want("the latest list", f, 2, false, false)

	second := change(add("three"))
	earlier := word
	third := change(revokeFirst)
	word = fresh(word)
	f.Freshen(t.Context(), word)
	want("a revocation held back", f, 2, true, false)
	f.Freshen(t.Context(), earlier)
	want("an earlier note", f, 2, true, false)
	write(t, seen, second)
	want("a list from before the revocation", f, 2, true, true)
	write(t, seen, third)
	want("the revocation", f, 2, false, false)
	f.Freshen(t.Context(), word)
	want("the revocation, and its note", f, 2, false, false)
	stop()

	write(t, seen, first)
	f, stop = follow(t.TempDir())
	want("a new disk, the list from before", f, -1, false, true)
	write(t, seen, third)
	want("a new disk, the latest list", f, 2, false, false)

	// Another list under the same serial number.
	list, err := keys.Decode(first)
	if err = errors.Join(err, list.Sign(operator, false), add("another")(&list)); err != nil {
		t.Fatal(err)
	}
	list.Serial = f.Table().Serial()
	forged := must.Get(list.Encode())(t)
	other := memblob.New()
	must.Get(other.Create(t.Context(), keys.Object, forged))(t)
	text := must.Get(keys.FreshText(other, trust)(t.Context(), ""))(t)
	f.Freshen(t.Context(), text)
	want("another hash", f, 2, true, false)
	f.Freshen(t.Context(), word)
	want("the hash of the list", f, 2, false, false)
	stop()

	// A writer of the bucket puts the first list back, or writes one of any number.
	write(t, store, first)
	kept := fresh(word) == word
	must.Hold(t, kept == trusting, "the first list put back: the text stays %t, want %t", kept, trusting)
	list = must.Get(keys.Decode(third))(t)
	list.Serial, list.Signature = 1<<62, nil
	unsigned := must.Get(list.Encode())(t)
	write(t, store, unsigned)
	kept = fresh(word) == word
	must.Hold(t, kept == trusting, "an unsigned list: the text stays %t, want %t", kept, trusting)
	if text, err = keys.FreshText(store, notes.Trust{})(t.Context(), word); err != nil { // a publisher without --sign-keys
		t.Fatal(err)
	}
	f, stop = follow(t.TempDir())
	want("a new disk", f, 2, false, false)
	f.Freshen(t.Context(), text)
	want("the word about an unsigned list", f, 2, true, false)
	fourth := withAnother(t, operator, third)
	write(t, seen, fourth)
	if settle(); trusting && count(f) != 3 {
		t.Errorf("a later list of the operator: %d keys, problem %q", count(f), f.Health().Problem)
	}
	stop()

	write(t, store, bytes.Repeat([]byte("x"), 99))
	text, err = keys.FreshText(store, trust)(t.Context(), word)
	must.Hold(t, err != nil, "a damaged list: text %q", text)
}

// withAnother adds a key to a list in a store of its own.
func withAnother(t *testing.T, operator *notes.Signers, list []byte) []byte {
	t.Helper()
	store := memblob.New()
	must.Get(store.Create(t.Context(), keys.Object, list))(t)
	must.Do(t, keys.Update(t.Context(), store, signed(operator, add("four"))))
	return read(t, store)
}
