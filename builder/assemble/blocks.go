package assemble

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"gridcast/builder/season"
)

// Block is a part of a round that is taken as a whole or not at all.
type Block string

// The blocks of a round.
const (
	Calendar   Block = "calendar" // number, name, circuit, course, laps, whether there is a sprint
	Start      Block = "start"    // the day and the hour of lights out
	Sessions   Block = "sessions" // when the other sessions are held
	Practice   Block = "practice"
	Entries    Block = "entries"
	Qualifying Block = "qualifying"
	Grid       Block = "grid"
	Sprint     Block = "sprint" // its qualifying, grid and classification
	Result     Block = "result" // classification, fastest laps, pit stops, and the source's standings after it
)

// blocks are all blocks, in the order in which a weekend fills them.
var blocks = []Block{Calendar, Start, Sessions, Practice, Entries, Qualifying, Sprint, Grid, Result}

// outcome reports whether a block is the outcome of a session, for which people wait.
func outcome(b Block) bool { return slices.Contains([]Block{Qualifying, Sprint, Grid, Result}, b) }

// Blocks returns all blocks, in the order in which a weekend fills them.
func Blocks() []Block { return slices.Clone(blocks) }

// fields returns what a block consists of, as pointers into the round.
func fields(b Block, r *season.Round) []any {
	switch b {
	case Calendar:
		return []any{&r.Number, &r.Name, &r.Circuit, &r.Street, &r.CourseKm, &r.ScheduledLaps, &r.Sprint}
	case Start:
		return []any{&r.Date, &r.Start}
	case Sessions:
		return []any{&r.Sessions}
	case Practice:
		return []any{&r.Practice}
	case Entries:
		return []any{&r.Entries}
	case Qualifying:
		return []any{&r.Qualifying}
	case Grid:
		return []any{&r.Grid}
	case Sprint:
		return []any{&r.SprintQualifying, &r.SprintGrid, &r.SprintResults}
	case Result:
		return []any{&r.Results, &r.FastestLaps, &r.PitStops, &r.DriverStandings, &r.TeamStandings}
	}
	panic(fmt.Sprintf("BUG: assemble knows no block %q", b))
}

// Part returns of a round the block alone, and which round it is of.
func Part(b Block, r *season.Round) season.Round {
	part := season.Round{GrandPrix: r.GrandPrix}
	Copy(b, &part, r)
	return part
}

// Has reports whether the round says anything of a block.
func Has(b Block, r *season.Round) bool {
	return slices.ContainsFunc(fields(b, r), func(field any) bool { return !reflect.ValueOf(field).Elem().IsZero() })
}

// Same reports whether two rounds say the same of a block. A field that a source leaves empty says
// nothing: absence never removes.
func Same(b Block, was, is *season.Round) bool {
	old, now := fields(b, was), fields(b, is)
	for i := range now {
		if value := reflect.ValueOf(now[i]).Elem(); !value.IsZero() && !reflect.DeepEqual(old[i], now[i]) {
			return false
		}
	}
	return true
}

// Copy gives a round what another says of a block.
func Copy(b Block, into, from *season.Round) {
	target, origin := fields(b, into), fields(b, from)
	for i := range origin {
		if value := reflect.ValueOf(origin[i]).Elem(); !value.IsZero() {
			reflect.ValueOf(target[i]).Elem().Set(value)
		}
	}
}

// words returns a block as lines for people, by what each is about: a driver, a session.
func words(b Block, r *season.Round) map[string]string {
	lines := make(map[string]string)
	add := func(about string, parts ...string) {
		line := strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
		if lines[about] != "" {
			line = lines[about] + "; " + line
		}
		lines[about] = line
	}
	switch b {
	case Calendar:
		add("round", strconv.Itoa(r.Number))
		add("name", r.Name)
		add("circuit", string(r.Circuit))
		add("course", fmt.Sprintf("%g km, %d laps, street circuit %t", r.CourseKm, r.ScheduledLaps, r.Street))
		add("sprint", strconv.FormatBool(r.Sprint))
	case Start:
		if r.Provisional() {
			add("start", r.Date.Format(time.DateOnly)+", hour unknown")
		} else {
			add("start", r.Start.UTC().Format("2006-01-02 15:04 UTC"))
		}
	case Sessions:
		for _, s := range r.Sessions {
			if s.Start.IsZero() {
				add(string(s.Kind), s.Date.Format(time.DateOnly)+", hour unknown")
			} else {
				add(string(s.Kind), s.Start.UTC().Format("2006-01-02 15:04 UTC"))
			}
		}
	case Practice:
		for i, laps := range r.Practice {
			for _, row := range laps {
				add(string(row.Driver), fmt.Sprintf("practice %d %s", i+1, row.Time))
			}
		}
	case Entries:
		for _, row := range r.Entries {
			add(string(row.Driver), fmt.Sprintf("car %d", row.Number), string(row.Team), string(row.Engine))
		}
	case Qualifying:
		for _, row := range r.Qualifying {
			add(string(row.Driver), place(row.Position), bestOf(row))
		}
	case Grid:
		for _, row := range r.Grid {
			add(string(row.Driver), slot(row.Position))
		}
	case Sprint:
		for _, row := range r.SprintQualifying {
			add(string(row.Driver), "qualifying "+place(row.Position), bestOf(row))
		}
		for _, row := range r.SprintGrid {
			add(string(row.Driver), slot(row.Position))
		}
		for _, row := range r.SprintResults {
			add(string(row.Driver), classified(row)...)
		}
	case Result:
		for _, row := range r.Results {
			add(string(row.Driver), classified(row)...)
		}
		for _, row := range r.DriverStandings {
			add("standing of "+string(row.Driver), place(row.Position), fmt.Sprintf("%g points", row.Points))
		}
		for _, row := range r.TeamStandings {
			add("standing of "+string(row.Team)+" "+string(row.Engine), place(row.Position), fmt.Sprintf("%g points", row.Points))
		}
	}
	return lines
}

func place(position int) string {
	if position == 0 {
		return "unplaced"
	}
	return fmt.Sprintf("P%d", position)
}

func slot(position int) string {
	if position == 0 {
		return "pit lane"
	}
	return fmt.Sprintf("slot %d", position)
}

func bestOf(row season.QualifyingRow) string {
	for _, t := range []time.Duration{row.Segments[2], row.Segments[1], row.Segments[0], row.Time} {
		if t > 0 {
			return t.String()
		}
	}
	return ""
}

func classified(row season.Result) []string {
	position := place(row.Position)
	if row.Position == 0 && row.Outcome != "" {
		position = string(row.Outcome)
	}
	return []string{position, fmt.Sprintf("%g points", row.Points), fmt.Sprintf("%d laps", row.Laps), string(row.Team)}
}

// Line is a difference between what was and what is, for people.
type Line struct {
	About string `json:"about"` // a driver, a session, a field
	Was   string `json:"was,omitempty"`
	Is    string `json:"is,omitempty"`
}

// difference returns what of a block differs, in order.
func difference(b Block, was, is *season.Round) []Line {
	merged := *was
	Copy(b, &merged, is)
	return differing(words(b, was), words(b, &merged))
}

// differing returns what differs between two sets of words.
func differing(old, now map[string]string) []Line {
	var lines []Line
	for _, about := range slices.Sorted(maps.Keys(now)) {
		if old[about] != now[about] {
			lines = append(lines, Line{about, old[about], now[about]})
		}
	}
	for _, about := range slices.Sorted(maps.Keys(old)) {
		if _, ok := now[about]; !ok {
			lines = append(lines, Line{about, old[about], ""})
		}
	}
	return lines
}
