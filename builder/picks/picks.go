// Package picks turns forecasts of a model into the picks and chances of the ledger, and back.
package picks

import (
	"cmp"
	"math"
	"slices"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/builder/season"
)

// Freeze returns the event that records a forecast: the pick, the chances of every starter, and their
// basis. archive is the digest of the archive that the model has seen.
func Freeze(r *almanac.Round, model, archive string, f predict.Forecast) ledger.Event {
	pick := ledger.Pick{P1: f.Podium[0], P2: f.Podium[1], P3: f.Podium[2], WinProbability: f.Winner().Win, Model: model}
	e := ledger.Freeze(r.Session, pick, r.Start, f.Basis.Order == predict.FromGrid)
	e.Archive, e.Basis, e.Chances = archive, ledger.Basis(f.Basis.Order), Chances(f)
	scale := season.Scale(r.Year, false)
	for i, candidate := range f.Candidates {
		c := &e.Chances[i]
		c.DNF = int(math.Round(candidate.Out * ledger.Certain))
		for place, chance := range candidate.Places {
			c.Positions = append(c.Positions, int(math.Round(chance*ledger.Certain)))
			if place < len(scale) {
				c.Points += c.Positions[place] * int(scale[place])
			}
		}
	}
	return e
}

// Chances returns the chances of a forecast in the form of the ledger.
func Chances(f predict.Forecast) []ledger.Chance {
	chances := make([]ledger.Chance, len(f.Candidates))
	for i, c := range f.Candidates {
		chances[i] = ledger.Chance{
			Driver: c.Driver, Win: int(math.Round(c.Win * ledger.Certain)), Podium: int(math.Round(c.Podium * ledger.Certain)),
		}
	}
	return chances
}

// Frozen returns a frozen pick as a forecast. A pick without chances has the winner alone.
func Frozen(p *ledger.FrozenPick) predict.Forecast {
	f := predict.Forecast{Podium: almanac.Picked(p), Candidates: candidates(p.Chances)}
	if p.Chances == nil {
		f.Candidates = []predict.Candidate{{Driver: p.P1, Win: p.WinProbability}}
	}
	return f
}

// Noted returns a noted forecast with the podium that its chances suggest: the likeliest winner, and of
// the others the two with the best chances of the podium.
func Noted(n ledger.NotedForecast) predict.Forecast {
	all := candidates(n.Chances)
	slices.SortStableFunc(all, func(a, b predict.Candidate) int { return cmp.Compare(b.Win, a.Win) })
	f := predict.Forecast{Candidates: slices.Clone(all)}
	slices.SortStableFunc(all[1:], func(a, b predict.Candidate) int { return cmp.Compare(b.Podium, a.Podium) })
	for i := range min(len(all), len(f.Podium)) {
		f.Podium[i] = all[i].Driver
	}
	return f
}

func candidates(chances []ledger.Chance) (all []predict.Candidate) {
	for _, c := range chances {
		all = append(all, predict.Candidate{Driver: c.Driver, Win: float64(c.Win) / ledger.Certain, Podium: float64(c.Podium) / ledger.Certain})
	}
	return all
}

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
