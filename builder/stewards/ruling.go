// Package stewards works out what follows from a decision of the stewards after a race, and reads
// the classification that their document holds. It decides nothing by itself: where places and
// points do not follow from what is known, it asks for the document.
package stewards

import (
	"fmt"
	"slices"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
)

// Ruling is what the stewards decided after a race, in its two common forms.
type Ruling struct {
	Disqualified []season.DriverID
	Penalties    map[season.DriverID]time.Duration // added to the race time
}

// Empty says that nothing was decided.
func (u Ruling) Empty() bool { return len(u.Disqualified) == 0 && len(u.Penalties) == 0 }

// Apply returns the classification of a round that follows from the ruling: that which counts now,
// or the source's if none is verified, with the disqualified at its end without place and points,
// those with a penalty in the place that their time then gives, and everybody else moved up.
//
// Points go by the places as they do in the classification before. Where that cannot be told,
// or the times are not known, the error says so; nothing is guessed.
func (u Ruling) Apply(r *almanac.Round) ([]ledger.Row, error) {
	rows := r.Valid()
	if rows == nil {
		rows = r.Source()
	}
	order, rest, err := split(rows)
	if err != nil {
		return nil, fmt.Errorf("rule on %d: %w", r.Session, err)
	}
	points, err := awardOf(r.Year, order)
	if err != nil {
		return nil, fmt.Errorf("rule on %d: %w", r.Session, err)
	}
	if order, err = penalise(r, order, u.Penalties); err != nil {
		return nil, fmt.Errorf("rule on %d: %w", r.Session, err)
	}
	for _, driver := range u.Disqualified {
		var out ledger.Row
		if out, order, rest, err = remove(driver, order, rest); err != nil {
			return nil, fmt.Errorf("rule on %d: disqualify: %w", r.Session, err)
		}
		out.Position, out.Points = 0, 0
		rest = append(rest, out)
	}
	points.give(order)
	return append(order, rest...), nil
}

// remove takes a driver's row out of those with a place or of the rest.
func remove(driver season.DriverID, order, rest []ledger.Row) (row ledger.Row, newOrder, newRest []ledger.Row, err error) {
	theirs := func(r ledger.Row) bool { return r.Driver == driver }
	if i := slices.IndexFunc(order, theirs); i >= 0 {
		row = order[i] // before it is moved over
		return row, slices.Delete(order, i, i+1), rest, nil
	}
	if i := slices.IndexFunc(rest, theirs); i >= 0 {
		row = rest[i]
		return row, order, slices.Delete(rest, i, i+1), nil
	}
	return ledger.Row{}, nil, nil, fmt.Errorf("%s is not in the classification", driver)
}

// penalise sorts the finishers on the lead lap by their times with the penalties. A lapped car
// has no time, and a car on the lead lap never falls behind one.
func penalise(r *almanac.Round, order []ledger.Row, penalties map[season.DriverID]time.Duration) ([]ledger.Row, error) {
	if len(penalties) == 0 {
		return order, nil
	}
	times := map[season.DriverID]time.Duration{}
	for _, result := range r.Facts.Results {
		times[result.Driver] = result.Time
	}
	timed := 0
	for timed < len(order) && times[order[timed].Driver] > 0 {
		if timed > 0 && times[order[timed].Driver] < times[order[timed-1].Driver] {
			return nil, fmt.Errorf("the places of %s and %s do not follow from their times in the source; give the classification as a file",
				order[timed-1].Driver, order[timed].Driver)
		}
		timed++
	}
	for driver, penalty := range penalties {
		if penalty <= 0 {
			return nil, fmt.Errorf("a time penalty of %s for %s is none", penalty, driver)
		}
		if !slices.ContainsFunc(order[:timed], func(row ledger.Row) bool { return row.Driver == driver }) {
			return nil, fmt.Errorf("%s has no time in the source to which a penalty can be added; give the classification as a file", driver)
		}
	}
	slices.SortStableFunc(order[:timed], func(a, b ledger.Row) int {
		return int(times[a.Driver] + penalties[a.Driver] - times[b.Driver] - penalties[b.Driver])
	})
	return order, nil
}
