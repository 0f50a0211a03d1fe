package cadence_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gridcast/deploy/golden"
	"gridcast/scheduler/cadence"
	"gridcast/scheduler/cadence/cadencetest"
)

// news is an event of a round during the season.
type news struct {
	at    string
	text  string
	round int
	apply func(*cadence.Round)
}

// A season with a cancelled round, a postponed round that comes back, a round whose start
// moves forward on the day, and Las Vegas: every instant from the day on which its
// calendar becomes known to the turn of the next year.
func TestSeason(t *testing.T) {
	rounds := []cadence.Round{
		cadencetest.Weekend(2026001, at(t, "2026-03-08T04:00:00Z")),
		cadencetest.Weekend(2026004, at(t, "2026-04-12T15:00:00Z")),
		cadencetest.Weekend(2026005, at(t, "2026-04-19T17:00:00Z")),
		cadencetest.Weekend(2026009, at(t, "2026-06-07T13:00:00Z")),
		cadencetest.Weekend(2026022, at(t, "2026-11-22T04:00:00Z")),
	}
	frozen := func(r *cadence.Round) { r.Frozen = true }
	verified := func(r *cadence.Round) { r.Verified = true }
	story := []news{
		{"2026-03-07T06:00:30Z", "pick frozen", 0, frozen},
		{"2026-03-08T06:20:00Z", "result verified", 0, verified},
		{"2026-03-14T09:00:00Z", "cancelled", 1, cadencetest.Off},
		{"2026-04-17T12:34:56Z", "postponed", 2, cadencetest.Off},
		{"2026-06-06T15:02:00Z", "pick frozen", 3, frozen},
		{"2026-06-07T10:00:00Z", "start brought forward by 90 minutes", 3, func(r *cadence.Round) {
			cadencetest.StartAt(r, r.Start.Add(-90*time.Minute))
		}},
		{"2026-06-08T08:00:00Z", "result verified", 3, verified},
		{"2026-06-20T08:00:00Z", "reinstated on 2026-10-04", 2, func(r *cadence.Round) {
			*r = cadencetest.Weekend(r.Key, time.Date(2026, time.October, 4, 17, 0, 0, 0, time.UTC))
		}},
		{"2026-10-04T16:55:01Z", "pick frozen", 2, frozen},
		{"2026-10-04T23:00:00Z", "result verified", 2, verified},
		{"2026-11-21T06:00:03Z", "pick frozen", 4, frozen},
		{"2026-11-22T06:30:00Z", "result verified", 4, verified},
	}

	var log season
	now, end := at(t, "2025-09-30T23:59:59Z"), at(t, "2027-01-01T00:00:00Z")
	for now.Before(end) {
		d := cadence.Coming(cadencetest.Calendar(rounds...), now)[0]
		if len(story) > 0 && at(t, story[0].at).Before(d.At) {
			n := story[0]
			story = story[1:]
			now = at(t, n.at)
			n.apply(&rounds[n.round])
			log.line("%s  -- %d %s", n.at, rounds[n.round].Key, n.text)
			continue
		}
		now = d.At
		for _, d := range cadence.Missed(cadencetest.Calendar(rounds...), now.Add(-1), now) {
			log.due(d)
		}
	}
	golden.File(t, "testdata/season.txt", log.String())
}

// season writes a line for each instant, and one line for consecutive polls and nights.
type season struct {
	text strings.Builder
	run  []cadence.Due // consecutive polls of one reason, and nights, not yet written
}

func (s *season) due(d cadence.Due) {
	if d.Work == cadence.Verify {
		return // every night is the same, and has its own test
	}
	if d.Work == cadence.Poll {
		if len(s.run) > 0 && s.run[0].Reason != d.Reason {
			s.flush()
		}
		s.run = append(s.run, d)
		return
	}
	work := map[cadence.Work]string{cadence.Poll: "poll", cadence.Freeze: "freeze", cadence.Build: "build", cadence.Verify: "verify"}[d.Work]
	s.line("%s  %s %s %d", d.At.Format(time.RFC3339), work, d.Reason, d.Round)
}

func (s *season) line(format string, args ...any) {
	s.flush()
	fmt.Fprintf(&s.text, format+"\n", args...)
}

func (s *season) flush() {
	if n := len(s.run); n > 0 {
		first, last := s.run[0], s.run[n-1]
		fmt.Fprintf(&s.text, "%s  poll %s, %d to %s\n", first.At.Format(time.RFC3339), first.Reason, n, last.At.Format(time.RFC3339))
		s.run = nil
	}
}

func (s *season) String() string {
	s.flush()
	return s.text.String()
}
