package season

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// Codes returns the three-letter codes of the drivers in the entries, the qualifying or the result of
// a round of the season. Codes match [A-Z]{3}, are unique within the season, and never change as time
// goes on.
//
// Drivers choose in the order of their first appearance. Of two drivers with the same first race, the
// one with more earlier starts chooses first, then the one with the lower identifier. Each takes the
// first free code of:
//   - the abbreviation
//   - the first letter of the surname with each later pair of its letters
//   - the first letter of the surname, a later one, and A to Z
//
// others are further drivers that a pick or a manual result names. Those without an appearance choose
// last: the code of their last season if it is free, else a code by the same rules.
func (v *View) Codes(year int, others ...DriverID) map[DriverID]string {
	s, ok := v.Season(year)
	if !ok {
		return nil
	}
	before := v.startsBefore(s)
	codes := make(map[DriverID]string)
	taken := make(map[string]bool)
	for i := range s.Rounds {
		for _, group := range s.newcomers(i, codes, before) {
			for _, id := range group {
				code := freeCode(v.Drivers[id], taken)
				codes[id], taken[code] = code, true
			}
		}
	}
	for _, id := range others {
		if _, ok := codes[id]; ok || id == "" {
			continue
		}
		code := v.lastCode(id, year)
		if code == "" || taken[code] {
			code = freeCode(v.Driver(id), taken)
		}
		codes[id], taken[code] = code, true
	}
	return codes
}

// lastCode returns the driver's code in their last season before the year. It is empty if there is no
// such season.
func (v *View) lastCode(id DriverID, year int) string {
	for i := len(v.Seasons) - 1; i >= 0; i-- {
		if s := &v.Seasons[i]; s.Year < year && s.appears(id) {
			return v.Codes(s.Year)[id]
		}
	}
	return ""
}

// appears reports whether the driver is in the entries, the qualifying or the result of a round.
func (s *Season) appears(id DriverID) bool {
	return slices.ContainsFunc(s.Rounds, func(r Round) (appears bool) {
		r.appearances(func(_ int, driver DriverID) { appears = appears || driver == id })
		return appears
	})
}

// appearances calls see for each row of the entries and the qualifying, which are known with the grid, with 0, and for
// each row of the result with 1.
func (r *Round) appearances(see func(group int, driver DriverID)) {
	for _, row := range r.Entries {
		see(0, row.Driver)
	}
	for _, row := range r.Qualifying {
		see(0, row.Driver)
	}
	for _, row := range r.Results {
		see(1, row.Driver)
	}
}

// newcomers returns the drivers of a round without a code, in the order in which they choose. Drivers
// known with the grid come before those known only with the result, so that a result does not change
// earlier codes. Within each group the driver with the most starts comes first: those before the season, and those that
// were known together with the grid of the round.
func (s *Season) newcomers(round int, codes map[DriverID]string, before map[DriverID]int) [2][]DriverID {
	r := &s.Rounds[round]
	var groups [2][]DriverID
	r.appearances(func(group int, id DriverID) {
		if _, ok := codes[id]; !ok && !slices.Contains(groups[0], id) && !slices.Contains(groups[1], id) {
			groups[group] = append(groups[group], id)
		}
	})
	for _, group := range groups {
		if len(group) > 1 {
			counts := maps.Clone(before)
			for i := range s.Rounds[:round] {
				if earlier := &s.Rounds[i]; !earlier.ResultKnownAt().After(r.GridKnownAt()) {
					earlier.countStarts(counts)
				}
			}
			slices.SortFunc(group, func(a, b DriverID) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
		}
	}
	return groups
}

// startsBefore counts the race starts of a season's drivers in earlier seasons.
func (v *View) startsBefore(s *Season) map[DriverID]int {
	starts := make(map[DriverID]int)
	for i := range s.Rounds {
		s.Rounds[i].appearances(func(_ int, driver DriverID) { starts[driver] = 0 })
	}
	for i := range v.Seasons {
		if v.Seasons[i].Year >= s.Year {
			break
		}
		for j := range v.Seasons[i].Rounds {
			v.Seasons[i].Rounds[j].countStarts(starts)
		}
	}
	return starts
}

// countStarts adds one start for each driver of starts in the race, also for a driver of several cars.
func (r *Round) countStarts(starts map[DriverID]int) {
	for i := range r.Results {
		row := &r.Results[i]
		n, ok := starts[row.Driver]
		if !ok || !row.Started() {
			continue
		}
		if !slices.ContainsFunc(r.Results[:i], func(other Result) bool { return other.Driver == row.Driver && other.Started() }) {
			starts[row.Driver] = n + 1
		}
	}
}

func freeCode(d Driver, taken map[string]bool) string {
	for code := range candidates(d) {
		if !taken[code] {
			return code
		}
	}
	panic("BUG: a season with more drivers than there are codes")
}

// candidates yields the codes that a driver may take, the best first. All other codes follow those of
// the rules, so that a driver without a surname in Latin letters gets one, too.
func candidates(d Driver) iter.Seq[string] {
	return func(yield func(string) bool) {
		if code := letters(d.Abbreviation); len(code) == 3 && !yield(code) {
			return
		}
		name := letters(d.LastName)
		if name == "" {
			name = letters(string(d.ID))
		}
		for i := 1; i < len(name); i++ {
			for j := i + 1; j < len(name); j++ {
				if !yield(string([]byte{name[0], name[i], name[j]})) {
					return
				}
			}
		}
		for i := 1; i < len(name); i++ {
			for c := byte('A'); c <= 'Z'; c++ {
				if !yield(string([]byte{name[0], name[i], c})) {
					return
				}
			}
		}
		for n := range 26 * 26 * 26 {
			if !yield(string([]byte{'A' + byte(n/676), 'A' + byte(n/26%26), 'A' + byte(n%26)})) {
				return
			}
		}
	}
}

// letters returns the letters A to Z of a name in upper case, without accents.
func letters(name string) string {
	var b strings.Builder
	for _, r := range norm.NFD.String(strings.ToUpper(name)) {
		switch {
		case 'A' <= r && r <= 'Z':
			b.WriteRune(r)
		case r == 'Ø':
			b.WriteByte('O')
		}
	}
	return b.String()
}
