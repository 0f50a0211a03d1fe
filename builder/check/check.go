// Package check is the last look at a version before it is published: it reads the rendered
// bytes as a client would and refuses a set that breaks the contract or contradicts itself. It
// shares no code with what rendered them, so that one mistake is not made twice.
package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"gridcast/schemas"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// Bodies checks the bodies of a whole version by path, and returns everything that is wrong
// with them: each against its schema, that none is missing that k promises, and the endpoints
// against each other. Bodies in trusted, by path, have passed the schema before and are read only for
// the cross-checks.
func Bodies(k catalog.Known, bodies map[string][]byte, trusted func(path string) bool) error {
	var errs []error
	for _, path := range slices.Sorted(maps.Keys(bodies)) {
		if trusted(path) {
			continue
		}
		if err := schema(path, bodies[path]); err != nil {
			errs = append(errs, err)
		}
	}
	for _, v := range catalog.All(k, nil) {
		// These two come with a later version; what there is of them was read above.
		if v.Endpoint == catalog.TrackRecord || v.Endpoint == catalog.TitleOdds {
			continue
		}
		if _, ok := bodies[v.Path()]; !ok {
			errs = append(errs, fmt.Errorf("%s: was not rendered", v.Path()))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err // the cross-checks could only repeat it
	}
	v, err := read(k, bodies)
	if err != nil {
		return err
	}
	return v.contradictions()
}

// schema validates one body.
func schema(path string, body []byte) error {
	variant, err := catalog.ParsePath(path)
	if err != nil {
		return err
	}
	if variant.Endpoint == catalog.NextRace {
		return countdownSchema(variant, body)
	}
	return schemas.Validate(variant, body)
}

// countdownSchema validates the body of every coming round as the edge will complete it.
func countdownSchema(v catalog.Variant, body []byte) error {
	c, err := wire.ParseCountdown(body)
	if err != nil {
		return fmt.Errorf("%s: %w", v.Path(), err)
	}
	for _, r := range c.Rounds {
		completed := r.Append(nil, time.Time(r.Start).Add(-time.Second))
		if err := schemas.Validate(v, completed); err != nil {
			return fmt.Errorf("round at %s: %w", r.Start, err)
		}
	}
	return nil
}

// version is what the bodies say, by year.
type version struct {
	years     []int
	drivers   map[int][]wire.DriverStanding
	teams     map[int][]wire.ConstructorStanding
	calendar  map[int][]wire.CalendarEntry
	picks     map[int][]wire.PredictionRecord
	chances   map[int][]wire.ProbabilityRecord
	odds      map[string]wire.TitleOdds // by path, of this version
	accuracy  map[int]wire.Accuracy     // 0: all seasons
	grid      []wire.Driver
	countdown wire.Countdown
}

// read decodes what the cross-checks compare.
func read(k catalog.Known, bodies map[string][]byte) (*version, error) {
	v := &version{
		years:    k.Seasons,
		drivers:  map[int][]wire.DriverStanding{},
		teams:    map[int][]wire.ConstructorStanding{},
		calendar: map[int][]wire.CalendarEntry{},
		picks:    map[int][]wire.PredictionRecord{},
		chances:  map[int][]wire.ProbabilityRecord{},
		odds:     map[string]wire.TitleOdds{},
		accuracy: map[int]wire.Accuracy{},
	}
	errs := []error{
		decode(bodies, catalog.Variant{Endpoint: catalog.Drivers}, &v.grid),
		decodeInto(bodies, catalog.Variant{Endpoint: catalog.Accuracy}, v.accuracy, 0),
	}
	for _, year := range k.Seasons {
		errs = append(errs,
			decodeInto(bodies, catalog.Variant{Endpoint: catalog.Standings, Type: catalog.DriversType, Year: year}, v.drivers, year),
			decodeInto(bodies, catalog.Variant{Endpoint: catalog.Standings, Type: catalog.ConstructorsType, Year: year}, v.teams, year),
			decodeInto(bodies, catalog.Variant{Endpoint: catalog.Calendar, Year: year}, v.calendar, year),
			decodeInto(bodies, catalog.Variant{Endpoint: catalog.Predictions, Year: year}, v.picks, year),
			decodeInto(bodies, catalog.Variant{Endpoint: catalog.Probabilities, Year: year}, v.chances, year),
			decodeInto(bodies, catalog.Variant{Endpoint: catalog.Accuracy, Year: year}, v.accuracy, year),
		)
	}
	next := catalog.Variant{Endpoint: catalog.NextRace}.Path()
	if err := json.Unmarshal(bodies[next], &v.countdown); err != nil {
		errs = append(errs, fmt.Errorf("%s: %w", next, err))
	}
	for _, year := range k.Seasons {
		for _, p := range v.picks[year] {
			errs = append(errs, sameRecord(bodies, catalog.Variant{Endpoint: catalog.Predictions, SessionKey: p.SessionKey}, p))
		}
		for _, p := range v.chances[year] {
			errs = append(errs, sameRecord(bodies, catalog.Variant{Endpoint: catalog.Probabilities, SessionKey: p.SessionKey}, p))
		}
		odds := catalog.Variant{Endpoint: catalog.TitleOdds, Year: year}
		if _, ok := bodies[odds.Path()]; ok {
			var data wire.TitleOdds
			errs = append(errs, decode(bodies, odds, &data))
			v.odds[odds.Path()] = data
		}
	}
	return v, errors.Join(errs...)
}

// sameRecord checks that the variant of one session key says what the season's list says.
func sameRecord[T any](bodies map[string][]byte, variant catalog.Variant, record T) error {
	var alone []T
	if err := decode(bodies, variant, &alone); err != nil {
		return err
	}
	want, err := wire.Marshal([]T{record})
	if err != nil {
		return err
	}
	if got, err := wire.Marshal(alone); err != nil || string(got) != string(want) {
		return fmt.Errorf("%s: got %s, the season's list has %s", variant.Path(), got, want)
	}
	return nil
}

func decode[T any](bodies map[string][]byte, variant catalog.Variant, data *T) error {
	body, ok := bodies[variant.Path()]
	if !ok {
		return fmt.Errorf("%s: was not rendered", variant.Path())
	}
	var envelope wire.Success[T]
	if err := json.Unmarshal(body, &envelope); err != nil {
		return fmt.Errorf("%s: %w", variant.Path(), err)
	}
	*data = envelope.Data
	return nil
}

func decodeInto[T any](bodies map[string][]byte, variant catalog.Variant, by map[int]T, year int) error {
	var data T
	err := decode(bodies, variant, &data)
	by[year] = data
	return err
}
