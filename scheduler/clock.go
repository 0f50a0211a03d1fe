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

// raceTime makes timers and tickers of a Clock. All durations are race time.
//
// A timer never fires before its instant. It looks at the clock again at whole multiples of look, a real duration. So it
// fires at most that late after the machine was suspended or the clock was set.
type raceTime struct {
	Clock
	look time.Duration
}

var _ clockwork.Clock = raceTime{}

func (c raceTime) Since(t time.Time) time.Duration        { return c.Now().Sub(t) }
func (c raceTime) Until(t time.Time) time.Duration        { return t.Sub(c.Now()) }
func (c raceTime) Sleep(d time.Duration)                  { <-c.After(d) }
func (c raceTime) After(d time.Duration) <-chan time.Time { return c.NewTimer(d).Chan() }

func (c raceTime) AfterFunc(d time.Duration, f func()) clockwork.Timer {
	t := &timer{clock: c, fire: f}
	t.Reset(d)
	return t
}

func (c raceTime) NewTimer(d time.Duration) clockwork.Timer {
	t := &timer{clock: c, channel: make(chan time.Time, 1)}
	t.Reset(d)
	return t
}

func (c raceTime) NewTicker(d time.Duration) clockwork.Ticker {
	t := ticker{&timer{clock: c, channel: make(chan time.Time, 1)}}
	t.Reset(d)
	return t
}

// timer fires once, or as a ticker again and again. It calls fire or, if that is nil, sends on channel.
type timer struct {
	clock   raceTime
	fire    func()
	channel chan time.Time

	mu    sync.Mutex // guards the following
	at    time.Time
	every time.Duration // of a ticker
	alarm *time.Timer   // nil while the timer is stopped
	waits int           // the number of the present wait
}

func (t *timer) Chan() <-chan time.Time { return t.channel }

func (t *timer) Stop() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stop()
}

func (t *timer) Reset(d time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	active := t.stop()
	t.at = t.clock.Now().Add(d)
	t.wait()
	return active
}

// stop reports whether the timer was active. The caller holds mu.
func (t *timer) stop() bool {
	active := t.alarm != nil
	if active {
		t.alarm.Stop()
		t.alarm = nil
	}
	return active
}

// wait waits until the instant, or the next look at the clock. All timers look at the same moment. The caller holds mu.
func (t *timer) wait() {
	need := math.Ceil(float64(t.clock.Until(t.at)) / t.clock.Speed())
	look := t.clock.look - time.Duration(time.Now().UnixNano())%t.clock.look
	t.waits++
	wait := t.waits
	t.alarm = time.AfterFunc(time.Duration(min(max(need, 0), float64(look))), func() { t.expire(wait) })
}

// expire ends a wait: the timer fires if the clock has reached the instant. Otherwise it waits again.
func (t *timer) expire(wait int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	switch {
	case t.alarm == nil || t.waits != wait:
		return // stopped or reset meanwhile
	case now.Before(t.at):
		t.wait()
		return
	case t.every > 0:
		t.at = t.at.Add(now.Sub(t.at).Truncate(t.every) + t.every)
		t.wait()
	default:
		t.alarm = nil
	}
	if t.fire != nil {
		go t.fire()
		return
	}
	select {
	case t.channel <- now:
	default: // like those of package time, a ticker drops ticks for a slow receiver
	}
}

type ticker struct{ *timer }

func (t ticker) Stop() { t.timer.Stop() }

func (t ticker) Reset(d time.Duration) {
	t.mu.Lock()
	t.every = d
	t.mu.Unlock()
	t.timer.Reset(d)
}
