package assemble_test

import (
	"slices"
	"testing"
	"time"

	"gridcast/builder/archive/archivetest"
	"gridcast/builder/assemble"
	"gridcast/builder/season"
)

// TestLostSessions: a session that a source no longer has before the race is cancelled, and one that it has again is held. A
// source without sessions says nothing, and nothing is cancelled after the race.
func TestLostSessions(t *testing.T) {
	all := archivetest.Embedded(t)
	world := func(change func(*season.Round)) season.Facts {
		facts := all.Facts()
		facts.Seasons = slices.DeleteFunc(slices.Clone(facts.Seasons), func(s season.Season) bool { return s.Year != 2024 })
		rounds := slices.Clone(facts.Seasons[0].Rounds)
		facts.Seasons[0].Rounds = rounds
		for i := range rounds {
			rounds[i] = archivetest.Scheduled(&rounds[i])
			if rounds[i].GrandPrix == "china" {
				change(&rounds[i])
			}
		}
		return facts
	}
	drop := func(kinds ...season.SessionKind) func(*season.Round) {
		return func(r *season.Round) {
			r.Sprint = !slices.Contains(kinds, season.Sprint)
			r.Sessions = slices.DeleteFunc(slices.Clone(r.Sessions), func(s season.Session) bool { return slices.Contains(kinds, s.Kind) })
		}
	}
	before := time.Date(2024, 4, 19, 0, 0, 0, 0, time.UTC)
	facts := world(func(*season.Round) {})
	for _, step := range []struct {
		what      string
		now       time.Time
		theirs    func(*season.Round)
		sprint    bool
		cancelled []season.SessionKind
	}{
		{"the same", before, drop(), true, nil},
		{"no sprint", before, drop(season.Sprint, season.SprintQualifying), false, []season.SessionKind{season.Sprint, season.SprintQualifying}},
		{"still none", before, drop(season.Sprint, season.SprintQualifying), false, []season.SessionKind{season.Sprint, season.SprintQualifying}},
		{"the sprint is back", before, drop(season.SprintQualifying), true, nil},
		{"whole again", before, drop(), true, nil},
		{"no sessions", before, func(r *season.Round) { r.Sessions = nil }, true, nil},
		{"no practice", before, drop(season.Practice1), true, []season.SessionKind{season.Practice1}},
		{"after the race", before.AddDate(0, 0, 9), drop(season.Practice1, season.Qualifying), true, []season.SessionKind{season.Practice1}},
	} {
		for range 2 { // the second time nothing changes
			out, err := assemble.Assemble(assemble.Input{
				Current: facts, Now: step.now, Decided: undecided,
				Documents: []assemble.Document{{Source: "f1db", From: 2024, To: 2024, Facts: world(step.theirs), Kind: assemble.Full}},
			})
			if err != nil {
				t.Fatal(err)
			}
			facts = out.Facts
		}
		r := roundOf(t, facts, 2024, "china")
		for _, s := range []season.SessionKind{season.Practice1, season.Sprint, season.SprintQualifying, season.Qualifying} {
			if got, want := r.Cancelled(s), slices.Contains(step.cancelled, s); got != want {
				t.Errorf("%s: %s is cancelled: %t, want %t", step.what, s, got, want)
			}
		}
		if r.HasSprint() != step.sprint {
			t.Errorf("%s: a sprint: %t, want %t", step.what, r.HasSprint(), step.sprint)
		}
	}
}
