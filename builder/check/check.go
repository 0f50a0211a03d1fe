// Package check is the last look at a version before it is published: it reads the rendered
// bytes as a client would and refuses a set that breaks the contract or contradicts itself. It
// shares no code with what rendered them, so that one mistake is not made twice.
package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"gridcast/schemas"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// Faults are what is wrong with a set of bodies, by the path of the one that is wrong.
type Faults map[string]error

// Err is all of it as one error, in the order of the paths; nil if there is none.
func (f Faults) Err() error {
	errs := make([]error, 0, len(f))
	for _, path := range slices.Sorted(maps.Keys(f)) {
		errs = append(errs, fmt.Errorf("%s: %w", path, f[path]))
	}
	return errors.Join(errs...)
}

func (f Faults) add(path string, err error) { f[path] = errors.Join(f[path], err) }

// Bodies checks the bodies of a whole version by path, and returns everything that is wrong
// with them: each against its schema, that none is missing that k promises, and the endpoints
// against each other. Bodies in trusted, by path, have passed the schema before and are read only
// for the cross-checks; so are the records of a list that have passed in this process. A season of which
// every body has passed all of it in this process is not read again. Of two that contradict each other, the one is wrong that is made from the
// other: predictions by the calendar, accuracy by the predictions.
func Bodies(k catalog.Known, bodies map[string][]byte, trusted func(path string) bool) Faults {
	faults := Faults{}
	s := seasonsOf(bodies)
	var (
		mu    sync.Mutex // guards faults
		group errgroup.Group
	)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for path, body := range bodies {
		if trusted(path) || s.sound(path) {
			continue
		}
		group.Go(func() error {
			var err error
			if shell, ok := s.shell(path, body); !ok {
				if rest, isList := s.lists[path]; isList {
					body = rest
				}
				err = Body(path, body)
			} else if _, known := s.shells.LoadOrStore(string(shell), true); !known {
				err = Body(path, shell)
			}
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				faults.add(path, err)
			}
			return nil
		})
	}
	_ = group.Wait() // what is wrong is in faults
	for _, v := range catalog.All(k, nil) {
		// These two come with a later version; what there is of them was read above.
		if v.Endpoint == catalog.TrackRecord || v.Endpoint == catalog.TitleOdds {
			continue
		}
		if _, ok := bodies[v.Path()]; !ok {
			faults.add(v.Path(), errors.New("was not rendered"))
		}
	}
	if len(faults) > 0 {
		return faults // the cross-checks could only repeat it
	}
	v := s.read(k, bodies, faults)
	if len(faults) == 0 {
		v.contradictions(faults)
	}
	if len(faults) == 0 {
		s.remember()
	}
	return faults
}

// Body checks one body by itself. Its error is what is wrong, without the path.
func Body(path string, body []byte) error {
	variant, err := catalog.ParsePath(path)
	if err != nil {
		return err
	}
	if variant.Endpoint == catalog.NextRace {
		return countdownSchema(variant, body)
	}
	return schema(variant, body)
}

func schema(v catalog.Variant, body []byte) error {
	err := schemas.Validate(v, body)
	var fault *schemas.FaultError
	if errors.As(err, &fault) {
		return fault.Err
	}
	return err
}

// countdownSchema validates the body of every coming round as the edge will complete it.
func countdownSchema(v catalog.Variant, body []byte) error {
	c, err := wire.ParseCountdown(body)
	if err != nil {
		return err
	}
	for _, r := range c.Rounds {
		completed := r.Append(nil, time.Time(r.Start).Add(-time.Second))
		if err := schema(v, completed); err != nil {
			return fmt.Errorf("round at %s: %w", r.Start, err)
		}
	}
	return nil
}

// version is what the bodies say, by year. Of a season that has been checked before, only what the
// others are checked against is there.
type version struct {
	years     []int
	checked   map[int]bool
	drivers   map[int][]wire.DriverStanding
	teams     map[int][]wire.ConstructorStanding
	calendar  map[int][]wire.CalendarEntry
	picks     map[int][]wire.PredictionRecord
	chances   map[int][]wire.ProbabilityRecord
	odds      map[int]wire.TitleOdds // of this version
	accuracy  map[int]wire.Accuracy  // 0: all seasons
	results   map[int][]wire.ResultRecord
	weekends  map[int][]wire.Weekend
	changes   []wire.Change // of all seasons
	grid      []wire.Driver
	countdown wire.Countdown
}

// read decodes the bodies of every variant that k promises; a missing one is a fault.
func (s *seasons) read(k catalog.Known, bodies map[string][]byte, faults Faults) *version {
	v := &version{
		years:    k.Seasons,
		checked:  map[int]bool{},
		drivers:  map[int][]wire.DriverStanding{},
		teams:    map[int][]wire.ConstructorStanding{},
		calendar: map[int][]wire.CalendarEntry{},
		picks:    map[int][]wire.PredictionRecord{},
		chances:  map[int][]wire.ProbabilityRecord{},
		odds:     map[int]wire.TitleOdds{},
		accuracy: map[int]wire.Accuracy{},
		results:  map[int][]wire.ResultRecord{},
		weekends: map[int][]wire.Weekend{},
	}
	v.changes = decode[[]wire.Change](bodies, catalog.Variant{Endpoint: catalog.Changes}, faults)
	v.grid = decode[[]wire.Driver](bodies, catalog.Variant{Endpoint: catalog.Drivers}, faults)
	v.accuracy[0] = decode[wire.Accuracy](bodies, catalog.Variant{Endpoint: catalog.Accuracy}, faults)
	for _, year := range k.Seasons {
		v.calendar[year] = decode[[]wire.CalendarEntry](bodies, catalog.Variant{Endpoint: catalog.Calendar, Year: year}, faults)
		v.picks[year] = decode[[]wire.PredictionRecord](bodies, catalog.Variant{Endpoint: catalog.Predictions, Year: year}, faults)
		if v.checked[year] = s.checked[year]; v.checked[year] {
			continue
		}
		v.drivers[year] = decode[[]wire.DriverStanding](bodies, catalog.Variant{Endpoint: catalog.Standings, Type: catalog.DriversType, Year: year}, faults)
		v.teams[year] = decode[[]wire.ConstructorStanding](bodies, catalog.Variant{Endpoint: catalog.Standings, Type: catalog.ConstructorsType, Year: year}, faults)
		v.accuracy[year] = decode[wire.Accuracy](bodies, catalog.Variant{Endpoint: catalog.Accuracy, Year: year}, faults)
		v.chances[year] = decode[[]wire.ProbabilityRecord](bodies, catalog.Variant{Endpoint: catalog.Probabilities, Year: year}, faults)
		v.results[year] = decode[[]wire.ResultRecord](bodies, catalog.Variant{Endpoint: catalog.Results, Year: year}, faults)
		v.weekends[year] = decode[[]wire.Weekend](bodies, catalog.Variant{Endpoint: catalog.Weekends, Year: year}, faults)
		for _, p := range v.picks[year] {
			sameRecord(s, bodies, catalog.Variant{Endpoint: catalog.Predictions, SessionKey: p.SessionKey}, p, faults)
		}
		for _, p := range v.chances[year] {
			sameRecord(s, bodies, catalog.Variant{Endpoint: catalog.Probabilities, SessionKey: p.SessionKey}, p, faults)
		}
		for _, r := range v.results[year] {
			sameRecord(s, bodies, catalog.Variant{Endpoint: catalog.Results, SessionKey: r.SessionKey}, r, faults)
		}
		for _, w := range v.weekends[year] {
			sameRecord(s, bodies, catalog.Variant{Endpoint: catalog.Weekends, SessionKey: w.SessionKey}, w, faults)
		}
		odds := catalog.Variant{Endpoint: catalog.TitleOdds, Year: year}
		if _, ok := bodies[odds.Path()]; ok {
			v.odds[year] = decode[wire.TitleOdds](bodies, odds, faults)
		}
	}
	if err := json.Unmarshal(bodies[nextRace], &v.countdown); err != nil {
		faults.add(nextRace, err)
	}
	return v
}

var nextRace = catalog.Variant{Endpoint: catalog.NextRace}.Path()

// sameRecord checks that the variant of one session key says what the season's list says.
func sameRecord[T any](s *seasons, bodies map[string][]byte, variant catalog.Variant, record T, faults Faults) {
	if _, same := s.shell(variant.Path(), bodies[variant.Path()]); same {
		return
	}
	alone := decode[[]T](bodies, variant, faults)
	want, err := wire.Marshal([]T{record})
	if err != nil {
		faults.add(variant.Path(), err)
		return
	}
	if got, err := wire.Marshal(alone); err != nil || string(got) != string(want) {
		faults.add(variant.Path(), fmt.Errorf("got %s, the season's list has %s", got, want))
	}
}

func decode[T any](bodies map[string][]byte, variant catalog.Variant, faults Faults) T {
	var envelope wire.Success[T]
	if body, ok := bodies[variant.Path()]; !ok {
		faults.add(variant.Path(), errors.New("was not rendered"))
	} else if err := json.Unmarshal(body, &envelope); err != nil {
		faults.add(variant.Path(), err)
	}
	return envelope.Data
}
