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
//   - here, a [Name] with its comment, and a row, Additive, with the path patterns of its variants;
//   - in schemas, the structs of its body in wire, and its texts and an example in endpoints.yaml;
//   - in builder/render, a function, and its row of the table renderers (render.go);
//   - in builder/bulk, a row of the function tables, or a reason in the list of bulk_test.go;
//   - a line in deploy/CHANGELOG.md.
//
// "go generate ./schemas" makes everything else: the schema file, the path in the OpenAPI document, the contract, and
// the row in README.md. The comment of package generate says how. deploy/endpoint_test.go and the tests of those packages
// name a forgotten place. Two tests list all variants of a small season, and want
// the new ones too: select_test.go here, and render_test.go in builder/render. The edge needs no change: it serves the
// variants of a version, and answers 503 for a variant that no version has yet. A cross-check of
// the new bodies with the others belongs to builder/check.
package catalog

import (
	"strings"
	"time"
)

// BasePath precedes every endpoint path of the contract.
const BasePath = "/api/v1"

// Name identifies an endpoint.
type Name string

// The endpoints. The comment behind a name stands in README.md. The OpenAPI document has its texts from endpoints.yaml.
const (
	Standings         Name = "standings"          // the championship
	Calendar          Name = "calendar"           // rounds with start, status and winner
	Drivers           Name = "drivers"            // the current grid
	Predictions       Name = "predictions"        // frozen picks and verified results
	NextRace          Name = "next-race"          // the next race, countdown and pick
	Accuracy          Name = "accuracy"           // hit rates of the picks
	Probabilities     Name = "probabilities"      // every starter's chances, as frozen
	TrackRecord       Name = "track-record"       // scores with intervals
	TitleOdds         Name = "title-odds"         // each contender's chance of the title
	Forecast          Name = "forecast"           // coming races: provisional chances
	ForecastHistory   Name = "forecast-history"   // noted forecasts of a week
	Results           Name = "results"            // classifications of race and sprint, with revisions
	Weekends          Name = "weekends"           // every session's start, the time zone
	Changes           Name = "changes"            // moved races, revised results, voided picks
	ChangesLog        Name = "changes/log"        // all changes
	Live              Name = "live"               // the running race lap by lap
	Sessions          Name = "sessions"           // practice, qualifying, grids, pit stops
	StandingsProgress Name = "standings-progress" // the championship after every round
	HeadToHead        Name = "head-to-head"       // team-mates in qualifying and race
	Careers           Name = "careers"            // starts, wins, titles of present drivers or teams
	FormerCareers     Name = "former-careers"     // of all others
	Identifiers       Name = "identifiers"        // lasting identifiers, other sources' names
	Circuits          Name = "circuits"           // layouts, winners, lap records
	Overview          Name = "overview"           // a season in one answer
	Bulk              Name = "bulk"
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

	// Deprecated and Sunset are the instants from which an endpoint is deprecated and may be gone, at least twelve months
	// apart; zero: it stays. Its answers have them as header fields, see RFC 9745 and RFC 8594.
	Deprecated, Sunset time.Time

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
	endpoint(Endpoint{Name: Circuits, Params: []Param{season}, Additive: true}, "/{year}", "/{year=all}"),
	endpoint(Endpoint{Name: Overview, Params: []Param{season}, Additive: true}, "", "/{year}"),
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

// Feed is a file of a published version for programs that send no key: calendars and feed readers.
// It is stored beside the variants and served unchanged, at the root.
type Feed struct {
	Path        string // of the request
	ContentType string
	Stored      string // the name under which its body is stored; no variant has that name
}

// Feeds lists the feeds, in documentation order. It must not be changed. A version from before a
// feed existed lacks it.
var Feeds = []Feed{
	{Path: "/calendar.ics", ContentType: "text/calendar; charset=utf-8", Stored: "feeds/calendar.ics"},
	{Path: "/changes.atom", ContentType: "application/atom+xml; charset=utf-8", Stored: "feeds/changes.atom"},
}

// Portraits is the folder of the drawn portraits, in the store and, below the root, in requests. An edge serves them
// without a key, like the feeds.
const Portraits = "portraits/"

// Portrait returns the name under which a driver's drawn portrait is stored. It is the path of the request without the
// first slash.
func Portrait(driverID string) string { return Portraits + driverID + ".svg" }
