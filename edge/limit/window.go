package limit

import (
	"sync/atomic"
	"time"
)

// Window is a counter in memory: exact under any concurrency, without a lock.
type Window struct {
	offset int64
	// state holds the number of the current window in the upper 32 bits and its count in the
	// lower ones, so that one step changes both.
	state atomic.Uint64
}

var _ Counter = (*Window)(nil)

// NewWindow returns a counter whose windows begin offset seconds into the minute.
func NewWindow(offset int64) *Window { return &Window{offset: offset} }

// Take implements [Counter].
func (w *Window) Take(now time.Time, perMinute int) Verdict {
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

// Peek returns the decision of Take without counting.
func (w *Window) Peek(now time.Time, perMinute int) Verdict {
	number, count := w.at(w.state.Load(), now)
	return w.decision(number, count, perMinute, count < perMinute)
}

// Latest returns the end, in Unix seconds, and the count of the latest window with a counted
// request.
func (w *Window) Latest() (reset int64, count int) {
	state := w.state.Load()
	return (int64(state>>32)+1)*Period + w.offset, int(uint32(state))
}

// Raise sets the count of the window that ends at reset to at least count, after other edges
// have counted too.
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

// ahead is the number of windows by which a stored window may be ahead of now. After a clock is set
// back a little, the counter stays in the later window, because going back would allow the same minute twice. A
// window further ahead began while the clock was wrong, and is ignored:
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

func (w *Window) decision(number int64, count, perMinute int, allowed bool) Verdict {
	return Verdict{
		Allowed:   allowed,
		Limit:     perMinute,
		Remaining: max(0, perMinute-count),
		Reset:     (number+1)*Period + w.offset,
	}
}

// Memory is the Source of counters in this process. Each edge with it counts for
// itself: n of them together allow n times the limit. It keeps nothing on disk, so a
// restarted process gives every key a fresh window.
type Memory struct{}

var _ Source = Memory{}

// String implements [Source].
func (Memory) String() string { return "each edge for itself, in memory" }

// Counter implements [Source].
func (Memory) Counter(_ string, offset int64) Counter { return NewWindow(offset) }

// Fault implements [Source].
func (Memory) Fault() string { return "" }
