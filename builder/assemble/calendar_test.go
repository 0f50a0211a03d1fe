package assemble_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/archive/archivetest"
	"gridcast/builder/assemble"
	"gridcast/builder/season"
)

// TestCalendarsThatDiffer: a round of only one of two calendars is disputed, and stays in the calendar.
func TestCalendarsThatDiffer(t *testing.T) {
	all := archivetest.Embedded(t)
	facts := all.Facts()
	facts.Seasons = slices.DeleteFunc(slices.Clone(facts.Seasons), func(s season.Season) bool { return s.Year != 2024 })
	without := func(gone ...season.GrandPrixID) season.Facts {
		some := facts
		some.Seasons = slices.Clone(facts.Seasons)
		some.Seasons[0].Rounds = slices.DeleteFunc(slices.Clone(some.Seasons[0].Rounds), func(r season.Round) bool { return slices.Contains(gone, r.GrandPrix) })
		return some
	}
	type line struct {
		GrandPrix season.GrandPrixID
		assemble.Line
	}
	oursAlone := line{"monaco", assemble.Line{About: "round", Was: "on 2024-05-26 in our calendar", Is: "not in the calendar of herald"}}
	theirsAlone := line{"qatar", assemble.Line{About: "round", Was: "not in our calendar", Is: "on 2024-12-01 in the calendar of herald"}}
	for _, test := range []struct {
		name         string
		ours, theirs season.Facts
		kind         assemble.Kind
		cancelled    season.GrandPrixID
		rounds       int
		want         []line
	}{
		{"the same calendar", without(), without(), assemble.CheckOnly, "", 24, nil},
		{"each has a round more", without("qatar"), without("monaco"), assemble.CheckOnly, "", 23, []line{oursAlone, theirsAlone}},
		{"the terms are accepted, so that its round is applied", without("qatar"), without("monaco"), assemble.Sparse, "", 24, []line{oursAlone}},
		{"the round is cancelled", without(), without("monaco"), assemble.CheckOnly, "monaco", 24, nil},
		{"theirs covers a part of the season", without(), without("monaco", "qatar", "japan", "china", "canada"), assemble.CheckOnly, "", 24, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, err := assemble.Assemble(assemble.Input{
				Current: test.ours, Now: time.Date(2024, 1, 10, 0, 0, 0, 0, time.UTC),
				Documents: []assemble.Document{{Source: "herald", From: 2024, To: 2024, Facts: test.theirs, Kind: test.kind}},
				Decided: func(_ int, gp season.GrandPrixID) assemble.Decided {
					return assemble.Decided{Postponed: gp == test.cancelled}
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			var got []line
			for _, c := range out.Disputed {
				if c.Block != assemble.Calendar || c.ID == "" || len(c.Lines) != 1 {
					t.Errorf("disputed: got %+v, want one line about the calendar", c)
					continue
				}
				got = append(got, line{c.GrandPrix, c.Lines[0]})
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("disputed (-want +got):\n%s", diff)
			}
			if n := len(out.Facts.Seasons[0].Rounds); n != test.rounds {
				t.Errorf("the season has %d rounds, want %d", n, test.rounds)
			}
		})
	}
}
