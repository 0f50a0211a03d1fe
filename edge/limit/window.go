package limit

import (
	"sync/atomic"
	"time"
)

// Window is a counter in memory: exact under any concurrency, without a lock.
type Window struct {
	offset int64
	// state holds the number of the current window in the upper 32 bits and its count in the
	// lower ones, so that both change in one step.
	state atomic.Uint64
}

var _ AsyncCounter = (*Window)(nil)

// NewWindow returns a counter whose windows begin offset seconds into the minute.
func NewWindow(offset int64) *Window { return &Window{offset: offset} }

// Take implements [Counter].
func (w *Window) Take(now time.Time, perMinute int) Decision {
	for {
		state := w.state.Load()
		number, count := w.at(state, now)
		if count >= perMinute {
			return w.decision(number, count, perMinute, false)
		}
		if w.state.CompareAndSwap(state, uint64(number)<<32|uint64(count+1)) {
			return w.decision(number, count+1, perMinute, true)
		}
	}
}

// TryTake implements [AsyncCounter]. It always decides.
func (w *Window) TryTake(now time.Time, perMinute int) (Decision, bool) {
	return w.Take(now, perMinute), true
}

// TakeAsync implements [AsyncCounter]. It decides at once.
func (w *Window) TakeAsync(now time.Time, perMinute int, then func(Decision)) {
	then(w.Take(now, perMinute))
}

// Peek returns what Take would find, without counting.
func (w *Window) Peek(now time.Time, perMinute int) Decision {
	number, count := w.at(w.state.Load(), now)
	return w.decision(number, count, perMinute, count < perMinute)
}

// Latest returns the end, in Unix seconds, and the count of the latest window in which a request
// was counted.
func (w *Window) Latest() (reset int64, count int) {
	state := w.state.Load()
	return (int64(state>>32)+1)*Period + w.offset, int(uint32(state))
}

// Raise makes the count of the window that ends at reset at least count, as when others have
// counted too.
func (w *Window) Raise(reset int64, count int) {
	number := (reset-w.offset)/Period - 1
	for {
		state := w.state.Load()
		last, known := int64(state>>32), int(uint32(state))
		if last == number && known >= count || last > number && last-number <= ahead {
			return
		}
		if w.state.CompareAndSwap(state, uint64(number)<<32|uint64(count)) {
			return
		}
	}
}

// ahead is by how many windows a stored one may be ahead of the one at now. A clock that is set
// back a little stays in the later window: going back would hand out the same minute twice. A
// window that is further ahead was begun while the clock was wrong, and counts for nothing:
// waiting for it would refuse the key for as long as the clock was ahead.
const ahead = 1

// at returns the number and the count of the window at now.
func (w *Window) at(state uint64, now time.Time) (number int64, count int) {
	number = (now.Unix() - w.offset) / Period
	if last := int64(state >> 32); last >= number && last-number <= ahead {
		return last, int(uint32(state))
	}
	return number, 0
}

func (w *Window) decision(number int64, count, perMinute int, allowed bool) Decision {
	return Decision{
		Allowed:   allowed,
		Limit:     perMinute,
		Remaining: max(0, perMinute-count),
		Reset:     (number+1)*Period + w.offset,
	}
}

// Memory is the Source of counters in this process. Edges that use it count each for
// themselves: n of them together allow n times the limit. Nothing is kept on disk, so that a
// process that is started again gives every key a fresh window.
type Memory struct{}

var _ Source = Memory{}

// String implements [Source].
func (Memory) String() string { return "each edge for itself, in memory" }

// Counter implements [Source].
func (Memory) Counter(_ string, offset int64) Counter { return NewWindow(offset) }
