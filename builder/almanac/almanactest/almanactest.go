// Package almanactest gives tests real rounds for decisions: the embedded seasons beside a ledger of
// their own.
package almanactest

import (
	"testing"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/snapshots/blob/memblob"
)

// Belgium is the session key of an eventful race of 2024: Russell won on the road and was
// disqualified.
const Belgium = 2024014

var (
	BelgiumStart = time.Date(2024, 7, 28, 13, 0, 0, 0, time.UTC)
	BelgiumOver  = BelgiumStart.Add(3 * time.Hour)
	Opened       = time.Date(2024, 7, 1, 0, 0, 0, 0, time.UTC) // an instant to open a ledger at
)

// History holds the embedded seasons with a ledger opened at an instant. Like its test
// it is for one goroutine.
type History struct {
	Archive *season.Archive
	Ledger  *ledger.Ledger
	t       testing.TB
}

// New opens a ledger in memory, with a key for every round.
func New(t testing.TB, opened time.Time) *History {
	t.Helper()
	a := archivetest.Embedded(t)
	l, err := ledger.Open(t.Context(), memblob.New(), ledger.Simulated, opened, "test", "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Fresh(t, l).Append(t.Context(), opened, "test", func(s *ledger.Fold) ([]ledger.Event, error) {
		keys, err := ledger.AssignKeys(s, a.Facts().Seasons)
		return []ledger.Event{{Type: ledger.KeysAssigned, Keys: keys}}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return &History{a, l, t}
}

// Fresh refreshes the ledger.
func Fresh(t testing.TB, l *ledger.Ledger) ledger.Fresh {
	t.Helper()
	fresh, err := l.Refresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return fresh
}

// Almanac returns the almanac of facts and ledger at an instant.
func (h *History) Almanac(at time.Time) *almanac.Almanac {
	return almanac.Join(h.Archive.AsOf(at), h.Ledger.AsOf(at))
}

// Round is a round at an instant; the test ends if there is none.
func (h *History) Round(at time.Time, session int64) *almanac.Round {
	h.t.Helper()
	r, err := h.Almanac(at).Round(session)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// Try decides on a round at an instant, as operator:test.
func (h *History) Try(at time.Time, session int64, decide func(*almanac.Round) ([]ledger.Event, error)) error {
	_, err := almanac.Decide(h.t.Context(), Fresh(h.t, h.Ledger), h.Archive.AsOf(at), "operator:test", session, nil, decide)
	return err
}

// Decide is Try; the test ends if it is refused.
func (h *History) Decide(at time.Time, session int64, decide func(*almanac.Round) ([]ledger.Event, error)) {
	h.t.Helper()
	if err := h.Try(at, session, decide); err != nil {
		h.t.Fatalf("decide on %d at %s: %v", session, at, err)
	}
}
