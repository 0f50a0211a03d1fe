// Package archivetest gives tests the embedded seasons, whole or in part.
package archivetest

import (
	"bytes"
	"slices"
	"sync"
	"testing"

	"gridcast/builder/archive"
	"gridcast/builder/season"
)

var embedded = sync.OnceValues(archive.Embedded)

// Embedded returns the embedded seasons. They are decoded once for all tests of a package.
func Embedded(t testing.TB) *season.Archive {
	t.Helper()
	a, err := embedded()
	if err != nil {
		t.Fatal(err)
	}
	return a
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

// File returns the archive file of facts, which must hold together.
func File(t testing.TB, facts season.Facts) []byte {
	t.Helper()
	a, err := season.New(facts)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := archive.Encode(&file, a); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}
