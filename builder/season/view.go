package season

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Driver returns a driver. If the archive is too old to have the driver, the name is made from the
// identifier.
func (v *View) Driver(id DriverID) Driver {
	if d, ok := v.Drivers[id]; ok {
		return d
	}
	d := Driver{ID: id, Name: spelt(string(id))}
	d.FirstName, d.LastName, _ = strings.Cut(d.Name, " ")
	if d.LastName == "" {
		d.FirstName, d.LastName = "", d.FirstName
	}
	return d
}

// Team returns a team, in the same way as Driver.
func (v *View) Team(id TeamID) Team {
	if t, ok := v.Teams[id]; ok {
		return t
	}
	return Team{ID: id, Name: spelt(string(id))}
}

// spelt makes a name from an identifier: red-bull becomes Red Bull.
func spelt(id string) string {
	words := strings.Split(id, "-")
	for i, w := range words {
		if w != "" {
			words[i] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, " ")
}

// CurrentSeason is the year of At if its calendar is known, else the latest known season; 0 if
// there is none.
func (v *View) CurrentSeason() int {
	if _, ok := v.Season(v.At.UTC().Year()); ok {
		return v.At.UTC().Year()
	}
	if len(v.Seasons) == 0 {
		return 0
	}
	return v.Seasons[len(v.Seasons)-1].Year
}

// LatestEntries returns the latest round with known entries, and its season. Both are nil if there is
// none.
func (v *View) LatestEntries() (*Season, *Round) {
	for i := len(v.Seasons) - 1; i >= 0; i-- {
		if r := v.Seasons[i].latest(func(r *Round) bool { return len(r.Entries) > 0 }); r != nil {
			return &v.Seasons[i], r
		}
	}
	return nil, nil
}

// Root returns the oldest known name in the team's lineage of that year, or the team itself if it has
// no lineage. Teams with the same root are one team under several names.
func (v *View) Root(team TeamID, year int) TeamID {
	for _, l := range v.Lineages {
		for _, link := range l.Links {
			if link.Team == team && link.From <= year && (link.To == 0 || year <= link.To) {
				return l.Links[0].Team
			}
		}
	}
	return team
}

// Round returns the round of a Grand Prix.
func (s *Season) Round(gp GrandPrixID) (*Round, bool) {
	for i := range s.Rounds {
		if s.Rounds[i].GrandPrix == gp {
			return &s.Rounds[i], true
		}
	}
	return nil, false
}

// LatestResult returns the last round with a known result, or nil.
func (s *Season) LatestResult() *Round { return s.latest((*Round).Finished) }

// PointsAdd reports whether the championships of a year are the sums of their classifications and of the decisions about
// them: since 2010 no result is dropped, and every one counts in both.
func PointsAdd(year int) bool { return year >= 2010 }

// EndedBy reports whether all races of the season had ended at an instant.
func (s *Season) EndedBy(t time.Time) bool {
	return !slices.ContainsFunc(s.Rounds, func(r Round) bool { return !r.ResultKnownAt().Before(t) })
}

// Complete reports whether every round has a known result.
func (s *Season) Complete() bool {
	return len(s.Rounds) > 0 && !slices.ContainsFunc(s.Rounds, func(r Round) bool { return !r.Finished() })
}

// latest returns the round that starts last among those with the property.
func (s *Season) latest(has func(*Round) bool) *Round {
	var latest *Round
	var start time.Time
	for i := range s.Rounds {
		r := &s.Rounds[i]
		if has(r) && !r.StartsAt().Before(start) {
			latest, start = r, r.StartsAt()
		}
	}
	return latest
}

// scale is the points for the first places from a season on.
type scale struct {
	from   int
	points []float64
}

var (
	raceScales = []scale{ // the latest first
		{2010, []float64{25, 18, 15, 12, 10, 8, 6, 4, 2, 1}},
		{2003, []float64{10, 8, 6, 5, 4, 3, 2, 1}},
		{1991, []float64{10, 6, 4, 3, 2, 1}},
		{1961, []float64{9, 6, 4, 3, 2, 1}},
		{1960, []float64{8, 6, 4, 3, 2, 1}},
		{0, []float64{8, 6, 4, 3, 2}},
	}
	sprintScales = []scale{
		{2022, []float64{8, 7, 6, 5, 4, 3, 2, 1}},
		{2021, []float64{3, 2, 1}},
	}
)

// Scale returns the points for the first places of a race or a sprint of a season, over the full distance and
// without the point for the fastest lap. It is nil for a sprint of a season that had none. Callers must not
// change it.
func Scale(year int, sprint bool) []float64 {
	of := raceScales
	if sprint {
		of = sprintScales
	}
	for _, scale := range of {
		if year >= scale.from {
			return scale.points
		}
	}
	return nil
}

// FastestLapPoint reports whether the fastest lap of a race gives a driver in the first ten places a point, as from 2019 to
// 2024. From 1950 to 1959 it did too, but with shared cars and laps nothing follows from one classification.
func FastestLapPoint(year int) bool { return year >= 2019 && year <= 2024 }

// Award is a rule by which the places of a race or a sprint give points.
type Award struct {
	points     []float64 // for the first places
	fastestLap bool      // gives BonusPoint within BonusPlaces
}

// A driver within these places has a point more for the fastest lap, in seasons with that point.
const (
	BonusPoint  = 1
	BonusPlaces = 10
)

// Awards returns the awards that a race or a sprint may have, the usual one first. A sprint of a season that had none has
// no award.
//
// Source: the Sporting Regulations of the FIA Formula One World Championship, article 6, of each year.
//   - 2014: double points at the last race
//   - 2019 to 2024: a point for the fastest lap in the first ten
//   - up to 2021: half points for a race of less than three quarters of the distance
//   - from 2022: a table for each quarter of the distance
func Awards(year int, gp GrandPrixID, sprint bool) []Award {
	scale, fastestLap := Scale(year, sprint), !sprint && FastestLapPoint(year)
	times := func(factor float64) Award {
		a := Award{slices.Clone(scale), fastestLap}
		for i := range a.points {
			a.points[i] *= factor
		}
		return a
	}
	switch {
	case scale == nil:
		return nil
	case sprint:
		return []Award{times(1)}
	case year == 2014 && gp == "abu-dhabi":
		return []Award{times(2)}
	case year <= 2021:
		return []Award{times(1), times(.5)}
	}
	return []Award{
		times(1),
		{[]float64{19, 14, 12, 9, 8, 6, 5, 3, 2, 1}, fastestLap},
		{[]float64{13, 10, 8, 6, 5, 4, 3, 2, 1}, fastestLap},
		{[]float64{6, 4, 3, 2, 1}, fastestLap},
	}
}

// Place returns the points of a place, from 1, without the one for the fastest lap.
func (a Award) Place(place int) float64 {
	if place <= len(a.points) {
		return a.points[place-1]
	}
	return 0
}

// Gives reports whether a place can have these points, and whether the one for the fastest lap is among them.
func (a Award) Gives(place int, points float64) (fastestLap, ok bool) {
	difference := points - a.Place(place)
	fastestLap = a.fastestLap && difference == BonusPoint && place <= BonusPlaces
	return fastestLap, fastestLap || math.Abs(difference) < 1e-9
}

// Headshots locate portraits of drivers. Template is an https address with placeholders: {driver} for
// the driver's identifier, {code} for their code of the season, {year} for the season. Drivers have a
// portrait there; without a list of them, every driver has one. With an empty template no driver has one.
type Headshots struct {
	Template string     `json:"template"`
	Drivers  []DriverID `json:"drivers"`
}

// Headshot returns the address of a driver's portrait in a season: the source's, else the template's.
// It is empty if there is none.
func (v *View) Headshot(driver DriverID, code string, year int) string {
	if own := v.Drivers[driver].HeadshotURL; own != "" {
		return own
	}
	if v.Headshots.Template == "" || len(v.Headshots.Drivers) > 0 && !slices.Contains(v.Headshots.Drivers, driver) {
		return ""
	}
	return expand(v.Headshots.Template, string(driver), code, year)
}

// Of returns the portraits of the drivers among the given ones.
func (h Headshots) Of(drivers map[DriverID]Driver) (of Headshots) {
	for _, driver := range h.Drivers {
		if _, ok := drivers[driver]; ok {
			of.Drivers = append(of.Drivers, driver)
		}
	}
	if len(of.Drivers) == 0 == (len(h.Drivers) == 0) { // an empty list stands for every driver
		of.Template = h.Template
	}
	return of
}

// Validate checks the template.
func (h Headshots) Validate() error {
	if h.Template == "" {
		if len(h.Drivers) > 0 {
			return errors.New("headshots of drivers without a template")
		}
		return nil
	}
	address, err := url.Parse(expand(h.Template, "driver", "ABC", 2000))
	if err != nil || address.Scheme != "https" || address.Host == "" {
		return errors.New("headshot template: want an https address") // another file may hold a secret
	}
	left := expand(h.Template, "", "", 0)
	if i := strings.IndexAny(left, "{}"); i >= 0 {
		return fmt.Errorf("headshot template %q: %q is not {driver}, {code} or {year}", h.Template, left[i:])
	}
	if !strings.Contains(h.Template, "{driver}") && !strings.Contains(h.Template, "{code}") {
		return fmt.Errorf("headshot template %q: all drivers would have one portrait; name {driver} or {code}", h.Template)
	}
	return nil
}

func expand(template, driver, code string, year int) string {
	return strings.NewReplacer("{driver}", driver, "{code}", code, "{year}", strconv.Itoa(year)).Replace(template)
}
