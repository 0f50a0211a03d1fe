package schemas

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// Decode checks the body of a success against the contract of the variant, and returns its content: a wire.Success of the
// variant's data. The body must satisfy the JSON Schema, and its bytes must equal the bytes that wire.Marshal makes of its
// content, so that order of members, decimals of percentages and escaping are right too. The error names the faults for
// people, but not the path.
func Decode(v catalog.Variant, body []byte) (content any, err error) {
	if c := contractOf(v); c != nil {
		return c.decode(body)
	}
	return nil, errors.New("no schema for this variant")
}

// contractOf returns the contract of a variant's body, nil if the body is no document.
func contractOf(v catalog.Variant) *contract {
	for i := range contracts {
		if c := &contracts[i]; c.endpoint == v.Endpoint && c.kind == v.Type {
			return c
		}
	}
	return nil
}

// File returns the published JSON Schema of the variant's body and the name of its file. Both are
// empty if the body is no document.
func File(v catalog.Variant) (name string, text []byte) {
	if c := contractOf(v); c != nil {
		return path.Base(c.file), published(c.file)
	}
	return "", nil
}

// CommonFile returns the file that the files of File refer to.
func CommonFile() (name string, text []byte) { return path.Base(commonFile), published(commonFile) }

// ValidateBody is the check of Decode for a body that no builder renders: an error, an answer of the service by its
// path, or a message to a receiver of webhooks by its type.
func ValidateBody(kind string, body []byte) error {
	i := slices.IndexFunc(others, func(c contract) bool { return c.kind == kind })
	if i < 0 {
		return fmt.Errorf("no schema for a body of the kind %q", kind)
	}
	_, err := others[i].decode(body)
	return err
}

// contracts pairs each endpoint with the schema file and the Go type of its bodies, in the
// order of the OpenAPI document. Endpoints with the parameter type have one for each type.
var contracts = slices.Concat(written, generated)

// written are the contracts whose schema files are written by hand.
var written = []contract{
	newContract[wire.Success[[]wire.DriverStanding]](catalog.Standings, catalog.DriversType, "v1/standings.schema.json"),
	newContract[wire.Success[[]wire.ConstructorStanding]](catalog.Standings, catalog.ConstructorsType, "v1/standings.schema.json"),
	newContract[wire.Success[[]wire.CalendarEntry]](catalog.Calendar, "", "v1/calendar.schema.json"),
	newContract[wire.Success[[]wire.Driver]](catalog.Drivers, "", "v1/drivers.schema.json"),
	newContract[wire.Success[[]wire.PredictionRecord]](catalog.Predictions, "", "v1/predictions.schema.json"),
	newContract[wire.Success[wire.NextRace]](catalog.NextRace, "", "v1/next-race.schema.json"),
	newContract[wire.Success[wire.Accuracy]](catalog.Accuracy, "", "v1/accuracy.schema.json"),
}

// ErrorKind is the kind of the body of an error.
const ErrorKind = "error"

// others are the contracts of bodies that are no variants, by kind. The Go types of the service's answers belong to the
// gateway.
var others = []contract{
	newContract[wire.Error]("", ErrorKind, "v1/error.schema.json"),
	{kind: "/healthz", file: "v1/health.schema.json", schema: lazily("v1/health.schema.json"), parse: asItIs},
	{kind: "/readyz", file: "v1/health.schema.json", schema: lazily("v1/health.schema.json"), parse: asItIs},
	{kind: "/uptime.json", file: "v1/uptime.schema.json", schema: lazily("v1/uptime.schema.json"), parse: asItIs},
	{kind: "/status", file: "v1/status.schema.json", schema: lazily("v1/status.schema.json"), parse: asItIs},
	newContract[wire.Webhook[wire.PublishedData]]("", wire.WebhookPublished, "v1/webhook-published.schema.json"),
	newContract[wire.Webhook[wire.TestData]]("", wire.WebhookTest, "v1/webhook-test.schema.json"),
}

// commonFile holds the definitions that the other files refer to.
const commonFile = "v1/common.schema.json"

// schemaFiles lists the files in the order in which they appear in the bundled document.
func schemaFiles() []string {
	var files []string
	for _, c := range slices.Concat(contracts, others) {
		if !slices.Contains(files, c.file) {
			files = append(files, c.file)
		}
	}
	return append(files, commonFile)
}

// contract is the contract of one kind of body.
type contract struct {
	endpoint catalog.Name
	kind     string // of standings: the type; of others: the name
	file     string
	schema   func() *jsonschema.Schema // compiled when first called
	// parse returns the content of a body, and the bytes that wire.Marshal makes of it.
	parse func(body []byte) (content any, text []byte, err error)
}

// asItIs allows any bytes that are JSON.
func asItIs(body []byte) (content any, text []byte, err error) {
	return nil, body, json.Unmarshal(body, new(jsontext.Value))
}

// newContract pairs a schema file with the Go type of its body.
func newContract[T any](endpoint catalog.Name, kind, file string) contract {
	return contract{
		endpoint: endpoint, kind: kind, file: file,
		schema: lazily(file),
		parse: func(body []byte) (any, []byte, error) {
			var content T // this decoder takes half the time of encoding/json
			if err := json.Unmarshal(body, &content); err != nil {
				return nil, nil, err
			}
			text, err := wire.Marshal(content)
			return content, text, err
		},
	}
}

func (c *contract) decode(body []byte) (any, error) {
	content, want, err := c.parse(body)
	if fault := check(c.schema(), body); fault != nil { // err names only the first fault, in the words of Go
		return nil, fault
	}
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(body, want) {
		i := 0 // the first difference
		for i < min(len(body), len(want)) && body[i] == want[i] {
			i++
		}
		return nil, fmt.Errorf("at byte %d: got %q, want %q", i, excerpt(body, i), excerpt(want, i))
	}
	return content, nil
}

func lazily(file string) func() *jsonschema.Schema {
	return sync.OnceValue(func() *jsonschema.Schema {
		compiling.Lock()
		defer compiling.Unlock()
		schema, err := compile(embedded(), file, source(file))
		if err != nil {
			panic("BUG: " + err.Error())
		}
		return schema
	})
}

// embedded compiles the embedded files. All share it, because the common file takes half of the time. Its user holds
// compiling.
var (
	embedded  = sync.OnceValue(newCompiler)
	compiling sync.Mutex
)

// excerpt returns a few bytes around index i.
func excerpt(b []byte, i int) []byte { return b[max(0, i-20):min(len(b), i+20)] }

// newCompiler returns a compiler that has read the common file. It checks formats, and asks for no other file.
func newCompiler() *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(commonAlone{})
	if err := add(c, commonFile, source(commonFile)); err != nil {
		panic("BUG: " + err.Error())
	}
	return c
}

// add reads the text of a schema file, unless c has read the file.
func add(c *jsonschema.Compiler, file string, text []byte) error {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	var known *jsonschema.ResourceExistsError
	if err := c.AddResource(base+path.Base(file), document); err != nil && !errors.As(err, &known) {
		return err
	}
	return nil
}

// compile compiles the text of a schema file, which may refer to the common file.
func compile(c *jsonschema.Compiler, file string, text []byte) (*jsonschema.Schema, error) {
	if err := add(c, file, text); err != nil {
		return nil, err
	}
	return c.Compile(base + path.Base(file))
}

// base is the address below which the schema files refer to each other.
const base = "gridcast:///"

// commonAlone refuses a reference to a third file.
type commonAlone struct{}

func (commonAlone) Load(string) (any, error) {
	return nil, errors.New("only " + path.Base(commonFile) + " may be referred to")
}

// shownFaults is the largest number of faults of one body that an error names.
const shownFaults = 5

// check compares a body with a schema. The error names each member, its value and the allowed values.
func check(s *jsonschema.Schema, body []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	var invalid *jsonschema.ValidationError
	if err := s.Validate(value); !errors.As(err, &invalid) {
		return err
	}
	faults := leaves(invalid)
	slices.Sort(faults)
	text := strings.Join(faults[:min(len(faults), shownFaults)], "; ")
	if more := len(faults) - shownFaults; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return errors.New(text)
}

// leaves returns the faults without causes below e, in the library's words.
func leaves(e *jsonschema.ValidationError) (faults []string) {
	for _, cause := range e.Causes {
		faults = append(faults, leaves(cause)...)
	}
	if len(e.Causes) > 0 {
		return faults
	}
	text := e.ErrorKind.LocalizedString(message.NewPrinter(language.English))
	switch k := e.ErrorKind.(type) { // the library's words for these lack the value
	case *kind.Const:
		text = "is " + spelled(k.Got) + ": " + text
	case *kind.Enum:
		text = "is " + spelled(k.Got) + ": " + text
	}
	return []string{dotted(e.InstanceLocation) + ": " + text}
}

func spelled(v any) string {
	text, _ := json.Marshal(v) // it was JSON before
	return string(text)
}

// dotted names a value as a program would reach it: data.prediction.winner, data[3].team.
func dotted(place []string) string {
	var name strings.Builder
	for _, step := range place {
		if _, err := strconv.Atoi(step); err == nil {
			name.WriteString("[" + step + "]")
			continue
		}
		if name.Len() > 0 {
			name.WriteByte('.')
		}
		name.WriteString(step)
	}
	if name.Len() == 0 {
		return "the body"
	}
	return name.String()
}
