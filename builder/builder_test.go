package builder_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/builder/testseason"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob/memblob"
)

// service is a builder on the shortened seasons, with a store in memory.
func service(t *testing.T, opened time.Time, policy builder.Policy) *builder.Builder {
	t.Helper()
	return serviceOf(t, testseason.Short(t, testseason.Austria), opened, policy)
}

// serviceOf is service on other seasons.
func serviceOf(t *testing.T, stored archive.Stored, opened time.Time, policy builder.Policy) *builder.Builder {
	t.Helper()
	return testseason.New(t, testseason.Config{Stored: stored, Opened: opened, Policy: policy}).Builder
}

func build(t *testing.T, b *builder.Builder, at time.Time) builder.Outcome {
	t.Helper()
	return must.Get(b.Build(t.Context(), builder.Request{At: at}))(t)
}

var midSeason = time.Date(2024, time.July, 1, 12, 0, 0, 0, time.UTC)

func policy() builder.Policy {
	return builder.Policy{Model: predict.GridFrequency(), AutoVerifyAfter: time.Hour}
}

func TestSameInputsSameBytes(t *testing.T) {
	first, second := service(t, midSeason, policy()), service(t, midSeason, policy())
	build(t, first, midSeason)
	build(t, second, midSeason)
	got, want := testseason.Objects(t, second.Store, "objects/"), testseason.Objects(t, first.Store, "objects/")
	if len(want) < 100 {
		t.Fatalf("published %d objects, want a hundred", len(want))
	}
	for key, data := range want {
		if got[key] != data {
			t.Errorf("%s: the second build has other bytes", key)
		}
	}
}

// TestClockAhead: a builder with a clock ahead of the store's publishes nothing, also without an event to append. So it
// keeps no other builder from publishing.
func TestClockAhead(t *testing.T) {
	now := midSeason
	store := memblob.New(memblob.Clock(func() time.Time { return now }))
	b := testseason.New(t, testseason.Config{Stored: testseason.Short(t, testseason.Austria), Opened: midSeason, Kind: ledger.Real, Store: store, Policy: builder.Policy{Model: predict.GridFrequency()}}).Builder
	build(t, b, midSeason)
	_, err := b.Build(t.Context(), builder.Request{At: midSeason.Add(40 * time.Minute)})
	must.Fail(t, "a build by a clock that is ahead", err, ledger.ErrClock)
	now = midSeason.Add(10 * time.Minute)
	build(t, b, now)
}

// TestBuildOfEarlier builds at an instant at which the ledger had no keys yet.
func TestBuildOfEarlier(t *testing.T) {
	b := service(t, midSeason.Add(-time.Hour), policy())
	build(t, b, midSeason)
	golden.Sentence(t, "a build of earlier", must.Err(b.Build(t.Context(), builder.Request{At: midSeason.Add(-time.Minute)})))
}

func TestNothingNewIsNotPublished(t *testing.T) {
	b := service(t, midSeason, policy())
	first := build(t, b, midSeason)
	again := build(t, b, midSeason.Add(time.Minute))
	if !again.Unchanged || again.Version != first.Version {
		t.Errorf("a minute later: got version %d, unchanged %v; want version %d as it was", again.Version, again.Unchanged, first.Version)
	}
}

// A race weekend of 2024, instant by instant: the published documents, and how few objects change.
func TestRaceWeekend(t *testing.T) {
	// Austria: qualifying on 29 June at 14:00, race on 30 June at 13:00 UTC.
	qualified := time.Date(2024, 6, 29, 15, 0, 0, 0, time.UTC)
	lightsOut := time.Date(2024, 6, 30, 13, 0, 0, 0, time.UTC)
	b := service(t, qualified.Add(-time.Hour), policy())
	build(t, b, qualified.Add(-time.Hour))
	for _, step := range []struct {
		what     string
		at       time.Time
		event    ledger.Type
		rendered []string // variants, by path, of the bytes that are new
	}{
		{"the grid is known", qualified, ledger.PickFrozen, []string{
			"head-to-head/2024", "live", "next-race", "overview", "overview/2024", "predictions/2024", "predictions/session/2024011", "probabilities/2024", "probabilities/session/2024011",
			"sessions", "sessions/session/2024011", "weekends/2024", "weekends/session/2024011",
		}},
		{"lights out", lightsOut, "", []string{"calendar/2024", "next-race", "overview", "overview/2024", "weekends/2024", "weekends/session/2024011"}},
		{
			"the result is verified", lightsOut.Add(3 * time.Hour), ledger.ResultVerified,
			[]string{
				"accuracy/2024", "accuracy/all", "calendar/2024", "careers/constructors/2024", "careers/constructors/all",
				"careers/drivers/2024", "careers/drivers/all", "circuits/2024", "circuits/all", "head-to-head/2024", "live", "overview", "overview/2024", "predictions/2024", "predictions/session/2024011",
				"results/2024", "results/session/2024011", "sessions", "sessions/session/2024011",
				"standings/constructors/2024", "standings/drivers/2024", "standings-progress/constructors/2024",
				"standings-progress/drivers/2024", "weekends/2024", "weekends/session/2024011",
			},
		},
	} {
		before := testseason.Objects(t, b.Store, "objects/")
		outcome := build(t, b, step.at)
		var events []string
		for _, e := range outcome.Events {
			events = append(events, string(e.Type))
		}
		if got := strings.Join(events, " "); got != string(step.event) {
			t.Errorf("%s: settled %q, want %q", step.what, got, step.event)
		}
		var rendered []string
		for key := range testseason.Objects(t, b.Store, "objects/") {
			if _, old := before[key]; !old {
				path, _, _ := strings.Cut(key, ".")
				rendered = append(rendered, strings.SplitN(path, "/", 3)[2])
			}
		}
		wantSet(t, step.what, rendered, step.rendered)
	}
}

func wantSet(t *testing.T, what string, got, want []string) {
	t.Helper()
	missing := map[string]bool{}
	for _, w := range want {
		missing[w] = true
	}
	for _, g := range got {
		if !missing[g] {
			t.Errorf("%s: rendered %s anew, which should not have changed", what, g)
		}
		delete(missing, g)
	}
	for w := range missing {
		t.Errorf("%s: %s was not rendered anew", what, w)
	}
}

func TestReplayGivesARecord(t *testing.T) {
	if testing.Short() {
		t.Skip("short: replays a season")
	}
	from := season.BeginsAt(2023)
	b := serviceOf(t, archivetest.Stored(t, archivetest.Seasons(t, 2023, 2024)), from, policy())
	facts := must.Get(b.Facts(t.Context()))(t)
	must.Do(t, b.Policy.Replay(t.Context(), b.Ledger, facts, time.Date(2024, 12, 31, 0, 0, 0, 0, time.UTC), nil))
	picks, results := 0, 0
	for s := range b.Ledger.Fold().Records() {
		if s.Pick != nil {
			picks++
			if !s.Pick.FrozenAt.Before(s.Pick.Start) {
				t.Errorf("session %d: frozen at %s, lights out at %s", s.Key, s.Pick.FrozenAt, s.Pick.Start)
			}
		}
		if s.Result() != nil {
			results++
		}
	}
	if picks != 46 || results != 46 { // 22 rounds in 2023, 24 in 2024
		t.Errorf("replayed %d picks and %d results, want 46 of each", picks, results)
	}
}

func TestReplayRefusesARealLedger(t *testing.T) {
	l := must.Get(ledger.Open(t.Context(), memblob.New(), ledger.Real, midSeason, "test", ""))(t)
	a := archivetest.Embedded(t)
	must.Fail(t, "a real ledger was replayed into", policy().Replay(context.Background(), l, archive.Stored{Archive: a}, midSeason.AddDate(1, 0, 0), nil))
	if head := l.Head().Seq; head != 1 {
		t.Errorf("the ledger has %d files, want only the one that opened it", head)
	}
}
