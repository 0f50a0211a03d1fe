package scheduler

import (
	"math"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"
)

// Clock is race time and its speed. It is safe for concurrent use, and may be set forward or back. clock.Clock implements it.
type Clock interface {
	Now() time.Time
	Speed() float64 // race seconds in a real second, above 0
}

// raceTime makes timers of a Clock. All durations are race time. It has the two methods that gocron calls. The others
// panic, so that the tests show a release of gocron that calls more.
//
// A timer never fires before its instant. It looks at the clock again at whole multiples of look, a real duration. So it
// fires at most that late after the machine was suspended or the clock was set.
type raceTime struct {
	clockwork.Clock // nil

	race Clock
	look time.Duration
}

// Now implements [clockwork.Clock].
func (c raceTime) Now() time.Time { return c.race.Now() }

// AfterFunc implements [clockwork.Clock]. The timer has the one method that gocron calls, Stop.
func (c raceTime) AfterFunc(d time.Duration, f func()) clockwork.Timer {
	t := &timer{clock: c, fire: f, at: c.Now().Add(d)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wait()
	return t
}

// timer calls fire once.
type timer struct {
	clockwork.Timer // nil

	clock raceTime
	fire  func()
	at    time.Time

	mu    sync.Mutex  // guards the following
	alarm *time.Timer // nil once the timer was stopped or has fired
}

// Stop implements [clockwork.Timer].
func (t *timer) Stop() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	active := t.alarm != nil
	if active {
		t.alarm.Stop()
		t.alarm = nil
	}
	return active
}

// wait waits until the instant, or the next look at the clock. All timers look at the same moment. The caller holds mu.
func (t *timer) wait() {
	need := math.Ceil(float64(t.at.Sub(t.clock.Now())) / t.clock.race.Speed())
	look := t.clock.look - time.Duration(time.Now().UnixNano())%t.clock.look
	t.alarm = time.AfterFunc(time.Duration(min(max(need, 0), float64(look))), t.expire)
}

// expire ends a wait: the timer fires if the clock has reached the instant. Otherwise it waits again.
func (t *timer) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.alarm == nil: // stopped meanwhile
	case t.clock.Now().Before(t.at):
		t.wait()
	default:
		t.alarm = nil
		go t.fire()
	}
}
