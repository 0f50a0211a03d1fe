package clock_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"gridcast/deploy/must"
	"gridcast/snapshots/clock"
)

var (
	monaco  = time.Date(2024, 5, 26, 12, 55, 0, 0, time.UTC)
	morning = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
)

func at(t *testing.T, race, actual time.Time, speed float64) clock.Clock {
	t.Helper()
	return must.Get(clock.At(race, actual, speed))(t)
}

func TestParse(t *testing.T) {
	for text, want := range map[string]struct {
		clock clock.Clock
		text  string // as String writes it
	}{
		"": {clock.System(), ""},
		"2024-05-26T12:55:00Z@2026-11-20T09:00:00Z*60":             {at(t, monaco, morning, 60), "2024-05-26T12:55:00Z@2026-11-20T09:00:00Z*60"},
		"2024-05-26T14:55:00+02:00@2026-11-20T09:00:00+00:00*60.0": {at(t, monaco, morning, 60), "2024-05-26T12:55:00Z@2026-11-20T09:00:00Z*60"},
		"2024-05-26T12:55:00Z@2026-11-20T09:00:00Z":                {at(t, monaco, morning, 1), "2024-05-26T12:55:00Z@2026-11-20T09:00:00Z*1"},
		"2024-05-26T12:55:00.5Z@2026-11-20T09:00:00Z*0.25":         {at(t, monaco.Add(time.Second/2), morning, 0.25), "2024-05-26T12:55:00.5Z@2026-11-20T09:00:00Z*0.25"},
	} {
		got, err := clock.Parse(text)
		if err != nil {
			t.Errorf("Parse(%q): %v", text, err)
			continue
		}
		must.Hold(t, got == want.clock, "Parse(%q): got %v, want %v", text, got, want.clock)
		must.Equal(t, fmt.Sprintf("Parse(%q).String()", text), want.text, got.String())
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"now", "@", "2024-05-26T12:55:00Z", "2024-05-26T12:55:00Z*60",
		"2024-05-26@2026-11-20T09:00:00Z", "2024-05-26T12:55:00Z@tomorrow",
		"2024-05-26T12:55:00Z@2026-11-20T09:00:00Z*",
		"2024-05-26T12:55:00Z@2026-11-20T09:00:00Z*fast",
		"2024-05-26T12:55:00Z@2026-11-20T09:00:00Z*0",
		"2024-05-26T12:55:00Z@2026-11-20T09:00:00Z*-1",
		"2024-05-26T12:55:00Z@2026-11-20T09:00:00Z*NaN",
		"2024-05-26T12:55:00Z@2026-11-20T09:00:00Z*Inf",
		"2024-05-26T12:55:00Z@2026-11-20T09:00:00Z*1e10",
		"0001-01-01T00:00:00Z@2026-11-20T09:00:00Z*1",
	} {
		got, err := clock.Parse(text)
		must.Hold(t, err != nil, "Parse(%q): got %v, want an error", text, got)
	}
}

func TestConversion(t *testing.T) {
	c := at(t, monaco, morning, 60)
	for _, row := range []struct{ actual, race time.Duration }{
		{0, 0},
		{time.Second, time.Minute},
		{time.Minute, time.Hour},
		{-time.Second, -time.Minute},
		{24 * time.Hour, 60 * 24 * time.Hour},
		{time.Nanosecond, 60},
	} {
		actual, race := morning.Add(row.actual), monaco.Add(row.race)
		got := c.Race(actual)
		must.Hold(t, got.Equal(race), "Race(%s): got %s, want %s", actual, got, race)
		if got := c.Real(race); !got.Equal(actual) {
			t.Errorf("Real(%s): got %s, want %s", race, got, actual)
		}
	}
	system := clock.System()
	got := system.Race(morning)
	must.Hold(t, got.Equal(morning), "real time: Race(%s): got %s", morning, got)
	if got := system.Real(morning); !got.Equal(morning) {
		t.Errorf("real time: Real(%s): got %s", morning, got)
	}
	if !system.IsSystem() || c.IsSystem() || system.Speed() != 1 || c.Speed() != 60 {
		t.Errorf("got speeds %v and %v, want 1 of real time and 60 of another", system.Speed(), c.Speed())
	}
}

// At Real the race instant has come.
func TestRealIsWhenRaceHasCome(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		speed := math.Exp(r.Float64()*24 - 6) // 0.0025 to 65 million
		c := at(t, monaco, morning, speed)
		span := min(float64(50*365*24*time.Hour), float64(365*24*time.Hour)*speed)
		race := monaco.Add(time.Duration((r.Float64()*2 - 1) * span))
		actual := c.Real(race)
		if c.Race(actual).Before(race) {
			t.Fatalf("%v: Real(%s) is %s, when race time is only %s", c, race, actual, c.Race(actual))
		}
		if early := c.Race(actual.Add(-time.Microsecond)); !early.Before(race) {
			t.Fatalf("%v: Real(%s) is %s, but race time was %s a microsecond before", c, race, actual, early)
		}
	}
}

func TestRaceTimeNeverRunsBackwards(t *testing.T) {
	for _, speed := range []float64{1, 0.1, 3.7, 1e6} {
		c := at(t, monaco, morning, speed)
		last := c.Race(morning.Add(-time.Microsecond))
		for i := range 2000 {
			next := c.Race(morning.Add(time.Duration(i - 999)))
			must.Require(t, !next.Before(last), "speed %v: %s follows %s", speed, next, last)
			last = next
		}
	}
	far := at(t, monaco, morning, clock.MaxSpeed)
	got := far.Race(morning.Add(1000 * time.Hour))
	must.Hold(t, !got.Before(monaco), "a race time beyond reach wrapped around to %s", got)
	if got := far.Race(morning.Add(-1000 * time.Hour)); got.After(monaco) {
		t.Errorf("a race time beyond reach wrapped around to %s", got)
	}
}

func TestNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fast := at(t, monaco, time.Now(), 3600)
		from := must.Get(clock.At(monaco, time.Now(), 1))(t)
		must.Advance(2 * time.Second)
		got, want := fast.Now(), monaco.Add(2*time.Hour)
		must.Hold(t, got.Equal(want), "at 3600: got %s, want %s", got, want)
		if got, want := from.Now(), monaco.Add(2*time.Second); !got.Equal(want) {
			t.Errorf("from an instant on: got %s, want %s", got, want)
		}
		if got := clock.System().Now(); !got.Equal(time.Now()) {
			t.Errorf("real time: got %s, want %s", got, time.Now())
		}
	})
}

func TestNowDoesNotAllocate(t *testing.T) {
	c := at(t, monaco, morning, 60)
	n := testing.AllocsPerRun(100, func() { c.Now() })
	must.Hold(t, n == 0, "Now allocates %v times", n)
}
