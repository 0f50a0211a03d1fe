package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"gridcast/deploy/doctor"
	"gridcast/deploy/golden"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/blob/s3blob"
)

// TestConditions probes stores that differ in rights and in how they treat a condition. testdata/conditions.txt
// holds the findings.
func TestConditions(t *testing.T) {
	only := func(op faultblob.Op, n int, fate faultblob.Fate) func(faultblob.Op, int) faultblob.Fate {
		return func(called faultblob.Op, times int) faultblob.Fate {
			if called == op && times >= n {
				return fate
			}
			return faultblob.Fate{}
		}
	}
	denied := faultblob.Fate{Err: fmt.Errorf("create probe: %w", s3blob.ErrCredentials)}
	replaced := faultblob.Fate{Lie: func(blob.Tag, error) (blob.Tag, error) { return "new", nil }}
	var b strings.Builder
	for _, test := range []struct {
		name string
		fate func(op faultblob.Op, n int) faultblob.Fate
	}{
		{"an honest store", only(faultblob.List, 1, faultblob.Fate{})},
		{"a store that only reads", only(faultblob.Create, 1, denied)},
		{"a store that deletes nothing", only(faultblob.Delete, 1, denied)},
		{"a store that ignores If-None-Match", only(faultblob.Create, 2, replaced)},
		{"a store that ignores If-Match", only(faultblob.Swap, 2, replaced)},
		{"a store that refuses the tag it has just given", only(faultblob.Swap, 1, faultblob.Fate{Err: blob.ErrConflict})},
		{"a store that makes an object for two writers at once", only(faultblob.Create, 3, replaced)},
		{"a store that replaces an object for two writers at once", only(faultblob.Swap, 4, replaced)},
		{"a store that fails at conditions", only(faultblob.Swap, 1, faultblob.Fate{Err: errors.New("500 Internal Server Error")})},
	} {
		for _, role := range []string{"serve", "edge"} {
			calls := map[faultblob.Op]int{}
			var mu sync.Mutex
			store := faultblob.Wrap(memblob.New(), func(_ context.Context, c faultblob.Call) faultblob.Fate {
				mu.Lock()
				defer mu.Unlock()
				calls[c.Op]++
				return test.fate(c.Op, calls[c.Op])
			})
			fmt.Fprintf(&b, "%s: %s\n", role, test.name)
			for _, f := range doctor.Conditions(t.Context(), role, store) {
				fmt.Fprintf(&b, "  %-11s %-7s %s\n", f.Check, f.State, f.Text)
			}
		}
	}
	golden.File(t, "testdata/conditions.txt", b.String())
}
