package snapshots

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"gridcast/snapshots/blob"
)

// FollowConfig says what Follow follows and whom it tells. Only Store and Deliver must be
// set.
type FollowConfig struct {
	Store   blob.Store
	Cache   blob.Store     // the follower's own copy, used by nobody else; nil: none
	Workers int            // objects fetched at once; 0: 16
	Deliver func(*Version) // takes each good version, by ascending number
	Report  func(Report)   // hears how every look went that was not like the one before

	// CacheFailed hears when the copy could not be read or written. Following goes on.
	CacheFailed func(error)
}

// State is what a follower knows about the store.
type State string

// The states.
const (
	Following   State = "following"   // the delivered version is the current one
	Waiting     State = "waiting"     // nothing has been published yet
	Unreachable State = "unreachable" // the store does not answer
	Refused     State = "refused"     // what the store calls current is damaged, incomplete or lower
)

// Report says how a look at the store went.
type Report struct {
	State   State
	Version int64 // the version that the pointer named; 0: not learned
	Err     error // nil when following
}

// ErrLower says that the pointer names a lower version than the one delivered before.
var ErrLower = errors.New("lower than the version served")

// Follow delivers the current version, and each later one, until ctx ends; it returns the
// cause. A version is delivered when all of it is in memory and every hash is right. One that
// is damaged, incomplete or lower than the last is refused and tried again, while the last
// good one stays.
//
// With a cache, Follow starts with the version kept there, whether the store answers or not,
// and keeps a copy of every version it delivers. Deliver and Report are called from Follow's
// own goroutine, CacheFailed from another.
func Follow(ctx context.Context, config FollowConfig) error {
	f := &follower{FollowConfig: config}
	if f.Cache != nil {
		keeper := newKeeper(f.Cache, f.Store.String(), workers(f.Workers))
		f.startFrom(ctx, keeper)
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { keeper.run(ctx, f.cacheFailed) })
	}
	for failures := 0; ctx.Err() == nil; {
		err := f.look(ctx)
		if err == nil {
			failures = 0
			_, err = f.Store.Watch(ctx, PointerKey, f.seen, blob.MaxDocument)
			if err == nil || errors.Is(err, blob.ErrNotFound) {
				continue
			}
			err = fmt.Errorf("watch pointer: %w", err)
		}
		if ctx.Err() != nil {
			break
		}
		f.report(Report{State: stateOf(err), Version: f.named, Err: err})
		f.pause(ctx, failures, err)
		failures++
	}
	return context.Cause(ctx)
}

// follower belongs to the goroutine that runs Follow.
type follower struct {
	FollowConfig

	keeper  *keeper
	current *Version // the last one delivered; nil: none yet
	seen    blob.Tag // of the pointer, at the last look
	named   int64    // version in the pointer, at the last look
	last    *Report
}

// look reads the pointer and delivers the version it names, if it is another than before.
func (f *follower) look(ctx context.Context) error {
	f.named = 0
	pointer, tag, err := f.loadPointer(ctx)
	f.seen, f.named = tag, pointer.Version
	if errors.Is(err, ErrNone) && f.current == nil {
		f.report(Report{State: Waiting, Err: err})
		return nil
	}
	if err != nil {
		return err
	}
	if err := f.mayServe(pointer); err != nil {
		return err
	}
	if f.current == nil || f.current.Pointer != pointer {
		v, err := load(ctx, f.Store, pointer, f.current, f.Workers)
		if err != nil {
			return err
		}
		f.deliver(v)
	}
	f.report(Report{State: Following, Version: pointer.Version})
	return nil
}

// pointerTime bounds the read of the pointer. A store takes longer before it gives up; a
// follower that has just started from its copy should soon say that nobody answers.
const pointerTime = 3 * time.Second

func (f *follower) loadPointer(ctx context.Context) (Pointer, blob.Tag, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, pointerTime, fmt.Errorf("no answer within %v", pointerTime))
	defer cancel()
	return LoadPointer(ctx, f.Store)
}

// mayServe refuses a pointer that goes back, or that gives a number another content.
func (f *follower) mayServe(pointer Pointer) error {
	if f.current == nil {
		return nil
	}
	served := f.current.Pointer
	switch {
	case pointer.Version < served.Version:
		return fmt.Errorf("version %d: %w (%d)", pointer.Version, ErrLower, served.Version)
	case pointer.Version == served.Version && pointer.Manifest != served.Manifest:
		return fmt.Errorf("version %d: %w: manifest is another one than before", pointer.Version, ErrDamaged)
	}
	return nil
}

func (f *follower) deliver(v *Version) {
	f.current = v
	f.Deliver(v)
	if f.keeper != nil {
		f.keeper.keep(v)
	}
}

// startFrom delivers what the cache holds.
func (f *follower) startFrom(ctx context.Context, k *keeper) {
	f.keeper = k
	v, err := k.open(ctx)
	switch {
	case err == nil:
		f.current = v
		f.Deliver(v)
	case !errors.Is(err, ErrNone):
		f.cacheFailed(err)
	}
}

// report passes on what differs from the last report.
func (f *follower) report(r Report) {
	same := f.last != nil && f.last.State == r.State && f.last.Version == r.Version && errorText(f.last.Err) == errorText(r.Err)
	f.last = &r
	if f.Report != nil && !same {
		f.Report(r)
	}
}

func (f *follower) cacheFailed(err error) {
	if f.CacheFailed != nil {
		f.CacheFailed(err)
	}
}

// The pause after a failed look doubles from the first to the longest.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// pause waits before the next look: longer with every failure, and never in step with other
// edges. A refused version is watched meanwhile, because the next one may be good.
func (f *follower) pause(ctx context.Context, failures int, err error) {
	long := min(firstPause<<min(failures, 10), longestPause)
	ctx, cancel := context.WithTimeout(ctx, long/2+rand.N(long/2)) //nolint:gosec // G404: jitter
	defer cancel()
	if stateOf(err) == Refused {
		if _, err := f.Store.Watch(ctx, PointerKey, f.seen, blob.MaxDocument); err == nil {
			return
		}
	}
	<-ctx.Done()
}

func stateOf(err error) State {
	for _, refused := range []error{ErrDamaged, ErrLower, ErrNone, blob.ErrNotFound} {
		if errors.Is(err, refused) {
			return Refused
		}
	}
	return Unreachable
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
