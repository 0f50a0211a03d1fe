// Package limit counts requests in fixed windows of 60 seconds, for each key and for each
// address without one.
//
// A window begins at a whole second, at an offset within the minute that is the key's own, so
// that the clients of a service do not all come back at the full minute. A request that finds
// the window full is refused and counts no further.
package limit

import (
	"fmt"
	"time"
)

// Period is the length of every window, in seconds.
const Period = 60

// Offset derives the second within the minute at which windows begin from a number that is
// different for each key.
func Offset(seed uint64) int64 { return int64(seed % Period) }

// Counter counts the requests of one key. It is safe for concurrent use.
type Counter interface {
	// Take counts one request at now, which is real time, unless perMinute are counted in
	// this window already. Where it decides by itself it does not allocate.
	// It may wait for another process, or for another request that does.
	Take(now time.Time, perMinute int) Decision

	// TryTake is Take for who must not wait. Where that would take another process or a lock
	// that is held, it counts nothing and reports false: Take will do. It does not allocate.
	TryTake(now time.Time, perMinute int) (Decision, bool)

	// Ask is Take for who must not wait and goes on when there is a decision: then is called
	// with it, once, by this goroutine or by another one, which it must not keep.
	Ask(now time.Time, perMinute int, then func(Decision))
}

// Source makes counters: [Memory], or one that shares its counts with other edges.
type Source interface {
	// String says how requests are counted, for an operator.
	fmt.Stringer
	// Counter returns a new counter for the key with this id, whose windows begin offset
	// seconds into the minute.
	Counter(id string, offset int64) Counter
}

// Decision is the state of a window after a request.
type Decision struct {
	Allowed   bool
	Limit     int
	Remaining int   // requests left, after this one
	Reset     int64 // end of the window in Unix seconds
}

// RetryAfter returns the whole seconds from now until the window ends, rounded up, at least 1.
func (d Decision) RetryAfter(now time.Time) int {
	left := time.Unix(d.Reset, 0).Sub(now)
	return max(1, int((left+time.Second-1)/time.Second))
}
