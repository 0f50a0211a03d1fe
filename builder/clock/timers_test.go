package clock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"gridcast/builder/clock"
)

// in runs a test in a bubble, with the timers of a clock that shows monaco and runs at 60.
func in(t *testing.T, test func(t *testing.T, c clock.Clock)) {
	synctest.Test(t, func(t *testing.T) { test(t, at(t, monaco, time.Now(), 60)) })
}

func wantRace(t *testing.T, c clock.Clock, since time.Duration) {
	t.Helper()
	if got, want := c.Now(), monaco.Add(since); !got.Equal(want) {
		t.Errorf("race time: got %s, want %s", got, want)
	}
}

func TestTimers(t *testing.T) {
	in(t, func(t *testing.T, c clock.Clock) {
		timers, began := c.Timers(), time.Now()
		if got := <-timers.After(time.Hour); !got.Equal(monaco.Add(time.Hour)) {
			t.Errorf("After: got %s, want an hour after %s", got, monaco)
		}
		if got, want := time.Since(began), time.Minute; got != want {
			t.Errorf("an hour of race time took %s, want %s", got, want)
		}
		timers.Sleep(30 * time.Minute)
		wantRace(t, c, 90*time.Minute)
		if got, want := timers.Until(monaco), -90*time.Minute; got != want || timers.Since(monaco) != -want {
			t.Errorf("Until and Since: got %s and %s, want %s", got, timers.Since(monaco), want)
		}
	})
}

func TestTimerStopAndReset(t *testing.T) {
	in(t, func(t *testing.T, c clock.Clock) {
		timer := c.Timers().NewTimer(time.Hour)
		if !timer.Stop() || timer.Stop() {
			t.Error("Stop: want true for the first only")
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		mustBeSilent(t, timer.Chan())

		if timer.Reset(time.Minute) {
			t.Error("Reset of a stopped timer: got true")
		}
		if !timer.Reset(2 * time.Minute) {
			t.Error("Reset of a running timer: got false")
		}
		before := c.Now()
		if got := (<-timer.Chan()).Sub(before); got != 2*time.Minute {
			t.Errorf("after a reset: rang after %s, want 2m", got)
		}

		timer.Reset(time.Minute)
		time.Sleep(time.Minute) // it has rung, and nobody has listened
		synctest.Wait()
		timer.Reset(time.Hour)
		mustBeSilent(t, timer.Chan())
		timer.Stop()
	})
}

func mustBeSilent(t *testing.T, c <-chan time.Time) {
	t.Helper()
	select {
	case got := <-c:
		t.Errorf("got %s from a timer that was stopped or set again", got)
	default:
	}
}

func TestTicker(t *testing.T) {
	in(t, func(t *testing.T, c clock.Clock) {
		ticker := c.Timers().NewTicker(10 * time.Minute)
		for i := range 3 {
			if got, want := <-ticker.Chan(), monaco.Add(time.Duration(i+1)*10*time.Minute); !got.Equal(want) {
				t.Errorf("tick %d: got %s, want %s", i+1, got, want)
			}
		}
		time.Sleep(45 * time.Second) // 45 minutes, in which four ticks fall
		synctest.Wait()
		if got, want := <-ticker.Chan(), monaco.Add(40*time.Minute); !got.Equal(want) {
			t.Errorf("the tick kept for a slow receiver: got %s, want %s", got, want)
		}
		if got, want := <-ticker.Chan(), monaco.Add(80*time.Minute); !got.Equal(want) {
			t.Errorf("the tick after it: got %s, want %s", got, want)
		}
		ticker.Reset(time.Hour)
		if got, want := <-ticker.Chan(), monaco.Add(140*time.Minute); !got.Equal(want) {
			t.Errorf("after a reset: got %s, want %s", got, want)
		}
		ticker.Stop()
		time.Sleep(time.Hour)
		synctest.Wait()
		mustBeSilent(t, ticker.Chan())
	})
}

func TestTickerWithoutInterval(t *testing.T) {
	in(t, func(t *testing.T, c clock.Clock) {
		defer func() {
			if recover() == nil {
				t.Error("a ticker without an interval was made")
			}
		}()
		c.Timers().NewTicker(0)
	})
}

func TestAfterFunc(t *testing.T) {
	in(t, func(t *testing.T, c clock.Clock) {
		rang := make(chan time.Time, 2)
		timer := c.Timers().AfterFunc(time.Hour, func() { rang <- c.Now() })
		if got := <-rang; !got.Equal(monaco.Add(time.Hour)) {
			t.Errorf("got %s, want an hour after %s", got, monaco)
		}
		timer.Reset(2 * time.Hour)
		if got := <-rang; !got.Equal(monaco.Add(3 * time.Hour)) {
			t.Errorf("after a reset: got %s, want three hours after %s", got, monaco)
		}
		timer.Reset(time.Hour)
		if !timer.Stop() {
			t.Error("Stop of a running timer: got false")
		}
		if timer.Chan() != nil {
			t.Error("a timer that calls a function has a channel")
		}
	})
}

func TestSystemTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		<-clock.System().Timers().After(time.Hour)
		if got := time.Since(began); got != time.Hour {
			t.Errorf("an hour of real time took %s", got)
		}
	})
}
