package sandbox

import (
	"slices"
	"time"

	"gridcast/builder/live"
	"gridcast/builder/season"
	"gridcast/deploy/operator"
)

// The seasons of the world.
const (
	firstYear = 2024
	lastYear  = 2025
)

// Race time of a weekend, from its recorded lights out: all sessions of a weekend lie in it, and a result's revision.
const (
	before   = -52 * time.Hour
	after    = 8 * time.Hour
	duration = after - before
)

// kind is the script of a weekend. All its instants are race time from the recorded lights out.
type kind struct {
	year      int
	grandPrix season.GrandPrixID
	edits     []edit
	steps     []step
	laps      func([]live.Observation) []live.Observation // changes the recorded laps; nil: none
}

// edit is a state of the facts that the record does not have. A source would bring it, and end it.
type edit struct {
	from, until time.Duration
	apply       func(*season.Round) // on a copy with the tables of the record
}

// step is a decision of an operator.
type step struct {
	at     time.Duration
	reason string // also tells whether the ledger of the cycle has the decision
	action func(key int64, lightsOut time.Time) operator.Action
}

// always is an instant before and one after all weekends.
const always = 1000 * 24 * time.Hour

// kinds are the weekends of a cycle, ascending in time, in the order of catalog.SandboxKinds. Qualifying ends about 22 hours
// before lights out, and a race takes about an hour and a half.
var kinds = [...]kind{
	{year: 2024, grandPrix: "mexico"},
	{year: 2024, grandPrix: "qatar"},
	{
		year: 2025, grandPrix: "australia",
		edits: []edit{{-always, always, func(r *season.Round) { lengthen(r, stopped) }}},
		laps:  func(all []live.Observation) []live.Observation { return interrupt(all, 40, stopped) },
	},
	{
		year: 2025, grandPrix: "netherlands",
		edits: []edit{
			{-10 * time.Hour, always, func(r *season.Round) { withdraw(r, "lando-norris") }},
		},
	},
	{
		year: 2025, grandPrix: "italy",
		edits: []edit{{-3 * time.Hour, always, func(r *season.Round) { r.Start = r.Start.Add(delay) }}},
		steps: []step{
			{-6 * time.Hour, "The circuit is flooded.", func(key int64, _ time.Time) operator.Action { return operator.PostponeRound{Key: key} }},
			{-2 * time.Hour, "The circuit is dry again.", func(key int64, lightsOut time.Time) operator.Action {
				return operator.ReinstateRound{Key: key, Start: lightsOut.Add(delay)}
			}},
		},
	},
	{
		year: 2025, grandPrix: "mexico",
		edits: []edit{{-always, always, func(r *season.Round) { r.Results, r.PitStops, r.FastestLaps = nil, nil, nil }}},
		steps: []step{{6 * time.Hour, "The race was abandoned.", func(key int64, _ time.Time) operator.Action { return operator.CancelRound{Key: key} }}},
		laps:  func(all []live.Observation) []live.Observation { return interrupt(all, 12, 0) },
	},
	{
		year: 2025, grandPrix: "las-vegas",
		edits: []edit{{-always, 4 * time.Hour, func(r *season.Round) { requalify(r, place{"lando-norris", 2}, place{"oscar-piastri", 4}) }}},
		steps: []step{{4*time.Hour + 10*time.Minute, "The skid blocks were too thin.", func(key int64, _ time.Time) operator.Action {
			return operator.CorrectResult{Key: key}
		}}},
	},
}

const (
	stopped = 25 * time.Minute // by the red flag
	delay   = 4 * time.Hour    // of the postponed race
)

// interrupt suspends a race at the end of a lap. It restarts after a while; with 0 it never does.
func interrupt(all []live.Observation, lap int, lasts time.Duration) []live.Observation {
	i := slices.IndexFunc(all, func(o live.Observation) bool { return o.Lap == lap })
	flag := live.Observation{Session: all[i].Session, At: all[i].At.Add(time.Second), Source: all[i].Source, Phase: live.Suspended}
	run := append(slices.Clone(all[:i+1]), flag)
	if lasts == 0 {
		return run
	}
	flag.Phase, flag.At = live.Resumed, flag.At.Add(lasts)
	run = append(run, flag)
	for _, o := range all[i+1:] {
		o.At = o.At.Add(lasts)
		run = append(run, o)
	}
	return run
}

// lengthen adds the time of a suspension to a race.
func lengthen(r *season.Round, by time.Duration) {
	r.Results = slices.Clone(r.Results)
	for i := range r.Results {
		if r.Results[i].Time > 0 {
			r.Results[i].Time += by
		}
	}
}

// withdraw removes a driver from a race. The driver retired in the record, so no other place changes.
func withdraw(r *season.Round, driver season.DriverID) {
	r.Entries = without(r.Entries, func(e season.Entry) bool { return e.Driver == driver })
	r.Grid = without(r.Grid, func(s season.GridSlot) bool { return s.Driver == driver })
	r.Results = without(r.Results, func(row season.Result) bool { return row.Driver == driver })
	r.PitStops = without(r.PitStops, func(s season.PitStop) bool { return s.Driver == driver })
	r.FastestLaps = without(r.FastestLaps, func(l season.FastestLap) bool { return l.Driver == driver })
}

func without[R any](rows []R, gone func(R) bool) []R {
	return slices.DeleteFunc(slices.Clone(rows), gone)
}

// place is a driver's place at the flag.
type place struct {
	driver season.DriverID
	place  int
}

// requalify gives the disqualified drivers of the record their places at the flag, a second behind the car ahead.
func requalify(r *season.Round, places ...place) {
	rows := slices.Clone(r.Results)
	for _, p := range places {
		i := slices.IndexFunc(rows, func(row season.Result) bool { return row.Driver == p.driver })
		row, ahead := rows[i], rows[p.place-2]
		row.Outcome, row.Reason, row.Laps, row.Time = "", "", ahead.Laps, ahead.Time+time.Second
		rows = slices.Insert(slices.Delete(rows, i, i+1), p.place-1, row)
	}
	scale := season.Scale(r.Date.Year(), false)
	for i := range rows {
		if rows[i].Outcome != "" {
			break
		}
		if rows[i].Position, rows[i].Points = i+1, 0; i < len(scale) {
			rows[i].Points = scale[i]
		}
	}
	r.Results = rows
}
