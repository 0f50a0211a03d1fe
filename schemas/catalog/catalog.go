// Package catalog is the table of endpoints and parameters. The builder renders by it and the
// edge routes by it; no other place in gridcast lists the variants.
//
// A request's path finds an [Endpoint] with [Lookup]; its raw query selects a [Variant] with
// [Endpoint.Select]; the variant's [Variant.Path] is the name under which its body is stored.
// Everything here is pure, and safe for concurrent use.
//
// # A new endpoint
//
// One row of [Endpoints] determines the variants of an endpoint, their requests and their paths in
// the store. A new endpoint takes:
//
//   - here, a [Name] and a row, Additive, with the path patterns of its variants;
//   - in schemas, a struct in wire, a schema file in v1, a row of the table contracts that
//     pairs them (validate.go), and its path in openapi.yaml, with an example; a schema file may refer only to
//     common.schema.json;
//   - in builder/render, a function, and its row of the table renderers (render.go);
//   - in builder/bulk, a row of the function tables, or a reason in the list of bulk_test.go;
//   - in edge/edgetest, a small body in the table samples (version.go);
//   - in README.md, a row of the table of endpoints, and a line in deploy/CHANGELOG.md.
//
// deploy/endpoint_test.go and the tests of those packages name a forgotten place. Two tests list all variants of a small season, and want
// the new ones too: variant_test.go here, and render_test.go in builder/render. The edge needs no change: it serves the
// variants of a version, and answers 503 for a variant that no version has yet. A cross-check of
// the new bodies with the others belongs to builder/check.
package catalog

import "strings"

// BasePath precedes every endpoint path of the contract.
const BasePath = "/api/v1"

// Name identifies an endpoint.
type Name string

// The endpoints.
const (
	Standings   Name = "standings"
	Calendar    Name = "calendar"
	Drivers     Name = "drivers"
	Predictions Name = "predictions"
	NextRace    Name = "next-race"
	Accuracy    Name = "accuracy"

	Probabilities   Name = "probabilities"
	TrackRecord     Name = "track-record"
	TitleOdds       Name = "title-odds"
	Forecast        Name = "forecast"
	ForecastHistory Name = "forecast-history"

	Results    Name = "results"
	Weekends   Name = "weekends"
	Changes    Name = "changes"
	ChangesLog Name = "changes/log"
	Live       Name = "live"

	Sessions          Name = "sessions"
	StandingsProgress Name = "standings-progress"
	HeadToHead        Name = "head-to-head"
	Careers           Name = "careers"
	FormerCareers     Name = "former-careers"
	Identifiers       Name = "identifiers"

	Bulk Name = "bulk"
)

// Endpoint is one row of the table.
type Endpoint struct {
	Name     Name
	Path     string  // after BasePath: "/" and the name
	Params   []Param // in documentation order
	Computed bool    // the edge completes the body for each request
	// File marks an endpoint whose body is a file. The builder makes the file from published
	// documents, and the edge sends it from disk, so no version has documents of its variants.
	File bool

	// Derived marks an endpoint whose bodies need more than the facts of a version. A job makes them after
	// the version, and they come with a later one.
	Derived bool

	// Additive marks an endpoint that came after the first six: a version that was published
	// before, or before its figures were ready, lacks some or all of its variants.
	Additive bool

	// Passing marks an endpoint whose bodies change with every lap of a race. Caches keep them for seconds, and
	// nobody counts a version that changes them alone.
	Passing bool

	// Past marks an endpoint that looks back: a request without a season gets the latest season with a row. Other
	// endpoints of one season look ahead: they show the season of the next race.
	Past bool

	// The shapes of its variants' paths. No variant has two of them.
	patterns []pattern
}

// Param is a query parameter that an endpoint understands. All parameters are optional.
type Param struct {
	Name    string
	Pattern string   // the form of a value, as a regular expression
	Values  []string // the allowed values, the default first; nil if Pattern is complete
}

// The parameter names of the contract.
const (
	typeParam       = "type"
	yearParam       = "year"
	sessionKeyParam = "session_key"
	pageParam       = "page"
)

// The values of the parameter type.
const (
	DriversType      = "drivers"
	ConstructorsType = "constructors"
	CircuitsType     = "circuits"
	GrandsPrixType   = "grands-prix"
)

var (
	championship = Param{typeParam, `^(drivers|constructors)$`, []string{DriversType, ConstructorsType}}
	identified   = Param{typeParam, `^(drivers|constructors|circuits|grands-prix)$`, []string{DriversType, ConstructorsType, CircuitsType, GrandsPrixType}}
	season       = Param{Name: yearParam, Pattern: `^[0-9]{4}$`}
	sessionKey   = Param{Name: sessionKeyParam, Pattern: `^[1-9][0-9]{0,15}$`}
	page         = Param{Name: pageParam, Pattern: `^[1-9][0-9]{0,5}$`}
)

// Endpoints is the table, in documentation order. It must not be changed.
//
// Each row ends with the patterns of its variants' paths, without the name at their beginning. A segment in braces is a
// parameter. With "=" it stands for the one value that no request spells: {year=all} for all
// seasons, {session_key=none} for every session key without a body of its own, {page=none} for every page to come. An endpoint
// with no path without a season serves the default season of the version where a request names none: see Known.Default.
var Endpoints = []Endpoint{
	endpoint(Endpoint{Name: Standings, Params: []Param{championship, season}, Past: true}, "/{type}/{year}"),
	endpoint(Endpoint{Name: Calendar, Params: []Param{season}}, "/{year}"),
	endpoint(Endpoint{Name: Drivers}, ""),
	endpoint(Endpoint{Name: Predictions, Params: []Param{season, sessionKey}, Past: true}, "/{year}", "/session/{session_key}", "/{session_key=none}"),
	endpoint(Endpoint{Name: NextRace, Computed: true}, ""),
	endpoint(Endpoint{Name: Accuracy, Params: []Param{season}}, "/{year}", "/{year=all}"),
	endpoint(Endpoint{Name: Probabilities, Params: []Param{season, sessionKey}, Additive: true, Past: true}, "/{year}", "/session/{session_key}", "/{session_key=none}"),
	endpoint(Endpoint{Name: TrackRecord, Params: []Param{season}, Additive: true, Derived: true}, "/{year}", "/{year=all}"),
	endpoint(Endpoint{Name: TitleOdds, Params: []Param{season}, Additive: true, Derived: true, Past: true}, "/{year}"),
	endpoint(Endpoint{Name: Forecast, Params: []Param{sessionKey}, Additive: true, Derived: true}, "", "/session/{session_key}", "/{session_key=none}"),
	endpoint(Endpoint{Name: ForecastHistory, Params: []Param{sessionKey}, Additive: true}, "", "/session/{session_key}", "/{session_key=none}"),
	endpoint(Endpoint{Name: Results, Params: []Param{season, sessionKey}, Additive: true, Past: true}, "/{year}", "/session/{session_key}", "/{session_key=none}"),
	endpoint(Endpoint{Name: Weekends, Params: []Param{season, sessionKey}, Additive: true}, "/{year}", "/session/{session_key}", "/{session_key=none}"),
	endpoint(Endpoint{Name: Changes, Params: []Param{season}, Additive: true}, "/{year}", "/{year=all}"),
	endpoint(Endpoint{Name: ChangesLog, Params: []Param{page}, Additive: true}, "/{page}", "/{page=none}"),
	endpoint(Endpoint{Name: Live, Params: []Param{sessionKey}, Additive: true, Derived: true, Passing: true}, "", "/session/{session_key}", "/{session_key=none}"),
	endpoint(Endpoint{Name: Sessions, Params: []Param{sessionKey}, Additive: true}, "", "/session/{session_key}", "/{session_key=none}"),
	endpoint(Endpoint{Name: StandingsProgress, Params: []Param{championship, season}, Additive: true, Past: true}, "/{type}/{year}"),
	endpoint(Endpoint{Name: HeadToHead, Params: []Param{season}, Additive: true, Past: true}, "/{year}"),
	endpoint(Endpoint{Name: Careers, Params: []Param{championship, season}, Additive: true}, "/{type}/{year}", "/{type}/{year=all}"),
	endpoint(Endpoint{Name: FormerCareers, Params: []Param{championship}, Additive: true}, "/{type}"),
	endpoint(Endpoint{Name: Identifiers, Params: []Param{identified}, Additive: true}, "/{type}"),
	endpoint(Endpoint{Name: Bulk, Params: []Param{season}, Additive: true, File: true}, "/{year}"),
}

// Passing reports whether a stored path is that of a passing endpoint.
func Passing(path string) bool {
	name, _, _ := strings.Cut(path, "/")
	i, ok := Lookup("/" + name)
	return ok && Endpoints[i].Passing
}

// Derived reports whether the endpoint of that name is marked so.
func (n Name) Derived() bool {
	i, ok := Lookup("/" + string(n))
	return ok && Endpoints[i].Derived
}

// Lookup returns the index in Endpoints of the endpoint with a path: the bytes after BasePath.
// It accepts neither a trailing slash nor another spelling, and does not allocate. The edge removes one
// trailing slash before it calls Lookup.
func Lookup[T string | []byte](path T) (index int, ok bool) {
	for i := range Endpoints {
		if string(path) == Endpoints[i].Path {
			return i, true
		}
	}
	return 0, false
}
