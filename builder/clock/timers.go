package clock

import (
	"sync"
	"time"

	"github.com/jonboulle/clockwork"
)

// Timers returns the clock as a clockwork.Clock: its durations are race time, and its timers
// and tickers run on real ones. A scheduler that takes a clockwork.Clock then runs in race
// time, at the clock's speed.
func (c Clock) Timers() clockwork.Clock {
	if c.IsSystem() {
		return clockwork.NewRealClock()
	}
	return timers{c}
}

var _ clockwork.Clock = timers{}

// timers is a Clock other than System.
type timers struct{ Clock }

func (t timers) Since(race time.Time) time.Duration { return t.Now().Sub(race) }
func (t timers) Until(race time.Time) time.Duration { return race.Sub(t.Now()) }
func (t timers) Sleep(d time.Duration)              { time.Sleep(t.wait(t.Now().Add(d))) }

func (t timers) After(d time.Duration) <-chan time.Time { return t.NewTimer(d).Chan() }

func (t timers) NewTimer(d time.Duration) clockwork.Timer {
	a := &alarm{clock: t, c: make(chan time.Time, 1)}
	a.set(d, 0)
	return oneShot{a}
}

// NewTicker panics if d is not positive, as time.NewTicker does.
func (t timers) NewTicker(d time.Duration) clockwork.Ticker {
	a := &alarm{clock: t, c: make(chan time.Time, 1)}
	ticker{a}.Reset(d)
	return ticker{a}
}

func (t timers) AfterFunc(d time.Duration, f func()) clockwork.Timer {
	return call{time.AfterFunc(t.wait(t.Now().Add(d)), f), t}
}

// wait is the real time from now until the race instant.
func (t timers) wait(race time.Time) time.Duration { return time.Until(t.Real(race)) }

// call is a timer that calls a function. Like that of package time it has no channel.
type call struct {
	*time.Timer
	clock timers
}

func (c call) Chan() <-chan time.Time { return c.C }

func (c call) Reset(d time.Duration) bool {
	return c.Timer.Reset(c.clock.wait(c.clock.Now().Add(d)))
}

// alarm sends race time on a channel, once or again and again. As with the timers of package
// time, nobody receives a value from before a stop or reset, and a slow receiver misses ticks.
type alarm struct {
	clock timers
	c     chan time.Time // of capacity 1

	mu     sync.Mutex    // guards all below, and sends on c
	timer  *time.Timer   // the real one that runs for it; nil while not set
	due    time.Time     // race time
	period time.Duration // race time; 0: once
}

// set makes the alarm ring after d, and then with the period if that is not 0. It says whether
// it was set before.
func (a *alarm) set(d, period time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.unset()
	a.due, a.period = a.clock.Now().Add(d), period
	a.run()
	return was
}

func (a *alarm) stop() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.unset()
}

// unset stops the alarm and takes back what nobody has received. The caller holds mu.
func (a *alarm) unset() bool {
	was := a.timer != nil
	if was {
		a.timer.Stop()
		a.timer = nil
	}
	select {
	case <-a.c:
	default:
	}
	return was
}

// run starts the real timer for the next ring. The caller holds mu.
func (a *alarm) run() {
	var own *time.Timer
	own = time.AfterFunc(a.clock.wait(a.due), func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.timer == own { // else it was stopped or set again while this waited for mu
			a.ring()
		}
	})
	a.timer = own
}

// ring sends, and starts over if there is a period. The caller holds mu.
func (a *alarm) ring() {
	now := a.clock.Now()
	select {
	case a.c <- now:
	default: // nobody took the one before
	}
	if a.timer = nil; a.period == 0 {
		return
	}
	missed := max(0, now.Sub(a.due)/a.period)
	a.due = a.due.Add((missed + 1) * a.period)
	a.run()
}

type oneShot struct{ *alarm }

func (o oneShot) Chan() <-chan time.Time     { return o.c }
func (o oneShot) Reset(d time.Duration) bool { return o.set(d, 0) }
func (o oneShot) Stop() bool                 { return o.stop() }

type ticker struct{ *alarm }

func (t ticker) Chan() <-chan time.Time { return t.c }
func (t ticker) Stop()                  { t.stop() }

func (t ticker) Reset(d time.Duration) {
	if d <= 0 {
		panic("clock: non-positive interval for a ticker")
	}
	t.set(d, d)
}
