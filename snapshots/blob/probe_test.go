package blob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

// TestProbe probes stores that lie about one call each.
func TestProbe(t *testing.T) {
	replaced := func(blob.Tag, error) (blob.Tag, error) { return "new", nil }
	refused := faultblob.Fate{Err: blob.ErrConflict, Applied: true}
	sameTag := func(blob.Tag, error) (blob.Tag, error) { return "same", nil }
	type call struct {
		op faultblob.Op
		n  int // of this operation, from 1
	}
	for _, test := range []struct {
		name  string
		fates map[call]faultblob.Fate
		want  blob.Probed // errors.Is of each
		says  string      // a part of the fault
		left  bool        // an object stays
	}{
		{name: "an honest store"},
		{name: "no right to write", fates: map[call]faultblob.Fate{{faultblob.Create, 1}: {Err: errRefused}}, want: blob.Probed{Write: errRefused}},
		{
			name:  "the answer to the first write is lost",
			fates: map[call]faultblob.Fate{{faultblob.Create, 1}: {Err: fmt.Errorf("lost: %w", blob.ErrUnknown), Applied: true}},
			want:  blob.Probed{Write: blob.ErrUnknown},
		},
		{name: "no right to delete", fates: map[call]faultblob.Fate{{faultblob.Delete, 1}: {Err: errRefused}}, want: blob.Probed{Delete: errRefused}, left: true},
		{name: "replaces what exists", fates: map[call]faultblob.Fate{{faultblob.Create, 2}: {Lie: replaced}}, want: blob.Probed{Create: blob.ErrUnconditional}, says: "If-None-Match: * ignored"},
		{name: "an error instead of a refusal", fates: map[call]faultblob.Fate{{faultblob.Create, 2}: {Err: errRefused}}, want: blob.Probed{Create: errRefused}},
		{name: "an error instead of a new tag", fates: map[call]faultblob.Fate{{faultblob.Swap, 1}: {Err: errRefused}}, want: blob.Probed{Swap: errRefused}},
		{name: "refuses its own tag", fates: map[call]faultblob.Fate{{faultblob.Swap, 1}: {Err: fmt.Errorf("other tag: %w", blob.ErrConflict)}}, want: blob.Probed{Swap: blob.ErrUnconditional}},
		{
			name:  "gives two contents one tag",
			fates: map[call]faultblob.Fate{{faultblob.Create, 1}: {Lie: sameTag}, {faultblob.Swap, 1}: {Lie: sameTag}},
			want:  blob.Probed{Swap: blob.ErrUnconditional},
		},
		{name: "replaces an object with another tag", fates: map[call]faultblob.Fate{{faultblob.Swap, 2}: {Lie: replaced}}, want: blob.Probed{Swap: blob.ErrUnconditional}, says: "If-Match ignored"},
		{
			name:  "makes an object for two writers at once",
			fates: map[call]faultblob.Fate{{faultblob.Create, 3}: {Lie: replaced}, {faultblob.Create, 4}: {Lie: replaced}},
			want:  blob.Probed{Race: blob.ErrUnconditional}, says: "If-None-Match: *: ",
		},
		{
			name:  "replaces an object for two writers at once",
			fates: map[call]faultblob.Fate{{faultblob.Swap, 4}: {Lie: replaced}, {faultblob.Swap, 5}: {Lie: replaced}},
			want:  blob.Probed{Race: blob.ErrUnconditional}, says: "If-Match: ",
		},
		{
			name: "refuses a write that it applies", // any of the six writers may be the first
			fates: map[call]faultblob.Fate{
				{faultblob.Swap, 4}: refused, {faultblob.Swap, 5}: refused, {faultblob.Swap, 6}: refused,
				{faultblob.Swap, 7}: refused, {faultblob.Swap, 8}: refused, {faultblob.Swap, 9}: refused,
			},
			want: blob.Probed{Race: blob.ErrUnconditional}, says: "all of 6 simultaneous writers were refused",
		},
		{
			name:  "loses a write that it acknowledged",
			fates: map[call]faultblob.Fate{{faultblob.Get, 1}: {Mangle: func(data []byte) []byte { return bytes.Replace(data, []byte("by writer "), []byte("by writer 1"), 1) }}},
			want:  blob.Probed{Race: blob.ErrUnconditional}, says: "acknowledged",
		},
		{name: "an error after a race", fates: map[call]faultblob.Fate{{faultblob.Get, 1}: {Err: errRefused}}, want: blob.Probed{Race: errRefused}},
		{name: "an error in a race", fates: map[call]faultblob.Fate{{faultblob.Create, 5}: {Err: errRefused}}, want: blob.Probed{Race: errRefused}},
		{
			name:  "the answer to the winner of a race is lost",
			fates: map[call]faultblob.Fate{{faultblob.Create, 3}: {Err: fmt.Errorf("lost: %w", blob.ErrUnknown), Applied: true}},
		},
		{
			name:  "swaps nothing",
			fates: map[call]faultblob.Fate{{faultblob.Swap, 3}: {Lie: replaced}, {faultblob.Delete, 1}: {Err: errRefused}},
			want:  blob.Probed{Swap: blob.ErrUnconditional}, says: "If-Match ignored, it wrote an object that did not exist\nrefused",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			calls := map[faultblob.Op]int{}
			var mu sync.Mutex
			inner := memblob.New()
			store := faultblob.Wrap(inner, func(_ context.Context, c faultblob.Call) faultblob.Fate {
				mu.Lock()
				defer mu.Unlock()
				calls[c.Op]++
				return test.fates[call{c.Op, calls[c.Op]}]
			})
			got := blob.Probe(t.Context(), store, 1)
			for _, part := range []struct{ got, want error }{
				{got.Write, test.want.Write}, {got.Create, test.want.Create}, {got.Swap, test.want.Swap}, {got.Race, test.want.Race}, {got.Delete, test.want.Delete},
			} {
				if !errors.Is(part.got, part.want) {
					t.Errorf("got %v, want %v", part.got, part.want)
				}
			}
			must.Hold(t, strings.Contains(fmt.Sprint(got.Err()), test.says), "got %v, want %q", got.Err(), test.says)
			must.Hold(t, test.fates != nil || calls[faultblob.Create] == 2+6, "%d writes of a new object, want two and six in the only round", calls[faultblob.Create])
			left := 0
			for range inner.List(t.Context(), "") {
				left++
			}
			must.Hold(t, left > 0 == test.left, "%d objects stay", left)
		})
	}
}
