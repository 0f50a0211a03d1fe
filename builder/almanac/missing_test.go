package almanac_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/builder/testseason"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
)

func (w *world) missing(at time.Time) (codes []string) {
	for _, l := range almanac.Missing(w.Stored.Archive.AsOf(at), w.Ledger.AsOf(at), at) {
		code := string(l.Code)
		if l.Urgent {
			code += "!"
		}
		later := l.Code == almanac.HourUnknown || l.Code == almanac.QualifyingMissed || l.Code == almanac.GridMissed // they end with the start
		if l.Since.After(at) || later != l.Until.After(at) || later == l.Until.IsZero() || l.Since.IsZero() || l.Text == "" || !strings.HasPrefix(l.Fix, "gridcast ") || strings.Contains(l.Text+l.Fix, "%!") ||
			l.Code == almanac.PickMissing && strings.Contains(l.Fix, "grid set") != at.Before(startOf(1)) {
			w.t.Errorf("at %s: %+v", at, l)
		}
		codes = append(codes, code)
	}
	return codes
}

func TestMissingFacts(t *testing.T) {
	first := order{"ann", "bob", "cay", "dan"}
	withoutGrid := func(rounds []season.Round) { rounds[0].Grid, rounds[0].Entries = nil, nil }
	pick := func(w *world) {
		w.on(startOf(1).Add(-10*time.Hour), 1, func(s ledger.RoundRecord) []ledger.Event {
			return []ledger.Event{ledger.Freeze(s.Key, ledger.Pick{P1: "ann", P2: "bob", P3: "cay", WinProbability: .5, Model: "m"}, startOf(1), false)}
		})
	}
	qualified := startOf(1).AddDate(0, 0, -1).Add(time.Hour) // of unknown date: the day before, at 13:00 UTC
	for _, c := range []struct {
		what string
		edit func([]season.Round)
		do   func(*world)
		at   time.Time
		want []string
	}{
		{"all is there", nil, pick, startOf(1).Add(-time.Minute), nil},
		{"31 minutes to go, without a pick", nil, nil, startOf(1).Add(-31 * time.Minute), nil},
		{"30 minutes to go, without a pick", nil, nil, startOf(1).Add(-30 * time.Minute), []string{"pick_missing!"}},
		{"a result that waits, without a pick", nil, nil, startOf(1).Add(raceTime + 5*time.Hour), []string{"pick_missing!"}},
		{
			"a verified result, without a pick", nil,
			func(w *world) { w.verify(startOf(1).Add(raceTime), 1, first, "") },
			startOf(1).Add(raceTime + 5*time.Hour), nil,
		},
		{"29 minutes after qualifying", withoutGrid, nil, qualified.Add(29 * time.Minute), nil},
		{"30 minutes after qualifying", withoutGrid, nil, qualified.Add(30 * time.Minute), []string{"qualifying_overdue!"}},
		{"31 minutes to go", withoutGrid, nil, startOf(1).Add(-31 * time.Minute), []string{"qualifying_overdue!"}},
		{"30 minutes to go", withoutGrid, nil, startOf(1).Add(-30 * time.Minute), []string{"pick_missing!", "qualifying_overdue!", "grid_overdue!"}},
		{"30 minutes to go, with a pick", withoutGrid, pick, startOf(1).Add(-30 * time.Minute), []string{"grid_overdue"}},
		{"a grid of one driver", func(rounds []season.Round) { rounds[0].Grid = rounds[0].Grid[:1] }, pick, startOf(1).Add(-30 * time.Minute), nil},
		{"at lights out", withoutGrid, pick, startOf(1), nil},
		{"nobody verified a result that is there", nil, pick, startOf(1).Add(raceTime + 5*time.Hour), nil},
		{
			"postponed", withoutGrid,
			func(w *world) {
				w.on(preseason, 1, func(s ledger.RoundRecord) []ledger.Event { return s.Postpone(startOf(1), "fog") })
			},
			startOf(1).Add(-time.Minute), nil,
		},
		{
			"two weeks before an unknown hour", func(rounds []season.Round) { rounds[1].Start = time.Time{} }, nil,
			startOf(2).AddDate(0, 0, -14),
			[]string{"hour_unknown"},
		},
	} {
		t.Run(c.what, func(t *testing.T) {
			w := newWorld(t, preseason, first, nil, nil)
			if c.edit != nil {
				w.edit(c.edit)
			}
			if c.do != nil {
				c.do(w)
			}
			if diff := cmp.Diff(c.want, w.missing(c.at)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// A race that began before the ledger was opened cannot have a pick, so it lacks none.
func TestNoPickBeforeTheLedger(t *testing.T) {
	w := newWorld(t, startOf(1).Add(time.Hour), order{"ann", "bob", "cay", "dan"}, nil, nil)
	if diff := cmp.Diff([]string(nil), w.missing(startOf(1).Add(raceTime+5*time.Hour))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestMissingResultsAndSeasons(t *testing.T) {
	w := newWorld(t, preseason, nil, nil, nil)
	for n := 1; n <= 3; n++ {
		w.on(preseason, n, func(s ledger.RoundRecord) []ledger.Event {
			return []ledger.Event{ledger.Freeze(s.Key, ledger.Pick{P1: "ann", P2: "bob", P3: "cay", WinProbability: .5, Model: "m"}, startOf(n), false)}
		})
	}
	over := 2*time.Hour + 2*time.Hour // without a winner's time the race takes two hours
	for _, c := range []struct {
		what  string
		at    time.Time
		want  []string
		since time.Time // the first of them
	}{
		{"the first race is not long over", startOf(1).Add(over - time.Second), nil, time.Time{}},
		{"two hours after it", startOf(1).Add(over), []string{"result_overdue"}, startOf(1).Add(over)},
		{"before that of the second is overdue", startOf(2).Add(over - time.Second), []string{"result_overdue"}, startOf(1).Add(over)},
		{"after the second", startOf(2).Add(over), []string{"archive_old", "result_overdue", "result_overdue"}, startOf(2).Add(over)},
		{"after the last", startOf(3).Add(over), []string{"no_future_round", "archive_old", "result_overdue", "result_overdue", "result_overdue"}, startOf(3)},
		{"in the next year", startOf(3).AddDate(1, 0, 0), []string{"no_future_round", "archive_old", "result_overdue", "result_overdue", "result_overdue"}, startOf(3)},
		{"in the year after", startOf(3).AddDate(2, 0, 0), []string{"no_future_round", "archive_old"}, season.BeginsAt(2026)},
	} {
		must.Equal(t, c.what, c.want, w.missing(c.at))
		for _, l := range almanac.Missing(w.Stored.Archive.AsOf(c.at), w.Ledger.AsOf(c.at), c.at)[:min(1, len(c.want))] {
			must.Equal(t, c.what+": since", c.since, l.Since)
			golden.Sentence(t, "missing: "+string(l.Code), l.Text+": "+l.Fix)
		}
	}
	keyless := &world{testseason.New(t, testseason.Config{Archive: archiveOf(t, nil), Opened: preseason}), t}
	must.Equal(t, "years of a round without a session key", 0, len(keyless.Almanac(preseason).Years))
	must.Equal(t, "without session keys", []string(nil), keyless.missing(startOf(1).Add(-time.Minute)))
	must.Fail(t, "cancel without a session key", keyless.Try(preseason, 0, func(r *almanac.Round) ([]ledger.Event, error) { return r.Cancel("flood") }), ledger.ErrUnknownSession)
	w.verify(startOf(1).Add(over), 1, order{"ann", "bob", "cay", "dan"}, "")
	must.Equal(t, "the first was entered by hand", []string{"result_overdue"}, w.missing(startOf(2).Add(over)))
	w = newWorld(t, preseason, nil, nil)
	w.on(preseason, 1, func(s ledger.RoundRecord) []ledger.Event {
		return []ledger.Event{s.Move(startOf(1), startOf(3), "storm")}
	})
	last := almanac.Missing(w.Stored.Archive.AsOf(startOf(3)), w.Ledger.AsOf(startOf(3)), startOf(3))[0]
	must.Equal(t, "since the first, which was moved behind the second", startOf(3), last.Since)
}

func TestEmptyArchiveLacksARace(t *testing.T) {
	missing := almanac.Missing(&season.View{At: preseason}, new(ledger.Fold), preseason)
	must.Hold(t, len(missing) == 1 && missing[0].Code == almanac.NoFutureRound && missing[0].Since.IsZero(), "an empty archive lacks %+v", missing)
	must.Equal(t, "its next change", time.Time{}, almanac.Join(&season.View{At: preseason}, new(ledger.Fold)).NextChange(0))
}

func TestNextChange(t *testing.T) {
	w := newWorld(t, preseason, order{"ann", "bob", "cay", "dan"}, nil)
	qualified := startOf(1).AddDate(0, 0, -1).Add(time.Hour)
	for _, c := range []struct {
		what     string
		at, want time.Time
	}{
		{"before the first qualifying", preseason, qualified},
		{"at the first grid, without a pick", qualified, startOf(1).Add(-5 * time.Minute)},
		{"after the last freeze", startOf(1).Add(-time.Minute), startOf(1).Add(-5 * time.Minute)},
		{"at lights out", startOf(1), startOf(1).Add(2 * time.Hour)},
		{"while the result is awaited", startOf(1).Add(5 * time.Hour), startOf(1).Add(4 * time.Hour)},
	} {
		for year, want := range map[int]time.Time{2025: c.want, 0: c.want, 2024: {}} {
			must.Equal(t, fmt.Sprint(c.what, " of year ", year), want, w.Almanac(c.at).NextChange(year))
		}
	}
	w.on(startOf(2).Add(-10*time.Hour), 2, func(s ledger.RoundRecord) []ledger.Event {
		return []ledger.Event{ledger.Freeze(s.Key, ledger.Pick{P1: "ann", P2: "bob", P3: "cay", WinProbability: .5, Model: "m"}, startOf(2), false)}
	})
	w.verify(startOf(2).Add(-9*time.Hour), 1, order{"ann", "bob", "cay", "dan"}, "")
	must.Equal(t, "with grid and pick", startOf(2), w.Almanac(startOf(2).Add(-9*time.Hour)).NextChange(2025))
	w.edit(func(rounds []season.Round) { rounds[1].Entries, rounds[1].Grid = nil, nil })
	must.Equal(t, "without entries", startOf(2).AddDate(0, 0, -1).Add(time.Hour), w.Almanac(startOf(2).Add(-9*time.Hour)).NextChange(2025))
	w.verify(startOf(2).Add(3*time.Hour), 2, order{"ann", "bob", "cay", "dan"}, "")
	over := w.Almanac(startOf(2).Add(3 * time.Hour))
	if got := over.NextChange(2025); !got.IsZero() {
		t.Errorf("all is verified: got %s, want none", got)
	}
	if got, want := over.NextChange(0), season.CalendarKnownAt(2026); !got.Equal(want) {
		t.Errorf("all seasons: got %s, want the next calendar at %s", got, want)
	}
}
