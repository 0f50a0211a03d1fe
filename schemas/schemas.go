// Package schemas is the public contract in machine-readable form: the OpenAPI document, the
// JSON Schema of every body, and the check that a body keeps to them.
//
// The sources are openapi.yaml and v1/*.schema.json, which this package embeds. Nothing is
// parsed or compiled before it is first asked for; all functions are safe for concurrent use.
// An embedded file that does not parse is a bug of this program, which the tests find, and
// panics.
package schemas

import "embed"

//go:embed openapi.yaml v1/*.schema.json
var sources embed.FS

// The schema files, in the order in which they appear in the bundled document. Their common
// values come last.
const (
	driverStandingsFile      = "v1/standings-drivers.schema.json"
	constructorStandingsFile = "v1/standings-constructors.schema.json"
	calendarFile             = "v1/calendar.schema.json"
	driversFile              = "v1/drivers.schema.json"
	predictionsFile          = "v1/predictions.schema.json"
	nextRaceFile             = "v1/next-race.schema.json"
	accuracyFile             = "v1/accuracy.schema.json"
	errorFile                = "v1/error.schema.json"
	healthFile               = "v1/health.schema.json"
	statusFile               = "v1/status.schema.json"
	commonFile               = "v1/common.schema.json"
)

var schemaFiles = []string{
	driverStandingsFile, constructorStandingsFile, calendarFile, driversFile, predictionsFile,
	nextRaceFile, accuracyFile, errorFile, healthFile, statusFile, commonFile,
}

// source returns an embedded file.
func source(name string) []byte {
	b, err := sources.ReadFile(name)
	if err != nil {
		panic("BUG: schemas: " + err.Error())
	}
	return b
}
