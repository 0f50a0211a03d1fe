package blobtest

import (
	"fmt"
	"testing"

	"gridcast/snapshots/blob"
)

func listStops(t *testing.T, s blob.Store) {
	for i := range 5 {
		create(t, s, fmt.Sprintf("folder%d/a", i), []byte("x"))
	}
	seen := 0
	for _, err := range s.List(t.Context(), "") {
		if err != nil {
			t.Fatalf("list: %v", err)
		}
		seen++
		if seen == 2 {
			break
		}
	}
	if seen != 2 {
		t.Errorf("saw %d objects, want 2", seen)
	}
	for _, err := range s.List(t.Context(), "not allowed") {
		if err == nil {
			t.Error("list of a prefix with a space: no error")
		}
	}
}
