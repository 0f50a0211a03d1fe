package blobtest

import (
	"errors"
	"fmt"
	"testing"

	"gridcast/snapshots/blob"
)

func create(t *testing.T, s blob.Store, key string, data []byte) blob.Tag {
	t.Helper()
	tag, err := s.Create(t.Context(), key, data)
	if err != nil {
		t.Fatalf("create %s: %v", key, err)
	}
	return tag
}

func get(t *testing.T, s blob.Store, key string) blob.Object {
	t.Helper()
	o, err := s.Get(t.Context(), key, blob.MaxDocument)
	if err != nil {
		t.Fatalf("get %s: %v", key, err)
	}
	return o
}

func wantData(t *testing.T, s blob.Store, key, want string) {
	t.Helper()
	if got := string(get(t, s, key).Data); got != want {
		t.Errorf("%s holds %q, want %q", key, got, want)
	}
}

func wantError(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got error %v, want %v", what, got, want)
	}
}

// large returns n bytes that do not repeat within a block of any usual size.
func large(n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i * i >> 7)
	}
	return data
}

// short keeps a failure readable when large objects differ.
func short(data []byte) string {
	if len(data) > 64 {
		return fmt.Sprintf("%d bytes %x…", len(data), data[:64])
	}
	return fmt.Sprintf("%q", data)
}
