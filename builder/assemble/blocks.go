package assemble

import (
	"slices"
	"time"

	"gridcast/builder/season"
)

// Block is a part of a round that is applied as a whole or not at all.
type Block string

// The blocks of a round.
const (
	Calendar   Block = "calendar" // number, name, circuit, course, laps, whether there is a sprint
	Start      Block = "start"    // the day and the hour of lights out
	Sessions   Block = "sessions" // the starts of the other sessions
	Practice   Block = "practice"
	Entries    Block = "entries"
	Qualifying Block = "qualifying"
	Grid       Block = "grid"
	Sprint     Block = "sprint" // its qualifying, grid and classification
	Result     Block = "result" // classification, fastest laps, pit stops, and the source's standings after it
)

// Names is the name of a driver, in proposals. It is no block of a round.
const Names Block = "names"

// blocks are all blocks, in the order in which a weekend fills them.
var blocks = []Block{Calendar, Start, Sessions, Practice, Entries, Qualifying, Sprint, Grid, Result}

// blockOf returns the block of a part of a round. Without a part it is Names.
func blockOf(section season.Section) Block {
	switch section {
	case "":
		return Names
	case season.CalendarSection, season.StartSection, season.SessionsSection, season.EntriesSection, season.GridSection, season.Section(season.Qualifying):
		return Block(section)
	case season.Section(season.SprintQualifying), season.SprintGridSection, season.Section(season.Sprint):
		return Sprint
	case season.ResultSection, season.FastestLapsSection, season.PitStopsSection, season.DriverStandingsSection, season.TeamStandingsSection:
		return Result
	}
	return Practice
}

// outcome reports whether a block is the outcome of a session, which people wait for.
func outcome(b Block) bool { return slices.Contains([]Block{Qualifying, Sprint, Grid, Result}, b) }

// Blocks returns all blocks, in the order in which a weekend fills them.
func Blocks() []Block { return slices.Clone(blocks) }

// field gives access to one field of a round.
type field struct {
	block Block
	name  string // for people
	empty func(r *season.Round) bool
	equal func(a, b *season.Round) bool
	copy  func(into, from *season.Round)
	value func(r *season.Round) any
}

// fields are the fields of a round in its order, except the Grand Prix, which identifies the round.
var fields = []field{
	value(Calendar, "number", func(r *season.Round) *int { return &r.Number }),
	value(Calendar, "name", func(r *season.Round) *string { return &r.Name }),
	value(Calendar, "circuit", func(r *season.Round) *season.CircuitID { return &r.Circuit }),
	value(Calendar, "street", func(r *season.Round) *bool { return &r.Street }),
	value(Calendar, "course km", func(r *season.Round) *float64 { return &r.CourseKm }),
	value(Calendar, "scheduled laps", func(r *season.Round) *int { return &r.ScheduledLaps }),
	fieldOf(Start, "date", func(r *season.Round) *time.Time { return &r.Date }, time.Time.Equal),
	fieldOf(Start, "start", func(r *season.Round) *time.Time { return &r.Start }, time.Time.Equal),
	value(Calendar, "sprint", func(r *season.Round) *bool { return &r.Sprint }),
	rows(Sessions, "sessions", func(r *season.Round) *[]season.Session { return &r.Sessions }),
	rows(Entries, "entries", func(r *season.Round) *[]season.Entry { return &r.Entries }),
	fieldOf(Practice, "practice", func(r *season.Round) *[4][]season.TimedLap { return &r.Practice }, func(a, b [4][]season.TimedLap) bool {
		return slices.EqualFunc(a[:], b[:], slices.Equal)
	}),
	rows(Qualifying, "qualifying", func(r *season.Round) *[]season.QualifyingRow { return &r.Qualifying }),
	rows(Sprint, "sprint qualifying", func(r *season.Round) *[]season.QualifyingRow { return &r.SprintQualifying }),
	rows(Sprint, "sprint grid", func(r *season.Round) *[]season.GridSlot { return &r.SprintGrid }),
	rows(Sprint, "sprint results", func(r *season.Round) *[]season.Result { return &r.SprintResults }),
	rows(Grid, "grid", func(r *season.Round) *[]season.GridSlot { return &r.Grid }),
	rows(Result, "results", func(r *season.Round) *[]season.Result { return &r.Results }),
	rows(Result, "fastest laps", func(r *season.Round) *[]season.FastestLap { return &r.FastestLaps }),
	rows(Result, "pit stops", func(r *season.Round) *[]season.PitStop { return &r.PitStops }),
	rows(Result, "driver standings", func(r *season.Round) *[]season.DriverStanding { return &r.DriverStandings }),
	rows(Result, "team standings", func(r *season.Round) *[]season.TeamStanding { return &r.TeamStandings }),
}

func fieldOf[T any](b Block, name string, at func(*season.Round) *T, equal func(a, b T) bool) field {
	return field{
		block: b, name: name,
		empty: func(r *season.Round) bool { var zero T; return equal(*at(r), zero) },
		equal: func(a, b *season.Round) bool { return equal(*at(a), *at(b)) },
		copy:  func(into, from *season.Round) { *at(into) = *at(from) },
		value: func(r *season.Round) any { return at(r) },
	}
}

func value[T comparable](b Block, name string, at func(*season.Round) *T) field {
	return fieldOf(b, name, at, func(a, b T) bool { return a == b })
}

func rows[T comparable](b Block, name string, at func(*season.Round) *[]T) field {
	return fieldOf(b, name, at, slices.Equal[[]T])
}

// Only returns a round that has only one block and its Grand Prix.
func Only(b Block, r *season.Round) season.Round {
	part := season.Round{GrandPrix: r.GrandPrix}
	Copy(b, &part, r)
	return part
}

// Has reports whether a round has any field of a block.
func Has(b Block, r *season.Round) bool {
	return slices.ContainsFunc(fields, func(f field) bool { return f.block == b && !f.empty(r) })
}

// Same reports whether before already has the block of after. A field that after leaves empty counts
// as the same, because absence never removes a fact.
func Same(b Block, before, after *season.Round) bool {
	return !slices.ContainsFunc(fields, func(f field) bool { return f.block == b && !f.empty(after) && !f.equal(before, after) })
}

// Copy copies a block from one round into another, except its empty fields. A day without an hour clears the hour of
// another day.
func Copy(b Block, into, from *season.Round) {
	if b == Start && from.Start.IsZero() && !from.Date.IsZero() && !from.Date.Equal(into.Date) {
		into.Start = time.Time{}
	}
	for _, f := range fields {
		if f.block == b && !f.empty(from) {
			f.copy(into, from)
		}
	}
}

// replace copies a block from one round into another, its empty fields too.
func replace(b Block, into, from *season.Round) {
	for _, f := range fields {
		if f.block == b {
			f.copy(into, from)
		}
	}
}

// ChangedFields returns the names of the fields in which two rounds differ.
func ChangedFields(before, after *season.Round) []string {
	var changed []string
	for _, f := range fields {
		if !f.equal(before, after) {
			changed = append(changed, f.name)
		}
	}
	return changed
}
