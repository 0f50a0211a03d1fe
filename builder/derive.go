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
	"strings"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/ledger"
	"gridcast/builder/live"
	"gridcast/builder/predict"
	"gridcast/builder/predict/backtest"
	"gridcast/builder/predict/title"
	"gridcast/builder/season"
	"gridcast/builder/source"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
)

// DerivedReason is the reason of a version that only adds documents derived from an earlier one.
const DerivedReason = "forecast, title odds and track record"

const (
	maxDerived = 16 << 20 // bytes, packed; all seasons take 50,000

	// derivedFormat changes with every release that derives other data from the same facts.
	derivedFormat = "derived-4"

	// hindsightFrom is the first season of the record in hindsight.
	hindsightFrom = 2010
)

// derivedData is the data of the variants that Derive makes, by path.
type derivedData map[string]json.RawMessage

// derivedFile is the content of an object below snapshots.DerivedFolder. derivedKey makes its key.
type derivedFile struct {
	snapshots.Derivation

	Data   derivedData `json:"data"`
	Shared string      `json:"shared"` // key of an object with more parts
	Parts  parts       `json:"parts"`
}

// parts are the results of long computations, by the digest of their inputs. Derive computes a part
// only if no earlier file has one with the same inputs.
type parts struct {
	Hindsight map[string]*hindsight `json:"hindsight"`
	Odds      map[string]title.Odds `json:"odds"`
	Live      map[string][]livePick `json:"live,omitzero"`
}

func (p parts) len() int { return len(p.Hindsight) + len(p.Odds) + len(p.Live) }

// hindsight scores three forecasts of a race that were made after it, from the facts that were known
// when the grid was.
type hindsight struct {
	Model backtest.Score `json:"model"`
	Pole  backtest.Score `json:"pole"`
	F0    backtest.Score `json:"f0"`
}

// maxParts is the number of parts that a builder remembers: decades of races under many archives.
const maxParts = 20_000

// remember adds parts that were made, or read from the store. The caller holds b.deriving.
func (b *Builder) remember(p parts) {
	known := &b.deriving.parts
	if known.Hindsight == nil || known.len() > maxParts {
		*known = parts{Hindsight: map[string]*hindsight{}, Odds: map[string]title.Odds{}, Live: map[string][]livePick{}}
	}
	maps.Copy(known.Hindsight, p.Hindsight)
	maps.Copy(known.Odds, p.Odds)
	maps.Copy(known.Live, p.Live)
}

// Derive makes the forecasts, the title odds and the track record of the version that Build publishes at an
// instant, unless the store has them. It first notes in the ledger the forecasts that are due. It returns true if a build would now publish other documents. The first
// call takes some seconds of one processor, a later one only the time for changed inputs. Builds never wait
// for Derive: versions keep the earlier derived documents until it has run. Several processes may call it
// at once, because they make the same bytes.
func (b *Builder) Derive(ctx context.Context, at time.Time) (bool, error) {
	facts, err := b.Facts(ctx)
	if err != nil {
		return false, fmt.Errorf("derive: %w", err)
	}
	fresh, err := b.Ledger.Refresh(ctx)
	if err != nil {
		return false, fmt.Errorf("derive: %w", err)
	}
	model := b.Rules(ctx).Model
	if err := noteForecasts(ctx, fresh, model, facts, at); err != nil {
		b.Log.Error("the ledger has no forecast of this step of the week, so the track record will lack it; the next version tries again", "err", err)
	}
	in := Inputs{At: at, Facts: facts, Ledger: b.Ledger.Current(at), Model: model}
	a := almanac.Join(facts.Archive.AsOf(at), in.Ledger)
	key := derivedKey(in.Model, facts, a)
	if _, made, err := b.derived(ctx, key); err != nil || made {
		return false, err
	}
	b.deriving.Lock()
	if b.deriving.sharedKey == "" {
		b.rememberLatest(ctx)
	}
	b.deriving.Unlock()
	file, err := b.derive(ctx, in, a)
	if err == nil {
		err = b.share(ctx, &file)
	}
	if err != nil {
		return false, fmt.Errorf("derive: %w", err)
	}
	packed, err := source.Pack(file)
	if err != nil {
		return false, fmt.Errorf("derive: %w", err)
	}
	// Two files with this key differ at most in the ledger's head and made_at, so the first one stays.
	if _, err := blob.Claim(ctx, b.Store, key, packed); err != nil {
		return false, fmt.Errorf("derive: %w", err)
	}
	return true, nil
}

// derive makes the derived data of inputs and their almanac. It computes no part that this builder remembers.
func (b *Builder) derive(ctx context.Context, in Inputs, a *almanac.Almanac) (derivedFile, error) {
	d := b.deriver(in.Model, in.Facts)
	d.view, d.almanac, d.observed, d.driver = in.Facts.Archive.AsOf(in.At), a, b.Observed(), in.Ledger.Driver
	file := derivedFile{Data: derivedData{}, Parts: d.used, Derivation: snapshots.Derivation{
		Archive: in.Facts.SHA256, Ledger: headOf(in.Ledger), Model: in.Model.Name(), MadeAt: in.At.UTC(),
	}}
	if err := errors.Join(d.forecasts(ctx, in.Ledger, in.Model, file.Data), d.trackRecord(ctx, file.Data), d.titleOdds(ctx, file.Data)); err != nil {
		return derivedFile{}, err
	}
	b.deriving.Lock()
	defer b.deriving.Unlock()
	b.remember(d.used)
	b.Log.Debug("derived", "parts", d.used.len(), "made_anew", d.anew)
	return file, nil
}

// share takes the parts out of a file that an object in the store has. It writes another object once a file would
// repeat an eighth of them, because most parts are of races long ago.
func (b *Builder) share(ctx context.Context, file *derivedFile) error {
	b.deriving.Lock()
	defer b.deriving.Unlock()
	memory := &b.deriving
	more := parts{maps.Clone(file.Parts.Hindsight), maps.Clone(file.Parts.Odds), maps.Clone(file.Parts.Live)}
	maps.DeleteFunc(more.Hindsight, func(sum string, _ *hindsight) bool { return memory.shared.Hindsight[sum] != nil })
	maps.DeleteFunc(more.Odds, func(sum string, _ title.Odds) bool { _, ok := memory.shared.Odds[sum]; return ok })
	maps.DeleteFunc(more.Live, func(sum string, _ []livePick) bool { return memory.shared.Live[sum] != nil })
	if 8*more.len() > memory.shared.len() {
		packed, err := source.Pack(file.Parts)
		if err != nil {
			return err
		}
		key := snapshots.SharedFolder + source.Sum(packed) + ".zst"
		if _, err := blob.Claim(ctx, b.Store, key, packed); err != nil {
			return err
		}
		memory.sharedKey, memory.shared, more = key, file.Parts, parts{}
	}
	file.Shared, file.Parts = memory.sharedKey, more
	return nil
}

// headOf is the head of a ledger as versions name it.
func headOf(s *ledger.Fold) snapshots.Ledger {
	return snapshots.Ledger{Kind: string(s.Kind()), Seq: s.Head().Seq, Hash: s.Head().Hash}
}

// derivedKey is the store key of the derived documents. It is a digest of everything that they depend
// on: the archive, the model, the revision of each verified result, the races that have ended, and the
// state of knowledge about the rounds that are still to come.
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
			ended := r.Facts.Finished() && !a.At.Before(r.End())
			h.Write(fmt.Appendln(nil, r.Session, revision, r.Off(), r.Pick != nil && r.Result != nil, ended))
		}
	}
	for _, r := range a.Coming() {
		h.Write(fmt.Appendln(nil, r.Session, foreknown(r, a.At)))
	}
	return snapshots.DerivedFolder + hex.EncodeToString(h.Sum(nil)) + ".zst"
}

// derived reads the file of a key. made is false if the store has none yet.
func (b *Builder) derived(ctx context.Context, key string) (file derivedFile, made bool, err error) {
	b.deriving.Lock()
	defer b.deriving.Unlock()
	if b.deriving.key == key { // the object never changes
		return b.deriving.file, true, nil
	}
	file, err = b.readDerived(ctx, key)
	if errors.Is(err, blob.ErrNotFound) {
		return file, false, nil
	}
	if err != nil {
		return file, false, err
	}
	b.deriving.key, b.deriving.file = key, file
	return file, true, nil
}

// readDerived reads a file and remembers its parts. The caller holds b.deriving.
func (b *Builder) readDerived(ctx context.Context, key string) (file derivedFile, err error) {
	if err = b.unpackDerived(ctx, key, &file); err == nil {
		b.remember(file.Parts)
	}
	return file, err
}

func (b *Builder) unpackDerived(ctx context.Context, key string, into any) error {
	object, err := b.Store.Get(ctx, key, maxDerived)
	if err != nil {
		return fmt.Errorf("read derived documents: %w", err)
	}
	if err := source.Unpack(object.Data, into); err != nil {
		return fmt.Errorf("read derived documents: %s: %w", key, err)
	}
	return nil
}

// deriver makes derived data from verified results.
type deriver struct {
	archive *season.Archive
	view    *season.View
	almanac *almanac.Almanac
	model   *predict.Ranked
	inputs  *predict.Inputs
	known   parts // made before
	used    parts
	anew    int // how many of used are new

	observed *live.Log
	driver   func(season.DriverID) season.DriverID // the present id of a driver
}

// deriver returns a deriver with the parts that this builder remembers.
func (b *Builder) deriver(model predict.Model, facts archive.Stored) *deriver {
	b.deriving.Lock()
	defer b.deriving.Unlock()
	name := predict.V2
	if model.Name() == predict.R2 {
		name = predict.R2
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
		known: parts{Hindsight: maps.Clone(b.deriving.parts.Hindsight), Odds: maps.Clone(b.deriving.parts.Odds), Live: maps.Clone(b.deriving.parts.Live)},
		used:  parts{Hindsight: map[string]*hindsight{}, Odds: map[string]title.Odds{}, Live: map[string][]livePick{}},
	}
}

// rememberLatest reads the parts of the latest file in the store, which another process may have written.
// If it cannot read them, they are computed again. The caller holds b.deriving.
func (b *Builder) rememberLatest(ctx context.Context) {
	var latest blob.Info
	for info, err := range b.Store.List(ctx, snapshots.DerivedFolder) {
		if err != nil {
			b.Log.Warn("derived documents cannot be listed; all of them are computed again", "err", err)
			return
		}
		if !strings.HasPrefix(info.Key, snapshots.SharedFolder) && info.Modified.After(latest.Modified) {
			latest = info
		}
	}
	if latest.Key == "" {
		return
	}
	file, err := b.readDerived(ctx, latest.Key)
	var shared parts
	if err == nil {
		err = b.unpackDerived(ctx, file.Shared, &shared)
	}
	if err != nil {
		b.Log.Warn("derived documents cannot be read; all of them are computed again", "err", err)
		return
	}
	b.remember(shared)
	b.deriving.sharedKey, b.deriving.shared = file.Shared, shared
}

// remembered returns a known part, or makes it. It adds the part to used.
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

// sum is the digest of everything that a part depends on: the model's inputs for a round, and also.
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

// titleOdds makes the odds of every season that drivers have taken part in.
func (d *deriver) titleOdds(ctx context.Context, data derivedData) error {
	for i := range d.almanac.Years {
		y := &d.almanac.Years[i]
		odds, ok, err := d.oddsOf(ctx, y)
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

// oddsOf returns the odds of a season, and false if it is too early for any.
func (d *deriver) oddsOf(ctx context.Context, y *almanac.Year) (wire.TitleOdds, bool, error) {
	odds := wire.TitleOdds{Drivers: []wire.DriverOdds{}, Constructors: []wire.ConstructorOdds{}}
	held, counted := heldRounds(y)
	odds.RacesCounted, odds.RacesRemaining = counted, len(held)-counted
	if y.Year >= d.almanac.Current {
		var err error
		if odds.AfterRounds, err = d.oddsAfter(ctx, y, held[:min(counted, len(held)-1)]); err != nil {
			return odds, false, err
		}
	}
	if odds.RacesRemaining == 0 {
		for _, s := range y.Drivers() {
			if s.Position == 1 {
				odds.Drivers = append(odds.Drivers, wire.DriverOdds{
					Driver: y.Codes()[s.Driver.ID], DriverID: d.almanac.Lasting(s.Driver.ID), Name: s.Driver.Name, Points: s.Points, TitlePct: 1000, PointsLow: s.Points, PointsHigh: s.Points, PointsMost: s.Points,
				})
			}
		}
		for _, s := range y.Constructors() {
			if s.Position == 1 {
				odds.Constructors = append(odds.Constructors, wire.ConstructorOdds{
					Team: s.Team.Name, TeamID: string(s.Team.ID), Points: s.Points, TitlePct: 1000, PointsLow: s.Points, PointsHigh: s.Points, PointsMost: s.Points,
				})
			}
		}
		return odds, counted > 0, nil
	}
	simulated, ok, err := d.simulated(ctx, d.verified(y, held, counted, true), y.Year)
	if err != nil || !ok {
		return odds, false, err
	}
	odds.Simulations = title.DefaultConfig().Runs
	for _, c := range simulated.Drivers {
		code, ok := y.Codes()[c.ID]
		if !ok {
			return odds, false, nil // codes are assigned at the first qualifying of a season
		}
		odds.Drivers = append(odds.Drivers, wire.DriverOdds{
			Driver: code, DriverID: d.almanac.Lasting(c.ID), Name: d.view.Drivers[c.ID].Name, Points: c.Points, TitlePct: wire.PercentFrom(c.Title), PointsLow: c.Low, PointsHigh: c.High, PointsMost: c.Most,
		})
	}
	for _, c := range simulated.Teams {
		odds.Constructors = append(odds.Constructors, wire.ConstructorOdds{
			Team: d.view.Teams[c.ID].Name, TeamID: string(c.ID), Points: c.Points, TitlePct: wire.PercentFrom(c.Title), PointsLow: c.Low, PointsHigh: c.High, PointsMost: c.Most,
		})
	}
	return odds, true, nil
}

// oddsAfter returns the odds as they were after each of the first rounds of a season, when nothing of the next was
// known: until then, the last of them are the present odds. It leaves out rounds that were too early for odds.
func (d *deriver) oddsAfter(ctx context.Context, y *almanac.Year, counted []almanac.Round) (series []wire.RoundOdds, err error) {
	held, _ := heldRounds(y)
	for n, r := range counted {
		simulated, ok, err := d.simulated(ctx, d.verified(y, held, n+1, false), y.Year)
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
			after.Constructors = append(after.Constructors, wire.ConstructorTitle{Team: d.view.Teams[c.ID].Name, TeamID: string(c.ID), TitlePct: wire.PercentFrom(c.Title)})
		}
		series = append(series, after)
	}
	return series, nil
}

// simulated returns the odds of a season in a view, and false if it is too early for any.
func (d *deriver) simulated(ctx context.Context, v *season.View, year int) (title.Odds, bool, error) {
	if err := ctx.Err(); err != nil {
		return title.Odds{}, false, err
	}
	config := title.DefaultConfig()
	s, _ := v.Season(year)
	sum, err := d.sum(v, year, s.Rounds[len(s.Rounds)-1].GrandPrix, config)
	if err != nil {
		return title.Odds{}, false, err
	}
	odds, err := remembered(d.known.Odds, d.used.Odds, &d.anew, sum, func() (title.Odds, error) { return title.Simulate(v, year, d.model, config) })
	if errors.Is(err, predict.ErrNoForm) || errors.Is(err, predict.ErrNobody) || errors.Is(err, title.ErrTooEarly) {
		return odds, false, nil
	}
	return odds, err == nil, err
}

// heldRounds returns the rounds of a season that are held, in order of their start, and the number of verified ones
// before the first without a verified result.
func heldRounds(y *almanac.Year) (held []almanac.Round, counted int) {
	held = slices.DeleteFunc(slices.Clone(y.Rounds), func(r almanac.Round) bool { return r.Off() })
	slices.SortStableFunc(held, func(a, b almanac.Round) int { return a.Start.Compare(b.Start) })
	for counted < len(held) && held[counted].Result != nil {
		counted++
	}
	return held, counted
}

// verified returns the view in which the first rounds of a season count, with the published standings and
// corrections. The others are still to come, with the known facts of their weekends or without them.
func (d *deriver) verified(y *almanac.Year, held []almanac.Round, counted int, known bool) *season.View {
	rounds := make([]season.Round, len(held))
	for i := range held {
		r := *held[i].Facts
		r.Start = held[i].Start
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
				r.TeamStandings = append(r.TeamStandings, season.TeamStanding{Team: s.Team.ID, Position: s.Position, Points: s.Points})
			}
		}
		rounds[i] = r
	}
	w := *d.view
	w.Seasons = slices.Clone(w.Seasons)
	if s, ok := w.Season(y.Year); ok {
		s.Rounds = rounds
	}
	return &w
}

// scored is a race with a verified result and the scores of its forecasts.
type scored struct {
	year              int
	hindsight         *hindsight
	real              *backtest.Score // of the frozen pick; a pick without chances has only hits
	realHasAllChances bool

	// The scores of the frozen pick, if it has all chances, and of the noted forecasts: by basis, the last one counts.
	asFrozen, noted map[string]backtest.Score
	live            []livePick
}

// trackRecord makes the record of every season and of all.
func (d *deriver) trackRecord(ctx context.Context, data derivedData) error {
	races, err := d.scoreAll(ctx)
	if err != nil {
		return err
	}
	all := wire.TrackRecord{Real: realRecord(races), Hindsight: recordOf(races, isHindsight)}
	for i := range d.almanac.Years {
		year := d.almanac.Years[i].Year
		mine := slices.DeleteFunc(slices.Clone(races), func(s scored) bool { return s.year != year })
		body := wire.TrackRecord{Real: realRecord(mine), Hindsight: recordOf(mine, isHindsight)}
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

// scoreAll scores every race with a verified result, in order: the frozen pick, and from hindsightFrom on
// the model's forecast from the facts that were known when the grid was.
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
			s := scored{year: y.Year, asFrozen: map[string]backtest.Score{}, noted: map[string]backtest.Score{}}
			if r.Pick != nil {
				score := backtest.ScoreOf(frozenForecast(r.Pick), podium)
				if s.real, s.realHasAllChances = &score, r.Pick.Chances != nil; s.realHasAllChances {
					s.asFrozen[string(r.Pick.Basis)] = score
				}
			}
			for _, f := range r.Record.Forecasts {
				if f.At.Before(r.Start) {
					s.noted[basisOf(f.Step)] = backtest.ScoreOf(notedForecast(f), podium)
				}
			}
			var err error
			if s.live, err = d.scoreLive(ctx, r, podium); err != nil {
				return nil, err
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

// lookBack scores the forecasts of a race from a view before it.
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

// frozenForecast returns a frozen pick as a forecast. A pick without chances has the winner alone.
func frozenForecast(p *ledger.FrozenPick) predict.Forecast {
	f := predict.Forecast{Podium: almanac.Picked(p), Candidates: candidates(p.Chances)}
	if p.Chances == nil {
		f.Candidates = []predict.Candidate{{Driver: p.P1, Win: p.WinProbability}}
	}
	return f
}

func candidates(chances []ledger.Chance) (all []predict.Candidate) {
	for _, c := range chances {
		all = append(all, predict.Candidate{Driver: c.Driver, Win: float64(c.Win) / ledger.Certain, Podium: float64(c.Podium) / ledger.Certain})
	}
	return all
}

// kind tells the two records apart.
type kind int

const (
	isReal kind = iota
	isHindsight
)

// score returns the score of the forecast of a kind.
func (s *scored) score(k kind) backtest.Score {
	if k == isReal {
		return *s.real
	}
	return s.hindsight.Model
}

// realRecord sums up the picks and the noted forecasts.
func realRecord(races []scored) wire.Record {
	record := recordOf(races, isReal)
	record.AsFrozen = recordsByBasis(races, func(s scored) map[string]backtest.Score { return s.asFrozen })
	record.Forecasts = recordsByBasis(races, func(s scored) map[string]backtest.Score { return s.noted })
	record.Live = liveRecords(races)
	return record
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
	record.Reliability = wireBins(picked)
	return record
}

// wireBins compares the chances of the picked winners with the shares of them that won.
func wireBins(picked []backtest.Score) (bins []wire.ReliabilityBin) {
	for _, b := range backtest.Reliability(picked) {
		bins = append(bins, wire.ReliabilityBin{
			Races: b.Races, SaidPct: wire.PercentFrom(b.Said), WonPct: wire.PercentFrom(b.Won),
			LowPct: wire.PercentFrom(b.Interval[0]), HighPct: wire.PercentFrom(b.Interval[1]),
		})
	}
	return bins
}

// scoresOf returns the scores of the picks, of pole and of f0 on the same races. pole and f0 are nil
// unless every race has their forecasts.
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

// wireScores sums up hits over all races, and log-loss and Brier over the races with all chances.
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
	if len(withChances) < len(all) { // else m covers the same races
		m = backtest.WithoutCalibration(withChances)
	}
	number := func(v float64, i backtest.Interval) *wire.NumberInterval {
		return &wire.NumberInterval{Value: wire.ThousandthsOf(v), Low: wire.ThousandthsOf(i[0]), High: wire.ThousandthsOf(i[1])}
	}
	s.LogLoss, s.Brier = number(m.LogLoss, m.Intervals.LogLoss), number(m.Brier, m.Intervals.Brier)
	return s
}
