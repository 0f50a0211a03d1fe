package blob

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"
)

// FollowConfig says which object Follow follows and whom it tells.
type FollowConfig struct {
	Store Store
	Key   string
	Limit int64 // the most that the object may measure, in bytes

	// Take is handed what the object holds whenever that may be new. An error refuses it: then
	// the object is read again, because a reading can be damaged while the object is not, and
	// what is refused today may be accepted tomorrow.
	Take func(ctx context.Context, o Object) error

	// Looked hears how each look went: nil if what the object holds has been taken, ErrNotFound
	// if there is none, else why the store did not answer, why Take refused, or a PanicError.
	// Without an outage it is called at least every [LookEvery].
	Looked func(err error)
}

// LookEvery is the longest that Follow waits for a change before it says that there was none.
const LookEvery = 10 * time.Second

// The pause after a failed look doubles from the first to the longest.
const (
	firstFollowPause   = 100 * time.Millisecond
	longestFollowPause = 5 * time.Second
)

// PanicError is a panic during a look, of the store or of Take. Following goes on.
type PanicError struct {
	Value any
	Stack []byte
}

func (p *PanicError) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Follow hands the object and each change of it to Take until ctx ends; it returns the cause.
// Only the tag of what was taken is remembered: it may be the store's own, and says nothing of
// the bytes that arrived. Take and Looked are called from Follow's goroutine. It is for a document
// that is whole by itself; versions, which are a pointer and what it names, have snapshots.Follow.
func Follow(ctx context.Context, config FollowConfig) error {
	f := follower{FollowConfig: config}
	for failures := 0; ; {
		err := f.look(ctx, failures)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		f.Looked(err)
		switch {
		case err == nil:
			failures = 0
			continue
		case errors.Is(err, ErrNotFound):
			failures = 0 // Watch waits until there is something
		default:
			failures++
		}
		pause(ctx, failures, firstFollowPause, longestFollowPause)
	}
}

// follower belongs to the goroutine that runs Follow.
type follower struct {
	FollowConfig
	begun bool
	taken Tag // of the object that was taken last, empty: none
}

// look reads the object once it differs from what was taken, and hands it on.
func (f *follower) look(ctx context.Context, failures int) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	var o Object
	if !f.begun || failures > 0 {
		// Watch is silent while nothing changes, which looks like an outage that goes on.
		o, err = f.Store.Get(ctx, f.Key, f.Limit)
	} else {
		waiting, cancel := context.WithTimeoutCause(ctx, LookEvery, errUnchanged)
		defer cancel()
		o, err = f.Store.Watch(waiting, f.Key, f.taken, f.Limit)
	}
	f.begun = true
	switch {
	case errors.Is(err, errUnchanged) && f.taken == "":
		return fmt.Errorf("follow %s: %w", f.Key, ErrNotFound)
	case errors.Is(err, errUnchanged):
		return nil
	case errors.Is(err, ErrNotFound):
		f.taken = ""
		return err
	case err != nil:
		return err
	case o.Tag == f.taken:
		return nil
	}
	if err := f.Take(ctx, o); err != nil {
		return err
	}
	f.taken = o.Tag
	return nil
}

// errUnchanged is the cause of the end of a wait in which nothing happened.
var errUnchanged = errors.New("no change")

// pause waits before another attempt. The wait doubles with every failure, from first to longest,
// and is random within its upper half, so that processes do not meet again.
func pause(ctx context.Context, failures int, first, longest time.Duration) {
	long := min(first<<min(failures, 6), longest)
	select {
	case <-time.After(long/2 + rand.N(long/2)): //nolint:gosec // G404: jitter
	case <-ctx.Done():
	}
}
