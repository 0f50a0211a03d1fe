package predict

import (
	"cmp"
	"fmt"
	"slices"

	"gridcast/builder/season"
)

// The window and the smoothing of the frequency baselines.
const (
	frequencyYears = 10 // seasons before the predicted one that count besides that season
	priorRaces     = 8  // weight of the prior table, in races
)

// Frequency ranks the starters by a fact known before the race. A starter's chance is the frequency of
// wins from his rank in the last ten years.
//
// Eight imaginary races smooth the frequencies: in them rank k wins in proportion to 1/k². They also
// give a forecast for the first race of an archive.
type Frequency struct {
	name string
	rank func(runners []runner, races []race) []runner
	// firstOnly counts only the first rank and shares the rest equally.
	firstOnly bool
	// ranked picks the first three ranks, whatever their chances.
	ranked bool
	// podiums counts podiums by rank for the podium chances, which else follow from those to win.
	podiums bool
}

var _ Model = (*Frequency)(nil)

// GridFrequency ranks by the starting grid: the baseline for every better model. Until the grid is
// known it ranks by qualifying, and before qualifying by the championship.
func GridFrequency() *Frequency {
	return &Frequency{name: "grid-frequency-2", rank: byGrid}
}

// SlotPodiums is GridFrequency with the frequency of podiums from each slot.
func SlotPodiums() *Frequency {
	return &Frequency{name: "slot-podiums-2", rank: byGrid, podiums: true}
}

// Pole picks the driver on pole and gives all others equal chances.
func Pole() *Frequency {
	return &Frequency{name: "pole-1", rank: byGrid, firstOnly: true, ranked: true}
}

// Leader ranks by the championship before the race. At the first race of a season the final standings
// of the season before count.
func Leader() *Frequency {
	return &Frequency{name: "leader-1", rank: byChampionship, ranked: true}
}

// PreviousWinner ranks by the finishing order of the race before.
func PreviousWinner() *Frequency {
	return &Frequency{name: "previous-winner-1", rank: byLastRace, ranked: true}
}

func byGrid(runners []runner, _ []race) []runner { return runners }

// Name implements Model.
func (m *Frequency) Name() string { return m.name }

// Predict implements Model.
func (m *Frequency) Predict(v *season.View, year int, round season.GrandPrixID) (Forecast, error) {
	races, err := upTo(v, year, round)
	if err != nil {
		return Forecast{}, err
	}
	runners, order := field(races)
	if len(runners) == 0 {
		return Forecast{}, fmt.Errorf("predict %d %s: %w", year, round, ErrNobody)
	}
	ranked := m.rank(runners, races)
	wins, podiums, basis := m.counts(races, len(ranked), order)
	if m.firstOnly {
		for k, others := 1, sum(wins[1:]); k < len(wins); k++ {
			wins[k] = others / float64(len(wins)-1)
		}
	}
	drivers := make([]season.DriverID, len(ranked))
	for i, r := range ranked {
		drivers[i] = r.driver
	}
	win := millionths(normalised(wins), one, nil)
	candidates := withPodium(drivers, win, win)
	if m.podiums {
		places := min(3, len(ranked))
		podiums = normalised(podiums)
		for i := range podiums {
			podiums[i] *= float64(places)
		}
		for i, p := range millionths(podiums, places*one, win) {
			candidates[i].Podium = p
		}
	}
	f := newForecast(candidates, basis)
	if m.ranked {
		copy(f.Podium[:], drivers)
	}
	return f, nil
}

// counts returns the smoothed numbers of wins and of podiums of each of n ranks in the races before the last. It
// ranks them by the kind of order that is known for the last race. Of podiums one race is imaginary, in which the
// first three ranks are the podium.
func (m *Frequency) counts(races []race, n int, order Order) (wins, podiums []float64, basis Basis) {
	wins, podiums = make([]float64, n), make([]float64, n)
	for k := range wins {
		if k < 3 {
			podiums[k] = 1
		}
		wins[k] = 1 / float64((k+1)*(k+1))
	}
	wins = normalised(wins)
	for k := range wins {
		wins[k] *= priorRaces
	}
	basis = Basis{Order: order}
	rank := m.rank
	if order == FromForm {
		rank = byChampionship
	}
	year := races[len(races)-1].year
	for i, r := range races[:len(races)-1] {
		if r.year < year-frequencyYears {
			continue
		}
		podium := r.round.Podium()
		if podium[0] == "" {
			continue
		}
		basis.Races, basis.From, basis.To = basis.Races+1, cmp.Or(basis.From, r.year), r.year
		runners, _ := field(races[:i+1])
		for k, runner := range rank(runners, races[:i+1]) {
			if runner.driver == podium[0] && k < n {
				wins[k]++
			}
			if k < n && slices.Contains(podium[:], runner.driver) {
				podiums[k]++
			}
		}
	}
	return wins, podiums, basis
}

func normalised(x []float64) []float64 {
	total := sum(x)
	p := make([]float64, len(x))
	for i, w := range x {
		p[i] = w / total
	}
	return p
}
