package blobtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/snapshots/blob"
)

func lists(t *testing.T, s blob.Store) {
	start := time.Now().Add(-time.Minute) // the store's clock may differ a little
	sorted := []string{"a-b/c", "a.json", "a/1.json", "a/10.json", "a/2.json", "a/b/c", "b/1", "c"}
	for i := range sorted { // written in another order
		key := sorted[(i*3)%len(sorted)]
		create(t, s, key, []byte(key))
	}
	for _, test := range []struct {
		prefix string
		want   []string
	}{
		{"", sorted},
		{"a", sorted[:6]},
		{"a/", sorted[2:6]},
		{"a/1", sorted[2:4]},
		{"a/b/c", sorted[5:6]},
		{"a/b/cd", nil},
		{"nothing/", nil},
	} {
		var got []string
		for info, err := range s.List(t.Context(), test.prefix) {
			if err != nil {
				t.Fatalf("list %q: %v", test.prefix, err)
			}
			got = append(got, info.Key)
			if info.Size != int64(len(info.Key)) {
				t.Errorf("list %q: size of %s is %d, want %d", test.prefix, info.Key, info.Size, len(info.Key))
			}
			if info.Modified.Before(start) || info.Modified.After(time.Now().Add(time.Minute)) {
				t.Errorf("list %q: %s modified at %v, want about now", test.prefix, info.Key, info.Modified)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("list %q (-want +got):\n%s", test.prefix, diff)
		}
	}
}

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
