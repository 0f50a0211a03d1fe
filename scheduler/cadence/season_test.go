package cadence_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/scheduler/cadence"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// news is something that happens to a round in the course of a season.
type news struct {
	at    string
	text  string
	round int
	apply func(*cadence.Round)
}

// A season with a cancelled round, one that is postponed and comes back, one whose start is
// brought forward on the day, and Las Vegas; every instant of it, from the day on which its
// calendar becomes known to the turn of the next year.
func TestSeason(t *testing.T) {
	rounds := []cadence.Round{
		weekend(2026001, at(t, "2026-03-08T04:00:00Z")),
		weekend(2026004, at(t, "2026-04-12T15:00:00Z")),
		weekend(2026005, at(t, "2026-04-19T17:00:00Z")),
		weekend(2026009, at(t, "2026-06-07T13:00:00Z")),
		weekend(2026022, at(t, "2026-11-22T04:00:00Z")),
	}
	frozen := func(r *cadence.Round) { r.Frozen = true }
	verified := func(r *cadence.Round) { r.Verified = true }
	story := []news{
		{"2026-03-07T06:00:30Z", "pick frozen", 0, frozen},
		{"2026-03-08T06:20:00Z", "result verified", 0, verified},
		{"2026-03-14T09:00:00Z", "cancelled", 1, off},
		{"2026-04-17T12:34:56Z", "postponed", 2, off},
		{"2026-06-06T15:02:00Z", "pick frozen", 3, frozen},
		{"2026-06-07T10:00:00Z", "start brought forward by 90 minutes", 3, func(r *cadence.Round) {
			startAt(r, r.Start.Add(-90*time.Minute))
		}},
		{"2026-06-08T08:00:00Z", "result verified", 3, verified},
		{"2026-06-20T08:00:00Z", "reinstated on 2026-10-04", 2, func(r *cadence.Round) {
			*r = weekend(r.Key, time.Date(2026, time.October, 4, 17, 0, 0, 0, time.UTC))
		}},
		{"2026-10-04T16:55:01Z", "pick frozen", 2, frozen},
		{"2026-10-04T23:00:00Z", "result verified", 2, verified},
		{"2026-11-21T06:00:03Z", "pick frozen", 4, frozen},
		{"2026-11-22T06:30:00Z", "result verified", 4, verified},
	}

	var log season
	now, end := at(t, "2025-09-30T23:59:59Z"), at(t, "2027-01-01T00:00:00Z")
	for now.Before(end) {
		d := cadence.Coming(calendar(rounds...), now)[0]
		if len(story) > 0 && at(t, story[0].at).Before(d.At) {
			n := story[0]
			story = story[1:]
			now = at(t, n.at)
			n.apply(&rounds[n.round])
			log.line("%s  -- %d %s", n.at, rounds[n.round].Key, n.text)
			continue
		}
		now = d.At
		for _, d := range cadence.Missed(calendar(rounds...), now.Add(-1), now) {
			log.due(d)
		}
	}
	golden(t, "testdata/season.txt", log.String())
}

// weekend is a round whose qualifying is over 22 h before the race, which lasts 95 minutes.
func weekend(key int64, start time.Time) cadence.Round {
	r := cadence.Round{Key: key, GridKnown: start.Add(-22 * time.Hour)}
	startAt(&r, start)
	return r
}

// startAt gives the round a start, and all instants that follow from it.
func startAt(r *cadence.Round, start time.Time) {
	r.Start = start
	r.WeekendFrom, r.WeekendUntil = start.Add(-72*time.Hour), start.Add(24*time.Hour)
	r.FreezeBy, r.End, r.WindowEnd = start.Add(-5*time.Minute), start.Add(95*time.Minute), start.Add(4*time.Hour)
}

// off takes the round off the calendar until it gets a start again.
func off(r *cadence.Round) { r.Start = time.Time{} }

// season writes a line for each instant, but one for consecutive polls and nights.
type season struct {
	text strings.Builder
	run  []cadence.Due // polls for the same reason and nights, not yet written
}

func (s *season) due(d cadence.Due) {
	if d.Work == cadence.Verify {
		return // every night the same, and tested by itself
	}
	if d.Work == cadence.Poll {
		if len(s.run) > 0 && s.run[0].Reason != d.Reason {
			s.flush()
		}
		s.run = append(s.run, d)
		return
	}
	s.line("%s  %s %s %d", d.At.Format(time.RFC3339), d.Work, d.Reason, d.Round)
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

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}
