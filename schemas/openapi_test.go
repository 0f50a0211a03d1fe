package schemas_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"gridcast/deploy/must"
	"gridcast/schemas"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// document is the part of OpenAPI that the tests look at.
type document struct {
	Paths      map[string]map[string]operation
	Webhooks   map[string]map[string]struct{ RequestBody response }
	Security   []map[string]any
	Components struct {
		Parameters      map[string]parameter
		Headers         map[string]header
		Responses       map[string]response
		Schemas         map[string]schema
		SecuritySchemes map[string]struct{ Type, Scheme string }
	}
}

type operation struct {
	Parameters []reference
	Responses  map[string]struct {
		response
		reference
	}
	Security *[]any
}

type reference struct {
	Ref string `json:"$ref"`
}

type parameter struct {
	Name, In string
	Required bool
	Example  string
	Schema   struct {
		Pattern string
		Enum    []string
		Default string
	}
}

type header struct {
	Example any
	Schema  json.RawMessage
}

type response struct {
	Headers map[string]reference
	Content map[string]struct {
		Example  json.RawMessage
		Examples map[string]struct{ Value json.RawMessage }
	}
}

type schema struct {
	Properties map[string]json.RawMessage
	Required   []string
}

func parse(t *testing.T) (d document) {
	t.Helper()
	err := json.Unmarshal(schemas.OpenAPIJSON(), &d)
	must.Require(t, err == nil, "parse: %v", err)
	return d
}

// TestDocumentIsValid checks both forms with the schema that the OpenAPI Initiative publishes for version 3.1.
func TestDocumentIsValid(t *testing.T) {
	official := must.Get(os.ReadFile("testdata/openapi-3.1.json"))(t)
	valid := compile(t, compiler(t, map[string][]byte{"openapi": official}), "openapi")
	for form, text := range map[string][]byte{"JSON": schemas.OpenAPIJSON(), "YAML": yamlAsJSON(t)} {
		must.Succeed(t, form, valid.Validate(decode(t, text)))
		c := compiler(t, map[string][]byte{"document": text})
		for name := range parse(t).Components.Schemas {
			compile(t, c, "document#/components/schemas/"+name)
		}
	}
}

// TestDocumentFindsItsResponses judges every example as the answer to a request: the schemas must be right in the
// document too, not only in their files.
func TestDocumentFindsItsResponses(t *testing.T) {
	d, c := parse(t), compiler(t, map[string][]byte{"document": schemas.OpenAPIJSON()})
	if bearer := d.Components.SecuritySchemes["bearer"]; bearer.Type != "http" || bearer.Scheme != "bearer" || !slices.ContainsFunc(d.Security, func(s map[string]any) bool { return s["bearer"] != nil }) {
		t.Errorf("got the scheme %+v in %v, want that a bearer token is accepted", bearer, d.Security)
	}
	for _, tt := range bodies {
		target := must.Get(url.Parse(tt.variant.Target()))(t)
		path := "/paths/" + strings.ReplaceAll(target.Path, "/", "~1") + "/get"
		documented := map[string]parameter{}
		for _, ref := range d.Paths[target.Path]["get"].Parameters {
			p := d.Components.Parameters[strings.TrimPrefix(ref.Ref, "#/components/parameters/")]
			documented[p.Name] = p
			must.Hold(t, !p.Required || target.Query().Has(p.Name), "%s: lacks %s", target, p.Name)
		}
		for name, values := range target.Query() {
			if s := documented[name].Schema; len(values) != 1 || documented[name].In != "query" || !regexp.MustCompile(s.Pattern).MatchString(values[0]) || s.Enum != nil && !slices.Contains(s.Enum, values[0]) {
				t.Errorf("%s: the parameter %s is not as documented", target, name)
			}
		}
		response := compile(t, c, "document#"+path+"/responses/200/content/application~1json/schema")
		body := marshal(t, tt.body)
		err := response.Validate(decode(t, body))
		must.Hold(t, err == nil, "%s: %v: %s", target, err, body)
		must.Succeed(t, fmt.Sprintf("%s: with a new field in every object", target), response.Validate(decode(t, extended(t, body))))
		spoiled := bytes.Replace(body, []byte(`"api":"gridcast-v1"`), []byte(`"api":null`), 1)
		must.Fail(t, fmt.Sprintf("%s: accepted %s", target, spoiled), response.Validate(decode(t, spoiled)))
	}
}

// extended is a body of a later version: every object has a field that this version does not know.
func extended(t *testing.T, body []byte) []byte {
	t.Helper()
	content := must.JSON[any](t, body)
	var extend func(any)
	extend = func(node any) {
		switch node := node.(type) {
		case []any:
			for _, child := range node {
				extend(child)
			}
		case map[string]any:
			for _, child := range node {
				extend(child)
			}
			node["a_later_field"] = true
		}
	}
	extend(content)
	return marshal(t, content)
}

// yamlAsJSON returns the YAML form as JSON.
func yamlAsJSON(t *testing.T) []byte {
	t.Helper()
	var document any
	must.Do(t, yaml.Unmarshal(schemas.OpenAPIYAML(), &document))
	return marshal(t, document)
}

func TestBothFormsSayTheSame(t *testing.T) {
	var fromJSON, fromYAML any
	must.Do(t, errors.Join(json.Unmarshal(schemas.OpenAPIJSON(), &fromJSON), json.Unmarshal(yamlAsJSON(t), &fromYAML)))
	must.Equal(t, "the document in YAML", fromJSON, fromYAML)
}

// TestReferencesResolve follows every $ref, and finds no component without a reference.
func TestReferencesResolve(t *testing.T) {
	root := must.JSON[any](t, schemas.OpenAPIJSON())
	used := map[string]bool{}
	var walk func(node any)
	walk = func(node any) {
		switch node := node.(type) {
		case []any:
			for _, child := range node {
				walk(child)
			}
		case map[string]any:
			for key, child := range node {
				if ref, ok := child.(string); ok && key == "$ref" {
					used[ref] = true
					continue
				}
				walk(child)
			}
		}
	}
	walk(root)
	for ref := range used {
		target := root
		for _, key := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
			object, ok := target.(map[string]any)
			if target = object[key]; !ok || target == nil {
				t.Errorf("%s leads nowhere", ref)
				break
			}
		}
	}
	components := root.(map[string]any)["components"].(map[string]any)
	for kind, members := range components {
		for name := range members.(map[string]any) {
			if ref := "#/components/" + kind + "/" + name; kind != "securitySchemes" && !used[ref] {
				t.Errorf("nobody refers to %s", ref)
			}
		}
	}
}

// TestGeneratorsCanRead finds valid schemas that generators of clients cannot read: a bare
// boolean, and a name that stands for two types. It also finds schemas that refuse a later field.
func TestGeneratorsCanRead(t *testing.T) {
	var root struct{ Components map[string]map[string]any }
	must.Do(t, json.Unmarshal(schemas.OpenAPIJSON(), &root))
	named := map[string]string{}
	for kind, members := range root.Components {
		for name := range members {
			if earlier := named[name]; earlier != "" && (kind == "schemas" || earlier == "schemas") {
				t.Errorf("%s is a name in %s and in %s", name, earlier, kind)
			}
			named[name] = kind
		}
	}
	var walk func(at string, node any)
	walk = func(at string, node any) {
		switch node := node.(type) {
		case []any:
			for _, child := range node {
				walk(at, child)
			}
		case map[string]any:
			must.Hold(t, node["additionalProperties"] != false, "%s refuses a later field", at)
			for key, child := range node {
				if _, bare := child.(bool); bare && strings.HasSuffix(at, "/properties") {
					t.Errorf("%s/%s is a bare boolean", at, key)
				}
				walk(at+"/"+key, child)
			}
		}
	}
	walk("schemas", any(root.Components["schemas"]))
	walkFile := func(name string, text []byte) {
		var file any
		must.Succeed(t, name, json.Unmarshal(text, &file))
		walk(name, file)
	}
	walkFile(schemas.CommonFile())
	for _, tt := range bodies {
		walkFile(schemas.File(tt.variant))
	}
}

// TestDocumentFollowsTheCatalog compares paths and parameters with the table of endpoints.
func TestDocumentFollowsTheCatalog(t *testing.T) {
	d := parse(t)
	for _, e := range catalog.Endpoints {
		get, ok := d.Paths[catalog.BasePath+e.Path]["get"]
		if !ok {
			t.Errorf("%s: not documented", e.Path)
			continue
		}
		var got []catalog.Param
		for _, ref := range get.Parameters {
			p := d.Components.Parameters[strings.TrimPrefix(ref.Ref, "#/components/parameters/")]
			if p.In != "query" {
				continue
			}
			param := catalog.Param{Name: p.Name, Pattern: p.Schema.Pattern, Values: p.Schema.Enum}
			if p.Schema.Enum != nil {
				param.Pattern = "^(" + strings.Join(p.Schema.Enum, "|") + ")$"
				must.Hold(t, p.Schema.Default == p.Schema.Enum[0],
					"%s: %s: got default %q, want the first of %q", e.Path, p.Name, p.Schema.Default, p.Schema.Enum)
			}
			must.Hold(t, !p.Required, "%s: %s is documented as required", e.Path, p.Name)
			got = append(got, param)
			known := catalog.Known{Seasons: []int{2024}, Current: 2024}
			must.Succeed(t, fmt.Sprintf("%s: example", e.Path), must.Err(e.Select([]byte(p.Name+"="+p.Example), known)))
		}
		must.Equal(t, e.Path+": parameters", e.Params, got)
	}
	for path, methods := range d.Paths {
		name, isData := strings.CutPrefix(path, catalog.BasePath)
		if _, ok := catalog.Lookup(name); isData && !ok {
			t.Errorf("%s: documented, but not in the catalog", path)
		}
		get := methods["get"]
		must.Hold(t, isData != (get.Security != nil), "%s: only the data needs a key", path)
	}
}

// statuses lists the statuses of each error code.
var statuses = map[wire.Code][]int{
	wire.BadRequest: {400}, wire.Unauthorized: {401}, wire.OriginNotAllowed: {403}, wire.NotFound: {404},
	wire.MethodNotAllowed: {405}, wire.Timeout: {408}, wire.TooLarge: {413, 431}, wire.BadParam: {422},
	wire.RateLimited: {429}, wire.InternalError: {500}, wire.Unavailable: {503},
}

// TestErrorsAreDocumented finds every code under its status, on every endpoint, with a valid
// example and with the headers that belong to it.
func TestErrorsAreDocumented(t *testing.T) {
	d := parse(t)
	always := []string{
		"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset",
		"Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Cache-Control",
	}
	special := map[int]string{401: "WWW-Authenticate", 405: "Allow", 429: "Retry-After", 503: "Retry-After"}
	for _, e := range catalog.Endpoints {
		responses := d.Paths[catalog.BasePath+e.Path]["get"].Responses
		for code, wanted := range statuses {
			for _, status := range wanted {
				ref := responses[strconv.Itoa(status)].Ref
				r, ok := d.Components.Responses[strings.TrimPrefix(ref, "#/components/responses/")]
				if !ok {
					t.Errorf("%s: status %d is not documented", e.Path, status)
					continue
				}
				example := r.Content["application/json"].Example
				if err := schemas.ValidateBody(schemas.ErrorKind, example); err != nil {
					t.Errorf("%d: %v: %s", status, err, example)
				}
				var body wire.Error
				if err := json.Unmarshal(example, &body); err != nil || body.Error != code {
					t.Errorf("%d: got code %s, %v, want %s", status, body.Error, err, code)
				}
				for _, name := range append(always, "Link", special[status]) {
					if _, ok := r.Headers[name]; name != "" && !ok {
						t.Errorf("%d: header %s is not documented", status, name)
					}
				}
			}
		}
		_, ok := responses["304"]
		must.Hold(t, ok != e.Computed, "%s: 304 documented: %t, computed: %t", e.Path, ok, e.Computed)
		for _, name := range always {
			if _, ok := responses["200"].Headers[name]; !ok {
				t.Errorf("%s: 200: header %s is not documented", e.Path, name)
			}
		}
		if _, ok := responses["200"].Headers["ETag"]; ok == e.Computed {
			t.Errorf("%s: ETag documented: %t, computed: %t", e.Path, ok, e.Computed)
		}
	}
	for name, h := range d.Components.Headers {
		must.Hold(t, h.Example != nil && h.Schema != nil, "header %s: no example or no schema", name)
	}
}

// TestExamplesAreValid checks the examples of every body, byte for byte.
func TestExamplesAreValid(t *testing.T) {
	d := parse(t)
	count := 0
	for _, e := range catalog.Endpoints {
		if e.File {
			continue
		}
		examples := d.Paths[catalog.BasePath+e.Path]["get"].Responses["200"].Content["application/json"].Examples
		must.Hold(t, len(examples) != 0, "%s: no example", e.Path)
		for name, example := range examples {
			count++
			v := catalog.Variant{Endpoint: e.Name}
			if len(e.Params) > 0 && e.Params[0].Name == "type" {
				v.Type = catalog.DriversType
				if name == "constructors" {
					v.Type = catalog.ConstructorsType
				}
			}
			if strings.HasSuffix(name, "page") {
				v.Page = 1
			}
			must.Succeed(t, fmt.Sprintf("example %s", name), must.Err(schemas.Decode(v, example.Value)))
		}
	}
	must.Hold(t, count >= 10, "got %d examples, want at least 10", count)
}

func TestServiceExamplesAreValid(t *testing.T) {
	d := parse(t)
	for _, path := range []string{"/healthz", "/readyz", "/status"} {
		r := d.Paths[path]["get"].Responses["200"]
		if r.Ref != "" {
			r.response = d.Components.Responses[strings.TrimPrefix(r.Ref, "#/components/responses/")]
		}
		example := r.Content["application/json"].Example
		err := schemas.ValidateBody(path, example)
		must.Hold(t, err == nil, "%v: %s", err, example)
		spoiled := bytes.Replace(example, []byte(`"meta"`), []byte(`"mate"`), 1)
		must.Fail(t, fmt.Sprintf("%s: accepted %s", path, spoiled), schemas.ValidateBody(path, spoiled))
	}
	must.Fail(t, "a path without a schema was accepted", schemas.ValidateBody("/metrics", []byte(`{}`)))
}

func TestWebhookExamplesAreValid(t *testing.T) {
	count := 0
	for name, methods := range parse(t).Webhooks {
		for _, example := range methods["post"].RequestBody.Content["application/json"].Examples {
			count++
			var kind struct{ Type string }
			must.Do(t, json.Unmarshal(example.Value, &kind))
			var body bytes.Buffer
			must.Do(t, json.Compact(&body, example.Value))
			must.Succeed(t, name, schemas.ValidateBody(kind.Type, body.Bytes()))
			spoiled := bytes.Replace(body.Bytes(), []byte(`"type":"`), []byte(`"type":"x`), 1)
			must.Fail(t, fmt.Sprintf("%s: %s was accepted", name, spoiled), schemas.ValidateBody(kind.Type, spoiled))
		}
	}
	must.Hold(t, count == 3, "found %d examples, want 3", count)
	must.Fail(t, "a type without a schema was accepted", schemas.ValidateBody("version.unpublished", []byte(`{}`)))
}

// TestSchemasFollowTheStructs compares names, order and presence of every struct's fields
// with the schema of the same name. It leaves out the schemas that package generate makes of the structs.
func TestSchemasFollowTheStructs(t *testing.T) {
	named := namedSchemas(t)
	for name, value := range map[string]any{
		"Meta":          wire.Meta{},
		"CalendarEntry": wire.CalendarEntry{}, "Driver": wire.Driver{}, "PredictionRecord": wire.PredictionRecord{},
		"Prediction": wire.Prediction{}, "Result": wire.Result{}, "NextRace": wire.NextRace{},
		"Accuracy": wire.Accuracy{}, "HitRates": wire.HitRates{}, "LiveHitRates": wire.LiveHitRates{}, "Error": wire.Error{},
		"StandingsBody": wire.Success[int]{},
		"CalendarBody":  wire.Success[int]{}, "DriversBody": wire.Success[int]{}, "PredictionsBody": wire.Success[int]{},
		"NextRaceBody": wire.Success[int]{}, "AccuracyBody": wire.Success[int]{},
		"version.published": wire.Webhook[int]{}, "webhook.test": wire.Webhook[int]{}, "changes": wire.WebhookVariant{},
	} {
		s, ok := named[name]
		if !ok {
			t.Errorf("%s: no schema", name)
			continue
		}
		var all, always []string
		for field := range reflect.TypeOf(value).Fields() {
			key, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			all = append(all, key)
			if options != "omitzero" {
				always = append(always, key)
			}
		}
		must.Equal(t, name+": fields", all, s.propertyOrder())
		must.Equal(t, name+": required", always, s.Required)
	}
	// The rows of both championships have one schema. It requires the fields that both always have, and of a driver all
	// that tell the driver.
	for name, rows := range map[string][2]any{
		"Standing": {wire.DriverStanding{}, wire.ConstructorStanding{}}, "StandingProgress": {wire.DriverProgress{}, wire.ConstructorProgress{}},
	} {
		s, count := named[name], map[string]int{}
		for _, row := range rows {
			var all []string
			for field := range reflect.TypeOf(row).Fields() {
				key, options, _ := strings.Cut(field.Tag.Get("json"), ",")
				if all = append(all, key); options != "omitzero" {
					count[key]++
				}
			}
			if diff := cmp.Diff(all, slices.DeleteFunc(s.propertyOrder(), func(name string) bool { return !slices.Contains(all, name) })); diff != "" {
				t.Errorf("%s: fields: -struct +schema:\n%s", name, diff)
			}
		}
		for key, n := range count {
			must.Hold(t, slices.Contains(s.Required, key) == (n == 2) && (s.DependentRequired[key] != nil) == (n == 1),
				"%s: %s is in %d of the two rows, and the schema says otherwise", name, key, n)
		}
	}
	for _, picked := range []string{"Podium", "PickedPodium"} {
		must.Equal(t, picked+": fields", []string{"p1", "p2", "p3"}, named[picked].propertyOrder())
	}
}

// namedSchema is a schema with the order of its properties.
type namedSchema struct {
	Properties        yaml.Node
	Required          []string
	DependentRequired map[string][]string `yaml:"dependentRequired"`
}

// property returns the schema of a property.
func (s namedSchema) property(t *testing.T, name string) (of struct {
	namedSchema `yaml:",inline"`
	Const       string
	Items       namedSchema
},
) {
	t.Helper()
	for i := 0; i < len(s.Properties.Content); i += 2 {
		if s.Properties.Content[i].Value == name {
			must.Do(t, s.Properties.Content[i+1].Decode(&of))
		}
	}
	return of
}

// namedSchemas are the schemas of the components. A message to webhooks is named by its type, and the rows
// in it by their property.
func namedSchemas(t *testing.T) map[string]namedSchema {
	t.Helper()
	var d struct {
		Components struct{ Schemas map[string]namedSchema }
		Webhooks   map[string]struct {
			Post struct {
				RequestBody struct {
					Content map[string]struct{ Schema namedSchema }
				} `yaml:"requestBody"`
			}
		}
	}
	must.Do(t, yaml.Unmarshal(schemas.OpenAPIYAML(), &d))
	all := d.Components.Schemas
	for _, hook := range d.Webhooks {
		message := hook.Post.RequestBody.Content["application/json"].Schema
		all[message.property(t, "type").Const] = message
		if changes := message.property(t, "data").property(t, "changes"); changes.Items.Required != nil {
			all["changes"] = changes.Items
		}
	}
	return all
}

// propertyOrder returns the names of a schema's properties as the document orders them.
func (s namedSchema) propertyOrder() (names []string) {
	for i := 0; i < len(s.Properties.Content); i += 2 {
		names = append(names, s.Properties.Content[i].Value)
	}
	return names
}

// TestEveryBodyHasOneSchema: no answer has a choice of schemas without a discriminator, because generators make no type
// of it, and a value that one alternative refuses is valid by the other.
func TestEveryBodyHasOneSchema(t *testing.T) {
	for _, choice := range []string{"anyOf:", "oneOf:"} {
		n := bytes.Count(schemas.OpenAPIYAML(), []byte(choice))
		must.Hold(t, n <= 0, "the document has %s %d times", choice, n)
	}
}

// TestExamplesAgree: the examples of one round show one pick, with one basis and one instant.
func TestExamplesAgree(t *testing.T) {
	d := parse(t)
	example := func(path, name string, into any) {
		t.Helper()
		content := d.Paths[path]["get"].Responses["200"].Content["application/json"]
		text := content.Example
		if name != "" {
			text = content.Examples[name].Value
		}
		err := json.Unmarshal(text, into)
		must.Require(t, err == nil, "%s: %v", path, err)
	}
	const key = 2024024
	var next wire.Success[wire.NextRace]
	var picks wire.Success[[]wire.PredictionRecord]
	var chances wire.Success[[]wire.ProbabilityRecord]
	var status wire.Success[struct {
		Facts wire.FactsState `json:"facts"`
	}]
	example(catalog.BasePath+"/next-race", "published", &next)
	example(catalog.BasePath+"/probabilities", "frozen", &chances)
	example("/status", "", &status)
	for name := range d.Paths[catalog.BasePath+"/predictions"]["get"].Responses["200"].Content["application/json"].Examples {
		var more wire.Success[[]wire.PredictionRecord]
		example(catalog.BasePath+"/predictions", name, &more)
		picks.Data = append(picks.Data, more.Data...)
	}
	frozen := chances.Data[0]
	want := wire.Prediction{
		Winner: frozen.Drivers[0].Driver, ConfidencePct: frozen.Drivers[0].WinPct,
		Podium: wire.Podium{P1: frozen.Drivers[0].Driver, P2: frozen.Drivers[1].Driver, P3: frozen.Drivers[2].Driver},
	}
	compared := 0
	for _, p := range picks.Data {
		if p.SessionKey == key {
			compared++
			must.Hold(t, p.Prediction == want, "/predictions has %+v, /probabilities %+v", p.Prediction, want)
		}
	}
	if frozen.SessionKey != key || compared == 0 || *next.Data.Prediction != want {
		t.Errorf("/next-race has %+v, /probabilities %+v of %d", *next.Data.Prediction, want, frozen.SessionKey)
	}
	for _, r := range status.Data.Facts.Rounds {
		if r.SessionKey == key && (r.PickBasis != frozen.Basis || r.FrozenAt != frozen.FrozenAt) {
			t.Errorf("/status has a pick on %s of %v, /probabilities one on %s of %v", r.PickBasis, r.FrozenAt, frozen.Basis, frozen.FrozenAt)
		}
	}
}
