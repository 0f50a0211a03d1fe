// Package archivetest gives tests the embedded seasons, whole or in part.
package archivetest

import (
	"slices"
	"testing"

	"gridcast/builder/archive"
	"gridcast/builder/season"
)

// Embedded returns the embedded seasons.
func Embedded(t testing.TB) *season.Archive {
	t.Helper()
	return StoredEmbedded(t).Archive
}

// StoredEmbedded returns the embedded seasons in their parts.
func StoredEmbedded(t testing.TB) archive.Stored {
	t.Helper()
	stored, err := archive.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// Put uses an archive in a store.
func Put(t testing.TB, store *archive.Store, stored archive.Stored) archive.Stored {
	t.Helper()
	if err := store.Put(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	return stored
}

// Seasons returns the facts of the embedded seasons from one year to another, because few seasons build in a fraction
// of the time. Tests may replace seasons and rounds. They share the contents of a round, and only read them.
func Seasons(t testing.TB, from, to int) season.Facts {
	t.Helper()
	facts := Embedded(t).Facts()
	facts.Seasons = slices.DeleteFunc(slices.Clone(facts.Seasons), func(s season.Season) bool { return s.Year < from || s.Year > to })
	for i := range facts.Seasons {
		facts.Seasons[i].Rounds = slices.Clone(facts.Seasons[i].Rounds)
	}
	return facts
}

// Scheduled returns a round as its calendar has it, before any session.
func Scheduled(r *season.Round) season.Round {
	return season.Round{
		Number: r.Number, GrandPrix: r.GrandPrix, Name: r.Name, Circuit: r.Circuit, Street: r.Street, CourseKm: r.CourseKm,
		ScheduledLaps: r.ScheduledLaps, Date: r.Date, Start: r.Start, Sprint: r.Sprint, Sessions: r.Sessions,
	}
}

// Stored returns the archive of facts, which must hold together. It takes the compressed form of embedded seasons
// from the embedded archive.
func Stored(t testing.TB, facts season.Facts) archive.Stored {
	t.Helper()
	a, err := season.New(facts)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := archive.Encode(a, StoredEmbedded(t))
	if err != nil {
		t.Fatal(err)
	}
	return stored
}
