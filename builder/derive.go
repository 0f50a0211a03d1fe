package builder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/builder/predict/backtest"
	"gridcast/builder/predict/title"
	"gridcast/builder/season"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
	"gridcast/snapshots/blob"
)

const (
	derivedFolder = "derived/"
	maxDerived    = 16 << 20 // bytes that are read; all seasons take some hundred thousand

	// derivedFormat changes whenever the same facts would give other data.
	derivedFormat = "derived-1"

	// hindsightFrom is the first season of the record in hindsight.
	hindsightFrom = 2010
)

// derivedData is the data of the variants that Derive makes, by path.
type derivedData map[string]json.RawMessage

// derivedFile is what the store keeps of it, under the sum of what it was made from.
type derivedFile struct {
	Archive string      `json:"archive"` // SHA-256, for people
	Model   string      `json:"model"`
	MadeAt  time.Time   `json:"made_at"` // race time
	Data    derivedData `json:"data"`
}

// Derive makes the title odds and the track record of what Build publishes at an instant, unless
// the store has them, and reports whether a build would now publish something else. It takes
// some seconds of one processor. A build never waits for it: until Derive has been there, what
// was published before stays. It is safe to be called at once by several processes, which make the
// same bytes.
func (b *Builder) Derive(ctx context.Context, at time.Time) (bool, error) {
	facts, err := b.Facts(ctx)
	if err != nil {
		return false, fmt.Errorf("derive: %w", err)
	}
	if err := b.Ledger.Refresh(ctx); err != nil {
		return false, fmt.Errorf("derive: %w", err)
	}
	v := facts.Archive.AsOf(at)
	a := almanac.Join(v, b.Ledger.Current(at))
	key := b.derivedKey(facts, a)
	if _, made, err := b.derived(ctx, key); err != nil || made {
		return false, err
	}
	d := deriver{archive: facts.Archive, view: v, almanac: a, model: predict.NewV2(predict.DefaultParams())}
	if b.Policy.Model.Name() == "r2-2" {
		d.model = predict.NewR2(predict.DefaultParams())
	}
	file := derivedFile{Archive: facts.SHA256, Model: d.model.Name(), MadeAt: at.UTC(), Data: derivedData{}}
	if err := errors.Join(d.trackRecord(ctx, file.Data), d.titleOdds(ctx, file.Data)); err != nil {
		return false, fmt.Errorf("derive: %w", err)
	}
	text, err := wire.Marshal(file)
	if err != nil {
		return false, fmt.Errorf("derive: %w", err)
	}
	// Two that derive at once differ at most in made_at: whoever was first made what counts.
	if _, err := blob.Claim(ctx, b.Store, key, text); err != nil {
		return false, fmt.Errorf("derive: %w", err)
	}
	return true, nil
}

// derivedKey names what the odds and the record depend on: the archive, the model, what is
// verified, with its revision, and which rounds are still to be held.
func (b *Builder) derivedKey(facts Facts, a *almanac.Almanac) string {
	h := sha256.New()
	h.Write(fmt.Appendln(nil, derivedFormat, facts.SHA256, b.Policy.Model.Name(), a.Current))
	for i := range a.Years {
		y := &a.Years[i]
		for j := range y.Rounds {
			r := &y.Rounds[j]
			revision := 0
			if r.Result != nil {
				revision = 1 + r.Result.Revision
			}
			// Before a season's first qualifying nobody has a code: with it the odds can be told.
			h.Write(fmt.Appendln(nil, r.Session, revision, r.Off(), len(y.Codes), r.Pick != nil && r.Result != nil))
		}
	}
	return derivedFolder + hex.EncodeToString(h.Sum(nil)) + ".json"
}

// derived reads the data of a key, and whether anybody has made it; nil if not.
func (b *Builder) derived(ctx context.Context, key string) (data derivedData, made bool, err error) {
	object, err := b.Store.Get(ctx, key, maxDerived)
	if errors.Is(err, blob.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read what was derived: %w", err)
	}
	var file derivedFile
	if err := json.Unmarshal(object.Data, &file); err != nil {
		return nil, false, fmt.Errorf("read what was derived: %s: %w", key, err)
	}
	return file.Data, true, nil
}

// deriver makes the data from what is verified.
type deriver struct {
	archive *season.Archive
	view    *season.View
	almanac *almanac.Almanac
	model   *predict.Ranked
}

func put(data derivedData, v catalog.Variant, body any) error {
	text, err := wire.Marshal(body)
	data[v.Path()] = text
	return err
}

// titleOdds makes the odds of every season in which somebody has taken part.
func (d *deriver) titleOdds(ctx context.Context, data derivedData) error {
	for i := range d.almanac.Years {
		if err := ctx.Err(); err != nil {
			return err
		}
		y := &d.almanac.Years[i]
		odds, ok, err := d.oddsOf(y)
		if err != nil {
			return err
		}
		if ok {
			if err := put(data, catalog.Variant{Endpoint: catalog.TitleOdds, Year: y.Year}, odds); err != nil {
				return err
			}
		}
	}
	return nil
}

// oddsOf returns the odds of a season; none if nothing can be said yet.
func (d *deriver) oddsOf(y *almanac.Year) (wire.TitleOdds, bool, error) {
	odds := wire.TitleOdds{Drivers: []wire.DriverOdds{}, Constructors: []wire.ConstructorOdds{}}
	view, counted, remaining := d.verified(y)
	odds.RacesCounted, odds.RacesRemaining = counted, remaining
	if remaining == 0 {
		for _, s := range y.Drivers {
			if s.Position == 1 {
				odds.Drivers = append(odds.Drivers, wire.DriverOdds{
					Driver: y.Codes[s.Driver.ID], Name: s.Driver.Name, Points: s.Points, TitlePct: 1000, PointsLow: s.Points, PointsHigh: s.Points,
				})
			}
		}
		for _, s := range y.Constructors {
			if s.Position == 1 {
				odds.Constructors = append(odds.Constructors, wire.ConstructorOdds{
					Team: s.Team.Name, Points: s.Points, TitlePct: 1000, PointsLow: s.Points, PointsHigh: s.Points,
				})
			}
		}
		return odds, counted > 0, nil
	}
	config := title.DefaultConfig()
	simulated, err := title.Simulate(view, y.Year, d.model, config)
	switch {
	case errors.Is(err, predict.ErrNoForm), errors.Is(err, predict.ErrNobody), errors.Is(err, title.ErrTooEarly):
		return odds, false, nil
	case err != nil:
		return odds, false, err
	}
	odds.Simulations = config.Runs
	for _, c := range simulated.Drivers {
		code, ok := y.Codes[c.ID]
		if !ok {
			return odds, false, nil // nobody has driven in this season yet: there are no codes
		}
		odds.Drivers = append(odds.Drivers, wire.DriverOdds{
			Driver: code, Name: d.view.Drivers[c.ID].Name, Points: c.Points, TitlePct: wire.PercentFrom(c.Title), PointsLow: c.Low, PointsHigh: c.High,
		})
	}
	for _, c := range simulated.Teams {
		odds.Constructors = append(odds.Constructors, wire.ConstructorOdds{
			Team: d.view.Teams[c.ID].Name, Points: c.Points, TitlePct: wire.PercentFrom(c.Title), PointsLow: c.Low, PointsHigh: c.High,
		})
	}
	return odds, true, nil
}

// verified returns the view in which the season stands where its published standings do: its
// rounds up to the first without a verified result count, with the standings and corrections that
// are published, and those after it are to be held. Rounds that are postponed or cancelled are
// not there.
func (d *deriver) verified(y *almanac.Year) (view *season.View, counted, remaining int) {
	held := slices.DeleteFunc(slices.Clone(y.Rounds), func(r almanac.Round) bool { return r.Off() })
	slices.SortStableFunc(held, func(a, b almanac.Round) int { return a.Start.Compare(b.Start) })
	for counted < len(held) && held[counted].Result != nil {
		counted++
	}
	rounds := make([]season.Round, len(held))
	for i := range held {
		r := *held[i].Facts
		r.Start = held[i].Start
		r.DriverStandings, r.TeamStandings = nil, nil
		switch {
		case i >= counted:
			r.Results, r.FastestLaps, r.PitStops = nil, nil, nil
		case i == counted-1:
			for _, s := range y.Drivers {
				r.DriverStandings = append(r.DriverStandings, season.DriverStanding{Driver: s.Driver.ID, Position: s.Position, Points: s.Points})
			}
			for _, s := range y.Constructors {
				r.TeamStandings = append(r.TeamStandings, season.TeamStanding{Team: s.Team.ID, Position: s.Position, Points: s.Points})
			}
		default:
			r.DriverStandings, r.TeamStandings = held[i].Facts.DriverStandings, held[i].Facts.TeamStandings
		}
		rounds[i] = r
	}
	w := *d.view
	w.Seasons = slices.Clone(w.Seasons)
	if s, ok := w.Season(y.Year); ok {
		s.Rounds = rounds
	}
	return &w, counted, len(held) - counted
}

// scored is a race with a verified result and how each forecast of it did.
type scored struct {
	year              int
	model, pole, f0   backtest.Score // in hindsight
	hindsight         bool
	real              *backtest.Score // of the frozen pick; without its chances only hits
	realHasAllChances bool
}

// trackRecord makes the record of every season and of all.
func (d *deriver) trackRecord(ctx context.Context, data derivedData) error {
	races, err := d.scoreAll(ctx)
	if err != nil {
		return err
	}
	all := wire.TrackRecord{Real: recordOf(races, isReal, true), Hindsight: recordOf(races, isHindsight, true)}
	if err := put(data, catalog.Variant{Endpoint: catalog.TrackRecord}, all); err != nil {
		return err
	}
	for i := range d.almanac.Years {
		year := d.almanac.Years[i].Year
		mine := slices.DeleteFunc(slices.Clone(races), func(s scored) bool { return s.year != year })
		body := wire.TrackRecord{Real: recordOf(mine, isReal, false), Hindsight: recordOf(mine, isHindsight, false)}
		if err := put(data, catalog.Variant{Endpoint: catalog.TrackRecord, Year: year}, body); err != nil {
			return err
		}
	}
	return nil
}

// scoreAll scores every race that has a verified result, in order: what was frozen, and from
// hindsightFrom on what the model says in hindsight, from what was known when the grid was.
func (d *deriver) scoreAll(ctx context.Context) ([]scored, error) {
	var races []scored
	pole := predict.Pole()
	for i := range d.almanac.Years {
		y := &d.almanac.Years[i]
		for j := range y.Rounds {
			r := &y.Rounds[j]
			if r.Result == nil || y.Year < hindsightFrom && r.Pick == nil {
				continue
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			podium := almanac.Podium(r.Result.Rows)
			s := scored{year: y.Year}
			if r.Pick != nil {
				score := backtest.ScoreOf(frozenForecast(r.Pick), podium)
				s.real, s.realHasAllChances = &score, r.Pick.Chances != nil
			}
			if y.Year >= hindsightFrom && len(r.Facts.Grid) > 0 {
				view := d.archive.AsOf(r.Facts.GridKnownAt())
				e, err := d.model.Explain(view, y.Year, r.Facts.GrandPrix)
				if err != nil {
					return nil, err
				}
				first, err := pole.Predict(view, y.Year, r.Facts.GrandPrix)
				if err != nil {
					return nil, err
				}
				s.hindsight = true
				s.model, s.pole, s.f0 = backtest.ScoreOf(e.Forecast, podium), backtest.ScoreOf(first, podium), backtest.ScoreOf(e.Qualified(), podium)
			}
			races = append(races, s)
		}
	}
	return races, nil
}

// frozenForecast is a frozen pick as a forecast; of one without chances only the pick is known.
func frozenForecast(p *ledger.FrozenPick) predict.Forecast {
	f := predict.Forecast{Podium: almanac.Picked(p)}
	for _, c := range p.Chances {
		f.Candidates = append(f.Candidates, predict.Candidate{Driver: c.Driver, Win: float64(c.Win) / ledger.Certain, Podium: float64(c.Podium) / ledger.Certain})
	}
	if p.Chances == nil {
		f.Candidates = []predict.Candidate{{Driver: p.P1, Win: p.WinProbability}}
	}
	return f
}

// kind tells the two records apart.
type kind int

const (
	isReal kind = iota
	isHindsight
)

// recordOf sums up the races of a kind, by season too if wanted.
func recordOf(races []scored, k kind, seasons bool) wire.Record {
	var mine []scored
	for _, s := range races {
		if k == isReal && s.real != nil || k == isHindsight && s.hindsight {
			mine = append(mine, s)
		}
	}
	record := wire.Record{Races: len(mine)}
	if len(mine) == 0 {
		return record
	}
	var picked []backtest.Score
	for _, s := range mine {
		score := s.model
		if k == isReal {
			score = *s.real
		}
		picked = append(picked, score)
		if k == isHindsight || s.realHasAllChances {
			record.RacesWithChances++
		}
	}
	record.Picks, record.Pole, record.F0 = scoresOf(mine, k)
	if seasons {
		for i := 0; i < len(mine); {
			n := i
			for n < len(mine) && mine[n].year == mine[i].year {
				n++
			}
			row := wire.SeasonRecord{Year: mine[i].year, Races: n - i}
			row.Picks, row.Pole, row.F0 = scoresOf(mine[i:n], k)
			record.Seasons = append(record.Seasons, row)
			i = n
		}
	}
	for _, b := range backtest.Reliability(picked) {
		record.Reliability = append(record.Reliability, wire.ReliabilityBin{
			Races: b.Races, SaidPct: wire.PercentFrom(b.Said), WonPct: wire.PercentFrom(b.Won),
			LowPct: wire.PercentFrom(b.Interval[0]), HighPct: wire.PercentFrom(b.Interval[1]),
		})
	}
	return record
}

// scoresOf returns the scores of the picks, of pole and of f0 on the same races; the last two
// only if all of them have been forecast.
func scoresOf(races []scored, k kind) (picks, pole, f0 *wire.Scores) {
	all := make([]backtest.Score, 0, len(races))
	var withChances, poles, f0s []backtest.Score
	for _, s := range races {
		score := s.model
		if k == isReal {
			score = *s.real
		}
		all = append(all, score)
		if k == isHindsight || s.realHasAllChances {
			withChances = append(withChances, score)
		}
		if s.hindsight {
			poles, f0s = append(poles, s.pole), append(f0s, s.f0)
		}
	}
	picks = wireScores(all, withChances)
	if len(poles) == len(races) {
		pole, f0 = wireScores(poles, poles), wireScores(f0s, f0s)
	}
	return picks, pole, f0
}

// wireScores sums up hits over all, and what needs every chance over those that have them.
func wireScores(all, withChances []backtest.Score) *wire.Scores {
	m := backtest.NewMetrics(all)
	percent := func(v float64, i backtest.Interval) wire.PercentInterval {
		return wire.PercentInterval{Value: wire.PercentFrom(v / 100), Low: wire.PercentFrom(i[0] / 100), High: wire.PercentFrom(i[1] / 100)}
	}
	s := &wire.Scores{
		WinnerHitPct: percent(m.WinnerHitPct, m.Intervals.WinnerHitPct),
		PodiumPct:    percent(m.PodiumPct, m.Intervals.PodiumPct),
	}
	if len(withChances) == 0 {
		return s
	}
	m = backtest.NewMetrics(withChances)
	number := func(v float64, i backtest.Interval) *wire.NumberInterval {
		return &wire.NumberInterval{Value: wire.ThousandthsOf(v), Low: wire.ThousandthsOf(i[0]), High: wire.ThousandthsOf(i[1])}
	}
	s.LogLoss, s.Brier = number(m.LogLoss, m.Intervals.LogLoss), number(m.Brier, m.Intervals.Brier)
	return s
}
