package check_test

import (
	"bytes"
	"maps"
	"strings"
	"testing"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/almanac/almanactest"
	"gridcast/builder/archive"
	"gridcast/builder/check/checktest"
	"gridcast/builder/ledger"
	"gridcast/builder/render"
	"gridcast/schemas/catalog"
	"gridcast/snapshots/blob/memblob"
)

// rendered is a version of the embedded seasons as of 1 July 2024, with the pick and the
// verified result of the Austrian round, session 2024011.
func rendered(t *testing.T) (catalog.Known, map[string][]byte) {
	t.Helper()
	facts, err := archive.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	opened := time.Date(2024, 6, 29, 15, 0, 0, 0, time.UTC)
	start := time.Date(2024, 6, 30, 13, 0, 0, 0, time.UTC)
	now := time.Date(2024, 7, 1, 12, 0, 0, 0, time.UTC)
	l, err := ledger.Open(t.Context(), memblob.New(), ledger.Simulated, opened, "test", "")
	if err != nil {
		t.Fatal(err)
	}
	view := facts.AsOf(now)
	austria, _ := view.Round(2024, "austria")
	for _, event := range []func(*ledger.Fold) (time.Time, ledger.Event){
		func(s *ledger.Fold) (time.Time, ledger.Event) {
			keys, err := ledger.AssignKeys(s, view.Seasons)
			if err != nil {
				t.Fatal(err)
			}
			return opened, ledger.Event{Type: ledger.KeysAssigned, Keys: keys}
		},
		func(*ledger.Fold) (time.Time, ledger.Event) {
			pick := ledger.Pick{P1: "max-verstappen", P2: "lando-norris", P3: "george-russell", WinProbability: 0.5, Model: "test"}
			return opened, ledger.Freeze(2024011, pick, start, true)
		},
		func(s *ledger.Fold) (time.Time, ledger.Event) {
			session, _ := s.Record(2024011)
			return now, session.Verify(almanac.Rows(austria.Results), start, "")
		},
	} {
		at, e := event(l.Fold())
		if _, err := almanactest.Fresh(t, l).Append(t.Context(), at, "test", func(*ledger.Fold) ([]ledger.Event, error) { return []ledger.Event{e}, nil }); err != nil {
			t.Fatal(err)
		}
	}
	a := almanac.Join(view, l.Fold())
	bodies := map[string][]byte{}
	for _, v := range render.Variants(a) {
		if bodies[v.Path()], err = render.Body(a, v, now); err != nil {
			t.Fatal(err)
		}
	}
	return render.Known(a), bodies
}

func nothing(string) bool    { return false }
func everything(string) bool { return true }

func TestWholeVersionPasses(t *testing.T) {
	known, bodies := rendered(t)
	if err := checktest.Bodies(known, bodies, nothing).Err(); err != nil {
		t.Error(err)
	}
}

// Each way in which a version can contradict itself is refused, with a word of what and where.
func TestContradictions(t *testing.T) {
	if testing.Short() {
		t.Skip("short: checks a version many times")
	}
	known, whole := rendered(t)
	for _, c := range []struct {
		what, path, old, new, want string
	}{
		{"the calendar has another winner", "calendar/2024", `"session_key":2024011,"gp_name":"Austrian Grand Prix","circuit":"Red Bull Ring","locality":"Spielberg","country":"Austria","date":"2024-06-30","date_start":"2024-06-30T13:00:00+00:00","sprint":true,"status":"finished","winner":"RUS"`, `"session_key":2024011,"gp_name":"Austrian Grand Prix","circuit":"Red Bull Ring","locality":"Spielberg","country":"Austria","date":"2024-06-30","date_start":"2024-06-30T13:00:00+00:00","sprint":true,"status":"finished","winner":"VER"`, `was won by "RUS", the calendar says "VER"`},
		{"a finished round without a winner", "calendar/2023", `"status":"finished","winner":"VER"`, `"status":"finished"`, `is finished with winner ""`},
		{"a session key used twice", "calendar/2024", `"session_key":2024012`, `"session_key":2024011`, "session key 2024011"},
		{"a pick of an unknown session", "calendar/2024", `"session_key":2024011`, `"session_key":2024999`, "session key 2024011 is not in the calendar"},
		{"standings out of order", "standings/drivers/2023", `"points":575`, `"points":1`, "points behind 1"},
		{"positions out of order", "standings/constructors/2023", `"position":2`, `"position":9`, "stands after position 9"},
		{"a code twice in the standings", "standings/drivers/2023", `"driver":"PER"`, `"driver":"VER"`, "the code VER stands twice"},
		{"a code twice on the grid", "drivers", `"driver":"OCO"`, `"driver":"GAS"`, "share the code GAS"},
		{"another winner than p1", "predictions/2024", `"podium":{"p1":"VER"`, `"podium":{"p1":"SAI"`, "podium"},
		{"the list and the session differ", "predictions/session/2024011", `"confidence_pct":50.0`, `"confidence_pct":51.0`, "predictions/session/2024011"},
		{"accuracy of a season", "accuracy/2024", `"races_evaluated":1`, `"races_evaluated":2`, "accuracy/2024"},
		{"accuracy of all seasons", "accuracy/all", `"winner_hit_rate_pct":0.0`, `"winner_hit_rate_pct":100.0`, "accuracy/all"},
		{"a coming race is missing", "next-race", `"start":"2024-07-07T14:00:00+00:00"`, `"start":"2024-07-07T14:00:01+00:00"`, "British Grand Prix"},
	} {
		bodies := maps.Clone(whole)
		bodies[c.path] = bytes.Replace(bodies[c.path], []byte(c.old), []byte(c.new), 1)
		if bytes.Equal(bodies[c.path], whole[c.path]) {
			t.Errorf("%s: %q is not in %s: %s", c.what, c.old, c.path, whole[c.path])
			continue
		}
		err := checktest.Bodies(known, bodies, everything).Err()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error that says %q", c.what, err, c.want)
		}
	}
}

func TestSchemaIsCheckedUnlessTrusted(t *testing.T) {
	known, bodies := rendered(t)
	bodies["drivers"] = bytes.Replace(bodies["drivers"], []byte(`"number":`), []byte(`"numero":`), 1)
	if err := checktest.Bodies(known, bodies, nothing).Err(); err == nil || !strings.Contains(err.Error(), "drivers") {
		t.Errorf("got %v, want an error about drivers", err)
	}
	bodies["next-race"] = []byte(`{"rounds":[{"start":"2024-07-07T14:00:00+00:00","parts":["{","",""]}]}`)
	if err := checktest.Bodies(known, bodies, func(path string) bool { return path != "next-race" }).Err(); err == nil || !strings.Contains(err.Error(), "next-race") {
		t.Errorf("got %v, want an error about next-race", err)
	}
}

// Of a list that has passed, what is new is checked: a record, where it stands or alone, and what is around them.
func TestNewRecordOfAList(t *testing.T) {
	known, whole := rendered(t)
	if err := checktest.Bodies(known, whole, nothing).Err(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, old, new string }{
		{"results/2024", `"gp_name":"Austrian Grand Prix"`, `"gp_name":7`},
		{"weekends/2024", `"gp_name":"Austrian Grand Prix"`, `"gp_name":7`},
		{"results/2024", `"meta":{"api"`, `"meta":{"ipa"`},
		{"results/2024", `},{"session_key":2024011`, `}, {"session_key":2024011`},
	} {
		bodies := maps.Clone(whole)
		for _, path := range []string{c.path, strings.Replace(c.path, "2024", "session/2024011", 1)} {
			bodies[path] = bytes.Replace(bodies[path], []byte(c.old), []byte(c.new), 1)
		}
		if bytes.Equal(bodies[c.path], whole[c.path]) {
			t.Fatalf("%q is not in %s", c.old, c.path)
		}
		if faults := checktest.Bodies(known, bodies, nothing); faults[c.path] == nil {
			t.Errorf("%s with %s: got %v, want an error about it", c.path, c.new, faults)
		}
	}
}

func TestMissingVariant(t *testing.T) {
	known, bodies := rendered(t)
	delete(bodies, "calendar/2015")
	if err := checktest.Bodies(known, bodies, nothing).Err(); err == nil || !strings.Contains(err.Error(), "calendar/2015: was not rendered") {
		t.Errorf("got %v, want an error about calendar/2015", err)
	}
}
