package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Variant is one endpoint with one set of parameter values: the unit that is rendered,
// stored and served. Fields that the endpoint does not use are zero. Variants are comparable.
type Variant struct {
	Endpoint   Name
	Type       string // standings: DriversType or ConstructorsType
	Year       int    // 0: accuracy over all seasons, or a variant without a season
	SessionKey int64  // predictions for one round; NoSession: the empty list
}

// NoSession stands for every session key without a pick: all of them share one body.
const NoSession int64 = -1

// KeysPerSeason separates the season from the number within it in a session key: the season
// of a key is key / KeysPerSeason.
const KeysPerSeason = 1000

// Known is what a published version knows.
type Known struct {
	Seasons []int // ascending
	Current int   // the default year
}

// Has reports whether the season is known.
func (k Known) Has(year int) bool {
	_, found := slices.BinarySearch(k.Seasons, year)
	return found
}

// All returns every variant that must be rendered, in ascending order of Path. Picks are the
// session keys of the rounds with a pick.
func All(k Known, picks []int64) []Variant {
	const fixed, perSeason = 4, 5
	all := make([]Variant, 0, fixed+perSeason*len(k.Seasons)+len(picks))
	all = append(all,
		Variant{Endpoint: Drivers},
		Variant{Endpoint: NextRace},
		Variant{Endpoint: Accuracy},
		Variant{Endpoint: Predictions, SessionKey: NoSession},
	)
	for _, year := range k.Seasons {
		all = append(all,
			Variant{Endpoint: Standings, Type: DriversType, Year: year},
			Variant{Endpoint: Standings, Type: ConstructorsType, Year: year},
			Variant{Endpoint: Calendar, Year: year},
			Variant{Endpoint: Predictions, Year: year},
			Variant{Endpoint: Accuracy, Year: year},
		)
	}
	for _, key := range picks {
		all = append(all, Variant{Endpoint: Predictions, SessionKey: key})
	}
	slices.SortFunc(all, func(a, b Variant) int { return cmp.Compare(a.Path(), b.Path()) })
	return slices.Compact(all)
}

// Path returns the name under which the variant is stored, such as "standings/drivers/2026",
// "predictions/session/2026004" or "accuracy/all". No two variants share one.
func (v Variant) Path() string {
	year := strconv.Itoa(v.Year)
	switch {
	case v.Endpoint == Standings:
		return "standings/" + v.Type + "/" + year
	case v.Endpoint == Predictions && v.SessionKey == NoSession:
		return "predictions/none"
	case v.Endpoint == Predictions && v.SessionKey != 0:
		return "predictions/session/" + strconv.FormatInt(v.SessionKey, 10)
	case v.Endpoint == Accuracy && v.Year == 0:
		return "accuracy/all"
	case v.Year != 0:
		return string(v.Endpoint) + "/" + year
	}
	return string(v.Endpoint)
}

// ParsePath is the inverse of Path. A path that no request can select is an error.
func ParsePath(path string) (Variant, error) {
	v, ok := parsePath(path)
	// The comparison refuses every second spelling, such as a sign or a leading zero.
	if !ok || v.Path() != path {
		return Variant{}, fmt.Errorf("%q is not the path of a variant", path)
	}
	return v, nil
}

func parsePath(path string) (Variant, bool) {
	name, rest, _ := strings.Cut(path, "/")
	v := Variant{Endpoint: Name(name)}
	var ok bool
	switch v.Endpoint {
	case Drivers, NextRace:
		return v, true
	case Standings:
		v.Type, rest, _ = strings.Cut(rest, "/")
		v.Year, ok = parseYear(rest)
		return v, ok && slices.Contains(championship.Values, v.Type)
	case Calendar:
		v.Year, ok = parseYear(rest)
		return v, ok
	case Accuracy:
		if rest == "all" {
			return v, true
		}
		v.Year, ok = parseYear(rest)
		return v, ok
	case Predictions:
		if rest == "none" {
			v.SessionKey = NoSession
			return v, true
		}
		if key, found := strings.CutPrefix(rest, "session/"); found {
			v.SessionKey, ok = parseSessionKey(key)
			return v, ok
		}
		v.Year, ok = parseYear(rest)
		return v, ok
	}
	return v, false
}

// Target returns a request target that selects the variant whatever the defaults are, such
// as "/api/v1/standings?type=drivers&year=2026".
func (v Variant) Target() string {
	target := BasePath + "/" + string(v.Endpoint)
	switch {
	case v.Endpoint == Standings:
		return fmt.Sprintf("%s?type=%s&year=%d", target, v.Type, v.Year)
	case v.SessionKey == NoSession:
		return target + "?session_key=1" // of the year 0, in which nobody raced
	case v.SessionKey != 0:
		return fmt.Sprintf("%s?session_key=%d", target, v.SessionKey)
	case v.Year != 0:
		return fmt.Sprintf("%s?year=%d", target, v.Year)
	}
	return target
}
