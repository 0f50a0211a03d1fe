package stewards

import (
	"errors"
	"fmt"

	"gridcast/builder/ledger"
	"gridcast/builder/season"
)

// award is the rule by which a classification gives its points.
type award struct {
	season.Award

	fastestLap season.DriverID // has season.BonusPoint more; may be empty
}

var errAward = errors.New("its points do not follow from the places, so that those of a changed order cannot be worked out; give the classification as a file")

// awardOf finds the award that gives a classification its points, with one point for the fastest lap at most.
func (s Session) awardOf(order []ledger.Row) (award, error) {
	for _, a := range season.Awards(s.Round.Year, s.Round.Facts.GrandPrix, s.Sprint) {
		if found := (award{Award: a}); found.fits(order) {
			return found, nil
		}
	}
	return award{}, errAward
}

// fits reports whether the award gives the order its points, and sets the driver with the fastest lap.
func (a *award) fits(order []ledger.Row) bool {
	for i, row := range order {
		fastestLap, ok := a.Gives(i+1, row.Points)
		if !ok || fastestLap && a.fastestLap != "" {
			return false
		}
		if fastestLap {
			a.fastestLap = row.Driver
		}
	}
	return true
}

// give numbers the order from 1 and gives it its points. A driver loses the point for the fastest lap by disqualification
// or behind the last place with one. No other driver inherits it.
func (a *award) give(order []ledger.Row) {
	for i := range order {
		order[i].Position, order[i].Points = i+1, a.Place(i+1)
		if order[i].Driver == a.fastestLap && i < season.BonusPlaces {
			order[i].Points += season.BonusPoint
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
