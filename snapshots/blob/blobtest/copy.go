package blobtest

import (
	"testing"

	"gridcast/snapshots/blob"
)

// Objects returns the content of a store by key.
func Objects(t testing.TB, s blob.Store) map[string][]byte {
	t.Helper()
	objects := map[string][]byte{}
	for info, err := range s.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		o, err := s.Get(t.Context(), info.Key, info.Size)
		if err != nil {
			t.Fatal(err)
		}
		objects[info.Key] = o.Data
	}
	return objects
}

// Fill creates objects in a store.
func Fill(t testing.TB, s blob.Store, objects map[string][]byte) {
	t.Helper()
	for key, data := range objects {
		if _, err := s.Create(t.Context(), key, data); err != nil {
			t.Fatal(err)
		}
	}
}

// Copy copies every object of a store into an empty one.
func Copy(t testing.TB, into, from blob.Store) {
	t.Helper()
	Fill(t, into, Objects(t, from))
}
