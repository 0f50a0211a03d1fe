// Package racecontrol is where operators decide: it shows the rounds and results that wait for
// them, and turns what they decide into events of the ledger.
//
// Open joins facts and ledger to a Desk as of one instant; a Round of it knows which actions the
// ledger would take now and makes their events; Decide appends them. What may be decided when is
// the ledger's rule and is not repeated here: an action is allowed if the ledger would take its
// event. Only what the ledger can not know is decided here: whether the archive vouches for a
// result, and whether a classification fits the round.
//
// The package has no clock: the instant is that of the view.
package racecontrol

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
)

// Desk is what an operator sees at an instant. It is immutable.
type Desk struct {
	view  *season.View
	state *ledger.State
	years []almanac.Year
}

// Round is one round with all that was decided about it.
type Round struct {
	almanac.Round
	Year int
	Said ledger.Session // what the ledger says of it

	desk  *Desk
	codes map[season.DriverID]string
}

// Open joins what was known at v.At with the ledger folded up to then. The error is that of
// almanac.Join.
func Open(v *season.View, s *ledger.State) (*Desk, error) {
	a, err := almanac.Join(v, s)
	if err != nil {
		return nil, fmt.Errorf("open race control: %w", err)
	}
	return &Desk{view: v, state: s, years: a.Years}, nil
}

// Round returns the round of a session key; the error wraps ledger.ErrUnknownSession if no round
// that is known has it.
func (d *Desk) Round(session int64) (*Round, error) {
	for i := range d.years {
		for j := range d.years[i].Rounds {
			if d.years[i].Rounds[j].Session == session {
				return d.round(&d.years[i], j), nil
			}
		}
	}
	return nil, fmt.Errorf("%w %d", ledger.ErrUnknownSession, session)
}

// Rounds returns the rounds of a year in calendar order; of the current season if year is 0.
func (d *Desk) Rounds(year int) []*Round {
	if year == 0 {
		year = d.view.CurrentSeason()
	}
	var rounds []*Round
	for i := range d.years {
		for j := range d.years[i].Rounds {
			if d.years[i].Year == year {
				rounds = append(rounds, d.round(&d.years[i], j))
			}
		}
	}
	return rounds
}

// Waiting returns the rounds that have started and have no verified result, oldest first.
func (d *Desk) Waiting() []*Round {
	return d.sorted(
		func(r *Round) bool { return r.State == almanac.Live || r.State == almanac.AwaitingResult },
		func(a, b *Round) int { return a.Start.Compare(b.Start) })
}

// Verified returns the rounds whose result is verified by the ledger, the last decided first.
func (d *Desk) Verified() []*Round {
	return d.sorted(
		func(r *Round) bool { return r.Said.Result() != nil },
		func(a, b *Round) int {
			return cmp.Or(b.Said.Result().At.Compare(a.Said.Result().At), cmp.Compare(b.Session, a.Session))
		})
}

func (d *Desk) sorted(want func(*Round) bool, compare func(a, b *Round) int) []*Round {
	var rounds []*Round
	for i := range d.years {
		for j := range d.years[i].Rounds {
			if r := d.round(&d.years[i], j); want(r) {
				rounds = append(rounds, r)
			}
		}
	}
	slices.SortStableFunc(rounds, compare)
	return rounds
}

func (d *Desk) round(y *almanac.Year, i int) *Round {
	said, _ := d.state.Session(y.Rounds[i].Session)
	return &Round{Round: y.Rounds[i], Year: y.Year, Said: said, desk: d, codes: y.Codes}
}

// Code returns the driver's code in the round's season.
func (r *Round) Code(driver season.DriverID) string { return r.codes[driver] }

// Driver returns a driver of the desk.
func (r *Round) Driver(driver season.DriverID) season.Driver { return r.desk.view.Drivers[driver] }

// Team returns a team of the desk.
func (r *Round) Team(team season.TeamID) season.Team { return r.desk.view.Teams[team] }

// FindDriver returns the driver whom the text names, by code or by id.
func (r *Round) FindDriver(text string) (season.DriverID, error) {
	if _, ok := r.codes[season.DriverID(text)]; ok {
		return season.DriverID(text), nil
	}
	for id, code := range r.codes {
		if strings.EqualFold(code, text) {
			return id, nil
		}
	}
	return "", fmt.Errorf("no driver of %d has the code or id %q", r.Year, text)
}

// Vouched says that the archive vouches for the result: the race had ended before the ledger
// was opened, and nobody has corrected it since.
func (r *Round) Vouched() bool { return r.Result != nil && r.Said.Result() == nil }

// Source returns the source's present classification; nil if it has none, or if by the start
// now valid the race has not begun, whatever the source says.
func (r *Round) Source() []ledger.Row {
	if !r.Facts.Finished() || !r.desk.view.At.After(r.Start) {
		return nil
	}
	return almanac.Rows(r.Facts.Results)
}

// Valid returns the classification that counts now; nil if none is verified.
func (r *Round) Valid() []ledger.Row {
	if r.Result == nil {
		return nil
	}
	return r.Result.Rows
}

// Decide appends what decide makes of a round, as of v.At. decide is called again, with the
// round as it is then, when somebody else appended in between. The error of a refused event
// names what is allowed instead.
func Decide(ctx context.Context, l *ledger.Ledger, v *season.View, actor string, session int64, decide func(*Round) ([]ledger.Event, error)) ([]ledger.Event, error) {
	var seen *Round
	events, err := l.Append(ctx, v.At, actor, func(s *ledger.State) ([]ledger.Event, error) {
		desk, err := Open(v, s)
		if err != nil {
			return nil, err
		}
		if seen, err = desk.Round(session); err != nil {
			return nil, err
		}
		return decide(seen)
	})
	var refused *ledger.RefusedError
	if errors.As(err, &refused) && !errors.Is(err, ledger.ErrOlder) {
		return nil, fmt.Errorf("%w; %s", err, seen.advice())
	}
	return events, err
}
