package title

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gridcast/builder/predict"
	"gridcast/builder/predict/portable"
	"gridcast/builder/season"
)

// Stages are the parts of a season after which odds are scored.
var Stages = []float64{.25, .5, .75}

// Record scores the odds of past seasons, each simulated from the facts known at that time.
type Record struct {
	From, To int
	Stages   []Stage
}

// Stage is the record after a part of the season.
type Stage struct {
	Part           float64
	Drivers, Teams Scores
}

// Scores are sums over seasons of one title: the mean log-loss of the champion in nats, of the odds
// and of two simpler forecasts, and how often the likeliest won.
type Scores struct {
	Seasons  int
	LogLoss  float64 // of the odds
	Leader   float64 // of the baseline "the leader wins", with the leader's share of titles in earlier seasons
	Share    float64 // of the baseline that gives chances in proportion to the points
	Hits     int     // the likeliest of the odds won
	LeadHits int     // the leader won
	Said     float64 // mean chance given to the likeliest

	// Of the five likeliest of each season: the number that ended between their 10th and 90th
	// percentile of points. A calibrated spread has 80 %.
	Within, Counted int

	leaderWon, leaderSeen float64
}

// Score simulates the seasons at each of Stages and scores the odds against the champion. It does not
// score a season that is not over. It counts the leader's share of titles from
// two made-up seasons, of which the leader won one, and the seasons scored before.
func Score(ctx context.Context, a *season.Archive, from, to int, m *predict.Ranked, c Config) (Record, error) {
	record := Record{From: from, To: to}
	facts := a.Facts()
	for _, part := range Stages {
		stage := Stage{Part: part}
		for i := range facts.Seasons {
			s := &facts.Seasons[i]
			if s.Year < from || s.Year > to || !s.Complete() {
				continue
			}
			if err := ctx.Err(); err != nil {
				return Record{}, fmt.Errorf("score title odds of %d: %w", s.Year, err)
			}
			after := &s.Rounds[int(math.Round(part*float64(len(s.Rounds))))-1]
			odds, err := Simulate(a.AsOf(after.ResultKnownAt()), s.Year, m, c)
			if err != nil {
				return Record{}, err
			}
			final := &s.Rounds[len(s.Rounds)-1]
			ends := map[season.DriverID]float64{}
			var champion season.DriverID
			for _, row := range final.DriverStandings {
				ends[row.Driver] = row.Points
				if row.Position == 1 {
					champion = row.Driver
				}
			}
			stage.Drivers.add(scoreOf(odds.Drivers, champion, ends))
			teamEnds := map[season.TeamID]float64{}
			var team season.TeamID
			for _, row := range final.TeamStandings {
				teamEnds[row.Team] += row.Points
				if row.Position == 1 {
					team = row.Team
				}
			}
			stage.Teams.add(scoreOf(odds.Teams, team, teamEnds))
		}
		record.Stages = append(record.Stages, stage)
	}
	return record, nil
}

// one is the score of one title.
type one struct {
	chance, share, said float64
	hit, leadHit        bool
	rivals              int // beside the leader
	within, counted     int
}

func scoreOf[ID season.DriverID | season.TeamID](list []Chance[ID], champion ID, ends map[ID]float64) one {
	s := one{rivals: len(list) - 1, said: list[0].Title, hit: list[0].ID == champion}
	leader := slices.MaxFunc(list, func(a, b Chance[ID]) int { return int(math.Copysign(1, a.Points-b.Points)) })
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

func (s *Scores) add(o one) {
	n := float64(s.Seasons)
	mean := func(old, x float64) float64 { return (float64(old*n) + x) / (n + 1) }
	leads := (s.leaderWon + 1) / (s.leaderSeen + 2)
	if !o.leadHit {
		leads = (1 - leads) / float64(max(o.rivals, 1))
	}
	s.LogLoss = mean(s.LogLoss, -portable.Log(max(o.chance, leastChance)))
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
