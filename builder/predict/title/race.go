package title

import (
	"math"
	"math/rand/v2"
	"slices"

	"gridcast/builder/predict/portable"
	"gridcast/builder/season"
)

// pointsOf returns the points of a round by the rules of its year: a race, a sprint if there is
// one, and the fastest lap. The last race of 2014 counted twice.
func pointsOf(year int, sprint, last bool) round {
	r := round{race: season.Scale(year, false)}
	if year == 2014 && last {
		r.race = slices.Clone(r.race)
		for i := range r.race {
			r.race[i] *= 2
		}
	}
	if season.FastestLapPoint(year) {
		r.fastest = 1
	}
	if sprint {
		r.sprint = season.Scale(year, true)
	}
	return r
}

// withRegulars returns the view in which the regular drivers are entered for the next round of a season, unless
// something of that round is known. Every seat of the latest race belongs to the driver with the most starts of the
// season in it, and on a tie to the first of them. A driver leaves his seat when he races for another team.
func withRegulars(v *season.View, s *season.Season, next *season.Round) *season.View {
	type seat struct {
		driver season.DriverID
		team   season.TeamID
	}
	var lineup []season.Entry
	var seats []seat // in the order in which they were first taken
	starts := map[seat]int{}
	for i := range s.Rounds {
		if !s.Rounds[i].Finished() {
			continue
		}
		lineup = nil
		for _, r := range s.Rounds[i].Results {
			lineup = append(lineup, season.Entry{Driver: r.Driver, Team: r.Team})
			taken := seat{r.Driver, r.Team}
			if starts[taken]++; starts[taken] == 1 {
				seats = append(seats, taken)
			}
		}
	}
	if len(lineup) == 0 || len(next.Entries)+len(next.Qualifying)+len(next.Grid) > 0 {
		return v
	}
	slices.SortStableFunc(seats, func(a, b seat) int { return starts[b] - starts[a] })
	rank := func(e season.Entry) int { return slices.Index(seats, seat{e.Driver, e.Team}) }
	for i := 0; i < len(seats); i++ {
		last := -1 // the car of the team with the driver of the lowest rank
		for j, e := range lineup {
			if e.Team == seats[i].team && (last < 0 || rank(e) > rank(lineup[last])) {
				last = j
			}
		}
		present := slices.ContainsFunc(lineup, func(e season.Entry) bool { return e.Driver == seats[i].driver })
		if !present && last >= 0 && rank(lineup[last]) > i {
			lineup[last].Driver = seats[i].driver
			i = -1 // the substitute may have a seat of his own
		}
	}
	entered := *v
	entered.Seasons = slices.Clone(v.Seasons)
	year, _ := entered.Season(s.Year)
	year.Rounds = slices.Clone(year.Rounds)
	round, _ := year.Round(next.GrandPrix)
	round.Entries = lineup
	return &entered
}

// field draws finishing orders.
type field struct {
	win, rest []float64 // proportional to the chances of the first place, and of each later place: win to the power of 3/4
	arrival   []float64
}

func (f *field) set(strength []float64) {
	top := slices.Max(strength)
	for i, s := range strength {
		f.win[i] = portable.Exp(s - top)
		root := math.Sqrt(f.win[i])
		f.rest[i] = root * math.Sqrt(root)
	}
}

// draw returns the cars that do not retire, reusing order: the places that are counted in finishing order, then the
// others in any order, because no year gives points for a later place. hazard is the share of a race's length.
func (f *field) draw(rng *rand.PCG, order []int, retires []float64, hazard float64) []int {
	order = order[:0]
	total := 0.0
	for i := range f.win {
		if portable.Uniform(rng) >= hazard*retires[i] {
			order = append(order, i)
			total += f.win[i]
			f.arrival[i] = portable.Uniform(rng)
		}
	}
	if len(order) == 0 {
		return order
	}
	at := portable.Uniform(rng) * total
	winner := order[len(order)-1]
	for _, i := range order {
		if at -= f.win[i]; at < 0 {
			winner = i
			break
		}
	}
	f.arrival[winner] = -1
	for n, car := range order { // insertion is the fastest for twenty cars
		if u := f.arrival[car]; car != winner {
			// A logarithm costs more than the sum of its first terms, which shows that many cars arrive after the tenth.
			if n >= counted && u*(1+float64(u*(.5+u/3))) > 1.000001*f.arrival[order[counted-1]]*f.rest[car] {
				continue
			}
			// The smallest of exponential times with the given rates belongs to each starter with
			// the chance rate / sum of rates. The same holds for the second among the others.
			f.arrival[car] = portable.Exponential(u) / f.rest[car]
		}
		at := n
		if n >= counted {
			if f.arrival[order[counted-1]] <= f.arrival[car] {
				continue
			}
			order[n], at = order[counted-1], counted-1
		}
		for ; at > 0 && f.arrival[order[at-1]] > f.arrival[car]; at-- {
			order[at] = order[at-1]
		}
		order[at] = car
	}
	return order
}

// The rate at which cars retire is that of the team's starts in two seasons, with as many starts
// at the rate of all as prior. The prior was chosen among 5, 10, 15 and 40 on 1996 to 2009. On 2010 to 2025 the log-loss
// of the drivers' champion after a quarter falls by .018 [.008, .030] against 40, at all three stages by .010 [.000, .020].
const (
	retirementSeasons = 2
	retirementPrior   = 10
)

// retirementRates returns the rate for a team, of the seasons up to a year.
func retirementRates(v *season.View, year int) func(season.TeamID) float64 {
	var out, starts float64
	outOf, startsOf := map[season.TeamID]float64{}, map[season.TeamID]float64{}
	for i := range v.Seasons {
		s := &v.Seasons[i]
		if s.Year > year || s.Year <= year-retirementSeasons {
			continue
		}
		for j := range s.Rounds {
			for k := range s.Rounds[j].Results {
				r := &s.Rounds[j].Results[k]
				if !r.Started() {
					continue
				}
				starts++
				startsOf[r.Team]++
				if r.Position == 0 {
					out++
					outOf[r.Team]++
				}
			}
		}
	}
	all := out / max(starts, 1)
	return func(t season.TeamID) float64 {
		return (outOf[t] + float64(retirementPrior*all)) / (startsOf[t] + retirementPrior)
	}
}
