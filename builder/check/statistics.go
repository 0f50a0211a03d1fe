package check

import (
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// statistics are the documents of a season that count the rows of its other documents.
type statistics struct {
	sessions   []wire.WeekendSessions
	drivers    []wire.DriverProgress
	teams      []wire.ConstructorProgress
	headToHead []wire.HeadToHead
	careers    []wire.Career // of drivers
}

// statistics decodes the documents that count, and the documents of the sessions at these paths.
func (r *reader) statistics(year int, paths []string) statistics {
	of := func(endpoint catalog.Name, kind string) catalog.Variant {
		return catalog.Variant{Endpoint: endpoint, Type: kind, Year: year}
	}
	s := statistics{
		drivers:    decode[[]wire.DriverProgress](r, of(catalog.StandingsProgress, catalog.DriversType)),
		teams:      decode[[]wire.ConstructorProgress](r, of(catalog.StandingsProgress, catalog.ConstructorsType)),
		headToHead: decode[[]wire.HeadToHead](r, of(catalog.HeadToHead, "")),
		careers:    decode[[]wire.Career](r, of(catalog.Careers, catalog.DriversType)),
	}
	for _, path := range paths {
		if v, _ := catalog.ParsePath(path); v.Endpoint == catalog.Sessions {
			s.sessions = append(s.sessions, decode[[]wire.WeekendSessions](r, v)...)
		}
	}
	return s
}

// checkProgress compares the last round of each progress with the standings.
func (c *content) checkProgress(faults Faults) {
	drivers := map[string]wire.RoundProgress{}
	for _, p := range c.statistics.drivers {
		drivers[p.Driver] = p.Rounds[len(p.Rounds)-1]
	}
	compare := func(kind, name string, p wire.RoundProgress, position int, points float64, wins int) {
		if p.Position != position || p.Points != points || p.Wins != wins {
			faults.of(catalog.Variant{Endpoint: catalog.StandingsProgress, Type: kind, Year: c.year})(
				"%s ends in position %d with %v points and %d wins, the standings say %d, %v and %d", name, p.Position, p.Points, p.Wins, position, points, wins)
		}
	}
	for _, s := range c.drivers {
		compare(catalog.DriversType, s.Driver, drivers[s.Driver], s.Position, s.Points, s.Wins)
	}
	teams, entries := map[[2]string]wire.RoundProgress{}, map[[2]string]int{}
	for _, p := range c.statistics.teams {
		if key := [2]string{p.Team, p.Engine}; p.Entry >= entries[key] { // the last entry goes on
			teams[key], entries[key] = p.Rounds[len(p.Rounds)-1], p.Entry
		}
	}
	listed := map[[2]string]bool{}
	for _, s := range c.teams { // of a constructor's two rows the first counts
		key := [2]string{s.Team, s.Engine}
		if !listed[key] {
			compare(catalog.ConstructorsType, s.Team, teams[key], s.Position, s.Points, s.Wins)
		}
		listed[key] = true
	}
}

// checkHeadToHead counts the qualifyings of each pair from the sessions.
func (c *content) checkHeadToHead(complain complain) {
	for _, h := range c.statistics.headToHead {
		var first, second int
		for i := range c.sessions {
			var places [2]int
			mates := 0
			for _, d := range c.sessions[i].Drivers {
				if d.Team == h.Team && (d.DriverID == h.First.DriverID || d.DriverID == h.Second.DriverID) {
					mates++
				}
			}
			for _, q := range c.sessions[i].Qualifying {
				switch {
				case mates < 2:
				case q.DriverID == h.First.DriverID:
					places[0] = q.Position
				case q.DriverID == h.Second.DriverID:
					places[1] = q.Position
				}
			}
			switch {
			case places[0] == 0 || places[1] == 0:
			case places[0] < places[1]:
				first++
			default:
				second++
			}
		}
		if first != h.First.QualifyingAhead || second != h.Second.QualifyingAhead || first+second != h.QualifyingRounds {
			complain("%s and %s qualified %d to %d in %d rounds, the sessions say %d to %d",
				h.First.Driver, h.Second.Driver, h.First.QualifyingAhead, h.Second.QualifyingAhead, h.QualifyingRounds, first, second)
		}
		if h.First.RaceAhead+h.Second.RaceAhead != h.RaceRounds || h.RaceRounds > h.PointsRounds {
			complain("%s and %s raced %d to %d in %d of %d rounds", h.First.Driver, h.Second.Driver, h.First.RaceAhead, h.Second.RaceAhead, h.RaceRounds, h.PointsRounds)
		}
	}
}

// checkCareers compares wins and points of each driver with the results.
func (c *content) checkCareers(complain complain) {
	type sum struct {
		wins   int
		points float64
	}
	of := map[string]sum{}
	for _, r := range c.results {
		won := map[string]bool{}
		for _, row := range append(r.Race[:len(r.Race):len(r.Race)], r.Sprint...) {
			s := of[row.Name]
			s.points += row.Points
			of[row.Name] = s
		}
		for _, row := range r.Race {
			if s := of[row.Name]; row.Position == 1 && !won[row.Name] {
				won[row.Name] = true
				s.wins++
				of[row.Name] = s
			}
		}
	}
	for _, career := range c.careers {
		if s := of[career.Name]; s.wins != career.Wins || !near(s.points, career.Points) {
			complain("%s has %d wins and %v points, the results %d and %v", career.Name, career.Wins, career.Points, s.wins, s.points)
		}
		delete(of, career.Name)
	}
	for name := range of {
		complain("%s is missing", name)
	}
}

// near compares sums of points, which may have been added in another order: eighths and thirds of points were given.
func near(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 }
