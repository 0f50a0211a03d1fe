package keys_test

import (
	"errors"
	"testing"

	"gridcast/edge/keys"
	"gridcast/snapshots/blob/memblob"
)

func add(name string) func(*keys.List) error {
	return func(d *keys.List) error {
		_, _, err := d.Create(keys.Request{Name: name, Tier: "pro"}, now)
		return err
	}
}

func TestUpdateStops(t *testing.T) {
	store := memblob.New()
	mine := errors.New("changed my mind")
	if err := keys.Update(t.Context(), store, func(*keys.List) error { return mine }); !errors.Is(err, mine) {
		t.Errorf("got %v, want the error of the change", err)
	}
	if _, err := store.Create(t.Context(), keys.Object, []byte("nonsense")); err != nil {
		t.Fatal(err)
	}
	if err := keys.Update(t.Context(), store, add("n")); err == nil {
		t.Error("a damaged document was overwritten")
	}
}
