// Package clock makes race time: the instant that the program acts as if it were, which may
// be another one than the real, and may run faster.
//
// A Clock is a pair of instants that belong together, one of race time and one of real time,
// and a speed. It is a plain value without state, so that every process that is given the same
// one, as text on a command line or in the environment, has the same race time.
//
// What is published or written to the ledger uses race time. Limits, timeouts, key expiry,
// polling and retention use real time and do not need this package. Code that has to know the
// time takes a func() time.Time and is given Clock.Now; Clock.Real says how long to wait for a
// race instant.
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

// System returns the clock whose race time is real time.
func System() Clock { return Clock{} }

// At returns the clock on which it was race time race at real time actual, and which runs at the
// given number of race seconds in a real second.
func At(race, actual time.Time, speed float64) (Clock, error) {
	if race.IsZero() || actual.IsZero() {
		return Clock{}, errors.New("race clock: an instant of race time and one of real time are required")
	}
	if !(speed > 0 && speed <= MaxSpeed) { // refuses NaN too
		return Clock{}, fmt.Errorf("race clock: speed %v is not above 0 and at most %v", speed, float64(MaxSpeed))
	}
	return Clock{race: race.UTC().Round(0), real: actual.UTC().Round(0), speed: speed}, nil
}

// From returns the clock that shows race now and runs at normal speed.
func From(race time.Time) (Clock, error) { return At(race, time.Now(), 1) }

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
	raceAt, err := time.Parse(time.RFC3339Nano, race)
	if err != nil {
		return Clock{}, fmt.Errorf("race clock %q: race time: %w", text, err)
	}
	actualAt, err := time.Parse(time.RFC3339Nano, actual)
	if err != nil {
		return Clock{}, fmt.Errorf("race clock %q: real time: %w", text, err)
	}
	speed := 1.0
	if fast {
		if speed, err = strconv.ParseFloat(factor, 64); err != nil {
			return Clock{}, fmt.Errorf("race clock %q: speed: %w", text, err)
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

// IsSystem says that race time is real time. Only then can what is recorded be real.
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
// earlier race time. Both times reach about 292 years from the instants the clock was made
// with; what is beyond is cut to that.
func (c Clock) Race(actual time.Time) time.Time {
	if c.IsSystem() {
		return actual.UTC()
	}
	return c.race.Add(scale(actual.Sub(c.real), c.speed))
}

// Real converts an instant of race time to an instant of real time, in UTC, at which Race has
// reached it: less than a microsecond of real time late.
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

// scale returns d times factor, cut to what a Duration can hold. With the factor 1 it is exact;
// else it is to 53 bits, which is a nanosecond in a hundred days.
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
