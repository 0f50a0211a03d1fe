package stewards_test

import (
	"sync"
	"testing"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/snapshots/blob/memblob"
)

var embedded = sync.OnceValues(archive.Embedded)

// world is the embedded seasons with a ledger opened at an instant.
type world struct {
	t       *testing.T
	archive *season.Archive
	ledger  *ledger.Ledger
}

func newWorld(t *testing.T, opened time.Time) *world {
	t.Helper()
	a, err := embedded()
	if err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Open(t.Context(), memblob.New(), ledger.Simulated, opened, "test", "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Append(t.Context(), opened, "test", func(s *ledger.State) ([]ledger.Event, error) {
		keys, err := ledger.AssignKeys(s, a.Facts().Seasons)
		return []ledger.Event{{Type: ledger.KeysAssigned, Keys: keys}}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return &world{t, a, l}
}

func (w *world) almanac(at time.Time) *almanac.Almanac {
	return almanac.Join(w.archive.AsOf(at), w.ledger.AsOf(at))
}

func (w *world) round(at time.Time, session int64) *almanac.Round {
	w.t.Helper()
	r, err := w.almanac(at).Round(session)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) try(at time.Time, session int64, decide func(*almanac.Round) ([]ledger.Event, error)) error {
	_, err := almanac.Decide(w.t.Context(), w.ledger, w.archive.AsOf(at), "operator:test", session, nil, decide)
	return err
}

func (w *world) decide(at time.Time, session int64, decide func(*almanac.Round) ([]ledger.Event, error)) {
	w.t.Helper()
	if err := w.try(at, session, decide); err != nil {
		w.t.Fatalf("decide on %d at %s: %v", session, at, err)
	}
}

// Belgium 2024: Russell won on the road and was disqualified.
const belgium = 2024014

var (
	belgiumStart = time.Date(2024, 7, 28, 13, 0, 0, 0, time.UTC)
	belgiumOver  = belgiumStart.Add(3 * time.Hour)
	opened       = time.Date(2024, 7, 1, 0, 0, 0, 0, time.UTC)
)
