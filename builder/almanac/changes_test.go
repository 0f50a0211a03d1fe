package almanac_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/builder/testseason"
	"gridcast/deploy/must"
)

// TestChanges runs a season with every kind of event of a round.
func TestChanges(t *testing.T) {
	first, revised := order{"ann", "bob", "cay", "dan"}, order{"bob", "ann", "cay", "dan"}
	w := newWorld(t, preseason, first, first, first)
	on := func(at time.Time, round int, decide func(ledger.RoundRecord) []ledger.Event) { w.on(at, round, decide) }
	day := 24 * time.Hour
	on(preseason, 2, func(s ledger.RoundRecord) []ledger.Event {
		return []ledger.Event{s.Move(startOf(2), startOf(2).Add(time.Hour), "heat")}
	})
	w.verify(startOf(1).Add(raceTime), 1, first, "")
	w.verify(startOf(1).Add(day), 1, revised, "underweight")
	on(startOf(1).Add(2*day), 3, func(s ledger.RoundRecord) []ledger.Event { return s.Postpone(startOf(3), "fog") })
	on(startOf(1).Add(3*day), 3, func(s ledger.RoundRecord) []ledger.Event { return []ledger.Event{s.Reinstate(startOf(5), "new date")} })
	pick := ledger.Pick{P1: "ann", P2: "bob", P3: "cay", WinProbability: 0.5, Model: "test"}
	on(startOf(1).Add(4*day), 2, func(s ledger.RoundRecord) []ledger.Event {
		return []ledger.Event{ledger.Freeze(s.Key, pick, startOf(2).Add(time.Hour), true)}
	})
	on(startOf(1).Add(5*day), 2, func(s ledger.RoundRecord) []ledger.Event { return s.Cancel("flood") })

	a := w.Almanac(startOf(1).Add(6 * day))
	var got []string
	for _, c := range a.Changes(2025) {
		got = append(got, fmt.Sprintf("%d kind %s by %s: %s, %s to %s", c.Round.Session, c.Type, c.Actor, c.Reason, c.OldState, c.NewState))
	}
	want := []string{
		fmt.Sprintf("2025002 kind %s by test: cancelled,  to ", ledger.PickVoided),
		fmt.Sprintf("2025002 kind %s by test: flood, %s to %s", ledger.RoundCancelled, almanac.Scheduled, almanac.Cancelled),
		fmt.Sprintf("2025003 kind %s by test: new date, %s to %s", ledger.RoundReinstated, almanac.Postponed, almanac.Scheduled),
		fmt.Sprintf("2025003 kind %s by test: fog, %s to %s", ledger.RoundPostponed, almanac.Scheduled, almanac.Postponed),
		fmt.Sprintf("2025001 kind %s by test: underweight,  to ", ledger.ResultVerified),
		fmt.Sprintf("2025002 kind %s by test: heat, scheduled to scheduled", ledger.RoundMoved),
	}
	must.Equal(t, "newest first", want, got)
	var logged []string
	for _, e := range slices.Backward(a.Log()) {
		logged = append(logged, fmt.Sprintf("%d %s", e.Session, e.Reason))
	}
	must.Equal(t, "the log, newest first", []string{"2025002 cancelled", "2025002 flood", "2025003 new date", "2025003 fog", "2025001 underweight", "2025002 heat"}, logged)
	for at := preseason; at.Before(startOf(1).Add(7 * day)); at = at.Add(day) { // later events only follow
		if then := w.Almanac(at).Log(); !cmp.Equal(then, a.Log()[:len(then)], cmpopts.EquateEmpty()) {
			t.Errorf("at %s the log is %+v, later it begins otherwise", at, then)
		}
	}
	if all := a.Changes(0); len(all) != len(got) {
		t.Errorf("of all years: got %d changes, want %d", len(all), len(got))
	}
	if none := a.Changes(2024); len(none) != 0 {
		t.Errorf("of another year: got %v", none)
	}
	agreed := newWorld(t, preseason, first)
	agreed.on(preseason, 1, func(s ledger.RoundRecord) []ledger.Event {
		return []ledger.Event{s.Move(startOf(1), startOf(2), "heat")}
	})
	agreed.edit(func(rounds []season.Round) { rounds[0].Date, rounds[0].Start = rounds[0].Date.Add(week), startOf(2) })
	agreed.on(preseason, 1, func(s ledger.RoundRecord) []ledger.Event {
		return []ledger.Event{s.Release(startOf(2), startOf(2), "the source has it")}
	})
	must.Equal(t, "changes with a release to the same start", 1, len(agreed.Almanac(preseason).Changes(2025)))
	if then := w.Almanac(preseason).Changes(2025); len(then) != 1 {
		t.Errorf("before the season: got %d changes, want the move alone", len(then))
	}
}

// TestAddedRound: a round that joins its season later is a change, with the start that it had then. The other rounds
// of the season are none.
func TestAddedRound(t *testing.T) {
	w := &world{testseason.New(t, testseason.Config{Archive: archiveOf(t, nil, nil, nil), Opened: preseason}), t}
	keys := must.Get(ledger.AssignKeys(w.Ledger.Fold(), w.Stored.Archive.Facts().Seasons))(t)
	last := len(keys) - 1
	added, moved := preseason.Add(24*time.Hour), 0
	for i, some := range [][]ledger.KeyAssignment{keys[:last], keys[last:]} {
		w.Append(preseason.AddDate(0, 0, i), func(*ledger.Fold) ([]ledger.Event, error) {
			return []ledger.Event{{Type: ledger.KeysAssigned, Keys: some}}, nil
		})
	}
	if got := w.Almanac(preseason).Changes(0); len(got) != 0 {
		t.Errorf("before: got %+v, want none", got)
	}
	for _, start := range []time.Time{{}, startOf(len(keys)), startOf(len(keys))} { // unknown, known, and moved
		w.edit(func(rounds []season.Round) { rounds[last].Start = start })
		changes := w.Almanac(added.Add(2 * time.Hour)).Changes(0)
		if c := changes[len(changes)-1]; c.Type != ledger.KeysAssigned || c.Round.Session != keys[last].Session || !c.At.Equal(added) || !c.NewStart.Equal(start) {
			t.Errorf("got %+v, want the last round at %s", c, start)
		}
		if log := w.Almanac(added.Add(2 * time.Hour)).Log(); len(log) != 1+moved || log[0].Session != keys[last].Session || log[0].Type != ledger.KeysAssigned {
			t.Errorf("got the log %+v, want the last round first", log)
		}
		if !start.IsZero() && moved == 0 {
			moved++
			w.on(added.Add(time.Hour), len(keys), func(s ledger.RoundRecord) []ledger.Event {
				return []ledger.Event{s.Move(startOf(len(keys)), startOf(len(keys)).Add(time.Hour), "heat")}
			})
		}
	}
}

// TestCorrectionOfWhatTheArchiveVouchedFor is a change, although the ledger has no earlier verification.
func TestCorrectionOfWhatTheArchiveVouchedFor(t *testing.T) {
	first, revised := order{"ann", "bob", "cay", "dan"}, order{"bob", "ann", "cay", "dan"}
	opened := startOf(1).Add(48 * time.Hour)
	w := newWorld(t, opened, first)
	w.verify(opened.Add(time.Hour), 1, revised, "appeal upheld")
	changes := w.Almanac(opened.Add(2 * time.Hour)).Changes(2025)
	if log := w.Almanac(opened.Add(2 * time.Hour)).Log(); len(log) != 1 || log[0].Revision != 1 {
		t.Errorf("got the log %+v, want the first revision", log)
	}
	if len(changes) != 1 || changes[0].Type != ledger.ResultVerified || changes[0].Old.Winner() != "ann" || changes[0].New.Winner() != "bob" {
		t.Errorf("got %+v, want one revision from ann to bob", changes)
	}
	if v := almanac.Entered(w.Stored.Archive.AsOf(opened.Add(2*time.Hour)), w.Ledger.Fold()); v.Seasons[0].Rounds[0].Winner().Driver != "ann" {
		t.Error("predictions count the revision in place of the source's result")
	}
	r := w.Round(opened.Add(2*time.Hour), 2025001)
	if is := r.Record.Result(); r.Vouched() || !r.Differs() || r.Valid()[0].Driver != "bob" || is.Revision != 1 || is.Reason != "appeal upheld" {
		t.Errorf("vouched %t, differs %t, revision %+v", r.Vouched(), r.Differs(), is)
	}
	// The archive names the team otherwise since then.
	facts := w.Stored.Archive.Facts()
	facts.Aliases = map[season.TeamID]season.TeamID{"alpha": "beta"}
	w.Stored.Archive = must.Get(season.New(facts))(t)
	facts.Aliases["alpha"] = "gamma"
	after := w.Round(opened.Add(2*time.Hour), 2025001).Valid()
	must.Equal(t, "the teams of the first, which has another name, and of the third", []season.TeamID{"gamma", "beta"}, []season.TeamID{after[0].Team, after[2].Team})
	stored, _ := w.Ledger.Fold().Record(2025001)
	must.Equal(t, "the team of the first in the ledger", season.TeamID("alpha"), stored.Result().Rows[0].Team)
}

// TestEnteredWithoutTimes: gaps without the winner's time are no times. A round with a result gets tables, verified or not.
func TestEnteredWithoutTimes(t *testing.T) {
	w := newWorld(t, preseason, nil, order{"bob", "ann"}, nil)
	w.edit(func(rounds []season.Round) { rounds[1].DriverStandings, rounds[1].TeamStandings = nil, nil })
	w.on(startOf(1).Add(raceTime), 1, func(s ledger.RoundRecord) []ledger.Event {
		rows := almanac.Rows(order{"ann", "bob", "cay", "dan"}.results())
		rows[0].TimeMS, rows[1].GapMS, rows[3].Position, rows[3].Grid = 0, 5000, 0, 1
		return []ledger.Event{s.Verify(rows, startOf(1), "")}
	})
	rounds := almanac.Entered(w.Stored.Archive.AsOf(startOf(3)), w.Ledger.Fold()).Seasons[0].Rounds
	source := w.Stored.Archive.Facts().Seasons[0].Rounds
	must.Equal(t, "the grid and entries, which the source has", []any{source[0].Grid, source[0].Entries}, []any{rounds[0].Grid, rounds[0].Entries})
	must.Hold(t, !source[0].Finished(), "the source has got the result of the first round")
	must.Equal(t, "the time of the second", time.Duration(0), rounds[0].Results[1].Time)
	must.Equal(t, "the outcome of a driver without a place", season.NotClassified, rounds[0].Results[3].Outcome)
	w.decide(1, ledger.Championship{Competitor: "ann", Points: -5})
	for at, want := range map[time.Time]float64{startOf(3): 25, startOf(3).Add(3 * raceTime): 20} { // before the decision and after it
		table := almanac.Entered(w.Stored.Archive.AsOf(at), w.Ledger.Fold()).Seasons[0].Rounds[0].DriverStandings
		must.Equal(t, "points of the winner", want, table[0].Points)
	}
	must.Equal(t, "rows of the tables", []int{4, 4, 0}, []int{len(rounds[0].DriverStandings), len(rounds[1].DriverStandings), len(rounds[2].DriverStandings)})
	w.edit(func(rounds []season.Round) { rounds[0].Grid = nil })
	w.on(startOf(4), 1, func(s ledger.RoundRecord) []ledger.Event {
		return []ledger.Event{s.Verify([]ledger.Row{
			{Driver: "dan", Team: "beta", Position: 1, Points: 25, Details: ledger.Details{Grid: 9, TimeMS: 60_000}},
			{Driver: "ann", Team: "alpha", Position: 2, Details: ledger.Details{GapMS: 1}},
		}, startOf(1), "another race")}
	})
	corrected := almanac.Entered(w.Stored.Archive.AsOf(startOf(4)), w.Ledger.Fold()).Seasons[0].Rounds[0]
	must.Equal(t, "the grid without a driver from the pit lane", []season.GridSlot{{Driver: "dan", Team: "beta", Position: 9}}, corrected.Grid)
	must.Equal(t, "the time of a driver one millisecond behind", time.Minute+time.Millisecond, corrected.Results[1].Time)
}

// TestCompare: a driver of only one of two classifications gains or loses all points.
func TestCompare(t *testing.T) {
	rows := almanac.Rows(order{"ann", "bob", "cay"}.results())
	var got []string
	for _, p := range almanac.Compare(rows[:2], rows[1:]) {
		got = append(got, fmt.Sprintf("%s %g %t", p.Driver, p.Points(), p.Changed()))
	}
	must.Equal(t, "points", []string{"bob 0 false", "cay 15 true", "ann -25 true"}, got)
	must.Equal(t, "points of teams", []almanac.TeamPoints{{Team: "beta", Points: 15}, {Team: "alpha", Points: -25}}, almanac.CompareTeams(rows[:2], rows[1:]))
	rows[0].Points, rows[2].Points = 1, 1
	must.Equal(t, "teams that gain alike", []almanac.TeamPoints{{Team: "alpha", Points: 1}, {Team: "beta", Points: 1}}, almanac.CompareTeams(nil, []ledger.Row{rows[2], rows[0], {Team: "gamma"}}))
	must.Equal(t, "rows of a driver of two cars who is gone", 2, len(almanac.Compare([]ledger.Row{rows[0], rows[0]}, nil)))
}

// A decision about a race that had started names the state that readers saw.
func TestOldStateOfAStartedRace(t *testing.T) {
	for name, tt := range map[string]struct {
		after time.Duration
		want  almanac.State
	}{
		"before the start": {-time.Minute, almanac.Scheduled},
		"running":          {time.Hour, almanac.Live},
		"long over":        {almanac.RaceWindow, almanac.AwaitingResult},
	} {
		w := newWorld(t, preseason, order{"ann", "bob", "cay", "dan"}, nil)
		at := startOf(2).Add(tt.after)
		w.on(at, 2, func(s ledger.RoundRecord) []ledger.Event { return s.Cancel("flood") })
		if got := w.Almanac(at).Changes(2025); len(got) != 1 || got[0].OldState != tt.want || got[0].NewState != almanac.Cancelled {
			t.Errorf("%s: got %+v, want the old state %s", name, got, tt.want)
		}
	}
}

// A round that was moved behind another stands behind it in the calendar, as in the tables.
func TestMovedRoundKeepsTheOrderOfStarts(t *testing.T) {
	first := order{"ann", "bob", "cay", "dan"}
	w := newWorld(t, preseason, first, first, nil).edit(func(rounds []season.Round) { // the source knows of the move, too
		rounds[0].TeamStandings, rounds[1].TeamStandings = rounds[1].TeamStandings, rounds[0].TeamStandings
	})
	w.on(preseason, 1, func(s ledger.RoundRecord) []ledger.Event {
		return []ledger.Event{s.Move(startOf(1), startOf(2).Add(2*24*time.Hour), "heat")}
	})
	w.verify(startOf(2).Add(raceTime), 2, first, "")
	w.on(startOf(2).Add(3*24*time.Hour), 1, func(s ledger.RoundRecord) []ledger.Event {
		return []ledger.Event{s.Verify(almanac.Rows(first.results()), startOf(2).Add(2*24*time.Hour), "")}
	})
	y, _ := w.Almanac(startOf(3)).Year(2025)
	var calendar, progress []int
	for _, r := range y.Rounds {
		calendar = append(calendar, r.Facts.Number)
	}
	for _, after := range y.Progress() {
		progress = append(progress, after.Round.Facts.Number)
	}
	must.Equal(t, "offers", 0, len(almanac.Offers(almanac.Rounds(w.Stored.Archive.AsOf(startOf(3)), w.Ledger.Fold(), 2025))))
	if !slices.Equal(calendar, []int{2, 1, 3}) || !slices.Equal(progress, []int{2, 1}) {
		t.Errorf("the calendar has the rounds %v, the progress %v", calendar, progress)
	}
}
