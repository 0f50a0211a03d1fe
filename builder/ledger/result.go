package ledger

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"gridcast/builder/season"
)

// Verify returns the event that vouches for a classification as the next revision of the
// result. The start is the one that was valid; the reason is required from the second revision
// on, and says why the first was not the last word.
func (s *Session) Verify(rows []Row, start time.Time, reason string) Event {
	return Event{
		Type: ResultVerified, Session: s.Key, Start: start.UTC(), Reason: reason,
		Result: &Classification{Revision: len(s.Revisions) + 1, Rows: rows},
	}
}

// checkVerify: revisions count up from 1; the first comes after the start of a round that was
// held, and every later one has a reason and changes something.
func (s *Session) checkVerify(e Event) error {
	if err := e.Result.check(); err != nil {
		return err
	}
	last := s.Result()
	if last == nil {
		if e.Result.Revision != 1 {
			return fmt.Errorf("the first revision is 1, not %d", e.Result.Revision)
		}
		if err := s.checkHeld(e); err != nil {
			return err
		}
		if !e.At.After(e.Start) {
			return fmt.Errorf("%w: lights out is at %s", ErrNotStarted, instant(e.Start))
		}
		return nil
	}
	if e.Reason == "" {
		return fmt.Errorf("%w at %s; a correction needs a reason", ErrAlreadyVerified, instant(last.At))
	}
	if e.Result.Revision != last.Revision+1 {
		return fmt.Errorf("%w: the next revision is %d, not %d", ErrAlreadyVerified, last.Revision+1, e.Result.Revision)
	}
	if slices.Equal(e.Result.Rows, last.Rows) {
		return fmt.Errorf("%w: the classification is that of revision %d", ErrUnchanged, last.Revision)
	}
	return nil
}

// check: somebody won; each position is held by one car, so that every further row with it
// says that the car was shared; points are finite and not negative; and a driver has one row.
// He has more if he shared a car, or if only one of his rows has a position: three races of
// 1952, 1976 and 1978 list a second car that he did not race.
func (c *Classification) check() error {
	holders := map[int]bool{}
	rows := map[season.DriverID][]Row{}
	for i, r := range c.Rows {
		switch {
		case r.Driver == "" || r.Team == "":
			return fmt.Errorf("row %d: driver and team are required", i+1)
		case r.Position < 0:
			return fmt.Errorf("row %d: %s has position %d", i+1, r.Driver, r.Position)
		case r.Position > 0 && holders[r.Position] && !r.Shared:
			return fmt.Errorf("row %d: %s has position %d, which is taken", i+1, r.Driver, r.Position)
		case r.Points < 0 || math.IsNaN(r.Points) || math.IsInf(r.Points, 0):
			return fmt.Errorf("row %d: %s has %v points", i+1, r.Driver, r.Points)
		}
		rows[r.Driver] = append(rows[r.Driver], r)
		if !mayAppear(rows[r.Driver]) {
			return fmt.Errorf("row %d: %s is there twice", i+1, r.Driver)
		}
		holders[r.Position] = true
	}
	if !holders[1] {
		return errors.New("nobody has position 1")
	}
	return nil
}

// mayAppear says whether one driver can have these rows in one race.
func mayAppear(rows []Row) bool {
	placed := 0
	for _, r := range rows {
		if r.Shared {
			return true
		}
		if r.Position > 0 {
			placed++
		}
	}
	return placed <= 1
}
