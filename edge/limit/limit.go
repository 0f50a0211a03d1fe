// Package limit counts requests in fixed windows of 60 seconds, for each key and for each
// address without one.
//
// A window begins at a whole second, at the key's own offset within the minute, so
// that clients do not all come back at the full minute. The counter refuses a request in a full window,
// and does not count it.
package limit

import (
	"fmt"
	"time"
)

// Period is the length of every window, in seconds.
const Period = 60

// Offset derives the second within the minute at which windows begin from a number that
// differs between keys.
func Offset(seed uint64) int64 { return int64(seed % Period) }

// Counter counts the requests of one key. It is safe for concurrent use.
type Counter interface {
	// Take counts one request at now, which is real time, unless perMinute are counted in
	// this window already. A counter that decides alone does not allocate.
	// Take may wait for another process, or for another request that waits.
	Take(now time.Time, perMinute int) Verdict
}

// Source makes counters: [Memory], or one that shares its counts with other edges.
type Source interface {
	// String describes the way of counting, for an operator.
	fmt.Stringer
	// Counter returns a new counter for the key with this id, whose windows begin offset
	// seconds into the minute.
	Counter(id string, offset int64) Counter
	// Fault describes the present fault, with which the source counts in another way; empty: none.
	Fault() string
}

// Verdict is the state of a window after a request.
type Verdict struct {
	Allowed   bool
	Limit     int
	Remaining int   // requests left, after this one
	Reset     int64 // end of the window in Unix seconds
}

// RetryAfter returns the whole seconds from now until the window ends, rounded up, at least 1.
func (d Verdict) RetryAfter(now time.Time) int {
	left := time.Unix(d.Reset, 0).Sub(now)
	return max(1, int((left+time.Second-1)/time.Second))
}
