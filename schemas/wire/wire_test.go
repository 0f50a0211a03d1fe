package wire_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
	must.Require(t, err == nil, "Marshal(%+v): %v", v, err)
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
		err := json.Unmarshal([]byte(text), &got)
		must.Hold(t, err == nil && time.Time(got).Equal(lights), "%s: got %s, %v, want %s", text, got, err, lights)
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
			got := marshal(t, tt.body)
			must.Hold(t, got == tt.want, " got %s\nwant %s", got, tt.want)
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

var (
	monza  = time.Date(2024, 9, 1, 13, 0, 0, 0, time.UTC)
	baku   = time.Date(2024, 9, 15, 11, 0, 0, 0, time.UTC)
	nested = `x"seconds_to_lights":9223372036854775807,"generated_at":"1970-01-01T00:00:00+00:00"`
)

func round(t *testing.T, name string, start time.Time) wire.CountdownRound {
	t.Helper()
	r := must.Get(wire.NewCountdownRound(wire.NextRace{
		Name: name, Circuit: "c", Country: "Öst", DateStart: wire.Instant(start),
		Prediction: &wire.Prediction{Winner: "NOR", Podium: wire.Podium{P1: "NOR"}},
	}))(t)
	return r
}

// TestCountdownEqualsMarshal compares with a body rendered in one piece, also where the name
// of a race looks like the open values.
func TestCountdownEqualsMarshal(t *testing.T) {
	for _, name := range []string{"Italian Grand Prix", nested} {
		stored := must.Get(wire.Marshal(wire.Countdown{Rounds: []wire.CountdownRound{round(t, name, monza), round(t, "b", baku)}}))(t)
		c := must.Get(wire.ParseCountdown(stored))(t)
		for _, tt := range []struct {
			now     time.Time
			seconds int64
		}{
			{monza.Add(-time.Hour), 3600},
			{monza.Add(-time.Second), 1},
			{monza.Add(-time.Nanosecond), 1},
			{monza.Add(-1500 * time.Millisecond), 2},
		} {
			want := must.Get(wire.Marshal(wire.Wrap(wire.NextRace{
				Name: name, Circuit: "c", Country: "Öst", DateStart: wire.Instant(monza), SecondsToLights: tt.seconds,
				Prediction: &wire.Prediction{Winner: "NOR", Podium: wire.Podium{P1: "NOR"}},
			}, monza.Add(-time.Duration(tt.seconds)*time.Second))))(t)
			got := c.Next(tt.now).Append(nil, tt.now)
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("at %s: -want +got:\n%s", tt.now, diff)
			}
		}
	}
}

func TestCountdownMovesOnAtTheStart(t *testing.T) {
	c := wire.Countdown{Rounds: []wire.CountdownRound{round(t, "a", monza), round(t, "b", baku)}}
	for _, tt := range []struct {
		now  time.Time
		want *wire.CountdownRound
	}{
		{monza.Add(-time.Nanosecond), &c.Rounds[0]},
		{monza, &c.Rounds[1]},
		{baku.Add(-time.Second), &c.Rounds[1]},
		{baku, nil},
	} {
		got := c.Next(tt.now)
		must.Hold(t, got == tt.want, "at %s: got %v, want %v", tt.now, got, tt.want)
	}
}

func TestCountdownRefuses(t *testing.T) {
	r, err := wire.NewCountdownRound(wire.NextRace{Name: "n"})
	must.Hold(t, err != nil, "without a start: got %v, want an error", r)
	if r, err := wire.NewCountdownRound(wire.NextRace{Name: "n", DateStart: wire.Instant(monza.Add(1))}); err == nil {
		t.Errorf("with part of a second: got %v, want an error", r)
	}
	valid := round(t, "a", monza)
	moved := valid
	moved.Start = wire.Instant(baku)
	broken := valid
	broken.Parts[2] = strings.TrimSuffix(broken.Parts[2], "}")
	for name, c := range map[string]wire.Countdown{
		"out of order":        {Rounds: []wire.CountdownRound{round(t, "b", baku), valid}},
		"start not the body":  {Rounds: []wire.CountdownRound{moved}},
		"body is not a value": {Rounds: []wire.CountdownRound{broken}},
	} {
		data := must.Get(json.Marshal(c))(t)
		must.Fail(t, fmt.Sprintf("%s: got no error", name), must.Err(wire.ParseCountdown(data)))
	}
}
