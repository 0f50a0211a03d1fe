package almanac_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/builder/testseason"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
)

// deciding is a history on which a test makes decisions.
type deciding struct {
	*testseason.Season
	t *testing.T
}

func (w deciding) wantAllowed(what string, at time.Time, session int64, want ...almanac.Decision) {
	w.t.Helper()
	if got := w.Round(at, session).Allowed(); !slices.Equal(got, want) {
		w.t.Errorf("%s: allowed %v, want %v", what, got, want)
	}
}

const (
	verify    = almanac.Verify
	correct   = almanac.Correct
	postpone  = almanac.Postpone
	cancel    = almanac.Cancel
	move      = almanac.Move
	reinstate = almanac.Reinstate
	release   = almanac.Release
)

func TestWhatIsAllowedWhen(t *testing.T) {
	w := deciding{testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled}), t}
	before := testseason.Belgium.Start.Add(-time.Hour)
	w.wantAllowed("before the start", before, testseason.Belgium.Key, postpone, cancel, move)
	w.wantAllowed("while it runs", testseason.Belgium.Start.Add(time.Minute), testseason.Belgium.Key, correct, postpone, cancel)
	w.wantAllowed("when it is over", testseason.Belgium.Over(), testseason.Belgium.Key, verify, correct, postpone, cancel)
	w.wantAllowed("vouched for by the archive", before, 2024001, correct)

	w.Decide(before, testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) { return r.Postpone("fog") })
	w.wantAllowed("postponed", before, testseason.Belgium.Key, cancel, reinstate)
	w.wantAllowed("postponed, whatever the source says", testseason.Belgium.Over(), testseason.Belgium.Key, cancel, reinstate)
	w.Decide(before, testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) { return r.Cancel("more fog") })
	w.wantAllowed("cancelled", before, testseason.Belgium.Key, reinstate)
	w.Decide(before, testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) { return r.Reinstate(time.Time{}, "sun") })
	w.wantAllowed("reinstated", before, testseason.Belgium.Key, postpone, cancel, move)

	w.Decide(before, testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) {
		return r.Move(testseason.Belgium.Start.Add(time.Hour), "storm")
	})
	w.wantAllowed("moved", before, testseason.Belgium.Key, postpone, cancel, move, release)
	w.Decide(before, testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) { return r.Release("the source has it now") })
	w.wantAllowed("released", before, testseason.Belgium.Key, postpone, cancel, move)
	if got := w.Round(before, testseason.Belgium.Key).Start; !got.Equal(testseason.Belgium.Start) {
		t.Errorf("released, it starts at %s, want %s, as the source says", got, testseason.Belgium.Start)
	}

	w.Decide(testseason.Belgium.Over(), testseason.Belgium.Key, (*almanac.Round).Verify)
	w.wantAllowed("verified", testseason.Belgium.Over(), testseason.Belgium.Key, correct)
}

func TestRefusalsSayWhatIsAllowed(t *testing.T) {
	w := deciding{testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled}), t}
	err := w.Try(testseason.Belgium.Start.Add(-time.Hour), testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) {
		return r.Reinstate(testseason.Belgium.Start.Add(time.Hour), "why not")
	})
	must.Fail(t, "reinstate what is scheduled", err, ledger.ErrUnchanged)
	golden.Sentence(t, "reinstate what is scheduled", err)
	golden.Sentence(t, "correct without a reason", w.Try(testseason.Belgium.Over(), testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) {
		return r.Correct(slices.Clone(r.Source()[:1]), nil, "")
	}))
	golden.Sentence(t, "correct without rows", w.Try(testseason.Belgium.Over(), testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) {
		return r.Correct(nil, nil, "x")
	}))
	golden.Sentence(t, "verify without a result", w.Try(testseason.Belgium.Start.Add(time.Hour), testseason.Belgium.Key, (*almanac.Round).Verify))
	for what, tt := range map[string]struct {
		at      time.Time
		session int64
		decide  func(*almanac.Round) ([]ledger.Event, error)
		want    error
	}{
		"a round that nobody knows":  {testseason.Belgium.Over(), 2024099, (*almanac.Round).Verify, ledger.ErrUnknownSession},
		"verify what is vouched for": {testseason.Belgium.Over(), 2024001, (*almanac.Round).Verify, almanac.ErrVouched},
		"cancel what is vouched for": {testseason.Belgium.Over(), 2024001, func(r *almanac.Round) ([]ledger.Event, error) { return r.Cancel("x") }, almanac.ErrVouched},
		"correct to what it is":      {testseason.Belgium.Over(), 2024001, func(r *almanac.Round) ([]ledger.Event, error) { return r.Correct(r.Source(), nil, "x") }, ledger.ErrUnchanged},
		"move what has started": {testseason.Belgium.Over(), testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) {
			return r.Move(testseason.Belgium.Over().Add(time.Hour), "x")
		}, ledger.ErrStarted},
		"move into the past": {testseason.Belgium.Start.Add(-time.Hour), testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) {
			return r.Move(testseason.Belgium.Start.Add(-2*time.Hour), "x")
		}, ledger.ErrPast},
		"with a clock that is behind": {testseason.Belgium.Opened.Add(-time.Hour), testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) { return r.Cancel("x") }, ledger.ErrOlder},
		"move to a part of a second": {testseason.Belgium.Start.Add(-time.Hour), testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) {
			return r.Move(testseason.Belgium.Over().Add(time.Millisecond), "x")
		}, ledger.ErrNoStart},
	} {
		head := w.Ledger.Head()
		must.Fail(t, what, w.Try(tt.at, tt.session, tt.decide), tt.want)
		if w.Ledger.Head() != head {
			t.Errorf("%s: something was written", what)
		}
	}
	golden.Sentence(t, "with a clock that is behind", w.Try(testseason.Belgium.Opened.Add(-time.Hour), testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) { return r.Cancel("x") }))
	w.Decide(testseason.Belgium.Start.Add(-time.Hour), testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) {
		return r.Move(testseason.Belgium.Over().AddDate(0, 0, 1), "fog")
	})
	w.Decide(testseason.Belgium.Over(), testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) { return r.Cancel("fog") })
	golden.Sentence(t, "reinstate without a start after that of the calendar", w.Try(testseason.Belgium.Over(), testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) {
		return r.Reinstate(time.Time{}, "sun")
	}))
	w.Decide(testseason.Belgium.Over(), 2024012, (*almanac.Round).Verify)
	golden.Sentence(t, "verify again", w.Try(testseason.Belgium.Over(), 2024012, (*almanac.Round).Verify))
}

// TestPostponedDay: the decision names the former start, and none of a round of unknown hour.
func TestPostponedDay(t *testing.T) {
	for _, start := range []time.Time{{}, startOf(1)} {
		w := newWorld(t, preseason, nil).edit(func(rounds []season.Round) { rounds[0].Start = start })
		events := must.Get(w.Round(preseason, 2025001).Postpone("fog"))(t)
		must.Equal(t, "the former start", start, events[len(events)-1].Was)
	}
}

// TestCorrectionAndSprint: a correction brings the sprint that it names, else the verified one, else the source's.
func TestCorrectionAndSprint(t *testing.T) {
	for name, tt := range map[string]struct {
		opened time.Time
		sprint order
		want   season.DriverID // the winner
	}{
		"vouched for":                 {opened: startOf(2), want: "bob"},
		"vouched for, another sprint": {opened: startOf(2), sprint: order{"dan"}, want: "dan"},
		"not verified":                {opened: preseason, want: "bob"},
	} {
		w := newWorld(t, tt.opened, order{"ann", "bob", "cay", "dan"})
		w.edit(func(rounds []season.Round) {
			rounds[0].Sprint, rounds[0].SprintResults = true, order{"bob", "ann"}.results()
		})
		var sprint []ledger.Row
		if tt.sprint != nil {
			sprint = almanac.Rows(tt.sprint.results())
		}
		r := w.Round(startOf(3), 2025001)
		if r.Vouched() {
			_, err := r.Correct(r.Valid(), nil, "a plank")
			must.Fail(t, name+": the race alone, unchanged", err, ledger.ErrUnchanged)
			_, err = r.Correct(r.Valid(), r.Sprint(), "a plank")
			must.Fail(t, name+": both unchanged", err, ledger.ErrUnchanged)
			must.Get(r.Correct(r.Valid(), r.Sprint()[:1], "a plank"))(t)
		}
		events := must.Get(r.Correct(almanac.Rows(order{"bob", "ann", "cay", "dan"}.results()), sprint, "a plank"))(t)
		must.Equal(t, name+": the winner of the sprint", tt.want, events[0].Result.Sprint[0].Driver)
	}
	w := newWorld(t, preseason, order{"ann", "bob", "cay", "dan"})
	sprint := func(rows []season.Result) {
		w.edit(func(rounds []season.Round) { rounds[0].Sprint, rounds[0].SprintResults = true, rows })
	}
	sprint(order{"bob", "ann"}.results())
	w.Append(startOf(2), func(*ledger.Fold) ([]ledger.Event, error) { return w.Round(startOf(2), 2025001).Verify() })
	for _, step := range []struct {
		rows    []season.Result
		differs bool
	}{{order{"bob", "ann"}.results(), false}, {order{"ann", "bob"}.results(), true}, {nil, false}} {
		sprint(step.rows)
		must.Equal(t, fmt.Sprintf("a source with %d other rows of the sprint differs", len(step.rows)), step.differs, w.Round(startOf(2), 2025001).Differs())
	}
}

func TestLists(t *testing.T) {
	w := deciding{testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled}), t}
	if got := w.Almanac(testseason.Belgium.Start).Waiting(); len(got) != 3 || got[2].Session != testseason.Belgium.Key {
		t.Errorf("at lights out %d results wait, want those of Britain and Hungary and the race itself", len(got))
	}
	w.Decide(testseason.Belgium.Over(), 2024012, (*almanac.Round).Verify)
	w.Decide(testseason.Belgium.Over().Add(time.Hour), testseason.Belgium.Key, (*almanac.Round).Verify)
	a := w.Almanac(testseason.Belgium.Over().Add(time.Hour))
	if got := a.Waiting(); len(got) != 1 || got[0].Session != 2024013 {
		t.Errorf("%d results wait, want that of Hungary", len(got))
	}
	if got := a.Verified(); len(got) != 2 || got[0].Session != testseason.Belgium.Key || got[1].Session != 2024012 {
		t.Errorf("verified %d, want Belgium, decided last, and Britain", len(got))
	}
	must.Equal(t, "rounds that differ from the source", 0, len(a.Differing()))
	w.Decide(testseason.Belgium.Over().Add(time.Hour), 2024013, (*almanac.Round).Verify)
	must.Equal(t, "the last decided, of two at one instant", testseason.Belgium.Key, w.Almanac(testseason.Belgium.Over().Add(time.Hour)).Verified()[0].Session)
	_, err := a.Round(1999001)
	must.Fail(t, "a round of an unknown season", err, ledger.ErrUnknownSession)
	if got := a.Rounds(0); len(got) != 15 || got[0].Year != 2024 {
		t.Errorf("the current season has %d rounds, want the 15 of 2024", len(got))
	}
}

// TestDecisionsTakenBack: every way to put a round off, before and after its start, with a pick and without one, can be taken back
// until a result counts: the race can be held at a new start, or at the start that it had, and then verified. A pick that
// was frozen before that start counts.
func TestDecisionsTakenBack(t *testing.T) {
	start := testseason.Belgium.Start
	off := map[string][]func(*almanac.Round) ([]ledger.Event, error){
		"postponed":             {func(r *almanac.Round) ([]ledger.Event, error) { return r.Postpone("fog") }},
		"cancelled":             {func(r *almanac.Round) ([]ledger.Event, error) { return r.Cancel("fog") }},
		"postponed, cancelled":  {func(r *almanac.Round) ([]ledger.Event, error) { return r.Postpone("fog") }, func(r *almanac.Round) ([]ledger.Event, error) { return r.Cancel("fog") }},
		"cancelled, reinstated": {func(r *almanac.Round) ([]ledger.Event, error) { return r.Cancel("fog") }, func(r *almanac.Round) ([]ledger.Event, error) { return r.Reinstate(start.AddDate(0, 0, 1), "dry") }, func(r *almanac.Round) ([]ledger.Event, error) { return r.Cancel("fog") }},
		"moved, cancelled":      {func(r *almanac.Round) ([]ledger.Event, error) { return r.Move(start.Add(time.Hour), "fog") }, func(r *almanac.Round) ([]ledger.Event, error) { return r.Cancel("fog") }},
		"started early":         {func(r *almanac.Round) ([]ledger.Event, error) { return r.Postpone("it is on") }},
	}
	for what, decisions := range off {
		for _, at := range []time.Time{start.Add(-30 * time.Minute), start.Add(time.Minute), testseason.Belgium.Over()} {
			for _, picked := range []string{"", "form", "grid"} {
				for _, back := range []string{"a new start", "the start that it had"} {
					name := fmt.Sprintf("%s at %s, pick on %q, %s", what, at.Format(time.TimeOnly), picked, back)
					w := deciding{testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled}), t}
					if picked != "" {
						w.Decide(start.Add(-time.Hour), testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) {
							pick := ledger.Pick{P1: "max-verstappen", P2: "lando-norris", P3: "charles-leclerc", WinProbability: .5, Model: "m"}
							return []ledger.Event{ledger.Freeze(r.Session, pick, r.Start, picked == "grid")}, nil
						})
					}
					failed := false
					for _, decide := range decisions {
						if err := w.Try(at, testseason.Belgium.Key, decide); err != nil {
							var refused *ledger.RefusedError
							if failed = true; what != "moved, cancelled" || !errors.As(err, &refused) || at.Before(start) {
								t.Errorf("%s: %v", name, err)
							}
							break
						}
					}
					if failed {
						continue // a race that has begun is not moved; the refusal names the way, which the other rows go
					}
					again, after := start, testseason.Belgium.Over().Add(time.Hour)
					if back == "a new start" {
						again = after.Add(time.Hour)
					}
					w.Decide(after, testseason.Belgium.Key, func(r *almanac.Round) ([]ledger.Event, error) { return r.Reinstate(again, "it is held") })
					r := w.Round(after, testseason.Belgium.Key)
					if !r.Start.Equal(again) || r.Off() {
						t.Errorf("%s: it starts at %s and is off: %t", name, r.Start, r.Off())
					}
					if counts := r.Pick != nil; back == "the start that it had" && counts != (picked != "") {
						t.Errorf("%s: the pick counts: %t", name, counts)
					}
					must.Succeed(t, name+": verify", w.Try(again.Add(4*time.Hour), testseason.Belgium.Key, (*almanac.Round).Verify))
				}
			}
		}
	}
}

// rowsOf decides on Belgium and returns the rows of the event by driver, in the form of the ledger file.
func rowsOf(t *testing.T, w *testseason.Season, decide func(*almanac.Round) ([]ledger.Event, error)) map[season.DriverID]string {
	t.Helper()
	w.Decide(testseason.Belgium.Over(), testseason.Belgium.Key, decide)
	files := w.Ledger.Files()
	rows := map[season.DriverID]string{}
	for _, row := range files[len(files)-1].Events[0].Result.Rows {
		text := must.Get(json.Marshal(row))(t)
		rows[row.Driver] = string(text)
	}
	return rows
}

func wantRows(t *testing.T, what string, got map[season.DriverID]string, want map[season.DriverID]string) {
	t.Helper()
	for driver, row := range want {
		if got[driver] != row {
			t.Errorf("%s: %s\n got %s\nwant %s", what, driver, got[driver], row)
		}
	}
}

// A verified result has the whole rows of the source. A correction has its own details; the source
// gives the others, but times and gaps only for drivers whose place is the same in both.
func TestLedgerHasWholeRows(t *testing.T) {
	w := testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled})
	verified := rowsOf(t, w, (*almanac.Round).Verify)
	wantRows(t, "verified", verified, map[season.DriverID]string{
		"lewis-hamilton":  `{"driver":"lewis-hamilton","team":"mercedes","engine":"mercedes","position":1,"points":25,"number":44,"grid":3,"laps":44,"time_ms":4797566}`,
		"oscar-piastri":   `{"driver":"oscar-piastri","team":"mclaren","engine":"mercedes","position":2,"points":18,"number":81,"grid":5,"laps":44,"gap_ms":647}`,
		"george-russell":  `{"driver":"george-russell","team":"mercedes","engine":"mercedes","number":63,"status":"DSQ","grid":6,"laps":44,"reason":"Car underweight"}`,
		"guanyu-zhou":     `{"driver":"guanyu-zhou","team":"kick-sauber","engine":"ferrari","number":24,"status":"DNF","grid":19,"laps":5,"reason":"Hydraulics"}`,
		"charles-leclerc": `{"driver":"charles-leclerc","team":"ferrari","engine":"ferrari","position":3,"points":15,"number":16,"grid":1,"laps":44,"gap_ms":8023}`,
	})

	corrected := rowsOf(t, w, func(r *almanac.Round) ([]ledger.Event, error) {
		rows := almanac.Rows(r.Facts.Results)
		rows[1].Position, rows[1].Points, rows[1].Status = 0, 0, season.Disqualified
		rows[2].Position = 2
		return r.Correct(append(rows[:1:1], append(rows[2:], rows[1])...), nil, "a disqualification")
	})
	wantRows(t, "corrected", corrected, map[season.DriverID]string{
		"lewis-hamilton":  verified["lewis-hamilton"],
		"charles-leclerc": `{"driver":"charles-leclerc","team":"ferrari","engine":"ferrari","position":2,"points":15,"number":16,"grid":1,"laps":44}`,
		"oscar-piastri":   `{"driver":"oscar-piastri","team":"mclaren","engine":"mercedes","number":81,"status":"DSQ","grid":5,"laps":44}`,
		"max-verstappen":  verified["max-verstappen"],
		"guanyu-zhou":     verified["guanyu-zhou"],
	})
}

// A correction before the source has a result has only its own details.
func TestCorrectionAheadOfTheSource(t *testing.T) {
	w := testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled})
	r := w.Round(testseason.Belgium.Start.Add(time.Hour), testseason.Belgium.Key)
	laps := 44
	events := must.Get(r.Correct([]ledger.Row{
		{Driver: "lewis-hamilton", Team: "mercedes", Position: 1, Points: 25, Details: ledger.Details{Laps: &laps, TimeMS: 4797566}},
		{Driver: "george-russell", Team: "mercedes"},
	}, nil, "by hand"))(t)
	text := must.Get(json.Marshal(events[0].Result.Rows))(t)
	want := `[{"driver":"lewis-hamilton","team":"mercedes","position":1,"points":25,"number":44,"laps":44,"time_ms":4797566},` +
		`{"driver":"george-russell","team":"mercedes","number":63}]`
	if strings.TrimSpace(string(text)) != want {
		t.Errorf("got %s, want %s", text, want)
	}
}

// The details of a verified row stay when the source changes them; a missing one comes from the source.
func TestVerifiedDetailsStay(t *testing.T) {
	w := testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled})
	r := w.Round(testseason.Belgium.Over(), testseason.Belgium.Key)
	rows := r.WithDetails(almanac.Rows(r.Facts.Results), r.Facts.Results)
	later := slices.Clone(r.Facts.Results)
	for i := range later {
		later[i].Reason, later[i].Laps = "Illness", 1
	}
	for i := range rows {
		if rows[i].Driver == "george-russell" {
			rows[i].Reason = ""
		}
	}
	for _, row := range r.WithDetails(rows, later) {
		switch {
		case row.Driver == "guanyu-zhou" && (row.Reason != "Hydraulics" || *row.Laps != 5):
			t.Errorf("Zhou retired after %d laps because of %q, want what was verified", *row.Laps, row.Reason)
		case row.Driver == "george-russell" && row.Reason != "Illness":
			t.Errorf("Russell has the reason %q, want the source's", row.Reason)
		}
	}
}

// Nobody knows the laps of a driver in another's car, and the source may lack those of a disqualified one. A driver who
// did not start has completed none.
func TestUnknownLapsAreAbsent(t *testing.T) {
	r := testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Until: testseason.Scheduled}).Round(testseason.Belgium.Over(), testseason.Belgium.Key)
	results := []season.Result{
		{Driver: "lewis-hamilton", Position: 1, Laps: 70, Time: time.Hour},
		{Driver: "cay", Position: 1, Shared: true},
		{Driver: "george-russell", Position: 2, Laps: 69, Reason: "Engine"}, // after nine tenths of the distance
		{Driver: "george-russell", Position: 3, Shared: true, Number: 8, Laps: 1},
		{Driver: "dan", Outcome: season.DidNotStart, Number: 9},
		{Driver: "eve", Outcome: season.Disqualified},
	}
	text := must.Get(json.Marshal(r.WithDetails(almanac.Rows(results), results)))(t)
	want := `[{"driver":"lewis-hamilton","team":"","position":1,"number":44,"laps":70,"time_ms":3600000},` +
		`{"driver":"cay","team":"","position":1,"shared":true},` +
		`{"driver":"george-russell","team":"","position":2,"number":63,"laps":69,"gap_laps":1,"reason":"Engine"},` +
		`{"driver":"george-russell","team":"","position":3,"shared":true,"number":8,"laps":1,"gap_laps":69},` +
		`{"driver":"dan","team":"","number":9,"status":"DNS","laps":0},` +
		`{"driver":"eve","team":"","status":"DSQ"}]`
	if got := strings.TrimSpace(string(text)); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestPlaceAndPoints(t *testing.T) {
	for want, row := range map[string]*ledger.Row{
		"not in it": nil, "no place, 4 points": {Points: 4}, "place 2, 18 points": {Position: 2, Points: 18},
	} {
		must.Equal(t, "the row", want, almanac.PlaceAndPoints(row))
	}
}
