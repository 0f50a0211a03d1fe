package stewards

import (
	"fmt"
	"slices"

	"gridcast/builder/ledger"
)

// Order returns the classification of a session that has the drivers in this order, by code or id,
// and everybody else who took part after them without a place. Teams are those for which they
// took part, points those of their places, as the classification gave them that counts now, or
// the source's; where there is none yet, as the season gives them for a whole race or a sprint. Nobody is
// given a point for the fastest lap who had none before: a season that gives one needs the
// document of the stewards.
func Order(s Session, drivers []string) ([]ledger.Row, error) {
	if len(drivers) == 0 {
		return nil, fmt.Errorf("order of %s: name at least the winner", s)
	}
	before := s.Counts()
	points, err := s.pointsOf(before)
	if err != nil {
		return nil, fmt.Errorf("order of %s: %w", s, err)
	}
	rest := slices.Clone(before)
	if rest == nil {
		rest = slices.Clone(s.TookPart())
	}
	var order []ledger.Row
	for i, text := range drivers {
		driver, err := s.Round.FindDriver(text)
		if err != nil {
			return nil, fmt.Errorf("order of %s: place %d: %w%s", s, i+1, err, s.meant(text))
		}
		at := slices.IndexFunc(rest, func(row ledger.Row) bool { return row.Driver == driver })
		switch {
		case slices.ContainsFunc(order, func(row ledger.Row) bool { return row.Driver == driver }):
			return nil, fmt.Errorf("order of %s: place %d: %s has a place already", s, i+1, text)
		case at < 0:
			return nil, fmt.Errorf("order of %s: place %d: %s did not take part", s, i+1, text)
		}
		order = append(order, rest[at])
		rest = slices.Delete(rest, at, at+1)
	}
	points.give(order)
	for i := range rest {
		rest[i].Position, rest[i].Points = 0, 0
	}
	return placed(append(order, rest...)), nil
}

// meant suggests drivers for a text that is no code.
func (s Session) meant(text string) string {
	return nearDrivers(text, s.TookPart(), func(row ledger.Row) (code, name string) {
		return s.Round.Code(row.Driver), s.Round.Driver(row.Driver).Name
	})
}

// pointsOf tells how the classification of a session gives its points.
func (s Session) pointsOf(before []ledger.Row) (award, error) {
	if before == nil {
		if points := s.scale(); points != nil {
			return award{points: points}, nil
		}
		return award{}, errAward
	}
	order, _, err := split(before)
	if err != nil {
		return award{}, err
	}
	return s.awardOf(order)
}
