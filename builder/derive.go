package builder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/builder/predict/backtest"
	"gridcast/builder/predict/title"
	"gridcast/builder/season"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
)

const (
	maxDerived = 16 << 20 // bytes that are read; all seasons take some hundred thousand

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
	Parts   parts       `json:"parts,omitzero"` // of a release that kept none: empty
}

// parts are what took long to make, each under the sum of all that it was made from: the next file is
// made of those that still hold and of what is new.
type parts struct {
	Hindsight map[string]*hindsight `json:"hindsight"`
	Odds      map[string]title.Odds `json:"odds"`
}

// hindsight is how the forecasts of a race did that are made after it, from what was known when the
// grid was.
type hindsight struct {
	Model backtest.Score `json:"model"`
	Pole  backtest.Score `json:"pole"`
	F0    backtest.Score `json:"f0"`
}

// maxParts is the number of parts that a builder remembers: some decades of races under many archives.
const maxParts = 20_000

// remember adds parts that were made, or read from the store. The caller holds b.deriving.
func (b *Builder) remember(p parts) {
	known := &b.deriving.parts
	if known.Hindsight == nil || len(known.Hindsight)+len(known.Odds) > maxParts {
		*known = parts{Hindsight: map[string]*hindsight{}, Odds: map[string]title.Odds{}}
	}
	maps.Copy(known.Hindsight, p.Hindsight)
	maps.Copy(known.Odds, p.Odds)
}

// Derive makes the title odds and the track record of what Build publishes at an instant, unless
// the store has them, and reports whether a build would now publish something else. It takes
// some seconds of one processor the first time, and later as long as what has changed. A build never
// waits for it: until Derive has been there, what was published before stays. It is safe to be called at once by several processes, which make the
// same bytes.
func (b *Builder) Derive(ctx context.Context, at time.Time) (bool, error) {
	facts, err := b.Facts(ctx)
	if err != nil {
		return false, fmt.Errorf("derive: %w", err)
	}
	if _, err := b.Ledger.Refresh(ctx); err != nil {
		return false, fmt.Errorf("derive: %w", err)
	}
	v := facts.Archive.AsOf(at)
	a := almanac.Join(v, b.Ledger.Current(at))
	model := b.Rules(ctx).Model
	key := derivedKey(model, facts, a)
	if _, made, err := b.derived(ctx, key); err != nil || made {
		return false, err
	}
	d := b.deriver(ctx, model, facts)
	d.view, d.almanac = v, a
	file := derivedFile{Archive: facts.SHA256, Model: d.model.Name(), MadeAt: at.UTC(), Data: derivedData{}}
	if err := errors.Join(d.trackRecord(ctx, file.Data), d.titleOdds(ctx, file.Data)); err != nil {
		return false, fmt.Errorf("derive: %w", err)
	}
	file.Parts = d.used
	b.deriving.Lock()
	b.remember(d.used)
	b.deriving.Unlock()
	text, err := wire.Marshal(file)
	if err != nil {
		return false, fmt.Errorf("derive: %w", err)
	}
	b.Log.Debug("derived", "parts", len(file.Parts.Hindsight)+len(file.Parts.Odds), "made_anew", d.anew)
	// Two that derive at once differ at most in made_at: whoever was first made what counts.
	if _, err := blob.Claim(ctx, b.Store, key, text); err != nil {
		return false, fmt.Errorf("derive: %w", err)
	}
	return true, nil
}

// derivedKey names what the odds and the record depend on: the archive, the model, what is
// verified, with its revision, and which rounds are still to be held.
func derivedKey(model predict.Model, facts archive.Stored, a *almanac.Almanac) string {
	h := sha256.New()
	h.Write(fmt.Appendln(nil, derivedFormat, facts.SHA256, model.Name(), a.Current))
	for i := range a.Years {
		y := &a.Years[i]
		if y.Year >= a.Current { // before a season's first qualifying it has no codes, and its odds cannot be published
			h.Write(fmt.Appendln(nil, y.Year, len(y.Codes())))
		}
		for j := range y.Rounds {
			r := &y.Rounds[j]
			revision := 0
			if r.Result != nil {
				revision = 1 + r.Result.Revision
			}
			h.Write(fmt.Appendln(nil, r.Session, revision, r.Off(), r.Pick != nil && r.Result != nil))
		}
	}
	return snapshots.DerivedFolder + hex.EncodeToString(h.Sum(nil)) + ".json"
}

// derived reads the data of a key, and whether anybody has made it; nil if not.
func (b *Builder) derived(ctx context.Context, key string) (data derivedData, made bool, err error) {
	b.deriving.Lock()
	defer b.deriving.Unlock()
	if b.deriving.key == key { // written once, so it is as it was
		return b.deriving.data, true, nil
	}
	file, err := b.readDerived(ctx, key)
	if errors.Is(err, blob.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	b.deriving.key, b.deriving.data = key, file.Data
	return file.Data, true, nil
}

// readDerived reads a file and remembers its parts. The caller holds b.deriving.
func (b *Builder) readDerived(ctx context.Context, key string) (file derivedFile, err error) {
	object, err := b.Store.Get(ctx, key, maxDerived)
	if err != nil {
		return file, fmt.Errorf("read what was derived: %w", err)
	}
	if err := json.Unmarshal(object.Data, &file); err != nil {
		return file, fmt.Errorf("read what was derived: %s: %w", key, err)
	}
	b.remember(file.Parts)
	return file, nil
}

// deriver makes the data from what is verified.
type deriver struct {
	archive *season.Archive
	view    *season.View
	almanac *almanac.Almanac
	model   *predict.Ranked
	inputs  *predict.Inputs
	known   parts // made before
	used    parts
	anew    int // of used, those that were not known
}

// deriver returns one that remembers what was derived from the facts before: in this process, or else
// in the store.
func (b *Builder) deriver(ctx context.Context, model predict.Model, facts archive.Stored) *deriver {
	b.deriving.Lock()
	defer b.deriving.Unlock()
	name := predict.V2
	if model.Name() == predict.R2 {
		name = predict.R2
	}
	if b.deriving.model == nil {
		b.rememberLatest(ctx)
	}
	if b.deriving.model == nil || b.deriving.model.Name() != name {
		b.deriving.model = predict.NewV2(predict.DefaultParams())
		if name == predict.R2 {
			b.deriving.model = predict.NewR2(predict.DefaultParams())
		}
	}
	if b.deriving.archive != facts.Archive {
		b.deriving.archive, b.deriving.inputs = facts.Archive, predict.NewInputs()
	}
	return &deriver{
		archive: facts.Archive, model: b.deriving.model, inputs: b.deriving.inputs,
		known: parts{Hindsight: maps.Clone(b.deriving.parts.Hindsight), Odds: maps.Clone(b.deriving.parts.Odds)},
		used:  parts{Hindsight: map[string]*hindsight{}, Odds: map[string]title.Odds{}},
	}
}

// rememberLatest reads the parts of what was derived last in the store: by whom else, or before the
// process was started. What cannot be read is made again.
func (b *Builder) rememberLatest(ctx context.Context) {
	var latest blob.Info
	for info, err := range b.Store.List(ctx, snapshots.DerivedFolder) {
		if err != nil {
			b.Log.Warn("what was derived before cannot be listed; all of it is made again", "err", err)
			return
		}
		if info.Modified.After(latest.Modified) {
			latest = info
		}
	}
	if latest.Key == "" {
		return
	}
	if _, err := b.readDerived(ctx, latest.Key); err != nil {
		b.Log.Warn("what was derived before cannot be read; all of it is made again", "err", err)
	}
}

// remembered returns a part that was made before, or makes it, and notes that it was used.
func remembered[T any](known, used map[string]T, anew *int, sum string, make func() (T, error)) (part T, err error) {
	part, ok := known[sum]
	if !ok {
		if part, err = make(); err != nil {
			return part, err
		}
		*anew++
	}
	used[sum] = part
	return part, nil
}

// sum is of all that the model looks at for a round of a view, and of what else a part depends on.
func (d *deriver) sum(v *season.View, year int, round season.GrandPrixID, also ...any) (string, error) {
	inputs, err := d.inputs.Sum(d.model, v, year, round)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Appendf(inputs[:], "%s %v", derivedFormat, also))
	return hex.EncodeToString(sum[:16]), nil
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
		for _, s := range y.Drivers() {
			if s.Position == 1 {
				odds.Drivers = append(odds.Drivers, wire.DriverOdds{
					Driver: y.Codes()[s.Driver.ID], Name: s.Driver.Name, Points: s.Points, TitlePct: 1000, PointsLow: s.Points, PointsHigh: s.Points,
				})
			}
		}
		for _, s := range y.Constructors() {
			if s.Position == 1 {
				odds.Constructors = append(odds.Constructors, wire.ConstructorOdds{
					Team: s.Team.Name, Points: s.Points, TitlePct: 1000, PointsLow: s.Points, PointsHigh: s.Points,
				})
			}
		}
		return odds, counted > 0, nil
	}
	config := title.DefaultConfig()
	s, _ := view.Season(y.Year)
	sum, err := d.sum(view, y.Year, s.Rounds[len(s.Rounds)-1].GrandPrix, config)
	if err != nil {
		return odds, false, err
	}
	simulated, err := remembered(d.known.Odds, d.used.Odds, &d.anew, sum, func() (title.Odds, error) { return title.Simulate(view, y.Year, d.model, config) })
	switch {
	case errors.Is(err, predict.ErrNoForm), errors.Is(err, predict.ErrNobody), errors.Is(err, title.ErrTooEarly):
		return odds, false, nil
	case err != nil:
		return odds, false, err
	}
	odds.Simulations = config.Runs
	for _, c := range simulated.Drivers {
		code, ok := y.Codes()[c.ID]
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
			for _, s := range y.Drivers() {
				r.DriverStandings = append(r.DriverStandings, season.DriverStanding{Driver: s.Driver.ID, Position: s.Position, Points: s.Points})
			}
			for _, s := range y.Constructors() {
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
	hindsight         *hindsight
	real              *backtest.Score // of the frozen pick; without its chances only hits
	realHasAllChances bool
}

// trackRecord makes the record of every season and of all.
func (d *deriver) trackRecord(ctx context.Context, data derivedData) error {
	races, err := d.scoreAll(ctx)
	if err != nil {
		return err
	}
	all := wire.TrackRecord{Real: recordOf(races, isReal), Hindsight: recordOf(races, isHindsight)}
	for i := range d.almanac.Years {
		year := d.almanac.Years[i].Year
		mine := slices.DeleteFunc(slices.Clone(races), func(s scored) bool { return s.year != year })
		body := wire.TrackRecord{Real: recordOf(mine, isReal), Hindsight: recordOf(mine, isHindsight)}
		if err := put(data, catalog.Variant{Endpoint: catalog.TrackRecord, Year: year}, body); err != nil {
			return err
		}
		for of, sum := range map[*wire.Record]wire.Record{&all.Real: body.Real, &all.Hindsight: body.Hindsight} {
			if sum.Races > 0 {
				of.Seasons = append(of.Seasons, wire.SeasonRecord{Year: year, Races: sum.Races, Picks: sum.Picks, Pole: sum.Pole, F0: sum.F0})
			}
		}
	}
	return put(data, catalog.Variant{Endpoint: catalog.TrackRecord}, all)
}

// scoreAll scores every race that has a verified result, in order: what was frozen, and from
// hindsightFrom on what the model says in hindsight, from what was known when the grid was.
func (d *deriver) scoreAll(ctx context.Context) ([]scored, error) {
	var races []scored
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
				then := d.archive.AsOf(r.Facts.GridKnownAt())
				sum, err := d.sum(then, y.Year, r.Facts.GrandPrix, podium)
				if err != nil {
					return nil, err
				}
				s.hindsight, err = remembered(d.known.Hindsight, d.used.Hindsight, &d.anew, sum, func() (h *hindsight, err error) {
					return d.lookBack(then, y.Year, r.Facts.GrandPrix, podium)
				})
				if err != nil {
					return nil, err
				}
			}
			races = append(races, s)
		}
	}
	return races, nil
}

// lookBack scores what would have been said of a race from a view of before it.
func (d *deriver) lookBack(then *season.View, year int, round season.GrandPrixID, podium season.Podium) (*hindsight, error) {
	e, err := d.model.Explain(then, year, round)
	if err != nil {
		return nil, err
	}
	first, err := predict.Pole().Predict(then, year, round)
	if err != nil {
		return nil, err
	}
	return &hindsight{
		Model: backtest.ScoreOf(e.Forecast, podium), Pole: backtest.ScoreOf(first, podium), F0: backtest.ScoreOf(e.Qualified(), podium),
	}, nil
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

// score is that of the pick of a kind.
func (s *scored) score(k kind) backtest.Score {
	if k == isReal {
		return *s.real
	}
	return s.hindsight.Model
}

// recordOf sums up the races of a kind.
func recordOf(races []scored, k kind) wire.Record {
	var mine []scored
	for _, s := range races {
		if k == isReal && s.real != nil || k == isHindsight && s.hindsight != nil {
			mine = append(mine, s)
		}
	}
	record := wire.Record{Races: len(mine)}
	if len(mine) == 0 {
		return record
	}
	var picked []backtest.Score
	for _, s := range mine {
		score := s.score(k)
		picked = append(picked, score)
		if k == isHindsight || s.realHasAllChances {
			record.RacesWithChances++
		}
	}
	record.Picks, record.Pole, record.F0 = scoresOf(mine, k)
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
		score := s.score(k)
		all = append(all, score)
		if k == isHindsight || s.realHasAllChances {
			withChances = append(withChances, score)
		}
		if s.hindsight != nil {
			poles, f0s = append(poles, s.hindsight.Pole), append(f0s, s.hindsight.F0)
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
	m := backtest.WithoutCalibration(all)
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
	if len(withChances) < len(all) { // else they are the same
		m = backtest.WithoutCalibration(withChances)
	}
	number := func(v float64, i backtest.Interval) *wire.NumberInterval {
		return &wire.NumberInterval{Value: wire.ThousandthsOf(v), Low: wire.ThousandthsOf(i[0]), High: wire.ThousandthsOf(i[1])}
	}
	s.LogLoss, s.Brier = number(m.LogLoss, m.Intervals.LogLoss), number(m.Brier, m.Intervals.Brier)
	return s
}
