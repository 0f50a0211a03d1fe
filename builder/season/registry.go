package season

import (
	"slices"
	"sync/atomic"
	"time"
)

// registry lists things by the instant at which they became known.
type registry[K ~string, V any] struct {
	things []dated[K, V]

	// last is the map of the most recent view. Successive views mostly have the same things and share
	// it, which is safe because callers do not write to the maps of a view.
	last atomic.Pointer[map[K]V]
}

// dated is a thing, its key, and when it became known.
type dated[K ~string, V any] struct {
	at    time.Time
	key   K
	value V
}

func (r *registry[K, V]) fill(seen map[K]time.Time, things map[K]V) {
	for key, at := range seen {
		r.things = append(r.things, dated[K, V]{at, key, things[key]})
	}
	slices.SortFunc(r.things, func(a, b dated[K, V]) int { return a.at.Compare(b.at) })
}

func (r *registry[K, V]) asOf(t time.Time) map[K]V {
	n, _ := slices.BinarySearchFunc(r.things, t, func(d dated[K, V], t time.Time) int {
		if d.at.After(t) {
			return 1
		}
		return -1
	})
	// A known thing stays known, and the order is fixed: the same number means the same things.
	if last := r.last.Load(); last != nil && len(*last) == n {
		return *last
	}
	known := make(map[K]V, n)
	for i := range r.things[:n] {
		known[r.things[i].key] = r.things[i].value
	}
	r.last.Store(&known)
	return known
}
