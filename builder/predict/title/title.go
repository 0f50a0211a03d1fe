// Package title gives the chances of winning a championship. It simulates the rest of a season
// many times, with the model's form and its uncertainty. It is pure and seeded: the same
// view gives the same odds.
//
// Each simulation draws the strengths of the drivers from the model's belief (package predict)
// after the latest race, and moves them from race to race as the model lets
// cars and drivers move. Some cars retire. A draw by strength gives the winner and then the
// places behind, with the power that makes podium chances right. Sprints are separate
// races. A sprint that was held before its race is drawn again, because its points count only
// once the round is over. A driver keeps his seat when he misses the latest race: see withRegulars.
package title

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"gridcast/builder/predict"
	"gridcast/builder/predict/matrix"
	"gridcast/builder/predict/portable"
	"gridcast/builder/season"
)

// Odds are the chances of both titles of a season.
type Odds struct {
	Year      int
	Races     int // finished
	Remaining int // to be held
	Drivers   []Chance[season.DriverID]
	Teams     []Chance[season.TeamID]
}

// Chance is a contender: a driver or a team that can still win the title. Contenders are sorted by
// falling chance, then by points.
type Chance[ID season.DriverID | season.TeamID] struct {
	ID     ID
	Points float64
	Most   float64 // points at the end with every remaining point
	Title  float64 // in [0, 1]; adds up to 1

	Low, High float64 // 10th and 90th percentile of the points at the end
}

// Config says how to simulate.
type Config struct {
	Runs   int
	Seed   uint64
	Spread float64 // factor on the uncertainty of the strengths

	Drivers map[season.DriverID]Decided // competitors about whom there is a decision that the standings of the view do not show
	Teams   map[season.TeamID]Decided
}

// Decided is a decision about a competitor.
type Decided struct {
	Excluded bool    // from the title
	Points   float64 // added to the points at the end; negative: taken
}

// DefaultConfig is the configuration of the published odds. The spread was chosen among seven from 0 to 2 on the
// seasons 1998 to 2009 alone: there the log-loss is flat up to 1.25 and then rises, while the
// intervals of 80 % hold 71 % of the points at 1 and at 1.25, and 78 % at 2. Score measures 2010
// to 2025; deploy/docs/predictions.md has the figures.
func DefaultConfig() Config { return Config{Runs: 10_000, Seed: 1950, Spread: 1.25} }

// FirstYear is the first season that can be simulated. Before it not all results counted.
const FirstYear = 1991

// ErrTooEarly is the error of a season that cannot be simulated.
var ErrTooEarly = fmt.Errorf("the season is not known, or before %d", FirstYear)

// Simulate returns the odds of the season's titles in the view v: finished rounds count, and
// the others are still to be held. The error wraps ErrTooEarly, predict.ErrNoForm or predict.ErrNobody, or says that the
// season is over.
func Simulate(v *season.View, year int, m *predict.Ranked, c Config) (Odds, error) {
	s, ok := v.Season(year)
	if !ok || year < FirstYear {
		return Odds{}, fmt.Errorf("title odds of %d: %w", year, ErrTooEarly)
	}
	var remaining []*season.Round
	var latest *season.Round
	for i := range s.Rounds {
		if r := &s.Rounds[i]; r.Finished() {
			latest = r
		} else {
			remaining = append(remaining, r)
		}
	}
	odds := Odds{Year: year, Races: len(s.Rounds) - len(remaining), Remaining: len(remaining)}
	if len(remaining) == 0 {
		return Odds{}, fmt.Errorf("title odds of %d: the season is over", year)
	}
	outlook, err := m.Outlook(withRegulars(v, s, remaining[0]), year, remaining[0].GrandPrix)
	if err != nil {
		return Odds{}, fmt.Errorf("title odds of %d: %w", year, err)
	}
	sim, err := newSimulation(v, s, remaining, latest, outlook, c)
	if err != nil {
		return Odds{}, fmt.Errorf("title odds of %d: %w", year, err)
	}
	sim.run(c)
	odds.Drivers = contenders(sim.drivers, sim.most, len(remaining), 1, c.Runs)
	sharpen(odds.Drivers, earlyPower(float64(odds.Races)/float64(len(s.Rounds))))
	odds.Teams = contenders(sim.teams, sim.mostTeam, len(remaining), 2, c.Runs)
	return odds, nil
}

// The chances of the drivers' title are too even early in a season: after a quarter of the seasons 2010 to 2025 the
// likeliest had .74 and won 15 of 16. They are raised to the power 1 + earlyGain until early of the season is held; from
// there the power falls to 1 at half. The gain was chosen on 1996 to 2009. From a fifth to two fifths of the seasons 2010
// to 2025 it lowers the log-loss by .085 [.056, .114]. The chances of the constructors' title need no power.
const (
	earlyGain = .5
	early     = .3
	half      = .5
)

func earlyPower(held float64) float64 {
	return 1 + float64(earlyGain*min(1, max(0, half-held)/(half-early)))
}

// sharpen raises chances to a power and makes them add up to 1.
func sharpen[ID season.DriverID | season.TeamID](list []Chance[ID], power float64) {
	if power == 1 {
		return
	}
	total := 0.0
	for i, c := range list {
		if c.Title > 0 {
			list[i].Title = portable.Pow(c.Title, power)
		}
		total += list[i].Title
	}
	for i := range list {
		if total > 0 {
			list[i].Title /= total
		}
	}
}

// counted is the number of places that break a tie on points.
const counted = 10

// tally holds the points of a driver or a team: now, at the end of a run, and over all runs.
type tally[ID season.DriverID | season.TeamID] struct {
	id     ID
	points float64
	places [counted]int // number of first, second, … places

	now       float64
	nowPlaces [counted]int

	decided Decided
	titles  int
	ends    []float64 // points at the end of each run
}

func (t *tally[ID]) reset() { t.now, t.nowPlaces = t.points+t.decided.Points, t.places }

// ahead reports whether t is ahead of o at the end of a run: by points, then by the better places.
func (t *tally[ID]) ahead(o *tally[ID]) bool {
	if t.now != o.now {
		return t.now > o.now
	}
	return slices.Compare(t.nowPlaces[:], o.nowPlaces[:]) > 0
}

// simulation is a season that many runs finish.
type simulation struct {
	rounds  []round
	drivers []*tally[season.DriverID]
	teams   []*tally[season.TeamID]

	most, mostTeam float64 // points that one can still add

	// By starter.
	driver, team []int // indices into drivers and teams
	car          []int // which of the cars, 0 …
	cars         int
	strength     []float64
	root         matrix.Lower // of the covariance; without rows if every strength is known
	retires      []float64
	teamStep     float64
	driverStep   float64
}

// round is a round to be held: the points of its race and sprint, by place.
type round struct {
	race, sprint []float64
	fastest      float64 // for the fastest lap, if among the first ten
}

func newSimulation(v *season.View, s *season.Season, remaining []*season.Round, latest *season.Round, o predict.Outlook, c Config) (*simulation, error) {
	sim := &simulation{strength: o.Strength, teamStep: c.Spread * o.TeamStep, driverStep: c.Spread * o.DriverStep}
	last := s.Rounds[len(s.Rounds)-1].GrandPrix
	for _, r := range remaining {
		held := pointsOf(s.Year, r.HasSprint(), r.GrandPrix == last)
		sim.rounds = append(sim.rounds, held)
		sim.most += held.race[0] + held.fastest
		sim.mostTeam += held.race[0] + held.race[1] + held.fastest
		if r.HasSprint() {
			sim.most += held.sprint[0]
			sim.mostTeam += held.sprint[0] + held.sprint[1]
		}
	}
	driver, team := map[season.DriverID]int{}, map[season.TeamID]int{}
	addDriver := func(id season.DriverID) int { return indexOf(id, driver, &sim.drivers) }
	addTeam := func(id season.TeamID) int { return indexOf(id, team, &sim.teams) }
	if latest != nil {
		for _, row := range latest.DriverStandings {
			sim.drivers[addDriver(row.Driver)].points += row.Points
		}
		for _, row := range latest.TeamStandings {
			sim.teams[addTeam(row.Team)].points += row.Points
		}
	}
	for i := range s.Rounds {
		for _, r := range s.Rounds[i].Results {
			if r.Position > 0 && r.Position <= counted {
				sim.drivers[addDriver(r.Driver)].places[r.Position-1]++
				sim.teams[addTeam(r.Team)].places[r.Position-1]++
			}
		}
	}
	rates := retirementRates(v, s.Year)
	car := map[season.TeamID]int{}
	for i, d := range o.Drivers {
		t := o.Teams[i]
		if _, ok := car[t]; !ok {
			car[t] = len(car)
		}
		sim.driver, sim.team, sim.car = append(sim.driver, addDriver(d)), append(sim.team, addTeam(t)), append(sim.car, car[t])
		sim.retires = append(sim.retires, rates(t))
	}
	sim.cars = len(car)
	decide(sim.drivers, c.Drivers)
	decide(sim.teams, c.Teams)
	return sim, sim.spread(o.Cov, c.Spread)
}

func decide[ID season.DriverID | season.TeamID](all []*tally[ID], decided map[ID]Decided) {
	for _, t := range all {
		t.decided = decided[t.id]
	}
}

// indexOf returns the index of a driver or a team among all, and adds an unknown one at the end.
func indexOf[ID season.DriverID | season.TeamID](id ID, known map[ID]int, all *[]*tally[ID]) int {
	i, ok := known[id]
	if !ok {
		i = len(*all)
		known[id], *all = i, append(*all, &tally[ID]{id: id})
	}
	return i
}

// spread computes the root of the covariance. It adds a little to the diagonal, because the level
// common to all strengths is nearly unknown and the rest may be singular.
func (sim *simulation) spread(cov []float64, by float64) error {
	n := len(sim.strength)
	if by == 0 {
		return nil
	}
	s := make([]float64, n*n)
	for i, v := range cov {
		s[i] = by * by * v
	}
	for i := range n {
		s[i*n+i] += 1e-9
	}
	root, ok := matrix.Cholesky(s, n)
	if !ok {
		return fmt.Errorf("the covariance of %d strengths is not positive definite", n)
	}
	sim.root = root
	return nil
}

func (sim *simulation) run(c Config) {
	pcg := rand.NewPCG(c.Seed, uint64(len(sim.rounds)))
	rng := rand.New(pcg) //nolint:gosec // to be repeated, not to be secret
	n := len(sim.strength)
	now := make([]float64, n)
	carStep := make([]float64, sim.cars)
	noise := make([]float64, n)
	order := make([]int, 0, n)
	field := &field{make([]float64, n), make([]float64, n), make([]float64, n)}
	for range c.Runs {
		for _, t := range sim.drivers {
			t.reset()
		}
		for _, t := range sim.teams {
			t.reset()
		}
		copy(now, sim.strength)
		portable.Normals(pcg, 1, noise)
		for i := range sim.root.N {
			now[i] += matrix.Dot(sim.root.Row(i)[:i+1], noise[:i+1])
		}
		for k := range sim.rounds {
			r := &sim.rounds[k]
			field.set(now)
			if r.sprint != nil {
				order = field.draw(pcg, order, sim.retires, .5)
				sim.award(order, r.sprint, false)
			}
			order = field.draw(pcg, order, sim.retires, 1)
			sim.award(order, r.race, true)
			if r.fastest > 0 && len(order) > 0 {
				// One of the first ten sets it, at any place.
				i := order[rng.IntN(min(len(order), 10))]
				sim.drivers[sim.driver[i]].now += r.fastest
				sim.teams[sim.team[i]].now += r.fastest
			}
			portable.Normals(pcg, sim.teamStep, carStep)
			portable.Normals(pcg, sim.driverStep, noise)
			for i := range now {
				now[i] += carStep[sim.car[i]] + noise[i]
			}
		}
		champion(sim.drivers)
		champion(sim.teams)
	}
}

// award gives the points of a race in finishing order, and counts the places.
func (sim *simulation) award(order []int, points []float64, places bool) {
	for place, i := range order {
		d, t := sim.drivers[sim.driver[i]], sim.teams[sim.team[i]]
		if place < len(points) {
			d.now += points[place]
			t.now += points[place]
		}
		if places && place < counted {
			d.nowPlaces[place]++
			t.nowPlaces[place]++
		}
	}
}

// champion ends a run: the leader takes the title.
func champion[ID season.DriverID | season.TeamID](all []*tally[ID]) {
	var best *tally[ID]
	for _, t := range all {
		t.ends = append(t.ends, t.now)
		if !t.decided.Excluded && (best == nil || t.ahead(best)) {
			best = t
		}
	}
	if best != nil {
		best.titles++
	}
}

// contenders returns the drivers or teams that can still be champion by arithmetic: if they take all remaining
// points, with cars in the first places of every remaining race, no rival is ahead.
func contenders[ID season.DriverID | season.TeamID](all []*tally[ID], most float64, races, cars, runs int) []Chance[ID] {
	possible := func(t *tally[ID]) bool {
		if t.decided.Excluded {
			return false
		}
		t.reset()
		t.now += most
		for place := range cars {
			t.nowPlaces[place] += races
		}
		return !slices.ContainsFunc(all, func(o *tally[ID]) bool {
			if o == t || o.decided.Excluded {
				return false
			}
			o.reset()
			return o.ahead(t)
		})
	}
	var list []Chance[ID]
	for _, t := range all {
		if !possible(t) {
			continue
		}
		slices.Sort(t.ends)
		list = append(list, Chance[ID]{t.id, t.points, t.points + t.decided.Points + most, float64(t.titles) / float64(runs), t.ends[runs/10], t.ends[runs-1-runs/10]})
	}
	slices.SortStableFunc(list, func(a, b Chance[ID]) int {
		return cmp.Or(cmp.Compare(b.Title, a.Title), cmp.Compare(b.Points, a.Points))
	})
	return list
}
