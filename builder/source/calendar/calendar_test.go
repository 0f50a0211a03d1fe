package calendar_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/season"
	"gridcast/builder/source/calendar"
	"gridcast/builder/source/sourcetest"
)

var known = calendar.Known{
	Editions: map[season.GrandPrixID]season.Round{
		"australia": {GrandPrix: "australia", Name: "Australian Grand Prix", Circuit: "melbourne"},
		"sao-paulo": {GrandPrix: "sao-paulo", Name: "São Paulo Grand Prix", Circuit: "interlagos"},
		"las-vegas": {GrandPrix: "las-vegas", Name: "Las Vegas Grand Prix", Circuit: "las-vegas"},
	},
	Circuits: map[season.CircuitID]season.Circuit{
		"melbourne":  {ID: "melbourne", Name: "Melbourne Grand Prix Circuit"},
		"interlagos": {ID: "interlagos", Name: "Autódromo José Carlos Pace"},
	},
}

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t.UTC()
}

func day(text string) time.Time { return at(text + "T00:00:00Z") }

var season2027 = []calendar.Round{
	{
		Place: "line 3", Year: 2027, Number: 1, GrandPrix: "australia", Circuit: "melbourne",
		Date: day("2027-03-07"), Start: at("2027-03-07T04:00:00Z"),
		Sessions: []season.Session{{Kind: season.Qualifying, Date: day("2027-03-06"), Start: at("2027-03-06T05:00:00Z")}},
	},
	{
		Place: "line 2", Year: 2027, Number: 21, GrandPrix: "sao-paulo", Circuit: "interlagos", Date: day("2027-11-07"), Sprint: true,
		Sessions: []season.Session{{Kind: season.Sprint, Date: day("2027-11-06"), Start: at("2027-11-06T14:00:00Z")}},
	},
	{
		Place: "line 5", Year: 2027, GrandPrix: "thailand", Name: "Thailand Grand Prix", Circuit: "bangkok",
		Venue: &season.Circuit{ID: "bangkok", Name: "Bangkok Street Circuit", Locality: "Bangkok", Country: "Thailand"},
		Date:  day("2027-11-21"), Start: at("2027-11-21T08:00:00Z"),
	},
}

func TestTable(t *testing.T) {
	got, _, err := calendar.Read([]byte("\ufeffround,grand_prix,start,qualifying,sprint,name,circuit,circuit_name,locality,country\r\n"+
		"21,Sao Paulo,2027-11-07,,2027-11-06T11:00:00-03:00,,,,,\r\n"+
		"1,Australian Grand Prix,2027-03-07T15:00:00+11:00,2027-03-06T16:00+11:00,no,,Melbourne Grand Prix Circuit\r\n"+
		"# a remark\r\n"+
		",thailand,2027-11-21 15:00+07:00,,,Thailand Grand Prix,bangkok,Bangkok Street Circuit,Bangkok,Thailand\r\n"), known)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(season2027, got); diff != "" {
		t.Errorf("the calendar (-want +got):\n%s", diff)
	}
}

func TestTableRefuses(t *testing.T) {
	sentences := make(map[string]string)
	for _, text := range []string{
		"grand_prix,date\nmonaco,x",
		"grand_prix\naustralia",
		"grand_prix,start\naustralia,7 March",
		"grand_prix,start\naustralia,2027-03-07T15:00:00",
		"grand_prix,start\naustria,2027-03-07",
		"grand_prix,start\naustralia,2027-03-07\nAustralian GP,2027-03-14",
		"grand_prix,start,circuit\naustralia,2027-03-07,Bathurst",
		"round,grand_prix,start\none,australia,2027-03-07",
		"grand_prix,start\n",
	} {
		_, _, err := calendar.Read([]byte(text), known)
		if err == nil {
			t.Errorf("%q is read without an error", text)
			continue
		}
		sentences[text] = err.Error()
	}
	sourcetest.Sentences(t, "table.golden", sentences)
}

func events(lines ...string) []byte {
	var text strings.Builder
	text.WriteString("BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//organiser//EN\n")
	for _, line := range lines {
		summary, start, _ := strings.Cut(line, "|")
		fmt.Fprintf(&text, "BEGIN:VEVENT\nUID:%s\nDTSTAMP:20261219T000000Z\nSUMMARY:%s\nDTSTART%s\nEND:VEVENT\n", summary, summary, start)
	}
	return []byte(strings.ReplaceAll(text.String()+"END:VCALENDAR\n", "\n", "\r\n"))
}

func TestEvents(t *testing.T) {
	got, notes, err := calendar.Read(events(
		"FORMULA 1 QATAR AIRWAYS AUSTRALIAN GRAND PRIX 2027 - Qualifying|;TZID=Australia/Melbourne:20270306T160000",
		"FORMULA 1 QATAR AIRWAYS AUSTRALIAN GRAND PRIX 2027 - Race|;TZID=Australia/Melbourne:20270307T150000",
		"F1: Sprint (São Paulo GP)|:20271106T140000Z",
		"F1: Race (São Paulo GP)|;VALUE=DATE:20271107",
		"Pre-season testing|;VALUE=DATE:20270220",
	), known)
	if err != nil {
		t.Fatal(err)
	}
	want := []calendar.Round{season2027[0], season2027[1]}
	want[0].Number, want[0].Place = 0, `event "FORMULA 1 QATAR AIRWAYS AUSTRALIAN GRAND PRIX 2027 - Qualifying"`
	want[1].Number, want[1].Place = 0, `event "F1: Sprint (São Paulo GP)"`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the calendar (-want +got):\n%s", diff)
	}
	if len(notes) != 1 {
		t.Errorf("notes are %q, want the testing left out", notes)
	}
}

// TestRaceAmongEvents: the race of a calendar is the event that says so, or that names the Grand Prix alone. A note names
// each event of another kind, and none of them moves the start.
func TestRaceAmongEvents(t *testing.T) {
	const race, other = "|;TZID=Australia/Melbourne:20270307T150000", "|;TZID=Australia/Melbourne:20270307T110000"
	for _, summary := range []string{
		"FORMULA 1 QATAR AIRWAYS AUSTRALIAN GRAND PRIX 2027 - Race", "F1: Race (Australian GP)", "Australian Grand Prix 2027: Race",
		"Race · F1 R1 Australia", "Australian Grand Prix Race", "Australian Grand Prix", "F1: Australia", "Formula 1: Australian GP 2027",
		"Round 1: Australian Grand Prix (Melbourne Grand Prix Circuit)", "FORMULA 1 QATAR AIRWAYS AUSTRALIAN GRAND PRIX 2027",
	} {
		for _, unknown := range []string{
			"Pit Lane Walk - Australian GP", "F1: Pit Lane Walk (Australian GP)", "Australian Grand Prix Drivers' Parade", "Australian GP – Race day hospitality",
			"Formula 1 Australian Grand Prix Fan Zone", "FORMULA 1 QATAR AIRWAYS AUSTRALIAN GRAND PRIX 2027 - Practice 4",
		} {
			for _, lines := range [][]string{{unknown + other, summary + race}, {summary + race, unknown + other}} {
				got, notes, err := calendar.Read(events(lines...), known)
				if err != nil || len(got) != 1 || !got[0].Start.Equal(at("2027-03-07T04:00:00Z")) || len(notes) != 1 || !strings.Contains(notes[0], unknown) {
					t.Errorf("%q: got %+v, notes %q, %v; want the start of %q and a note", lines, got, notes, err, summary)
				}
			}
		}
	}
	got, notes, err := calendar.Read(events("Australian Grand Prix - Race"+race, "FORMULA 1 QATAR AIRWAYS AUSTRALIAN GRAND PRIX 2027|;VALUE=DATE:20270305"), known)
	if err != nil || len(got) != 1 || !got[0].Start.Equal(at("2027-03-07T04:00:00Z")) || len(notes) != 1 {
		t.Errorf("a race and its weekend: got %+v, notes %q, %v; want the start of the race and a note", got, notes, err)
	}
}

// TestEventsRefuse: a calendar with faulty events is refused with a reason, and a note names each event
// that is left out.
func TestEventsRefuse(t *testing.T) {
	_, notes, err := calendar.Read(events("Australian Grand Prix Race|:20270307T040000Z", "Pre-season testing|;VALUE=DATE:20270220", "Pit Lane Walk, Australian GP|:20270306T040000Z", "Australian GP|:20270306T040000Z"), known)
	if err != nil {
		t.Fatal(err)
	}
	sentences := make(map[string]string)
	for _, text := range []string{
		"Australian Grand Prix Race|:20270307T150000",
		"Australian Grand Prix Race|;TZID=AUS Eastern Standard Time:20270307T150000",
		"Australian Grand Prix Race|;TZID=Local:20270307T150000",
		"Australian Grand Prix Race|;TZID=Australia/Melbourne:20270337T150000",
		"Australian Grand Prix Qualifying|:20270307T150000Z",
		"A party|:20270307T150000Z",
		"Pit Lane Walk - Australian GP|:20270307T150000Z",
	} {
		_, _, err := calendar.Read(events(text), known)
		if err == nil {
			t.Errorf("%q is read without an error", text)
			continue
		}
		sentences[text] = err.Error()
	}
	sentences["notes"] = strings.Join(notes, "\n") // of the testing, the walk and the second event of the race
	sourcetest.Sentences(t, "events.golden", sentences)
}
