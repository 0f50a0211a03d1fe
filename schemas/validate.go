package schemas

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// Validate reports how the body of a success differs from what the contract promises for the
// variant: it must satisfy the JSON Schema, and its bytes must be exactly those that
// wire.Marshal makes of its content, so that order of members, decimals of percentages and
// the escaping of text are right too.
func Validate(v catalog.Variant, body []byte) error {
	c, ok := contracts[subject{v.Endpoint, v.Type}]
	if !ok {
		return fmt.Errorf("%s: no schema for this variant", v.Path())
	}
	if err := c.validate(body); err != nil {
		return fmt.Errorf("%s: %w", v.Path(), err)
	}
	return nil
}

// ValidateError is Validate for the body of an error.
func ValidateError(body []byte) error {
	if err := errorContract.validate(body); err != nil {
		return fmt.Errorf("error body: %w", err)
	}
	return nil
}

// ValidateService reports how the body of a success of /healthz, /readyz or /status differs
// from its JSON Schema.
func ValidateService(path string, body []byte) error {
	c, ok := serviceContracts[path]
	if !ok {
		return fmt.Errorf("%s: no schema for this path", path)
	}
	if err := c.validate(body); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// subject is what a body depends on.
type subject struct {
	endpoint catalog.Name
	kind     string // standings: the type
}

var contracts = map[subject]contract{
	{catalog.Standings, catalog.DriversType}:      newContract[wire.Success[[]wire.DriverStanding]](driverStandingsFile),
	{catalog.Standings, catalog.ConstructorsType}: newContract[wire.Success[[]wire.ConstructorStanding]](constructorStandingsFile),
	{catalog.Calendar, ""}:                        newContract[wire.Success[[]wire.CalendarEntry]](calendarFile),
	{catalog.Drivers, ""}:                         newContract[wire.Success[[]wire.Driver]](driversFile),
	{catalog.Predictions, ""}:                     newContract[wire.Success[[]wire.PredictionRecord]](predictionsFile),
	{catalog.NextRace, ""}:                        newContract[wire.Success[wire.NextRace]](nextRaceFile),
	{catalog.Accuracy, ""}:                        newContract[wire.Success[wire.Accuracy]](accuracyFile),
}

var errorContract = newContract[wire.Error](errorFile)

// The service's own bodies are no variants, and their Go types belong to the gateway.
var serviceContracts = map[string]contract{
	"/healthz": {schema: lazily(healthFile)},
	"/readyz":  {schema: lazily(healthFile)},
	"/status":  {schema: lazily(statusFile)},
}

// contract is the promise about one kind of body.
type contract struct {
	schema func() *jsonschema.Schema    // compiled when first called
	render func([]byte) ([]byte, error) // the bytes wire.Marshal makes of a body's content; nil: any will do
}

// newContract pairs a schema file with the Go type of its body.
func newContract[T any](file string) contract {
	return contract{
		schema: lazily(file),
		render: func(body []byte) ([]byte, error) {
			var content T
			if err := json.Unmarshal(body, &content); err != nil {
				return nil, err
			}
			return wire.Marshal(content)
		},
	}
}

func (c contract) validate(body []byte) error {
	content, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	if err := c.schema().Validate(content); err != nil {
		return err
	}
	if c.render == nil {
		return nil
	}
	want, err := c.render(body)
	if err != nil {
		return err
	}
	if i := firstDifference(body, want); i >= 0 {
		return fmt.Errorf("at byte %d: got %q, want %q", i, excerpt(body, i), excerpt(want, i))
	}
	return nil
}

func lazily(file string) func() *jsonschema.Schema {
	return sync.OnceValue(func() *jsonschema.Schema { return compile(file) })
}

// compile compiles a schema file and what it refers to.
func compile(file string) *jsonschema.Schema {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	for _, name := range []string{file, commonFile} {
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(source(name)))
		if err == nil {
			err = c.AddResource("gridcast:///"+name, document)
		}
		if err != nil {
			panic(fmt.Sprintf("BUG: %s: %v", name, err))
		}
	}
	return c.MustCompile("gridcast:///" + file)
}

// firstDifference returns the first index at which a and b differ, or -1.
func firstDifference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	if len(a) == len(b) {
		return -1
	}
	return min(len(a), len(b))
}

// excerpt returns a few bytes around index i.
func excerpt(b []byte, i int) []byte { return b[max(0, i-20):min(len(b), i+20)] }
