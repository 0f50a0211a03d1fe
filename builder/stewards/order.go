package stewards

import (
	"fmt"
	"slices"

	"gridcast/builder/ledger"
	"gridcast/builder/season"
)

// Order returns the classification of a session with the drivers, by code or id, in this order. All
// other drivers of the session follow without a place.
//
// Points go by place, as in the valid classification or else the source's. Without either they are
// those of the season for a whole race or a sprint. A new point for the fastest lap does not follow
// from an order: that needs the document of the stewards.
func Order(s Session, drivers []string) ([]ledger.Row, error) {
	if len(drivers) == 0 {
		return nil, fmt.Errorf("order of %s: name at least the winner", s)
	}
	before := s.Counts()
	took, err := s.attended()
	if before == nil && err != nil {
		return nil, fmt.Errorf("order of %w", err)
	}
	points, err := s.pointsOf(before)
	if err != nil {
		return nil, fmt.Errorf("order of %s: %w", s, err)
	}
	rest := slices.Clone(before)
	if rest == nil {
		rest = slices.Clone(took)
	}
	var order []ledger.Row
	for i, text := range drivers {
		driver, err := s.Round.FindDriver(text)
		if err != nil {
			meant := nearDrivers(text, s.TookPart(), func(row ledger.Row) (code, name string) {
				return s.Round.Code(row.Driver), s.Round.Driver(row.Driver).Name
			})
			return nil, fmt.Errorf("order of %s: place %d: %w%s", s, i+1, err, meant)
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

func (s Session) pointsOf(before []ledger.Row) (award, error) {
	if before == nil {
		if awards := season.Awards(s.Round.Year, s.Round.Facts.GrandPrix, s.Sprint); len(awards) > 0 {
			return award{Award: awards[0]}, nil
		}
		return award{}, errAward
	}
	order, _, err := split(before)
	if err != nil {
		return award{}, err
	}
	return s.awardOf(order)
}
