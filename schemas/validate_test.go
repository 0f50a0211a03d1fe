package schemas_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/schemas"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

var (
	now  = time.Date(2024, 12, 8, 11, 30, 0, 0, time.UTC)
	hit  = true
	laps = 44
	pick = wire.Prediction{Winner: "NOR", ConfidencePct: 625, Podium: wire.Podium{P1: "NOR", P2: "PIA", P3: "SAI"}}

	driverStandings      = catalog.Variant{Endpoint: catalog.Standings, Type: catalog.DriversType, Year: 2024}
	constructorStandings = catalog.Variant{Endpoint: catalog.Standings, Type: catalog.ConstructorsType, Year: 2024}
	calendar             = catalog.Variant{Endpoint: catalog.Calendar, Year: 2024}
	drivers              = catalog.Variant{Endpoint: catalog.Drivers}
	predictions          = catalog.Variant{Endpoint: catalog.Predictions, Year: 2024}
	nextRace             = catalog.Variant{Endpoint: catalog.NextRace}
	accuracy             = catalog.Variant{Endpoint: catalog.Accuracy}
	results              = catalog.Variant{Endpoint: catalog.Results, Year: 2024}
	weekends             = catalog.Variant{Endpoint: catalog.Weekends, Year: 2024}
	changes              = catalog.Variant{Endpoint: catalog.Changes, Year: 2024}
)

// bodies has each kind of row twice: with every field, and without the optional ones. The bodies of other endpoints, whose
// schemas are made of their structs, are among the examples of the document.
var bodies = []struct {
	variant catalog.Variant
	body    any
}{
	{driverStandings, wire.Wrap([]wire.DriverStanding{
		{Position: 1, Driver: "VER", Name: "Max Verstappen", Team: "Red Bull", TeamColour: "#3671C6", Points: 437, Wins: 9, Podiums: 14},
		{Driver: "RIC", Name: "Daniel Ricciardo", Team: "RB", Points: 12.5},
	}, now)},
	{constructorStandings, wire.Wrap([]wire.ConstructorStanding{
		{Position: 1, Team: "Cooper", Engine: "Climax", TeamColour: "#00FF7A", Points: 40, Wins: 5, Podiums: 13},
		{Team: "Cooper"},
	}, now)},
	{calendar, wire.Wrap([]wire.CalendarEntry{
		{
			Round: 24, SessionKey: 2024024, GPName: "Abu Dhabi Grand Prix", Circuit: "Yas Marina", Locality: "Abu Dhabi",
			Country: "United Arab Emirates", Date: "2024-12-08", DateStart: wire.Instant(now), Sprint: true,
			Status: wire.Finished, Winner: "NOR",
		},
		{
			Round: 1, SessionKey: 1950001, GPName: "British Grand Prix", Circuit: "Silverstone", Locality: "Silverstone",
			Country: "United Kingdom", Date: "1950-05-13", Status: wire.Scheduled,
		},
	}, now)},
	{drivers, wire.Wrap([]wire.Driver{
		{
			Driver: "NOR", Name: "Lando Norris", FirstName: "Lando", LastName: "Norris", Number: 4, Team: "McLaren",
			TeamColour: "#FF8000", HeadshotURL: "https://media.example/nor.png", Country: "GBR",
		},
		{Driver: "HIL", Name: "Damon Hill", FirstName: "Damon", LastName: "Hill", Team: "Williams", Country: "GBR"},
	}, now)},
	{predictions, wire.Wrap([]wire.PredictionRecord{
		{
			SessionKey: 2024024, GPName: "Abu Dhabi Grand Prix", Prediction: pick, WinnerHit: &hit,
			Result: &wire.Result{Winner: "NOR", Podium: wire.Podium{P1: "NOR", P2: "SAI", P3: "LEC"}},
		},
		{SessionKey: 2024025, GPName: "Another Grand Prix", Prediction: pick},
	}, now)},
	{nextRace, wire.Wrap(wire.NextRace{
		Name: "Abu Dhabi Grand Prix", Circuit: "Yas Marina", Country: "United Arab Emirates",
		DateStart: wire.Instant(now.Add(90 * time.Minute)), Provisional: true, SecondsToLights: 5400, Prediction: &pick,
	}, now)},
	{nextRace, wire.Wrap(wire.NextRace{
		Name: "Abu Dhabi Grand Prix", Circuit: "Yas Marina", Country: "United Arab Emirates",
		DateStart: wire.Instant(now.Add(time.Second)), SecondsToLights: 1,
	}, now)},
	{accuracy, wire.Wrap(wire.Accuracy{
		RacesEvaluated: 24, PreRace: wire.HitRates{WinnerHitRatePct: 542, PodiumAccuracyPct: 1000},
	}, now)},
	{results, wire.Wrap([]wire.ResultRecord{{
		SessionKey: 2024014, GPName: "Belgian Grand Prix",
		Revisions: []wire.Revision{
			{Revision: 1, At: wire.Instant(now), By: "rule"},
			{Revision: 2, At: wire.Instant(now), By: "operator", Reason: "underweight"},
		},
		Race: []wire.ResultRow{
			{Position: 1, Driver: "HAM", DriverID: "lewis-hamilton", Name: "Lewis Hamilton", Team: "Mercedes", TeamID: "mercedes", TeamColour: "#27F4D2", Number: 44, Status: wire.Classified, Grid: 3, Laps: &laps, TimeMS: 4797566, Points: 25},
			{Position: 2, Driver: "PIA", DriverID: "oscar-piastri", Name: "Oscar Piastri", Team: "McLaren", TeamID: "mclaren", Status: wire.Classified, Laps: &laps, GapMS: 1173, Points: 18},
			{Position: 3, Driver: "LEC", DriverID: "charles-leclerc", Name: "Charles Leclerc", Team: "Ferrari", TeamID: "ferrari", Status: wire.Classified, Laps: &laps, GapLaps: 1, Points: 15},
			{Driver: "RUS", DriverID: "george-russell", Name: "George Russell", Team: "Mercedes", TeamID: "mercedes", Status: wire.Disqualified, Laps: &laps, Reason: "underweight", Shared: true},
		},
		Sprint: []wire.ResultRow{{Position: 1, Driver: "HAM", DriverID: "lewis-hamilton", Name: "Lewis Hamilton", Team: "Mercedes", TeamID: "mercedes", Status: wire.Classified, Points: 8}},
	}}, now)},
	{results, wire.Wrap([]wire.ResultRecord(nil), now)},
	{weekends, wire.Wrap([]wire.Weekend{{
		SessionKey: 2024024, Round: 24, GPName: "Abu Dhabi Grand Prix", GPID: "abu-dhabi", Status: wire.Scheduled, Reason: "sandstorm", Was: wire.Instant(now),
		Circuit: wire.Circuit{ID: "yas-marina", Name: "Yas Marina", Locality: "Abu Dhabi", Country: "United Arab Emirates", TimeZone: "Asia/Dubai"},
		Sessions: []wire.WeekendSession{
			{Session: "qualifying", Date: "2024-12-07", Status: wire.Finished},
			{Session: "race", Date: "2024-12-08", DateStart: wire.Instant(now), Status: wire.Scheduled},
		},
	}}, now)},
	{weekends, wire.Wrap([]wire.Weekend(nil), now)},
	{changes, wire.Wrap([]wire.Change{
		{SessionKey: 2024024, GPName: "A", Kind: wire.RoundAdded, At: wire.Instant(now), By: "builder", New: &wire.ChangeState{Status: wire.Scheduled}},
		{SessionKey: 2024024, GPName: "A", Kind: wire.DriverReturned, At: wire.Instant(now), By: "builder", Driver: "VER", DriverID: "max-verstappen"},
		{SessionKey: 2024024, GPName: "A", Kind: wire.DriverWithdrawn, At: wire.Instant(now), By: "builder", Driver: "VER", DriverID: "max-verstappen"},
		{SessionKey: 2024024, GPName: "A", Kind: wire.PickVoided, At: wire.Instant(now), By: "operator", Reason: "storm", Old: &wire.ChangeState{Prediction: &pick}},
		{
			SessionKey: 2024024, GPName: "A", Kind: wire.RoundPostponed, At: wire.Instant(now), By: "source", Reason: "storm",
			Old: &wire.ChangeState{Status: wire.Scheduled, DateStart: wire.Instant(now)}, New: &wire.ChangeState{Status: wire.Postponed},
		},
		{
			SessionKey: 2024014, GPName: "B", Kind: wire.ResultRevised, At: wire.Instant(now), By: "rule", Reason: "underweight",
			Old: &wire.ChangeState{Revision: 1, Race: []wire.ChangedRow{{Position: 1, Driver: "RUS", DriverID: "george-russell", Team: "Mercedes", TeamID: "mercedes", Points: 25}}},
			New: &wire.ChangeState{Revision: 2, Race: []wire.ChangedRow{{Driver: "RUS", DriverID: "george-russell", Team: "Mercedes", TeamID: "mercedes"}}},
		},
	}, now)},
	{changes, wire.Wrap([]wire.Change(nil), now)},
	{driverStandings, wire.Wrap([]wire.DriverStanding(nil), now)},
	{constructorStandings, wire.Wrap([]wire.ConstructorStanding(nil), now)},
	{calendar, wire.Wrap([]wire.CalendarEntry(nil), now)},
	{drivers, wire.Wrap([]wire.Driver(nil), now)},
	{predictions, wire.Wrap([]wire.PredictionRecord(nil), now)},
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	b, err := wire.Marshal(v)
	must.Require(t, err == nil, "Marshal: %v", err)
	return b
}

func TestValidateAcceptsWhatWireMakes(t *testing.T) {
	for _, tt := range bodies {
		must.Succeed(t, tt.variant.Path(), must.Err(schemas.Decode(tt.variant, marshal(t, tt.body))))
	}
}

// TestValidateCoversTheCatalog shows that every rendered variant has a schema.
func TestValidateCoversTheCatalog(t *testing.T) {
	known := catalog.Known{Seasons: []int{2023, 2024}, Current: 2024}
	for _, v := range catalog.All(known, []int64{2024001}) {
		_, err := schemas.Decode(v, []byte(`{}`))
		must.Equal(t, v.Path(), "the body: missing properties 'ok', 'data', 'meta'", fmt.Sprint(err))
	}
	must.Fail(t, "an unknown endpoint has a schema", must.Err(schemas.Decode(catalog.Variant{Endpoint: "laps"}, []byte(`{}`))))
}

// TestValidateRefuses: testdata/refused.txt has the whole error of each change of a body.
func TestValidateRefuses(t *testing.T) {
	good := map[string]string{} // the first body of each variant
	for _, b := range slices.Backward(bodies) {
		good[b.variant.Path()] = string(marshal(t, b.body))
	}
	golden.Table(t, "testdata/refused.txt", func(input string) string {
		name, change, _ := strings.Cut(input, " ")
		was, is, _ := strings.Cut(change, " => ")
		variant := must.Get(catalog.ParsePath(name))(t)
		return fmt.Sprint(must.Err(schemas.Decode(variant, []byte(must.Replace(t, good[name], was, is)))))
	})
	golden.Sentence(t, "an empty body", must.Err(schemas.Decode(drivers, []byte("{}"))))
}

// TestValidateRefusesCutBodies cuts a body with a value of a wrong type off at every byte.
func TestValidateRefusesCutBodies(t *testing.T) {
	const body = `{"ok":"yes","data":[{"round":"one","session_key":[1,{"a":"b\\"}],"sprint":true}],"meta":{"api":1}}`
	for n := range len(body) {
		_, err := schemas.Decode(catalog.Variant{Endpoint: catalog.Calendar, Year: 2024}, []byte(body[:n]))
		if err == nil || !strings.HasPrefix(err.Error(), "not JSON: ") {
			t.Fatalf("%s: got %v, want that it is not JSON", body[:n], err)
		}
	}
}

// TestReferences checks that the error for a reference to a third file says which one is permitted.
func TestReferences(t *testing.T) {
	for _, ref := range []string{"common.schema.json#/$defs/Meta", "weekends.schema.json#/$defs/Circuit"} {
		golden.Sentence(t, "refer to "+ref, schemas.CompileText("v1/new.schema.json", []byte(`{"$ref":"`+ref+`"}`)))
	}
}

func TestValidateError(t *testing.T) {
	good := string(marshal(t, wire.NewError(wire.BadParam, `bad value "x" for parameter year`)))
	must.Succeed(t, "ValidateBody", schemas.ValidateBody(schemas.ErrorKind, []byte(good)))
	for _, bad := range []string{
		`{}`, `null`, ``, `404 not found`,
		strings.Replace(good, `"ok":false`, `"ok":true`, 1),
		strings.Replace(good, `bad_param`, `teapot`, 1),
		strings.Replace(good, `"ok":false,`, ``, 1),
		strings.Replace(good, `}`, `,"status":422}`, 1),
		string(marshal(t, wire.NewError(wire.BadParam, ""))),
	} {
		must.Fail(t, fmt.Sprintf("accepted: %s", bad), schemas.ValidateBody(schemas.ErrorKind, []byte(bad)))
	}
}

func BenchmarkValidate(b *testing.B) {
	body := marshal(b, bodies[0].body)
	for b.Loop() {
		must.Get(schemas.Decode(driverStandings, body))(b)
	}
}

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
		err := c.AddResource("gridcast:///"+name, decode(t, text))
		must.Require(t, err == nil, "%s: %v", name, err)
	}
	return c
}

// compile returns the schema at a place of the compiler's files, which must be one of that draft.
func compile(t *testing.T, c *jsonschema.Compiler, at string) *jsonschema.Schema {
	t.Helper()
	return must.Get(c.Compile("gridcast:///" + at))(t)
}

// decode returns a document as the library reads it.
func decode(t *testing.T, text []byte) any {
	t.Helper()
	return must.Get(jsonschema.UnmarshalJSON(bytes.NewReader(text)))(t)
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
