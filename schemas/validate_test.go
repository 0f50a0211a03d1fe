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
	probabilities        = catalog.Variant{Endpoint: catalog.Probabilities, Year: 2024}
	trackRecord          = catalog.Variant{Endpoint: catalog.TrackRecord}
	titleOdds            = catalog.Variant{Endpoint: catalog.TitleOdds, Year: 2024}
	results              = catalog.Variant{Endpoint: catalog.Results, Year: 2024}
	weekends             = catalog.Variant{Endpoint: catalog.Weekends, Year: 2024}
	forecast             = catalog.Variant{Endpoint: catalog.Forecast}
	changes              = catalog.Variant{Endpoint: catalog.Changes, Year: 2024}
	identifiers          = catalog.Variant{Endpoint: catalog.Identifiers, Type: catalog.DriversType}
	changesPage          = catalog.Variant{Endpoint: catalog.ChangesLog, Page: 1}
)

// bodies has each kind of row twice: with every field, and without the optional ones.
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
	{probabilities, wire.Wrap([]wire.ProbabilityRecord{{
		SessionKey: 2024024, GPName: "Abu Dhabi Grand Prix", Model: "v2-1", Basis: "grid", FrozenAt: wire.Instant(now),
		Drivers: []wire.DriverChance{{Driver: "NOR", DriverID: "lando-norris", WinPct: 600, PodiumPct: 1000, Positions: []wire.Hundredths{6000, 2000, 1000}, PointsPct: new(wire.Hundredths(9000)), DNFPct: new(wire.Hundredths(1000)), ExpectedPoints: new(wire.Hundredths(1980))}, {Driver: "PIA", DriverID: "oscar-piastri", WinPct: 400, PodiumPct: 1000}, {Driver: "SAI", DriverID: "carlos-sainz-jr", PodiumPct: 1000}},
	}}, now)},
	{probabilities, wire.Wrap([]wire.ProbabilityRecord(nil), now)},
	{trackRecord, wire.Wrap(wire.TrackRecord{Hindsight: wire.Record{
		Races: 305, RacesWithChances: 305, Picks: scores(), Pole: scores(), F0: scores(),
		Seasons:     []wire.SeasonRecord{{Year: 2010, Races: 19, Picks: scores(), Pole: scores(), F0: scores()}},
		Reliability: []wire.ReliabilityBin{{Races: 30, SaidPct: 345, WonPct: 333, LowPct: 192, HighPct: 512}},
		AsFrozen:    []wire.BasisRecord{{Basis: "qualifying", Races: 30, Picks: &wire.Scores{}}},
		Forecasts:   []wire.BasisRecord{{Basis: "form", Races: 30, Picks: &wire.Scores{}}},
		Live:        []wire.LiveRecord{{Percent: 50, ByHand: true, Races: 3, Picks: scores(), Leader: &wire.Scores{}, Before: scores(), Reliability: []wire.ReliabilityBin{{Races: 3}}}},
	}}, now)},
	{trackRecord, wire.Wrap(wire.TrackRecord{Real: wire.Record{Races: 1, Picks: &wire.Scores{}}}, now)},
	{titleOdds, wire.Wrap(wire.TitleOdds{
		RacesCounted: 23, RacesRemaining: 1, Simulations: 10000,
		Drivers:      []wire.DriverOdds{{Driver: "VER", DriverID: "max-verstappen", Name: "Max Verstappen", Points: 429, TitlePct: 1000, PointsLow: 430, PointsHigh: 447, PointsMost: 455}},
		Constructors: []wire.ConstructorOdds{{Team: "McLaren", TeamID: "mclaren", Points: 640, TitlePct: 893, PointsLow: 655, PointsHigh: 677.5, PointsMost: 684}},
		AfterRounds: []wire.RoundOdds{{
			SessionKey: 2024023, GPName: "Qatar Grand Prix",
			Drivers: []wire.DriverTitle{{Driver: "VER", DriverID: "max-verstappen", TitlePct: 1000}}, Constructors: []wire.ConstructorTitle{{Team: "McLaren", TeamID: "mclaren", TitlePct: 893}},
		}},
	}, now)},
	{forecast, wire.Wrap([]wire.ForecastRecord{{
		SessionKey: 2024024, GPName: "Abu Dhabi Grand Prix", Date: "2024-12-08", DateStart: wire.Instant(now), Model: "v2-1", Basis: "practice", EntriesFrom: 2024023,
		LearnsNext: &wire.ForecastStep{Session: "qualifying", DateStart: wire.Instant(now), KnownAt: wire.Instant(now)},
		Podium:     wire.Podium{P1: "NOR", P2: "PIA", P3: "VER"},
		Drivers:    []wire.ForecastChance{{Driver: "NOR", DriverID: "lando-norris", WinPct: 500, PodiumPct: 1000}, {Driver: "PIA", DriverID: "oscar-piastri", WinPct: 300, PodiumPct: 1000}, {Driver: "VER", DriverID: "max-verstappen", WinPct: 200, PodiumPct: 1000}},
	}, {
		SessionKey: 2025001, GPName: "Australian Grand Prix", Date: "2025-03-16", Model: "v2-1", Basis: "form",
		LearnsNext: &wire.ForecastStep{Session: "practice_1", KnownAt: wire.Instant(now)},
		Podium:     wire.Podium{P1: "NOR", P2: "PIA", P3: "VER"},
		Drivers:    []wire.ForecastChance{{Driver: "NOR", DriverID: "lando-norris"}, {Driver: "PIA", DriverID: "oscar-piastri"}, {Driver: "VER", DriverID: "max-verstappen"}},
	}}, now)},
	{titleOdds, wire.Wrap(wire.TitleOdds{Drivers: []wire.DriverOdds{}, Constructors: []wire.ConstructorOdds{}}, now)},
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
	{changesPage, wire.Wrap(wire.ChangesPage{Page: 1, Next: "/api/v1/changes/log?page=2", Changes: []wire.LoggedChange{
		{SessionKey: 2024024, Kind: wire.RoundAdded, At: wire.Instant(now), By: "builder"},
		{SessionKey: 2024024, Kind: wire.DriverWithdrawn, At: wire.Instant(now), By: "builder", DriverID: "max-verstappen"},
		{
			SessionKey: 2024024, Kind: wire.RoundPostponed, At: wire.Instant(now), By: "source", Reason: "storm",
			Old: &wire.LoggedState{Status: wire.Scheduled, DateStart: wire.Instant(now)}, New: &wire.LoggedState{Status: wire.Postponed},
		},
		{SessionKey: 2024024, Kind: wire.ResultRevised, At: wire.Instant(now), By: "rule", Old: &wire.LoggedState{Revision: 1}, New: &wire.LoggedState{Revision: 2}},
	}}, now)},
	{identifiers, wire.Wrap([]wire.Identity{
		{
			ID: "andrea-kimi-antonelli", Name: "Kimi Antonelli", F1DB: "kimi-antonelli", Jolpica: []string{"antonelli"}, OpenF1: []string{"ANT"},
			Aliases: []string{"kimi"}, Codes: []wire.SeasonCode{{Code: "ANT", From: 2025, To: 2026}},
		},
		{ID: "jim-clark", Name: "Jim Clark", F1DB: "jim-clark"},
	}, now)},
	{changesPage, wire.Wrap(wire.ChangesPage{Changes: []wire.LoggedChange{}}, now)},
	{driverStandings, wire.Wrap([]wire.DriverStanding(nil), now)},
	{constructorStandings, wire.Wrap([]wire.ConstructorStanding(nil), now)},
	{calendar, wire.Wrap([]wire.CalendarEntry(nil), now)},
	{drivers, wire.Wrap([]wire.Driver(nil), now)},
	{predictions, wire.Wrap([]wire.PredictionRecord(nil), now)},
}

func scores() *wire.Scores {
	return &wire.Scores{
		WinnerHitPct: wire.PercentInterval{Value: 567, Low: 511, High: 623}, PodiumPct: wire.PercentInterval{Value: 683, Low: 655, High: 713},
		LogLoss: &wire.NumberInterval{Value: 1208, Low: 1089, High: 1337}, Brier: &wire.NumberInterval{Value: 577, Low: 526, High: 629},
	}
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

// TestValidateRefuses spoils good bodies, one fault at a time.
func TestValidateRefuses(t *testing.T) {
	good := map[catalog.Variant]string{}
	for _, tt := range bodies {
		if _, ok := good[tt.variant]; !ok {
			good[tt.variant] = string(marshal(t, tt.body))
		}
	}
	for _, tt := range []struct {
		fault    string
		variant  catalog.Variant
		old, new string
	}{
		{"Z for an offset", drivers, `11:30:00+00:00`, `11:30:00Z`},
		{"another offset", drivers, `11:30:00+00:00`, `11:30:00+01:00`},
		{"fraction of a second", drivers, `11:30:00+00:00`, `11:30:00.5+00:00`},
		{"impossible instant", drivers, `T11:30:00`, `T25:30:00`},
		{"impossible day", calendar, `"date":"2024-12-08"`, `"date":"2024-02-30"`},
		{"null", driverStandings, `"team_colour":"#3671C6"`, `"team_colour":null`},
		{"empty text", driverStandings, `"Red Bull"`, `""`},
		{"lower-case colour", driverStandings, `#3671C6`, `#3671c6`},
		{"lower-case code", driverStandings, `"VER"`, `"ver"`},
		{"long code", driverStandings, `"VER"`, `"VERS"`},
		{"position 0", driverStandings, `"position":1`, `"position":0`},
		{"fraction of a win", driverStandings, `"wins":9`, `"wins":9.5`},
		{"number as text", driverStandings, `"points":437`, `"points":"437"`},
		{"another decimal", driverStandings, `"points":437`, `"points":437.0`},
		{"a field too many", driverStandings, `"wins":9`, `"wins":9,"losses":0`},
		{"a field too few", driverStandings, `"wins":9,`, ``},
		{"another order", driverStandings, `"wins":9,"podiums":14`, `"podiums":14,"wins":9`},
		{"a field twice", driverStandings, `"wins":9`, `"wins":9,"wins":9`},
		{"white space", driverStandings, `"wins":9`, `"wins": 9`},
		{"HTML escapes", constructorStandings, `"Climax"`, `"\u003cClimax"`},
		{"trailing newline", accuracy, `+00:00"}}`, `+00:00"}}` + "\n"},
		{"two values", accuracy, `+00:00"}}`, `+00:00"}}{}`},
		{"truncated", accuracy, `+00:00"}}`, `+00:00"}`},
		{"whole percentage", accuracy, `100.0`, `100`},
		{"two decimals", accuracy, `54.2`, `54.25`},
		{"more than everything", accuracy, `100.0`, `100.1`},
		{"not ok", accuracy, `"ok":true`, `"ok":false`},
		{"another API", accuracy, `gridcast-v1`, `gridcast-v2`},
		{"finished without a winner", calendar, `,"winner":"NOR"`, ``},
		{"a winner before the result", calendar, `"finished"`, `"awaiting_result"`},
		{"unknown status", calendar, `"scheduled"`, `"delayed"`},
		{"result without a verdict", predictions, `,"winner_hit":true`, ``},
		{"pick of two", predictions, `,"p3":"SAI"`, ``},
		{"seconds at lights out", nextRace, `"seconds_to_lights":5400`, `"seconds_to_lights":0`},
		{"not provisional", nextRace, `"provisional":true`, `"provisional":false`},
		{"plain HTTP portrait", drivers, `https://`, `http://`},
		{"nationality in full", drivers, `"country":"GBR"`, `"country":"Britain"`},
		{"unknown session", weekends, `"session":"race"`, `"session":"warmup"`},
		{"no zone", weekends, `Asia/Dubai`, `+04:00`},
		{"unknown outcome", results, `"disqualified"`, `"DSQ"`},
		{"a name for a role", changes, `"by":"operator"`, `"by":"operator:anna"`},
		{"a voided pick with something new", changes, `,"old":{"prediction"`, `,"new":{},"old":{"prediction"`},
		{"postponed from nothing", changes, `"kind":"round_postponed"`, `"kind":"postponed"`},
		{"drivers for constructors", constructorStandings, `"engine":"Climax"`, `"driver":"BRA"`},
	} {
		t.Run(tt.fault, func(t *testing.T) {
			spoiled := strings.Replace(good[tt.variant], tt.old, tt.new, 1)
			must.Require(t, spoiled != good[tt.variant], "%s does not occur in %s", tt.old, spoiled)
			must.Fail(t, fmt.Sprintf("accepted: %s", spoiled), must.Err(schemas.Decode(tt.variant, []byte(spoiled))))
		})
	}
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

func TestValidateSaysWhere(t *testing.T) {
	body := strings.Replace(string(marshal(t, bodies[0].body)), `437`, `437.0`, 1)
	_, err := schemas.Decode(driverStandings, []byte(body))
	const want = `at byte 126: got "3671C6\",\"points\":437.0,\"wins\":9,\"podiums", want "3671C6\",\"points\":437,\"wins\":9,\"podiums\":"`
	must.Hold(t, err != nil && err.Error() == want, "got  %v\nwant %s", err, want)
}

// The error names the member, its value and the allowed values.
func TestValidateSaysWhatIsWrong(t *testing.T) {
	good := string(marshal(t, bodies[0].body))
	for _, tt := range []struct{ old, bad, want string }{
		{`"driver":"VER"`, `"driver":""`, `data[0].driver: '' does not match pattern '^[A-Z]{3}$'`},
		{`"driver":"VER",`, ``, `data[0]: properties 'driver' required, if 'name' exists`},
		{`"wins":9`, `"wins":"9"`, `data[0].wins: got string, want integer`},
		{`"wins":9`, `"wins":-1`, `data[0].wins: minimum: got -1, want 0`},
		{`"wins":9`, `"wins":9,"losses":1`, `data[0]: additional properties 'losses' not allowed`},
		{`"ok":true`, `"ok":false`, `ok: is false: value must be true`},
		{good, `{}`, `the body: missing properties 'ok', 'data', 'meta'`},
	} {
		body := strings.Replace(good, tt.old, tt.bad, 1)
		must.Require(t, body != good, "%s is not in %s", tt.old, good)
		if _, err := schemas.Decode(driverStandings, []byte(body)); err == nil || err.Error() != tt.want {
			t.Errorf("%s in place of %s:\ngot  %v\nwant %s", tt.bad, tt.old, err, tt.want)
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
		if err := c.AddResource("gridcast:///"+name, decode(t, text)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
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
