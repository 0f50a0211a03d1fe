package derive_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder"
	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/builder/source"
	"gridcast/builder/testseason"
	"gridcast/deploy/must"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/memblob"
)

// TestVerifiedResultDoesNotWaitForItsOdds walks over a race: versions are published without the
// odds and the record, keep those they have, and get the new ones after Derive.
func TestVerifiedResultDoesNotWaitForItsOdds(t *testing.T) {
	must.Long(t, "takes ten seconds")
	odds, record := catalog.Variant{Endpoint: catalog.TitleOdds, Year: 2024}, catalog.Variant{Endpoint: catalog.TrackRecord}
	qualified := time.Date(2024, 6, 29, 15, 0, 0, 0, time.UTC)
	verified := time.Date(2024, 6, 30, 16, 0, 0, 0, time.UTC)
	facts := archivetest.Embedded(t).Facts()
	facts.Seasons = slices.DeleteFunc(slices.Clone(facts.Seasons), func(s season.Season) bool { // hindsight begins in 2010
		return s.Year < 2009 || s.Year > 2011 && s.Year < 2019 || s.Year > 2024
	})
	present := &facts.Seasons[len(facts.Seasons)-1]
	sprint := present.Rounds[18]
	sprint.Number = 13
	present.Rounds = append(present.Rounds[:12:12], sprint) // two are to come after the race: few to draw
	b := testseason.New(t, testseason.Config{
		Stored: archivetest.Stored(t, facts), Opened: qualified.Add(-time.Hour),
		Policy: builder.Policy{Model: predict.NewV2(predict.DefaultParams()), AutoVerifyAfter: time.Hour},
	})
	b.TitleRuns = 0 // those of published odds
	b.Publish(qualified)
	if _, ok := testseason.Served[wire.TitleOdds](t, b.Store, odds); ok {
		t.Error("odds that nobody has made are published")
	}
	testseason.Derive(t, b.Builder, qualified, true)
	testseason.Derive(t, b.Builder, qualified, false)
	b.TitleRuns = 1 // odds of fewer runs are never taken for the published ones
	testseason.Derive(t, b.Builder, qualified, true)
	b.TitleRuns = 0
	testseason.Derive(t, b.Builder, qualified, false)
	if outcome := b.Publish(qualified); outcome.Unchanged {
		t.Error("what was derived is not published")
	}
	before, ok := testseason.Served[wire.TitleOdds](t, b.Store, odds)
	if !ok || before.RacesCounted != 10 || before.RacesRemaining != 3 || before.Simulations != 10_000 || before.Drivers[0].Driver != "VER" {
		t.Errorf("before the race: got %+v", before)
	}

	b.Publish(verified)
	accuracy, _ := testseason.Served[wire.Accuracy](t, b.Store, catalog.Variant{Endpoint: catalog.Accuracy})
	must.Hold(t, accuracy.RacesEvaluated == 1, "the verified result is not published: %+v", accuracy)
	if stale, ok := testseason.Served[wire.TitleOdds](t, b.Store, odds); !ok || stale.RacesCounted != 10 {
		t.Errorf("while the odds are not made again: got %+v, want those of before", stale)
	}
	testseason.Derive(t, b.Builder, verified, true)
	b.Publish(verified)
	after, _ := testseason.Served[wire.TitleOdds](t, b.Store, odds)
	if after.RacesCounted != 11 || after.RacesRemaining != 2 {
		t.Errorf("after the race: got %d counted and %d remaining, want 11 and 2", after.RacesCounted, after.RacesRemaining)
	}

	n := len(after.AfterRounds)
	must.Require(t, n == 11, "the odds after %d rounds are told, want 11", n)
	last := after.AfterRounds[10]
	if last.SessionKey != 2024011 || len(last.Drivers) != len(after.Drivers) || len(last.Constructors) != len(after.Constructors) {
		t.Errorf("the last of the series: got %+v, want the odds %+v", last, after)
	}
	for i, d := range last.Drivers {
		of := after.Drivers[slices.IndexFunc(after.Drivers, func(o wire.DriverOdds) bool { return o.Driver == d.Driver })]
		if max(d.TitlePct-of.TitlePct, of.TitlePct-d.TitlePct) > 20 || d.DriverID != of.DriverID || of.PointsMost != of.Points+2*26+8 {
			t.Errorf("place %d of the series has %+v, the odds %+v", i+1, d, of)
		}
	}
	diff := cmp.Diff(before.AfterRounds, after.AfterRounds[:10])
	must.Hold(t, diff == "", "the odds after earlier rounds have changed (-before +after)\n%s", diff)

	got, _ := testseason.Served[wire.TrackRecord](t, b.Store, record)
	if got.Real.Races != 1 || got.Real.RacesWithChances != 1 || got.Real.Picks.LogLoss == nil || got.Real.Pole == nil || got.Real.F0 == nil {
		t.Errorf("the real record: got %+v, want one race with all scores beside pole and f0", got.Real)
	}
	if got.Hindsight.Races != 19+19+21+17+22+22+22+11 || len(got.Hindsight.Seasons) != 8 || len(got.Hindsight.Reliability) != 10 {
		t.Errorf("in hindsight: got %d races in %d seasons, want those since 2010", got.Hindsight.Races, len(got.Hindsight.Seasons))
	}
	if h := got.Hindsight; h.Picks.LogLoss.Value >= h.F0.LogLoss.Value || h.F0.LogLoss.Value >= h.Pole.LogLoss.Value {
		t.Errorf("in hindsight: log-loss %v, of f0 %v, of pole %v; want them to rise", *h.Picks.LogLoss, *h.F0.LogLoss, *h.Pole.LogLoss)
	}
	decided, _ := testseason.Served[wire.TitleOdds](t, b.Store, catalog.Variant{Endpoint: catalog.TitleOdds, Year: 2021})
	if decided.RacesRemaining != 0 || len(decided.Drivers) != 1 || decided.Drivers[0].Driver != "VER" || decided.Constructors[0].Team != "Mercedes" || decided.AfterRounds != nil {
		t.Errorf("2021 is over: got %+v", decided)
	}
}

// TestDerivedOfTheSameFactsAreTheSame derives in two stores.
func TestDerivedOfTheSameFactsAreTheSame(t *testing.T) {
	must.Long(t, "takes ten seconds")
	var made [2]string
	midSeason := time.Date(2024, time.July, 1, 12, 0, 0, 0, time.UTC)
	for i := range made {
		b := testseason.New(t, testseason.Config{Stored: testseason.Short(t, testseason.Austria), Opened: midSeason, Policy: builder.Policy{Model: predict.NewV2(predict.DefaultParams())}})
		b.Publish(midSeason)
		testseason.Derive(t, b.Builder, midSeason, true)
		objects := testseason.Objects(t, b.Store, "derived/")
		for _, key := range slices.Sorted(maps.Keys(objects)) {
			data := objects[key]
			var text json.RawMessage
			if err := source.Decode([]byte(data), &text); err != nil || len(data) > 64<<10 {
				t.Errorf("%s has %d bytes, want at most 64 KB: %v", key, len(data), err)
			}
			made[i] += key + strings.ReplaceAll(string(text), b.Ledger.Head().Hash, "the head") // ids of events differ
		}
	}
	must.Hold(t, made[0] == made[1], "the same facts gave other odds or another record")
	must.Show(t, "the derived documents", made[0], "title-odds/2024")
}

// TestBeforeTheFirstRace: another process finds the file of a store without any race whole.
func TestBeforeTheFirstRace(t *testing.T) {
	at := time.Date(2024, 2, 1, 15, 0, 0, 0, time.UTC)
	facts := archivetest.Embedded(t).Facts()
	facts.Seasons = slices.DeleteFunc(slices.Clone(facts.Seasons), func(s season.Season) bool { return s.Year != 2024 })
	b := testseason.New(t, testseason.Config{Stored: archivetest.Stored(t, facts), Opened: at.Add(-time.Hour), Policy: builder.Policy{Model: predict.NewV2(predict.DefaultParams())}})
	testseason.Derive(t, b.Builder, at, true)
	var log bytes.Buffer
	other := &builder.Builder{Store: b.Store, Ledger: b.Ledger, Facts: b.Facts, Policy: b.Policy, Log: slog.New(slog.NewTextHandler(&log, nil)), TitleRuns: 2}
	testseason.Derive(t, other, at, true)
	must.Equal(t, "the log", "", log.String())
}

// seasonsOf2020 are two seasons of ten rounds and one of six. The lap of a driver in the qualifying of an early round can be
// another.
func seasonsOf2020(t *testing.T, another time.Duration) archive.Stored {
	t.Helper()
	facts := archivetest.Embedded(t).Facts()
	facts.Seasons = slices.Clone(slices.DeleteFunc(slices.Clone(facts.Seasons), func(s season.Season) bool { return s.Year < 2018 || s.Year > 2020 }))
	last := &facts.Seasons[2]
	last.Rounds = slices.Clone(last.Rounds[:6])
	early := &facts.Seasons[1]
	early.Rounds = slices.Clone(early.Rounds[:10])
	facts.Seasons[0].Rounds = facts.Seasons[0].Rounds[:10]
	changed := &early.Rounds[3]
	changed.Qualifying = slices.Clone(changed.Qualifying)
	changed.Qualifying[0].Segments[2] -= another
	a := must.Get(season.New(facts))(t)
	return archive.Stored{Archive: a, SHA256: strings.Repeat(string(rune('a'+another/time.Millisecond)), 64)}
}

// TestOnlyWhatChangedIsDerivedAnew walks over a season, one verified round at a time. It compares the
// derived documents with the ones of a builder that remembers nothing.
func TestOnlyWhatChangedIsDerivedAnew(t *testing.T) {
	must.Long(t, "takes some seconds")
	facts := seasonsOf2020(t, 0)
	rounds := facts.Archive.Facts().Seasons[2].Rounds
	opened := rounds[0].StartsAt().Add(-48 * time.Hour)
	var log bytes.Buffer
	newBuilder := func(store blob.Store) *builder.Builder {
		l := must.Get(ledger.Open(t.Context(), store, ledger.Simulated, opened, "test", ""))(t)
		l.Vouch(facts.Archive.AsOf(opened))
		return &builder.Builder{
			Store: store, Ledger: l, Name: "test", Log: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Facts:  func(context.Context) (archive.Stored, error) { return facts, nil },
			Policy: builder.Policy{Model: predict.NewV2(predict.DefaultParams()), AutoVerifyAfter: time.Hour},
		}
	}
	derived := func(b *builder.Builder, at time.Time) (data map[string]json.RawMessage, anew int) {
		before := testseason.Objects(t, b.Store, "derived/")
		log.Reset()
		testseason.Derive(t, b, at, true)
		var file struct {
			Data  map[string]json.RawMessage
			Parts map[string]json.RawMessage
		}
		var told struct {
			Anew int `json:"made_anew"`
		}
		for key, text := range testseason.Objects(t, b.Store, "derived/") {
			if _, old := before[key]; !old {
				if part := snapshots.SharedMemos([]byte(text)); !strings.HasPrefix(key, snapshots.SharedFolder) && testseason.Objects(t, b.Store, part)[part] == "" {
					t.Errorf("a prune finds the part %q of %s, want an object", part, key)
				}
				must.Do(t, source.Decode([]byte(text), &file))
				n := len(file.Parts)
				must.Hold(t, n <= 3, "%s has %d parts of its own, want an eighth of all at most", key, n)
			}
		}
		err := json.Unmarshal(log.Bytes(), &told)
		must.Require(t, err == nil && len(file.Data) >= 5, "%d variants, log %s, %v", len(file.Data), &log, err)
		return file.Data, told.Anew
	}

	store := memblob.New()
	b := newBuilder(store)
	var again []func()
	for n := -1; n < len(rounds); n++ {
		at, want := opened.Add(time.Hour), 3 // a race, the odds and their place in the series
		switch n {
		case -1:
			want = 10 + 10 + 1 + 9 // the races of the seasons before, and the series of the last one
		case 1:
			b = newBuilder(store) // as after a restart
		case 2: // another archive, which says the same of all that matters
			facts.SHA256 = strings.Repeat("f", 64)
		case 3: // one that says something else of the fourth round of last season: of 10, 7 have seen it
			facts, want = seasonsOf2020(t, time.Millisecond), 7+4+1+4
		case len(rounds) - 1: // nothing is left to be simulated
			want = 1
		}
		if n >= 0 {
			at = rounds[n].StartsAt().Add(5 * time.Hour)
		}
		must.Get(b.Policy.Settle(t.Context(), testseason.Fresh(t, b.Ledger), facts, at))(t)
		got, anew := derived(b, at)
		if anew != want {
			t.Errorf("after %d rounds %d parts were made anew, want %d", n+1, anew, want)
		}
		bare := memblob.New()
		for key, data := range testseason.Objects(t, store, "ledger/") {
			must.Get(bare.Create(t.Context(), key, []byte(data)))(t)
		}
		then := facts
		again = append(again, func() {
			facts = then
			whole, _ := derived(newBuilder(bare), at)
			if diff := cmp.Diff(whole, got); diff != "" {
				t.Errorf("after %d rounds: not what is derived from nothing (-from nothing +got)\n%s", n+1, diff)
			}
		})
	}
	for _, compare := range again {
		compare()
	}
}
