package stewards_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gridcast/builder/archive/archivetest"
	"gridcast/builder/season"
	"gridcast/builder/stewards"
	"gridcast/deploy/golden"
)

// qatar is the roster of the penultimate round of 2024, on its Saturday morning.
func qatar(t *testing.T) *stewards.Roster {
	t.Helper()
	saturday := time.Date(2024, 11, 30, 8, 0, 0, 0, time.UTC)
	return stewards.NewRoster(archivetest.Embedded(t).AsOf(saturday), 2024, "qatar", nil)
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
	list, err = qatar(t).Read("HUL = Audi (DEU), 27\nBOT = Audi (DEU)\nLAW = Red Bull")
	if want := []season.Team{{ID: "audi", Name: "Audi", Country: "DEU"}}; err != nil || !slices.Equal(list.NewTeams, want) || list.Placed[1].Team != "audi" || list.Placed[1].Number != 77 {
		t.Errorf("new teams are %+v, %v, want %+v; Bottas is %+v", list.NewTeams, err, want, list.Placed[1])
	}
}

func TestRosterOrders(t *testing.T) {
	list, err := qatar(t).Read("VER NOR LEC SAI\nLAW = red-bull, 31\nBOT\nPIA\n-\nHAM")
	if err != nil {
		t.Fatal(err)
	}
	if q := list.Qualifying(); q[1].Position != 2 || q[7].Position != 0 || q[7].Driver != "lewis-hamilton" {
		t.Errorf("qualifying is %+v", q)
	}
	if g := list.Grid(); len(g) != 8 || g[4].Team != "red-bull" || g[7].Position != 0 {
		t.Errorf("the grid is %+v", g)
	}
}

// TestRosterReadsTimes: if a driver has several times, all times of the list are those of the parts of qualifying.
func TestRosterReadsTimes(t *testing.T) {
	for text, want := range map[string]string{
		"VER 1:33.186 1:32.779 1:32.3\nLAW 59.900 = red-bull, 30\n-\nHAM": "max-verstappen 1 0s [1m33.186s 1m32.779s 1m32.3s], liam-lawson 2 0s [59.9s 0s 0s], lewis-hamilton 0 0s [0s 0s 0s]",
		"VER 1:32.312 LAW 1:34.0": "max-verstappen 1 1m32.312s [0s 0s 0s], liam-lawson 2 1m34s [0s 0s 0s]",
	} {
		list, err := qatar(t).Read(text)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, q := range list.Qualifying() {
			got = append(got, fmt.Sprint(q.Driver, " ", q.Position, " ", q.Time, " ", q.Segments))
		}
		if all := strings.Join(got, ", "); all != want {
			t.Errorf("%q gives\n%s, want\n%s", text, all, want)
		}
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
		"VER NOR = red-bull, 30",
		"1:32.312 VER",
		"VER 12.312",
		"VER 1:33.186 1:32.779 1:32.312 1:31.999",
	} {
		_, err := qatar(t).Read(text)
		if err == nil {
			t.Errorf("%q is read without an error", text)
			continue
		}
		sentences[text] = err.Error()
	}
	golden.Inputs(t, "testdata/roster.golden", sentences)
}
