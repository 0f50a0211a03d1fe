package service_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/must"
	"gridcast/schemas/wire"
)

// shown is the visible state at an instant, in short.
type shown struct {
	Season   int      // the default season of /standings, /calendar and /predictions
	Next     string   // /next-race: name, start, and the winner of the pick; 404 if there is none
	Calendar int      // rounds of 2026; -1: the season is not known
	Leader   string   // leader of the standings; none if nobody has points
	Drivers  string   // their number, and the first with the team
	Picks    int      // of 2026
	Missing  []string // overdue facts on /status
	Source   string   // the operator's view: the revision's first digits, its faults and held changes
}

// nextRace is the published next race; false if there is none.
func (u *unattended) nextRace(t *testing.T) (wire.NextRace, bool) {
	t.Helper()
	version := u.version(t)
	body, ok := version.Body("next-race")
	if !ok {
		t.Fatal("there is no /next-race")
	}
	var countdown wire.Countdown
	must.Do(t, json.Unmarshal(body.Identity, &countdown))
	round := countdown.Next(u.Now())
	if round == nil {
		return wire.NextRace{}, false
	}
	var envelope struct{ Data wire.NextRace }
	must.Do(t, json.Unmarshal(round.Append(nil, u.Now()), &envelope))
	return envelope.Data, true
}

func (u *unattended) shown(t *testing.T) shown {
	t.Helper()
	version := u.version(t)
	m := &version.Manifest
	got := shown{Season: m.CurrentSeason, Next: "404", Calendar: -1}
	if next, ok := u.nextRace(t); ok {
		got.Next = fmt.Sprintf("%s, %s", next.Name, time.Time(next.DateStart).UTC().Format("2006-01-02 15:04"))
		if next.Prediction != nil {
			got.Next += ", " + next.Prediction.Winner
		}
	}
	if _, known := version.Body("calendar/2026"); known {
		got.Calendar = len(published[[]wire.CalendarEntry](t, u, "calendar/2026"))
		got.Picks = len(published[[]wire.PredictionRecord](t, u, "predictions/2026"))
	}
	if rows := published[[]wire.DriverStanding](t, u, fmt.Sprintf("standings/drivers/%d", cmp.Or(m.DefaultYears["standings"], m.CurrentSeason))); len(rows) > 0 {
		got.Leader = fmt.Sprintf("%s %g", rows[0].Driver, rows[0].Points)
	}
	drivers := published[[]wire.Driver](t, u, "drivers")
	got.Drivers = fmt.Sprintf("%d, %s of %s", len(drivers), drivers[0].Driver, drivers[0].Team)
	for _, fact := range m.Missing {
		if fact.OverdueAt(u.Now()) {
			got.Missing = append(got.Missing, fact.Code+": "+fact.Text)
		}
	}
	state := u.sources.PollStates()[0]
	got.Source = strings.TrimSpace(fmt.Sprintf("%.8s %s", state.Revision, state.Fault))
	if n := len(state.Held); n > 0 {
		got.Source += fmt.Sprintf(", %d wait", n)
	}
	return got
}

// TestWinter goes from the end of 2025 to the first qualifying of 2026 with F1DB's files of each day: for a
// fortnight nothing of the new season, its calendar on 19 December, and its cars not before March.
func TestWinter(t *testing.T) {
	if testing.Short() {
		t.Skip("short: a winter takes some seconds")
	}
	host, clock := newsFrom(t, time.Date(2025, 12, 10, 12, 0, 0, 0, time.UTC))
	base := release(t, sourcetest.F1DB2026, 2024, 2025)
	synctest.Test(t, func(t *testing.T) {
		u := begin(t, host, clock, base, false)
		const (
			australia = "Australian Grand Prix, 2026-03-08 04:00"
			lastGrid  = "20, GAS of Alpine"
		)
		// The start of Las Vegas 2025 is held all the time, because F1DB has it a day early.
		old := func(next string, calendar int, source string, missing ...string) shown {
			return shown{2025, next, calendar, "NOR 423", lastGrid, 0, missing, source}
		}
		ahead := func(drivers string, next string, picks int, source string) shown {
			return shown{2026, next, 24, "NOR 423", drivers, picks, nil, source}
		}
		for _, step := range []struct {
			at   string
			want shown
		}{
			// The last season is over, and no further race is known.
			{"2025-12-10T13:00:00Z", old("404", -1, "1b21db66, 1 wait", "no_future_round: no race to come is known")},
			// The new line-up arrived a quarter of an hour before the calendar, and is not asked for.
			{"2025-12-19T21:05:00Z", old("404", -1, "17655f9c, 1 wait", "no_future_round: no race to come is known")},
			{"2025-12-19T22:00:00Z", ahead(lastGrid, australia, 0, "c30d8518, 1 wait")},
			{"2025-12-31T23:59:00Z", ahead(lastGrid, australia, 0, "204d2823, 1 wait")},
			// The calendar of the next season is the one to look ahead to; the standings look back at the last. The cars
			// are those of the last race until the first qualifying.
			{"2026-01-01T01:00:00Z", ahead(lastGrid, australia, 0, "204d2823, 1 wait")},
			{"2026-03-06T12:00:00Z", ahead(lastGrid, australia, 0, "4963b202, 1 wait")},
			// Three of 22 set no time in qualifying: they are entered with the race.
			{"2026-03-07T16:10:00Z", ahead("19, GAS of Alpine", australia, 0, "0d14b5db, 1 wait")},
			{"2026-03-07T18:10:00Z", ahead("19, GAS of Alpine", australia+", RUS", 1, "0d14b5db, 1 wait")},
		} {
			at := must.Get(time.Parse(time.RFC3339, step.at))(t)
			u.set(at)
			u.settle(t)
			got := u.shown(t)
			if diff := gocmp.Diff(step.want, got); diff != "" {
				t.Errorf("at %s (-want +got):\n%s", step.at, diff)
			}
		}
		for fault := range u.faults {
			t.Errorf("a job failed: %s", fault)
		}
		log := must.Get(ingest.LoadFactsLog(t.Context(), u.store))(t)
		announced := time.Date(2025, 12, 19, 21, 12, 19, 0, time.UTC)
		if origin, ok := log.Origin(2026, "australia", assemble.Start); !ok || origin.At.Before(announced) || origin.At.After(announced.Add(time.Hour)) {
			t.Errorf("by the facts log the start of Australia came from %+v, want within an hour of %s", origin, announced)
		}
	})
}
