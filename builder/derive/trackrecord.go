package derive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"gridcast/builder/almanac"
	"gridcast/builder/picks"
	"gridcast/builder/predict"
	"gridcast/builder/predict/score"
	"gridcast/builder/season"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// hindsightFrom is the first season of the record in hindsight.
const hindsightFrom = 2010

// hindsight scores three forecasts of a race that were made after it, from the facts that were known
// when the grid was.
type hindsight struct {
	Model score.Score `json:"model"`
	Pole  score.Score `json:"pole"`
	F0    score.Score `json:"f0"`
}

// scored is a race with a verified result and the scores of its forecasts.
type scored struct {
	year              int
	hindsight         *hindsight
	real              *score.Score // of the frozen pick; a pick without chances has only hits
	realHasAllChances bool

	// The scores of the frozen pick, if it has all chances, and of the noted forecasts: by basis, the last one counts.
	asFrozen, noted map[string]score.Score
	live            []livePick
}

// trackRecord makes the record of every season and of all.
func (w *work) trackRecord(ctx context.Context, data Data) error {
	races, err := w.scoreAll(ctx)
	if err != nil {
		return err
	}
	all := wire.TrackRecord{Real: realRecord(races), Hindsight: recordOf(races, ofHindsight)}
	for _, y := range w.almanac.Years {
		year := y.Year
		mine := slices.DeleteFunc(slices.Clone(races), func(s scored) bool { return s.year != year })
		body := wire.TrackRecord{Real: realRecord(mine), Hindsight: recordOf(mine, ofHindsight)}
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
func (w *work) scoreAll(ctx context.Context) ([]scored, error) {
	var races []scored
	for _, y := range w.almanac.Years {
		for _, r := range y.Rounds {
			if r.Result == nil || y.Year < hindsightFrom && r.Pick == nil {
				continue
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			podium := almanac.Podium(r.Result.Rows)
			s := scored{year: y.Year, asFrozen: map[string]score.Score{}, noted: map[string]score.Score{}}
			if r.Pick != nil {
				frozen := score.Of(picks.Frozen(r.Pick), podium)
				if s.real, s.realHasAllChances = &frozen, r.Pick.Chances != nil; s.realHasAllChances {
					s.asFrozen[string(r.Pick.Basis)] = frozen
				}
			}
			for _, f := range r.Record.Forecasts {
				if f.At.Before(r.Start) {
					s.noted[almanac.BasisOf(f.Step)] = score.Of(picks.Noted(f), podium)
				}
			}
			var err error
			if s.live, err = w.scoreLive(ctx, r, podium); err != nil {
				return nil, err
			}
			if y.Year >= hindsightFrom && len(r.Facts.Grid) > 0 {
				then := almanac.Entered(w.archive.AsOf(r.Facts.GridKnownAt()), w.ledger)
				sum, err := w.sum(then, y.Year, r.Facts.GrandPrix, podium)
				if err != nil {
					return nil, err
				}
				made, err := w.memo(sum, func() (memo, error) { return w.lookBack(then, y.Year, r.Facts.GrandPrix, podium) })
				if err != nil {
					return nil, err
				}
				s.hindsight = made.Hindsight
			}
			races = append(races, s)
		}
	}
	return races, nil
}

// lookBack scores the forecasts of a race from a view before it.
func (w *work) lookBack(then *season.View, year int, round season.GrandPrixID, podium season.Podium) (memo, error) {
	e, err := w.model.Explain(then, year, round)
	if err != nil {
		return memo{}, err
	}
	first, err := predict.Pole().Predict(then, year, round)
	if err != nil {
		return memo{}, err
	}
	return memo{Hindsight: &hindsight{
		Model: score.Of(e.Forecast, podium), Pole: score.Of(first, podium), F0: score.Of(e.Qualified(), podium),
	}}, nil
}

// ofReal and ofHindsight return the score of a race in one of the two records, nil if it has none, and whether the
// forecast has all chances.
func ofReal(s *scored) (*score.Score, bool) { return s.real, s.realHasAllChances }

func ofHindsight(s *scored) (*score.Score, bool) {
	if s.hindsight == nil {
		return nil, false
	}
	return &s.hindsight.Model, true
}

// realRecord sums up the picks and the noted forecasts.
func realRecord(races []scored) wire.Record {
	record := recordOf(races, ofReal)
	record.AsFrozen = recordsByBasis(races, func(s scored) map[string]score.Score { return s.asFrozen })
	record.Forecasts = recordsByBasis(races, func(s scored) map[string]score.Score { return s.noted })
	record.Live = liveRecords(races)
	return record
}

// recordOf sums up the races with a score. It leaves out pole and f0 unless every race has their forecasts.
func recordOf(races []scored, of func(*scored) (own *score.Score, allChances bool)) wire.Record {
	var all, withChances, poles, f0s []score.Score
	for i := range races {
		s := &races[i]
		own, allChances := of(s)
		if own == nil {
			continue
		}
		all = append(all, *own)
		if allChances {
			withChances = append(withChances, *own)
		}
		if s.hindsight != nil {
			poles, f0s = append(poles, s.hindsight.Pole), append(f0s, s.hindsight.F0)
		}
	}
	record := wire.Record{Races: len(all), RacesWithChances: len(withChances)}
	if len(all) == 0 {
		return record
	}
	record.Picks, record.Reliability = wireScores(all, withChances), wireBins(all)
	if len(poles) == len(all) {
		record.Pole, record.F0 = wireScores(poles, poles), wireScores(f0s, f0s)
	}
	return record
}

// wireBins compares the chances of the picked winners with the shares of them that won.
func wireBins(picked []score.Score) (bins []wire.ReliabilityBin) {
	for _, b := range score.Reliability(picked) {
		bins = append(bins, wire.ReliabilityBin{
			Races: b.Races, SaidPct: wire.PercentFrom(b.Said), WonPct: wire.PercentFrom(b.Won),
			LowPct: wire.PercentFrom(b.Interval[0]), HighPct: wire.PercentFrom(b.Interval[1]),
		})
	}
	return bins
}

// wireScores sums up hits over all races, and log-loss and Brier over the races with all chances.
func wireScores(all, withChances []score.Score) *wire.Scores {
	m := score.NewMetrics(all)
	percent := func(e score.Estimate) wire.PercentInterval {
		return wire.PercentInterval{
			Value: wire.PercentFrom(e.Value / 100), Low: wire.PercentFrom(e.Interval[0] / 100), High: wire.PercentFrom(e.Interval[1] / 100),
		}
	}
	s := &wire.Scores{WinnerHitPct: percent(m.WinnerHitPct), PodiumPct: percent(m.PodiumPct)}
	if len(withChances) == 0 {
		return s
	}
	if len(withChances) < len(all) { // else m covers the same races
		m = score.NewMetrics(withChances)
	}
	number := func(e score.Estimate) *wire.NumberInterval {
		return &wire.NumberInterval{Value: wire.ThousandthsOf(e.Value), Low: wire.ThousandthsOf(e.Interval[0]), High: wire.ThousandthsOf(e.Interval[1])}
	}
	s.LogLoss, s.Brier = number(m.LogLoss), number(m.Brier)
	return s
}

// livePick holds the scores of a live pick, and of two simpler picks of the same race: the first three at that moment, and
// the pick before the race.
type livePick struct {
	Percent int         `json:"checkpoint_pct"`
	ByHand  bool        `json:"by_hand,omitzero"` // a person entered the order
	Pick    score.Score `json:"pick"`
	Leader  score.Score `json:"leader"`
	Before  score.Score `json:"before"`
}

// scoreLive scores the live picks of a verified race. The audit names a pick that has lost its observation; it has no score.
func (w *work) scoreLive(ctx context.Context, r *almanac.Round, podium season.Podium) ([]livePick, error) {
	if len(r.Record.Live) == 0 || r.Pick == nil {
		return nil, nil
	}
	h := sha256.New()
	h.Write(fmt.Appendln(nil, format, r.Pick.EventID, podium))
	for i := range r.Record.Live {
		h.Write(fmt.Appendln(nil, r.Record.Live[i].EventID))
	}
	made, err := w.memo(hex.EncodeToString(h.Sum(nil)[:16]), func() (made memo, err error) {
		tape, err := w.observed.Refresh(ctx, r.Session)
		if err != nil {
			return made, err
		}
		for i := range r.Record.Live {
			p := &r.Record.Live[i]
			seen := tape.UpTo(p.Observation.SHA256)
			if seen == nil {
				continue
			}
			order := seen.Observations[len(seen.Observations)-1]
			leading := predict.Forecast{Candidates: []predict.Candidate{{Driver: w.ledger.Driver(order.Cars[0].Driver), Win: 1}}}
			for place := range min(len(order.Cars), len(leading.Podium)) {
				leading.Podium[place] = w.ledger.Driver(order.Cars[place].Driver)
			}
			made.Live = append(made.Live, livePick{
				Percent: p.Checkpoint, ByHand: order.Hand, Pick: score.Of(picks.Frozen(p), podium),
				Leader: score.Of(leading, podium), Before: score.Of(picks.Frozen(r.Pick), podium),
			})
		}
		return made, nil
	})
	return made.Live, err
}

// liveRecords sums up the live picks of races by checkpoint. Picks from orders by hand have rows of their own.
func liveRecords(races []scored) (records []wire.LiveRecord) {
	for _, percent := range predict.Checkpoints {
		for _, byHand := range []bool{false, true} {
			var picks, leader, before []score.Score
			for _, race := range races {
				for _, p := range race.live {
					if p.Percent == percent && p.ByHand == byHand {
						picks, leader, before = append(picks, p.Pick), append(leader, p.Leader), append(before, p.Before)
					}
				}
			}
			if len(picks) > 0 {
				records = append(records, wire.LiveRecord{
					Percent: percent, ByHand: byHand, Races: len(picks), Picks: wireScores(picks, picks), Leader: wireScores(leader, nil),
					Before: wireScores(before, before), Reliability: wireBins(picks),
				})
			}
		}
	}
	return records
}
