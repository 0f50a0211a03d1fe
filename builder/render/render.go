// Package render turns an almanac into the exact bytes of every catalog variant and their
// content codings. It decides nothing about what may be shown; it is a pure function, so that
// the same almanac gives the same bytes on every machine.
package render

import (
	"fmt"
	"time"

	"gridcast/builder/almanac"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// Body returns the bytes of a variant as first rendered at generatedAt. Those of /next-race
// have no instant: the edge completes them for each request.
func Body(a *almanac.Almanac, v catalog.Variant, generatedAt time.Time) ([]byte, error) {
	data, err := data(a, v)
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", v.Path(), err)
	}
	if countdown, ok := data.(*wire.Countdown); ok {
		return wire.Marshal(countdown)
	}
	return wire.Marshal(wire.Wrap(data, generatedAt))
}

// Variants lists every variant that the almanac has, in ascending order of path.
func Variants(a *almanac.Almanac) []catalog.Variant {
	var picks []int64
	for _, y := range a.Years {
		for _, r := range y.Rounds {
			if r.Pick != nil {
				picks = append(picks, r.Session)
			}
		}
	}
	return catalog.All(Known(a), picks)
}

// Known says which seasons the almanac has.
func Known(a *almanac.Almanac) catalog.Known {
	k := catalog.Known{Current: a.Current}
	for _, y := range a.Years {
		k.Seasons = append(k.Seasons, y.Year)
	}
	return k
}

func data(a *almanac.Almanac, v catalog.Variant) (any, error) {
	switch v.Endpoint {
	case catalog.Drivers:
		return drivers(a.Grid), nil
	case catalog.NextRace:
		return countdown(a)
	case catalog.Accuracy:
		return accuracy(a, v.Year), nil
	case catalog.Predictions:
		if v.SessionKey != 0 {
			return predictionsOf(a, v.SessionKey), nil
		}
	}
	y, ok := a.Year(v.Year)
	if !ok {
		return nil, fmt.Errorf("season %d is not in the almanac", v.Year)
	}
	switch v.Endpoint {
	case catalog.Standings:
		if v.Type == catalog.ConstructorsType {
			return constructorStandings(y), nil
		}
		return driverStandings(y), nil
	case catalog.Calendar:
		return calendar(y), nil
	case catalog.Predictions:
		return predictions(y), nil
	default:
		return nil, fmt.Errorf("no renderer for endpoint %q", v.Endpoint)
	}
}
