package builder_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/predict"
	"gridcast/schemas"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
)

// served returns the data of a variant of the current version; ok is false if it has none.
func served[T any](t *testing.T, b *builder.Builder, v catalog.Variant) (data T, ok bool) {
	t.Helper()
	base, err := snapshots.LoadBase(t.Context(), b.Store)
	if err != nil {
		t.Fatal(err)
	}
	entry, ok := base.Entry(v.Path())
	if !ok {
		return data, false
	}
	body, err := base.Body(t.Context(), entry)
	if err != nil {
		t.Fatal(err)
	}
	if err := schemas.Validate(v, body); err != nil {
		t.Fatal(err)
	}
	var envelope wire.Success[T]
	if err := json.Unmarshal(body, &envelope); err != nil {
		t.Fatal(err)
	}
	return envelope.Data, true
}

func derive(t *testing.T, b *builder.Builder, at time.Time, want bool) {
	t.Helper()
	made, err := b.Derive(t.Context(), at)
	if err != nil || made != want {
		t.Fatalf("derive at %s: got %t, %v; want %t", at, made, err, want)
	}
}

// TestVerifiedResultDoesNotWaitForItsOdds walks over a race: versions are published without the
// odds and the record, keep those they have, and get the new ones after Derive.
func TestVerifiedResultDoesNotWaitForItsOdds(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds")
	}
	odds, record := catalog.Variant{Endpoint: catalog.TitleOdds, Year: 2024}, catalog.Variant{Endpoint: catalog.TrackRecord}
	qualified := time.Date(2024, 6, 29, 15, 0, 0, 0, time.UTC)
	verified := time.Date(2024, 6, 30, 16, 0, 0, 0, time.UTC)
	b := service(t, qualified.Add(-time.Hour), builder.Policy{Model: predict.NewV2(predict.DefaultParams()), AutoVerifyAfter: time.Hour})
	build(t, b, qualified)
	if _, ok := served[wire.TitleOdds](t, b, odds); ok {
		t.Error("odds that nobody has made are published")
	}
	derive(t, b, qualified, true)
	derive(t, b, qualified, false)
	if outcome := build(t, b, qualified); outcome.Unchanged {
		t.Error("what was derived is not published")
	}
	before, ok := served[wire.TitleOdds](t, b, odds)
	if !ok || before.RacesCounted != 10 || before.RacesRemaining != 14 || before.Simulations != 10_000 || before.Drivers[0].Driver != "VER" {
		t.Errorf("before the race: got %+v", before)
	}

	build(t, b, verified)
	accuracy, _ := served[wire.Accuracy](t, b, catalog.Variant{Endpoint: catalog.Accuracy})
	if accuracy.RacesEvaluated != 1 {
		t.Errorf("the verified result is not published: %+v", accuracy)
	}
	if stale, ok := served[wire.TitleOdds](t, b, odds); !ok || stale.RacesCounted != 10 {
		t.Errorf("while the odds are not made again: got %+v, want those of before", stale)
	}
	derive(t, b, verified, true)
	build(t, b, verified)
	after, _ := served[wire.TitleOdds](t, b, odds)
	if after.RacesCounted != 11 || after.RacesRemaining != 13 {
		t.Errorf("after the race: got %d counted and %d remaining, want 11 and 13", after.RacesCounted, after.RacesRemaining)
	}

	got, _ := served[wire.TrackRecord](t, b, record)
	if got.Real.Races != 1 || got.Real.RacesWithChances != 1 || got.Real.Picks.LogLoss == nil || got.Real.Pole == nil || got.Real.F0 == nil {
		t.Errorf("the real record: got %+v, want one race with all scores beside pole and f0", got.Real)
	}
	if got.Hindsight.Races < 280 || len(got.Hindsight.Seasons) != 15 || len(got.Hindsight.Reliability) != 10 {
		t.Errorf("in hindsight: got %d races in %d seasons, want those since 2010", got.Hindsight.Races, len(got.Hindsight.Seasons))
	}
	if h := got.Hindsight; h.Picks.LogLoss.Value >= h.F0.LogLoss.Value || h.F0.LogLoss.Value >= h.Pole.LogLoss.Value {
		t.Errorf("in hindsight: log-loss %v, of f0 %v, of pole %v; want them to rise", *h.Picks.LogLoss, *h.F0.LogLoss, *h.Pole.LogLoss)
	}
	decided, _ := served[wire.TitleOdds](t, b, catalog.Variant{Endpoint: catalog.TitleOdds, Year: 2021})
	if decided.RacesRemaining != 0 || len(decided.Drivers) != 1 || decided.Drivers[0].Driver != "VER" || decided.Constructors[0].Team != "Mercedes" {
		t.Errorf("2021 is over: got %+v", decided)
	}
}

// TestDerivedOfTheSameFactsAreTheSame derives in two stores.
func TestDerivedOfTheSameFactsAreTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds")
	}
	var made [2]string
	for i := range made {
		b := service(t, midSeason, builder.Policy{Model: predict.NewV2(predict.DefaultParams())})
		build(t, b, midSeason)
		derive(t, b, midSeason, true)
		for info, err := range b.Store.List(t.Context(), "derived/") {
			if err != nil {
				t.Fatal(err)
			}
			o, err := b.Store.Get(t.Context(), info.Key, 1<<24)
			if err != nil {
				t.Fatal(err)
			}
			made[i] += info.Key + string(o.Data)
		}
	}
	if made[0] != made[1] || !strings.Contains(made[0], "title-odds/2024") {
		t.Error("the same facts gave other odds or another record")
	}
}
