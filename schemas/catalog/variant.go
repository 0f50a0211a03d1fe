package catalog

import (
	"fmt"
	"slices"
	"strings"
)

// Variant is one endpoint with one set of parameter values: the unit that is rendered,
// stored and served. Fields that the endpoint does not use are zero. Variants are comparable.
type Variant struct {
	Endpoint   Name
	Type       string // such as DriversType
	Year       int    // 0: all seasons, or a variant without a season
	SessionKey int64  // one round; NoSession: the empty list
	Page       int    // of a log, from 1; NoPage: the empty page
}

// NoSession stands for every session key without a pick: all of them share one body.
const NoSession int64 = -1

// NoPage stands for every page that a log does not have yet: all of them share one body.
const NoPage = -1

// lastPage is the highest number of a page in a request. No log gets there, so it selects NoPage.
const lastPage = 999_999

// KeysPerSeason separates the season from the number within it in a session key: the season
// of a key is key / KeysPerSeason.
const KeysPerSeason = 1000

// Known lists the seasons of a published version.
type Known struct {
	Seasons []int          // ascending
	Current int            // the season that the version looks ahead to
	Pages   int            // of the log of changes, for All
	Past    map[string]int // the default season of each endpoint with another one, by its name
}

// Default returns the season of a request to an endpoint that names none.
func (k Known) Default(n Name) int {
	if year, ok := k.Past[string(n)]; ok {
		return year
	}
	return k.Current
}

// Has reports whether the season is known.
func (k Known) Has(year int) bool {
	_, found := slices.BinarySearch(k.Seasons, year)
	return found
}

// All returns every variant that may be rendered as a document, in ascending order of Path. Sessions are the
// session keys with bodies of their own: each endpoint that has the parameter has a variant of every one.
func All(k Known, sessions []int64) []Variant {
	type named struct {
		path string
		Variant
	}
	var all []named
	for i := range Endpoints {
		e := &Endpoints[i]
		if e.File {
			continue
		}
		for _, p := range e.patterns {
			for _, v := range p.expand(e, k, sessions) {
				all = append(all, named{p.path(v), v})
			}
		}
	}
	slices.SortFunc(all, func(a, b named) int { return strings.Compare(a.path, b.path) })
	all = slices.Compact(all) // two patterns may give the same variant
	variants := make([]Variant, len(all))
	for i := range all {
		variants[i] = all[i].Variant
	}
	return variants
}

// Season returns the year of the variant's season; 0 if the variant covers several seasons or none.
func (v Variant) Season() int {
	if v.SessionKey > 0 {
		return int(v.SessionKey / KeysPerSeason)
	}
	return v.Year
}

// Path returns the name under which the variant is stored, such as "standings/drivers/2026",
// "predictions/session/2026004" or "accuracy/all". No two variants share one. A variant that
// no request can select has no path that ParsePath reads.
func (v Variant) Path() string {
	if p := v.pattern(); p != nil {
		return p.path(v)
	}
	return fmt.Sprintf("%+v", v)
}

// pattern returns the shape of the variant's path, nil if it has none.
func (v Variant) pattern() pattern {
	for i := range Endpoints {
		if Endpoints[i].Name == v.Endpoint {
			return Endpoints[i].pattern(v)
		}
	}
	return nil
}

func (e *Endpoint) pattern(v Variant) pattern {
	for _, p := range e.patterns {
		if p.fits(v) {
			return p
		}
	}
	return nil
}

// ParsePath is the inverse of Path. A path that no request can select is an error.
func ParsePath(path string) (Variant, error) {
	var room [64]byte
	for i := range Endpoints {
		e := &Endpoints[i]
		for _, p := range e.patterns {
			if !strings.HasPrefix(path, p[0].literal) { // of most endpoints; a build parses thousands of paths
				continue
			}
			// The comparison refuses every second spelling, such as a sign or a leading zero.
			if v, ok := p.parse(e, path); ok && string(p.appendPath(room[:0], v)) == path {
				return v, nil
			}
		}
	}
	return Variant{}, fmt.Errorf("%q is not the path of a variant", path)
}

// Query returns the parameters of a request that selects the variant and does not rely on defaults, such as
// "type=drivers" and "year=2026".
func (v Variant) Query() []string { return v.pattern().query(v) }

// Target returns a request target that selects the variant and does not rely on defaults, such
// as "/api/v1/standings?type=drivers&year=2026".
func (v Variant) Target() string {
	target := BasePath + "/" + string(v.Endpoint)
	if query := v.Query(); len(query) > 0 {
		target += "?" + strings.Join(query, "&")
	}
	return target
}
