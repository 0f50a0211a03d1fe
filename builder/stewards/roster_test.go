package stewards_test

import (
	"strings"
	"testing"
	"time"

	"gridcast/builder/almanac/almanactest"
	"gridcast/builder/season"
	"gridcast/builder/source/sourcetest"
	"gridcast/builder/stewards"
)

// qatar is the roster of the penultimate round of 2024, on its Saturday morning.
func qatar(t *testing.T) *stewards.Roster {
	t.Helper()
	saturday := time.Date(2024, 11, 30, 8, 0, 0, 0, time.UTC)
	return stewards.NewRoster(almanactest.New(t, saturday).Archive.AsOf(saturday), 2024, "qatar", nil)
}

func TestRosterReads(t *testing.T) {
	list, err := qatar(t).Read("VER nor\nlec, SAI # the podium\nLAW = red-bull, 31\n\nLIN = Arvid Lindblád, GBR, rb, 41\nRAI = Kimi Räikkönen, FIN, Kick Sauber, 7\n--\nHAM")
	if err != nil {
		t.Fatal(err)
	}
	var placed []string
	for _, s := range list.Placed {
		placed = append(placed, string(s.Driver))
	}
	if got, want := strings.Join(placed, " "), "max-verstappen lando-norris charles-leclerc carlos-sainz-jr liam-lawson arvid-lindblad kimi-raikkonen"; got != want {
		t.Errorf("placed are\n%s, want\n%s", got, want)
	}
	if len(list.Unplaced) != 1 || list.Unplaced[0].Driver != "lewis-hamilton" {
		t.Errorf("without a place are %+v, want Hamilton", list.Unplaced)
	}
	entries := list.Entries()
	find := func(driver season.DriverID) season.Entry {
		for _, e := range entries {
			if e.Driver == driver {
				return e
			}
		}
		t.Fatalf("%s is not in %+v", driver, entries)
		return season.Entry{}
	}
	if got, want := find("max-verstappen"), (season.Entry{Driver: "max-verstappen", Team: "red-bull", Engine: "honda-rbpt", Number: 1}); got != want {
		t.Errorf("Verstappen: got %+v, want the latest entry %+v", got, want)
	}
	if got, want := find("liam-lawson"), (season.Entry{Driver: "liam-lawson", Team: "red-bull", Engine: "honda-rbpt", Number: 31}); got != want {
		t.Errorf("Lawson: got %+v, want %+v", got, want)
	}
	if got, want := find("arvid-lindblad"), (season.Entry{Driver: "arvid-lindblad", Team: "rb", Engine: "honda-rbpt", Number: 41}); got != want {
		t.Errorf("Lindblad: got %+v, want %+v", got, want)
	}
	// A returning driver keeps the identifier; only the other one is new.
	if len(list.New) != 1 || list.New[0] != (season.Driver{
		ID: "arvid-lindblad", Name: "Arvid Lindblád", FirstName: "Arvid", LastName: "Lindblád", Abbreviation: "LIN", Country: "GBR",
	}) {
		t.Errorf("new are %+v", list.New)
	}
	if q := list.Qualifying(); q[1].Position != 2 || q[7].Position != 0 || q[7].Driver != "lewis-hamilton" {
		t.Errorf("qualifying is %+v", q)
	}
	if g := list.Grid(); len(g) != 8 || g[4].Team != "red-bull" || g[7].Position != 0 {
		t.Errorf("the grid is %+v", g)
	}
}

func TestRosterRefuses(t *testing.T) {
	sentences := make(map[string]string)
	for _, text := range []string{
		"VER\nVRE",
		"verstapen",
		"RSU",
		"XQJ",
		"VER NOR\nver",
		"VER = redbul",
		"VER = red-bull, 100",
		"LIN = Arvid Lindblad, GBR, rb",
		"LIN = Arvid Lindblad, UK, rb, 41",
		"L1N = Arvid Lindblad, GBR, rb, 4",
		"LIN = Lindblad, GBR, rb, 41",
		"VEX = Max Verstappen, NED, rb, 3",
		"# nobody",
	} {
		_, err := qatar(t).Read(text)
		if err == nil {
			t.Errorf("%q is read without an error", text)
			continue
		}
		sentences[text] = err.Error()
	}
	sourcetest.Sentences(t, "roster.golden", sentences)
}
