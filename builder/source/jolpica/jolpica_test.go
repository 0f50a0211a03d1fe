package jolpica_test

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"testing"
	"time"

	"gridcast/builder/archive/archivetest"
	"gridcast/builder/assemble"
	"gridcast/builder/season"
	"gridcast/builder/source"
	"gridcast/builder/source/jolpica"
	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
)

// after2024 is when the season 2024 has become last year.
var after2024 = time.Date(2025, 1, 10, 12, 0, 0, 0, time.UTC)

func upstream(t *testing.T, api *sourcetest.Replay) source.Upstream {
	t.Helper()
	return sourcetest.Open(t, jolpica.New, api)
}

// fetched fetches and reads the recordings of some seasons.
func fetched(t *testing.T, api *sourcetest.Replay, from, to int) (source.Document, error) {
	t.Helper()
	return sourcetest.Fetched(t, upstream(t, api), after2024, from, to)
}

func TestAddresses(t *testing.T) {
	for _, base := range []string{"", "host/path", "https:///path", "https://host/path?key=1", "://"} {
		golden.Sentence(t, "the address "+base, must.Err(jolpica.New(base, "gridcast")))
	}
}

// TestAgainstF1DB compares two whole seasons with F1DB, by driver. The remaining differences are errors
// of one source.
func TestAgainstF1DB(t *testing.T) {
	api := sourcetest.Jolpica(t)
	d := must.Get(fetched(t, api, 2023, 2025))(t)
	for year, want := range map[int]int{2023: 22, 2024: 24} {
		got := len(d.Facts.Seasons[year-2023].Rounds)
		must.Hold(t, got == want, "%d has %d rounds, want %d", year, got, want)
	}
	want := []string{
		// Jolpica has Valtteri Bottas twice, also in the place where he was disqualified.
		`2023 great-britain, qualifying: guanyu-zhou: ours "P17", theirs "P18"`,
		`2023 great-britain, qualifying: kevin-magnussen: ours "P19", theirs "P20"`,
		`2023 great-britain, qualifying: nyck-de-vries: ours "P18", theirs "P19"`,
		`2023 great-britain, qualifying: sergio-perez: ours "P15", theirs "P16"`,
		`2023 great-britain, qualifying: yuki-tsunoda: ours "P16", theirs "P17"`,
		`2023 qatar, grid: nico-hulkenberg: ours "slot 14", theirs "slot 12"`, // lined up in the slot of an absent car
		// Brought forward on the day because of the weather; Jolpica kept the plan.
		`2024 sao-paulo, start: start: ours "2024-11-03 15:30 UTC", theirs "2024-11-03 17:00 UTC"`,
		`2024 sao-paulo, sessions: qualifying: ours "2024-11-03 10:30 UTC", theirs "2024-11-02 18:00 UTC"`,
		// Jolpica gives the local day with the hour in UTC.
		`2024 las-vegas, start: start: ours "2024-11-24 06:00 UTC", theirs "2024-11-23 06:00 UTC"`,
		`2024 las-vegas, sessions: practice-1: ours "2024-11-22 02:30 UTC", theirs "2024-11-21 02:30 UTC"`,
		`2024 las-vegas, sessions: practice-2: ours "2024-11-22 06:00 UTC", theirs "2024-11-21 06:00 UTC"`,
		`2024 las-vegas, sessions: practice-3: ours "2024-11-23 02:30 UTC", theirs "2024-11-22 02:30 UTC"`,
		`2024 las-vegas, sessions: qualifying: ours "2024-11-23 06:00 UTC", theirs "2024-11-22 06:00 UTC"`,
	}
	ours := archivetest.Embedded(t)
	must.Equal(t, "disagreements by driver", want, disputed(t, ours.Facts(), d.Facts, d.From, d.To, after2024))
	// Two seasons and the calendar of the next stay within a quarter of Jolpica's requests per hour.
	n := len(api.Requests())
	must.Hold(t, n <= 36, "asked %d times", n)
}

// TestUnchanged: equal answers are recognised by their sum, because Jolpica has no validators.
func TestUnchanged(t *testing.T) {
	api := sourcetest.Jolpica(t)
	u := upstream(t, api)
	first := must.Get(u.Fetch(t.Context(), after2024, 2024, 2024, source.Known{}))(t)
	again, err := u.Fetch(t.Context(), after2024.Add(time.Hour), 2024, 2024, source.Known{SHA256: source.Sum(first.Packed)})
	must.Hold(t, err == nil && again.NotModified, "asked again: not modified %t, error %v", again.NotModified, err)
	api.Rewrite(func(_, body string) string { return strings.Replace(body, `"points":"26"`, `"points":"25"`, 1) })
	changed, err := u.Fetch(t.Context(), after2024.Add(2*time.Hour), 2024, 2024, source.Known{SHA256: source.Sum(first.Packed)})
	if err != nil || changed.NotModified || changed.Revision == first.Revision {
		t.Errorf("a point less: not modified %t, revision %s after %s, error %v", changed.NotModified, changed.Revision, first.Revision, err)
	}
}

// TestNamesOfTwoSeasons: a payload is read alike each time, also if its seasons name a team differently.
func TestNamesOfTwoSeasons(t *testing.T) {
	api := sourcetest.Jolpica(t)
	api.Rewrite(func(target, body string) string {
		if strings.Contains(target, "/2023/") {
			return strings.ReplaceAll(body, "Red Bull", "Old Bull")
		}
		return body
	})
	u := upstream(t, api)
	payload := must.Get(u.Fetch(t.Context(), after2024, 2023, 2024, source.Known{}))(t)
	for range 20 { // the seasons were in a map
		d := must.Get(u.Read(payload.Packed))(t)
		must.Require(t, d.Facts.Teams["red-bull"].Name == "Red Bull", "the team is %q, want its name in the later season", d.Facts.Teams["red-bull"].Name)
	}
}

// calendarAlone is a server with an edited calendar and nothing else.
func calendarAlone(t *testing.T, edit *strings.Replacer) *sourcetest.Replay {
	api := sourcetest.Jolpica(t)
	api.Rewrite(func(target, body string) string {
		if strings.HasPrefix(path.Base(target), "races.json") {
			return edit.Replace(body)
		}
		return `{"MRData":{"limit":"100","offset":"0","total":"0"}}`
	})
	return api
}

// TestCalendarAlone: before the first weekend of a season the document names no team, and its facts are valid.
func TestCalendarAlone(t *testing.T) {
	d := must.Get(fetched(t, calendarAlone(t, strings.NewReplacer()), 2024, 2024))(t)
	must.Do(t, d.Facts.Validate())
}

// TestRoundsWithoutNumber: in March 2026 both cancelled rounds had the number 0, and then none. Each stays a round.
func TestRoundsWithoutNumber(t *testing.T) {
	for _, number := range []string{`"0"`, "null"} {
		edited := strings.NewReplacer(`"round":"1",`, `"round":`+number+`,`, `"round":"2",`, `"round":`+number+`,`)
		d := must.Get(fetched(t, calendarAlone(t, edited), 2024, 2024))(t)
		if n := len(d.Facts.Seasons[0].Rounds); n != 24 || len(d.Unread) != 2 {
			t.Errorf("%s: %d rounds, unread %+v; want 24, and the calendar entries of two", number, n, d.Unread)
		}
	}
}

// TestOutages: an unusable answer of Jolpica has a kind of fault.
func TestOutages(t *testing.T) {
	const gateway = "<html><head><title>504 Gateway Time-out</title></head></html>"
	sourcetest.TestOutages(t, sourcetest.Jolpica, sourcetest.Outages{
		{"November 2025, São Paulo: 504 with a page of nginx", 504, "text/html", gateway, source.Unreachable, "504"},
		{"May 2026: 521", 521, "text/html", gateway, source.Unreachable, "521"},
		{"June 2026, Monaco: 403 under load", 403, "text/html", gateway, source.Refused, "403"},
		{"throttled, without Retry-After", 429, "application/json", `{"detail":"Request was throttled."}`, source.Throttled, "429"},
		{"a page with 200", 200, "text/html", gateway, source.Malformed, "content type"},
		{"an error of the API", 400, "application/json", `{"detail":"Bad Request: Unsupported filter for endpoint."}`, source.Refused, "Unsupported filter"},
		{"cut off", 200, "application/json", `{"MRData":{"limit":"100","off`, source.Malformed, "JSON"},
		{"another page than asked for", 200, "application/json", `{"MRData":{"limit":"30","offset":"0","total":"24"}}`, source.Malformed, `limit "30"`},
		{"a total out of all proportion", 200, "application/json", `{"MRData":{"limit":"100","offset":"0","total":"1000000"}}`, source.Malformed, "total"},
	}, func(t *testing.T, api *sourcetest.Replay) error {
		_, err := fetched(t, api, 2024, 2024)
		return err
	})
	t.Run("rows come between two pages", func(t *testing.T) {
		api := sourcetest.Jolpica(t)
		api.Rewrite(func(target, body string) string {
			if strings.HasSuffix(target, "/results.json?limit=100&offset=200") {
				return strings.Replace(body, `"total":"479"`, `"total":"499"`, 1)
			}
			return body
		})
		var fault *source.Fault
		_, err := fetched(t, api, 2024, 2024)
		must.Hold(t, errors.As(err, &fault) && fault.Kind == source.Malformed, "got %v, want a malformed payload", err)
	})
}

// TestOddRows: each odd answer of Jolpica is read as a known value, or refused.
func TestOddRows(t *testing.T) {
	for _, test := range []struct {
		name    string
		target  string                     // of the request; empty: results.json
		was, is string                     // in the first race of 2024
		read    func(*season.Round) string // nil: one part cannot be read
		want    string                     // the read value, or the part and its reason
	}{
		{
			name: "March 2026: the grid is null", was: `"grid":"1"`, is: `"grid":null`,
			read: func(r *season.Round) string { return fmt.Sprint(len(r.Results), " rows, grid ", len(r.Grid)) }, want: "20 rows, grid 0",
		},
		{
			name: "the grid is empty", was: `"grid":"1"`, is: `"grid":""`,
			read: func(r *season.Round) string { return fmt.Sprint("grid ", len(r.Grid)) }, want: "grid 0",
		},
		{
			name: "the pit lane", was: `"grid":"1"`, is: `"grid":"0"`,
			read: func(r *season.Round) string {
				last := r.Grid[len(r.Grid)-1]
				return fmt.Sprint(last.Driver, " ", last.Position)
			}, want: "max-verstappen 0",
		},
		{
			name: "March 2026: ranked without being classified", was: `"positionText":"20"`, is: `"positionText":"-"`,
			read: func(r *season.Round) string { return fmt.Sprint(r.Results[19].Position, r.Results[19].Outcome) }, want: "0NC",
		},
		{
			name: "March 2025: the time of a driver who retired", was: `"millis":"5525537","time":"+20.795"`, is: `"millis":"","time":"+-1:38:49.328"`,
			read: func(r *season.Round) string { return r.Results[19].Time.String() }, want: "0s",
		},
		{
			name: "2026: the number of the season is not that for life", was: `"permanentNumber":"33"`, is: `"permanentNumber":"3"`,
			read: func(r *season.Round) string { return strconv.Itoa(r.Entry("max-verstappen").Number) }, want: "1",
		},
		{name: "points that are no number", was: `"points":"26"`, is: `"points":"NaN"`, want: `result: results of 2024, round 1, row 1: points "NaN" is not a number`},
		{name: "infinite points", was: `"points":"26"`, is: `"points":"Inf"`, want: `result: results of 2024, round 1, row 1: points "Inf" is not a number`},
		{name: "points with a comma", was: `"points":"18"`, is: `"points":"18,5"`, want: `result: results of 2024, round 1, row 2: points "18,5" is not a number`},
		{name: "points of another type", was: `"points":"26"`, is: `"points":[26]`, want: `result: results of 2024, round 1, row 1: points "[26]" is not a number`},
		{name: "laps that are no number", was: `"laps":"57"`, is: `"laps":"5 7"`, want: `result: results of 2024, round 1, row 1: laps "5 7" is not a number`},
		{name: "a place on the grid that is none", was: `"grid":"1"`, is: `"grid":"pole"`, want: `result: results of 2024, round 1, row 1: grid "pole" is not a number`},
		{name: "a position that is none", was: `"positionText":"1"`, is: `"positionText":"first"`, want: `result: results of 2024, round 1, row 1: position "first" is neither a place nor a letter of [- D E F N R W]`},
		{name: "a fastest lap that is no time", was: `"FastestLap":{"rank":"1","lap":"39","Time":{"time":"1:32.608"}`, is: `"FastestLap":{"rank":"1","lap":"39","Time":{"time":"1:3a.608"}`, want: `fastest laps: results of 2024, round 1, row 1: time "1:3a.608" is no time`},
		{name: "a driver whom nobody knows", was: `"driverId":"max_verstappen"`, is: `"driverId":"jos_verstappen"`, want: `result: results of 2024, round 1, row 1: driver "jos_verstappen" of 2024 is not known: add the line "driver jos_verstappen = ID" to builder/source/jolpica/equivalents.txt`},
		{name: "a driver of another type", was: `"Driver":{"driverId":"max_verstappen"`, is: `"Driver":"max_verstappen","Other":{"driverId":"max_verstappen"`, want: `result: results of 2024, round 1, row 1: driver "" of 2024 is not known`},
		{name: "a day that is none", target: "races.json", was: `"date":"2024-03-02"`, is: `"date":"2024-02-30"`, want: `start: races of 2024, round 1, parsing time "2024-02-30": day out of range`},
		{name: "the hour of a session", target: "races.json", was: `"time":"11:30:00Z"`, is: `"time":"half past eleven"`, want: `sessions: races of 2024, round 1, practice-1: parsing time`},
		{name: "a circuit whom nobody knows", target: "races.json", was: `"circuitId":"bahrain"`, is: `"circuitId":"sakhir"`, want: `calendar: races of 2024, round 1, circuit "sakhir" of 2024 is not known: add the line`},
	} {
		if test.target == "" {
			test.target = "/results.json"
		}
		t.Run(test.name, func(t *testing.T) {
			api := sourcetest.Jolpica(t)
			changed := false
			api.Rewrite(func(target, body string) string {
				if !changed && strings.Contains(target, test.target) {
					next := strings.Replace(body, test.was, test.is, 1)
					changed = next != body
					return next
				}
				return body
			})
			d, err := fetched(t, api, 2024, 2024)
			must.Require(t, changed, "the recording has no %s", test.was)
			must.Do(t, err)
			first := &d.Facts.Seasons[0].Rounds[0]
			if part, reason, _ := strings.Cut(test.want, ": "); test.read == nil {
				reasons := make(map[season.Section]string)
				for _, u := range d.Unread {
					if u.Year != 2024 || u.GrandPrix != "bahrain" {
						t.Errorf("unread: %+v, want the first round alone", u)
					}
					reasons[u.Section] = u.Reason
				}
				if !strings.HasPrefix(reasons[season.Section(part)], reason) || reason == "" {
					t.Errorf("got %q, want the %s with %q", reasons, part, reason)
				}
				if len(d.Facts.Seasons[0].Rounds) != 24 || len(d.Facts.Seasons[0].Rounds[1].Results) == 0 || len(first.Qualifying) == 0 {
					t.Error("other blocks are left out")
				}
				must.Hold(t, (len(first.Results) == 0) == (part == "result"), "%d rows of the result", len(first.Results))
				return
			}
			must.Equal(t, "test.read(&d.Facts.Seasons[0].Rounds[0])", test.want, test.read(&d.Facts.Seasons[0].Rounds[0]))
		})
	}
}

// TestNamesThatActOnAReader: a name that acts on the screen of a reader is left out, and the reason names it.
func TestNamesThatActOnAReader(t *testing.T) {
	for was, is := range map[string]string{
		`"givenName":"Max"`:                    `"givenName":"<b>Max"`,
		`"familyName":"Verstappen"`:            `"familyName":"Ver\u001b[2Jstappen"`,
		`"raceName":"Bahrain Grand Prix"`:      `"raceName":"Bahrain Grand Prix\u0007"`,
		`"circuitName":"Bahrain International`: `"circuitName":"\u202eBahrain International`,
		`"name":"Red Bull"`:                    `"name":"Red Bull<script>"`,
	} {
		api, changed := sourcetest.Jolpica(t), false
		api.Rewrite(func(_, body string) string {
			next := strings.ReplaceAll(body, was, is)
			changed = changed || next != body
			return next
		})
		d := must.Get(fetched(t, api, 2024, 2024))(t)
		if !changed || len(d.Unread) == 0 || strings.ContainsAny(fmt.Sprint(d.Facts.Drivers, d.Facts.Teams, d.Facts.Circuits, d.Facts.Seasons), "<\a\x1b\u202e") {
			t.Errorf("%s: changed %t, unread %+v, want the name to be left out", is, changed, d.Unread)
		}
	}
}

// disputed compares theirs as a check-only document with ours and returns the contradictions, one line
// for each driver. It fails the test if the document changes anything.
func disputed(t testing.TB, ours, theirs season.Facts, from, to int, now time.Time) []string {
	t.Helper()
	out := must.Get(assemble.Assemble(assemble.Input{
		Current: ours, Now: now,
		Documents: []assemble.Document{{Source: "compared", From: from, To: to, Facts: theirs, Kind: assemble.CheckOnly}},
		Decided:   func(int, season.GrandPrixID) assemble.Decided { return assemble.Decided{} },
	}))(t)
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
