package builder_test

import (
	"errors"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
)

func TestVerifyResult(t *testing.T) {
	b := service(t, midSeason, builder.Policy{Model: predict.GridFrequency()})
	build(t, b, midSeason)
	facts, err := b.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	awaitingAt := func(at time.Time) []builder.AwaitingResult {
		return builder.AwaitingResults(facts.Archive.AsOf(at), b.Ledger.AsOf(at))
	}
	british, ok := facts.Archive.Facts().Seasons[len(facts.Archive.Facts().Seasons)-1].Round("great-britain")
	if !ok {
		t.Fatal("the archive's last season has no British Grand Prix")
	}
	ended := british.ResultKnownAt()
	if got := awaitingAt(ended.Add(-time.Second)); len(got) != 0 {
		t.Fatalf("before the end of the race: got %d results waiting, want none", len(got))
	}
	waiting := awaitingAt(ended)
	if len(waiting) != 1 || waiting[0].Round.GrandPrix != "great-britain" || len(waiting[0].Rows) == 0 {
		t.Fatalf("at the end of the race: got %+v, want the British Grand Prix", waiting)
	}
	key, digest := waiting[0].Session.Key, waiting[0].Digest()
	verify := func(key int64, seen string, at time.Time) error {
		return builder.VerifyResult(t.Context(), b.Ledger, facts.Archive, key, seen, at, "operator:anna")
	}
	for _, tt := range []struct {
		name string
		key  int64
		seen string
		at   time.Time
		want error
	}{
		{"an unknown round", 7, "", ended, ledger.ErrUnknownSession},
		{"a race to come", key + 1, "", ended, builder.ErrNoResult},
		{"a result the archive does not have yet", key, "", ended.Add(-time.Second), builder.ErrNoResult},
		{"another classification than the one looked at", key, "0123456789abcdef", ended, builder.ErrOtherResult},
		{"the one looked at", key, digest, ended, nil},
		{"once more", key, digest, ended.Add(time.Second), ledger.ErrAlreadyVerified},
	} {
		if err := verify(tt.key, tt.seen, tt.at); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
	}
	if got := awaitingAt(ended.Add(time.Hour)); len(got) != 0 {
		t.Errorf("once it is verified: got %d results waiting, want none", len(got))
	}
	said, _ := b.Ledger.State().Session(key)
	if last := said.Result(); last == nil || last.Actor != "operator:anna" {
		t.Errorf("got verification %+v, want one by operator:anna", last)
	}
}
