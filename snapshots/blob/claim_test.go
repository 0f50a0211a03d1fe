package blob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/iotest"

	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

var errRefused = errors.New("refused")

func TestClaim(t *testing.T) {
	lost := fmt.Errorf("answer lost: %w", blob.ErrUnknown)
	conflict := fmt.Errorf("repeated: %w", blob.ErrConflict)
	for _, test := range []struct {
		name    string
		before  string           // the content of the key; empty: no object
		creates []faultblob.Fate // of the first writes; the rest get through
		get     error            // of every read
		won     bool
		err     error
		after   string
		writes  int
	}{
		{name: "nothing there", won: true, after: "mine", writes: 1},
		{name: "other bytes there", before: "other", after: "other", writes: 1},
		{name: "other bytes of the same length there", before: "more", after: "more", writes: 1},
		{name: "the same bytes there", before: "mine", won: true, after: "mine", writes: 1},
		{name: "refused", creates: []faultblob.Fate{{Err: errRefused}}, err: errRefused, writes: 1},
		{name: "done but the answer was lost", creates: []faultblob.Fate{{Err: lost, Applied: true}}, won: true, after: "mine", writes: 1},
		{name: "done, and the store's own repetition was refused", creates: []faultblob.Fate{{Err: conflict, Applied: true}}, won: true, after: "mine", writes: 1},
		{name: "done, and a crash may undo it", creates: []faultblob.Fate{{Err: blob.ErrUnsynced, Applied: true}}, err: blob.ErrUnsynced, after: "mine", writes: 1},
		{name: "never arrived, once", creates: []faultblob.Fate{{Err: lost}}, won: true, after: "mine", writes: 2},
		{name: "never arrived, each time", creates: []faultblob.Fate{{Err: lost}, {Err: lost}, {Err: lost}, {Err: lost}}, err: blob.ErrUnknown, writes: 4},
		{name: "lost against another", before: "other", creates: []faultblob.Fate{{Err: lost}}, after: "other", writes: 1},
		{name: "lost, then refused", creates: []faultblob.Fate{{Err: lost}, {Err: errRefused}}, err: blob.ErrUnknown, writes: 2},
		{name: "lost, and unreadable", creates: []faultblob.Fate{{Err: lost, Applied: true}}, get: errRefused, err: blob.ErrUnknown, after: "mine", writes: 1},
		{name: "refused by what is there, and unreadable", before: "other", get: errRefused, err: blob.ErrUnknown, after: "other", writes: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			inner := memblob.New()
			if test.before != "" {
				must.Get(inner.Create(t.Context(), "a/b", []byte(test.before)))(t)
			}
			writes := 0
			store := faultblob.Wrap(inner, func(_ context.Context, call faultblob.Call) faultblob.Fate {
				if call.Op == faultblob.Get {
					return faultblob.Fate{Err: test.get}
				}
				writes++
				if writes <= len(test.creates) {
					return test.creates[writes-1]
				}
				return faultblob.Fate{}
			})
			won, err := blob.Claim(t.Context(), store, "a/b", []byte("mine"))
			must.Hold(t, won == test.won && errors.Is(err, test.err), "got %t, %v; want %t, %v", won, err, test.won, test.err)
			must.Hold(t, writes == test.writes, "%d writes, want %d", writes, test.writes)
			object, err := inner.Get(t.Context(), "a/b", blob.MaxDocument)
			if err != nil && !errors.Is(err, blob.ErrNotFound) {
				t.Fatal(err)
			}
			got := string(object.Data)
			must.Hold(t, got == test.after, "the key holds %q, want %q", got, test.after)
		})
	}
}

func TestReplace(t *testing.T) {
	lost := fmt.Errorf("answer lost: %w", blob.ErrUnknown)
	for name, test := range map[string]struct {
		swap  faultblob.Fate
		get   error // of every read
		stale bool  // the tag is that of an earlier object
		err   error
	}{
		"nothing in the way":             {},
		"done but the answer was lost":   {swap: faultblob.Fate{Err: lost, Applied: true}},
		"done, and a crash may undo it":  {swap: faultblob.Fate{Err: blob.ErrUnsynced, Applied: true}, err: blob.ErrUnsynced},
		"never arrived":                  {swap: faultblob.Fate{Err: lost}, err: blob.ErrUnknown},
		"another was first, answer lost": {swap: faultblob.Fate{Err: lost, Applied: true}, stale: true, err: blob.ErrUnknown},
		"done, lost, and unreadable":     {swap: faultblob.Fate{Err: lost, Applied: true}, get: errRefused, err: blob.ErrUnknown},
		"somebody else was first":        {stale: true, err: blob.ErrConflict},
		"refused, whatever is there now": {swap: faultblob.Fate{Err: errRefused, Applied: true}, err: errRefused},
	} {
		t.Run(name, func(t *testing.T) {
			inner := memblob.New()
			tag := must.Get(inner.Create(t.Context(), "a/b", []byte("earlier")))(t)
			if test.stale {
				must.Get(inner.Swap(t.Context(), "a/b", tag, []byte("more")))(t)
			}
			store := faultblob.Wrap(inner, func(_ context.Context, call faultblob.Call) faultblob.Fate {
				if call.Op == faultblob.Get {
					return faultblob.Fate{Err: test.get}
				}
				return test.swap
			})
			next, err := blob.Replace(t.Context(), store, "a/b", tag, []byte("mine"))
			must.Require(t, errors.Is(err, test.err), "got %v, want %v", err, test.err)
			if err == nil {
				must.Succeed(t, "its tag is not that of what is there", must.Err(inner.Swap(t.Context(), "a/b", next, []byte("after"))))
			}
		})
	}
}

// pieces returns its data a few bytes at a time, like a connection.
type pieces struct{ left []byte }

func (p *pieces) Read(data []byte) (int, error) {
	n := copy(data[:min(len(data), 7)], p.left)
	p.left = p.left[n:]
	if n == 0 && len(data) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func TestReadAll(t *testing.T) {
	must.Fail(t, "a connection that breaks", must.Err(blob.ReadAll(io.MultiReader(&pieces{[]byte("half")}, iotest.ErrReader(errRefused)), 8, 8)), errRefused)
	for _, length := range []int{0, 1, 511, 1 << 16, 3 << 20} {
		want := bytes.Repeat([]byte("x"), length)
		for _, stated := range []int64{-1, 0, int64(length), int64(length) + 1, 1 << 62} {
			got, err := blob.ReadAll(&pieces{want}, stated, int64(length))
			must.Hold(t, err == nil && bytes.Equal(got, want), "%d bytes, %d stated: got %d, %v", length, stated, len(got), err)
			if stated == int64(length) && length < 1<<20 && cap(got) != length+1 {
				t.Errorf("%d bytes take %d of memory", length, cap(got))
			}
			if length == 0 {
				continue
			}
			got, err = blob.ReadAll(&pieces{want}, stated, int64(length)-1)
			must.Hold(t, errors.Is(err, blob.ErrTooLarge) && got == nil,
				"%d bytes, %d stated, one too many: got %d, %v", length, stated, len(got), err)
		}
	}
}

// TestPut makes a key hold some bytes, for every content before.
func TestPut(t *testing.T) {
	for name, tt := range map[string]struct {
		before []byte // nil: there is no object
		wrote  bool
	}{
		"no object": {nil, true}, "the same": {[]byte("new"), false}, "another": {[]byte("old"), true}, "beyond the limit": {[]byte("too long"), true},
	} {
		s := memblob.New()
		if tt.before != nil {
			must.Get(s.Create(t.Context(), "key", tt.before))(t)
		}
		wrote, err := blob.Put(t.Context(), s, "key", 4, []byte("new"))
		if o, getErr := s.Get(t.Context(), "key", 4); err != nil || getErr != nil || wrote != tt.wrote || string(o.Data) != "new" {
			t.Errorf("%s: it wrote %t, want %t, and the key holds %q: %v, %v", name, wrote, tt.wrote, o.Data, err, getErr)
		}
	}
	s := memblob.New()
	must.Get(s.Create(t.Context(), "key", []byte("too long")))(t)
	stuck := faultblob.Wrap(s, func(_ context.Context, call faultblob.Call) (fate faultblob.Fate) {
		if call.Op == faultblob.Delete || call.Key == "refused" {
			fate.Err = errRefused
		} else if call.Key == "lost" {
			fate.Err = blob.ErrUnknown
		}
		return fate
	})
	must.Fail(t, "an object that cannot be created", must.Err(blob.Put(t.Context(), stuck, "refused", 4, []byte("new"))), errRefused)
	must.Fail(t, "an object that may be there", must.Err(blob.Put(t.Context(), stuck, "lost", 4, []byte("new"))), blob.ErrUnknown)
	must.Fail(t, "an object that cannot be removed", must.Err(blob.Put(t.Context(), stuck, "key", 4, []byte("new"))), errRefused)
}

// TestPutAfterALostAnswer loses the answer of the first write. The key holds the bytes afterwards, also if there are none.
func TestPutAfterALostAnswer(t *testing.T) {
	for _, data := range []string{"", "new"} {
		for _, lost := range []string{"", "applied", "another was first"} {
			inner, writes := memblob.New(), 0
			s := faultblob.Wrap(inner, func(_ context.Context, call faultblob.Call) faultblob.Fate {
				if call.Op == faultblob.Get {
					return faultblob.Fate{}
				}
				if writes++; writes > 1 {
					return faultblob.Fate{}
				}
				if lost == "another was first" {
					must.Get(inner.Create(t.Context(), "key", []byte("old")))(t)
				}
				return faultblob.Fate{Err: blob.ErrUnknown, Applied: lost == "applied"}
			})
			wrote, err := blob.Put(t.Context(), s, "key", 4, []byte(data))
			if o, getErr := inner.Get(t.Context(), "key", 4); err != nil || getErr != nil || !wrote || string(o.Data) != data {
				t.Errorf("%q, %q: it wrote %t and the key holds %q: %v, %v; want the bytes", data, lost, wrote, o.Data, err, getErr)
			}
		}
	}
}
