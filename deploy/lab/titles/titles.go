// Package titles scores the title odds of past seasons, each simulated from the facts that were known at that time.
package titles

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gridcast/builder/predict"
	"gridcast/builder/predict/portable"
	"gridcast/builder/predict/title"
	"gridcast/builder/season"
)

// Stages are the parts of a season after which odds are scored.
var Stages = []float64{.25, .5, .75}

// Record scores the odds of past seasons, each simulated from the facts known at that time. Its JSON form is stable.
type Record struct {
	From   int     `json:"from"`
	To     int     `json:"to"`
	Stages []Stage `json:"stages"`
}

// Stage is the record after a part of the season.
type Stage struct {
	Part    float64 `json:"part"`
	Drivers Scores  `json:"drivers"`
	Teams   Scores  `json:"constructors"`
}

// Scores are sums over seasons of one title: the mean log-loss of the champion in nats, of the odds
// and of three simpler forecasts, and how often the likeliest won.
type Scores struct {
	Seasons  int     `json:"seasons"`
	LogLoss  float64 `json:"log_loss"`        // of the odds
	Replay   float64 `json:"replay_log_loss"` // of the baseline that draws each remaining round from the rounds held
	Leader   float64 `json:"leader_log_loss"` // of the baseline "the leader wins", with the leader's share of titles in earlier seasons
	Share    float64 `json:"share_log_loss"`  // of the baseline that gives chances in proportion to the points
	Hits     int     `json:"likeliest_won"`   // the likeliest of the odds won
	LeadHits int     `json:"leader_won"`      // the leader won
	Said     float64 `json:"said"`            // mean chance given to the likeliest

	// Of the five likeliest of each season: the number that ended between their 10th and 90th
	// percentile of points. A calibrated spread has 80 %.
	Within  int `json:"within"`
	Counted int `json:"counted"`

	leaderWon, leaderSeen float64
}

// Score simulates the seasons at each of Stages and scores the odds against the champion. It does not
// score a season that is not over. It counts the leader's share of titles from
// two made-up seasons, of which the leader won one, and the seasons scored before.
func Score(ctx context.Context, a *season.Archive, from, to int, m *predict.Ranked, c title.Config) (Record, error) {
	record := Record{From: from, To: to}
	for _, part := range Stages {
		record.Stages = append(record.Stages, Stage{Part: part})
	}
	facts := a.Facts()
	for i := range facts.Seasons {
		s := &facts.Seasons[i]
		if s.Year < from || s.Year > to || !s.Complete() {
			continue
		}
		final := &s.Rounds[len(s.Rounds)-1]
		ends, champion := tableOf(final.DriverStandings, driverRow)
		teamEnds, team := tableOf(final.TeamStandings, teamRow)
		for k := range record.Stages { // from the first to the last, because a model that goes back learns again
			if err := ctx.Err(); err != nil {
				return Record{}, fmt.Errorf("score title odds of %d: %w", s.Year, err)
			}
			stage := &record.Stages[k]
			held := s.Rounds[:int(math.Round(stage.Part*float64(len(s.Rounds))))]
			after := &held[len(held)-1]
			odds, err := title.Simulate(a.AsOf(after.ResultKnownAt()), s.Year, m, c)
			if err != nil {
				return Record{}, err
			}
			byRound, byTeam := make([]map[season.DriverID]float64, len(held)), make([]map[season.TeamID]float64, len(held))
			for j := range held {
				byRound[j], byTeam[j] = map[season.DriverID]float64{}, map[season.TeamID]float64{}
				for _, row := range slices.Concat(held[j].Results, held[j].SprintResults) {
					byRound[j][row.Driver] += row.Points
					byTeam[j][row.Team] += row.Points
				}
			}
			now, _ := tableOf(after.DriverStandings, driverRow)
			stage.Drivers.add(scoreOf(odds.Drivers, champion, ends), replay(now, byRound, len(s.Rounds)-len(held), champion))
			teamNow, _ := tableOf(after.TeamStandings, teamRow)
			stage.Teams.add(scoreOf(odds.Teams, team, teamEnds), replay(teamNow, byTeam, len(s.Rounds)-len(held), team))
		}
	}
	return record, nil
}

// tableOf returns the points in a championship, and the leader. A team may have several rows.
func tableOf[ID season.DriverID | season.TeamID, Row any](rows []Row, of func(Row) (ID, int, float64)) (points map[ID]float64, leader ID) {
	points = map[ID]float64{}
	for _, row := range rows {
		id, position, p := of(row)
		if points[id] += p; position == 1 {
			leader = id
		}
	}
	return points, leader
}

func driverRow(s season.DriverStanding) (season.DriverID, int, float64) {
	return s.Driver, s.Position, s.Points
}

func teamRow(s season.TeamStanding) (season.TeamID, int, float64) {
	return s.Team, s.Position, s.Points
}

// replay returns the share of seasons that the champion wins if each remaining round is one of the rounds held, drawn
// at random. A tie counts for each of the leaders in part.
func replay[ID season.DriverID | season.TeamID](now map[ID]float64, held []map[ID]float64, remaining int, champion ID) float64 {
	const runs = 2000
	rng := rand.New(rand.NewPCG(uint64(remaining), uint64(len(held)))) // to be repeated, not to be secret
	at := map[ID]int{champion: 0}
	for _, round := range append(slices.Clone(held), now) {
		for id := range round {
			if _, ok := at[id]; !ok {
				at[id] = len(at)
			}
		}
	}
	row := func(points map[ID]float64) []float64 {
		list := make([]float64, len(at))
		for id, p := range points {
			list[at[id]] = p
		}
		return list
	}
	begin, points, rounds := row(now), make([]float64, len(at)), make([][]float64, len(held))
	for i, round := range held {
		rounds[i] = row(round)
	}
	won := 0.0
	for range runs {
		copy(points, begin)
		for range remaining {
			for i, p := range rounds[rng.IntN(len(rounds))] {
				points[i] += p
			}
		}
		best, leaders := slices.Max(points), 0.0
		for _, p := range points {
			if p == best {
				leaders++
			}
		}
		if points[0] == best {
			won += 1 / leaders
		}
	}
	return won / runs
}

// one is the score of one title.
type one struct {
	chance, share, said float64
	hit, leadHit        bool
	rivals              int // beside the leader
	within, counted     int
}

func scoreOf[ID season.DriverID | season.TeamID](list []title.Chance[ID], champion ID, ends map[ID]float64) one {
	s := one{rivals: len(list) - 1, said: list[0].Title, hit: list[0].ID == champion}
	leader := slices.MaxFunc(list, func(a, b title.Chance[ID]) int { return int(math.Copysign(1, a.Points-b.Points)) })
	s.leadHit = leader.ID == champion
	total := 0.0
	for i, c := range list {
		total += c.Points
		if c.ID == champion {
			s.chance, s.share = c.Title, c.Points
		}
		if end, ok := ends[c.ID]; ok && i < 5 {
			s.counted++
			if end >= c.Low && end <= c.High {
				s.within++
			}
		}
	}
	s.share /= max(total, 1)
	return s
}

// leastChance bounds the log-loss: of 10,000 runs none is no chance.
const leastChance = 1e-4

func (s *Scores) add(o one, replayed float64) {
	n := float64(s.Seasons)
	mean := func(old, x float64) float64 { return (float64(old*n) + x) / (n + 1) }
	leads := (s.leaderWon + 1) / (s.leaderSeen + 2)
	if !o.leadHit {
		leads = (1 - leads) / float64(max(o.rivals, 1))
	}
	s.LogLoss = mean(s.LogLoss, -portable.Log(max(o.chance, leastChance)))
	s.Replay = mean(s.Replay, -portable.Log(max(replayed, leastChance)))
	s.Leader = mean(s.Leader, -portable.Log(leads))
	s.Share = mean(s.Share, -portable.Log(max(o.share, leastChance)))
	s.Said = mean(s.Said, o.said)
	s.Seasons++
	s.Within += o.within
	s.Counted += o.counted
	s.leaderSeen++
	if o.hit {
		s.Hits++
	}
	if o.leadHit {
		s.LeadHits++
		s.leaderWon++
	}
}
