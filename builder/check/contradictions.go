package check

import (
	"fmt"

	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// contradictions notes every place where two bodies, or two values of one, do not fit together.
func (v *version) contradictions(faults Faults) {
	of := func(variant catalog.Variant) complain {
		return func(format string, args ...any) { faults.add(variant.Path(), fmt.Errorf(format, args...)) }
	}

	sessions := map[int64]int{}
	starts := map[wire.Instant]string{}
	var all tally
	for _, year := range v.years {
		calendar := of(catalog.Variant{Endpoint: catalog.Calendar, Year: year})
		predictions := of(catalog.Variant{Endpoint: catalog.Predictions, Year: year})
		winners := map[int64]string{}
		for _, e := range v.calendar[year] {
			if other, taken := sessions[e.SessionKey]; taken {
				calendar("session key %d of round %d is taken in %d", e.SessionKey, e.Round, other)
			}
			sessions[e.SessionKey] = year
			if (e.Status == wire.Finished) != (e.Winner != "") {
				calendar("round %d is %s with winner %q", e.Round, e.Status, e.Winner)
			}
			winners[e.SessionKey] = e.Winner
			if e.Status == wire.Scheduled && !e.DateStart.IsZero() {
				starts[e.DateStart] = e.GPName
			}
		}
		if v.checked[year] {
			for _, p := range v.picks[year] {
				all.add(p)
			}
			continue
		}
		v.checkWeekends(year, of)
		var season tally
		for _, p := range v.picks[year] {
			winner, known := winners[p.SessionKey]
			if !known {
				predictions("session key %d is not in the calendar", p.SessionKey)
			}
			if p.Result != nil && p.Result.Winner != winner {
				predictions("%s was won by %q, the calendar says %q", p.GPName, p.Result.Winner, winner)
			}
			if p.Result == nil && winner != "" {
				predictions("%s has no result, the calendar says %q", p.GPName, winner)
			}
			if p.Prediction.Winner != p.Prediction.Podium.P1 || repeated(p.Prediction.Podium) {
				predictions("%s: winner %q with podium %v", p.GPName, p.Prediction.Winner, p.Prediction.Podium)
			}
			season.add(p)
			all.add(p)
		}
		season.compare(v.accuracy[year], of(catalog.Variant{Endpoint: catalog.Accuracy, Year: year}))
		probabilities := of(catalog.Variant{Endpoint: catalog.Probabilities, Year: year})
		for _, p := range v.chances[year] {
			checkChances(p, v.picks[year], func(format string, args ...any) {
				probabilities("%s: "+format, append([]any{p.GPName}, args...)...)
			})
		}
		if odds, ok := v.odds[year]; ok {
			checkOdds(odds, of(catalog.Variant{Endpoint: catalog.TitleOdds, Year: year}))
		}
		v.checkOrder(year, of)
	}
	for _, c := range v.changes {
		if _, known := sessions[c.SessionKey]; !known {
			of(catalog.Variant{Endpoint: catalog.Changes})("session key %d is in no calendar", c.SessionKey)
		}
	}
	all.compare(v.accuracy[0], of(catalog.Variant{Endpoint: catalog.Accuracy}))

	codes := map[string]string{}
	for _, d := range v.grid {
		if other, taken := codes[d.Driver]; taken {
			of(catalog.Variant{Endpoint: catalog.Drivers})("%s and %s share the code %s", other, d.Name, d.Driver)
		}
		codes[d.Driver] = d.Name
	}
	for start, name := range starts {
		if !v.countsDownTo(start) {
			of(catalog.Variant{Endpoint: catalog.NextRace})("%s, scheduled for %s, is missing", name, start)
		}
	}
}

// checkWeekends holds results and weekends of a season to its calendar.
func (v *version) checkWeekends(year int, of func(catalog.Variant) complain) {
	results := of(catalog.Variant{Endpoint: catalog.Results, Year: year})
	weekends := of(catalog.Variant{Endpoint: catalog.Weekends, Year: year})
	winners := map[int64]string{}
	for _, r := range v.results[year] {
		for _, row := range r.Race {
			if row.Position == 1 && winners[r.SessionKey] == "" {
				winners[r.SessionKey] = row.Driver
			}
		}
	}
	held := map[int64]wire.Weekend{}
	for _, w := range v.weekends[year] {
		held[w.SessionKey] = w
	}
	for _, e := range v.calendar[year] {
		if winners[e.SessionKey] != e.Winner && e.Status == wire.Finished {
			results("%s was won by %q, the calendar says %q", e.GPName, winners[e.SessionKey], e.Winner)
		}
		w, ok := held[e.SessionKey]
		if !ok {
			weekends("%s is missing", e.GPName)
			continue
		}
		race := w.Sessions[len(w.Sessions)-1]
		if race.Session != "race" || race.DateStart != e.DateStart || race.Status != e.Status || w.Status != e.Status || w.Circuit.Name != e.Circuit {
			weekends("%s is %+v, the calendar says %+v", e.GPName, w, e)
		}
	}
	if len(held) != len(v.calendar[year]) {
		weekends("has %d rounds, the calendar %d", len(held), len(v.calendar[year]))
	}
}

// complain notes what is wrong with one body.
type complain func(format string, args ...any)

// checkChances holds a frozen distribution to itself and to the pick of the same round. Each
// number is rounded to a tenth, so a sum of n may be off by n half tenths.
func checkChances(p wire.ProbabilityRecord, picks []wire.PredictionRecord, complain complain) {
	win, podium := 0, 0
	of := map[string]wire.DriverChance{}
	for _, c := range p.Drivers {
		if _, twice := of[c.Driver]; twice {
			complain("%s stands twice", c.Driver)
		}
		if c.PodiumPct < c.WinPct {
			complain("%s has a smaller chance of a podium, %d, than to win, %d", c.Driver, c.PodiumPct, c.WinPct)
		}
		of[c.Driver] = c
		win, podium = win+int(c.WinPct), podium+int(c.PodiumPct)
	}
	off := (len(p.Drivers) + 1) / 2
	if win < 1000-off || win > 1000+off || podium < 3000-off || podium > 3000+off {
		complain("chances of %d drivers add up to %d tenths of a win and %d of a podium", len(p.Drivers), win, podium)
	}
	for _, r := range picks {
		if r.SessionKey != p.SessionKey {
			continue
		}
		if got := of[r.Prediction.Winner].WinPct; got != r.Prediction.ConfidencePct {
			complain("the picked winner %s has %d tenths, the prediction says %d", r.Prediction.Winner, got, r.Prediction.ConfidencePct)
		}
		return
	}
	complain("has no prediction")
}

// checkOdds holds the odds of both titles to themselves.
func checkOdds(o wire.TitleOdds, complain complain) {
	sum, last := 0, 1000
	check := func(who string, title wire.Percent, points, low, high float64) {
		if int(title) > last || low < points || high < low {
			complain("%s: %d tenths after %d, points %v to %v from %v", who, title, last, low, high, points)
		}
		sum, last = sum+int(title), int(title)
	}
	end := func(title string, n int) {
		if off := (n + 1) / 2; n > 0 && (sum < 1000-off || sum > 1000+off) {
			complain("the %s' chances add up to %d tenths", title, sum)
		}
		sum, last = 0, 1000
	}
	for _, d := range o.Drivers {
		check(d.Driver, d.TitlePct, d.Points, d.PointsLow, d.PointsHigh)
	}
	end("drivers", len(o.Drivers))
	for _, c := range o.Constructors {
		check(c.Team, c.TitlePct, c.Points, c.PointsLow, c.PointsHigh)
	}
	end("constructors", len(o.Constructors))
}

func (v *version) countsDownTo(start wire.Instant) bool {
	for _, r := range v.countdown.Rounds {
		if r.Start == start {
			return true
		}
	}
	return false
}

// checkOrder holds both championships of a year to their order: ranked rows by position with
// points that do not rise, unranked ones at the end, nobody ranked twice.
func (v *version) checkOrder(year int, of func(catalog.Variant) complain) {
	seen := map[string]bool{}
	drivers := order{complain: of(catalog.Variant{Endpoint: catalog.Standings, Type: catalog.DriversType, Year: year})}
	for _, s := range v.drivers[year] {
		drivers.next(s.Driver, s.Position, s.Points)
		if seen[s.Driver] {
			drivers.complain("the code %s stands twice", s.Driver)
		}
		seen[s.Driver] = true
	}
	teams := order{complain: of(catalog.Variant{Endpoint: catalog.Standings, Type: catalog.ConstructorsType, Year: year})}
	for _, s := range v.teams[year] {
		teams.next(s.Team, s.Position, s.Points)
		if name := s.Team + " " + s.Engine; s.Position != 0 {
			if seen[name] {
				teams.complain("%s is ranked twice", name)
			}
			seen[name] = true
		}
	}
}

// order follows one championship from row to row.
type order struct {
	complain complain
	started  bool
	position int
	points   float64
}

func (o *order) next(who string, position int, points float64) {
	if o.started {
		switch {
		case position == 0: // unranked rows may have any points
		case o.position == 0 || position < o.position:
			o.complain("%s in position %d stands after position %d", who, position, o.position)
		case points > o.points:
			o.complain("%s has %v points behind %v", who, points, o.points)
		}
	}
	o.started, o.position, o.points = true, position, points
}

func repeated(p wire.Podium) bool { return p.P1 == p.P2 || p.P1 == p.P3 || p.P2 == p.P3 && p.P2 != "" }

// tally scores prediction records as a reader of /predictions would.
type tally struct{ races, winners, podiums int }

func (t *tally) add(p wire.PredictionRecord) {
	if p.Result == nil {
		return
	}
	t.races++
	if p.Prediction.Winner == p.Result.Winner {
		t.winners++
	}
	onPodium := map[string]bool{p.Result.Podium.P1: true, p.Result.Podium.P2: true, p.Result.Podium.P3: true}
	for _, code := range []string{p.Prediction.Podium.P1, p.Prediction.Podium.P2, p.Prediction.Podium.P3} {
		if code != "" && onPodium[code] {
			t.podiums++
		}
	}
}

func (t *tally) compare(published wire.Accuracy, complain complain) {
	want := wire.HitRates{
		WinnerHitRatePct:  wire.PercentOf(t.winners, t.races),
		PodiumAccuracyPct: wire.PercentOf(t.podiums, 3*t.races),
	}
	if published.RacesEvaluated != t.races || published.PreRace != want {
		complain("says %+v over %d races, the predictions say %+v over %d", published.PreRace, published.RacesEvaluated, want, t.races)
	}
}
