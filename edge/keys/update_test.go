package keys_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gridcast/deploy/must"
	"gridcast/edge/keys"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/notes"
)

func add(name string) func(*keys.List) error {
	return func(d *keys.List) error {
		_, _, err := d.Create(keys.Request{Name: name, Tier: "pro"}, now)
		return err
	}
}

var errRefused = errors.New("refused")

// TestFullListRevokes: a list without room for another key can revoke, and has room again after a prune.
func TestFullListRevokes(t *testing.T) {
	room := keys.MaxSize - keys.Full
	must.Hold(t, room >= 1<<20, "%d bytes are left to revoke, want a MiB", room)
	store := memblob.New()
	update := func(edit func(*keys.List) error) error { return keys.UpdateBelow(t.Context(), store, 20_000, edit) }
	var err error
	for err == nil {
		err = update(add("client"))
	}
	must.Hold(t, errors.Is(err, keys.ErrFull), "another key: got %v, want ErrFull", err)
	if err := update(func(d *keys.List) error {
		_, _, err := d.Rotate(d.Keys[0].ID, time.Hour, now)
		return err
	}); !errors.Is(err, keys.ErrFull) {
		t.Errorf("rotate: got %v, want ErrFull", err)
	}
	if err := update(func(d *keys.List) error {
		for _, k := range d.Keys[:20] {
			if _, err := d.Revoke(k.ID, now.Add(-time.Hour)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Errorf("revoke: %v", err)
	}
	down := faultblob.Wrap(store, func(context.Context, faultblob.Call) faultblob.Fate { return faultblob.Fate{Err: errRefused} })
	must.Fail(t, "restore into a store that does not answer", keys.Restore(t.Context(), down, keys.List{}, 0, nil), errRefused)
	must.Succeed(t, "prune", update(func(d *keys.List) error { d.Prune(now); return nil }))
	must.Succeed(t, "another key after the prune", update(add("client")))
	must.Fail(t, "an invalid key", update(func(d *keys.List) error { d.Keys[0].Tier = ""; return nil }))
	longest, _ := document(1)
	rest := keys.MaxSize - len(must.Get(longest.Encode())(t))
	longest.Keys[0].Name += strings.Repeat("a", rest)
	must.Get(longest.Encode())(t)
	longest.Keys[0].Name += "a"
	must.Fail(t, "a list that no edge would read", must.Err(longest.Encode()))
}

// TestRestore: the serial number rises above every possible one. A stranger may write any other.
func TestRestore(t *testing.T) {
	signers := signingKey(t)
	synctest.Test(t, func(t *testing.T) {
		most := time.Now().Unix() + keys.MaxChanges
		for _, test := range []struct {
			backup, stored, above, want int64
			signers                     *notes.Signers
		}{
			{5, 7, 3, 8, nil}, {5, 3, 9, 10, nil}, {9, 3, 5, 10, nil}, {5, 3, most, most + 1, nil}, {5, most + 1, 3, 6, nil}, {5, 7, 3, most - keys.MaxChanges, signers}, {5, 3, most, most + 1, signers},
		} {
			store := memblob.New()
			list := keys.List{Serial: test.stored}
			write(t, store, bytes.TrimSuffix(must.Get(list.Encode())(t), []byte("\n"))) // damaged
			must.Do(t, keys.Restore(t.Context(), store, keys.List{Serial: test.backup}, test.above, test.signers))
			list, _ = must.Get2(keys.Load(t.Context(), store))(t)
			must.Hold(t, list.Serial == test.want && (list.Signature != nil) == (test.signers != nil), "%+v: got %d, signed by %v", test, list.Serial, list.Signature)
		}
	})
}

func TestPrune(t *testing.T) {
	hour := func(n int) time.Time { return now.Add(time.Duration(n) * time.Hour) }
	d := keys.List{Keys: []keys.StoredKey{
		{ID: "valid"},
		{ID: "expires later", Expires: hour(2)},
		{ID: "expired", Expires: hour(-2)},
		{ID: "revoked", Revoked: hour(-2)},
		{ID: "just revoked", Revoked: now, Expires: hour(2)},
		{ID: "just revoked, and expired before", Revoked: now, Expires: hour(-2)},
		{ID: "revoked, would expire later", Revoked: hour(-2), Expires: hour(2)},
	}}
	var removed, left []string
	for _, k := range d.Prune(hour(-1)) {
		removed = append(removed, k.ID)
	}
	for _, k := range d.Keys {
		left = append(left, k.ID)
	}
	want := []string{"expired", "revoked", "just revoked, and expired before", "revoked, would expire later"}
	must.Hold(t, slices.Equal(removed, want), "removed %q, want %q", removed, want)
	want = []string{"valid", "expires later", "just revoked"}
	must.Hold(t, slices.Equal(left, want), "left %q, want %q", left, want)
}
