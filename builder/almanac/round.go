package almanac

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gridcast/builder/ledger"
	"gridcast/builder/season"
)

// The time for which qualifying must be unchanged before a pick is made on it alone. In that time
// penalties are given and the grid may come.
const qualifyingStands = 2 * time.Hour

// The distances of a round's events from lights out.
const (
	RaceWindow   = 4 * time.Hour   // the race counts as live for so long; from then on its result is awaited
	LastFreeze   = 5 * time.Minute // a pick is made at the latest so long before lights out, with or without a grid
	earliestRace = 6 * time.Hour   // no race starts so early in the day
	weekendLead  = 72 * time.Hour  // the race weekend starts so long before
	weekendTail  = 24 * time.Hour  // and ends so long after
)

// ScoredCheckpoint is the live pick that counts in the accuracy: half of the scheduled
// distance.
const ScoredCheckpoint = 50

// State is the state of a round, by its name in the API.
type State string

// The states of a round.
const (
	Scheduled      State = "scheduled"
	Live           State = "live"
	AwaitingResult State = "awaiting_result"
	Finished       State = "finished"
	Postponed      State = "postponed"
	Cancelled      State = "cancelled"
)

// Round is one Grand Prix with all decisions about it.
type Round struct {
	Session     int64 // its key
	Year        int
	Facts       *season.Round
	Circuit     season.Circuit
	Start       time.Time // the valid lights out; assumed if Provisional
	Provisional bool      // no source names the hour
	State       State
	Record      ledger.RoundRecord     // the ledger's record of it
	Pick        *ledger.FrozenPick     // nil before it is frozen
	LivePick    *ledger.FrozenPick     // the one that is scored
	Result      *ledger.Classification // verified, nil before

	view   *season.View
	state  *ledger.Fold
	spoken func() []season.DriverID // of its season, see spokenOf
	codes  func() map[season.DriverID]string
}

func (r *Round) stateAt(now time.Time) State {
	switch status := r.Record.Override.Status; {
	case status == ledger.Cancelled:
		return Cancelled
	case status == ledger.Postponed:
		return Postponed
	case r.Result != nil:
		return Finished
	}
	if _, ends, dayOnly := r.day(); dayOnly {
		if now.Before(ends) {
			return Scheduled
		}
		return AwaitingResult
	}
	return ClockState(now, r.Start)
}

// day returns the beginning and the end of the race day at the circuit, if only the day of a coming round is known. Then
// nobody knows whether the race is on, so that the round is never live.
func (r *Round) day() (begins, ends time.Time, dayOnly bool) {
	zone := season.LocationOf(r.Facts.Circuit)
	if !r.Provisional || r.Facts.AssumedHour == 0 || zone == nil {
		return begins, ends, false
	}
	y, m, d := r.Start.In(zone).Date()
	return time.Date(y, m, d, 0, 0, 0, 0, zone), time.Date(y, m, d+1, 0, 0, 0, 0, zone), true
}

// ClockState is the state that the clock gives to a round that is to be held and has no result.
func ClockState(now, start time.Time) State {
	switch {
	case now.Before(start):
		return Scheduled
	case now.Before(start.Add(RaceWindow)):
		return Live
	}
	return AwaitingResult
}

// Off reports whether the round is postponed or cancelled: then no work is due for it.
func (r *Round) Off() bool { return r.State == Postponed || r.State == Cancelled }

// FreezeBy returns the latest instant of the freeze, with the facts known by then. While only the day is known, it is the
// beginning of that day at the circuit.
func (r *Round) FreezeBy() time.Time {
	if begins, _, dayOnly := r.day(); dayOnly {
		return begins
	}
	return r.Start.Add(-LastFreeze)
}

// StoodBy returns the instant of a pick on qualifying alone, if the grid has not come by then. Qualifying
// counts as unchanged from the later of its end and its arrival; the arrival is zero if it is unknown.
func (r *Round) StoodBy(arrived time.Time) time.Time {
	return season.Later(r.Facts.QualifyingKnownAt(), arrived).Add(qualifyingStands)
}

// PickDue reports whether the pick is to be frozen at the instant of the view: at once on a grid, on
// qualifying that has been unchanged for long enough since its arrival, and at last on the known facts; never at the start or
// after it.
func (r *Round) PickDue(arrived time.Time) bool {
	now := r.view.At
	begins, _, dayOnly := r.day()
	switch {
	case dayOnly && now.After(begins.Add(earliestRace)): // the race may be on
		return false
	case r.Pick != nil, r.Off(), r.Result != nil, r.Facts.Finished(), !now.Before(r.Start):
		return false
	case len(r.Facts.Grid) > 0:
		return true
	case len(r.Facts.Qualifying) > 0 && !now.Before(r.StoodBy(arrived)):
		return true
	}
	return !now.Before(r.FreezeBy())
}

// End returns the end of the race. It lasts as long as the source says, or the usual time, from the
// valid start.
func (r *Round) End() time.Time {
	return r.Start.Add(r.Facts.ResultKnownAt().Sub(r.Facts.StartsAt()))
}

// WindowEnd returns the instant from which a race without a verified result is no longer live, but awaits its result.
func (r *Round) WindowEnd() time.Time { return r.Start.Add(RaceWindow) }

// Weekend returns the time around the race in which news is expected.
func (r *Round) Weekend() (from, until time.Time) {
	return r.Start.Add(-weekendLead), r.Start.Add(weekendTail)
}

// Vouched reports whether the archive vouches for the result: the race had ended before the ledger
// was opened, and nobody has corrected it since.
func (r *Round) Vouched() bool { return r.Result != nil && r.Record.Result() == nil }

// Source returns the source's present classification; nil if it has none, or if by the valid
// start the race has not begun.
func (r *Round) Source() []ledger.Row {
	if !r.Facts.Finished() || !r.view.At.After(r.Start) {
		return nil
	}
	return Rows(r.Facts.Results)
}

// Valid returns the classification that counts now; nil if none is verified.
func (r *Round) Valid() []ledger.Row {
	if r.Result == nil {
		return nil
	}
	return r.Result.Rows
}

// Sprint returns the classification of the weekend's sprint that was verified with the race; nil if
// none is verified, or there was no sprint. If the archive vouches for the result, it is the
// source's sprint.
func (r *Round) Sprint() []ledger.Row {
	switch {
	case r.Result == nil:
		return nil
	case r.Result.Sprint != nil:
		return r.Result.Sprint
	}
	return r.SourceSprint()
}

// SourceSprint returns the source's present classification of the weekend's sprint; nil if it has none.
func (r *Round) SourceSprint() []ledger.Row {
	if len(r.Facts.SprintResults) == 0 {
		return nil
	}
	return Rows(r.Facts.SprintResults)
}

// Differs reports whether the source's present classification, of the race or of the sprint, differs from the one
// that counts.
func (r *Round) Differs() bool {
	if r.Result == nil || r.Vouched() {
		return false
	}
	source, sprint := r.Source(), r.SourceSprint()
	return source != nil && (changed(r.Valid(), source) || sprint != nil && changed(r.Sprint(), sprint))
}

// Championship returns all decisions of the ledger about the championships of the season: see ledger.Fold.AllChampionship.
func (r *Round) Championship() []ledger.ChampionshipDecision { return r.state.AllChampionship(r.Year) }

// PickedFor returns the driver's place on the podium in the frozen pick, 0 if there is
// none.
func (r *Round) PickedFor(driver season.DriverID) int {
	if r.Pick == nil {
		return 0
	}
	picked := Picked(r.Pick)
	return slices.Index(picked[:], driver) + 1
}

// NotStarting returns the drivers of the frozen pick who do not start: those who are not on the grid, before there is one
// those who have left the entries since, and once the result is verified those who did not start. Their chances stay frozen.
func (r *Round) NotStarting() (drivers []season.DriverID) {
	if r.Pick == nil {
		return nil
	}
	for _, c := range r.Pick.Chances {
		var off bool
		switch {
		case r.Result == nil && len(r.Facts.Grid) > 0:
			off = !slices.ContainsFunc(r.Facts.Grid, func(s season.GridSlot) bool { return s.Driver == c.Driver })
		case r.Result == nil: // a pick on form has drivers who may enter with the grid
			off = len(r.Facts.Entries) > 0 && r.Pick.Basis != ledger.OnForm && r.Facts.Entry(c.Driver) == nil
		default:
			off = !slices.ContainsFunc(r.Result.Rows, func(row ledger.Row) bool {
				return row.Driver == c.Driver && (&season.Result{Outcome: row.Status}).Started()
			})
		}
		if off {
			drivers = append(drivers, c.Driver)
		}
	}
	return drivers
}

// Code returns the driver's code in the round's season.
func (r *Round) Code(driver season.DriverID) string { return r.codes()[driver] }

// Lasting returns the identifier that a driver keeps for ever.
func (r *Round) Lasting(driver season.DriverID) string { return string(r.state.Lasting(driver)) }

// ForecastCodes returns the codes of the drivers in the noted forecasts. A driver who has not started in the season yet
// gets the code that the season would probably give, as in the present forecast.
func (r *Round) ForecastCodes() map[season.DriverID]string {
	codes, drivers := r.codes(), r.foreseen()
	if slices.ContainsFunc(drivers, func(id season.DriverID) bool { return codes[id] == "" }) {
		return r.view.Codes(r.Year, slices.Concat(r.spoken(), drivers)...)
	}
	return codes
}

func (r *Round) foreseen() (drivers []season.DriverID) {
	for _, f := range r.Record.Forecasts {
		for _, c := range f.Chances {
			drivers = append(drivers, c.Driver)
		}
	}
	return drivers
}

// BasisOf returns the public name of the facts that a forecast rests on after a step of the weekend.
func BasisOf(step season.SessionKind) string {
	switch step {
	case season.Sprint, season.SprintQualifying:
		return "sprint"
	case season.Practice1, season.Practice2, season.Practice3, season.Practice4:
		return "practice"
	}
	return string(step) // form, qualifying or grid
}

// Driver returns a driver of the archive.
func (r *Round) Driver(driver season.DriverID) season.Driver { return r.view.Driver(driver) }

// Team returns a team of the archive.
func (r *Round) Team(team season.TeamID) season.Team { return r.view.Team(team) }

// Season returns the rounds of the season, in the order of the calendar.
func (r *Round) Season() []*Round {
	return slices.DeleteFunc(Rounds(r.view, r.state, r.Year), func(o *Round) bool { return o.Year != r.Year })
}

// Field returns the drivers of the round, in no order: those entered, on the grid, in qualifying or in the source's result;
// while none of these is known, those of the last round before it.
func (r *Round) Field() (drivers []season.DriverID) {
	year, _ := r.view.Season(r.Year)
	for i := len(year.Rounds) - 1; i >= 0 && len(drivers) == 0; i-- {
		f := &year.Rounds[i]
		if f.GrandPrix != r.Facts.GrandPrix && !f.StartsAt().Before(r.Start) {
			continue
		}
		seen := map[season.DriverID]bool{}
		for _, e := range f.Entries {
			seen[e.Driver] = true
		}
		for _, g := range f.Grid {
			seen[g.Driver] = true
		}
		for _, q := range f.Qualifying {
			seen[q.Driver] = true
		}
		for _, row := range f.Results {
			seen[row.Driver] = true
		}
		drivers = slices.Collect(maps.Keys(seen))
	}
	return drivers
}

// TeamOf returns the team for which a driver is entered, or was entered last in the season; empty if it is unknown.
func (r *Round) TeamOf(driver season.DriverID) (team season.TeamID) {
	if e := r.Facts.Entry(driver); e != nil {
		return e.Team
	}
	year, _ := r.view.Season(r.Year)
	for i := range year.Rounds {
		if year.Rounds[i].GrandPrix == r.Facts.GrandPrix {
			break
		}
		if e := year.Rounds[i].Entry(driver); e != nil {
			team = e.Team
		}
	}
	return team
}

// Colour returns a team's colour in the round's season, empty if it is unknown.
func (r *Round) Colour(team season.TeamID) string {
	facts, _ := r.view.Season(r.Year)
	return facts.Colours[team]
}

// FindDriver returns the driver of the season with this code or id.
func (r *Round) FindDriver(text string) (season.DriverID, error) {
	codes := r.codes()
	if _, ok := codes[season.DriverID(text)]; ok {
		return season.DriverID(text), nil
	}
	for id, code := range codes {
		if strings.EqualFold(code, text) {
			return id, nil
		}
	}
	return "", fmt.Errorf("no driver of %d has the code or id %q", r.Year, text)
}
