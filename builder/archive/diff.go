package archive

import (
	"fmt"
	"slices"
	"strings"

	"gridcast/builder/assemble"
	"gridcast/builder/season"
)

// Diff lists the differences between two archives, round by round.
type Diff struct {
	SeasonsAdded   []int       `json:"seasons_added,omitzero"`
	SeasonsRemoved []int       `json:"seasons_removed,omitzero"`
	Rounds         []RoundDiff `json:"rounds"`                  // by year and number
	ColoursLost    []int       `json:"colours_lost,omitzero"`   // seasons with fewer teams of known colour
	ColoursGained  []int       `json:"colours_gained,omitzero"` // seasons with more
}

// RoundDiff is the difference of one round.
type RoundDiff struct {
	Year       int                `json:"year"`
	GrandPrix  season.GrandPrixID `json:"grand_prix"`
	Name       string             `json:"gp_name"`
	Kind       string             `json:"kind"`                 // added, removed or changed
	Changed    []string           `json:"changed,omitzero"`     // parts of a changed round: "results", "grid"
	LostResult bool               `json:"lost_result,omitzero"` // only the first archive has a result
	NewResult  bool               `json:"new_result,omitzero"`  // both have one, and the two differ
}

// The kinds of RoundDiff.
const (
	RoundAdded   = "added"
	RoundRemoved = "removed"
	RoundChanged = "changed"
)

// Compare returns the differences between two archives.
func Compare(before, after *season.Archive) Diff {
	var diff Diff
	old, now := before.Facts(), after.Facts()
	years := make([]int, 0, len(old.Seasons)+len(now.Seasons))
	for _, s := range slices.Concat(old.Seasons, now.Seasons) {
		years = append(years, s.Year)
	}
	slices.Sort(years)
	for _, year := range slices.Compact(years) {
		x, had := old.Season(year)
		y, has := now.Season(year)
		switch {
		case !had:
			diff.SeasonsAdded = append(diff.SeasonsAdded, year)
			x = &season.Season{Year: year}
		case !has:
			diff.SeasonsRemoved = append(diff.SeasonsRemoved, year)
			y = &season.Season{Year: year}
		case len(y.Colours) < len(x.Colours):
			diff.ColoursLost = append(diff.ColoursLost, year)
		case len(y.Colours) > len(x.Colours):
			diff.ColoursGained = append(diff.ColoursGained, year)
		}
		diff.Rounds = append(diff.Rounds, compareRounds(x, y)...)
	}
	return diff
}

// compareRounds lists the rounds of after in its order, then the rounds that only before has.
func compareRounds(before, after *season.Season) []RoundDiff {
	var diffs []RoundDiff
	for i := range after.Rounds {
		now := &after.Rounds[i]
		d := RoundDiff{Year: after.Year, GrandPrix: now.GrandPrix, Name: now.Name, Kind: RoundAdded}
		if was, ok := before.Round(now.GrandPrix); ok {
			d.Kind, d.Changed = RoundChanged, assemble.ChangedFields(was, now)
			d.LostResult = was.Finished() && !now.Finished()
			d.NewResult = was.Finished() && now.Finished() && slices.Contains(d.Changed, "results")
			if len(d.Changed) == 0 {
				continue
			}
		}
		diffs = append(diffs, d)
	}
	for i := range before.Rounds {
		was := &before.Rounds[i]
		if _, ok := after.Round(was.GrandPrix); !ok {
			diffs = append(diffs, RoundDiff{Year: before.Year, GrandPrix: was.GrandPrix, Name: was.Name, Kind: RoundRemoved, LostResult: was.Finished()})
		}
	}
	return diffs
}

// Lost returns the rounds that have a result in the first archive only.
func (d *Diff) Lost() []RoundDiff {
	return d.where(func(r RoundDiff) bool { return r.LostResult })
}

func (d *Diff) where(want func(RoundDiff) bool) (found []RoundDiff) {
	for _, r := range d.Rounds {
		if want(r) {
			found = append(found, r)
		}
	}
	return found
}

// OnlyAdds reports whether the second archive loses no round, result or colour and changes no result.
func (d *Diff) OnlyAdds() bool {
	return len(d.SeasonsRemoved) == 0 && len(d.ColoursLost) == 0 &&
		!slices.ContainsFunc(d.Rounds, func(r RoundDiff) bool { return r.Kind == RoundRemoved || r.LostResult || r.NewResult })
}

// Sentences describes the difference for a person, losses first.
func (d *Diff) Sentences() []string {
	var text []string
	add := func(format string, args ...any) { text = append(text, fmt.Sprintf(format, args...)) }
	of := func(kind string) []RoundDiff { return d.where(func(r RoundDiff) bool { return r.Kind == kind }) }
	if len(d.SeasonsRemoved) > 0 {
		add("It lacks %d seasons that the one in use has: %s.", len(d.SeasonsRemoved), numbers(d.SeasonsRemoved))
	}
	if lost := d.Lost(); len(lost) > 0 {
		add("It lacks the results of %d rounds: %s.", len(lost), RoundNames(lost))
	}
	if n := len(of(RoundRemoved)); n > 0 {
		add("%d rounds are not in it.", n)
	}
	if len(d.SeasonsAdded) > 0 {
		add("It adds %d seasons: %s.", len(d.SeasonsAdded), numbers(d.SeasonsAdded))
	}
	if n := len(of(RoundAdded)); n > 0 {
		add("It adds %d rounds.", n)
	}
	if changed := of(RoundChanged); len(changed) > 0 {
		add("%d rounds differ: %s.", len(changed), RoundNames(changed))
	}
	if len(d.ColoursLost) > 0 {
		add("Team colours are lost in %d seasons: %s.", len(d.ColoursLost), numbers(d.ColoursLost))
	}
	if len(text) == 0 {
		add("It holds the same rounds with the same facts.")
	}
	return text
}

// mostNamed is the number of names that a sentence lists.
const mostNamed = 8

// RoundNames lists rounds and their changed parts for a person, the latest first.
func RoundNames(rounds []RoundDiff) string {
	var list []string
	for _, r := range slices.Backward(rounds) {
		if len(list) == mostNamed {
			return strings.Join(list, ", ") + fmt.Sprintf(" and %d more", len(rounds)-mostNamed)
		}
		name := fmt.Sprintf("%s %d", r.Name, r.Year)
		if len(r.Changed) > 0 {
			name += " (" + strings.Join(r.Changed, ", ") + ")"
		}
		list = append(list, name)
	}
	return strings.Join(list, ", ")
}

func numbers(years []int) string {
	if len(years) > mostNamed {
		return fmt.Sprintf("%d to %d", years[0], years[len(years)-1])
	}
	return strings.Trim(fmt.Sprint(years), "[]")
}
