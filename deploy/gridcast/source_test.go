package main

import (
	"testing"
	"time"

	"gridcast/deploy/must"
)

// TestStartSays checks that a start of a source that differs from the one in use shows by how much.
func TestStartSays(t *testing.T) {
	inUse := time.Date(2026, 5, 3, 20, 0, 0, 0, time.UTC)
	for said, want := range map[time.Time]string{
		{}:                           "",
		inUse:                        "2026-05-03 20:00 UTC",
		inUse.Add(235 * time.Second): "2026-05-03 20:03 UTC",
		inUse.Add(-3 * time.Hour):    "2026-05-03 17:00 UTC, 3h0m0s early",
		inUse.Add(24 * time.Hour):    "2026-05-04 20:00 UTC, 24h0m0s late",
	} {
		c := checkedSource{NextStart: inUse, SaysStart: said}
		must.Equal(t, "the start of the table", want, c.startCell())
	}
}
