package wire_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/deploy/must"
	"gridcast/schemas/wire"
)

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
		if got := c.Next(tt.now); got != tt.want {
			t.Errorf("at %s: got %v, want %v", tt.now, got, tt.want)
		}
	}
}

func TestCountdownRefuses(t *testing.T) {
	if r, err := wire.NewCountdownRound(wire.NextRace{Name: "n"}); err == nil {
		t.Errorf("without a start: got %v, want an error", r)
	}
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
