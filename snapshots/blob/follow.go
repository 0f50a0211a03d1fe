package blob

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"gridcast/snapshots/retry"
)

// FollowConfig names the object of Follow and its callbacks.
type FollowConfig struct {
	Store Store
	Key   string
	Limit int64 // the largest size of the object, in bytes

	// Take gets the content of the object whenever it may be new. An error refuses it, and Follow
	// reads the object again, because a read can be damaged while the object is not, and
	// because Take may accept a refused object later.
	Take func(ctx context.Context, o Object) error

	// Looked gets the outcome of each poll: nil if Take accepted the content, ErrNotFound
	// if there is no object, otherwise the store's error, the refusal of Take, or a PanicError.
	// Without an outage Follow calls it at least every [LookEvery].
	Looked func(err error)
}

// LookEvery is the longest wait of Follow for a change before it reports that there was none.
const LookEvery = 10 * time.Second

// PanicError is a panic of the store or of its caller while an object is followed. The program goes on with the last good
// content, and polls again.
type PanicError struct {
	Value any
	Stack []byte
}

func (p *PanicError) Error() string { return fmt.Sprintf("BUG: panic while following: %v", p.Value) }

// Guard turns a panic of do into a *PanicError.
func Guard(do func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	return do()
}

// Follow passes the object and each change of it to Take until ctx ends; it returns the cause.
// It remembers only the tag of the accepted object: the tag may be the store's own, and does not prove
// which bytes arrived. It calls Take and Looked from its own goroutine. Use it for a document
// that is whole by itself; versions, a pointer and the objects it names, have snapshots.Follow.
func Follow(ctx context.Context, config FollowConfig) error {
	f := follower{FollowConfig: config}
	backoff := retry.Rule{First: 100 * time.Millisecond, Longest: 5 * time.Second}
	var failures int
	for {
		err := Guard(func() error { return f.look(ctx, failures) })
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		f.Looked(err)
		switch {
		case err == nil:
			failures = 0
			continue
		case errors.Is(err, ErrNotFound):
			failures = 0 // Watch waits until there is an object
		default:
			failures++
		}
		backoff.Wait(ctx, failures)
	}
}

// follower belongs to the goroutine that runs Follow.
type follower struct {
	FollowConfig
	begun bool
	taken Tag // of the last accepted object; empty: none
}

// look reads the object if it differs from the accepted one, and passes it on.
func (f *follower) look(ctx context.Context, failures int) (err error) {
	var o Object
	if !f.begun || failures > 0 {
		// Watch is silent while nothing changes; to the caller that looks like a continuing outage.
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

// errUnchanged is the cause of the end of a wait without a change.
var errUnchanged = errors.New("no change")
