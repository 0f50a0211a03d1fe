package stewards

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gridcast/builder/names"
	"gridcast/builder/season"
)

// Roster lists the possible drivers of a round: all drivers with an entry in this season or the last
// one, each with the latest entry.
type Roster struct {
	Known   []Starter // the drivers of the round first, by car number
	Listed  bool      // the entries of the round itself are known
	teams   map[season.TeamID]season.Team
	drivers map[season.DriverID]season.Driver // all of the archive
}

// Starter is a driver with an entry.
type Starter struct {
	season.Entry
	Code, Name string
	Entered    bool // in the round or, if its entries are unknown, in the round before
}

// NewRoster returns the roster of a round. If a person has entered the entries of the round and the
// view does not show them yet, the caller passes them as entries, else nil.
func NewRoster(v *season.View, year int, gp season.GrandPrixID, entries []season.Entry) *Roster {
	latest := make(map[season.DriverID]season.Entry)
	var current []season.Entry
	listed := false
seasons:
	for i := range v.Seasons {
		s := &v.Seasons[i]
		if s.Year < year-1 || s.Year > year {
			continue
		}
		for j := range s.Rounds {
			r := &s.Rounds[j]
			of := r.Entries
			if s.Year == year && r.GrandPrix == gp {
				if entries != nil {
					of = entries
				}
				listed = len(of) > 0
			}
			for _, e := range of {
				latest[e.Driver] = e
			}
			if len(of) > 0 {
				current = of
			}
			if s.Year == year && r.GrandPrix == gp {
				break seasons
			}
		}
	}
	roster := &Roster{Listed: listed, teams: v.Teams, drivers: v.Drivers}
	codes := v.Codes(year, slices.Sorted(maps.Keys(latest))...)
	for _, e := range latest {
		entered := slices.ContainsFunc(current, func(other season.Entry) bool { return other.Driver == e.Driver })
		roster.Known = append(roster.Known, Starter{Entry: e, Code: codes[e.Driver], Name: v.Driver(e.Driver).Name, Entered: entered})
	}
	slices.SortFunc(roster.Known, func(a, b Starter) int {
		switch {
		case a.Entered && !b.Entered:
			return -1
		case b.Entered && !a.Entered:
			return 1
		}
		return cmp.Or(cmp.Compare(a.Number, b.Number), strings.Compare(a.Code, b.Code))
	})
	return roster
}

// Team returns the name of a team, or its identifier if it has none.
func (r *Roster) Team(id season.TeamID) string { return cmp.Or(r.teams[id].Name, string(id)) }

// List is an order of drivers from a person.
type List struct {
	Placed   []Starter
	Unplaced []Starter // after a line with a dash: without a place, or from the pit lane
	New      []season.Driver
	NewTeams []season.Team
	Times    map[season.DriverID][]time.Duration // best laps of qualifying, one for each of its parts; may be empty
}

// All returns the drivers of the list in order.
func (l *List) All() []Starter { return slices.Concat(l.Placed, l.Unplaced) }

// Read reads an order of drivers: codes with blanks, commas or line breaks in between. A # begins a
// remark. Drivers after a line with a dash have no place. A line of its own gives a driver another
// car than in the latest entry, or introduces a new driver. Lap times of qualifying follow the code: one,
// or one for each of its three parts.
//
//	VER 1:33.186 1:32.779 1:32.312
//	LAW 1:34.087 = red-bull, 30
//	LIN = Arvid Lindblad, GBR, racing-bulls, 41
//	BOT = Cadillac (USA), 77
//
// The last line introduces a new team. The error names every faulty line, its value and the allowed values.
func (r *Roster) Read(text string) (*List, error) {
	list := List{Times: make(map[season.DriverID][]time.Duration)}
	var faults []error
	seen := make(map[season.DriverID]int)
	number, dash := 0, false
	for line := range strings.Lines(text) {
		number++
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if strings.Trim(line, "-–—") == "" {
			dash = dash || line != ""
			continue
		}
		drivers, is, described := strings.Cut(line, "=")
		var last season.DriverID // the one that a time belongs to
		for _, text := range strings.FieldsFunc(drivers, func(c rune) bool { return c == ' ' || c == ',' || c == ';' || c == '\t' }) {
			if timeForm.MatchString(text) {
				lap, _ := season.ParseLapTime(text)
				switch {
				case last == "":
					faults = append(faults, fmt.Errorf("line %d: the time %s has no driver: write it after the code", number, text))
				case lap < shortestLap || lap > longestLap:
					faults = append(faults, fmt.Errorf("line %d: the time %s: want minutes, seconds and thousandths between %s and %s, such as 1:32.312", number, text, shortestLap, longestLap))
				case len(list.Times[last]) == len(season.QualifyingRow{}.Segments):
					faults = append(faults, fmt.Errorf("line %d: the time %s is the fourth of a driver; qualifying has three parts", number, text))
				default:
					list.Times[last] = append(list.Times[last], lap)
				}
				continue
			}
			if described && last != "" {
				faults = append(faults, fmt.Errorf("line %d: %q: want the code of one driver before =", number, strings.TrimSpace(drivers)))
				break
			}
			s, err := r.Find(text)
			if described {
				s, err = r.assign(&list, text, is)
			}
			if err != nil {
				faults = append(faults, fmt.Errorf("line %d: %w", number, err))
				break // a time after it has no driver either
			}
			last = s.Driver
			if at, twice := seen[last]; twice {
				faults = append(faults, fmt.Errorf("line %d: %s is in line %d already", number, s.Code, at))
				continue
			}
			seen[last] = number
			if dash {
				list.Unplaced = append(list.Unplaced, s)
			} else {
				list.Placed = append(list.Placed, s)
			}
		}
	}
	if len(faults) == 0 && len(seen) == 0 {
		faults = append(faults, errors.New("nobody is named: write the drivers' codes in order, such as VER NOR LEC"))
	}
	return &list, errors.Join(faults...)
}

// Find returns the driver with a code or an identifier. The error suggests drivers that the text may
// mean.
func (r *Roster) Find(text string) (Starter, error) {
	for _, s := range r.Known {
		if strings.EqualFold(s.Code, text) || string(s.Driver) == text {
			return s, nil
		}
	}
	var codes []string
	for _, s := range r.Known {
		if s.Entered {
			codes = append(codes, s.Code)
		}
	}
	meant := nearDrivers(text, r.Known, func(s Starter) (code, name string) { return s.Code, s.Name })
	slices.Sort(codes)
	return Starter{}, fmt.Errorf("%q is not the code of a driver%s Known are %s; a new driver is written %s = Name, country, team, number",
		text, cmp.Or(meant, "."), strings.Join(codes, " "), cmp.Or(strings.ToUpper(letters(text)), "ABC"))
}

// nearDrivers suggests drivers by code and last name for a mistyped text.
func nearDrivers[T any](text string, drivers []T, of func(T) (code, name string)) string {
	near := names.Nearest(text, 2, drivers, func(driver T) []string {
		code, name := of(driver)
		return []string{code, name[strings.LastIndex(name, " ")+1:]}
	})
	suggestions := make([]string, len(near))
	for i, driver := range near {
		code, name := of(driver)
		suggestions[i] = fmt.Sprintf("%s (%s)", code, name)
	}
	return names.DidYouMean(suggestions)
}

var (
	codeForm = regexp.MustCompile(`^[A-Z]{3}$`) // of drivers and of countries
	timeForm = regexp.MustCompile(`^(?:\d:)?\d\d?\.\d{1,3}$`)
	// teamForm is compiled when it is first needed, because it holds all letters 40 times.
	teamForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\p{Lu}[\p{L}\d .-]{1,39}) \(([A-Z]{3})\)$`) })
)

// A lap of qualifying takes between these times: the shortest circuit had laps of 54 s, and rain doubles a lap.
const (
	shortestLap = 40 * time.Second
	longestLap  = 5 * time.Minute
)

// assign reads a line about a driver: a team, a team and a number, or a new driver. It adds a new driver and a new
// team to the list.
func (r *Roster) assign(l *List, code, is string) (Starter, error) {
	parts := strings.Split(is, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	var driver *season.Driver
	var s Starter
	if len(parts) > 2 {
		if len(parts) != 4 {
			return s, fmt.Errorf("%s: a new driver is written %s = Name, country, team, number, such as LIN = Arvid Lindblad, GBR, racing-bulls, 41", code, code)
		}
		d, err := r.introduce(code, parts[0], parts[1])
		if err != nil {
			return s, err
		}
		if _, known := r.drivers[d.ID]; !known { // a known driver comes back under the known identifier
			driver = &d
		}
		parts = parts[2:]
		s = Starter{Entry: season.Entry{Driver: d.ID}, Code: code, Name: d.Name}
	} else {
		known, err := r.Find(code)
		if err != nil {
			return s, err
		}
		s = known
	}
	team, err := r.findTeam(parts[0])
	if is := teamForm().FindStringSubmatch(parts[0]); err != nil && is != nil {
		found := season.Team{ID: season.TeamID(names.Slug(is[1])), Name: is[1], Country: is[2]}
		team, err = found.ID, nil
		if _, known := r.teams[team]; !known && !slices.Contains(l.NewTeams, found) {
			l.NewTeams = append(l.NewTeams, found)
		}
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w", code, err)
	}
	if team != s.Team {
		s.Team, s.Engine = team, ""
		if i := slices.IndexFunc(r.Known, func(known Starter) bool { return known.Team == team }); i >= 0 {
			s.Engine = r.Known[i].Engine
		}
	}
	if len(parts) > 1 {
		n, err := strconv.Atoi(parts[1])
		if err != nil || n < 1 || n > 99 {
			return s, fmt.Errorf("%s: car number %q: want a whole number from 1 to 99", code, parts[1])
		}
		s.Number = n
	}
	if driver != nil {
		l.New = append(l.New, *driver)
	}
	return s, nil
}

// introduce returns a new driver. The identifier is that of F1DB, so that the sources name the same
// driver later.
func (r *Roster) introduce(code, name, country string) (season.Driver, error) {
	country = strings.ToUpper(country)
	id := season.DriverID(names.Slug(name))
	first, last, two := strings.Cut(name, " ")
	switch {
	case !codeForm.MatchString(code):
		return season.Driver{}, fmt.Errorf("code %q: want three letters A to Z", code)
	case !two || id == "":
		return season.Driver{}, fmt.Errorf("%s: name %q: want a first and a last name", code, name)
	case !codeForm.MatchString(country):
		return season.Driver{}, fmt.Errorf("%s: country %q: want the three letters of ISO 3166-1, such as GBR", code, country)
	}
	for _, s := range r.Known {
		if s.Code == code || s.Driver == id {
			return season.Driver{}, fmt.Errorf("%s = %s: %s is %s already", code, name, s.Code, s.Name)
		}
	}
	return season.Driver{ID: id, Name: name, FirstName: first, LastName: last, Abbreviation: code, Country: country}, nil
}

// findTeam returns the team with an identifier or a name. The team must have an entry.
func (r *Roster) findTeam(text string) (season.TeamID, error) {
	var all []season.TeamID
	var known []string // entered in the round
	for _, s := range r.Known {
		if strings.EqualFold(text, string(s.Team)) || strings.EqualFold(text, r.Team(s.Team)) {
			return s.Team, nil
		}
		if !slices.Contains(all, s.Team) {
			all = append(all, s.Team)
			if s.Entered {
				known = append(known, string(s.Team))
			}
		}
	}
	var near []string
	for _, team := range names.Nearest(text, 3, all, func(team season.TeamID) []string { return []string{string(team), r.Team(team)} }) {
		near = append(near, string(team))
	}
	slices.Sort(known)
	return "", fmt.Errorf("team %q is not known%s Known are %s; a new team is written Name (COUNTRY)", text, cmp.Or(names.DidYouMean(near), "."), strings.Join(known, ", "))
}

// Unnumbered returns a driver of the list without a car number, false if all have one.
func (l *List) Unnumbered() (Starter, bool) {
	all := l.All()
	if i := slices.IndexFunc(all, func(s Starter) bool { return s.Number == 0 }); i >= 0 {
		return all[i], true
	}
	return Starter{}, false
}

// Strangers returns the codes of the drivers of a list without an entry in the round. If the entries
// of the round are unknown, nobody is a stranger.
func (r *Roster) Strangers(l *List) []string {
	if !r.Listed {
		return nil
	}
	var strangers []string
	for _, s := range l.All() {
		if !slices.ContainsFunc(r.Known, func(k Starter) bool { return k.Driver == s.Driver && k.Entered }) {
			strangers = append(strangers, s.Code)
		}
	}
	return strangers
}

// Entries returns the entries of a list by car number.
func (l *List) Entries() []season.Entry {
	entries := make([]season.Entry, 0, len(l.Placed)+len(l.Unplaced))
	for _, s := range l.All() {
		entries = append(entries, s.Entry)
	}
	slices.SortStableFunc(entries, func(a, b season.Entry) int { return cmp.Compare(a.Number, b.Number) })
	return entries
}

// Qualifying returns a qualifying in the order of a list. It had parts if a driver has several times.
func (l *List) Qualifying() []season.QualifyingRow {
	parts := false
	for _, times := range l.Times {
		parts = parts || len(times) > 1
	}
	return rows(l, func(s Starter, position int) season.QualifyingRow {
		row := season.QualifyingRow{Driver: s.Driver, Team: s.Team, Position: position}
		if times := l.Times[s.Driver]; parts {
			copy(row.Segments[:], times)
		} else if len(times) > 0 {
			row.Time = times[0]
		}
		return row
	})
}

// Grid returns a starting grid in the order of a list.
func (l *List) Grid() []season.GridSlot {
	return rows(l, func(s Starter, position int) season.GridSlot {
		return season.GridSlot{Driver: s.Driver, Team: s.Team, Position: position}
	})
}

// rows makes one row for each driver of a list. A driver without a place has the position 0.
func rows[T any](l *List, row func(s Starter, position int) T) []T {
	made := make([]T, 0, len(l.Placed)+len(l.Unplaced))
	for i, s := range l.Placed {
		made = append(made, row(s, i+1))
	}
	for _, s := range l.Unplaced {
		made = append(made, row(s, 0))
	}
	return made
}

// letters returns the first three letters A to Z of a text.
func letters(text string) string {
	kept := strings.Map(func(c rune) rune {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			return c
		}
		return -1
	}, text)
	return kept[:min(3, len(kept))]
}
