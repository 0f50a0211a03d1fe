// Package almanac joins the facts of the archive with the decisions of the ledger: it holds
// the seasons exactly as they may be published at one instant. Every rule about what is
// shown and when (states, verified results, standings, the grid) is decided here, in terms of
// the domain; how it looks on the wire is not.
package almanac

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"gridcast/builder/ledger"
	"gridcast/builder/season"
)

// RaceWindow is how long after its start a race counts as live; from then on its result is
// awaited.
const RaceWindow = 4 * time.Hour

// Almanac is what may be published at an instant. It is immutable.
type Almanac struct {
	At      time.Time
	Current int    // the default year
	Years   []Year // ascending
	Grid    Grid
}

// Year is one season.
type Year struct {
	Year         int
	Rounds       []Round // in calendar order
	Drivers      []DriverStanding
	Constructors []ConstructorStanding
	Codes        map[season.DriverID]string
}

// State is where a round stands.
type State int

// The states of a round.
const (
	Scheduled State = iota
	Live
	AwaitingResult
	Finished
	Postponed
	Cancelled
)

// Round is one Grand Prix with what was decided about it.
type Round struct {
	Session     int64
	Facts       *season.Round
	Circuit     season.Circuit
	Start       time.Time // lights out as valid now; assumed if Provisional
	Provisional bool      // no source names the hour
	State       State
	Pick        *ledger.FrozenPick     // nil before it is frozen
	LivePick    *ledger.FrozenPick     // the one that is scored
	Result      *ledger.Classification // verified, nil before
}

// Join makes the almanac of v.At from what was known then and from the ledger folded up to
// then. Every round of v needs a session key in s.
func Join(v *season.View, s *ledger.State) (*Almanac, error) {
	a := &Almanac{At: v.At, Current: v.CurrentSeason()}
	for i := range v.Seasons {
		y, err := joinYear(v, s, &v.Seasons[i])
		if err != nil {
			return nil, fmt.Errorf("season %d: %w", v.Seasons[i].Year, err)
		}
		a.Years = append(a.Years, y)
	}
	a.Grid = latestGrid(v, a.Years)
	return a, nil
}

// Year returns the season of a year that the almanac holds.
func (a *Almanac) Year(year int) (*Year, bool) {
	i, ok := slices.BinarySearchFunc(a.Years, year, func(y Year, year int) int { return cmp.Compare(y.Year, year) })
	if !ok {
		return nil, false
	}
	return &a.Years[i], true
}

// Coming returns the scheduled rounds that start after the almanac's instant, over season
// boundaries, in order of their start.
func (a *Almanac) Coming() []ComingRound {
	var coming []ComingRound
	for i := range a.Years {
		y := &a.Years[i]
		for j := range y.Rounds {
			if r := &y.Rounds[j]; r.State == Scheduled {
				coming = append(coming, ComingRound{Year: y, Round: r})
			}
		}
	}
	slices.SortStableFunc(coming, func(x, y ComingRound) int { return x.Start.Compare(y.Start) })
	return coming
}

// ComingRound is a round that has not started, with its season.
type ComingRound struct {
	Year *Year
	*Round
}

// DueAt returns the next instant at which a status moves by itself, or the zero time if none
// does: until then a build at the same facts and ledger gives the same almanac.
func (a *Almanac) DueAt() time.Time {
	var due time.Time
	for _, y := range a.Years {
		for _, r := range y.Rounds {
			switch r.State {
			case Scheduled:
				due = earlier(due, r.Start)
			case Live:
				due = earlier(due, r.Start.Add(RaceWindow))
			}
		}
	}
	return due
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

func joinYear(v *season.View, s *ledger.State, facts *season.Season) (Year, error) {
	y := Year{Year: facts.Year, Codes: v.Codes(facts.Year), Rounds: make([]Round, len(facts.Rounds))}
	for i := range facts.Rounds {
		r, err := joinRound(v, s, facts.Year, &facts.Rounds[i])
		if err != nil {
			return Year{}, err
		}
		y.Rounds[i] = r
	}
	verified := verifiedPrefix(y.Rounds)
	y.Drivers = driverStandings(v, facts, y.Rounds, verified)
	y.Constructors = constructorStandings(v, facts, y.Rounds, verified)
	return y, nil
}

func joinRound(v *season.View, s *ledger.State, year int, facts *season.Round) (Round, error) {
	key, ok := s.Key(year, facts.GrandPrix)
	if !ok {
		return Round{}, fmt.Errorf("round %d, %s: no session key in the ledger", facts.Number, facts.GrandPrix)
	}
	said, _ := s.Session(key)
	r := Round{
		Session:     key,
		Facts:       facts,
		Circuit:     v.Circuits[facts.Circuit],
		Start:       said.Start(facts.StartsAt()),
		Provisional: facts.Provisional() && said.Override.Start.IsZero(),
		Pick:        said.Pick,
		LivePick:    said.LivePick(ScoredCheckpoint),
	}
	if verified := said.Result(); verified != nil {
		r.Result = &verified.Classification
	} else if facts.Finished() && facts.ResultKnownAt().Before(s.OpenedAt()) {
		r.Result = &ledger.Classification{Rows: Rows(facts.Results)} // the archive vouches
	}
	r.State = stateOf(&r, said.Override.Status, v.At)
	return r, nil
}

// ScoredCheckpoint is the live pick that counts in the accuracy: half of the scheduled
// distance.
const ScoredCheckpoint = 50

func stateOf(r *Round, decided ledger.Status, now time.Time) State {
	switch {
	case decided == ledger.Cancelled:
		return Cancelled
	case decided == ledger.Postponed:
		return Postponed
	case r.Result != nil:
		return Finished
	case now.Before(r.Start):
		return Scheduled
	case now.Before(r.Start.Add(RaceWindow)):
		return Live
	default:
		return AwaitingResult
	}
}

// Rows returns the archive's own result in the form a verified one has.
func Rows(results []season.Result) []ledger.Row {
	rows := make([]ledger.Row, len(results))
	for i, r := range results {
		rows[i] = ledger.Row{Driver: r.Driver, Team: r.Team, Engine: r.Engine, Position: r.Position, Points: r.Points, Shared: r.Shared}
	}
	return rows
}

// Podium returns the drivers on the first three places; where a place was shared the first in
// the source's order, and nobody where nobody holds it.
func Podium(c *ledger.Classification) [3]season.DriverID {
	var podium [3]season.DriverID
	for _, row := range c.Rows {
		if row.Position >= 1 && row.Position <= 3 && podium[row.Position-1] == "" {
			podium[row.Position-1] = row.Driver
		}
	}
	return podium
}
