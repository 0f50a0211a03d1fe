package season

import (
	"slices"
	"time"
)

// registry lists things by the instant at which they became known.
type registry[K ~string, V any] []dated[K, V]

// dated is a thing, its key, and when it became known.
type dated[K ~string, V any] struct {
	at    time.Time
	key   K
	value V
}

func (r *registry[K, V]) fill(seen map[K]time.Time, things map[K]V) {
	for key, at := range seen {
		*r = append(*r, dated[K, V]{at, key, things[key]})
	}
	slices.SortFunc(*r, func(a, b dated[K, V]) int { return a.at.Compare(b.at) })
}

func (r registry[K, V]) asOf(t time.Time) map[K]V {
	n, _ := slices.BinarySearchFunc(r, t, func(d dated[K, V], t time.Time) int {
		if d.at.After(t) {
			return 1
		}
		return -1
	})
	known := make(map[K]V, n)
	for i := range r[:n] {
		known[r[i].key] = r[i].value
	}
	return known
}
