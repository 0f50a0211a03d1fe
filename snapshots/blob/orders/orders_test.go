package orders_test

import (
	"context"
	"errors"
	"math/big"
	"strconv"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/blob/orders"
)

// create creates one object.
var create = orders.Process{Name: "create", Run: func(ctx context.Context, s blob.Store) string {
	switch _, err := s.Create(ctx, "a", []byte("a")); {
	case errors.Is(err, blob.ErrUnknown):
		return "in doubt"
	case err != nil:
		return "refused"
	}
	return "created"
}}

// count adds one to a number. It reads the number and the tag apart, so that two of them lose one of their additions in some
// orders.
var count = orders.Process{Name: "count", Run: func(ctx context.Context, s blob.Store) string {
	value, err := s.Get(ctx, "n", 10)
	if err != nil {
		return "no value"
	}
	n, _ := strconv.Atoi(string(value.Data))
	tagged, err := s.Get(ctx, "n", 10)
	if err != nil {
		return "no tag"
	}
	if _, err = s.Swap(ctx, "n", tagged.Tag, []byte(strconv.Itoa(n+1))); err != nil {
		return "refused"
	}
	return "counted"
}}

// TestCounts compares the numbers of orders with those counted by hand.
func TestCounts(t *testing.T) {
	for _, test := range []struct {
		name          string
		processes     []orders.Process
		crashes, lost int
		want          map[string]int64
		ends          map[string]bool // content of n and a
	}{
		{"one call", []orders.Process{create}, 0, 0, map[string]int64{"created": 1}, map[string]bool{"0a": true}},
		{"a lost answer: it never arrives, or it does", []orders.Process{create}, 0, 1, map[string]int64{"created": 1, "in doubt": 2}, map[string]bool{"0": true, "0a": true}},
		{"a crash, with the call in flight", []orders.Process{create}, 1, 0, map[string]int64{"created": 1, orders.Crashed: 2}, map[string]bool{"0": true, "0a": true}},
		{
			"two that want one object",
			[]orders.Process{create, create},
			0, 0,
			map[string]int64{"created, refused": 1, "refused, created": 1},
			map[string]bool{"0a": true},
		},
		{
			// Six calls, three of each, have 20 orders. An addition is lost if a value is read before and a tag after
			// the swap of the other.
			"an addition is lost",
			[]orders.Process{count, count},
			0, 0,
			map[string]int64{"counted, counted": 8, "counted, refused": 6, "refused, counted": 6},
			map[string]bool{"1": true, "2": true},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, ends := memblob.New(), map[string]bool{}
			must.Get(s.Create(t.Context(), "n", []byte("0")))(t)
			got := orders.Explore(t, orders.World{
				Store: s, Now: time.Unix(0, 0), Processes: test.processes, Crashes: test.crashes, Lost: test.lost,
				Immutable: func(string) bool { return false },
				End: func(t *testing.T, s blob.Store, _ []string) {
					n := must.Get(s.Get(t.Context(), "n", 10))(t)
					a, _ := s.Get(t.Context(), "a", 10)
					ends[string(n.Data)+string(a.Data)] = true
				},
			})
			want := map[string]*big.Int{}
			for outcomes, orders := range test.want {
				want[outcomes] = big.NewInt(orders)
			}
			must.Hold(t, len(got) == len(want), "got %v, want %v", got, want)
			for outcomes, orders := range want {
				must.Hold(t, got[outcomes] != nil && got[outcomes].Cmp(orders) == 0, "%s: got %v orders, want %v", outcomes, got[outcomes], orders)
			}
			must.Equal(t, "contents at the end", test.ends, ends)
		})
	}
}
