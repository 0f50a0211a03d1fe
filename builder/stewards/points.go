package stewards

import (
	"errors"
	"fmt"

	"gridcast/builder/ledger"
	"gridcast/builder/season"
)

// In 2014 the last race counted double; a race that is cut short counts half.
var factors = []float64{1, 2, 0.5}

// award is the rule by which a classification gives its points.
type award struct {
	points []float64       // for the first places
	bonus  season.DriverID // has bonusPoints more, for the fastest lap; may be empty
}

const (
	bonusPoints = 1
	bonusPlaces = 10 // a driver outside these places loses it
)

var errAward = errors.New("its points do not follow from the places, so that those of a changed order cannot be worked out; give the classification as a file")

// awardOf finds the award that gives a classification its points. Every place must fit the scale of
// the season, doubled or halved for the whole race, with one bonus at most.
func (s Session) awardOf(order []ledger.Row) (award, error) {
	scale := season.Scale(s.Round.Year, s.Sprint)
	for _, factor := range factors {
		a := award{points: make([]float64, len(scale))}
		for i, p := range scale {
			a.points[i] = p * factor
		}
		if scale != nil && a.fits(order, factor == 1 && !s.Sprint && season.FastestLapPoint(s.Round.Year)) {
			return a, nil
		}
	}
	return award{}, errAward
}

// fits reports whether the award gives the order its points, and sets the driver with the bonus.
func (a *award) fits(order []ledger.Row, bonus bool) bool {
	a.bonus = ""
	for i, row := range order {
		switch row.Points {
		case a.place(i):
		case a.place(i) + bonusPoints:
			if !bonus || a.bonus != "" || i >= bonusPlaces {
				return false
			}
			a.bonus = row.Driver
		default:
			return false
		}
	}
	return true
}

func (a *award) place(i int) float64 {
	if i < len(a.points) {
		return a.points[i]
	}
	return 0
}

// give numbers the order from 1 and gives it its points. A driver loses the bonus by disqualification
// or behind the last place with a bonus. No other driver inherits it.
func (a *award) give(order []ledger.Row) {
	for i := range order {
		order[i].Position, order[i].Points = i+1, a.place(i)
		if order[i].Driver == a.bonus && i < bonusPlaces {
			order[i].Points += bonusPoints
		}
	}
}

// split returns the rows with a place and the others. Places must be in order without a gap and not
// shared; the others must have no points.
func split(rows []ledger.Row) (order, rest []ledger.Row, err error) {
	for _, row := range rows {
		switch {
		case row.Shared:
			return nil, nil, fmt.Errorf("%s shared a car; give the classification as a file", row.Driver)
		case row.Position == 0 && row.Points != 0:
			return nil, nil, errAward
		case row.Position == 0:
			rest = append(rest, row)
		case row.Position != len(order)+1:
			return nil, nil, fmt.Errorf("position %d does not follow %d; give the classification as a file", row.Position, len(order))
		default:
			order = append(order, row)
		}
	}
	return order, rest, nil
}
