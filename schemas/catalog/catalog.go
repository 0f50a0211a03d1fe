// Package catalog is the table of endpoints and parameters: the builder renders by it, the
// edge routes by it, and nothing else in gridcast says which variants exist.
//
// A request's path finds an [Endpoint] with [Lookup]; its raw query selects a [Variant] with
// [Endpoint.Select]; the variant's [Variant.Path] is the name under which its body is stored.
// Everything here is pure, and safe for concurrent use.
package catalog

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
)

// Endpoint is one row of the table.
type Endpoint struct {
	Name     Name
	Path     string  // after BasePath, such as "/standings"
	Params   []Param // in documentation order
	Computed bool    // the edge completes the body for each request
}

// Param is a query parameter that an endpoint understands. All parameters are optional.
type Param struct {
	Name    string
	Pattern string   // what a value looks like, as a regular expression
	Values  []string // the values allowed, the default first; nil where Pattern says it all
	Default string   // what an absent parameter means, in words
}

// The parameter names of the contract.
const (
	typeParam       = "type"
	yearParam       = "year"
	sessionKeyParam = "session_key"
)

// The values of the parameter type.
const (
	DriversType      = "drivers"
	ConstructorsType = "constructors"
)

var (
	championship = Param{
		Name:    typeParam,
		Pattern: `^(drivers|constructors)$`,
		Values:  []string{DriversType, ConstructorsType},
		Default: DriversType,
	}
	season = Param{
		Name:    yearParam,
		Pattern: `^[0-9]{4}$`,
		Default: "the current season",
	}
	everySeason = Param{
		Name:    yearParam,
		Pattern: `^[0-9]{4}$`,
		Default: "all seasons",
	}
	sessionKey = Param{
		Name:    sessionKeyParam,
		Pattern: `^[1-9][0-9]{0,15}$`,
		Default: "every round of the season",
	}
)

// Endpoints is the table, in documentation order. It must not be changed.
var Endpoints = []Endpoint{
	{Name: Standings, Path: "/standings", Params: []Param{championship, season}},
	{Name: Calendar, Path: "/calendar", Params: []Param{season}},
	{Name: Drivers, Path: "/drivers"},
	{Name: Predictions, Path: "/predictions", Params: []Param{season, sessionKey}},
	{Name: NextRace, Path: "/next-race", Computed: true},
	{Name: Accuracy, Path: "/accuracy", Params: []Param{everySeason}},
}

// Lookup finds the endpoint of a path, which is what follows BasePath, byte for byte: neither
// a trailing slash nor another spelling is understood.
func Lookup(path string) (*Endpoint, bool) {
	for i := range Endpoints {
		if Endpoints[i].Path == path {
			return &Endpoints[i], true
		}
	}
	return nil, false
}
