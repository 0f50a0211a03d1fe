package render

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/season"
	"gridcast/schemas/wire"
)

// hasSessions reports whether the outcome of any session is known.
func hasSessions(r *almanac.Round) bool {
	f := r.Facts
	practised := slices.ContainsFunc(f.Practice[:], func(laps []season.TimedLap) bool { return len(laps) > 0 })
	return practised || len(f.Qualifying)+len(f.SprintQualifying)+len(f.SprintGrid)+len(f.Grid) > 0 || r.Result != nil && len(f.FastestLaps)+len(f.PitStops) > 0
}

// sessionsRecord renders the sessions of a round. Fastest laps and pit stops belong to the race, so they wait for its
// verification.
func sessionsRecord(r *almanac.Round) wire.WeekendSessions {
	f := r.Facts
	rec := wire.WeekendSessions{SessionKey: r.Session, GPName: f.Name, Drivers: []wire.SessionDriver{}}
	named := map[season.DriverID]bool{}
	name := func(driver season.DriverID, team season.TeamID) string {
		id := r.Lasting(driver)
		if !named[driver] {
			named[driver] = true
			rec.Drivers = append(rec.Drivers, wire.SessionDriver{
				DriverID: id, Driver: r.Code(driver), Name: r.Driver(driver).Name, Team: r.Team(team).Name, TeamID: string(team),
			})
		}
		return id
	}
	rec.Qualifying, rec.Grid = qualifying(f.Qualifying, name), grid(f.Grid, f.Qualifying, name)
	rec.SprintQualifying, rec.SprintGrid = qualifying(f.SprintQualifying, name), grid(f.SprintGrid, f.SprintQualifying, name)
	if r.Year < 2023 { // in 2021 and 2022 qualifying set the grid of the sprint
		rec.SprintGrid = grid(f.SprintGrid, f.Qualifying, name)
	}
	kinds := [...]season.SessionKind{season.Practice1, season.Practice2, season.Practice3, season.Practice4}
	for i, laps := range f.Practice {
		for place, lap := range laps {
			row := wire.PracticeRow{Session: sessionName(kinds[i]), DriverID: name(lap.Driver, lap.Team), TimeMS: lap.Time.Milliseconds(), Laps: lap.Laps}
			if lap.Time > 0 {
				row.Position = place + 1
			}
			rec.Practice = append(rec.Practice, row)
		}
	}
	if r.Result != nil {
		for _, row := range r.Result.Rows {
			name(row.Driver, row.Team)
		}
		for i, lap := range f.FastestLaps {
			place := i + 1
			if lap.Time == f.FastestLaps[0].Time { // several drivers may share the fastest lap
				place = 1
			}
			rec.FastestLaps = append(rec.FastestLaps, wire.FastestLap{
				Position: place, DriverID: r.Lasting(lap.Driver), Lap: lap.Lap, TimeMS: lap.Time.Milliseconds(),
			})
		}
		for _, stop := range f.PitStops {
			rec.PitStops = append(rec.PitStops, wire.PitStop{
				DriverID: r.Lasting(stop.Driver), Stop: stop.Stop, Lap: stop.Lap, TimeMS: stop.Time.Milliseconds(),
			})
		}
	}
	return rec
}

func sessionName(kind season.SessionKind) string { return strings.ReplaceAll(string(kind), "-", "_") }

// naming notes a driver of a record and returns the identifier.
type naming func(season.DriverID, season.TeamID) string

func qualifying(rows []season.QualifyingRow, name naming) []wire.QualifyingRow {
	if len(rows) == 0 {
		return nil // which the record omits
	}
	out := make([]wire.QualifyingRow, 0, len(rows))
	for _, row := range rows {
		q := wire.QualifyingRow{
			Position: row.Position, DriverID: name(row.Driver, row.Team),
			Q1MS: row.Segments[0].Milliseconds(), Q2MS: row.Segments[1].Milliseconds(), Q3MS: row.Segments[2].Milliseconds(),
		}
		if row.Segments == ([3]time.Duration{}) {
			q.TimeMS = row.Time.Milliseconds()
		}
		empty := wire.QualifyingRow{DriverID: q.DriverID}
		if q == empty && slices.ContainsFunc(out, func(r wire.QualifyingRow) bool { return r.DriverID == q.DriverID }) {
			continue // the source lists a driver without a place twice, as in Austria 2023
		}
		out = append(out, q)
	}
	return out
}

// grid lists a starting grid beside the qualifying that set it.
func grid(slots []season.GridSlot, qualified []season.QualifyingRow, name naming) []wire.GridRow {
	if len(slots) == 0 {
		return nil // which the record omits
	}
	out := make([]wire.GridRow, 0, len(slots))
	for _, slot := range slots {
		row := wire.GridRow{
			Position: slot.Position, DriverID: name(slot.Driver, slot.Team), PitLane: slot.Position == 0, Penalty: slot.Penalty, ToTheBack: slot.Back,
		}
		if i := slices.IndexFunc(qualified, func(q season.QualifyingRow) bool { return q.Driver == slot.Driver }); i >= 0 {
			row.Qualified = qualified[i].Position
		}
		if row.Position > 0 && row.Qualified > 0 {
			lost := row.Position - row.Qualified
			row.PlacesLost = &lost
		}
		out = append(out, row)
	}
	return out
}

func headToHead(y *almanac.Year) []wire.HeadToHead {
	pairs := map[pair]*duel{}
	var order []pair
	each := func(r *almanac.Round, a, b mate, compare func(d *duel, a, b mate)) {
		if a.team != b.team || a.driver == b.driver {
			return
		}
		if b.driver < a.driver {
			a, b = b, a
		}
		key := pair{a.team, a.driver, b.driver}
		d := pairs[key]
		if d == nil {
			d = &duel{HeadToHead: wire.HeadToHead{
				Team: r.Team(a.team).Name, TeamID: string(a.team), TeamColour: r.Colour(a.team), First: teammate(r, a.driver), Second: teammate(r, b.driver),
			}}
			pairs[key], order = d, append(order, key)
		}
		compare(d, a, b)
	}
	for _, r := range y.Rounds {
		for k, first := range r.Facts.Qualifying {
			for _, second := range r.Facts.Qualifying[:k] {
				if first.Position > 0 && second.Position > 0 {
					each(r, mate{first.Driver, first.Team, first.Position, 0, qualifyingLaps(&first)}, mate{second.Driver, second.Team, second.Position, 0, qualifyingLaps(&second)}, (*duel).qualified)
				}
			}
		}
		raced := finishes(r)
		for k, first := range raced {
			for _, second := range raced[:k] {
				each(r, first, second, (*duel).raced)
			}
		}
	}
	records := make([]wire.HeadToHead, 0, len(order))
	for _, key := range order {
		records = append(records, pairs[key].record())
	}
	slices.SortStableFunc(records, func(a, b wire.HeadToHead) int { return cmp.Compare(a.TeamID, b.TeamID) })
	return records
}

// pair names two drivers of a team, the one with the lower identifier first.
type pair struct {
	team          season.TeamID
	first, second season.DriverID
}

// mate is a driver of a pair in a round: in qualifying with laps, or in race and sprint with points. Place is 0 if
// there is none.
type mate struct {
	driver season.DriverID
	team   season.TeamID
	place  int
	points float64
	laps   [4]time.Duration // of the parts of qualifying, and of a session without parts
}

func qualifyingLaps(q *season.QualifyingRow) [4]time.Duration {
	return [4]time.Duration{q.Time, q.Segments[0], q.Segments[1], q.Segments[2]}
}

// finishes lists the drivers of a verified race and its sprint, each with the best place in the race and all points.
func finishes(r *almanac.Round) []mate {
	var mates []mate
	add := func(driver season.DriverID, team season.TeamID, place int, points float64) {
		i := slices.IndexFunc(mates, func(m mate) bool { return m.driver == driver && m.team == team })
		if i < 0 {
			i, mates = len(mates), append(mates, mate{driver: driver, team: team})
		}
		if m := &mates[i]; place > 0 && (m.place == 0 || place < m.place) {
			m.place = place
		}
		mates[i].points += points
	}
	for _, row := range r.Valid() {
		add(row.Driver, row.Team, row.Position, row.Points)
	}
	for _, row := range r.Sprint() {
		add(row.Driver, row.Team, 0, row.Points)
	}
	return mates
}

// duel is a HeadToHead in the making.
type duel struct {
	wire.HeadToHead
	gaps []time.Duration // of second to first, a round each
}

func teammate(r *almanac.Round, driver season.DriverID) wire.Teammate {
	return wire.Teammate{Driver: r.Code(driver), DriverID: r.Lasting(driver), Name: r.Driver(driver).Name}
}

func (d *duel) qualified(a, b mate) {
	d.QualifyingRounds++
	if a.place < b.place {
		d.First.QualifyingAhead++
	} else {
		d.Second.QualifyingAhead++
	}
	for part := len(a.laps) - 1; part >= 0; part-- {
		if a.laps[part] > 0 && b.laps[part] > 0 {
			d.gaps = append(d.gaps, b.laps[part]-a.laps[part])
			return
		}
	}
}

func (d *duel) raced(a, b mate) {
	d.PointsRounds++
	d.First.Points += a.points
	d.Second.Points += b.points
	if a.place == 0 || b.place == 0 || a.place == b.place { // two drivers of one car share a place
		return
	}
	d.RaceRounds++
	if a.place < b.place {
		d.First.RaceAhead++
	} else {
		d.Second.RaceAhead++
	}
}

// record completes the comparison. The median of an even number of gaps is the mean of the middle two.
func (d *duel) record() wire.HeadToHead {
	if n := len(d.gaps); n > 0 {
		slices.Sort(d.gaps)
		median := ((d.gaps[(n-1)/2] + d.gaps[n/2]) / 2).Milliseconds()
		d.MedianGapMS = &median
	}
	return d.HeadToHead
}
