package view_test

import (
	"testing"

	"gridcast/builder/almanac"
	"gridcast/deploy/view"
)

// TestMissing sums up the facts of a kind. The fact of the whole archive that says the same is left out.
func TestMissing(t *testing.T) {
	result := func(key int64, name string) almanac.MissingFact {
		return almanac.MissingFact{Code: almanac.ResultMissed, Session: key, Name: name, Text: "the result of the " + name + " has not come", Fix: "gridcast results enter " + "2026012"}
	}
	hour := almanac.MissingFact{Code: almanac.HourUnknown, Session: 2026020, Name: "Mexican Grand Prix", Text: "no source names the hour"}
	facts := []almanac.MissingFact{
		{Code: almanac.ArchiveOld, Sums: almanac.ResultMissed, Text: "the archive lacks the results of 2 races"},
		result(2026012, "Dutch Grand Prix"), hour, result(2026022, "Las Vegas Grand Prix"),
	}
	got := view.Missing(facts, true)
	if len(got) != 2 || got[0].Text != "2 results of 2026 are missing, Dutch Grand Prix to Las Vegas Grand Prix; the source has not answered yet" || got[0].Fix != "gridcast results enter KEY" {
		t.Errorf("got %+v, want one fact for both results", got)
	}
	if got := view.Missing(facts[2:3], false); len(got) != 1 || got[0] != hour {
		t.Errorf("got %+v, want the one fact as it is", got)
	}
}
