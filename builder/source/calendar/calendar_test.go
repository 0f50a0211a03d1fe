package calendar_test

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/season"
	"gridcast/builder/source/calendar"
	"gridcast/builder/source/f1db"
	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
)

var known = calendar.Known{
	Seasons: []season.Season{{Year: 2026, Rounds: []season.Round{
		{GrandPrix: "australia", Name: "Australian Grand Prix", Circuit: "melbourne", Date: day("2026-03-08")},
		{GrandPrix: "sao-paulo", Name: "São Paulo Grand Prix", Circuit: "interlagos", Date: day("2026-11-08")},
		{GrandPrix: "las-vegas", Name: "Las Vegas Grand Prix", Circuit: "las-vegas", Date: day("2026-11-22")},
	}}},
	Circuits: map[season.CircuitID]season.Circuit{
		"melbourne":  {ID: "melbourne", Name: "Melbourne Grand Prix Circuit", Locality: "Melbourne", Country: "Australia"},
		"interlagos": {ID: "interlagos", Name: "Autódromo José Carlos Pace", Locality: "São Paulo", Country: "Brazil"},
		"las-vegas":  {ID: "las-vegas", Name: "Las Vegas Street Circuit", Locality: "Las Vegas", Country: "United States of America"},
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
	read := must.Get(calendar.Read([]byte("\ufeffround,grand_prix,start,qualifying,sprint,name,circuit,circuit_name,locality,country\r\n"+
		"21,Sao Paulo,2027-11-07,,2027-11-06T11:00:00-03:00,,,,,\r\n"+
		"1,Australian Grand Prix,2027-03-07T15:00:00+11:00,2027-03-06T16:00+11:00,no,,Melbourne Grand Prix Circuit\r\n"+
		"# a remark\r\n"+
		",thailand,2027-11-21 15:00+07:00,,,Thailand Grand Prix,bangkok,Bangkok Street Circuit,Bangkok,Thailand\r\n"), known, nil))(t)
	want := slices.Clone(season2027)
	want[0].Sessions = append([]season.Session{{Kind: season.Sprint, Cancelled: true}}, want[0].Sessions...)
	must.Equal(t, "the calendar", want, read.Rounds)
}

// TestTableLeavesOut: a row or a cell that cannot be read is left out with the reason, and the other rows count. Without any
// row that counts, the reasons are the error.
func TestTableLeavesOut(t *testing.T) {
	sentences := make(map[string]string)
	for _, text := range []string{
		"grand_prix,date\nmonaco,x",
		"grand_prix\naustralia",
		"grand_prix,start,Start\naustralia,2027-03-07,2027-04-07",
		"grand_prix,start\naustralia,7 March",
		"grand_prix,start\naustria,2027-03-07",
		"grand_prix,start\naustralia,2027-03-07\nAustralian GP,2027-03-14",
		"grand_prix,start,circuit\naustralia,2027-03-07,Bathurst",
		"grand_prix,start\n",
	} {
		_, err := calendar.Read([]byte(text), known, nil)
		if err == nil {
			t.Errorf("%q is read without an error", text)
			continue
		}
		sentences[text] = err.Error()
	}
	read, err := calendar.Read([]byte("round,grand_prix,start,practice-1,qualifying\n"+
		"one,australia,2027-03-07T15:00:00,TBC,2027-03-06 afternoon\n"+
		"2,Atlantis,2027-04-04,,\n"+
		"3,Brazilian Grand Prix,2027-11-07,,\n"), known, nil)
	if err != nil || len(read.Rounds) != 2 || !read.Rounds[0].Start.IsZero() || !read.Rounds[0].Date.Equal(day("2027-03-07")) || len(read.Rounds[0].Sessions) != 1 {
		t.Fatalf("got %+v, %v; want two rounds, the first of a day without an hour", read.Rounds, err)
	}
	sentences["listed"], sentences["left out"] = strings.Join(read.Listed, "\n"), strings.Join(read.Left, "\n")
	golden.Inputs(t, "testdata/table.golden", sentences)
}

// TestAnotherDay: a race that gets another day keeps its hour at the circuit, also if the clocks change between the two days.
func TestAnotherDay(t *testing.T) {
	for _, test := range []struct{ circuit, was, day, want string }{
		{"austin", "2026-10-18T19:00:00Z", "2026-10-25", "2026-10-25T19:00:00Z"},
		{"austin", "2026-10-18T19:00:00Z", "2026-11-08", "2026-11-08T20:00:00Z"},
		{"melbourne", "2026-04-12T05:00:00Z", "2026-03-08", "2026-03-08T04:00:00Z"},
		{"miami", "2026-10-18T23:30:00Z", "2026-11-09", "2026-11-09T00:30:00Z"}, // 19:30 of the day before
		{"miami", "2026-11-09T00:30:00Z", "2026-10-18", "2026-10-18T23:30:00Z"},
		{"nowhere", "2026-10-18T19:00:00Z", "2026-11-08", "2026-11-08T19:00:00Z"},
	} {
		was := season.Round{Circuit: season.CircuitID(test.circuit), Date: season.DayOf(at(test.was)), Start: at(test.was)}
		next := calendar.Round{Circuit: was.Circuit, Date: day(test.day)}.Over(&was, season.Round{})
		must.Hold(t, next.Start.Equal(at(test.want)) && next.Date.Equal(day(test.day)), "%s, %s to %s: it starts at %s of %s, want %s", test.circuit, test.was, test.day, next.Start, next.Date, test.want)
		next = calendar.Round{Circuit: "spa", Date: day(test.day)}.Over(&was, season.Round{})
		must.Hold(t, next.Start.IsZero(), "at another circuit it starts at %s, want an unknown hour", next.Start)
	}
}

// TestUnknownRows: a row that is no known Grand Prix costs no look at the name of each one.
func TestUnknownRows(t *testing.T) {
	const rows = 100
	table := []byte("grand_prix,start\n" + strings.Repeat("nowhere of the four seas,2027-01-01\n", rows))
	made := testing.AllocsPerRun(1, func() { _, _ = calendar.Read(table, known, nil) }) - testing.AllocsPerRun(1, func() { _, _ = calendar.Read(table[:len(table)/2], known, nil) })
	must.Hold(t, made < rows/2*200, "%v allocations for %d rows", made, rows/2)
}

// TestOneBadLine: a line that cannot be read is left out, and the reason has its number and its text. All other rounds stay.
func TestOneBadLine(t *testing.T) {
	table := "grand_prix,start,qualifying\naustralia,2027-03-07,2027-03-06\nsao-paulo,2027-11-07,2027-11-06\nlas-vegas,2027-11-21,2027-11-20\n"
	file := string(events("Australian Grand Prix|:20270307T040000Z|DESCRIPTION:long,\r\n and folded", "São Paulo Grand Prix|:20271107T170000Z", "Las Vegas Grand Prix|:20271121T040000Z"))
	for _, test := range []struct {
		text, was, is string
		rounds        int
		left          string
	}{
		{table, "sao-paulo,2027-11-07", `sao-paulo,"2027-11-07`, 2, `line 3 is left out: "sao-paulo,\"2027-11-07,2027-11-06": `},
		{table, "sao-paulo,2027-11-07", `sao"paulo,2027-11-07`, 2, `line 3 is left out: "sao\"paulo,2027-11-07,2027-11-06": bare "`},
		{table, "2027-11-06\n", "2027-11-06,Brazil\n", 2, `line 3 is left out: it has 4 cells, and the first line names 3 columns`},
		{table, "2027-11-06\n", "noon,,\n", 3, `line 3: the hour of qualifying is left out: "noon"`}, // empty cells of a spreadsheet
		{table, "2027-11-07", "2027-13-07", 2, `line 3 is left out: start: "2027-13-07"`},
		{table, "2027-11-06", "noon", 3, `line 3: the hour of qualifying is left out: "noon"`},
		{file, "DTSTART:20271107", "DTSTART 20271107", 2, `line 15 is left out with its event: "DTSTART 20271107T170000Z" cannot be read`},
		{file, "SUMMARY:São", "SUMMARY São", 2, `line 14 is left out with its event: "SUMMARY São Paulo Grand Prix" cannot be read`},
		{file, " and folded", "not folded", 3, `line 9 is left out: "not folded" cannot be read`},
		{file, "UID:0\r\nEND:VEVENT\r\n", "UID:0\r\n", 2, "the event of line 4 is left out: it does not end"},
		{file, "UID:2\r\nEND:VEVENT\r\n", "UID:2\r\n", 2, "the event of line 18 is left out: it does not end"},
		{file, "PRODID:-//organiser//EN", "-//organiser//EN", 3, `line 3 is left out: "-//organiser//EN" cannot be read`},
		{file, "VERSION:2.0\r\n", "VERSION:2.0\r\n\r\nX-;=\r\n", 3, `line 4 is left out: "X-;=" cannot be read`},
	} {
		read, err := calendar.Read([]byte(must.Replace(t, test.text, test.was, test.is)), known, nil)
		if err != nil {
			t.Errorf("%q: %v", test.is, err)
			continue
		}
		if len(read.Rounds) != test.rounds || len(read.Left) != 1 || !strings.HasPrefix(read.Left[0], test.left) {
			t.Errorf("%q: %d rounds, left out %q; want %d and %q", test.is, len(read.Rounds), read.Left, test.rounds, test.left)
		}
	}
}

// events returns an iCalendar file with an event a line: its title, its start and further lines, between bars.
func events(lines ...string) []byte {
	var text strings.Builder
	text.WriteString("BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//organiser//EN\n")
	for i, line := range lines {
		parts := strings.Split(line, "|")
		more := ""
		if len(parts) > 2 {
			more = strings.Join(parts[2:], "\n") + "\n"
		}
		if !strings.Contains(more, "UID:") {
			more += fmt.Sprintf("UID:%d\n", i)
		}
		fmt.Fprintf(&text, "BEGIN:VEVENT\nDTSTAMP:20261219T000000Z\nSUMMARY:%s\nDTSTART%s\n%sEND:VEVENT\n", parts[0], parts[1], more)
	}
	return []byte(strings.ReplaceAll(text.String()+"END:VCALENDAR\n", "\n", "\r\n"))
}

func TestEvents(t *testing.T) {
	read := must.Get(calendar.Read(events(
		"FORMULA 1 QATAR AIRWAYS AUSTRALIAN GRAND PRIX 2027 - Qualifying|;TZID=Australia/Melbourne:20270306T160000",
		"FORMULA 1 QATAR AIRWAYS AUSTRALIAN GRAND PRIX 2027 - Race|;TZID=Australia/Melbourne:20270307T150000",
		"F1: Sprint (São Paulo GP)|:20271106T140000Z",
		"F1: Race (São Paulo GP)|;VALUE=DATE:20271107",
		"Pre-season testing|;VALUE=DATE:20270220",
	), known, nil))(t)
	want := []calendar.Round{season2027[0], season2027[1]}
	want[0].Number, want[0].Place = 0, `event "FORMULA 1 QATAR AIRWAYS AUSTRALIAN GRAND PRIX 2027 - Race"`
	want[1].Number, want[1].Place = 0, `event "F1: Race (São Paulo GP)"`
	must.Equal(t, "the calendar", want, read.Rounds)
	must.Hold(t, len(read.Left) == 1 && len(read.Listed) == 4, "listed are %q, left out %q, want the testing left out", read.Listed, read.Left)
}

// TestRaceAmongEvents: the race of a calendar is the event that says so, or that names the Grand Prix alone. A note names
// each event of another kind, and none of them moves the start.
func TestRaceAmongEvents(t *testing.T) {
	const race, other = "|;TZID=Australia/Melbourne:20270307T150000", "|;TZID=Australia/Melbourne:20270307T110000"
	for _, summary := range []string{
		"FORMULA 1 QATAR AIRWAYS AUSTRALIAN GRAND PRIX 2027 - Race", "F1: Race (Australian GP)", "Australian Grand Prix 2027: Race",
		"Race · F1 R1 Australia", "Australian Grand Prix Race", "Australian Grand Prix", "F1: Australia", "Formula 1: Australian GP 2027",
		"Round 1: Australian Grand Prix (Melbourne Grand Prix Circuit)", "FORMULA 1 QATAR AIRWAYS AUSTRALIAN GRAND PRIX 2027",
		"QATAR AIRWAYS AUSTRALIAN GRAND PRIX 2027", "Heineken Australian GP", "Race|LOCATION:Albert Park\\, Melbourne",
	} {
		at := summary + race
		if title, place, ok := strings.Cut(summary, "|"); ok {
			at = title + race + "|" + place
		}
		for _, unknown := range []string{
			"Pit Lane Walk - Australian GP", "F1: Pit Lane Walk (Australian GP)", "Australian Grand Prix Drivers' Parade", "Australian GP – Race day hospitality",
			"Formula 1 Australian Grand Prix Fan Zone", "FORMULA 1 QATAR AIRWAYS AUSTRALIAN GRAND PRIX 2027 - Practice 4", "Pit lane walk Australian Grand Prix",
			"F2: Qualifying (Australian GP)", "FIA Formula 3 Australian Grand Prix - Race", "Porsche Supercup Race, Australian Grand Prix",
		} {
			for _, lines := range [][]string{{unknown + other, at}, {at, unknown + other}} {
				read, err := calendar.Read(events(lines...), known, nil)
				if err != nil || len(read.Rounds) != 1 || !read.Rounds[0].Start.Equal(at2027) || len(read.Left) != 1 || !strings.Contains(read.Left[0], unknown) {
					t.Errorf("%q: got %+v, %v; want the start of %q and a note", lines, read, err, summary)
				}
			}
		}
	}
	read, err := calendar.Read(events("Australian Grand Prix - Race"+race, "FORMULA 1 QATAR AIRWAYS AUSTRALIAN GRAND PRIX 2027|;VALUE=DATE:20270305"), known, nil)
	if err != nil || len(read.Rounds) != 1 || !read.Rounds[0].Start.Equal(at2027) || len(read.Left) != 1 {
		t.Errorf("a race and its weekend: got %+v, %v; want the start of the race and a note", read, err)
	}
}

var at2027 = at("2027-03-07T04:00:00Z")

// TestTimesOfEvents: an hour without a known time zone is lost, with a note, and the day stays.
func TestTimesOfEvents(t *testing.T) {
	hour, lost := at2027, time.Time{}
	for _, test := range []struct {
		start, more string
		want        time.Time
		date        string
	}{
		{":20270307T040000Z", "", hour, "2027-03-07"},
		{";TZID=Australia/Melbourne:20270307T150000", "", hour, "2027-03-07"},
		{";TZID=AUS Eastern Standard Time:20270307T150000", "", hour, "2027-03-07"},
		{";TZID=/mozilla.org/20050126_1/Australia/Melbourne:20270307T150000", "", hour, "2027-03-07"},
		{";TZID=America/Argentina/Buenos_Aires:20270307T010000", "", hour, "2027-03-07"},
		{":20270307T150000", "", lost, "2027-03-07"},
		{";TZID=Local:20270307T150000", "", lost, "2027-03-07"},
		{";TZID=Nowhere:20270307T150000", "", lost, "2027-03-07"},
		{":20270307T250000Z", "", lost, "2027-03-07"},
		{";VALUE=DATE:20270307", "", lost, "2027-03-07"},
		{";VALUE=DATE:20270305", "|DTEND;VALUE=DATE:20270308", lost, "2027-03-07"},
	} {
		read, err := calendar.Read(events("Australian Grand Prix Race|"+test.start+test.more), known, nil)
		if err != nil || len(read.Rounds) != 1 || !read.Rounds[0].Start.Equal(test.want) || !read.Rounds[0].Date.Equal(day(test.date)) {
			t.Errorf("%s: got %+v, %v; want %s on %s", test.start, read.Rounds, err, test.want, test.date)
			continue
		}
		noted := len(read.Left) == 1
		must.Hold(t, noted == (test.want.IsZero() && test.start != ";VALUE=DATE:20270307"), "%s: left out are %q", test.start, read.Left)
	}
	general := strings.Replace(string(events("Australian Grand Prix Race|:20270307T150000")), "VERSION:2.0", "VERSION:2.0\r\nX-WR-TIMEZONE:Australia/Melbourne", 1)
	read, err := calendar.Read([]byte(general), known, nil)
	must.Hold(t, err == nil && read.Rounds[0].Start.Equal(hour), "a file with a time zone: got %+v, %v", read, err)
}

// TestRevisionsOfEvents: of one event the highest revision counts; a repeated event is no session; a cancelled session stays as
// cancelled, and the sessions of a cancelled race are left out.
func TestRevisionsOfEvents(t *testing.T) {
	const race = "Australian GP - Race|:20270307T040000Z"
	sprint := func(status string) string { return "Australian GP - Sprint|:20270306T010000Z|" + status }
	for _, test := range []struct {
		what     string
		lines    []string
		sessions []season.Session
		left     int
		sprint   bool
	}{
		{"a later revision first", []string{"Australian GP - Race|:20270307T040000Z|UID:a|SEQUENCE:2", "Australian GP - Race|:20270307T050000Z|UID:a|SEQUENCE:1"}, nil, 1, false},
		{"a later revision last", []string{"Australian GP - Race|:20270307T050000Z|UID:a|SEQUENCE:1", "Australian GP - Race|:20270307T040000Z|UID:a|SEQUENCE:2"}, nil, 1, false},
		{"the same event twice", []string{race, race}, nil, 1, false},
		{"a repeated event", []string{race, "Australian GP - Qualifying|:20270306T050000Z|RRULE:FREQ=WEEKLY"}, nil, 1, false},
		{"a sprint", []string{race, sprint("STATUS:CONFIRMED")}, []season.Session{{Kind: season.Sprint, Date: day("2027-03-06"), Start: at("2027-03-06T01:00:00Z")}}, 0, true},
		{"a cancelled sprint", []string{race, sprint("STATUS:CANCELLED")}, []season.Session{{Kind: season.Sprint, Date: day("2027-03-06"), Start: at("2027-03-06T01:00:00Z"), Cancelled: true}}, 0, false},
		{"a sprint weekend", []string{"Australian GP - Race (Sprint Weekend)|:20270307T040000Z"}, nil, 0, true},
		{"a session of another month", []string{race, "Australian GP - Qualifying|:20270506T050000Z"}, nil, 1, false},
	} {
		read, err := calendar.Read(events(test.lines...), known, nil)
		if err != nil || len(read.Rounds) != 1 || !read.Rounds[0].Start.Equal(at2027) || read.Rounds[0].Sprint != test.sprint || len(read.Left) != test.left {
			t.Errorf("%s: got %+v, %v", test.what, read, err)
		} else if diff := cmp.Diff(test.sessions, read.Rounds[0].Sessions); diff != "" {
			t.Errorf("%s: sessions (-want +got):\n%s", test.what, diff)
		}
	}
	golden.Sentence(t, "a cancelled race", must.Err(calendar.Read(events(race+"|STATUS:CANCELLED", sprint("")), known, nil)))
}

// TestEventsRefuse: two events that claim to be one session are a fault that names both; a note names each event that is
// left out, and why.
func TestEventsRefuse(t *testing.T) {
	sentences := make(map[string]string)
	for _, lines := range [][]string{
		{"A party|:20270307T150000Z"},
		{"Pit Lane Walk - Australian GP|:20270307T150000Z"},
		{"Australian Grand Prix Qualifying|:20270307T150000Z"},
		{"Australian Grand Prix - Race|:20270307T040000Z", "Race, Melbourne|:20270907T040000Z"},
		{"Australian Grand Prix - Race|:20270307T040000Z", "Australian Grand Prix|:20270907T040000Z"},
		{"Australian GP - Race|:20270307T040000Z", "Australian GP - Qualifying|:20270306T040000Z", "Australian GP - Qualifying|:20270306T060000Z"},
		{"Race: Turkish Grand Prix|:20270307T040000Z"},
		{"Australian Grand Prix and Brazilian Grand Prix|:20270307T040000Z"},
		{"Race|:20270307T040000Z|LOCATION:Atlantis"},
	} {
		_, err := calendar.Read(events(lines...), known, nil)
		if err == nil {
			t.Errorf("%q is read without an error", lines)
			continue
		}
		sentences[strings.Join(lines, "\n")] = err.Error()
	}
	read := must.Get(calendar.Read(events("Australian Grand Prix Race|:20270307T040000Z", "Pre-season testing|;VALUE=DATE:20270220", "Pit Lane Walk, Australian GP|:20270306T040000Z", "Australian GP|:20270306T040000Z"), known, nil))(t)
	sentences["notes"] = strings.Join(read.Left, "\n") // of the testing, the walk and the second event of the race
	golden.Inputs(t, "testdata/events.golden", sentences)
}

// imported has the seasons of a release of F1DB, read once for all tests.
var imported struct {
	sync.Once
	facts season.Facts
}

func archive(t *testing.T) season.Facts {
	t.Helper()
	path := sourcetest.Path(t, sourcetest.F1DB2026)
	imported.Do(func() {
		a, _ := must.Get2(f1db.Import(path, f1db.Options{}))(t)
		imported.facts = a.Facts()
	})
	return imported.facts
}

// TestOfficialNames: the official title of each race since 1950 names its Grand Prix, and claims to be the race.
func TestOfficialNames(t *testing.T) {
	facts := archive(t)
	var races []struct {
		Year         int                `json:"year"`
		GrandPrix    season.GrandPrixID `json:"grandPrixId"`
		OfficialName string             `json:"officialName"`
	}
	packed := must.Get(zip.OpenReader(sourcetest.Path(t, "f1db/f1db-2026-json-splitted.zip")))(t)
	defer packed.Close()
	file := must.Get(packed.Open("f1db-races.json"))(t)
	must.Do(t, json.NewDecoder(file).Decode(&races))
	find := calendar.Titles(calendar.Known{Seasons: facts.Seasons, Circuits: facts.Circuits})
	for _, r := range races {
		for _, title := range []string{r.OfficialName, strings.ToUpper(r.OfficialName), "F1: Race - " + r.OfficialName} {
			title = strings.NewReplacer("d'ltalia", "d'Italia", "D'LTALIA", "D'ITALIA").Replace(title) // a slip of the source
			for _, year := range []int{r.Year, 2027} {
				got, race := find(title, year)
				later := year == 2027 && r.GrandPrix == "brazil" && got == "sao-paulo"
				if got != r.GrandPrix && !later || !race {
					t.Errorf("%s in %d: got %q, a race: %t; want %s", title, year, got, race, r.GrandPrix)
				}
			}
		}
	}
}

// TestNamesOfRounds: titles and places as people write them, against the calendar of 2026. No Grand Prix is named by a country
// with two of them.
func TestNamesOfRounds(t *testing.T) {
	facts := archive(t)
	golden.Table(t, "testdata/names.golden", func(input string) string {
		title, place, _ := strings.Cut(input, " | ")
		known := calendar.Known{Seasons: facts.Seasons, Circuits: facts.Circuits}
		read, err := calendar.Read(events(fmt.Sprintf("%s|;VALUE=DATE:20270606|LOCATION:%s", title, place)), known, nil)
		if err != nil {
			return err.Error()
		}
		return string(read.Rounds[0].GrandPrix)
	})
}

// TestMap: a mapping settles a doubt, also the one between two events, and leaves events out.
func TestMap(t *testing.T) {
	file := events("Race, Italy|:20270307T040000Z|LOCATION:Italy", "Fan race, Australian GP|:20270314T040000Z", "Race, Australian GP|:20270321T040000Z")
	read, err := calendar.Read(file, known, map[string]string{"Race, Italy": "las-vegas", "fan": "none"})
	if err != nil || len(read.Rounds) != 2 || read.Rounds[0].GrandPrix != "las-vegas" || len(read.Left) != 1 {
		t.Errorf("got %+v, %v; want the rounds of Las Vegas and Australia", read, err)
	}
	golden.Sentence(t, "two mappings of one text", must.Err(calendar.Read(file, known, map[string]string{"Fan Zone": "las-vegas", "fan-zone": "none"})))
	golden.Sentence(t, "a mapping to an unknown Grand Prix", must.Err(calendar.Read(file, known, map[string]string{"Italy": "las-vegs"})))
}

// TestWithoutZonesOfTheMachine runs TestEvents without any other file, as in an image from scratch.
func TestWithoutZonesOfTheMachine(t *testing.T) {
	must.Long(t, "under the race detector a test needs files of the machine")
	if os.Geteuid() != 0 {
		t.Skip("only root may run a program in an empty folder as its root")
	}
	root := t.TempDir()
	self := must.Get(os.Executable())(t)
	files := map[string]string{self: "test"}
	// The test binary may be linked with shared libraries: copy them too.
	if libraries, err := exec.CommandContext(t.Context(), "ldd", self).Output(); err == nil {
		for _, word := range strings.Fields(string(libraries)) {
			if filepath.IsAbs(word) {
				files[word] = word
			}
		}
	}
	for from, to := range files {
		data, err := os.ReadFile(from)
		if err != nil {
			continue // the name of a library that the kernel brings
		}
		to = filepath.Join(root, to)
		must.Do(t, os.MkdirAll(filepath.Dir(to), 0o700))
		must.Do(t, os.WriteFile(to, data, 0o700))
	}
	cmd := exec.CommandContext(t.Context(), "/test", "-test.run=^TestEvents$", "-test.v")
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", []string{}, &syscall.SysProcAttr{Chroot: root}
	out, err := cmd.CombinedOutput()
	must.Hold(t, err == nil && strings.Contains(string(out), "--- PASS: TestEvents"), "without time zones of the machine: %v\n%s", err, out)
}
