package memblob_test

import (
	"fmt"
	"strings"
	"testing"

	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/blobtest"
	"gridcast/snapshots/blob/memblob"
)

func TestStore(t *testing.T) {
	blobtest.Run(t, func(*testing.T) blob.Store { return memblob.New() })
}

// complaints records the reports of a strict store.
type complaints []string

func (c *complaints) Helper() {}

func (c *complaints) Errorf(format string, args ...any) {
	*c = append(*c, fmt.Sprintf(format, args...))
}

func TestStrict(t *testing.T) {
	type step func(t *testing.T, s *memblob.Store)
	create := func(key string) step {
		return func(t *testing.T, s *memblob.Store) { _, _ = s.Create(t.Context(), key, []byte("x")) }
	}
	remove := func(key string) step {
		return func(t *testing.T, s *memblob.Store) { _ = s.Delete(t.Context(), key) }
	}
	get := func(key string) step {
		return func(t *testing.T, s *memblob.Store) { _, _ = s.Get(t.Context(), key, blob.MaxDocument) }
	}
	swap := func(key string) step {
		return func(t *testing.T, s *memblob.Store) {
			o := must.Get(s.Get(t.Context(), key, blob.MaxDocument))(t)
			_, _ = s.Swap(t.Context(), key, o.Tag, []byte("y"))
		}
	}
	for _, test := range []struct {
		name  string
		steps []step
		want  int // complaints
	}{
		{"refused create", []step{create("once/a"), create("once/a")}, 0},
		{"swap of a mutable key", []step{create("a"), swap("a")}, 0},
		{"swap of an immutable key", []step{create("once/a"), swap("once/a")}, 1},
		{"read after delete", []step{create("once/a"), remove("once/a"), get("once/a")}, 1},
		{"create after delete", []step{create("once/a"), remove("once/a"), create("once/a")}, 1},
		{"mutable key after delete", []step{create("a"), remove("a"), get("a"), create("a")}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got complaints
			s := memblob.New(memblob.Strict(&got, func(key string) bool { return strings.HasPrefix(key, "once/") }))
			for _, step := range test.steps {
				step(t, s)
			}
			must.Hold(t, len(got) == test.want, "got complaints %q, want %d", got, test.want)
		})
	}
}
