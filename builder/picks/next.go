package picks

import (
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/builder/season"
)

// Next is the pick that builders will make for a round.
type Next struct {
	At    time.Time      // zero: with the next build
	Round *almanac.Round // as the pick sees it
	view  *season.View
}

// FindNext returns the pick that follows from an archive for a round, false if none will be made:
// the round has one, is off or has started. arrived is the instant at which the archive got the
// qualifying of the round, zero if unknown.
func FindNext(archive *season.Archive, s *ledger.Fold, r *almanac.Round, now, arrived time.Time) (Next, bool) {
	if r.Pick != nil || r.Off() || !now.Before(r.Start) {
		return Next{}, false
	}
	at := season.Later(now, r.Facts.GridKnownAt())
	next := Next{view: almanac.Raced(archive.AsOf(at), s)}
	for _, other := range almanac.Rounds(next.view, s, r.Year) {
		if other.Session == r.Session {
			next.Round = other
		}
	}
	if next.Round == nil {
		return Next{}, false
	}
	switch facts := next.Round.Facts; {
	case len(facts.Grid) > 0:
		next.At = at
	case len(facts.Qualifying) > 0:
		next.At = next.Round.FreezeBy()
		if stable := next.Round.StoodBy(arrived); stable.Before(next.At) {
			next.At = stable
		}
	default:
		next.At = next.Round.FreezeBy()
		return next, true
	}
	if !next.At.After(now) {
		next.At = time.Time{}
	}
	return next, true
}

// Forecast asks a model for the pick.
func (p Next) Forecast(model predict.Model) (predict.Forecast, error) {
	return model.Predict(p.view, p.Round.Year, p.Round.Facts.GrandPrix)
}

// Name returns the code of a driver, or the name of a driver without a code.
func (p Next) Name(d season.DriverID) string {
	if code := p.Round.Code(d); code != "" {
		return code
	}
	return p.view.Driver(d).Name
}
