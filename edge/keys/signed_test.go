package keys_test

import (
	"path/filepath"
	"testing"

	"gridcast/deploy/must"
	"gridcast/edge/keys"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/notes"
)

func signingKey(t *testing.T) *notes.Signers {
	t.Helper()
	file := filepath.Join(t.TempDir(), "keys.key")
	must.Do(t, notes.MakeKey(file, "gridcast/test/keys"))
	return must.Get(notes.ReadSigners(file))(t)
}

// signed is an edit that the keys of s sign.
func signed(s *notes.Signers, edit func(*keys.List) error) func(*keys.List) error {
	return func(list *keys.List) error {
		if err := list.Sign(s, false); err != nil {
			return err
		}
		return edit(list)
	}
}

func read(t *testing.T, store blob.Store) []byte {
	t.Helper()
	o := must.Get(store.Get(t.Context(), keys.Object, keys.MaxSize))(t)
	return o.Data
}

// write replaces the stored list as any writer of the bucket can.
func write(t *testing.T, store blob.Store, data []byte) {
	t.Helper()
	must.Get(blob.Put(t.Context(), store, keys.Object, keys.MaxSize, data))(t)
}
