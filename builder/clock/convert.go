package clock

import (
	"math"
	"time"
)

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
