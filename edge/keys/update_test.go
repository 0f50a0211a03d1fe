package keys_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"gridcast/edge/keys"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

func add(name string) func(*keys.Document) error {
	return func(d *keys.Document) error {
		_, _, err := d.Create(keys.Request{Name: name, Tier: "pro"}, now)
		return err
	}
}

func names(t testing.TB, store blob.Store) map[string]int {
	t.Helper()
	d, _, err := keys.Load(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, r := range d.Keys {
		count[r.Name]++
	}
	return count
}

// TestUpdateOfManyWriters shows that none overwrites another.
func TestUpdateOfManyWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memblob.New()
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				if err := keys.Update(t.Context(), store, add(strconv.Itoa(i))); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := names(t, store); len(got) != 20 {
			t.Errorf("got the keys %v, want one of each of 20 writers", got)
		}
	})
}

// TestUpdateWhenTheStoreFails has a row for each way a write can end.
func TestUpdateWhenTheStoreFails(t *testing.T) {
	refused := errors.New("access denied")
	for _, tt := range []struct {
		name    string
		fate    faultblob.Fate // of the first swap
		err     error
		present int
	}{
		{"refused", faultblob.Fate{Err: refused}, refused, 0},
		{"somebody else was faster", faultblob.Fate{Err: blob.ErrConflict}, nil, 1},
		{"done, but the answer was lost", faultblob.Fate{Err: blob.ErrUnknown, Applied: true}, nil, 1},
		{"not done, and the answer was lost", faultblob.Fate{Err: blob.ErrUnknown}, nil, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := memblob.New()
				swaps := 0
				store := faultblob.Wrap(inner, func(_ context.Context, c faultblob.Call) faultblob.Fate {
					if c.Op == faultblob.Swap {
						if swaps++; swaps == 1 {
							return tt.fate
						}
					}
					return faultblob.Fate{}
				})
				if err := keys.Update(t.Context(), store, add("n")); !errors.Is(err, tt.err) {
					t.Errorf("got %v, want %v", err, tt.err)
				}
				if got := names(t, inner)["n"]; got != tt.present {
					t.Errorf("got %d keys, want %d", got, tt.present)
				}
			})
		})
	}
}

func TestUpdateStops(t *testing.T) {
	store := memblob.New()
	mine := errors.New("changed my mind")
	if err := keys.Update(t.Context(), store, func(*keys.Document) error { return mine }); !errors.Is(err, mine) {
		t.Errorf("got %v, want the error of the change", err)
	}
	if _, err := store.Create(t.Context(), keys.Object, []byte("nonsense")); err != nil {
		t.Fatal(err)
	}
	if err := keys.Update(t.Context(), store, add("n")); err == nil {
		t.Error("a damaged document was overwritten")
	}
}
