package schemas_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

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
	s, err := c.Compile("gridcast:///" + at)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// decode returns a document as the library reads it.
func decode(t *testing.T, text []byte) any {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return document
}

// judges compiles every schema file.
func judges(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	files := map[string][]byte{}
	for _, file := range schemas.Files() {
		files[file] = schemas.Source(file)
	}
	c, all := compiler(t, files), map[string]*jsonschema.Schema{}
	for file := range files {
		all[path.Base(file)] = compile(t, c, file)
	}
	return all
}

// TestSchemasJudgeAsALibraryDoes spoils bodies in many ways, and compares each verdict with the one of a library.
func TestSchemasJudgeAsALibraryDoes(t *testing.T) {
	all := judges(t)
	accepted, refused := 0, 0
	for _, tt := range bodies {
		file, _ := schemas.File(tt.variant)
		body := marshal(t, tt.body)
		for _, spoiled := range slices.Concat([][]byte{body}, variations(t, body)) {
			want, got := all[file].Validate(decode(t, spoiled)), schemas.Check("v1/"+file, spoiled)
			if (want == nil) != (got == nil) {
				t.Errorf("%s: got %v, want %v: %s", file, got, want, spoiled)
			}
			if got == nil {
				accepted++
			} else {
				refused++
			}
		}
	}
	t.Logf("%d accepted, %d refused", accepted, refused)
	if accepted < 200 || refused < 5000 {
		t.Errorf("%d bodies were accepted and %d refused, want at least 200 and 5000", accepted, refused)
	}
}

// variations returns the body with each of its members left out, doubled and replaced by other values.
func variations(t *testing.T, body []byte) [][]byte {
	t.Helper()
	var root any
	if err := json.Unmarshal(body, &root); err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	add := func() { all = append(all, marshal(t, root)) }
	others := func(v any) []any {
		values := []any{nil, true, "", "x", "ABC", "2024-02-30", 0, -1, 1.5, 1e17, 1e300, []any{}, map[string]any{}}
		switch v := v.(type) {
		case string:
			values = append(values, strings.ToLower(v), v+"x", strings.Replace(v, "0", "9", 1))
		case float64:
			values = append(values, v+1, v+.5, -v, v*1000, fmt.Sprint(v))
		case []any:
			values = append(values, slices.Repeat(v, 7))
		}
		return values
	}
	var spoil func(v any)
	spoil = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			v["another"] = 1
			add()
			delete(v, "another")
			for name, value := range v {
				delete(v, name)
				add()
				for _, other := range others(value) {
					v[name] = other
					add()
				}
				v[name] = value
				spoil(value)
			}
		case []any:
			if len(v) == 0 {
				return
			}
			value := v[0]
			for _, other := range others(value) {
				v[0] = other
				add()
			}
			v[0] = value
			spoil(value) // the other elements are of the same form
			if last := len(v) - 1; last > 0 {
				spoil(v[last])
			}
		}
	}
	spoil(root)
	return all
}

// TestUnknownKeyword checks that a schema file cannot have a rule that nobody applies.
func TestUnknownKeyword(t *testing.T) {
	for text, want := range map[string]string{
		`{"type":"array","uniqueItems":true}`:   `unknown field "uniqueItems"`,
		`{"type":"string","format":"hostname"}`: "unknown format hostname",
		`{"$ref":"#/$defs/Nothing"}`:            "leads nowhere",
		`{"required":["a"]}`:                    "a is required and has no schema",
	} {
		if err := schemas.CompileText("v1/new.schema.json", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
