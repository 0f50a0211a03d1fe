package check

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// content is the data of the documents of one season.
type content struct {
	year     int
	drivers  []wire.DriverStanding
	teams    []wire.ConstructorStanding
	calendar []wire.CalendarEntry
	picks    []wire.PredictionRecord
	chances  []wire.ProbabilityRecord
	accuracy wire.Accuracy
	results  []wire.ResultRecord
	weekends []wire.Weekend
	overview wire.Overview
	statistics
}

// complain notes a fault of one document.
type complain func(format string, args ...any)

func (f Faults) of(v catalog.Variant) complain {
	return func(format string, args ...any) { f.add(v.Path(), fmt.Errorf(format, args...)) }
}

// contradictions notes the values of a season's documents that do not fit together.
func (c *content) contradictions(faults Faults) {
	calendar := faults.of(catalog.Variant{Endpoint: catalog.Calendar, Year: c.year})
	winners := map[int64]string{}
	for _, e := range c.calendar {
		if (e.Status == wire.Finished) != (e.Winner != "") {
			calendar("round %d is %s with winner %q", e.Round, e.Status, e.Winner)
		}
		winners[e.SessionKey] = e.Winner
	}
	c.checkWeekends(faults)
	predictions := faults.of(catalog.Variant{Endpoint: catalog.Predictions, Year: c.year})
	var hits tally
	for _, p := range c.picks {
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
		hits.add(p)
	}
	hits.compare(c.accuracy, faults.of(catalog.Variant{Endpoint: catalog.Accuracy, Year: c.year}))
	probabilities := faults.of(catalog.Variant{Endpoint: catalog.Probabilities, Year: c.year})
	for _, p := range c.chances {
		checkChances(p, c.picks, func(format string, args ...any) {
			probabilities("%s: "+format, append([]any{p.GPName}, args...)...)
		})
	}
	c.checkOrder(faults)
	c.checkProgress(faults)
	c.checkHeadToHead(faults.of(catalog.Variant{Endpoint: catalog.HeadToHead, Year: c.year}))
	c.checkCareers(faults.of(catalog.Variant{Endpoint: catalog.Careers, Type: catalog.DriversType, Year: c.year}))
	c.checkOverview(faults.of(catalog.Variant{Endpoint: catalog.Overview, Year: c.year}))
}

// contradictions notes the places where seasons, and the documents about no single season, do not fit
// together.
func (r *reader) contradictions(seasons []Season) {
	sessions := map[int64]int{}
	starts := map[wire.Instant]string{}
	var hits tally
	overview := catalog.Variant{Endpoint: catalog.Overview}
	shown, rounds := decode[wire.Overview](r, overview), []wire.OverviewRound{}
	for i := range seasons {
		s := &seasons[i]
		if s.Year >= shown.Season {
			rounds = append(rounds, overviewRounds(s.calendar, s.picks)...)
		}
		calendar := r.faults.of(catalog.Variant{Endpoint: catalog.Calendar, Year: s.Year})
		for _, e := range s.calendar {
			if other, taken := sessions[e.SessionKey]; taken {
				calendar("session key %d of round %d is taken in %d", e.SessionKey, e.Round, other)
			}
			sessions[e.SessionKey] = s.Year
			if e.Status == wire.Scheduled && !e.DateStart.IsZero() {
				starts[e.DateStart] = e.GPName
			}
		}
		for _, p := range s.picks {
			hits.add(p)
		}
		odds := catalog.Variant{Endpoint: catalog.TitleOdds, Year: s.Year}
		if _, ok := r.bodies[odds.Path()]; ok {
			checkOdds(decode[wire.TitleOdds](r, odds), r.faults.of(odds))
		}
	}
	if !reflect.DeepEqual(shown.Rounds, rounds) {
		r.faults.of(overview)("the rounds differ from those of the calendars and the predictions")
	}
	forecast := catalog.Variant{Endpoint: catalog.Forecast}
	if _, ok := r.bodies[forecast.Path()]; ok {
		for _, f := range decode[[]wire.ForecastRecord](r, forecast) {
			checkForecast(f, r.faults.of(forecast))
		}
	}
	changes := catalog.Variant{Endpoint: catalog.Changes}
	out := map[string]bool{} // withdrawn drivers by round, less those that returned
	for _, c := range slices.Backward(decode[[]wire.Change](r, changes)) {
		if withdrawn := c.Kind == wire.DriverWithdrawn; withdrawn || c.Kind == wire.DriverReturned {
			name := fmt.Sprintf("%s of %d", c.DriverID, c.SessionKey)
			if out[name] == withdrawn {
				r.faults.of(changes)("%s has two changes %s in a row, or returned first", name, c.Kind)
			}
			out[name] = withdrawn
		}
		if _, known := sessions[c.SessionKey]; !known {
			r.faults.of(changes)("session key %d is in no calendar", c.SessionKey)
		}
	}
	accuracy := catalog.Variant{Endpoint: catalog.Accuracy}
	hits.compare(decode[wire.Accuracy](r, accuracy), r.faults.of(accuracy))
	drivers := catalog.Variant{Endpoint: catalog.Drivers}
	codes := map[string]string{}
	for _, d := range decode[[]wire.Driver](r, drivers) {
		if other, taken := codes[d.Driver]; taken {
			r.faults.of(drivers)("%s and %s share the code %s", other, d.Name, d.Driver)
		}
		codes[d.Driver] = d.Name
	}
	nextRace := catalog.Variant{Endpoint: catalog.NextRace}
	var countdown wire.Countdown
	if err := json.Unmarshal(r.bodies[nextRace.Path()], &countdown); err != nil {
		r.faults.add(nextRace.Path(), err)
		return
	}
	for _, round := range countdown.Rounds {
		delete(starts, round.Start)
	}
	for start, name := range starts {
		r.faults.of(nextRace)("%s, scheduled for %s, is missing", name, start)
	}
}

// checkWeekends compares results and weekends with the calendar.
func (c *content) checkWeekends(faults Faults) {
	results := faults.of(catalog.Variant{Endpoint: catalog.Results, Year: c.year})
	weekends := faults.of(catalog.Variant{Endpoint: catalog.Weekends, Year: c.year})
	winners := map[int64]string{}
	for _, r := range c.results {
		for _, row := range r.Race {
			if row.Position == 1 && winners[r.SessionKey] == "" {
				winners[r.SessionKey] = row.Driver
			}
		}
	}
	held := map[int64]wire.Weekend{}
	for _, w := range c.weekends {
		held[w.SessionKey] = w
	}
	for _, e := range c.calendar {
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
	if len(held) != len(c.calendar) {
		weekends("has %d rounds, the calendar %d", len(held), len(c.calendar))
	}
}

// addsUp reports whether n chances, each rounded to a tenth of a percent, add up to a number of certain ones: each may be
// off by half a tenth.
func addsUp(tenths, certain, n int) bool {
	off := (n + 1) / 2
	return tenths >= 1000*certain-off && tenths <= 1000*certain+off
}

// checkChances holds a frozen distribution to itself and to the pick of the same round.
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
		if c.Positions != nil {
			complainOfPlaces(c, len(p.Drivers), complain)
		}
		of[c.Driver] = c
		win, podium = win+int(c.WinPct), podium+int(c.PodiumPct)
	}
	if !addsUp(win, 1, len(p.Drivers)) || !addsUp(podium, 3, len(p.Drivers)) {
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

// complainOfPlaces holds the chances of the places to each other: with that of not finishing they add up to
// 100 %. The first is the chance to win, and the first three that of the podium, but for the rounding.
func complainOfPlaces(c wire.DriverChance, starters int, complain complain) {
	if len(c.Positions) != starters || starters < 3 || c.PointsPct == nil || c.DNFPct == nil || c.ExpectedPoints == nil {
		complain("%s has %d places of %d, or no chance of points or of not finishing", c.Driver, len(c.Positions), starters)
		return
	}
	total, podium := *c.DNFPct, wire.Hundredths(0)
	for i, chance := range c.Positions {
		total += chance
		if i < 3 {
			podium += chance
		}
	}
	off := func(places wire.Hundredths, of wire.Percent) bool {
		return max(int(places)-10*int(of), 10*int(of)-int(places)) > 8
	}
	if total != 10_000 || off(c.Positions[0], c.WinPct) || off(podium, c.PodiumPct) {
		complain("%s has places of %d hundredths, with %d to win and %d of the podium", c.Driver, total, c.Positions[0], podium)
	}
}

// checkOdds holds the odds of both titles to themselves.
func checkOdds(o wire.TitleOdds, complain complain) {
	sum, last := 0, 1000
	check := func(who string, title wire.Percent, points, low, high, most float64) {
		if int(title) > last || low < points || high < low || most > 0 && most < high {
			complain("%s: %d tenths after %d, points %v to %v from %v", who, title, last, low, high, points)
		}
		sum, last = sum+int(title), int(title)
	}
	end := func(title string, n int) {
		if n > 0 && !addsUp(sum, 1, n) {
			complain("the %s' chances add up to %d tenths", title, sum)
		}
		sum, last = 0, 1000
	}
	for _, d := range o.Drivers {
		check(d.Driver, d.TitlePct, d.Points, d.PointsLow, d.PointsHigh, d.PointsMost)
	}
	end("drivers", len(o.Drivers))
	for _, c := range o.Constructors {
		check(c.Team, c.TitlePct, c.Points, c.PointsLow, c.PointsHigh, c.PointsMost)
	}
	end("constructors", len(o.Constructors))
}

// checkForecast holds a forecast to itself: the chances of a win fall and add up to one, the expected winner has
// the highest.
func checkForecast(f wire.ForecastRecord, complain complain) {
	win, podium, last := 0, 0, 1000
	for _, d := range f.Drivers {
		if int(d.WinPct) > last || d.PodiumPct < d.WinPct {
			complain("%s: %s has %d tenths of a win after %d, and %d of a podium", f.GPName, d.Driver, d.WinPct, last, d.PodiumPct)
		}
		win, podium, last = win+int(d.WinPct), podium+int(d.PodiumPct), int(d.WinPct)
	}
	if !addsUp(win, 1, len(f.Drivers)) || !addsUp(podium, 3, len(f.Drivers)) {
		complain("%s: the chances add up to %d tenths of a win and %d of a podium", f.GPName, win, podium)
	}
	if len(f.Drivers) > 0 && f.Podium.P1 != f.Drivers[0].Driver {
		complain("%s: expects %s to win, but %s is the likeliest", f.GPName, f.Podium.P1, f.Drivers[0].Driver)
	}
}

// checkOrder holds both championships of a year to their order: ranked rows by position with
// points that do not rise, unranked ones at the end, nobody ranked twice.
func (c *content) checkOrder(faults Faults) {
	seen := map[string]bool{}
	drivers := order{complain: faults.of(catalog.Variant{Endpoint: catalog.Standings, Type: catalog.DriversType, Year: c.year})}
	for _, s := range c.drivers {
		drivers.next(s.Driver, s.Position, s.Points)
		if seen[s.Driver] {
			drivers.complain("the code %s stands twice", s.Driver)
		}
		seen[s.Driver] = true
	}
	teams := order{complain: faults.of(catalog.Variant{Endpoint: catalog.Standings, Type: catalog.ConstructorsType, Year: c.year})}
	for _, s := range c.teams {
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
	if live := published.Live; live.RacesEvaluated > t.races || live.RacesEvaluated == 0 && live != (wire.LiveHitRates{}) {
		complain("says %+v of the live picks, with %d evaluated races", live, t.races)
	}
}
