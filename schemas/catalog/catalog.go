// Package catalog is the table of endpoints and parameters: the builder renders by it, the
// edge routes by it, and nothing else in gridcast says which variants exist.
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

// Variant is one endpoint with one set of parameter values: the unit that is rendered,
// stored and served. Fields that the endpoint does not use are zero.
type Variant struct {
	Endpoint   Name
	Type       string // standings: "drivers" or "constructors"
	Year       int    // 0: accuracy over all seasons, or a variant without a season
	SessionKey int64  // predictions for one round; NoSession: the empty list
}

// NoSession stands for every session key without a pick: all of them share one body.
const NoSession int64 = -1
