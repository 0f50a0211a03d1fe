package deploy_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/ledger"
	"gridcast/builder/live"
	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/deploy/operator"
	"gridcast/schemas/catalog"
	"gridcast/schemas/docs"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/memblob"
)

// states drives one season through every state that readers meet, and writes down the answers of every endpoint.
type states struct {
	t    *testing.T
	now  time.Time
	year season.Season // 2024 as the archive has it now; without rounds it has no calendar
	last season.Facts
	b    *builder.Builder
	o    *operator.Operator
	base *snapshots.Base
	told strings.Builder

	drawn int // states of the drawing for readers that the season has passed
}

func newStates(t *testing.T) *states {
	s := &states{t: t, now: time.Date(2024, 1, 5, 12, 0, 0, 0, time.UTC), last: archivetest.Seasons(t, 2023, 2023)}
	s.last.Seasons[0].Rounds = s.last.Seasons[0].Rounds[:12]
	s.year.Year = 2024
	store := memblob.New()
	l := must.Get(ledger.Open(t.Context(), store, ledger.Simulated, s.now, "test", ""))(t)
	s.b = &builder.Builder{Store: store, Ledger: l, Policy: builder.Policy{Model: predict.GridFrequency()}, Name: "test", Log: slog.New(slog.DiscardHandler), Facts: s.facts, TitleRuns: 200}
	log := must.Get(auditlog.Load(t.Context(), store))(t)
	s.o = &operator.Operator{Store: store, Audit: log, Ledger: l, Facts: s.facts, Observed: s.b.Observed(), Now: func() time.Time { return s.now }}
	return s
}

// facts is the archive as the source has it now.
func (s *states) facts(context.Context) (archive.Stored, error) {
	facts := s.last
	if len(s.year.Rounds) > 0 {
		facts.Seasons = append(slices.Clone(facts.Seasons), s.year)
	}
	a, err := season.New(facts)
	text, _ := json.Marshal(s.year)
	sum := sha256.Sum256(text)
	return archive.Stored{Archive: a, SHA256: hex.EncodeToString(sum[:])}, err
}

// round is a round of 2024, by its number.
func (s *states) round(number int) *season.Round { return &s.year.Rounds[number-1] }

// does takes a decision of an operator.
func (s *states) does(at time.Time, a operator.Action) {
	s.t.Helper()
	s.now = at
	_, err := s.o.Do(s.t.Context(), a, operator.Request{Actor: "operator:test", Reason: "a test", Force: true})
	must.Require(s.t, err == nil, "at %s: %v", at, err)
}

// sees sends lines of the running race.
func (s *states) sees(lines ...live.Observation) {
	s.t.Helper()
	for _, o := range lines {
		s.now = o.At
		if _, err := s.o.Observe(s.t.Context(), o, "feed"); err != nil && !errors.Is(err, live.ErrHeld) {
			s.t.Fatalf("line at %s: %v", o.At, err)
		}
	}
}

// lap is the line of a lap, in the order of the grid.
func (s *states) lap(number, lap int, at time.Time) live.Observation {
	o := live.Observation{Session: int64(2024000 + number), At: at, Lap: lap}
	slots := slices.Clone(s.round(number).Grid)
	season.SortGrid(slots)
	for i, slot := range slots {
		gap := i * 1500
		o.Cars = append(o.Cars, live.Car{Driver: slot.Driver, GapMS: &gap})
	}
	return o
}

func phase(number int, p live.Phase, at time.Time) live.Observation {
	return live.Observation{Session: int64(2024000 + number), At: at, Phase: p}
}

// build publishes a version with its derived documents, as a scheduler does in some seconds.
func (s *states) build(at time.Time) {
	s.t.Helper()
	s.now = at
	for range 2 {
		if _, err := s.b.Build(s.t.Context(), builder.Request{At: at}); err != nil {
			s.t.Fatalf("build at %s: %v", at, err)
		}
		if _, err := s.b.Derive(s.t.Context(), at); err != nil {
			s.t.Fatalf("derive at %s: %v", at, err)
		}
	}
	base := must.Get(snapshots.LoadBase(s.t.Context(), s.b.Store, nil))(s.t)
	s.base = base
}

// body returns the answer to a request for an endpoint, empty if it is 503.
func (s *states) body(name catalog.Name, query string) []byte {
	s.t.Helper()
	i, _ := catalog.Lookup("/" + string(name))
	m := &s.base.Manifest
	v := must.Get(catalog.Endpoints[i].Select([]byte(query), catalog.Known{Seasons: m.Seasons, Current: m.CurrentSeason, Past: m.DefaultYears}))(s.t)
	entry, ok := s.base.Entry(v.Path())
	if !ok && v.SessionKey > 0 {
		v.SessionKey = catalog.NoSession
		entry, ok = s.base.Entry(v.Path())
	}
	if !ok {
		return nil
	}
	return must.Get(s.base.Body(s.t.Context(), entry))(s.t)
}

// answer decodes the data of an answer.
func answer[T any](s *states, name catalog.Name, query string) (data T, ok bool) {
	s.t.Helper()
	body := s.body(name, query)
	if body == nil {
		return data, false
	}
	var into struct{ Data *T }
	into.Data = &data
	err := json.Unmarshal(body, &into)
	must.Require(s.t, err == nil, "%s: %v", name, err)
	return data, true
}

// season is the season of a request without one.
func (s *states) season(name catalog.Name) int {
	if year, ok := s.base.Manifest.DefaultYears[string(name)]; ok {
		return year
	}
	return s.base.Manifest.CurrentSeason
}

// hundred says that chances are none, or add up.
func (s *states) hundred(state, cell string, sum float64) {
	must.Hold(s.t, sum <= 0 || math.Abs(sum-100) <= 1.1, "%s: the chances of a win in %s add up to %.1f %%", state, cell, sum)
}

// cells returns the answers of all endpoints and feeds about a round, in words.
func (s *states) cells(state string, key int64) []string {
	s.t.Helper()
	session := fmt.Sprintf("session_key=%d", key)
	var all []string
	cell := func(name, format string, args ...any) {
		all = append(all, fmt.Sprintf("  %-20s %s", name, fmt.Sprintf(format, args...)))
	}
	fault := func(format string, args ...any) { s.t.Errorf(state+": "+format, args...) }
	for _, e := range catalog.Endpoints {
		if !e.File && s.body(e.Name, "") == nil {
			fault("/%s without parameters is 503", e.Name)
		}
	}
	standings, _ := answer[[]wire.DriverStanding](s, catalog.Standings, "")
	leader := "nobody"
	if len(standings) > 0 {
		leader = fmt.Sprintf("%s %g", standings[0].Driver, standings[0].Points)
	}
	cell("standings", "%d, %s", s.season(catalog.Standings), leader)
	calendar, _ := answer[[]wire.CalendarEntry](s, catalog.Calendar, "")
	var statuses []string
	finished, hours := 0, 0
	for _, r := range calendar {
		statuses = append(statuses, string(r.Status))
		if r.Status == wire.Finished {
			finished++
		}
		if !r.DateStart.IsZero() {
			hours++
		}
	}
	cell("calendar", "%d, %s; %d with an hour", s.season(catalog.Calendar), strings.Join(statuses, " "), hours)
	drivers, _ := answer[[]wire.Driver](s, catalog.Drivers, "")
	cell("drivers", "%d", len(drivers))
	picks, _ := answer[[]wire.PredictionRecord](s, catalog.Predictions, "")
	one, _ := answer[[]wire.PredictionRecord](s, catalog.Predictions, session)
	text := "none of this round"
	if len(one) > 0 {
		text = one[0].Prediction.Winner
		if one[0].WinnerHit != nil {
			text += fmt.Sprintf(", hit %t", *one[0].WinnerHit)
		}
	}
	cell("predictions", "%d, %d; %s", s.season(catalog.Predictions), len(picks), text)
	next := "404"
	countdown := must.JSON[wire.Countdown](s.t, s.body(catalog.NextRace, ""))
	nextStart := time.Time{}
	if len(countdown.Rounds) > 0 {
		nextStart = time.Time(countdown.Rounds[0].Start)
		next = nextStart.UTC().Format("2 January 15:04")
	}
	cell("next-race", "%s", next)
	accuracy, _ := answer[wire.Accuracy](s, catalog.Accuracy, "")
	cell("accuracy", "%d races", accuracy.RacesEvaluated)
	chances, _ := answer[[]wire.ProbabilityRecord](s, catalog.Probabilities, session)
	text = "none"
	if len(chances) > 0 {
		sum := 0.
		for _, c := range chances[0].Drivers {
			sum += float64(c.WinPct) / 10
		}
		s.hundred(state, "/probabilities", sum)
		text = fmt.Sprintf("%s, %d drivers", chances[0].Basis, len(chances[0].Drivers))
		if out := chances[0].NotStarting; out != nil {
			text += ", not starting " + strings.Join(out, " ")
		}
	}
	cell("probabilities", "%s", text)
	record, _ := answer[wire.TrackRecord](s, catalog.TrackRecord, "")
	cell("track-record", "%d real", record.Real.Races)
	odds, _ := answer[wire.TitleOdds](s, catalog.TitleOdds, "")
	cell("title-odds", "%d, %d drivers, %d races to go", s.season(catalog.TitleOdds), len(odds.Drivers), odds.RacesRemaining)
	forecast, _ := answer[[]wire.ForecastRecord](s, catalog.Forecast, "")
	text = ""
	foreseen := map[string]wire.Percent{}
	for i, f := range forecast {
		sum := 0.
		for _, c := range f.Drivers {
			sum += float64(c.WinPct) / 10
			if i == 0 {
				foreseen[c.Driver] = c.WinPct
			}
		}
		s.hundred(state, "/forecast", sum)
	}
	if len(forecast) > 0 {
		text = fmt.Sprintf("; %s, on %s, %d drivers, %s wins", forecast[0].GPName, forecast[0].Basis, len(forecast[0].Drivers), forecast[0].Drivers[0].Driver)
		if start := time.Time(forecast[0].DateStart); !start.IsZero() && !start.Equal(nextStart) {
			fault("/forecast begins at %s, /next-race at %s", start, nextStart)
		}
	}
	cell("forecast", "%d%s", len(forecast), text)
	history, _ := answer[[]wire.ForecastHistory](s, catalog.ForecastHistory, session)
	text = "none"
	if len(history) > 0 {
		var steps []string
		before := time.Time{}
		for _, noted := range history[0].Forecasts {
			sum := 0.
			for _, c := range noted.Drivers {
				sum += float64(c.WinPct) / 10
			}
			s.hundred(state, "/forecast-history", sum)
			if at := time.Time(noted.NotedAt); at.Before(before) || at.After(s.now) {
				fault("/forecast-history has %s of %s after %s", noted.Step, at, before)
			}
			before = time.Time(noted.NotedAt)
			steps = append(steps, noted.Step+" at "+before.UTC().Format("2 January 15:04"))
		}
		text = strings.Join(steps, ", ")
		for _, f := range forecast {
			if last := history[0].Forecasts[len(history[0].Forecasts)-1]; f.SessionKey == key && f.Basis != last.Basis {
				fault("/forecast is on %s, the last of /forecast-history on %s", f.Basis, last.Basis)
			}
		}
	}
	latest, _ := answer[[]wire.ForecastHistory](s, catalog.ForecastHistory, "")
	cell("forecast-history", "%d; of the round %s", len(latest), text)
	results, _ := answer[[]wire.ResultRecord](s, catalog.Results, "")
	oneResult, _ := answer[[]wire.ResultRecord](s, catalog.Results, session)
	text = "none of this round"
	if len(oneResult) > 0 {
		text = fmt.Sprintf("%s, %d revisions", oneResult[0].Race[0].Driver, len(oneResult[0].Revisions))
	}
	cell("results", "%d, %d; %s", s.season(catalog.Results), len(results), text)
	weekend, _ := answer[[]wire.Weekend](s, catalog.Weekends, session)
	text = "none"
	if len(weekend) > 0 {
		text = fmt.Sprintf("%s, %d sessions, sprint %t", weekend[0].Status, len(weekend[0].Sessions), weekend[0].Sprint)
	}
	cell("weekends", "%s", text)
	changes, _ := answer[[]wire.Change](s, catalog.Changes, "")
	text = ""
	if len(changes) > 0 {
		text = fmt.Sprintf("; %s of %d", changes[0].Kind, changes[0].SessionKey)
	}
	cell("changes", "%d, %d%s", s.season(catalog.Changes), len(changes), text)
	race, _ := answer[wire.LiveRace](s, catalog.Live, "")
	sum, withChances := 0., 0
	for _, c := range race.Order {
		if c.WinPct != nil {
			sum, withChances = sum+float64(*c.WinPct)/10, withChances+1
		}
	}
	s.hundred(state, "/live", sum)
	validity := ""
	if until := time.Time(race.ValidUntil); !until.IsZero() {
		validity = ", valid"
		if s.now.After(until) {
			validity = ", stale"
		}
	}
	cell("live", "%s %d, lap %d, %d cars, %d with chances%s", race.State, race.SessionKey, race.Lap, len(race.Order), withChances, validity)
	observed := ""
	if race.SessionKey == key {
		observed = string(race.State) + strings.TrimSuffix(validity, ", valid")
	}
	for _, drawn := range docs.States() {
		if drawn.Test == state && len(weekend) > 0 {
			s.drawn++
			must.Equal(s.t, state+": status and state, as drawn", drawn.Status+" "+drawn.Live, string(weekend[0].Status)+" "+observed)
		}
	}
	past, _ := answer[wire.LiveRace](s, catalog.Live, session)
	cell("live of the round", "%s, %d laps", past.State, len(past.Timeline))
	if race.State == wire.LiveWaiting && len(chances) > 0 && chances[0].NotStarting != nil && len(forecast) > 0 {
		for _, c := range race.Order {
			if c.WinPct != nil && *c.WinPct != foreseen[c.Driver] {
				fault("%s wins with %v in /live, with %v in /forecast", c.Driver, *c.WinPct, foreseen[c.Driver])
			}
		}
	}
	sessions, _ := answer[[]wire.WeekendSessions](s, catalog.Sessions, "")
	text = "none"
	if len(sessions) > 0 {
		text = strconv.FormatInt(sessions[0].SessionKey, 10)
	}
	cell("sessions", "%s", text)
	progress, _ := answer[[]json.RawMessage](s, catalog.StandingsProgress, "")
	cell("standings-progress", "%d, %d drivers", s.season(catalog.StandingsProgress), len(progress))
	duels, _ := answer[[]wire.HeadToHead](s, catalog.HeadToHead, "")
	cell("head-to-head", "%d, %d pairs", s.season(catalog.HeadToHead), len(duels))
	careers, _ := answer[[]json.RawMessage](s, catalog.Careers, "")
	former, _ := answer[[]json.RawMessage](s, catalog.FormerCareers, "")
	identifiers, _ := answer[[]json.RawMessage](s, catalog.Identifiers, "")
	cell("careers", "%d present, %d former; %d identifiers", len(careers), len(former), len(identifiers))
	circuits, _ := answer[[]wire.CircuitRecord](s, catalog.Circuits, "")
	held := 0 // in the season of /results
	season, _ := answer[[]wire.CircuitRecord](s, catalog.Circuits, "year="+strconv.Itoa(s.season(catalog.Results)))
	for _, c := range season {
		held += c.RacesHeld
	}
	cell("circuits", "%d; %d races in %d", len(circuits), held, s.season(catalog.Results))
	if held != len(results) {
		fault("/circuits has %d races, /results %d rounds", held, len(results))
	}
	s.overview(fault, cell, nextStart, standings, calendar, picks, drivers, len(duels))
	if race.Result != nil && race.SessionKey == key && (len(oneResult) != 1 || len(race.Result.Revisions) != len(oneResult[0].Revisions) || len(race.Order) != len(oneResult[0].Race)) {
		fault("/live has %d revisions and %d cars, /results: %v", len(race.Result.Revisions), len(race.Order), oneResult)
	}
	for _, f := range catalog.Feeds {
		entry, ok := s.base.Entry(f.Stored)
		if !ok {
			fault("%s is not published", f.Path)
			continue
		}
		body := must.Get(s.base.Body(s.t.Context(), entry))(s.t)
		cell(f.Path, "%d", bytes.Count(body, []byte("BEGIN:VEVENT"))+bytes.Count(body, []byte("<entry>")))
	}
	if s.season(catalog.Results) == s.season(catalog.Calendar) && len(results) != finished {
		fault("/results has %d rounds, /calendar %d finished ones", len(results), finished)
	}
	if leader == "nobody" && len(results) > 0 || len(standings) == 0 && len(progress) > 0 {
		fault("/results has %d rounds, /standings %d rows, /standings-progress %d", len(results), len(standings), len(progress))
	}
	for _, r := range s.base.Manifest.Refused {
		fault("%s is refused: %s", r.Path, r.Reason)
	}
	return all
}

// overview compares /overview with the documents that have the same values.
func (s *states) overview(fault func(string, ...any), cell func(name, format string, args ...any), next time.Time, standings []wire.DriverStanding, calendar []wire.CalendarEntry, picks []wire.PredictionRecord, grid []wire.Driver, pairs int) {
	s.t.Helper()
	o, _ := answer[wire.Overview](s, catalog.Overview, "")
	rounds, coming, picked, careers := map[int64]wire.OverviewRound{}, time.Time{}, 0, 0
	for _, r := range o.Rounds {
		rounds[r.SessionKey] = r
		if r.Prediction != nil {
			picked++
		}
		if start := time.Time(r.DateStart); r.Status == wire.Scheduled && start.After(s.now) && coming.IsZero() {
			coming = start
		}
	}
	cell("overview", "%d, %d rounds, %d picks, %d drivers, %d pairs", o.Season, len(o.Rounds), picked, len(o.Drivers), len(o.TeamMates))
	for _, e := range calendar {
		if r := rounds[e.SessionKey]; r.Status != e.Status || r.Winner != e.Winner || r.DateStart != e.DateStart {
			fault("/overview has %+v, /calendar %+v", r, e)
		}
	}
	for _, p := range picks {
		if r := rounds[p.SessionKey]; s.season(catalog.Predictions) >= o.Season && (r.Prediction == nil || *r.Prediction != p.Prediction) {
			fault("/overview has the pick %+v, /predictions %+v", r.Prediction, p.Prediction)
		}
	}
	if !coming.IsZero() && !coming.Equal(next) {
		fault("the next race of /overview is at %s, /next-race says %s", coming, next)
	}
	for i, row := range standings {
		if o.Season != s.season(catalog.Standings) || o.Drivers[i].Driver != row.Driver || o.Drivers[i].Standing.Points != row.Points {
			fault("/overview of %d has %+v, /standings of %d %+v", o.Season, o.Drivers[i], s.season(catalog.Standings), row)
		}
	}
	for _, d := range o.Drivers {
		if d.Career != nil {
			careers++
		}
		i := slices.IndexFunc(grid, func(g wire.Driver) bool { return g.Driver == d.Driver && g.Number == d.Number && g.Team == d.Team })
		if i >= 0 {
			grid = slices.Delete(slices.Clone(grid), i, i+1)
		}
	}
	if len(grid) > 0 || careers == 0 || o.Season == s.season(catalog.HeadToHead) && len(o.TeamMates) != pairs {
		fault("/overview lacks %v of the grid; it has %d careers, and %d pairs for %d", grid, careers, len(o.TeamMates), pairs)
	}
}

// is writes down a state.
func (s *states) is(state string, key int64) {
	s.t.Helper()
	fmt.Fprintf(&s.told, "%s, %s\n%s\n\n", state, s.now.Format("2006-01-02 15:04"), strings.Join(s.cells(state, key), "\n"))
}

// TestStates drives one season through all states of a round and of a season, and compares every endpoint and feed in each
// with testdata/states.txt. In no state a request without parameters is 503, chances add up, and no two answers contradict
// each other. deploy/docs/states.md has the table for readers,
// and /docs/race-day a drawing.
func TestStates(t *testing.T) {
	must.Long(t, "publishes twenty states of a season")
	s := newStates(t)
	whole := archivetest.Seasons(t, 2024, 2024)
	for id, d := range whole.Drivers {
		s.last.Drivers[id] = d
	}
	rounds := whole.Seasons[0].Rounds[:6]
	at := func(text string) time.Time {
		return must.Get(time.Parse("2006-01-02 15:04", text))(t)
	}
	day := 24 * time.Hour

	s.build(at("2024-01-05 12:00"))
	s.is("fresh service", 2023012)
	s.build(at("2024-01-20 12:00"))
	s.is("winter without a calendar", 2023012)

	s.year.Colours = whole.Seasons[0].Colours
	for i := range rounds {
		r := archivetest.Scheduled(&rounds[i])
		r.Start = time.Time{}
		r.Sessions = slices.Clone(r.Sessions)
		for j := range r.Sessions {
			r.Sessions[j].Start = time.Time{}
		}
		s.year.Rounds = append(s.year.Rounds, r)
	}
	s.build(at("2024-02-01 12:00"))
	s.is("calendar without hours", 2024001)

	copy(s.year.Rounds, rounds)
	bahrain, jeddah, shanghai, miami := rounds[0].StartsAt(), rounds[1].StartsAt(), rounds[4].StartsAt(), rounds[5].StartsAt()
	s.build(bahrain.Add(-3 * day))
	s.is("entries unknown", 2024001)
	s.build(bahrain.Add(10 * time.Minute)) // nothing was built between qualifying and lights out
	s.is("pick missed", 2024001)
	s.does(bahrain.Add(3*time.Hour), operator.VerifyResult{Key: 2024001})
	s.build(s.now)

	s.build(jeddah.Add(-20 * time.Hour))
	r := s.round(2)
	pick, _ := s.b.Ledger.Fold().Record(2024002)
	must.Require(t, pick.Pick != nil, "no pick was frozen after the qualifying of Jeddah")
	out := pick.Pick.P1
	gone := func(driver season.DriverID) bool { return driver == out }
	r.Grid = slices.DeleteFunc(slices.Clone(r.Grid), func(g season.GridSlot) bool { return gone(g.Driver) })
	r.Entries = slices.DeleteFunc(slices.Clone(r.Entries), func(e season.Entry) bool { return gone(e.Driver) })
	results := slices.DeleteFunc(slices.Clone(r.Results), func(row season.Result) bool { return gone(row.Driver) })
	for i := range results {
		if results[i].Points = 0; results[i].Position > 0 {
			results[i].Position--
			if scale := season.Scale(2024, false); results[i].Position <= len(scale) {
				results[i].Points = scale[results[i].Position-1]
			}
		}
	}
	r.Results, r.PitStops, r.FastestLaps, r.DriverStandings, r.TeamStandings = nil, nil, nil, nil, nil
	s.build(jeddah.Add(-5 * time.Hour))
	s.is("picked driver withdrawn", 2024002)
	s.sees(s.lap(2, 1, jeddah.Add(3*time.Minute)), s.lap(2, 2, jeddah.Add(5*time.Minute)))
	s.build(s.now.Add(time.Second))
	s.is("live", 2024002)
	s.build(s.now.Add(10 * time.Minute))
	s.is("feed silent", 2024002)
	s.sees(s.lap(2, 3, s.now.Add(time.Second)), phase(2, live.Suspended, s.now.Add(2*time.Minute)))
	s.build(s.now.Add(8 * time.Minute))
	s.is("suspended", 2024002)
	morning := jeddah.Add(18 * time.Hour)
	s.sees(phase(2, live.Resumed, morning), s.lap(2, 4, morning.Add(2*time.Minute)))
	s.build(s.now.Add(time.Second))
	s.is("stopped and restarted next day", 2024002)
	s.sees(phase(2, live.Over, morning.Add(time.Hour)), phase(2, live.Over, morning.Add(61*time.Minute)))
	r.Results, r.PitStops, r.FastestLaps = results, nil, nil
	s.build(morning.Add(2 * time.Hour))
	s.is("result waiting", 2024002)
	s.does(morning.Add(3*time.Hour), operator.VerifyResult{Key: 2024002})
	s.build(s.now)
	s.is("verified", 2024002)
	s.does(morning.Add(5*time.Hour), operator.CorrectResult{Key: 2024002, Classification: operator.Classification{TimePenalty: map[string]time.Duration{string(results[1].Driver): 20 * time.Second}}})
	s.build(s.now)
	s.is("revised", 2024002)

	s.does(at("2024-03-15 12:00"), operator.PostponeRound{Key: 2024003})
	s.build(s.now)
	s.is("postponed without a date", 2024003)
	s.does(at("2024-03-28 12:00"), operator.CancelRound{Key: 2024004})
	s.build(s.now)
	s.is("cancelled before the start", 2024004)
	r = s.round(5)
	r.Sessions, r.SprintResults, r.SprintGrid, r.SprintQualifying = slices.Clone(r.Sessions), nil, nil, nil
	for i := range r.Sessions {
		r.Sessions[i].Cancelled = r.Sessions[i].Kind == season.Sprint
	}
	s.build(at("2024-04-10 12:00"))
	s.is("sprint cancelled", 2024005)
	r.Results, r.PitStops, r.FastestLaps, r.DriverStandings, r.TeamStandings = nil, nil, nil, nil, nil
	s.build(shanghai.Add(-10 * time.Hour))
	s.sees(s.lap(5, 1, shanghai.Add(3*time.Minute)), phase(5, live.Suspended, shanghai.Add(5*time.Minute)))
	s.build(s.now)
	s.build(shanghai.Add(2 * day))
	s.is("abandoned without a result", 2024005)
	s.does(shanghai.Add(3*day), operator.CancelRound{Key: 2024005})
	s.build(s.now)
	s.is("cancelled after it", 2024005)
	s.does(at("2024-04-28 12:00"), operator.CorrectResult{Key: 2024002, Classification: operator.Classification{Disqualify: []string{string(results[0].Driver)}}})
	s.build(s.now)
	s.is("disqualified weeks later", 2024002)

	s.build(miami.Add(-10 * time.Hour))
	s.sees(s.lap(6, 1, miami.Add(3*time.Minute)))
	s.build(s.now.Add(time.Second))
	s.is("last race running", 2024006)
	s.sees(phase(6, live.Over, miami.Add(time.Hour)), phase(6, live.Over, miami.Add(61*time.Minute)))
	s.does(miami.Add(3*time.Hour), operator.VerifyResult{Key: 2024006})
	s.build(s.now)
	s.is("last race verified", 2024006)

	golden.File(t, "testdata/states.txt", s.told.String())
	must.Equal(t, "states of the drawing that the season has passed", len(docs.States()), s.drawn)
}
