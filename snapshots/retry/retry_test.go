package retry_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"gridcast/deploy/must"
	"gridcast/snapshots/retry"
)

var (
	errPassing = errors.New("passing")
	errFinal   = errors.New("final")
	rule       = retry.Rule{First: 100 * time.Millisecond, Longest: time.Second}
)

// TestDo counts the attempts, and measures the pauses in a time of its own.
func TestDo(t *testing.T) {
	passing := func(after time.Duration) error { return &retry.Passing{Err: errPassing, After: after} }
	for _, tt := range []struct {
		name     string
		rule     retry.Rule
		answers  []error // the last one repeats
		deadline time.Duration
		want     error
		attempts int
		low, top time.Duration
	}{
		{"success", rule, []error{nil}, time.Minute, nil, 1, 0, 0},
		{"a refusal", rule, []error{errFinal}, time.Minute, errFinal, 1, 0, 0},
		{"a fault, then success", rule, []error{passing(0), nil}, time.Minute, nil, 2, 50 * time.Millisecond, 100 * time.Millisecond},
		{"a fault, then a refusal", rule, []error{passing(0), errFinal}, time.Minute, errFinal, 2, 50 * time.Millisecond, 100 * time.Millisecond},
		{"pauses grow", rule, []error{passing(0), passing(0), passing(0), passing(0), passing(0), passing(0), nil}, time.Minute, nil, 7, 1750 * time.Millisecond, 3500 * time.Millisecond},
		{"until the deadline", rule, []error{passing(0)}, 5 * time.Second, errPassing, 0, 5 * time.Second, 5 * time.Second},
		{"one repetition", retry.Rule{First: time.Second, Longest: time.Second, Max: 1}, []error{passing(0)}, time.Minute, errPassing, 2, 500 * time.Millisecond, time.Second},
		{"as late as the server asks", rule, []error{passing(3 * time.Second), nil}, time.Minute, nil, 2, 3 * time.Second, 3 * time.Second},
		{"the server asks for too long", rule, []error{passing(time.Hour)}, time.Minute, errPassing, 1, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.deadline)
				defer cancel()
				began, attempts := time.Now(), 0
				err := tt.rule.Do(ctx, func(context.Context) error {
					attempts++
					return tt.answers[min(attempts, len(tt.answers))-1]
				})
				if took := time.Since(began); !errors.Is(err, tt.want) || tt.attempts > 0 && attempts != tt.attempts || took < tt.low || took > tt.top {
					t.Errorf("got %v after %d attempts in %v, want %v after %d in %v to %v", err, attempts, took, tt.want, tt.attempts, tt.low, tt.top)
				}
			})
		})
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errFinal)
	must.Fail(t, "after the end", rule.Do(ended, func(context.Context) error { t.Error("attempt after the end"); return nil }), errFinal)
}

func TestAfter(t *testing.T) {
	now := time.Date(2026, 3, 8, 4, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "3": 3 * time.Second, "-3": 0, "1.5": 0, "soon": 0, "99999": time.Hour, "99999999999999999999999": time.Hour,
		"Sun, 08 Mar 2026 04:00:30 GMT": 30 * time.Second, "Sun, 08 Mar 2026 03:00:00 GMT": 0, "Mon, 08 Mar 2027 03:00:00 GMT": time.Hour,
	} {
		must.Equal(t, fmt.Sprintf("%q", value), want, retry.After(http.Header{"Retry-After": {value}}, now, time.Hour))
	}
}

func TestTemporary(t *testing.T) {
	for status, want := range map[int]bool{
		200: false, 304: false, 400: false, 401: false, 403: false, 404: false, 408: true, 409: false, 412: false, 425: true, 428: false, 429: true, 499: true,
		500: true, 501: false, 502: true, 503: true, 504: true, 505: false, 507: false, 511: false, 520: true, 529: true,
	} {
		must.Equal(t, strconv.Itoa(status), want, retry.Temporary(status))
	}
}

func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := retry.Rule{First: 30 * time.Second, Longest: 5 * time.Minute}
		var waits []time.Duration
		for failures := range 7 {
			wait := b.Full(failures)
			waits = append(waits, wait)
			for range 100 {
				if got := b.Pause(failures); got < wait/2 || got > wait {
					t.Errorf("after %d failures: got a wait of %s, want one from %s to %s", failures, got, wait/2, wait)
				}
			}
		}
		s := time.Second
		want := []time.Duration{30 * s, 30 * s, 60 * s, 120 * s, 240 * s, 300 * s, 300 * s}
		must.Hold(t, slices.Equal(waits, want), "got the waits %v, want %v", waits, want)
		must.Equal(t, "after many failures", b.Longest, b.Full(1<<62))
		got := (retry.Rule{}).Pause(1)
		must.Hold(t, got == 0, "the zero value waits %s, want no wait", got)
		ctx, cancel := context.WithTimeout(t.Context(), 10*s)
		defer cancel()
		began := time.Now()
		if b.Wait(ctx, 1) || time.Since(began) != 10*s {
			t.Errorf("a cancelled pause of 30 seconds: got true or %s, want false after 10s", time.Since(began))
		}
		if !b.Wait(t.Context(), 1) || time.Since(began) < 25*s {
			t.Errorf("a pause of 30 seconds took %s", time.Since(began)-10*s)
		}
	})
}
