// Package assembletest compares facts in tests as package assemble does.
package assembletest

import (
	"fmt"
	"testing"
	"time"

	"gridcast/builder/assemble"
	"gridcast/builder/season"
)

// Disputed returns what a source of the seasons from one to another contradicts of facts that are
// known, a line for each driver. Nothing may be taken of one that is there to be compared with.
func Disputed(t testing.TB, known, said season.Facts, from, to int, now time.Time) []string {
	t.Helper()
	out, err := assemble.Assemble(assemble.Input{
		Current: known, Now: now,
		Documents: []assemble.Document{{Source: "compared", From: from, To: to, Facts: said, Kind: assemble.CheckOnly}},
		Decided:   func(int, season.GrandPrixID) assemble.Decided { return assemble.Decided{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Applied)+len(out.Held) > 0 {
		t.Errorf("of a document to compare with, %d changes were taken and %d wait", len(out.Applied), len(out.Held))
	}
	var lines []string
	for _, c := range out.Disputed {
		for _, l := range c.Lines {
			lines = append(lines, fmt.Sprintf("%d %s, %s: %s: ours %q, theirs %q", c.Year, c.GrandPrix, c.Block, l.About, l.Was, l.Is))
		}
	}
	return lines
}
