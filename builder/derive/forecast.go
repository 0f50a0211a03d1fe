package derive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/ledger"
	"gridcast/builder/picks"
	"gridcast/builder/predict"
	"gridcast/builder/predict/score"
	"gridcast/builder/season"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// weekSteps are the steps of a race week, the last one first.
var weekSteps = []season.SessionKind{
	ledger.StepGrid, season.Qualifying, season.Sprint, season.SprintQualifying,
	season.Practice4, season.Practice3, season.Practice2, season.Practice1, ledger.StepForm,
}

// bases are the bases of forecasts, in the order in which a week gives them.
var bases = []string{"form", "practice", "sprint", "qualifying", "grid"}

// recordsByBasis sums up the races that have a score for a basis.
func recordsByBasis(races []scored, of func(scored) map[string]score.Score) (records []wire.BasisRecord) {
	for _, basis := range bases {
		var scores []score.Score
		for _, race := range races {
			if own, ok := of(race)[basis]; ok {
				scores = append(scores, own)
			}
		}
		if len(scores) > 0 {
			records = append(records, wire.BasisRecord{Basis: basis, Races: len(scores), Picks: wireScores(scores, scores)})
		}
	}
	return records
}

// stepOf returns the latest step of which a round's facts are known.
func stepOf(r *season.Round) season.SessionKind {
	for _, s := range weekSteps {
		if s == ledger.StepGrid && len(r.Grid) > 0 || r.TookPlace(s) {
			return s
		}
	}
	return ledger.StepForm
}

// nextSession returns the first session of the weekend whose outcome is still to come, nil if there is none.
func nextSession(r *almanac.Round, at time.Time) *season.Session {
	var next *season.Session
	for i := range r.Facts.Sessions {
		s := &r.Facts.Sessions[i]
		known := r.Facts.SessionKnownAt(s.Kind)
		if !r.Facts.TookPlace(s.Kind) && at.Before(known) && known.Before(r.Start) && (next == nil || known.Before(r.Facts.SessionKnownAt(next.Kind))) {
			next = s
		}
	}
	return next
}

// foreknown describes the state of knowledge about a round, as far as it depends on the instant: with the
// archive and the model it determines the forecast.
func foreknown(r *almanac.Round, at time.Time) string {
	known := []string{r.Start.UTC().Format(time.RFC3339), fmt.Sprint(r.Provisional, len(r.Facts.Entries), len(r.Facts.Grid))}
	for _, s := range weekSteps {
		if r.Facts.TookPlace(s) {
			known = append(known, string(s))
		}
	}
	if next := nextSession(r, at); next != nil {
		known = append(known, "before "+string(next.Kind))
	}
	return strings.Join(known, " ")
}

// foresight returns the view from which coming rounds are forecast: the one of the picks and, in a real
// service, with the entry lists in the archive. Somebody entered these lists because they are known. The
// archive of a replay also has lists of its future, so there they come with qualifying.
func foresight(v *season.View, s *ledger.Fold, facts *season.Archive) *season.View {
	ahead := almanac.Raced(v, s)
	if s.Kind() != ledger.Real {
		return ahead
	}
	ahead.Drivers = maps.Clone(ahead.Drivers)
	for _, known := range facts.Facts().Seasons {
		year, ok := ahead.Season(known.Year)
		if !ok || known.Year < v.At.UTC().Year() {
			continue
		}
		year.Rounds = slices.Clone(year.Rounds)
		for i := range year.Rounds {
			r := &year.Rounds[i]
			listed, ok := known.Round(r.GrandPrix)
			if r.Entries != nil || !ok {
				continue
			}
			r.Entries = listed.Entries
			for _, e := range r.Entries {
				ahead.Drivers[e.Driver] = v.Driver(e.Driver)
			}
		}
	}
	return ahead
}

// foresee returns the forecast of a round, and false if too few drivers are known for one.
func foresee(model predict.Model, v *season.View, r *almanac.Round) (predict.Forecast, bool, error) {
	f, err := model.Predict(v, r.Year, r.Facts.GrandPrix)
	if errors.Is(err, predict.ErrNobody) {
		return f, false, nil
	}
	return f, err == nil && f.Pickable() == nil, err
}

// NoteForecasts appends the forecast of each coming race to the ledger, once for each session of its weekend,
// and once when the weekend begins.
func NoteForecasts(ctx context.Context, fresh ledger.Fresh, model predict.Model, facts archive.Stored, at time.Time) error {
	v := facts.Archive.AsOf(at)
	_, err := fresh.Append(ctx, at, ledger.BuilderActor, func(s *ledger.Fold) (noted []ledger.Event, err error) {
		ahead := foresight(v, s, facts.Archive)
		for _, r := range almanac.Rounds(v, s, at.UTC().Year()-1) {
			step := stepOf(r.Facts)
			from, _ := r.Weekend()
			if r.State != almanac.Scheduled || r.Session == 0 || at.Before(from) ||
				slices.ContainsFunc(r.Record.Forecasts, func(f ledger.NotedForecast) bool { return f.Step == step }) {
				continue
			}
			f, ok, err := foresee(model, ahead, r)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			noted = append(noted, ledger.Event{
				Type: ledger.ForecastNoted, Session: r.Session, Step: step, Model: model.Name(), Archive: facts.SHA256, Chances: picks.Chances(f),
			})
		}
		return noted, nil
	})
	if err != nil {
		return fmt.Errorf("note forecasts: %w", err)
	}
	return nil
}

func (w *work) forecasts(ctx context.Context, model predict.Model, data Data) error {
	ahead := foresight(w.view, w.ledger, w.archive)
	all := []wire.ForecastRecord{}
	for _, r := range w.almanac.Coming() {
		if err := ctx.Err(); err != nil {
			return err
		}
		f, ok, err := foresee(model, ahead, r)
		if err != nil {
			return err
		}
		if out := r.NotStarting(); len(out) > 0 {
			f, ok = picks.Frozen(r.Pick).Without(out), true // as on /live
		}
		if !ok {
			continue
		}
		rec := forecastRecord(ahead, w.ledger, r, f)
		rec.Model = model.Name()
		all = append(all, rec)
		if err := put(data, catalog.Variant{Endpoint: catalog.Forecast, SessionKey: r.Session}, []wire.ForecastRecord{rec}); err != nil {
			return err
		}
	}
	return errors.Join(
		put(data, catalog.Variant{Endpoint: catalog.Forecast}, all),
		put(data, catalog.Variant{Endpoint: catalog.Forecast, SessionKey: catalog.NoSession}, []wire.ForecastRecord{}),
	)
}

func forecastRecord(v *season.View, s *ledger.Fold, r *almanac.Round, f predict.Forecast) wire.ForecastRecord {
	rec := wire.ForecastRecord{
		SessionKey: r.Session, GPName: r.Facts.Name, Date: r.Start.UTC().Format(time.DateOnly), Basis: almanac.BasisOf(stepOf(r.Facts)),
		EntriesFrom: entriesFrom(v, s, r),
	}
	if !r.Provisional {
		rec.DateStart = wire.Instant(r.Start)
	}
	if next := nextSession(r, v.At); next != nil {
		rec.LearnsNext = &wire.ForecastStep{
			Session: strings.ReplaceAll(string(next.Kind), "-", "_"), DateStart: wire.Instant(next.Start), KnownAt: wire.Instant(r.Facts.SessionKnownAt(next.Kind)),
		}
	}
	drivers := make([]season.DriverID, len(f.Candidates))
	for i, c := range f.Candidates {
		drivers[i] = c.Driver
	}
	codes := v.Codes(r.Year, drivers...) // before a season's first qualifying, the codes that these drivers will probably get
	rec.Podium = wire.Podium{P1: codes[f.Podium[0]], P2: codes[f.Podium[1]], P3: codes[f.Podium[2]]}
	for _, c := range f.Candidates {
		rec.Drivers = append(rec.Drivers, wire.ForecastChance{
			Driver: codes[c.Driver], DriverID: r.Lasting(c.Driver), WinPct: wire.PercentFrom(c.Win), PodiumPct: wire.PercentFrom(c.Podium),
		})
	}
	return rec
}

// entriesFrom returns the session key of the race whose starters stand in for the unknown entries of a round,
// 0 if the round has its own.
func entriesFrom(v *season.View, s *ledger.Fold, r *almanac.Round) (key int64) {
	for i := range v.Seasons {
		for j := range v.Seasons[i].Rounds {
			switch of := &v.Seasons[i].Rounds[j]; {
			case v.Seasons[i].Year == r.Year && of.GrandPrix == r.Facts.GrandPrix:
				if len(of.Entries)+len(of.Qualifying)+len(of.Grid) > 0 {
					return 0
				}
				return key
			case of.Finished():
				key, _ = s.Key(v.Seasons[i].Year, of.GrandPrix)
			}
		}
	}
	return 0
}
