package wire_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/schemas/wire"
)

var (
	lights   = time.Date(2026, 11, 22, 4, 0, 0, 0, time.UTC)
	rendered = time.Date(2026, 11, 21, 18, 30, 5, 0, time.UTC)
)

func marshal(t *testing.T, v any) string {
	t.Helper()
	b, err := wire.Marshal(v)
	if err != nil {
		t.Fatalf("Marshal(%+v): %v", v, err)
	}
	return string(b)
}

func TestInstant(t *testing.T) {
	for _, tt := range []struct {
		t    time.Time
		want string
	}{
		{lights, `"2026-11-22T04:00:00+00:00"`},
		{lights.In(time.FixedZone("", -8*3600)), `"2026-11-22T04:00:00+00:00"`},
		{lights.Add(999 * time.Millisecond), `"2026-11-22T04:00:00+00:00"`},
		{time.Date(1950, 5, 13, 13, 0, 0, 0, time.UTC), `"1950-05-13T13:00:00+00:00"`},
	} {
		must.Equal(t, fmt.Sprint(tt.t), tt.want, marshal(t, wire.Instant(tt.t)))
	}
}

func TestInstantReads(t *testing.T) {
	for _, text := range []string{
		`"2026-11-22T04:00:00+00:00"`, `"2026-11-22T04:00:00Z"`, `"2026-11-21T20:00:00-08:00"`,
	} {
		var got wire.Instant
		if err := json.Unmarshal([]byte(text), &got); err != nil || !time.Time(got).Equal(lights) {
			t.Errorf("%s: got %s, %v, want %s", text, got, err, lights)
		}
	}
	for _, text := range []string{`""`, `"2026-11-22"`, `1763784000`, `{}`} {
		var got wire.Instant
		must.Fail(t, fmt.Sprintf("%s: got %s, want an error", text, got), json.Unmarshal([]byte(text), &got))
	}
}

func TestPercentOf(t *testing.T) {
	for _, tt := range []struct {
		part, whole int
		want        string
	}{
		{0, 0, "0.0"},
		{0, 7, "0.0"},
		{7, 7, "100.0"},
		{1, 2, "50.0"},
		{5, 8, "62.5"},
		{1, 3, "33.3"},
		{2, 3, "66.7"},
		{1, 80, "1.3"},  // 1.25: halves go up
		{1, 16, "6.3"},  // 6.25
		{9, 16, "56.3"}, // 56.25
		{1, 2000, "0.1"},
		{1, 2001, "0.0"},
		{1999, 2000, "100.0"},
		{1998, 2000, "99.9"},
	} {
		must.Equal(t, fmt.Sprintf("%d of %d", tt.part, tt.whole), tt.want, marshal(t, wire.PercentOf(tt.part, tt.whole)))
	}
}

func TestPercentFrom(t *testing.T) {
	for _, tt := range []struct {
		probability float64
		want        string
	}{
		{0, "0.0"},
		{1, "100.0"},
		{0.5, "50.0"},
		{0.625, "62.5"},
		{1.0 / 3, "33.3"},
		{2.0 / 3, "66.7"},
		{0.0625, "6.3"},  // 6.25: halves go up
		{0.5625, "56.3"}, // 56.25
		{0.0004, "0.0"},
		{0.0005, "0.1"},
		{0.9994, "99.9"},
		{0.9995, "100.0"},
	} {
		must.Equal(t, fmt.Sprintf("%v", tt.probability), tt.want, marshal(t, wire.PercentFrom(tt.probability)))
	}
}

func TestPercentSurvivesReading(t *testing.T) {
	for tenths := range wire.Percent(1001) {
		var got wire.Percent
		if err := json.Unmarshal([]byte(marshal(t, tenths)), &got); err != nil || got != tenths {
			t.Fatalf("%s: got %d, %v, want %d", marshal(t, tenths), got, err, tenths)
		}
	}
}

func TestMarshalLeavesTextAlone(t *testing.T) {
	const want = `{"ok":false,"error":"not_found","message":"<São Paulo> & \"Österreich\"\\ 日本\n"}`
	must.Equal(t, "error", want, marshal(t, wire.NewError(wire.NotFound, "<São Paulo> & \"Österreich\"\\ 日本\n")))
}

func TestUnknownIsAbsent(t *testing.T) {
	const meta = `"meta":{"api":"gridcast-v1","generated_at":"2026-11-21T18:30:05+00:00"}}`
	miss := false
	pick := wire.Prediction{Winner: "NOR", ConfidencePct: 500, Podium: wire.Podium{P1: "NOR", P2: "PIA", P3: "SAI"}}
	for _, tt := range []struct {
		name string
		body any
		want string
	}{
		{
			"no rows", wire.Wrap([]wire.Driver(nil), rendered),
			`{"ok":true,"data":[],` + meta,
		},
		{
			"unranked driver", wire.Wrap([]wire.DriverStanding{{Driver: "RIC", Name: "Daniel Ricciardo", Team: "RB"}}, rendered),
			`{"ok":true,"data":[{"driver":"RIC","name":"Daniel Ricciardo","team":"RB","points":0,"wins":0,"podiums":0}],` + meta,
		},
		{
			"fractions of points", wire.Wrap([]wire.ConstructorStanding{{Position: 1, Team: "Maserati", Points: 25.14}}, rendered),
			`{"ok":true,"data":[{"position":1,"team":"Maserati","points":25.14,"wins":0,"podiums":0}],` + meta,
		},
		{
			"unknown hour", wire.Wrap([]wire.CalendarEntry{{Round: 1, SessionKey: 1950001, Status: wire.Scheduled}}, rendered),
			`{"ok":true,"data":[{"round":1,"session_key":1950001,"gp_name":"","circuit":"","locality":"","country":"","date":"","sprint":false,"status":"scheduled"}],` + meta,
		},
		{
			"number 0", wire.Wrap([]wire.Driver{{Driver: "HIL"}}, rendered),
			`{"ok":true,"data":[{"driver":"HIL","name":"","first_name":"","last_name":"","number":0,"team":"","country":""}],` + meta,
		},
		{
			"pick without result", wire.Wrap([]wire.PredictionRecord{{SessionKey: 2024024, GPName: "Abu Dhabi Grand Prix", Prediction: pick}}, rendered),
			`{"ok":true,"data":[{"session_key":2024024,"gp_name":"Abu Dhabi Grand Prix","prediction":{"winner":"NOR","confidence_pct":50.0,"podium":{"p1":"NOR","p2":"PIA","p3":"SAI"}}}],` + meta,
		},
		{
			"missed pick, podium of one", wire.Wrap([]wire.PredictionRecord{{
				SessionKey: 2024024, GPName: "x", Prediction: pick,
				Result: &wire.Result{Winner: "VER", Podium: wire.Podium{P1: "VER"}}, WinnerHit: &miss,
			}}, rendered),
			`{"ok":true,"data":[{"session_key":2024024,"gp_name":"x","prediction":{"winner":"NOR","confidence_pct":50.0,"podium":{"p1":"NOR","p2":"PIA","p3":"SAI"}},` +
				`"result":{"winner":"VER","podium":{"p1":"VER"}},"winner_hit":false}],` + meta,
		},
		{
			"race without pick", wire.Wrap(wire.NextRace{Name: "x", Circuit: "y", Country: "z", DateStart: wire.Instant(lights), SecondsToLights: 1}, rendered),
			`{"ok":true,"data":{"name":"x","circuit":"y","country":"z","date_start":"2026-11-22T04:00:00+00:00","seconds_to_lights":1},` + meta,
		},
		{
			"no races", wire.Wrap(wire.Accuracy{}, rendered),
			`{"ok":true,"data":{"races_evaluated":0,"pre_race":{"winner_hit_rate_pct":0.0,"podium_accuracy_pct":0.0},"live":{"races_evaluated":0,"winner_hit_rate_pct":0.0,"podium_accuracy_pct":0.0}},` + meta,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := marshal(t, tt.body); got != tt.want {
				t.Errorf(" got %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestPercentagesAddUp: the parts with the largest remainder are rounded up.
func TestPercentagesAddUp(t *testing.T) {
	for _, tc := range []struct {
		parts []int
		want  string
	}{
		{[]int{333_333, 333_333, 333_334}, "[33.33,33.33,33.34]"},
		{[]int{999_949, 49, 2}, "[100.00,0.00,0.00]"},
		{[]int{50, 999_950}, "[0.01,99.99]"},
		{[]int{1_000_000, 0}, "[100.00,0.00]"},
		{[]int{149, 149}, "[0.02,0.01]"}, // of 0.0298
		{[]int{}, "[]"},
	} {
		got, err := wire.Marshal(wire.PercentagesOf(tc.parts))
		must.Hold(t, err == nil && string(got) == tc.want, "%v: got %s, %v, want %s", tc.parts, got, err, tc.want)
		var read []wire.Hundredths
		if err := json.Unmarshal(got, &read); err != nil || !slices.Equal(read, wire.PercentagesOf(tc.parts)) {
			t.Errorf("%v: read %v, %v", tc.parts, read, err)
		}
	}
}
