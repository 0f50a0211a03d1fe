// Package render turns an almanac into the exact bytes of every catalog variant. It makes no decision
// about publication. It is a pure function, so that the same almanac gives the same bytes on
// every machine.
package render

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"gridcast/builder/almanac"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// Body returns the bytes of a variant as first rendered at generatedAt. The bytes of /next-race
// have no instant: the edge completes them for each request.
func Body(a *almanac.Almanac, v catalog.Variant, generatedAt time.Time) ([]byte, error) {
	render, ok := renderers[v.Endpoint]
	if !ok {
		return nil, fmt.Errorf("render %s: no renderer for endpoint %q", v.Path(), v.Endpoint)
	}
	data, err := render(a, v)
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", v.Path(), err)
	}
	if countdown, ok := data.(*wire.Countdown); ok {
		return wire.Marshal(countdown)
	}
	return wire.Marshal(wire.Wrap(data, generatedAt))
}

// Variants lists every variant that Body can render from the almanac, in ascending order of path.
func Variants(a *almanac.Almanac) []catalog.Variant {
	rounds := map[int64]*almanac.Round{}
	var sessions []int64
	for r := range a.All() {
		rounds[r.Session] = r
		sessions = append(sessions, r.Session)
	}
	return slices.DeleteFunc(catalog.All(Known(a), sessions), func(v catalog.Variant) bool {
		has := speaksOf[v.Endpoint]
		return v.Endpoint.Derived() || v.SessionKey > 0 && has != nil && !has(rounds[v.SessionKey])
	})
}

// speaksOf reports for an endpoint whether a round has a body of its own; otherwise the round shares one body. An endpoint
// that is not listed has one for each round.
var speaksOf = map[catalog.Name]func(*almanac.Round) bool{
	catalog.Predictions: hasPick, catalog.Probabilities: hasPick, catalog.Results: hasResult, catalog.Sessions: hasSessions,
	catalog.ForecastHistory: hasForecasts,
}

// Data returns the bytes of a derived body with that data, as first rendered at generatedAt.
func Data(data []byte, generatedAt time.Time) ([]byte, error) {
	return wire.Marshal(wire.Wrap(json.RawMessage(data), generatedAt))
}

// Known returns the seasons of the almanac.
func Known(a *almanac.Almanac) catalog.Known {
	k := catalog.Known{Current: a.Current, Pages: len(a.Log())/pageSize + 1}
	for _, y := range a.Years {
		k.Seasons = append(k.Seasons, y.Year)
	}
	return k
}

// DefaultYears returns the default season of each endpoint that looks back, by its name: the latest season with a row.
// It leaves out those whose default is Current, and derived ones.
func DefaultYears(a *almanac.Almanac) map[string]int {
	years := map[string]int{}
	for _, e := range catalog.Endpoints {
		if !e.Past || e.Derived {
			continue
		}
		of := e.Name
		if of == catalog.StandingsProgress {
			of = catalog.Standings // has a row if the progress has one, and counts the championship once, not after each round
		}
		for _, y := range slices.Backward(a.Years) {
			year := y.Year
			data, err := renderers[of](a, catalog.Variant{Endpoint: of, Type: catalog.DriversType, Year: year})
			if err != nil || reflect.ValueOf(data).Len() == 0 {
				continue
			}
			if year != a.Current {
				years[string(e.Name)] = year
			}
			break
		}
	}
	return years
}

// renderers make the data of each endpoint's variants.
var renderers = map[catalog.Name]func(*almanac.Almanac, catalog.Variant) (any, error){
	catalog.Standings: ofYear(func(y *almanac.Year, v catalog.Variant) any {
		if v.Type == catalog.ConstructorsType {
			return constructorStandings(y)
		}
		return driverStandings(y)
	}),
	catalog.Calendar:        ofYear(func(y *almanac.Year, _ catalog.Variant) any { return calendar(y) }),
	catalog.Drivers:         func(a *almanac.Almanac, _ catalog.Variant) (any, error) { return drivers(a.Grid), nil },
	catalog.Predictions:     records(hasPick, predictionRecord),
	catalog.Probabilities:   records(hasChances, probabilityRecord),
	catalog.NextRace:        func(a *almanac.Almanac, _ catalog.Variant) (any, error) { return countdown(a) },
	catalog.Accuracy:        func(a *almanac.Almanac, v catalog.Variant) (any, error) { return accuracy(a, v.Year), nil },
	catalog.Results:         records(hasResult, resultRecord),
	catalog.Weekends:        records(func(*almanac.Round) bool { return true }, func(_ *almanac.Year, r *almanac.Round) wire.Weekend { return weekend(r) }),
	catalog.Sessions:        latest(hasSessions, sessionsRecord),
	catalog.ForecastHistory: latest(hasForecasts, forecastHistory),
	catalog.StandingsProgress: ofYear(func(y *almanac.Year, v catalog.Variant) any {
		if v.Type == catalog.ConstructorsType {
			return constructorProgress(y)
		}
		return driverProgress(y)
	}),
	catalog.HeadToHead:    ofYear(func(y *almanac.Year, _ catalog.Variant) any { return headToHead(y) }),
	catalog.Careers:       func(a *almanac.Almanac, v catalog.Variant) (any, error) { return careers(a, v, present), nil },
	catalog.FormerCareers: func(a *almanac.Almanac, v catalog.Variant) (any, error) { return careers(a, v, former), nil },
	catalog.Identifiers:   func(a *almanac.Almanac, v catalog.Variant) (any, error) { return identifiers(a, v.Type) },
	catalog.Circuits:      func(a *almanac.Almanac, v catalog.Variant) (any, error) { return circuits(a, v.Year), nil },
	catalog.Overview:      func(a *almanac.Almanac, v catalog.Variant) (any, error) { return overview(a, v.Year), nil },
	catalog.Changes:       func(a *almanac.Almanac, v catalog.Variant) (any, error) { return changes(a, v.Year), nil },
	catalog.ChangesLog:    func(a *almanac.Almanac, v catalog.Variant) (any, error) { return changesPage(a, v.Page), nil },
}

func ofYear(render func(*almanac.Year, catalog.Variant) any) func(*almanac.Almanac, catalog.Variant) (any, error) {
	return func(a *almanac.Almanac, v catalog.Variant) (any, error) {
		y, ok := a.Year(v.Year)
		if !ok {
			return nil, fmt.Errorf("season %d is not in the almanac", v.Year)
		}
		return render(y, v), nil
	}
}

// records renders the rounds of which an endpoint has something to say: those of a season, or the one of a session
// key, if there is any.
func records[T any](has func(*almanac.Round) bool, record func(*almanac.Year, *almanac.Round) T) func(*almanac.Almanac, catalog.Variant) (any, error) {
	return func(a *almanac.Almanac, v catalog.Variant) (any, error) {
		list := []T{}
		y, ok := a.Year(v.Season())
		switch {
		case !ok && v.SessionKey != 0:
			return list, nil
		case !ok:
			return nil, fmt.Errorf("season %d is not in the almanac", v.Year)
		}
		for _, r := range y.Rounds {
			if (v.SessionKey == 0 || v.SessionKey == r.Session) && has(r) {
				list = append(list, record(y, r))
			}
		}
		return list, nil
	}
}

// latest renders the round of a session key, and without one the latest round of which an endpoint has something to say.
func latest[T any](has func(*almanac.Round) bool, record func(*almanac.Round) T) func(*almanac.Almanac, catalog.Variant) (any, error) {
	return func(a *almanac.Almanac, v catalog.Variant) (any, error) {
		if v.SessionKey != 0 {
			return records(has, func(_ *almanac.Year, r *almanac.Round) T { return record(r) })(a, v)
		}
		var last *almanac.Round
		for r := range a.All() {
			if has(r) && (last == nil || r.Start.After(last.Start)) {
				last = r
			}
		}
		list := []T{}
		if last != nil {
			list = append(list, record(last))
		}
		return list, nil
	}
}

func hasPick(r *almanac.Round) bool { return r.Pick != nil }

func hasChances(r *almanac.Round) bool { return r.Pick != nil && r.Pick.Chances != nil }

func hasForecasts(r *almanac.Round) bool { return len(r.Record.Forecasts) > 0 }

func hasResult(r *almanac.Round) bool { return r.Result != nil }
