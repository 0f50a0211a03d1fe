package cadence_test

import (
	"fmt"
	"testing"
	"time"
	_ "time/tzdata" // the zones below, on any machine

	"gridcast/deploy/must"
	"gridcast/scheduler/cadence"
	"gridcast/scheduler/cadence/cadencetest"
)

// at parses an instant such as 2026-11-22T04:00:00Z.
func at(t *testing.T, s string) time.Time {
	t.Helper()
	return must.Get(time.Parse(time.RFC3339, s))(t)
}

// lasVegas starts on Saturday evening local time, which is Sunday in UTC.
func lasVegas(t *testing.T) cadence.Round {
	r := cadencetest.Weekend(2026022, at(t, "2026-11-21T20:00:00-08:00"))
	r.GridKnown, r.End = at(t, "2026-11-20T21:00:00-08:00"), at(t, "2026-11-21T21:35:12-08:00")
	return r
}

// Each instant is due in its second, not one earlier and not one later.
func TestInstantsToTheSecond(t *testing.T) {
	calendar := cadencetest.Calendar
	round := lasVegas(t)
	frozen := round
	frozen.Frozen = true
	moved := round
	cadencetest.StartAt(&moved, round.Start.Add(-90*time.Minute))
	stood := round
	stood.StoodBy = round.GridKnown.Add(2 * time.Hour)
	lateGrid := round
	lateGrid.GridKnown = round.Start.Add(-4 * time.Minute)

	tests := []struct {
		name  string
		cal   cadence.Calendar
		due   string
		work  cadence.Work
		why   cadence.Reason
		round int64
	}{
		{"grid known", calendar(round), "2026-11-21T05:00:00Z", cadence.Freeze, cadence.GridKnown, 2026022},
		{"qualifying has stood", calendar(stood), "2026-11-21T07:00:00Z", cadence.Freeze, cadence.QualifyingStood, 2026022},
		{"freeze at the latest", calendar(round), "2026-11-22T03:55:00Z", cadence.Freeze, cadence.FreezeLatest, 2026022},
		{"grid known too late", calendar(lateGrid), "2026-11-22T03:55:00Z", cadence.Freeze, cadence.FreezeLatest, 2026022},
		{"freeze of a moved start", calendar(moved), "2026-11-22T02:25:00Z", cadence.Freeze, cadence.FreezeLatest, 2026022},
		{"lights out", calendar(round), "2026-11-22T04:00:00Z", cadence.Build, cadence.LightsOut, 2026022},
		{"lights out with a pick", calendar(frozen), "2026-11-22T04:00:00Z", cadence.Build, cadence.LightsOut, 2026022},
		{"lights out moved", calendar(moved), "2026-11-22T02:30:00Z", cadence.Build, cadence.LightsOut, 2026022},
		{"end of the race window", calendar(round), "2026-11-22T08:00:00Z", cadence.Build, cadence.RaceWindowEnd, 2026022},
		{"turn of the year", calendar(round), "2027-01-01T00:00:00Z", cadence.Build, cadence.YearTurn, 0},
		{"next calendar", calendar(round), "2026-10-01T00:00:00Z", cadence.Build, cadence.CalendarKnown, 0},
		{"night", calendar(round), "2026-11-22T02:30:00Z", cadence.Verify, cadence.Nightly, 0},
		{"night without rounds", calendar(), "2026-02-28T02:30:00Z", cadence.Verify, cadence.Nightly, 0},
		{"poll in the week", calendar(round), "2026-11-19T03:00:00Z", cadence.Poll, cadence.PollWeek, 0},
		{"first poll of the weekend", calendar(round), "2026-11-19T04:00:00Z", cadence.Poll, cadence.PollWeekend, 2026022},
		{"second poll of the weekend", calendar(round), "2026-11-19T04:05:00Z", cadence.Poll, cadence.PollWeekend, 2026022},
		{"last poll before the grid", calendar(round), "2026-11-21T04:55:00Z", cadence.Poll, cadence.PollWeekend, 2026022},
		{"first poll for the grid", calendar(round), "2026-11-21T05:00:00Z", cadence.Poll, cadence.PollAwaiting, 2026022},
		{"next poll for the grid", calendar(round), "2026-11-21T05:01:00Z", cadence.Poll, cadence.PollAwaiting, 2026022},
		{"last poll for the grid", calendar(round), "2026-11-22T03:59:00Z", cadence.Poll, cadence.PollAwaiting, 2026022},
		{"first poll in the race", calendar(round), "2026-11-22T04:00:00Z", cadence.Poll, cadence.PollWeekend, 2026022},
		{"last poll in the race", calendar(round), "2026-11-22T05:35:00Z", cadence.Poll, cadence.PollWeekend, 2026022},
		{"first poll for the result", calendar(round), "2026-11-22T05:36:00Z", cadence.Poll, cadence.PollAwaiting, 2026022},
		{"last poll for the result", calendar(round), "2026-11-23T03:59:00Z", cadence.Poll, cadence.PollAwaiting, 2026022},
		{"first poll after the weekend", calendar(round), "2026-11-23T04:00:00Z", cadence.Poll, cadence.PollWeek, 0},
		{"poll with a frozen pick", calendar(frozen), "2026-11-21T05:05:00Z", cadence.Poll, cadence.PollWeekend, 2026022},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			due := at(t, tt.due)
			got, ok := cadence.Next(tt.cal, tt.work, due.Add(-time.Second))
			if !ok || !got.At.Equal(due) || got.Reason != tt.why || got.Round != tt.round {
				t.Errorf("a second before: next is %v %s of %d (%v), want %v %s of %d",
					got.At, got.Reason, got.Round, ok, due, tt.why, tt.round)
			}
			if got, ok := cadence.Next(tt.cal, tt.work, due); ok && !got.At.After(due) {
				t.Errorf("at the instant: next is %v, want one after %v", got.At, due)
			}
			for _, shift := range []time.Duration{-time.Second, 0, time.Second} {
				now := due.Add(shift)
				found := false
				for _, d := range cadence.Missed(tt.cal, now.Add(-time.Second), now) {
					found = found || d == got
				}
				want := shift == 0
				must.Hold(t, found == want, "missed in the second up to %v: %v, want %v", now, found, want)
			}
		})
	}
}

// Missed work is caught up, except a freeze once the lights are out.
func TestMissedAroundAStart(t *testing.T) {
	round := lasVegas(t)
	away := at(t, "2026-11-21T04:30:00Z") // half an hour before the grid is known
	tests := []struct {
		back string
		want []cadence.Reason
	}{
		{"2026-11-21T04:59:59Z", []cadence.Reason{cadence.PollWeekend}},
		{"2026-11-21T05:00:00Z", []cadence.Reason{cadence.PollAwaiting, cadence.GridKnown}},
		{"2026-11-22T03:54:59Z", []cadence.Reason{cadence.GridKnown, cadence.Nightly, cadence.PollAwaiting}},
		{"2026-11-22T03:59:59Z", []cadence.Reason{cadence.GridKnown, cadence.Nightly, cadence.FreezeLatest, cadence.PollAwaiting}},
		{"2026-11-22T04:00:00Z", []cadence.Reason{cadence.Nightly, cadence.PollWeekend, cadence.LightsOut}},
		{"2026-11-22T08:00:00Z", []cadence.Reason{cadence.Nightly, cadence.LightsOut, cadence.PollAwaiting, cadence.RaceWindowEnd}},
		{"2027-01-02T00:30:00Z", []cadence.Reason{cadence.LightsOut, cadence.RaceWindowEnd, cadence.YearTurn, cadence.Nightly, cadence.PollWeek}},
	}
	for _, tt := range tests {
		var got []cadence.Reason
		for _, d := range cadence.Missed(cadencetest.Calendar(round), away, at(t, tt.back)) {
			got = append(got, d.Reason)
		}
		must.Equal(t, fmt.Sprintf("away from %v to %s", away, tt.back), tt.want, got)
	}
}

func TestTooLateAtTheStart(t *testing.T) {
	start := lasVegas(t).Start
	freeze, _ := cadence.Next(cadencetest.Calendar(lasVegas(t)), cadence.Freeze, start.Add(-time.Hour))
	must.Hold(t, !freeze.TooLate(start.Add(-time.Second)), "a freeze is too late a second before the start")
	must.Hold(t, freeze.TooLate(start), "a freeze is not too late at the start")
	build, _ := cadence.Next(cadencetest.Calendar(lasVegas(t)), cadence.Build, start.Add(-time.Hour))
	must.Hold(t, !build.TooLate(start.AddDate(1, 0, 0)), "a build is too late a year after the start")
}

// A start that moves forward past the instant of the freeze leaves the freeze
// due at once; the same start seen twice overtakes nothing.
func TestOvertakenByAMove(t *testing.T) {
	before := lasVegas(t)
	before.GridKnown = time.Time{}
	after := before
	cadencetest.StartAt(&after, at(t, "2026-11-22T03:00:00Z"))

	tests := []struct {
		now  string
		want []cadence.Reason
	}{
		{"2026-11-22T02:54:59Z", nil},
		{"2026-11-22T02:55:00Z", []cadence.Reason{cadence.FreezeLatest}},
		{"2026-11-22T02:59:59Z", []cadence.Reason{cadence.FreezeLatest}},
		{"2026-11-22T03:00:00Z", []cadence.Reason{cadence.LightsOut}},
	}
	for _, tt := range tests {
		var got []cadence.Reason
		for _, d := range cadence.Overtaken(cadencetest.Calendar(before), cadencetest.Calendar(after), at(t, tt.now)) {
			got = append(got, d.Reason)
		}
		must.Equal(t, fmt.Sprintf("moved at %s", tt.now), tt.want, got)
		if got := cadence.Overtaken(cadencetest.Calendar(after), cadencetest.Calendar(after), at(t, tt.now)); got != nil {
			t.Errorf("unmoved at %s: overtaken %v, want none", tt.now, got)
		}
	}
}

// The locations of the given times never matter, nor do the days on which clocks are set
// forward and back.
func TestTimeZonesNeverMatter(t *testing.T) {
	zones := []string{"America/Los_Angeles", "Europe/London", "Australia/Melbourne", "Asia/Kathmandu"}
	switches := []string{"2026-03-08T09:59:59Z", "2026-03-29T00:59:59Z", "2026-10-25T00:59:59Z", "2026-11-01T08:59:59Z"}
	for _, name := range zones {
		zone := must.Get(time.LoadLocation(name))(t)
		for _, s := range switches {
			now := at(t, s).UTC()
			round := cadencetest.Weekend(1, now.Add(26*time.Hour))
			local := round
			cadencetest.StartAt(&local, round.Start.In(zone))
			local.GridKnown = round.GridKnown.In(zone)
			want := cadence.Coming(cadencetest.Calendar(round), now)
			must.Equal(t, fmt.Sprintf("%s seen from %s: coming", s, name), want, cadence.Coming(cadencetest.Calendar(local), now.In(zone)))
			from, to := now.Add(-48*time.Hour), now.Add(48*time.Hour)
			want = cadence.Missed(cadencetest.Calendar(round), from, to)
			must.Equal(t, fmt.Sprintf("%s seen from %s: missed", s, name), want, cadence.Missed(cadencetest.Calendar(local), from.In(zone), to.In(zone)))
		}
	}
}
