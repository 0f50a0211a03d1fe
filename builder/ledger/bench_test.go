package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/deploy/must"
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
	l := must.Get(ledger.Open(b.Context(), memblob.New(), ledger.Simulated, opened, "replay", ""))(b)
	keys := must.Get(ledger.AssignKeys(l.Fold(), seasons))(b)
	must.Do(b, appendEvents(b.Context(), l, opened, keysEvent(keys...)))
	at, next := opened, 0
	for b.Loop() {
		at, next = at.Add(time.Hour), (next+1)%len(keys)
		s, _ := l.Fold().Record(keys[next].Session)
		events := s.Cancel("no race")
		if s.Override.Status == ledger.Cancelled {
			events = one(s.Reinstate(time.Time{}, "a race"))
		}
		must.Do(b, appendEvents(b.Context(), l, at, events...))
	}
}
