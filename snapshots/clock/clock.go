// Package clock provides race time, the time by which the program acts. It may differ from real time, and may run
// faster.
//
// A Clock is an instant of race time, the instant of real time that belongs to it, and a speed. It is a plain value
// without state. Processes with the same Clock, as text on a command line or in the environment, have the same race
// time.
//
// Published documents and the ledger use race time. Limits, timeouts, key expiry, polling and retention use real time
// and do not need this package. Code that reads the time takes a func() time.Time, and gets Clock.Now. To wait for a
// race instant, it uses Clock.Real.
package clock

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// MaxSpeed bounds the speed: above it one real nanosecond would be more than a race second.
const MaxSpeed = 1e9

// Clock is race time. The zero Clock is real time. Clocks can be compared with ==, and are
// safe for concurrent use.
type Clock struct {
	race, real time.Time // one instant in both times, UTC without monotonic reading; zero: System
	speed      float64   // race seconds in a real second, above 0
}

// System returns the clock with race time equal to real time.
func System() Clock { return Clock{} }

// At returns the clock that shows race at the real time actual, and runs speed race seconds in a real second.
func At(race, actual time.Time, speed float64) (Clock, error) {
	if race.IsZero() || actual.IsZero() {
		return Clock{}, errors.New("race clock: an instant of race time and one of real time are required")
	}
	if !(speed > 0 && speed <= MaxSpeed) { // refuses NaN too
		return Clock{}, fmt.Errorf("race clock: speed %v is not above 0 and at most %v", speed, float64(MaxSpeed))
	}
	return Clock{race: race.UTC().Round(0), real: actual.UTC().Round(0), speed: speed}, nil
}

// Parse reads RACE@REAL*SPEED, two instants in RFC 3339 and a number, as String writes it:
// 2024-05-26T12:55:00Z@2026-11-20T09:00:00Z*60. Without *SPEED the speed is 1. Empty text
// is System.
func Parse(text string) (Clock, error) {
	if text == "" {
		return System(), nil
	}
	instants, factor, fast := strings.Cut(text, "*")
	race, actual, ok := strings.Cut(instants, "@")
	if !ok {
		return Clock{}, fmt.Errorf("race clock %q is not of the form RACE@REAL*SPEED", text)
	}
	raceAt, raceErr := time.Parse(time.RFC3339Nano, race)
	actualAt, realErr := time.Parse(time.RFC3339Nano, actual)
	if raceErr != nil || realErr != nil {
		return Clock{}, fmt.Errorf("race clock %q: RACE and REAL must be instants such as 2024-05-26T12:55:00Z", text)
	}
	speed := 1.0
	if fast {
		var err error
		if speed, err = strconv.ParseFloat(factor, 64); err != nil {
			return Clock{}, fmt.Errorf("race clock %q: SPEED must be a number such as 60", text)
		}
	}
	return At(raceAt, actualAt, speed)
}

// String is the inverse of Parse.
func (c Clock) String() string {
	if c.IsSystem() {
		return ""
	}
	return fmt.Sprintf("%s@%s*%s", c.race.Format(time.RFC3339Nano), c.real.Format(time.RFC3339Nano),
		strconv.FormatFloat(c.speed, 'g', -1, 64))
}

// IsSystem reports whether race time is real time. Only then may a ledger be real.
func (c Clock) IsSystem() bool { return c == System() }

// Speed is the number of race seconds in a real second.
func (c Clock) Speed() float64 {
	if c.IsSystem() {
		return 1
	}
	return c.speed
}

// Now is the race time of this moment, in UTC.
func (c Clock) Now() time.Time { return c.Race(time.Now()) }

// Race converts an instant of real time to race time, in UTC. A later instant never gives an
// earlier race time. Both times are cut to about 292 years around the instants of the clock.
func (c Clock) Race(actual time.Time) time.Time {
	if c.IsSystem() {
		return actual.UTC()
	}
	return c.race.Add(scale(actual.Sub(c.real), c.speed))
}

// Real converts an instant of race time to the real time, in UTC, at which Race reaches it, at most a microsecond
// late.
func (c Clock) Real(race time.Time) time.Time {
	if c.IsSystem() {
		return race.UTC()
	}
	elapsed := race.Sub(c.race)
	actual := c.real.Add(scale(elapsed, 1/c.speed))
	// Rounding may have left it a few nanoseconds short.
	for step := time.Duration(1); step < time.Microsecond && c.Race(actual).Before(race); step *= 2 {
		actual = actual.Add(step)
	}
	return actual
}

// scale returns d times factor, cut to the range of a Duration. It is exact for the factor 1, else exact to 53 bits,
// a nanosecond in a hundred days.
func scale(d time.Duration, factor float64) time.Duration {
	if factor == 1 {
		return d
	}
	switch scaled := math.Floor(float64(d) * factor); {
	case scaled >= math.MaxInt64:
		return math.MaxInt64
	case scaled <= math.MinInt64:
		return math.MinInt64
	default:
		return time.Duration(scaled)
	}
}
