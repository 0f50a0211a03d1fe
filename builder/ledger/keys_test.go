package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/ledger"
	"gridcast/builder/season"
)

func calendar(year int, names ...season.GrandPrixID) season.Season {
	s := season.Season{Year: year}
	for i, name := range names {
		s.Rounds = append(s.Rounds, season.Round{Number: i + 1, GrandPrix: name})
	}
	return s
}

func TestAssignKeys(t *testing.T) {
	l, err := ledger.Open(t.Context(), newStore(t), ledger.Real, opened, "builder", "")
	if err != nil {
		t.Fatal(err)
	}
	// Each calendar is seen after the ones before it.
	for _, c := range []struct {
		name    string
		seasons []season.Season
		want    []ledger.KeyAssignment
	}{
		{"two new seasons", []season.Season{calendar(2025, "australia"), calendar(2026, "australia", "china", "japan")}, []ledger.KeyAssignment{
			{Session: 2025001, Year: 2025, GrandPrix: "australia"},
			{Session: 2026001, Year: 2026, GrandPrix: "australia"},
			{Session: 2026002, Year: 2026, GrandPrix: "china"},
			{Session: 2026003, Year: 2026, GrandPrix: "japan"},
		}},
		{"nothing new", []season.Season{calendar(2026, "australia", "china", "japan")}, nil},
		{"renumbered", []season.Season{calendar(2026, "japan", "australia", "china")}, nil},
		{"one vanished", []season.Season{calendar(2026, "australia", "japan")}, nil},
		{"a new one in the place of another", []season.Season{calendar(2026, "australia", "bahrain", "japan")}, []ledger.KeyAssignment{
			{Session: 2026004, Year: 2026, GrandPrix: "bahrain"},
		}},
		{"one whose number is free goes first", []season.Season{calendar(2026, "portugal", "china", "japan", "bahrain", "spain")}, []ledger.KeyAssignment{
			{Session: 2026006, Year: 2026, GrandPrix: "portugal"},
			{Session: 2026005, Year: 2026, GrandPrix: "spain"},
		}},
	} {
		got, err := ledger.AssignKeys(l.Fold(), c.seasons)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", c.name, diff)
		}
		if len(got) > 0 {
			mustAppend(t, l, opened, ledger.Event{Type: ledger.KeysAssigned, Keys: got})
		}
	}
}

func TestAssignKeysRunsOut(t *testing.T) {
	l := openWith(t, newStore(t))
	far := season.Season{Year: 2026, Rounds: []season.Round{{Number: 1000, GrandPrix: "mars"}}}
	if got, err := ledger.AssignKeys(l.Fold(), []season.Season{far}); err == nil {
		t.Errorf("round 1000: got %v, want an error", got)
	}
}
