//go:build linux

package loadgen

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Report is the outcome of a load.
type Report struct {
	Requests int           // answered with a success
	InTime   int           // of them, before the end of the sending
	Length   time.Duration // of the sending
	P50, P99 time.Duration // of the successes, from the instant a request was due to its whole response
	Busy     float64       // CPU time of the generator, as a share of one core
	Used     time.Duration // CPU time of the servers, as Config.Used counts it
	Seconds  []Second      // by the second in which a request was due
}

// Second is the outcome of the requests that were due in one second.
type Second struct {
	Answered int           // with a success
	P50, P99 time.Duration // of the successes, from the instant a request was due
	Refused  int           // answered 429
	Refusal  time.Duration // 99 of 100 refusals arrived so soon after their requests had been sent
	Errors   int           // answered otherwise, or not at all
	Statuses map[int]int   // of answers that are neither a success nor 429
	GivenUp  int           // never sent, because no connection was free in time
	Repeated int           // sent again, because a connection ended without an answer

	latencies, refusals []time.Duration
}

// collector counts the outcomes of a run.
type collector struct {
	length  time.Duration
	inTime  int
	seconds []*Second
}

// second returns the second in which a request was due.
func (c *collector) second(due time.Duration) *Second {
	i := int(due / time.Second)
	for len(c.seconds) <= i {
		c.seconds = append(c.seconds, &Second{Statuses: map[int]int{}})
	}
	return c.seconds[i]
}

// answer counts the answer to a request.
func (c *collector) answer(r request, status int, now time.Duration) {
	s := c.second(r.due)
	switch status {
	case http.StatusOK, http.StatusNotModified:
		s.latencies = append(s.latencies, now-r.due)
		if now < c.length {
			c.inTime++
		}
	case http.StatusTooManyRequests:
		s.refusals = append(s.refusals, now-r.sent)
	default:
		s.Errors++
		s.Statuses[status]++
	}
}

func (c *collector) report(length time.Duration) Report {
	r := Report{Length: length, InTime: c.inTime}
	var all []time.Duration
	for _, s := range c.seconds {
		all = append(all, s.latencies...)
		s.Answered, s.Refused = len(s.latencies), len(s.refusals)
		s.P50, s.P99 = quantiles(s.latencies)
		_, s.Refusal = quantiles(s.refusals)
		r.Seconds = append(r.Seconds, *s)
	}
	r.Requests = len(all)
	r.P50, r.P99 = quantiles(all)
	return r
}

// quantiles sorts the latencies and returns their median and their 99th percentile, 0 without any.
func quantiles(latencies []time.Duration) (p50, p99 time.Duration) {
	n := len(latencies)
	if n == 0 {
		return 0, 0
	}
	slices.Sort(latencies)
	return latencies[n/2], latencies[n*99/100]
}

// measured adds the CPU times of the generator and of the servers during a run to its report.
func measured(servers func() (time.Duration, error), run func() (Report, error)) (Report, error) {
	if servers == nil {
		servers = func() (time.Duration, error) { return 0, nil }
	}
	before, err := servers()
	if err != nil {
		return Report{}, err
	}
	busy, began := ownTime(), time.Now()
	r, err := run()
	r.Busy = float64(ownTime()-busy) / float64(time.Since(began))
	after, usedErr := servers()
	r.Used = after - before
	return r, errors.Join(err, usedErr)
}

// ownTime returns the CPU time of this process.
func ownTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // fails for no valid argument
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
