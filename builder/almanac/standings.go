package almanac

import (
	"cmp"
	"maps"
	"slices"

	"gridcast/builder/ledger"
	"gridcast/builder/season"
)

// Tally is a competitor's state in a season.
type Tally struct {
	Position int // 0 if unranked
	Points   float64
	Wins     int
	Podiums  int
	Excluded bool // by a decision, so that it has no rank
}

// Shown returns the points as documents show them. A deduction may leave fewer than none: the rest comes off later points.
func (t Tally) Shown() float64 { return max(t.Points, 0) }

// DriverStanding is a row of the drivers' championship after the last verified round. Team is
// the team of the driver's latest race.
type DriverStanding struct {
	Driver season.Driver
	Team   season.Team
	Colour string
	Tally
}

// ConstructorStanding is a row of the constructors' championship. Engine is empty unless the
// season ranks the team with different engines apart.
type ConstructorStanding struct {
	Team   season.Team
	Maker  season.EngineID // of the engine, always
	Engine string
	Colour string
	Tally
}

// Championship is the table of both championships after a round.
type Championship struct {
	Round        *Round
	Drivers      []DriverStanding
	Constructors []ConstructorStanding
}

// counted returns the rounds that count in the standings, in order of their start. In a season in which
// points add, these are all verified rounds, so that their number never falls: a round that a source adds
// before them takes no points away. In an earlier season they end before the first round that is not
// verified, because the tables of the source do. It passes over cancelled and postponed rounds.
func counted(year int, rounds []*Round) []*Round {
	raced := slices.DeleteFunc(slices.Clone(rounds), (*Round).Off)
	slices.SortStableFunc(raced, byStart)
	unverified := func(r *Round) bool { return r.Result == nil }
	if season.PointsAdd(year) {
		return slices.DeleteFunc(raced, unverified)
	}
	if i := slices.IndexFunc(raced, unverified); i >= 0 {
		return raced[:i]
	}
	return raced
}

// constructor is a competitor of the constructors' championship: a chassis with an engine.
type constructor struct {
	team   season.TeamID
	engine season.EngineID
}

// table is a championship during its computation: rows in ranking order.
type table[K comparable] struct {
	rows []*row[K]
	by   map[K]*row[K]
	cars bool // a competitor has several cars in a race, each of which can finish
}

type row[K comparable] struct {
	key K
	Tally
	finishes [countback]int // races finished in place i+1

	race *ledger.Classification // counted last
	cars [countback + 1]bool    // of race that are counted, by place, or the first for all of them
}

// countback is the number of places that break a tie on points, the most first places first.
const countback = 30

func newTable[K comparable](cars bool) *table[K] { return &table[K]{by: map[K]*row[K]{}, cars: cars} }

// add appends a row. A competitor may have two rows: Force India of 2018 is ranked and, for the entry
// that was excluded, listed without a rank. Its results count in the first.
func (t *table[K]) add(key K, position int, points float64) {
	r := &row[K]{key: key, Tally: Tally{Position: position, Points: points}}
	t.rows = append(t.rows, r)
	if _, listed := t.by[key]; !listed {
		t.by[key] = r
	}
}

// join returns the row of a competitor. A new competitor joins at the end without points.
func (t *table[K]) join(key K) *row[K] {
	if _, listed := t.by[key]; !listed {
		t.add(key, len(t.rows)+1, 0)
	}
	return t.by[key]
}

// rank orders the ranked rows again by points, then by countback, then by their earlier order, and
// leaves the unranked at the end.
func (t *table[K]) rank() {
	slices.SortStableFunc(t.rows, func(a, b *row[K]) int {
		ranked := cmp.Compare(min(b.Position, 1), min(a.Position, 1))
		return cmp.Or(ranked, cmp.Compare(b.Points, a.Points), slices.Compare(b.finishes[:], a.finishes[:]))
	})
	for i, r := range t.rows {
		if r.Position != 0 {
			r.Position = i + 1
		}
	}
}

// count adds the finishing places of a race. Several drivers may have shared a car, and a driver
// several cars: a constructor's car counts once, and a driver by the first place.
func (t *table[K]) count(c *ledger.Classification, keyOf func(ledger.Row) K) {
	for _, line := range c.Rows {
		place := line.Position
		r, ok := t.by[keyOf(line)]
		if !ok || place == 0 || place > countback {
			continue
		}
		var car int
		if t.cars {
			car = place
		}
		if r.race != c {
			r.race, r.cars = c, [len(r.cars)]bool{}
		}
		if r.cars[car] {
			continue
		}
		r.cars[car] = true
		r.finishes[place-1]++
		if place == 1 {
			r.Wins++
		}
		if place <= 3 {
			r.Podiums++
		}
	}
}

// adjust brings a table that holds the source's standings after the round base up to the verified rounds. Where points
// simply add, the sum of the verified classifications and of the decisions counts, and not the source's table, which may
// lag behind its own results. Elsewhere the verified results move the source's points: see move. Only when points change
// does it compute the order again; otherwise the source's order stays.
func adjust[K comparable](t *table[K], year int, rounds, verified []*Round, base *Round, decisions []decision[K], keyOf func(ledger.Row) K) {
	add := season.PointsAdd(year)
	var changed bool
	if add {
		changed = t.sum(verified, base, decisions, keyOf)
	} else {
		changed = t.move(rounds, verified, base, keyOf)
	}
	changed = t.decide(decisions, add) || changed
	for _, r := range verified {
		t.count(r.Result, keyOf)
	}
	if changed {
		t.rank()
	}
}

// move takes out results of the source that are not verified, such as a race that the ledger says was not held then. It puts
// in a result that differs from the source's own by its difference in points, and a later round without the source's
// standings by its points. It reports whether any points changed. The seasons in question had no sprints.
func (t *table[K]) move(rounds, verified []*Round, base *Round, keyOf func(ledger.Row) K) (changed bool) {
	for _, r := range rounds {
		diff := map[K]float64{}
		var order []K
		move := func(rows []ledger.Row, sign float64) {
			for _, line := range rows {
				key := keyOf(line)
				if _, ok := diff[key]; !ok {
					order = append(order, key)
				}
				diff[key] += sign * line.Points
			}
		}
		if base != nil && !r.Facts.StartsAt().After(base.Facts.StartsAt()) {
			move(Rows(r.Facts.Results), -1)
		}
		if slices.Contains(verified, r) {
			move(r.Result.Rows, 1)
		}
		for _, key := range order {
			if d := diff[key]; d != 0 {
				t.join(key).Points += d
				changed = true
			}
		}
	}
	return changed
}

// decision is what decisions about a competitor change in a table.
type decision[K comparable] struct {
	key      K
	points   float64
	excluded bool
	ended    float64 // the points of an entry that ended, after which the competitor goes on as another
	anew     bool    // there is one
	archived bool    // the tables of the source have it
}

// decide applies the decisions that the table does not have yet, and reports whether it changed. If added, the table has
// the points of all.
func (t *table[K]) decide(decisions []decision[K], added bool) (changed bool) {
	for _, d := range decisions {
		if d.archived && !added {
			continue
		}
		if _, listed := t.by[d.key]; !listed && d.points == 0 {
			continue // nothing changes for a competitor without results
		}
		r := t.join(d.key)
		if !added && d.points != 0 {
			r.Points, changed = r.Points+d.points, true
		}
		if d.anew && !d.archived {
			t.rows, changed = append(t.rows, &row[K]{key: d.key, Tally: Tally{Points: d.ended, Excluded: true}}), true
		}
		if r.Excluded = r.Excluded || d.excluded; d.excluded && r.Position != 0 {
			r.Position, changed = 0, true
		}
	}
	return changed
}

// sum gives every competitor the points of the classifications and decisions, and reports whether any points changed. After
// the round base, which has the source's table, competitors without points join the table too.
func (t *table[K]) sum(verified []*Round, base *Round, decisions []decision[K], keyOf func(ledger.Row) K) (changed bool) {
	points := map[K]float64{}
	for _, d := range decisions {
		if points[d.key] += d.points; d.points != 0 {
			t.join(d.key)
		}
	}
	for _, r := range verified {
		for _, line := range slices.Concat(r.Result.Rows, r.Sprint()) {
			key := keyOf(line)
			points[key] += line.Points
			ahead := base == nil || r.Facts.StartsAt().After(base.Facts.StartsAt())
			if line.Points > 0 || ahead {
				t.join(key)
			}
		}
	}
	for key, r := range t.by {
		if r.Points != points[key] {
			r.Points, changed = points[key], true
		}
	}
	return changed
}

// lastWith returns the latest verified round of the source whose facts have
// the wanted part, or nil.
func lastWith(verified []*Round, has func(*season.Round) bool) *Round {
	var last *Round
	for _, r := range verified {
		if has(r.Facts) && (last == nil || !r.Facts.StartsAt().Before(last.Facts.StartsAt())) {
			last = r
		}
	}
	return last
}

func driverStandings(v *season.View, facts *season.Season, rounds, verified []*Round, all []ChampionshipDecision) []DriverStanding {
	t := newTable[season.DriverID](false)
	base := lastWith(verified, func(r *season.Round) bool { return len(r.DriverStandings) > 0 })
	if base != nil {
		for _, s := range base.Facts.DriverStandings {
			t.add(s.Driver, s.Position, s.Points)
		}
	}
	keyOf := func(line ledger.Row) season.DriverID { return line.Driver }
	adjust(t, facts.Year, rounds, verified, base, decisions(all, false, verified, keyOf, func(d *ChampionshipDecision) season.DriverID { return season.DriverID(d.Competitor) }), keyOf)

	teams := latestTeams(verified)
	standings := make([]DriverStanding, len(t.rows))
	for i, r := range t.rows {
		team := teams[r.key]
		if team == "" && base != nil { // none of the driver's races is verified
			team = base.TeamOf(r.key)
		}
		standings[i] = DriverStanding{Driver: v.Driver(r.key), Team: v.Team(team), Colour: facts.Colours[team], Tally: r.Tally}
	}
	return standings
}

// decisions returns the changes that decisions about a championship make in the table after the rounds counted.
func decisions[K comparable](all []ChampionshipDecision, constructors bool, counted []*Round, keyOf func(ledger.Row) K, about func(*ChampionshipDecision) K) (found []decision[K]) {
	if len(counted) == 0 {
		return nil
	}
	all = slices.SortedStableFunc(slices.Values(all), func(x, y ChampionshipDecision) int { return x.begins().Compare(y.begins()) })
	for i := range all {
		d := &all[i]
		if d.Constructors != constructors || !d.counts(counted[len(counted)-1]) {
			continue
		}
		is := decision[K]{key: about(d), points: d.Points, excluded: d.Excluded, anew: d.NewEntry, archived: d.EventID == ""}
		for _, r := range counted {
			for _, line := range slices.Concat(r.Result.Rows, r.Sprint()) {
				if d.NewEntry && !d.counts(r) && keyOf(line) == is.key {
					is.ended += line.Points
				}
			}
		}
		for j := range all { // taken from or added to the entry that ended
			if o := &all[j]; d.NewEntry && o.Constructors == constructors && o.begins().Before(d.begins()) && about(o) == is.key {
				is.ended += o.Points
			}
		}
		for _, earlier := range found {
			if d.NewEntry && earlier.key == is.key {
				is.ended -= earlier.ended
			}
		}
		is.points -= is.ended
		found = append(found, is)
	}
	return found
}

// latestTeams returns each driver's team in the latest race of the given rounds, or, for a driver who
// never got to race, the team of the last attempt.
func latestTeams(verified []*Round) map[season.DriverID]season.TeamID {
	teams, raced := map[season.DriverID]season.TeamID{}, map[season.DriverID]season.TeamID{}
	for _, r := range verified {
		for _, line := range r.Result.Rows {
			teams[line.Driver] = line.Team
			if len(r.Facts.Entries) == 0 && (&season.Result{Outcome: line.Status}).Started() { // only the ledger has the race
				raced[line.Driver] = line.Team
			}
		}
		for _, e := range r.Facts.Entries {
			raced[e.Driver] = e.Team
		}
	}
	maps.Copy(teams, raced)
	return teams
}

func constructorStandings(v *season.View, facts *season.Season, rounds, verified []*Round, all []ChampionshipDecision) []ConstructorStanding {
	t := newTable[constructor](true)
	base := lastWith(verified, func(r *season.Round) bool { return len(r.TeamStandings) > 0 })
	if base == nil && (len(verified) == 0 || !season.PointsAdd(facts.Year)) {
		return nil // no constructors' championship, or no race yet
	}
	if base != nil {
		for _, s := range base.Facts.TeamStandings {
			t.add(constructor{s.Team, s.Engine}, s.Position, s.Points)
		}
	}
	keyOf := func(line ledger.Row) constructor { return constructor{line.Team, line.Engine} }
	about := func(d *ChampionshipDecision) constructor {
		engine := d.Engine
		for _, r := range verified { // the engine of its first car, if the decision names none
			for _, line := range r.Result.Rows {
				if engine == "" && string(line.Team) == d.Competitor {
					engine = line.Engine
				}
			}
		}
		return constructor{season.TeamID(d.Competitor), engine}
	}
	adjust(t, facts.Year, rounds, verified, base, decisions(all, true, verified, keyOf, about), keyOf)

	engines := map[season.TeamID]int{}
	for key := range t.by {
		engines[key.team]++
	}
	standings := make([]ConstructorStanding, len(t.rows))
	for i, r := range t.rows {
		s := ConstructorStanding{Team: v.Team(r.key.team), Maker: r.key.engine, Colour: facts.Colours[r.key.team], Tally: r.Tally}
		if engines[r.key.team] > 1 {
			s.Engine = v.Engines[r.key.engine].Name
		}
		standings[i] = s
	}
	return standings
}
