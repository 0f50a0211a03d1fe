package keys

import (
	"cmp"
	"slices"
	"sync/atomic"
)

// Usage counts what one key asked of this edge since it was started, across tables. It is
// safe for concurrent use.
type Usage struct {
	requests atomic.Uint64
	refused  atomic.Uint64
}

// Count counts a request, which the limit allowed or refused.
func (u *Usage) Count(allowed bool) {
	u.requests.Add(1)
	if !allowed {
		u.refused.Add(1)
	}
}

// KeyUsage is the usage of a key as an edge reports it.
type KeyUsage struct {
	ID       string `json:"id"`
	Requests uint64 `json:"requests"` // refused ones included
	Refused  uint64 `json:"refused"`  // for the limit: 429
}

// Usage lists the keys of the table that were used, by id. Revoked keys are not
// there.
func (t *Table) Usage() []KeyUsage {
	used := []KeyUsage{}
	for _, r := range t.read {
		e := r.entry
		if e.end == always {
			continue
		}
		if n := e.Usage.requests.Load(); n > 0 {
			used = append(used, KeyUsage{ID: e.id(), Requests: n, Refused: e.Usage.refused.Load()})
		}
	}
	slices.SortFunc(used, func(a, b KeyUsage) int { return cmp.Compare(a.ID, b.ID) })
	return used
}
