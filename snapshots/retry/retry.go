// Package retry holds the one rule by which gridcast repeats a request that another program did not answer well. The
// loops are failsafe's.
//
// # Which faults
//
// A fault that may pass by itself: no answer or a part of one, and the statuses of [Temporary]. Everything else is an
// answer and ends the operation at once, so a wrong key, a missing bucket or an untrusted certificate is known without
// a wait. minio-go's own retries are off: it would repeat a conditional write whose answer is lost, and then take its own
// first write for another's.
//
// # How often
//
// Until the deadline of the operation, or as often as [Rule.Max] says. A read is repeated as it is. A conditional write
// is repeated too, because its condition decides; if an earlier request may have been applied, a refused
// condition is an unknown outcome (blob.ErrUnknown), and the caller reads back.
//
// # Which pause
//
// The pause doubles from First to Longest, less a random part of at most a half. An answer with Retry-After is not
// repeated before that time, and not at all if the time lies behind the deadline.
//
// Longer waits are schedules and not retries: those of jobs, sources and webhooks. They are kept, shown and ended by an
// operator, and use [After] for Retry-After and the pauses of a [Rule]. So do loops that are no repetition of one
// request: followers of an object, and edits of a document that another process has changed meanwhile.
package retry

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
)

// Rule has the figures of an operation.
type Rule struct {
	First, Longest time.Duration // pauses
	Max            int           // attempts of Do and RoundTripper after the first; 0: until the context ends
}

// Passing is a fault that may pass by itself.
type Passing struct { //nolint:errname // the rule's word
	Err   error
	After time.Duration // not again before; 0: the other side did not say
}

func (p *Passing) Error() string { return p.Err.Error() }

// Unwrap returns the fault.
func (p *Passing) Unwrap() error { return p.Err }

// Temporary reports whether a status of HTTP says that the same request may succeed later.
func Temporary(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, 499: // nginx' word for a client that left
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported, http.StatusInsufficientStorage, http.StatusNetworkAuthenticationRequired:
		return false
	}
	return status >= 500
}

// After reads the header Retry-After (RFC 9110, 10.2.3), seconds or a date, up to a longest wait. It is 0 without one.
func After(h http.Header, now time.Time, longest time.Duration) time.Duration {
	value := h.Get("Retry-After")
	seconds, err := strconv.ParseUint(value, 10, 64)
	if err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, uint64(longest/time.Second))) * time.Second
	}
	if date, err := http.ParseTime(value); err == nil {
		return min(max(0, date.Sub(now)), longest)
	}
	return 0
}

// Do repeats the attempt while it returns a [*Passing]. It returns the error of the last attempt, or the cause of ctx if
// ctx ended before the first.
func (r Rule) Do(ctx context.Context, attempt func(context.Context) error) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	var last error
	policy := retrypolicy.NewBuilder[any]().WithMaxRetries(r.most()).ReturnLastFailure().
		HandleIf(func(_ any, err error) bool {
			passing, ok := errors.AsType[*Passing](err)
			deadline, bounded := ctx.Deadline()
			return ok && (!bounded || time.Until(deadline) >= passing.After)
		}).
		WithDelayFunc(func(e failsafe.ExecutionAttempt[any]) time.Duration {
			pause := r.Pause(e.Attempts())
			if passing, ok := errors.AsType[*Passing](e.LastError()); ok {
				pause = max(pause, passing.After)
			}
			return pause
		}).Build()
	_ = failsafe.With(policy).WithContext(ctx).Run(func() error { // last is its error, also when ctx ends in a pause
		last = attempt(ctx)
		return last
	})
	return last
}

// RoundTripper repeats requests of HTTP without a body. final says which errors are answers. A fault with Retry-After
// goes to the caller, whose schedule waits longer than a request.
func (r Rule) RoundTripper(next http.RoundTripper, final func(error) bool) http.RoundTripper {
	//nolint:bodyclose // the round tripper closes the responses that it does not return
	return failsafehttp.NewRoundTripper(next, retrypolicy.NewBuilder[*http.Response]().WithMaxRetries(r.most()).ReturnLastFailure().
		HandleIf(func(response *http.Response, err error) bool {
			if err != nil {
				return !errors.Is(err, context.Canceled) && !final(err)
			}
			return Temporary(response.StatusCode) && response.StatusCode != http.StatusTooManyRequests && response.Header.Get("Retry-After") == ""
		}).
		WithDelayFunc(func(e failsafe.ExecutionAttempt[*http.Response]) time.Duration { return r.Pause(e.Attempts()) }).Build())
}

func (r Rule) most() int {
	if r.Max == 0 {
		return -1 // without end
	}
	return r.Max
}

// Full returns the pause after failures in a row, without its random part.
func (r Rule) Full(failures int) time.Duration {
	wait := r.First
	for n := 1; n < failures && wait < r.Longest; n++ {
		wait *= 2
	}
	return min(wait, r.Longest)
}

// Pause returns the pause after failures in a row.
func (r Rule) Pause(failures int) time.Duration {
	wait := r.Full(failures)
	// The clock is the seed, so that a simulated run repeats. No two processes read the same nanosecond.
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0)) //nolint:gosec // G404: jitter
	return wait - time.Duration(random.Int64N(int64(wait/2)+1))
}

// Wait pauses. It returns false if ctx ends first. It is for loops whose next attempt is not the same operation.
func (r Rule) Wait(ctx context.Context, failures int) bool { return Sleep(ctx, r.Pause(failures)) }

// Sleep waits. It returns false if ctx ends first.
func Sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
