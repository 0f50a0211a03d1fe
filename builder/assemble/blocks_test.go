package assemble_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gridcast/builder/archive/archivetest"
	"gridcast/builder/assemble"
	"gridcast/builder/season"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
)

// TestFields: every field of a round but its Grand Prix belongs to one block and has a name.
func TestFields(t *testing.T) {
	fields := reflect.TypeFor[season.Round]()
	for i := range fields.NumField() {
		field := fields.Field(i)
		if field.Name == "GrandPrix" || field.Name == "AssumedHour" { // which follows from the other facts
			continue
		}
		var before, after season.Round
		value := reflect.ValueOf(&after).Elem().Field(i)
		switch value.Interface().(type) {
		case int:
			value.SetInt(1)
		case float64:
			value.SetFloat(1)
		case string, season.CircuitID:
			value.SetString("x")
		case bool:
			value.SetBool(true)
		case time.Time:
			value.Set(reflect.ValueOf(time.Unix(0, 0).UTC()))
		case [4][]season.TimedLap:
			value.Index(3).Set(reflect.ValueOf([]season.TimedLap{{}}))
		default:
			value.Set(reflect.MakeSlice(field.Type, 1, 1))
		}
		name := strings.ToLower(strings.TrimSpace(spaced(field.Name)))
		if got := assemble.ChangedFields(&before, &after); !slices.Equal(got, []string{name}) {
			t.Errorf("a round with another %s: changed fields are %q, want %q", field.Name, got, name)
		}
		var has []assemble.Block
		for _, b := range assemble.Blocks() {
			if assemble.Has(b, &after) {
				has = append(has, b)
				part := assemble.Only(b, &after)
				if assemble.Same(b, &before, &after) || !assemble.Same(b, &part, &after) || !assemble.Same(b, &after, &before) {
					t.Errorf("a round with another %s: Same and Part do not see it in block %s", field.Name, b)
				}
			}
		}
		if len(has) != 1 {
			t.Errorf("a round with another %s has blocks %v, want one", field.Name, has)
		}
	}
}

// spaced puts a space before each capital letter.
func spaced(name string) string {
	var b strings.Builder
	for _, r := range name {
		if 'A' <= r && r <= 'Z' {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// TestLinesOfSessions: a block of several sessions has one line for each driver.
func TestLinesOfSessions(t *testing.T) {
	var r season.Round
	r.Practice[0] = []season.TimedLap{{Driver: "ann", Time: 80 * time.Second}, {Driver: "bob", Time: 81 * time.Second}}
	r.Practice[2] = []season.TimedLap{{Driver: "ann", Time: 79 * time.Second}}
	want := []assemble.Line{{About: "ann", Is: "practice 1 1m20s; practice 3 1m19s"}, {About: "bob", Is: "practice 1 1m21s"}}
	must.Equal(t, "lines", want, assemble.Diff(assemble.Practice, &season.Round{}, &r))
	r.Qualifying = []season.QualifyingRow{
		{Driver: "ann", Position: 1, Segments: [3]time.Duration{82 * time.Second, 81 * time.Second, 80 * time.Second}},
		{Driver: "bob", Position: 2, Segments: [3]time.Duration{82 * time.Second, 81 * time.Second}},
		{Driver: "cid", Position: 3, Time: 83 * time.Second},
		{Driver: "dan"},
	}
	want = []assemble.Line{{About: "ann", Is: "P1, 1m20s"}, {About: "bob", Is: "P2, 1m21s"}, {About: "cid", Is: "P3, 1m23s"}, {About: "dan", Is: "unplaced"}}
	cancelled := season.Round{Sessions: []season.Session{{Kind: season.Practice1, Cancelled: true}}}
	must.Equal(t, "lines of sessions", []assemble.Line{{About: "practice-1", Is: "cancelled"}}, assemble.Diff(assemble.Sessions, &season.Round{}, &cancelled))
	must.Equal(t, "lines of qualifying", want, assemble.Diff(assemble.Qualifying, &season.Round{}, &r))
	said := make(map[string]string)
	whole := newSmall().round
	whole.Street, whole.Grid[4].Penalty, whole.Grid[5].Back, whole.Grid[3].Position = true, 10, true, 0
	whole.Results[5] = fay(season.DidNotFinish, 45)
	whole.Results[5].Reason, whole.SprintResults[5].Position = "Engine", 0
	for _, b := range assemble.Blocks() {
		said[string(b)+", new"] = fmt.Sprintf("%+v", assemble.Diff(b, &season.Round{}, whole))
		said[string(b)+", lost"] = fmt.Sprintf("%+v", assemble.Diff(b, whole, &season.Round{}))
	}
	golden.Inputs(t, "testdata/lines.txt", said)
}

// TestPortraits: a renamed driver keeps the portrait, a new driver gets one, and drivers outside the
// archive get none.
func TestPortraits(t *testing.T) {
	day := time.Date(2026, 3, 8, 0, 0, 0, 0, time.UTC)
	archive := func(drivers ...season.DriverID) season.Facts {
		f := season.Facts{
			Drivers: make(map[season.DriverID]season.Driver), Teams: map[season.TeamID]season.Team{"rosso": {ID: "rosso", Name: "Rosso"}},
			Circuits: map[season.CircuitID]season.Circuit{"ring": {ID: "ring", Name: "Ring"}},
		}
		round := season.Round{Number: 1, GrandPrix: "austria", Name: "Austrian Grand Prix", Circuit: "ring", Date: day, Start: day.Add(13 * time.Hour)}
		for i, id := range drivers {
			f.Drivers[id] = season.Driver{ID: id, Name: string(id), FirstName: "A", LastName: string(id), Abbreviation: "ABC", Country: "ITA"}
			round.Entries = append(round.Entries, season.Entry{Driver: id, Team: "rosso", Number: i + 1})
		}
		f.Seasons = []season.Season{{Year: 2026, Rounds: []season.Round{round}}}
		return f
	}
	const template = "https://images.example/{driver}.png"
	old := archive("andrea-kimi-antonelli", "lando-norris")
	old.Headshots = season.Headshots{Template: template, Drivers: []season.DriverID{"andrea-kimi-antonelli"}}
	unraced := archive("kimi-antonelli", "arvid-lindblad")
	unraced.Seasons[0].Rounds[0].Entries = unraced.Seasons[0].Rounds[0].Entries[:1]
	for _, test := range []struct {
		name    string
		current season.Facts
		wanted  *season.Headshots
		want    season.Headshots
	}{
		{"from the archive in use", old, nil, season.Headshots{Template: template, Drivers: []season.DriverID{"kimi-antonelli"}}},
		{
			"from the settings", old,
			&season.Headshots{Template: "https://other.example/{code}.png", Drivers: []season.DriverID{"kimi-antonelli", "andrea-kimi-antonelli", "arvid-lindblad", "lando-norris"}},
			season.Headshots{Template: "https://other.example/{code}.png", Drivers: []season.DriverID{"kimi-antonelli", "lando-norris"}},
		},
		{
			"for a new driver", archive("kimi-antonelli", "arvid-lindblad"),
			&season.Headshots{Template: template, Drivers: []season.DriverID{"arvid-lindblad"}},
			season.Headshots{Template: template, Drivers: []season.DriverID{"arvid-lindblad"}},
		},
		{
			"of a driver in no season", unraced, &season.Headshots{Template: template, Drivers: []season.DriverID{"arvid-lindblad", "kimi-antonelli"}},
			season.Headshots{Template: template, Drivers: []season.DriverID{"kimi-antonelli"}},
		},
		{"none", archive("kimi-antonelli"), nil, season.Headshots{}},
		{"removed by the settings", old, &season.Headshots{}, season.Headshots{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			out := must.Get(assemble.Assemble(assemble.Input{
				Current: test.current, Now: day, Headshots: test.wanted,
				Aliases: map[season.DriverID]season.DriverID{"andrea-kimi-antonelli": "kimi-antonelli"},
				Decided: func(int, season.GrandPrixID) assemble.Decided { return assemble.Decided{} },
			}))(t)
			if got := out.Facts.Headshots; got.Template != test.want.Template || !slices.Equal(got.Drivers, test.want.Drivers) {
				t.Errorf("portraits are %+v, want %+v", got, test.want)
			}
		})
	}
}

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
			out := must.Get(assemble.Assemble(assemble.Input{
				Current: test.ours, Now: time.Date(2024, 1, 10, 0, 0, 0, 0, time.UTC),
				Documents: []assemble.Document{{Source: "herald", From: 2024, To: 2024, Facts: test.theirs, Kind: test.kind}},
				Decided: func(_ int, gp season.GrandPrixID) assemble.Decided {
					return assemble.Decided{Postponed: gp == test.cancelled}
				},
			}))(t)
			var got []line
			for _, c := range out.Disputed {
				if c.Block != assemble.Calendar || c.ID == "" || len(c.Lines) != 1 {
					t.Errorf("disputed: got %+v, want one line about the calendar", c)
					continue
				}
				got = append(got, line{c.GrandPrix, c.Lines[0]})
			}
			must.Equal(t, "disputed", test.want, got)
			if n := len(out.Facts.Seasons[0].Rounds); n != test.rounds {
				t.Errorf("the season has %d rounds, want %d", n, test.rounds)
			}
		})
	}
}

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
		{"one session", before, drop(season.Practice1, season.Sprint, season.SprintQualifying), false, []season.SessionKind{season.Practice1, season.Sprint, season.SprintQualifying}},
		{"no practice", before, drop(season.Practice1), true, []season.SessionKind{season.Practice1}},
		{"after the race", before.AddDate(0, 0, 9), drop(season.Practice1, season.Qualifying), true, []season.SessionKind{season.Practice1}},
	} {
		for range 2 { // the second time nothing changes
			out := must.Get(assemble.Assemble(assemble.Input{
				Current: facts, Now: step.now, Decided: undecided,
				Documents: []assemble.Document{{Source: "f1db", From: 2024, To: 2024, Facts: world(step.theirs), Kind: assemble.Full}},
			}))(t)
			facts = out.Facts
		}
		r := roundOf(t, facts, 2024, "china")
		for _, s := range []season.SessionKind{season.Practice1, season.Sprint, season.SprintQualifying, season.Qualifying} {
			if got, want := r.Cancelled(s), slices.Contains(step.cancelled, s); got != want {
				t.Errorf("%s: %s is cancelled: %t, want %t", step.what, s, got, want)
			}
		}
		if !slices.IsSortedFunc(r.Sessions, func(a, b season.Session) int { return a.Start.Compare(b.Start) }) {
			t.Errorf("%s: the sessions are out of order: %+v", step.what, r.Sessions)
		}
		if r.HasSprint() != step.sprint {
			t.Errorf("%s: a sprint: %t, want %t", step.what, r.HasSprint(), step.sprint)
		}
	}
	for kind, want := range map[assemble.Kind][]season.Session{ // a sprint without a session of its own; people enter no whole weekends
		assemble.Full: {{Kind: season.Sprint, Date: before.AddDate(0, 0, 1), Cancelled: true}}, assemble.Manual: {},
	} {
		out := must.Get(assemble.Assemble(assemble.Input{
			Current: world(func(r *season.Round) { r.Sessions = r.Sessions[:1] }), Now: before, Decided: undecided,
			Documents: []assemble.Document{{Source: "f1db", From: 2024, To: 2024, Facts: world(drop(season.Sprint, season.SprintQualifying)), Kind: kind}},
		}))(t)
		got := slices.DeleteFunc(slices.Clone(roundOf(t, out.Facts, 2024, "china").Sessions), func(s season.Session) bool { return s.Kind != season.Sprint })
		must.Equal(t, fmt.Sprintf("kind %d: the sprint", kind), want, got)
	}
}
