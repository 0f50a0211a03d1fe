// Package assembletest compares facts in tests as package assemble does.
package assembletest

import (
	"fmt"
	"testing"
	"time"

	"gridcast/builder/assemble"
	"gridcast/builder/season"
)

// Disputed compares theirs as a check-only document with ours and returns the contradictions, one line
// for each driver. It fails the test if the document changes anything.
func Disputed(t testing.TB, ours, theirs season.Facts, from, to int, now time.Time) []string {
	t.Helper()
	out, err := assemble.Assemble(assemble.Input{
		Current: ours, Now: now,
		Documents: []assemble.Document{{Source: "compared", From: from, To: to, Facts: theirs, Kind: assemble.CheckOnly}},
		Decided:   func(int, season.GrandPrixID) assemble.Decided { return assemble.Decided{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Applied)+len(out.Held) > 0 {
		t.Errorf("a check-only document has %d applied and %d held proposals, want none", len(out.Applied), len(out.Held))
	}
	var lines []string
	for _, c := range out.Disputed {
		for _, l := range c.Lines {
			lines = append(lines, fmt.Sprintf("%d %s, %s: %s: ours %q, theirs %q", c.Year, c.GrandPrix, c.Block, l.About, l.Was, l.Is))
		}
	}
	return lines
}
