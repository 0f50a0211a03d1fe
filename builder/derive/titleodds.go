package derive

import (
	"context"
	"errors"
	"slices"

	"gridcast/builder/almanac"
	"gridcast/builder/predict"
	"gridcast/builder/predict/title"
	"gridcast/builder/season"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// titleOdds makes the odds of every season. They are empty before drivers have taken part in it.
func (w *work) titleOdds(ctx context.Context, data Data) error {
	for _, y := range w.almanac.Years {
		odds, err := w.oddsOf(ctx, y)
		if err != nil {
			return err
		}
		if err := put(data, catalog.Variant{Endpoint: catalog.TitleOdds, Year: y.Year}, odds); err != nil {
			return err
		}
	}
	return nil
}

// oddsOf returns the odds of a season. They are empty if it is too early for any.
func (w *work) oddsOf(ctx context.Context, y *almanac.Year) (wire.TitleOdds, error) {
	planned, counted := plannedRounds(y)
	empty := wire.TitleOdds{RacesCounted: counted, RacesRemaining: len(planned) - counted, Drivers: []wire.DriverOdds{}, Constructors: []wire.ConstructorOdds{}}
	odds := empty
	if y.Year >= min(w.almanac.Current, w.almanac.Past()) && counted > 0 {
		var err error
		if odds.AfterRounds, err = w.oddsAfter(ctx, y, planned[:min(counted, len(planned)-1)]); err != nil {
			return empty, err
		}
	}
	if odds.RacesRemaining == 0 {
		for _, s := range y.Drivers() {
			if s.Position == 1 {
				odds.Drivers = append(odds.Drivers, wire.DriverOdds{
					Driver: y.Codes()[s.Driver.ID], DriverID: w.almanac.Lasting(s.Driver.ID), Name: s.Driver.Name, Points: s.Shown(), TitlePct: 1000, PointsLow: s.Shown(), PointsHigh: s.Shown(), PointsMost: s.Shown(),
				})
			}
		}
		for _, s := range y.Constructors() {
			if s.Position == 1 {
				odds.Constructors = append(odds.Constructors, wire.ConstructorOdds{
					Team: s.Team.Name, TeamID: string(s.Team.ID), Points: s.Shown(), TitlePct: 1000, PointsLow: s.Shown(), PointsHigh: s.Shown(), PointsMost: s.Shown(),
				})
			}
		}
		return odds, nil
	}
	simulated, ok, err := w.simulated(ctx, w.verified(y, planned, counted, true), y.Year, oddsConfig(y, counted, w.runs))
	if err != nil || !ok {
		return empty, err
	}
	odds.Simulations = w.runs
	for _, c := range simulated.Drivers {
		code, ok := y.Codes()[c.ID]
		if !ok {
			return empty, nil // codes are assigned at the first qualifying of a season
		}
		odds.Drivers = append(odds.Drivers, wire.DriverOdds{
			Driver: code, DriverID: w.almanac.Lasting(c.ID), Name: w.view.Driver(c.ID).Name, Points: max(c.Points, 0), TitlePct: wire.PercentFrom(c.Title), PointsLow: max(c.Low, 0), PointsHigh: max(c.High, 0), PointsMost: max(c.Most, 0),
		})
	}
	for _, c := range simulated.Teams {
		odds.Constructors = append(odds.Constructors, wire.ConstructorOdds{
			Team: w.view.Team(c.ID).Name, TeamID: string(c.ID), Points: max(c.Points, 0), TitlePct: wire.PercentFrom(c.Title), PointsLow: max(c.Low, 0), PointsHigh: max(c.High, 0), PointsMost: max(c.Most, 0),
		})
	}
	return odds, nil
}

// seriesRuns is the number of simulations after each round of the series: fewer, because a fresh store has a whole
// series to make. A chance of one half is then right within 2.2 points, of 95 % of the cases.
const seriesRuns = 2_000

// oddsAfter returns the odds as they were after each of the first rounds of a season, when nothing of the next was
// known. It leaves out rounds that were too early for odds.
func (w *work) oddsAfter(ctx context.Context, y *almanac.Year, counted []*almanac.Round) (series []wire.RoundOdds, err error) {
	planned, _ := plannedRounds(y)
	for n, r := range counted {
		simulated, ok, err := w.simulated(ctx, w.verified(y, planned, n+1, false), y.Year, oddsConfig(y, n+1, min(w.runs, seriesRuns)))
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		after := wire.RoundOdds{SessionKey: r.Session, GPName: r.Facts.Name, Drivers: []wire.DriverTitle{}, Constructors: []wire.ConstructorTitle{}}
		for _, c := range simulated.Drivers {
			after.Drivers = append(after.Drivers, wire.DriverTitle{Driver: y.Codes()[c.ID], DriverID: r.Lasting(c.ID), TitlePct: wire.PercentFrom(c.Title)})
		}
		for _, c := range simulated.Teams {
			after.Constructors = append(after.Constructors, wire.ConstructorTitle{Team: w.view.Team(c.ID).Name, TeamID: string(c.ID), TitlePct: wire.PercentFrom(c.Title)})
		}
		series = append(series, after)
	}
	return series, nil
}

// oddsConfig returns the configuration of the odds after the first rounds of a season. Exclusions are those of the table,
// and before the first table the decisions that count from the first round on.
func oddsConfig(y *almanac.Year, counted, runs int) title.Config {
	c := title.DefaultConfig()
	c.Runs, c.Drivers, c.Teams = runs, map[season.DriverID]title.Decided{}, map[season.TeamID]title.Decided{}
	if counted > 0 {
		after := y.Progress()[counted-1]
		for _, s := range after.Drivers {
			if s.Excluded {
				c.Drivers[s.Driver.ID] = title.Decided{Excluded: true}
			}
		}
		for _, s := range slices.Backward(after.Constructors) { // an entry that goes on stands before the one that ended
			if delete(c.Teams, s.Team.ID); s.Excluded {
				c.Teams[s.Team.ID] = title.Decided{Excluded: true}
			}
		}
		return c
	}
	for _, d := range y.Decisions() {
		if d.Constructors {
			was := c.Teams[season.TeamID(d.Competitor)]
			c.Teams[season.TeamID(d.Competitor)] = title.Decided{Excluded: was.Excluded || d.Excluded, Points: was.Points + d.Points}
		} else {
			was := c.Drivers[season.DriverID(d.Competitor)]
			c.Drivers[season.DriverID(d.Competitor)] = title.Decided{Excluded: was.Excluded || d.Excluded, Points: was.Points + d.Points}
		}
	}
	return c
}

// simulated returns the odds of a season in a view, and false if it is too early for any.
func (w *work) simulated(ctx context.Context, v *season.View, year int, config title.Config) (title.Odds, bool, error) {
	if err := ctx.Err(); err != nil {
		return title.Odds{}, false, err
	}
	s, _ := v.Season(year)
	sum, err := w.sum(v, year, s.Rounds[len(s.Rounds)-1].GrandPrix, config)
	if err != nil {
		return title.Odds{}, false, err
	}
	made, err := w.memo(sum, func() (made memo, err error) {
		made.Odds, err = title.Simulate(v, year, w.model, config)
		return made, err
	})
	if errors.Is(err, predict.ErrNoForm) || errors.Is(err, predict.ErrNobody) || errors.Is(err, title.ErrTooEarly) {
		return title.Odds{}, false, nil
	}
	return made.Odds, err == nil, err
}

// plannedRounds returns the rounds of a season that are not off, in order of their start, and the number of verified ones
// before the first without a verified result.
func plannedRounds(y *almanac.Year) (planned []*almanac.Round, counted int) {
	planned = slices.DeleteFunc(slices.Clone(y.Rounds), (*almanac.Round).Off)
	slices.SortStableFunc(planned, func(a, b *almanac.Round) int { return a.Start.Compare(b.Start) })
	for counted < len(planned) && planned[counted].Result != nil {
		counted++
	}
	return planned, counted
}

// verified returns the view in which the first rounds of a season count, with the published standings and
// corrections. The others are still to come, with the known facts of their weekends or without them.
func (w *work) verified(y *almanac.Year, planned []*almanac.Round, counted int, known bool) *season.View {
	rounds := make([]season.Round, len(planned))
	for i := range planned {
		r := *planned[i].Facts
		if known, ok := w.view.Round(y.Year, r.GrandPrix); ok { // with a result that only the ledger has
			r = *known
		}
		r.Start = planned[i].Start
		if i >= counted {
			r.Results, r.FastestLaps, r.PitStops, r.DriverStandings, r.TeamStandings = nil, nil, nil, nil, nil
			if !known {
				r.Entries, r.Practice, r.Qualifying, r.Grid = nil, [4][]season.TimedLap{}, nil, nil
				r.SprintQualifying, r.SprintGrid, r.SprintResults = nil, nil, nil
			}
		}
		if i == counted-1 {
			r.DriverStandings, r.TeamStandings = nil, nil
			after := y.Progress()[i]
			for _, s := range after.Drivers {
				r.DriverStandings = append(r.DriverStandings, season.DriverStanding{Driver: s.Driver.ID, Position: s.Position, Points: s.Points})
			}
			for _, s := range after.Constructors {
				if s.Excluded && slices.ContainsFunc(r.TeamStandings, func(row season.TeamStanding) bool { return row.Team == s.Team.ID }) {
					continue // an entry of the team that ended
				}
				r.TeamStandings = append(r.TeamStandings, season.TeamStanding{Team: s.Team.ID, Position: s.Position, Points: s.Points})
			}
		}
		rounds[i] = r
	}
	view := *w.view
	view.Seasons = slices.Clone(view.Seasons)
	if s, ok := view.Season(y.Year); ok {
		s.Rounds = rounds
	}
	return &view
}
