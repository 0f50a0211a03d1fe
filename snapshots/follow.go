package snapshots

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"gridcast/snapshots/blob"
)

// FollowConfig says what Follow follows and whom it tells. Only Store and Deliver must be
// set.
type FollowConfig struct {
	Store   blob.Store
	Cache   blob.Store // the follower's own copy, used by nobody else; nil: none
	Workers int        // objects fetched at once; 0: 32

	// Deliver takes each good version, by ascending number. A version for which it returns an
	// error is refused: the one before it stays, here and in the cache, and the same version
	// is offered again after pauses that grow to a minute.
	Deliver func(*Version) error

	// Report hears how every look went, at least every ten seconds as long as Follow works:
	// who hears nothing for longer must not trust what it serves. May be nil.
	Report func(FollowReport)

	// Look has Follow look at the store without waiting for its next turn, as when somebody knows
	// that a version was published. Its buffer is one. May be nil.
	Look <-chan struct{}

	// CacheFailed hears when the copy could not be read or written. Following goes on.
	CacheFailed func(error)
}

// FollowState is what a follower knows about the store.
type FollowState string

// The states.
const (
	Following   FollowState = "following"   // the delivered version is the current one
	Waiting     FollowState = "waiting"     // nothing has been published yet
	Unreachable FollowState = "unreachable" // the store does not answer
	Refused     FollowState = "refused"     // what the store calls current is damaged, incomplete, lower, or was not taken by Deliver
	Failed      FollowState = "failed"      // a panic: a fault of this program, see PanicError
)

// FollowReport says how a look at the store went.
type FollowReport struct {
	State    FollowState
	Version  int64 // the version that the pointer named; 0: not learned
	Err      error // nil when following; for operators, it may say where the store is
	Repeated bool  // the report before it said the same
}

// Public says in a few words what is wrong, for anybody: never where the store is. It is empty
// when nothing is.
func (r FollowReport) Public() string {
	what := "the current version"
	if r.Version > 0 {
		what = fmt.Sprintf("version %d", r.Version)
	}
	switch {
	case r.Err == nil:
		return ""
	case errors.Is(r.Err, ErrNone):
		return "nothing is published"
	case errors.Is(r.Err, ErrLower):
		return what + " is lower than the version served"
	case errors.Is(r.Err, ErrDamaged):
		return what + " is damaged"
	case errors.Is(r.Err, blob.ErrNotFound):
		return what + " is incomplete"
	case errors.Is(r.Err, ErrNotTaken):
		return what + " cannot be served by this release"
	case r.State == Failed:
		return "looking for versions fails by a fault of the program"
	}
	return "the storage does not answer"
}

var (
	// ErrLower says that the pointer names a lower version than the one delivered before.
	ErrLower = errors.New("lower than the version served")
	// ErrNotTaken says that Deliver refused the version.
	ErrNotTaken = errors.New("not taken")
)

// PanicError is a panic while following. It has not ended the program: the last good version
// stays, and the look is repeated.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("BUG: panic while following: %v", e.Value) }

// guard turns a panic of do into a *PanicError.
func guard(do func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	return do()
}

const (
	// pointerTime bounds the read of the pointer. A store takes longer before it gives up; a
	// follower that has just started from its copy should soon say that nobody answers.
	pointerTime = 3 * time.Second
	// watchTime bounds the wait for a change. After it the pointer is read whatever the store
	// reports, for a tag that stayed the same proves little: what was read with it may have
	// been damaged on its way.
	watchTime = 5 * time.Second

	// stallTime is how long the loading of a version goes on when nothing arrives.
	stallTime = 5 * time.Second

	// The pause after a failed look doubles from the first to the longest. Together with the
	// time that a look takes it is less than ten seconds.
	firstPause   = 100 * time.Millisecond
	longestPause = 4 * time.Second

	// The same for versions that Deliver does not take.
	firstOffer   = time.Second
	longestOffer = time.Minute
)

// Follow delivers the current version, and each later one, until ctx ends; it returns the
// cause. A version is delivered when all of it is in memory and every hash is right. One that
// is damaged, incomplete or lower than the last is refused and tried again, while the last
// good one stays. Nothing that the store holds or does ends Follow, nor does a panic.
//
// With a cache, Follow starts with the version kept there, whether the store answers or not,
// and keeps a copy of every version that was taken. Deliver and Report are called from
// Follow's own goroutine, CacheFailed also from another.
//
// It does not stand on [blob.Follow], which follows one object that says all by itself. The pointer
// is a few bytes that name thousands of objects: it is read again whatever its tag, because those
// can be damaged while it stays; a version that was loaded and not taken is kept and offered again
// while the next one is waited for; and each step has its own bound in time, so that a report comes
// every ten seconds however long a version takes to arrive.
func Follow(ctx context.Context, config FollowConfig) error {
	f := &follower{FollowConfig: config}
	if f.Cache != nil {
		f.cache = newCache(f.Cache, f.Store.String(), workers(f.Workers))
		if err := guard(func() error { f.startFromCache(ctx); return nil }); err != nil {
			f.cacheFailed(err)
		}
		keeping, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer stop() // before the wait, however Follow ends
		wg.Go(func() { f.cache.run(keeping, f.cacheFailed) })
	}
	for failures := 0; ctx.Err() == nil; {
		err := guard(func() error { return f.look(ctx) })
		if err == nil {
			err = guard(func() error { return f.watch(ctx) })
		}
		if err == nil {
			failures = 0
			continue
		}
		if ctx.Err() != nil {
			break
		}
		f.report(FollowReport{State: stateOf(err), Version: f.named, Err: err})
		f.pause(ctx, failures, err)
		failures++
	}
	return context.Cause(ctx)
}

// follower belongs to the goroutine that runs Follow.
type follower struct {
	FollowConfig

	cache   *cache
	current *Version     // the last one that was taken; nil: none yet
	seen    blob.Tag     // of the pointer, at the last look
	told    *blob.Object // the pointer as the watch has just read it; nil: it is to be read
	asked   bool         // since the last look somebody has said that there is a version
	named   int64        // version in the pointer, at the last look
	fresh   bool         // a version was taken since the last watch
	idle    int          // changes in a row that were none
	last    *FollowReport

	// The version that Deliver did not take, why, and when it is offered again.
	refused *Version
	why     error
	again   time.Time
	wait    time.Duration
}

// look reads the pointer, unless the watch has, and delivers the version it names, if it is another than before.
func (f *follower) look(ctx context.Context) error {
	f.named = 0
	pointer, tag, manifest, err := f.find(ctx)
	f.seen, f.named = tag, pointer.Version
	if errors.Is(err, ErrNone) && f.current == nil {
		f.report(FollowReport{State: Waiting, Err: err})
		return nil
	}
	if err == nil {
		err = f.mayServe(pointer)
	}
	if err != nil {
		return err
	}
	if f.current == nil || !f.current.Pointer.equal(pointer) {
		if err := f.take(ctx, pointer, manifest); err != nil {
			return err
		}
	}
	f.refused = nil
	f.report(FollowReport{State: Following, Version: pointer.Version})
	return nil
}

// find reads the pointer and, if somebody has said that there is a version, beside it the manifest of the next
// one. Whether that is the current version is for the pointer to say, and its hash for what was read: nil if
// nothing was.
func (f *follower) find(ctx context.Context) (pointer Pointer, tag blob.Tag, manifest []byte, err error) {
	reading, cancel := context.WithTimeout(ctx, pointerTime)
	defer cancel()
	var guessing sync.WaitGroup
	if f.asked && f.current != nil {
		next := f.current.Pointer.Version + 1
		guessing.Go(func() {
			_ = guard(func() error { // what is wrong with it shows when it is wanted
				o, err := f.Store.Get(reading, ManifestKey(next), maxManifest)
				manifest = o.Data
				return err
			})
		})
	}
	f.asked = false
	pointer, tag, err = f.loadPointer(ctx)
	if err != nil || f.current != nil && pointer.Version != f.current.Pointer.Version+1 {
		cancel() // nobody wants it
	}
	guessing.Wait()
	return pointer, tag, manifest, err
}

func (f *follower) loadPointer(ctx context.Context) (Pointer, blob.Tag, error) {
	if o := f.told; o != nil {
		f.told = nil // what is wrong with it may be so only with this reading
		pointer, err := parsePointer(o.Data)
		return pointer, o.Tag, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, pointerTime, fmt.Errorf("no answer within %v", pointerTime))
	defer cancel()
	return LoadPointer(ctx, f.Store)
}

// mayServe refuses a pointer that goes back, that gives a number another content, or whose
// number is so far ahead that no builder can have reached it.
func (f *follower) mayServe(pointer Pointer) error {
	if f.current == nil {
		return nil
	}
	served := f.current.Pointer
	switch {
	case pointer.Version < served.Version:
		return fmt.Errorf("version %d: %w (%d)", pointer.Version, ErrLower, served.Version)
	case pointer.Version-served.Version > MaxGap:
		return fmt.Errorf("version %d: %w: more than %d above the version served (%d)", pointer.Version, ErrDamaged, MaxGap, served.Version)
	case pointer.Version == served.Version && pointer.Manifest != served.Manifest:
		return fmt.Errorf("version %d: %w: manifest is another one than before", pointer.Version, ErrDamaged)
	}
	return nil
}

// take loads the version that pointer names and delivers it. manifest may be what was read of it already.
func (f *follower) take(ctx context.Context, pointer Pointer, manifest []byte) error {
	known := f.current
	if f.refused != nil && f.refused.Pointer.Manifest == pointer.Manifest {
		if time.Now().Before(f.again) {
			return f.why
		}
		known = f.refused // it is in memory already
	}
	// A request that hangs must not keep the follower from asking again.
	loading, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(stallTime, func() { cancel(fmt.Errorf("nothing arrived for %v", stallTime)) })
	defer stalled.Stop()
	v, err := loader{workers: f.Workers, previous: known, manifest: manifest, arrived: func() { stalled.Reset(stallTime) }}.load(loading, pointer, f.Store)
	if err != nil {
		return err
	}
	if err := guard(func() error { return f.Deliver(v) }); err != nil {
		if f.refused == nil || f.refused.Pointer.Manifest != pointer.Manifest {
			f.wait = firstOffer / 2
		}
		f.wait = min(2*f.wait, longestOffer)
		f.refused, f.why, f.again = v, fmt.Errorf("version %d %w: %w", pointer.Version, ErrNotTaken, err), time.Now().Add(f.wait)
		return f.why
	}
	f.current, f.fresh = v, true
	if f.cache != nil {
		f.cache.keep(v)
	}
	return nil
}

// watch returns nil when it is time for another look.
func (f *follower) watch(ctx context.Context) error {
	watching, cancel := context.WithTimeout(ctx, watchTime)
	began, asked := time.Now(), false
	var listening sync.WaitGroup // until the end: whoever asked during it is answered by the next look
	listening.Go(func() {
		select {
		case <-f.Look:
			asked = true
			cancel()
		case <-watching.Done():
		}
	})
	o, err := f.Store.Watch(watching, PointerKey, f.seen, blob.MaxDocument)
	ended := watching.Err() != nil
	cancel()
	listening.Wait()
	switch {
	case asked: // it may have been for a later change than the one that was seen
		f.asked = true
	case err == nil:
		f.told = &o
	case ended:
		return nil //nolint:nilerr // it is the end of the wait that the error tells of
	case !errors.Is(err, blob.ErrNotFound) && !errors.Is(err, blob.ErrTooLarge):
		return fmt.Errorf("watch pointer: %w", err)
	}
	// A store that tells of changes where none are must not keep this loop busy.
	if f.fresh || time.Since(began) >= firstPause {
		f.idle = 0
	} else if f.idle++; f.idle > maxIdle {
		sleep(ctx, firstPause)
	}
	f.fresh = false
	return nil
}

// maxIdle is how many changes in a row, told at once, may turn out to be none.
const maxIdle = 3

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// startFromCache delivers what the cache holds: the newest version that is whole and taken.
func (f *follower) startFromCache(ctx context.Context) {
	for v, err := range f.cache.versions(ctx) {
		if err == nil {
			if err = guard(func() error { return f.Deliver(v) }); err == nil {
				f.current = v
				f.cache.keep(v) // repairs what is damaged in the cache
				return
			}
		}
		f.cacheFailed(err)
	}
}

// report passes on how a look went.
func (f *follower) report(r FollowReport) {
	r.Repeated = f.last != nil && f.last.State == r.State && f.last.Version == r.Version && errorText(f.last.Err) == errorText(r.Err)
	f.last = &r
	if f.Report != nil {
		f.Report(r)
	}
}

func (f *follower) cacheFailed(err error) {
	if f.CacheFailed != nil {
		f.CacheFailed(err)
	}
}

// pause waits before the next look: longer with every failure, and never in step with other
// edges. A refused version is watched meanwhile, because the next one may be good.
func (f *follower) pause(ctx context.Context, failures int, err error) {
	long := min(firstPause<<min(failures, 10), longestPause)
	ctx, cancel := context.WithTimeout(ctx, long/2+rand.N(long/2)) //nolint:gosec // G404: jitter
	defer cancel()
	if stateOf(err) == Refused {
		began := time.Now()
		err := guard(func() error { _, err := f.Store.Watch(ctx, PointerKey, f.seen, blob.MaxDocument); return err })
		if err == nil && time.Since(began) >= firstPause {
			return
		}
	}
	<-ctx.Done()
}

func stateOf(err error) FollowState {
	var fault *PanicError
	if errors.As(err, &fault) {
		return Failed
	}
	for _, refused := range []error{ErrDamaged, ErrLower, ErrNone, ErrNotTaken, blob.ErrNotFound} {
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
