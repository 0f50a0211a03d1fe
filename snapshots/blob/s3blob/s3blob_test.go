package s3blob_test

import (
	"fmt"
	"testing"

	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/blobtest"
	"gridcast/snapshots/blob/s3test"
)

func TestStore(t *testing.T) {
	for name, start := range map[string]func(testing.TB) *s3test.Server{
		"versitygw": func(t testing.TB) *s3test.Server { return s3test.Versity(t) },
		"minio":     s3test.MinIO,
	} {
		t.Run(name, func(t *testing.T) {
			server := start(t)
			blobtest.Run(t, func(t *testing.T) blob.Store { return s3test.Store(t, server.Config(t)) })
			t.Run("conditions", func(t *testing.T) {
				if err := s3test.Store(t, server.Config(t)).CheckConditions(t.Context()); err != nil {
					t.Error(err)
				}
			})
			t.Run("pages of a listing", func(t *testing.T) { pages(t, s3test.Store(t, server.Config(t))) })
		})
	}
}

// pages lists more objects than one answer holds.
func pages(t *testing.T, s blob.Store) {
	const objects = 1003
	for i := range objects {
		must.Get(s.Create(t.Context(), fmt.Sprintf("ledger/%04d.json", i), nil))(t)
	}
	seen := 0
	for info, err := range s.List(t.Context(), "ledger/") {
		must.Do(t, err)
		if want := fmt.Sprintf("ledger/%04d.json", seen); info.Key != want {
			t.Fatalf("object %d is %s, want %s", seen, info.Key, want)
		}
		seen++
	}
	must.Hold(t, seen == objects, "listed %d objects, want %d", seen, objects)
}
