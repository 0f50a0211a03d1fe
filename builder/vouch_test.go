package builder_test

import (
	"slices"
	"testing"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/builder/testseason"
	"gridcast/deploy/must"
)

// withoutResults returns the archive as it would be if nobody had entered the results of some
// rounds of 2024.
func withoutResults(t *testing.T, a *season.Archive, rounds ...season.GrandPrixID) *season.Archive {
	t.Helper()
	facts := a.Facts()
	facts.Seasons = slices.Clone(facts.Seasons)
	year := &facts.Seasons[1]
	year.Rounds = slices.Clone(year.Rounds)
	for i := range year.Rounds {
		if r := &year.Rounds[i]; slices.Contains(rounds, r.GrandPrix) {
			r.Results, r.FastestLaps, r.PitStops, r.DriverStandings, r.TeamStandings = nil, nil, nil, nil, nil
		}
	}
	a = must.Get(season.New(facts))(t)
	return a
}

// A ledger is opened on an archive that lacks two results. One is of a race ten days before: when
// it comes, the archive vouches for it, in an event. The other race was three days before: that
// is news, and waits for an operator, however long.
func TestResultsThatTheFirstArchiveLacked(t *testing.T) {
	must.Long(t, "builds the embedded seasons")
	const britain, britainKey = season.GrandPrixID("great-britain"), int64(2024012)
	opened := austriaStart.AddDate(0, 0, 10)
	whole := altered(t, asItWas)
	lacking := archivetest.Stored(t, withoutResults(t, whole, austria, britain).Facts())
	w := &weekend{testseason.New(t, testseason.Config{Stored: lacking, Kind: ledger.Real, Opened: opened}), t}
	facts := w.Archives
	// state is that of a round for a process that starts now.
	state := func(at time.Time, key int64) almanac.State {
		t.Helper()
		l := must.Get(ledger.Load(t.Context(), w.Store, ledger.Real))(t)
		must.Do(t, facts.Vouch(t.Context(), l))
		inUse := must.Get(facts.Load(t.Context()))(t)
		r := must.Get(almanac.Join(inUse.Archive.AsOf(at), l.Current(at)).Round(key))(t)
		return r.State
	}
	b := w.builder()
	must.Do(t, facts.Vouch(t.Context(), w.Ledger))
	build(t, b, opened)
	got := state(opened, austriaKey)
	must.Hold(t, got == almanac.AwaitingResult, "without its result Austria is %v", got)
	if got := state(opened, austriaKey-1); got != almanac.Finished {
		t.Errorf("the round before, whose result the archive has, is %v", got)
	}

	// The results come.
	w.Stored.Archive = whole
	b = w.builder()
	later := opened.Add(time.Hour)
	if got := state(later, austriaKey); got != almanac.AwaitingResult {
		t.Errorf("the result that has just come verified itself: %v", got)
	}
	out := build(t, b, later)
	if len(out.Events) != 1 || out.Events[0].Session != austriaKey || out.Events[0].Actor != ledger.ArchiveActor {
		t.Errorf("settled %+v, want the result of Austria by the archive", out.Events)
	}
	if got := state(later, austriaKey); got != almanac.Finished {
		t.Errorf("Austria is %v", got)
	}
	month := opened.AddDate(0, 1, 0)
	build(t, b, month)
	if got := state(month, britainKey); got != almanac.AwaitingResult {
		t.Errorf("a month later Britain is %v, want it to wait for an operator", got)
	}
	if audit := mustAudit(t, w.Store); !audit.Green() {
		t.Errorf("the audit blames %s", blamed(audit))
	}
}

// A store of before the archive was recorded goes on as it did: the instant vouches.
func TestVouchingOfBefore(t *testing.T) {
	w := newWeekend(t, asItWas)
	b := w.builder()
	must.Do(t, archive.NewStore(w.Store).Vouch(t.Context(), w.Ledger))
	out := build(t, b, austriaQualified)
	must.Hold(t, len(out.Events) == 1 && out.Events[0].Type == ledger.PickFrozen, "settled %v, want the pick alone", out.Events)
	got := w.shown()
	must.Hold(t, len(got.Standings) != 0, "no standings are shown")
}
