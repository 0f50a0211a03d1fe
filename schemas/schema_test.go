package schemas_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"gridcast/deploy/must"
	"gridcast/schemas"
)

// only refuses every reference but those to the files that were added.
type only struct{}

func (only) Load(url string) (any, error) { return nil, errors.New("not added: " + url) }

// compiler returns a library that knows the whole of draft 2020-12 and some files.
func compiler(t *testing.T, files map[string][]byte) *jsonschema.Compiler {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(only{})
	for name, text := range files {
		if err := c.AddResource("gridcast:///"+name, decode(t, text)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return c
}

// compile returns the schema at a place of the compiler's files, which must be one of that draft.
func compile(t *testing.T, c *jsonschema.Compiler, at string) *jsonschema.Schema {
	t.Helper()
	s := must.Get(c.Compile("gridcast:///" + at))(t)
	return s
}

// decode returns a document as the library reads it.
func decode(t *testing.T, text []byte) any {
	t.Helper()
	document := must.Get(jsonschema.UnmarshalJSON(bytes.NewReader(text)))(t)
	return document
}

// keywords are the keywords that the schema files use. The library ignores a keyword that it does not know.
type keywords struct {
	Ref               string               `json:"$ref"`
	Type              string               `json:"type"`
	Enum              []any                `json:"enum"`
	Const             any                  `json:"const"`
	If                *keywords            `json:"if"`
	Then              *keywords            `json:"then"`
	Else              *keywords            `json:"else"`
	Properties        map[string]*keywords `json:"properties"`
	Required          []string             `json:"required"`
	DependentRequired map[string][]string  `json:"dependentRequired"`
	Additional        *bool                `json:"additionalProperties"`
	Items             *keywords            `json:"items"`
	MinItems          int                  `json:"minItems"`
	MaxItems          *int                 `json:"maxItems"`
	MinLength         int                  `json:"minLength"`
	Pattern           string               `json:"pattern"`
	Format            string               `json:"format"`
	Minimum           json.Number          `json:"minimum"`
	Maximum           json.Number          `json:"maximum"`
	Defs              map[string]*keywords `json:"$defs"`
	Draft             string               `json:"$schema"`
	Title             string               `json:"title"`
	Description       string               `json:"description"`
}

// TestKeywords checks that a schema file has no rule that nobody applies.
func TestKeywords(t *testing.T) {
	for _, file := range schemas.Files() {
		var k keywords
		d := json.NewDecoder(bytes.NewReader(schemas.Source(file)))
		d.DisallowUnknownFields()
		must.Succeed(t, file, d.Decode(&k))
		k.walk(func(k *keywords) {
			if !slices.Contains([]string{"", "date", "date-time", "uri", "uri-reference"}, k.Format) {
				t.Errorf("%s: the format %s is unknown", file, k.Format)
			}
			for _, name := range slices.Concat(k.Required, slices.Concat(slices.Collect(maps.Values(k.DependentRequired))...)) {
				must.Hold(t, k.Properties[name] != nil, "%s: %s is required and has no schema", file, name)
			}
		})
	}
}

func (k *keywords) walk(visit func(*keywords)) {
	if k == nil {
		return
	}
	visit(k)
	for _, inner := range slices.Concat([]*keywords{k.If, k.Then, k.Else, k.Items}, slices.Collect(maps.Values(k.Properties)), slices.Collect(maps.Values(k.Defs))) {
		inner.walk(visit)
	}
}
