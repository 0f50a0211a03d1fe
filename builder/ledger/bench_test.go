package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/snapshots/blob/memblob"
)

// BenchmarkAppend appends to a ledger that knows 75 seasons, as a replay does.
func BenchmarkAppend(b *testing.B) {
	var seasons []season.Season
	for year := 1950; year < 2025; year++ {
		names := make([]season.GrandPrixID, 15)
		for i := range names {
			names[i] = season.GrandPrixID(fmt.Sprint("gp-", i))
		}
		seasons = append(seasons, calendar(year, names...))
	}
	l, err := ledger.Open(b.Context(), memblob.New(), ledger.Simulated, opened, "replay", "")
	if err != nil {
		b.Fatal(err)
	}
	keys, err := ledger.AssignKeys(l.Fold(), seasons)
	if err != nil {
		b.Fatal(err)
	}
	if err := appendEvents(b.Context(), l, opened, keysEvent(keys...)); err != nil {
		b.Fatal(err)
	}
	at, next := opened, 0
	for b.Loop() {
		at, next = at.Add(time.Hour), (next+1)%len(keys)
		s, _ := l.Fold().Record(keys[next].Session)
		events := s.Cancel("no race")
		if s.Override.Status == ledger.Cancelled {
			events = one(s.Reinstate(time.Time{}, "a race"))
		}
		if err := appendEvents(b.Context(), l, at, events...); err != nil {
			b.Fatal(err)
		}
	}
}
