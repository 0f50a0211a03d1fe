// Package stewards computes the classification after a decision of the stewards, reads the
// classification in their document, and reads orders of drivers. If places or points do not follow
// from the known facts, it asks for the document and guesses nothing.
package stewards

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
)

// Session is the race of a round, or its sprint.
type Session struct {
	Round  *almanac.Round
	Sprint bool
}

// Counts returns the valid classification. If none is verified, it returns the source's, which may be
// nil.
func (s Session) Counts() []ledger.Row {
	rows := s.Round.Valid()
	if s.Sprint {
		rows = s.Round.Sprint()
	}
	if rows == nil {
		return s.source()
	}
	return rows
}

// source returns the source's classification, nil if it has none.
func (s Session) source() []ledger.Row {
	if s.Sprint {
		return s.Round.SourceSprint()
	}
	return s.Round.Source()
}

// Results returns the source's results, which have times.
func (s Session) Results() []season.Result {
	if s.Sprint {
		return s.Round.Facts.SprintResults
	}
	return s.Round.Facts.Results
}

// Gap describes the distance of a row to the winner, such as " +5.217s" or " +1 lap". It is empty if it is not known.
func Gap(row ledger.Row) string {
	switch {
	case row.GapMS > 0:
		return fmt.Sprintf(" +%.3fs", float64(row.GapMS)/1000)
	case row.GapLaps == 1:
		return " +1 lap"
	case row.GapLaps > 1:
		return fmt.Sprintf(" +%d laps", row.GapLaps)
	}
	return ""
}

// String names the session in errors, such as "2024022" and "the sprint of 2024021".
func (s Session) String() string {
	if s.Sprint {
		return fmt.Sprintf("the sprint of %d", s.Round.Session)
	}
	return strconv.FormatInt(s.Round.Session, 10)
}

// Ruling is a decision of the stewards in its two common forms.
type Ruling struct {
	Disqualified []season.DriverID
	Penalties    map[season.DriverID]time.Duration // added to the time
}

// Empty reports whether nothing was decided.
func (u Ruling) Empty() bool { return len(u.Disqualified) == 0 && len(u.Penalties) == 0 }

// Apply returns the classification of a session after the ruling. Disqualified drivers go to the end
// without place and points, drivers with a penalty to the place of their new time, and the others
// move up. Gaps are measured from the new winner, as far as the times are known.
//
// Points go by place as in the classification before. If its award of points or the times are
// unknown, Apply returns an error.
func (u Ruling) Apply(s Session) ([]ledger.Row, error) {
	before := s.Round.WithDetails(s.Counts(), s.Results())
	order, rest, err := split(before)
	if err != nil {
		return nil, fmt.Errorf("rule on %s: %w", s, err)
	}
	points, err := s.awardOf(order)
	if err != nil {
		return nil, fmt.Errorf("rule on %s: %w", s, err)
	}
	if order, err = penalise(s, order, u.Penalties); err != nil {
		return nil, fmt.Errorf("rule on %s: %w", s, err)
	}
	for _, driver := range u.Disqualified {
		var out ledger.Row
		if out, order, rest, err = remove(driver, order, rest); err != nil {
			return nil, fmt.Errorf("rule on %s: disqualify: %w", s, err)
		}
		out.Position, out.Points, out.Status = 0, 0, season.Disqualified
		rest = append(rest, out)
	}
	points.give(order)
	after := placed(append(order, rest...))
	u.giveGaps(after[:len(order)], before)
	return after, nil
}

// giveGaps sets the time of the winner, and each other driver's gap to it. before has the times and gaps without
// the penalties. A driver without a known time gets no gap.
func (u Ruling) giveGaps(order, before []ledger.Row) {
	times, laps := make(map[season.DriverID]int64), make(map[season.DriverID]int)
	var winner int64
	for _, row := range before {
		laps[row.Driver] = row.GapLaps
		switch {
		case row.Position == 1:
			winner = row.TimeMS
			times[row.Driver] = winner + u.Penalties[row.Driver].Milliseconds()
		case row.GapMS > 0 && winner > 0:
			times[row.Driver] = winner + row.GapMS + u.Penalties[row.Driver].Milliseconds()
		}
	}
	for i := range order {
		row, first := &order[i], order[0].Driver
		switch lapped := laps[row.Driver] - laps[first]; {
		case i == 0:
			row.TimeMS = times[first]
		case lapped > 0:
			row.GapLaps = lapped
		case times[first] > 0 && times[row.Driver] > 0:
			row.GapMS = times[row.Driver] - times[first]
		}
	}
}

// placed clears the details that belong to the former places: times and gaps, and the status of a
// driver with a new place.
func placed(rows []ledger.Row) []ledger.Row {
	for i := range rows {
		row := &rows[i]
		row.TimeMS, row.GapMS, row.GapLaps = 0, 0, 0
		if row.Position > 0 {
			row.Status, row.Reason = "", ""
		}
	}
	return rows
}

// remove takes the row of a driver out of the rows with a place, or out of the rest.
func remove(driver season.DriverID, order, rest []ledger.Row) (row ledger.Row, newOrder, newRest []ledger.Row, err error) {
	theirs := func(r ledger.Row) bool { return r.Driver == driver }
	if i := slices.IndexFunc(order, theirs); i >= 0 {
		row = order[i] // before Delete overwrites it
		return row, slices.Delete(order, i, i+1), rest, nil
	}
	if i := slices.IndexFunc(rest, theirs); i >= 0 {
		row = rest[i]
		return row, order, slices.Delete(rest, i, i+1), nil
	}
	return ledger.Row{}, nil, nil, fmt.Errorf("%s is not in the classification", driver)
}

// penalise sorts the finishers on the lead lap by their times with the penalties. A lapped car has no
// time, so a car on the lead lap never falls behind it.
func penalise(s Session, order []ledger.Row, penalties map[season.DriverID]time.Duration) ([]ledger.Row, error) {
	if len(penalties) == 0 {
		return order, nil
	}
	times := map[season.DriverID]time.Duration{}
	for _, result := range s.Results() {
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
	for _, driver := range slices.Sorted(maps.Keys(penalties)) {
		if penalty := penalties[driver]; penalty <= 0 {
			return nil, fmt.Errorf("a time penalty of %s for %s: want a positive time", penalty, driver)
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
