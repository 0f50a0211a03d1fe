package assemble

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gridcast/builder/season"
)

// invariant is a rule between the tables of a weekend, which the facts of a source must keep before any of them is
// applied unattended. A breach holds the changed blocks that it names, until a person accepts them.
type invariant struct {
	name  Gate
	scope []Block // the blocks that a breach may name
	waits bool    // a breach holds nothing: the result waits --auto-verify-after twice
	from  int     // the first season that is held to it; races of earlier ones break it or lack its columns
	// except has the true breaches of later races: a part of the sentence.
	except map[string][]string
	check  func(w *weekend, breach breach)
}

// breach reports that a block breaks an invariant. The sentence names the row, the value and the expected one.
type breach func(b Block, format string, args ...any)

// invariants hold the columns of a weekend against each other and against its other documents. Each was run over all
// races from 1950 to 2026.
var invariants = []invariant{
	{name: "laps", scope: []Block{Result, Sprint}, from: 1950, except: map[string][]string{
		"1975 sweden": {"P11 alan-jones"}, // was given a lap more than the 10th
	}, check: (*weekend).laps},
	{name: "revised", scope: []Block{Result, Sprint}, from: 2024, check: (*weekend).revised},
	{name: "distance", scope: []Block{Result, Sprint}, from: 1990, except: map[string][]string{
		"1993 japan": {"P18 "}, // without laps in the source
	}, check: (*weekend).distance},
	{name: "gaps", scope: []Block{Result, Sprint}, from: 1990, check: (*weekend).gaps},
	{name: "columns", scope: []Block{Practice, Qualifying, Sprint, Result}, from: 2025, check: (*weekend).columns},
	{name: "order", scope: []Block{Practice, Qualifying, Sprint, Grid, Result}, from: 2024, check: (*weekend).order},
	{name: "pace", scope: []Block{Result, Sprint}, from: 1990, check: (*weekend).pace},
	{name: "slow", scope: []Block{Result}, waits: true, from: 1990, check: (*weekend).slow},
	{name: "lap_times", scope: []Block{Practice, Qualifying, Sprint, Result}, from: 2007, check: (*weekend).lapTimes},
	{name: "segments", scope: []Block{Qualifying, Sprint}, from: 2024, check: (*weekend).segments},
	{name: "retirement", scope: []Block{Result, Sprint}, from: 2024, check: (*weekend).retirements},
	{name: "grid", scope: []Block{Grid, Result, Sprint}, from: 2024, check: (*weekend).grid},
	{name: "progress", scope: []Block{Result}, waits: true, from: 2024, except: map[string][]string{ // they waited in their garages
		"2026 australia":     {"fernando-alonso retired after 21 laps and has the fastest lap 26"},
		"2026 great-britain": {"nico-hulkenberg retired after 36 laps and has the fastest lap 37", "alexander-albon retired after 43 laps and has the fastest lap 45"},
	}, check: (*weekend).progress},
	{name: "pit_lane", scope: []Block{Result}, waits: true, from: 2024, except: map[string][]string{
		// They withdrew before the start.
		"2025 spain":   {"lance-stroll is at 14 on the grid of the race and started from 0"},
		"2025 austria": {"carlos-sainz-jr is at 19 on the grid of the race and started from 0"},
		"2025 italy":   {"nico-hulkenberg is at 12 on the grid of the race and started from 0"},
		// One of two tables of the source has the pit lane.
		"2026 china":         {"alexander-albon is at 22 on the grid of the race and started from 0", "alexander-albon is at 0 on the grid of the sprint and started from 22"},
		"2026 canada":        {"lance-stroll is at 17 on the grid of the sprint and started from 0"},
		"2026 monaco":        {"gabriel-bortoleto is at 16 on the grid of the race and started from 0"},
		"2026 great-britain": {"fernando-alonso is at 21 on the grid of the race and started from 0"},
	}, check: (*weekend).pitLane},
	{name: "unknown", scope: []Block{Result}, waits: true, from: 1950, check: (*weekend).unknowns},
	{name: "person", scope: []Block{Practice, Entries, Qualifying, Sprint, Grid, Result}, from: 2025, check: (*weekend).people},
	{name: "fastest_lap", scope: []Block{Result}, from: 2024, check: (*weekend).fastestLaps},
	{name: "pit_stop", scope: []Block{Result}, from: 2024, check: (*weekend).pitStops},
	{name: "standings", scope: []Block{Result}, from: 2024, check: (*weekend).standings},
	{name: "countback", scope: []Block{Result}, waits: true, from: 2024, check: (*weekend).countback},
	{name: "timetable", scope: []Block{Start, Sessions}, from: 2024, except: map[string][]string{
		"2024 sao-paulo": {"qualifying starts at", "race starts at"}, // rain moved qualifying to the morning of the race
	}, check: (*weekend).timetable},
	{name: "course", scope: []Block{Calendar}, from: 2024, check: (*weekend).course},
}

// weekend is a round as it is with everything that a document says of it.
type weekend struct {
	last     *season.Round           // of the season before, nil if it is unknown
	numbers  map[season.DriverID]int // of the regular drivers of the two seasons before
	year     int
	round    season.Round                        // ours with all blocks of the document
	before   *season.Round                       // ours
	rounds   []season.Round                      // of the document's season
	earlier  []season.Round                      // our rounds of the season
	circuits map[season.CircuitID]season.Circuit // ours
	sheets   []season.Sheet                      // of the document's round
	began    bool                                // the first session has started
}

// mostSentences is the number of breaches of one invariant that a held block names.
const mostSentences = 3

// breaches returns the broken invariants of a weekend by block. waits has those that only delay the verification.
func (w *weekend) breaches() (held map[Block][]Refusal, waits []string) {
	held = make(map[Block][]Refusal)
	for _, inv := range invariants {
		if w.year < inv.from {
			continue
		}
		except := inv.except[fmt.Sprintf("%d %s", w.year, w.round.GrandPrix)]
		inv.check(w, func(b Block, format string, args ...any) {
			refusal, same := Refusal{inv.name, fmt.Sprintf(format, args...)}, 0
			if slices.ContainsFunc(except, func(part string) bool { return strings.Contains(refusal.Reason, part) }) {
				return
			}
			for _, other := range held[b] {
				if other.Gate == inv.name {
					same++
				}
			}
			switch {
			case inv.waits:
				waits = append(waits, refusal.Reason)
			case same < mostSentences && !slices.Contains(held[b], refusal):
				held[b] = append(held[b], refusal)
			}
		})
	}
	return held, waits
}

// race is a classification of a weekend with the tables that belong to it.
type race struct {
	name      string
	block     Block
	section   season.Section
	rows      []season.Result
	grid      []season.GridSlot
	gridBlock Block
}

// races returns the classifications that the weekend has.
func (w *weekend) races() []race {
	all := []race{
		{"race", Result, season.ResultSection, w.round.Results, w.round.Grid, Grid},
		{"sprint", Sprint, season.Section(season.Sprint), w.round.SprintResults, w.round.SprintGrid, Sprint},
	}
	return slices.DeleteFunc(all, func(r race) bool { return len(r.rows) == 0 })
}

// placed returns the classified rows by place.
func (r *race) placed() []season.Result {
	rows := slices.DeleteFunc(slices.Clone(r.rows), func(row season.Result) bool { return row.Position == 0 })
	slices.SortStableFunc(rows, func(a, b season.Result) int { return cmp.Compare(a.Position, b.Position) })
	return rows
}

// winner returns the winner's row, empty if there is none.
func (r *race) winner() season.Result {
	if rows := r.placed(); len(rows) > 0 && rows[0].Position == 1 {
		return rows[0]
	}
	return season.Result{}
}

func (w *weekend) laps(breach breach) {
	for _, r := range w.races() {
		last, winner := season.Result{}, r.winner()
		for _, row := range r.placed() {
			if last.Laps > 0 && row.Laps > last.Laps {
				breach(r.block, "%s: P%d %s has %d laps and P%d has %d: laps never rise down the places", r.name, row.Position, row.Driver, row.Laps, last.Position, last.Laps)
			}
			last = row
		}
		for _, row := range r.rows {
			switch {
			case winner.Laps > 0 && row.Laps > winner.Laps:
				breach(r.block, "%s: %s has %d laps, at most the winner's %d are possible", r.name, row.Driver, row.Laps, winner.Laps)
			case row.Laps > 0 && !row.Started():
				breach(r.block, "%s: %s is %s and has %d laps, expected none", r.name, row.Driver, row.Outcome, row.Laps)
			}
		}
	}
}

// revised holds the laps of a retired car against the revision in use, because often no other table of the source has them.
func (w *weekend) revised(breach breach) {
	for _, r := range w.races() {
		before := w.before.Results
		if r.block == Sprint {
			before = w.before.SprintResults
		}
		for _, row := range r.rows {
			i := slices.IndexFunc(before, func(was season.Result) bool { return was.Driver == row.Driver })
			if i >= 0 && row.Position == 0 && before[i].Position == 0 && before[i].Laps > 0 && row.Laps != before[i].Laps {
				breach(r.block, "%s: %s retired after %d laps, and after %d in the revision before", r.name, row.Driver, row.Laps, before[i].Laps)
			}
		}
	}
}

func (w *weekend) distance(breach breach) {
	for _, r := range w.races() {
		least := r.winner().Laps * 9 / 10
		for _, row := range r.placed() {
			if row.Laps < least {
				breach(r.block, "%s: P%d %s has %d laps, and at least %d are needed to be classified", r.name, row.Position, row.Driver, row.Laps, least)
			}
		}
	}
}

func (w *weekend) gaps(breach breach) {
	for _, r := range w.races() {
		last, winner := season.Result{}, r.winner()
		for _, row := range r.placed() {
			if row.Time == 0 || winner.Time == 0 && row.Position > 1 {
				continue
			}
			switch {
			case row.Time < last.Time:
				breach(r.block, "%s: P%d %s took %s and P%d took %s: gaps rise with the place", r.name, row.Position, row.Driver, row.Time, last.Position, last.Time)
			case row.Laps > 0 && row.Laps < winner.Laps:
				breach(r.block, "%s: P%d %s has the time %s and %d laps: only cars with the winner's %d laps have a time", r.name, row.Position, row.Driver, row.Time, row.Laps, winner.Laps)
			}
			last = row
		}
	}
}

// columns holds the gaps and intervals of each table of times against its times.
func (w *weekend) columns(breach breach) {
	for _, s := range w.sheets {
		if len(s.Rows) == 0 || !slices.ContainsFunc(s.Rows, func(row season.SheetRow) bool { return row.Gap != "" }) {
			continue
		}
		if s.Section == season.FastestLapsSection { // a driver without a lap may stand anywhere
			s.Rows = slices.DeleteFunc(slices.Clone(s.Rows), func(row season.SheetRow) bool { return row.Time == 0 && row.Gap == "" })
		}
		block, first := blockOf(s.Section), s.Rows[0]
		for i, row := range s.Rows {
			last := s.Rows[max(0, i-1)]
			say := func(column, value string, want any) {
				breach(block, "%s, row %d: %s has the %s %q, expected %q", s.File, i+1, row.Driver, column, value, want)
			}
			for _, c := range []struct {
				name, value string
				from        season.SheetRow
			}{{"gap", row.Gap, first}, {"interval", row.Interval, last}} {
				value, seconds := strings.CutPrefix(c.value, "+")
				gap, ok := season.ParseLapTime(value)
				lapped := strings.Contains(value, "lap")
				switch {
				case c.value == "":
				case !seconds || !ok && !lapped:
					say(c.name, c.value, "+TIME or +LAPS lap")
				case i == 0 && gap+0 != 0:
					say(c.name, c.value, "")
				case ok && (row.Time == 0 || c.from.Time == 0 || row.Time-c.from.Time != gap):
					say(c.name, c.value, fmt.Sprintf("+%.3f", max(0, row.Time-c.from.Time).Seconds()))
				case lapped && row.Time != 0:
					say(c.name, c.value, "")
				case lapped && c.name == "gap" && value != lapsBehind(first.Laps-row.Laps):
					say(c.name, c.value, "+"+lapsBehind(first.Laps-row.Laps))
				}
			}
			_, err := strconv.Atoi(row.Place)
			if (s.Section == season.ResultSection || s.Section == season.Section(season.Sprint)) && err == nil && i > 0 && row.Gap == "" && row.Reason == "" && row.Laps == first.Laps {
				say("gap", "", "+TIME or +LAPS lap")
			}
			if row.Time != 0 && i > 0 && row.Gap == "" && blockOf(s.Section) == Practice {
				say("gap", "", fmt.Sprintf("+%.3f", (row.Time-first.Time).Seconds()))
			}
			if row.Time == 0 && i == 0 {
				say("time", "", "a time, because others have a gap to it")
			}
		}
	}
}

func lapsBehind(n int) string {
	if n == 1 {
		return "1 lap"
	}
	return fmt.Sprintf("%d laps", n)
}

// order holds the places of each table against the order of its rows.
func (w *weekend) order(breach breach) {
	for _, s := range w.sheets {
		unplaced := false
		want := 1
		for i, row := range s.Rows {
			if s.Section == season.FastestLapsSection && row.Gap == "" && (want > 1 || row.Time == 0) {
				continue // a driver without a lap, or disqualified
			}
			place, err := strconv.Atoi(row.Place)
			switch {
			case row.Place == string(season.Disqualified):
				continue // the source may leave the row where it was
			case err != nil:
				unplaced = true
			case unplaced && blockOf(s.Section) != Grid && s.Section != season.SprintGridSection:
				breach(blockOf(s.Section), "%s, row %d: %s has place %d behind rows without a place", s.File, i+1, row.Driver, place)
			case place != want && blockOf(s.Section) != Grid && s.Section != season.SprintGridSection:
				breach(blockOf(s.Section), "%s, row %d: %s has place %d, expected %d", s.File, i+1, row.Driver, place, want)
			case place < want:
				breach(blockOf(s.Section), "%s, row %d: %s has place %d behind place %d", s.File, i+1, row.Driver, place, want)
			}
			want++
			if blockOf(s.Section) == Grid || s.Section == season.SprintGridSection {
				want = place
			}
		}
	}
}

// pace refuses a result in which the winner's mean lap is below the fastest lap.
func (w *weekend) pace(breach breach) {
	for _, r := range w.races() {
		if mean, fastest := w.mean(r); mean < fastest {
			breach(r.block, "%s: the winner %s took %s a lap, less than the fastest lap of %s", r.name, r.winner().Driver, mean, fastest)
		}
	}
}

func (w *weekend) slow(breach breach) {
	for _, r := range w.races() {
		if mean, fastest := w.mean(r); fastest > 0 && mean > 2*fastest {
			breach(r.block, "%d %s: the winner took %s a lap, more than twice the fastest lap of %s", w.year, w.round.Name, mean, fastest)
		}
	}
}

// mean returns the winner's mean time of a lap, and the fastest lap: of a sprint, that of the weekend's sessions.
func (w *weekend) mean(r race) (mean, fastest time.Duration) {
	winner := r.winner()
	if winner.Laps == 0 || winner.Time == 0 {
		return 0, 0
	}
	times := each(w.round.FastestLaps, func(row season.FastestLap) time.Duration { return row.Time })
	if r.block == Sprint {
		times = each(w.round.SprintQualifying, deciding)
	}
	if times = slices.DeleteFunc(times, func(t time.Duration) bool { return t == 0 }); len(times) > 0 {
		fastest = slices.Min(times)
	}
	return winner.Time / time.Duration(winner.Laps), fastest
}

func each[T, V any](rows []T, value func(T) V) []V {
	values := make([]V, len(rows))
	for i, row := range rows {
		values[i] = value(row)
	}
	return values
}

func deciding(row season.QualifyingRow) time.Duration {
	return cmp.Or(row.Segments[2], row.Segments[1], row.Segments[0], row.Time)
}

// lapTimes refuses a lap far from the median of its session, and more laps of a practice than fit into it.
func (w *weekend) lapTimes(breach breach) {
	session := func(b Block, name string, laps []season.TimedLap) {
		known := slices.DeleteFunc(each(laps, func(l season.TimedLap) time.Duration { return l.Time }), func(t time.Duration) bool { return t == 0 })
		if len(known) < 3 {
			return
		}
		slices.Sort(known)
		median := known[len(known)/2]
		for _, l := range laps {
			if l.Time != 0 && (l.Time < median*8/10 || l.Time > 3*median) {
				breach(b, "%s: %s has the lap time %s, expected .8 to 3 times the median of %s", name, l.Driver, l.Time, median)
			}
		}
	}
	for i, laps := range w.round.Practice {
		if len(laps) > 0 && laps[0].Time > 0 {
			for _, row := range laps {
				if most := int(75 * time.Minute / laps[0].Time); row.Laps > most {
					breach(Practice, "practice %d: %s has %d laps, expected at most %d of %s", i+1, row.Driver, row.Laps, most, laps[0].Time)
				}
			}
		}
		session(Practice, fmt.Sprintf("practice %d", i+1), laps)
	}
	for _, q := range w.qualifyings() {
		for segment := range 4 {
			session(q.block, fmt.Sprintf("%s %d", q.name, segment+1), each(q.rows, func(row season.QualifyingRow) season.TimedLap {
				return season.TimedLap{Driver: row.Driver, Time: append(row.Segments[:], row.Time)[segment]}
			}))
		}
	}
	session(Result, "fastest laps", each(w.round.FastestLaps, func(row season.FastestLap) season.TimedLap {
		return season.TimedLap{Driver: row.Driver, Time: row.Time}
	}))
}

type qualifyingTable struct {
	name  string
	block Block
	rows  []season.QualifyingRow
}

func (w *weekend) qualifyings() []qualifyingTable {
	return []qualifyingTable{{"qualifying", Qualifying, w.round.Qualifying}, {"sprint qualifying", Sprint, w.round.SprintQualifying}}
}

// segments holds the places of a knockout qualifying against the times of its segments. A decision may put both cars of a
// team behind all others, with their times.
func (w *weekend) segments(breach breach) {
	for _, q := range w.qualifyings() {
		reached := func(row season.QualifyingRow) int {
			for n := 2; n >= 0; n-- {
				if row.Segments[n] > 0 {
					return n + 1
				}
			}
			return 0
		}
		last := season.QualifyingRow{}
		for i, row := range q.rows {
			n := reached(row)
			if row.Position == 0 {
				continue // disqualified, or without a time
			}
			for before := range max(0, n-1) {
				if row.Segments[before] == 0 {
					breach(q.block, "%s: P%d %s has a time in segment %d and none in segment %d", q.name, row.Position, row.Driver, n, before+1)
				}
			}
			if i == 0 {
				last = row
				continue
			}
			switch before := reached(last); {
			case n > before && before == 0:
				breach(q.block, "%s: P%d %s has a time and P%d %s has none", q.name, row.Position, row.Driver, last.Position, last.Driver)
			case n > before && i < len(q.rows)-2 && reached(q.rows[i+1]) >= n, n == before && n > 0 && row.Segments[n-1] < last.Segments[n-1]:
				breach(q.block, "%s: P%d %s has %s in segment %d and P%d %s in segment %d: times rise with the place", q.name, row.Position, row.Driver, deciding(row), n, last.Position, deciding(last), before)
			}
			last = row
		}
	}
}

// retirements holds the reason and the laps of a row against its place.
func (w *weekend) retirements(breach breach) {
	for _, r := range w.races() {
		winner := r.winner()
		last := season.Result{}
		for _, row := range r.rows {
			switch {
			case row.Reason != "" && strings.ContainsAny(row.Reason, "0123456789"):
				breach(r.block, "%s: %s has the reason %q, expected words", r.name, row.Driver, row.Reason)
			case row.Position > 0 && row.Time > 0 && row.Reason != "":
				breach(r.block, "%s: P%d %s finished and has the reason %q, expected none", r.name, row.Position, row.Driver, row.Reason)
			case row.Outcome == season.NotClassified && row.Reason != "":
				breach(r.block, "%s: %s is %s and has the reason %q, expected none", r.name, row.Driver, row.Outcome, row.Reason)
			case row.Outcome == season.DidNotFinish && w.row(r.section, row.Driver).Gap != "":
				breach(r.block, "%s: %s is %s and has the gap %q, expected none", r.name, row.Driver, row.Outcome, w.row(r.section, row.Driver).Gap)
			case row.Started() && row.Outcome != season.Disqualified && w.row(r.section, row.Driver).NoLaps:
				breach(r.block, "%s: %s started and has no number of laps", r.name, row.Driver)
			case row.Outcome == season.NotClassified && winner.Laps > 0 && row.Laps > winner.Laps*9/10:
				breach(r.block, "%s: %s is %s with %d laps, and more than %d make a driver classified", r.name, row.Driver, row.Outcome, row.Laps, winner.Laps*9/10)
			case row.Outcome == season.DidNotFinish && last.Outcome == season.DidNotFinish && row.Laps > last.Laps:
				breach(r.block, "%s: %s retired after %d laps and stands behind a retirement after %d", r.name, row.Driver, row.Laps, last.Laps)
			}
			last = row
		}
	}
}

// grid holds the grid against the grid places of the classification, and the places against the number of cars.
func (w *weekend) grid(breach breach) {
	for _, r := range w.races() {
		slots, at := make(map[season.DriverID]season.GridSlot), make(map[int]season.DriverID)
		for _, slot := range r.grid {
			slots[slot.Driver] = slot
			at[slot.Position] = slot.Driver
		}
		for _, s := range w.sheets {
			if s.Section != r.section || !slices.ContainsFunc(s.Rows, func(row season.SheetRow) bool { return row.Grid != "" }) {
				continue
			}
			for i, row := range s.Rows {
				if _, ok := slots[row.Driver]; ok && row.Grid == "" && row.Place != string(season.DidNotStart) {
					breach(r.block, "%s, row %d: %s is on the grid and has no gridPosition, expected a number or PL", s.File, i+1, row.Driver)
				}
			}
		}
		both := func(format string, args ...any) {
			breach(r.block, format, args...)
			breach(r.gridBlock, format, args...)
		}
		taken := make(map[int]season.DriverID)
		for _, row := range r.rows {
			slot, ok := slots[row.Driver]
			switch {
			case row.Grid > len(r.rows):
				breach(r.block, "%s: %s started from %d, expected at most the %d cars", r.name, row.Driver, row.Grid, len(r.rows))
			case row.Grid > 0 && at[row.Grid] != "" && at[row.Grid] != row.Driver && row.Started():
				both("%s: %s started from %d, and %s is there on the grid", r.name, row.Driver, row.Grid, at[row.Grid])
			case ok && row.Grid != slot.Position && row.Grid > 0 && slot.Position > 0:
				both("%s: %s started from %d, and is on the grid at %d", r.name, row.Driver, row.Grid, slot.Position)
			case len(r.grid) > 0 && !ok && (row.Started() || w.row(r.section, row.Driver).Grid != ""):
				both("%s: %s started and is not on the grid", r.name, row.Driver)
			case row.Grid > 0 && row.Started() && taken[row.Grid] != "":
				both("%s: %s and %s both started from %d", r.name, taken[row.Grid], row.Driver, row.Grid)
			}
			if row.Started() {
				taken[row.Grid] = row.Driver
			}
		}
		for _, slot := range r.grid {
			if !slices.ContainsFunc(r.rows, func(row season.Result) bool { return row.Driver == slot.Driver }) {
				both("%s: %s is on the grid and not in the classification", r.name, slot.Driver)
			}
		}
	}
}

// pitLane notes a car that has a place on only one of the grid and the classification. Sources often leave a car on the
// grid that starts from the pit lane, or does not start.
func (w *weekend) pitLane(breach breach) {
	for _, r := range w.races() {
		if !slices.ContainsFunc(r.rows, func(row season.Result) bool { return row.Grid > 0 }) {
			continue // the classification has no grid places
		}
		for _, slot := range r.grid {
			i := slices.IndexFunc(r.rows, func(row season.Result) bool { return row.Driver == slot.Driver })
			if i >= 0 && (r.rows[i].Grid == 0) != (slot.Position == 0) {
				breach(Result, "%d %s: %s is at %d on the grid of the %s and started from %d (0: the pit lane)", w.year, w.round.Name, slot.Driver, slot.Position, r.name, r.rows[i].Grid)
			}
		}
	}
}

// unknown stands for an empty cell where others have a value.
const unknown = "unknown"

// unknowns tells the times of a race that cannot be read. They count as unknown, so that they never hold a result.
func (w *weekend) unknowns(breach breach) {
	for _, s := range w.sheets {
		if b := blockOf(s.Section); b == Result || s.Section == season.Section(season.Sprint) {
			for _, sentence := range s.Unknown {
				breach(b, "%s", sentence)
			}
		}
	}
}

// row returns the row of a driver in a sheet.
func (w *weekend) row(section season.Section, driver season.DriverID) (row season.SheetRow) {
	for _, s := range w.sheets {
		if s.Section == section {
			row = s.Row(driver)
		}
	}
	return row
}

// people holds number, team and engine of a driver in a table against all others of the weekend.
func (w *weekend) people(breach breach) {
	votes := make(votes)
	cast := votes.cast
	for _, s := range w.sheets {
		block := blockOf(s.Section)
		for _, row := range s.Rows {
			cast("the number of "+string(row.Driver), strconv.Itoa(row.Number), block)
			if row.Number > 0 {
				cast(fmt.Sprintf("the driver of car %d", row.Number), string(row.Driver), block)
			}
			cast("the team of "+string(row.Driver), cmp.Or(string(row.Team), unknown), block)
			if row.Team != "" {
				cast("the engine of "+string(row.Team), cmp.Or(string(row.Engine), unknown), block)
			}
		}
	}
	for _, e := range w.round.Entries { // those of the document, which follow from its tables
		cast("the number of "+string(e.Driver), strconv.Itoa(e.Number), Entries)
		cast("the team of "+string(e.Driver), string(e.Team), Entries)
		cast("the engine of "+string(e.Team), string(e.Engine), Entries)
	}
	team := make(map[season.DriverID]season.TeamID) // of the latest earlier round
	for i := range w.earlier {
		if w.earlier[i].GrandPrix == w.round.GrandPrix || !w.earlier[i].StartsAt().Before(w.round.StartsAt()) || len(w.earlier[i].Results) == 0 {
			continue
		}
		for _, e := range w.earlier[i].Entries {
			cast(fmt.Sprintf("the driver of car %d", e.Number), string(e.Driver), "")
			cast("the engine of "+string(e.Team), string(e.Engine), "")
			team[e.Driver] = e.Team
		}
	}
	if len(team) == 0 && w.last != nil { // the first round of a season; the champion of the one before takes car 1
		for _, e := range w.last.Entries {
			if e.Number > 1 {
				cast(fmt.Sprintf("the driver of car %d", e.Number), string(e.Driver), "")
			}
		}
	}
	for _, s := range w.sheets {
		for _, row := range s.Rows {
			if had := w.numbers[row.Driver]; had > 1 && row.Number > 1 && had != row.Number {
				breach(blockOf(s.Section), "%s: %s has car %d and had car %d before, which is kept for two seasons", s.File, row.Driver, row.Number, had)
			}
		}
		if s.Section == season.PitStopsSection {
			continue
		}
		cars := make(map[season.TeamID]int)
		for _, row := range s.Rows {
			if cars[row.Team]++; cars[row.Team] == 3 && row.Team != "" {
				breach(blockOf(s.Section), "%s: %s has three cars, expected two", s.File, row.Team)
			}
			if n := len(votes["the engine of "+string(row.Team)]); n == 1 && row.Team != "" {
				breach(blockOf(s.Section), "%s: %s drives for %s, which nothing else in the season names", s.File, row.Driver, row.Team)
			}
		}
	}
	for driver, latest := range team {
		cast("the team of "+string(driver), string(latest), "")
	}
	votes.judge(breach)
}

// votes are the values that the tables of a weekend give to each fact about a person or a team, with their blocks.
type votes map[string][]vote

type vote struct {
	value string
	block Block // empty: of an earlier round
}

// cast adds a value, unless it is unknown.
func (votes votes) cast(about, value string, b Block) {
	if value != "" && value != "0" {
		votes[about] = append(votes[about], vote{value, b})
	}
}

// judge reports the values that differ from those of most tables.
func (votes votes) judge(breach breach) {
	for _, about := range slices.Sorted(maps.Keys(votes)) {
		all := votes[about]
		counts := make(map[string]int)
		for _, v := range all {
			counts[v.value]++
		}
		if len(counts) == 1 {
			continue
		}
		// The values of most tables are right, unless two values have as many.
		ordered := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
		tied := counts[ordered[0]] == counts[ordered[1]]
		for _, v := range all {
			if v.block != "" && (v.value != ordered[0] || tied) {
				others := slices.Sorted(slices.Values(slices.DeleteFunc(slices.Clone(ordered), func(value string) bool { return value == v.value })))
				breach(v.block, "%s is %s in the %s, and %s elsewhere in the weekend", about, v.value, v.block, strings.Join(others, " or "))
			}
		}
	}
}

// regularNumbers returns the numbers of the regular drivers of the two seasons before a year: those of eight rounds. Others
// may have had the number of a reserve driver. Source: FIA Formula One Sporting Regulations, competition numbers.
func regularNumbers(seasons []season.Season, year int) map[season.DriverID]int {
	rounds, numbers := make(map[season.DriverID]int), make(map[season.DriverID]int)
	for i := range seasons {
		for _, r := range seasons[i].Rounds {
			for _, e := range r.Entries {
				if seasons[i].Year >= year-2 && seasons[i].Year < year {
					rounds[e.Driver]++
					numbers[e.Driver] = e.Number
				}
			}
		}
	}
	maps.DeleteFunc(numbers, func(driver season.DriverID, _ int) bool { return rounds[driver] < 8 })
	return numbers
}

// result returns the first row of a driver in the race, empty if there is none.
func (w *weekend) result(driver season.DriverID) (result season.Result) {
	if i := slices.IndexFunc(w.round.Results, func(row season.Result) bool { return row.Driver == driver }); i >= 0 {
		result = w.round.Results[i]
	}
	return result
}

func (w *weekend) fastestLaps(breach breach) {
	if len(w.round.Results) == 0 {
		return
	}
	var last season.FastestLap
	seen := make(map[season.DriverID]bool)
	first := w.races()[0]
	winner := first.winner()
	for i, row := range w.round.FastestLaps {
		result := w.result(row.Driver)
		switch {
		case seen[row.Driver]:
			breach(Result, "fastest laps, row %d: %s is there twice", i+1, row.Driver)
		case result.Driver == "" || !result.Started():
			breach(Result, "fastest laps, row %d: %s did not start", i+1, row.Driver)
		case row.Time == 0 && row.Lap == 0:
			continue
		case row.Time == 0:
			breach(Result, "fastest laps, row %d: %s has lap %d without a time", i+1, row.Driver, row.Lap)
		case row.Lap > winner.Laps:
			breach(Result, "fastest laps, row %d: %s has lap %d, and the race had %d", i+1, row.Driver, row.Lap, winner.Laps)
		case result.Outcome == season.Disqualified:
			continue
		case row.Time < last.Time:
			breach(Result, "fastest laps, row %d: %s has %s behind %s", i+1, row.Driver, row.Time, last.Time)
		}
		seen[row.Driver], last = true, row
	}
}

// progress notes a retired car with a fastest lap behind its last one. A car that waited in its garage may have one,
// because the lap has the number of the race's lap.
func (w *weekend) progress(breach breach) {
	for _, row := range w.round.FastestLaps {
		if result := w.result(row.Driver); result.Outcome == season.DidNotFinish && row.Lap > result.Laps {
			breach(Result, "%d %s: %s retired after %d laps and has the fastest lap %d", w.year, w.round.Name, row.Driver, result.Laps, row.Lap)
		}
	}
}

func (w *weekend) pitStops(breach breach) {
	if len(w.round.Results) == 0 {
		return
	}
	last := make(map[season.DriverID]season.PitStop)
	first := w.races()[0]
	stops := make(map[season.DriverID]int)
	for _, row := range w.round.PitStops {
		stops[row.Driver]++
	}
	for i, row := range w.round.PitStops {
		result := w.result(row.Driver)
		before, most := last[row.Driver], first.winner().Laps
		if result.Outcome != season.Disqualified { // their laps do not count
			most = min(most, result.Laps+1)
		}
		switch {
		case result.Driver == "" || !result.Started():
			breach(Result, "pit stops, row %d: %s did not start", i+1, row.Driver)
		case row.Stop <= before.Stop || row.Stop > stops[row.Driver]+4:
			breach(Result, "pit stops, row %d: %s has stop %d, expected %d", i+1, row.Driver, row.Stop, before.Stop+1)
		case row.Lap == 0 || row.Lap < before.Lap || row.Lap > most:
			breach(Result, "pit stops, row %d: %s stops in lap %d, expected %d to %d", i+1, row.Driver, row.Lap, max(1, before.Lap), most)
		case row.Time != 0 && row.Time < 8*time.Second:
			breach(Result, "pit stops, row %d: %s takes %s, expected at least 8s in the pit lane", i+1, row.Driver, row.Time)
		}
		last[row.Driver] = row
	}
}

// standings holds the places of the championships against their points, and their rows against the results.
func (w *weekend) standings(breach breach) {
	raced, finishes := make(map[season.Competitor]bool), make(map[season.Competitor][]int)
	for r := range w.soFar() {
		for _, constructors := range []bool{false, true} {
			for _, row := range slices.Concat(r.Results, r.SprintResults) {
				raced[row.Competitor(constructors)] = true
			}
			for _, row := range r.Results {
				if row.Position > 0 {
					who := row.Competitor(constructors)
					finishes[who] = append(finishes[who], row.Position)
				}
			}
		}
	}
	table := func(name string, rows []season.Standing) map[season.Competitor]bool {
		seen, last := make(map[season.Competitor]bool), season.Standing{Points: math.Inf(1)}
		for i, r := range rows {
			say := func(format string, args ...any) {
				breach(Result, "%s standings, row %d: %s has %s", name, i+1, r.Competitor, fmt.Sprintf(format, args...))
			}
			switch {
			case r.Position != i+1:
				say("place %d, expected %d", r.Position, i+1)
			case r.Points > last.Points:
				say("%g points behind %g: points never rise down the places", r.Points, last.Points)
			case r.Points < 0 || r.Points != math.Trunc(2*r.Points)/2:
				say("%g points, expected halves from 0 on", r.Points)
			}
			if r.Points == last.Points && slices.Compare(ranked(finishes[r.Competitor]), ranked(finishes[last.Competitor])) < 0 {
				say("the points of %s and better places, and stands behind", last.Competitor)
			}
			if !raced[r.Competitor] && !seen[r.Competitor] {
				breach(Result, "%s standings: %s is there and did not race", name, r.Competitor)
			}
			seen[r.Competitor], last = true, r
		}
		return seen
	}
	drivers, teams := table("driver", w.round.Standings(false)), table("team", w.round.Standings(true))
	var latest []season.Standing // a table keeps its drivers
	for i := range w.earlier {
		if r := &w.earlier[i]; r.StartsAt().Before(w.round.StartsAt()) && len(r.DriverStandings) > 0 {
			latest = r.Standings(false)
		}
	}
	for _, row := range latest {
		if 2*len(drivers) > len(latest) && !drivers[row.Competitor] {
			breach(Result, "driver standings: %s was there after the race before and is not there", row.Competitor)
		}
	}
	for _, row := range w.round.Results {
		if row.Points > 0 && 2*len(drivers) > len(w.round.Results) && !drivers[row.Competitor(false)] {
			breach(Result, "driver standings: %s has points and is not there", row.Driver)
		}
		if team := row.Competitor(true); row.Engine != "" && 4*len(teams) > len(w.round.Results) && !teams[team] {
			breach(Result, "team standings: %s raced and is not there", team)
		}
	}
}

// ranked orders places for a countback: the best first, and none last.
func ranked(places []int) []int { return append(slices.Sorted(slices.Values(places)), math.MaxInt) }

// soFar are the document's rounds up to the weekend.
func (w *weekend) soFar() iter.Seq[*season.Round] {
	return func(yield func(*season.Round) bool) {
		for i := range w.rounds {
			r := &w.rounds[i]
			if r.GrandPrix == w.round.GrandPrix {
				r = &w.round
			}
			if !r.StartsAt().After(w.round.StartsAt()) && !yield(r) {
				return
			}
		}
	}
}

// countback notes drivers with equal points and places that do not stand by their best place on a grid. The regulations
// leave their order to the FIA, and all its tables since 2024 have this one.
func (w *weekend) countback(breach breach) {
	finishes, grids := make(map[season.DriverID][]int), make(map[season.DriverID][]int)
	for r := range w.soFar() {
		for _, row := range r.Results {
			if row.Position > 0 {
				finishes[row.Driver] = append(finishes[row.Driver], row.Position)
			}
		}
		for _, slot := range r.Grid {
			if slot.Position > 0 {
				grids[slot.Driver] = append(grids[slot.Driver], slot.Position)
			}
		}
	}
	last := season.DriverStanding{Points: math.Inf(1)}
	for _, row := range w.round.DriverStandings {
		equal := row.Points == last.Points && slices.Equal(ranked(finishes[row.Driver]), ranked(finishes[last.Driver]))
		if best, behind := ranked(grids[row.Driver])[0], ranked(grids[last.Driver])[0]; equal && best < behind {
			breach(Result, "%d %s: %s has the points and places of %s and a better place on a grid, and stands behind", w.year, w.round.Name, row.Driver, last.Driver)
		}
		last = row
	}
}

// timetable holds the sessions of a weekend against each other and against the hours in which people race.
func (w *weekend) timetable(breach breach) {
	zone, err := time.LoadLocation(cmp.Or(season.TimeZone(w.round.Circuit), "UTC"))
	if err != nil || w.round.Start.IsZero() {
		return
	}
	for _, was := range w.before.Sessions {
		if was.Cancelled || w.round.Cancelled(was.Kind) {
			continue
		}
		now, ok := w.round.Session(was.Kind)
		if !ok || now.Start.IsZero() && !was.Start.IsZero() {
			breach(Sessions, "%s is without its start, which was %s", was.Kind, instant(was.Start))
		}
	}
	var slots []season.Session
	for _, kind := range []season.SessionKind{season.Practice1, season.SprintQualifying, season.Practice2, season.Practice3, season.Sprint, season.Qualifying, "race"} {
		s, ok := w.round.Session(kind)
		if kind == "race" {
			s, ok = season.Session{Kind: kind, Start: w.round.Start}, true
		}
		if ok && !s.Start.IsZero() {
			slots = append(slots, s)
		}
	}
	for i, s := range slots {
		block := Sessions
		if s.Kind == "race" {
			block = Start
		}
		local := s.Start.In(zone)
		if season.TimeZone(w.round.Circuit) != "" && (local.Hour() < 9 || local.Hour() > 22) {
			breach(block, "%s starts at %s, which is %s at the circuit: expected between 9:00 and 23:00", s.Kind, instant(s.Start), local.Format("15:04"))
		}
		if s.Start.Minute()%5 != 0 {
			breach(block, "%s starts at %s, expected a multiple of five minutes", s.Kind, instant(s.Start))
		}
		if i == 0 {
			continue
		}
		before := slots[i-1]
		apart := s.Start.Sub(before.Start)
		least, most := 90*time.Minute, 30*time.Hour
		switch {
		case s.Kind == "race":
			least, most = 15*time.Hour, 54*time.Hour // a race may be postponed by a day
		case s.Kind == season.Practice2 || s.Kind == season.SprintQualifying,
			s.Kind == season.Qualifying && (before.Kind == season.Practice3 || before.Kind == season.Sprint):
			most = 6 * time.Hour // of the same day
		}
		if apart < least || apart > most {
			sentence := fmt.Sprintf("%s starts at %s, %s after %s at %s: expected %s to %s", s.Kind, instant(s.Start), apart, before.Kind, instant(before.Start), least, most)
			breach(Sessions, "%s", sentence)
			if s.Kind == "race" {
				breach(Start, "%s", sentence)
			}
		}
	}
}

// course holds the calendar entry of a round against its distance, its sessions and, once the weekend has begun,
// against itself.
func (w *weekend) course(breach breach) {
	r, was := &w.round, w.before
	distance := 305.0
	if r.GrandPrix == "monaco" {
		distance = 260
	}
	fewest := func(r *season.Round) float64 { return math.Ceil(distance / r.CourseKm) } // infinite if the length is unknown
	km := float64(r.ScheduledLaps) * r.CourseKm
	regular := float64(was.ScheduledLaps) == fewest(was) && float64(r.ScheduledLaps) != fewest(r)
	if r.ScheduledLaps != 0 && (regular || km < 200 || km > 330) {
		breach(Calendar, "%d laps of %g km are scheduled, expected the fewest beyond %g km", r.ScheduledLaps, r.CourseKm, distance)
	}
	if s, ok := r.Session(season.Sprint); ok && !r.Sprint {
		breach(Calendar, "the round is without a sprint, and the sprint is on %s", s.Date.Format(time.DateOnly))
	}
	// Sources correct a length by some metres, and rename circuits.
	elsewhere := w.circuits[r.Circuit].Country != w.circuits[was.Circuit].Country && w.circuits[r.Circuit].Country != ""
	if w.began && w.round.Date.Equal(w.before.Date) && was.Circuit != "" && (elsewhere || was.Street != r.Street || math.Abs(was.CourseKm-r.CourseKm) > was.CourseKm/50) {
		breach(Calendar, "the course is %s of %g km, street circuit %t, and the weekend began on %s of %g km, street circuit %t",
			r.Circuit, r.CourseKm, r.Street, was.Circuit, was.CourseKm, was.Street)
	}
	for i := range w.rounds {
		other := &w.rounds[i]
		if other.GrandPrix == r.GrandPrix || other.Number == 0 || other.Date.IsZero() || r.Date.IsZero() {
			continue
		}
		if (other.Number < r.Number) != other.StartsAt().Before(r.StartsAt()) || other.Number == r.Number {
			breach(Calendar, "round %d of %s, and round %d is %s of %s: numbers follow the calendar", r.Number, r.Date.Format(time.DateOnly), other.Number, other.GrandPrix, other.Date.Format(time.DateOnly))
		}
	}
}
