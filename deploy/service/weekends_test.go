package service_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"gridcast/builder/assemble"
	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/must"
	"gridcast/schemas/wire"
)

// live runs a test on the service at an instant of race time, from F1DB's repository as it was at each
// moment. The archive ends with 2024.
func live(t *testing.T, from string, test func(t *testing.T, u *unattended)) {
	t.Helper()
	must.Long(t, "a weekend takes some seconds")
	host, clock := newsFrom(t, instant(t, from))
	base := release(t, sourcetest.F1DB2024, 2024, 2024)
	synctest.Test(t, func(t *testing.T) {
		u := begin(t, host, clock, base, false)
		test(t, u)
		for fault := range u.faults {
			t.Errorf("a job failed: %s", fault)
		}
	})
}

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	return must.Get(time.Parse(time.RFC3339, text))(t)
}

// at moves race time to an instant, and everything due is done.
func (u *unattended) at(t *testing.T, text string) {
	t.Helper()
	u.pass(instant(t, text))
	u.settle(t)
}

// checkStart checks the published start and status of a round.
func checkStart(t *testing.T, e wire.CalendarEntry, start string, status wire.Status) {
	t.Helper()
	if got := time.Time(e.DateStart).UTC().Format(time.RFC3339); got != start || e.Status != status {
		t.Errorf("%s: starts at %s and is %s, want %s and %s", e.GPName, got, e.Status, start, status)
	}
}

// only returns the one published row about a session.
func only[T any](t *testing.T, u *unattended, path string, session int) T {
	t.Helper()
	rows := published[[]T](t, u, fmt.Sprintf("%s/session/%d", path, session))
	must.Require(t, len(rows) == 1, "%s of %d: got %d rows, want 1", path, session, len(rows))
	return rows[0]
}

// checkScored checks the published record of a session: the pick as it was frozen, the podium, and the
// number of revisions, all of them by rule.
func (u *unattended) checkScored(t *testing.T, session int, pick wire.Prediction, podium wire.Podium, revisions int) wire.ResultRecord {
	t.Helper()
	p, chances := only[wire.PredictionRecord](t, u, "predictions", session), only[wire.ProbabilityRecord](t, u, "probabilities", session)
	must.Hold(t, p.Prediction == pick && chances.Basis == "qualifying", "%d: the pick is %+v on %s, want the frozen %+v on qualifying", session, p.Prediction, chances.Basis, pick)
	if p.Result == nil || p.Result.Podium != podium || p.WinnerHit == nil || *p.WinnerHit != (pick.Winner == podium.P1) {
		t.Errorf("%d: the record is %+v, want the podium %+v and whether the pick was right", session, p, podium)
	}
	result := only[wire.ResultRecord](t, u, "results", session)
	if len(result.Revisions) != revisions || slices.ContainsFunc(result.Revisions, func(r wire.Revision) bool { return r.By != "rule" }) {
		t.Errorf("%d: the revisions are %+v, want %d, by rule", session, result.Revisions, revisions)
	}
	return result
}

// TestLasVegas2025 has a source that moved the race into the past on race day.
func TestLasVegas2025(t *testing.T) {
	live(t, "2025-11-22T14:00:00Z", func(t *testing.T, u *unattended) {
		const session, start = 2025022, "2025-11-23T04:00:00Z"
		lasVegas := func() wire.CalendarEntry { return u.entryOf(t, 2025, "las-vegas") }
		u.at(t, "2025-11-22T14:58:00Z") // the commit of 14:52 brings qualifying, and with it a start of the day before
		if !slices.ContainsFunc(u.sources.PollStates()[0].Held, func(p assemble.Proposal) bool {
			return p.GrandPrix == "las-vegas" && slices.ContainsFunc(p.Refused, func(r assemble.Refusal) bool { return r.Gate == assemble.StartGate })
		}) {
			t.Errorf("the start that is in the past is not held: %+v", u.sources.PollStates()[0].Held)
		}
		checkStart(t, lasVegas(), start, wire.Scheduled)

		u.at(t, "2025-11-22T16:58:00Z") // qualifying has been unchanged for two hours
		next, _ := u.nextRace(t)
		if next.Name != "Las Vegas Grand Prix" || next.Prediction == nil || time.Time(next.DateStart).UTC().Format(time.RFC3339) != start {
			t.Fatalf("the next race is %+v, want Las Vegas at %s, with a pick", next, start)
		}
		u.at(t, "2025-11-23T04:00:01Z")
		checkStart(t, lasVegas(), start, wire.Live)
		u.at(t, "2025-11-23T12:50:00Z") // the commit of 12:45 brings the result
		if e := lasVegas(); e.Status == wire.Finished {
			t.Errorf("five minutes after its result came the round is %+v", e)
		}
		u.at(t, "2025-11-23T14:51:00Z") // the result has been unchanged for two hours
		checkStart(t, lasVegas(), start, wire.Finished)
		u.checkScored(t, session, *next.Prediction, wire.Podium{P1: "VER", P2: "RUS", P3: "ANT"}, 1)

		families := must.Get(u.metrics.Gather())(t)
		exposed := make(map[string]int)
		for _, family := range families {
			exposed[family.GetName()] = len(family.GetMetric())
		}
		must.Hold(t, exposed["gridcast_source_answered_seconds"] == 1 && exposed["gridcast_source_disagreements"] == 1 && exposed["gridcast_source_lost"] == 1, "the metrics of the source are not exposed: %v", exposed)
	})
}
