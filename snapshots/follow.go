package snapshots

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"gridcast/snapshots/blob"
	"gridcast/snapshots/notes"
	"gridcast/snapshots/retry"
)

// FollowConfig configures Follow. Only Store and Deliver are required.
type FollowConfig struct {
	Store blob.Store
	Cache blob.Store // the follower's own copy, for no other process; nil: none

	// Deliver is called with each good version, by ascending number of the same keys. If it returns an error, the
	// earlier version stays, here and in the cache. Follow offers the refused version again after
	// pauses that grow to a minute.
	Deliver func(*Version) error

	// Report is called after every poll of the store, and at least every ten seconds while Follow
	// works. A caller without a report for longer must not trust the version that it serves. It may
	// be nil.
	Report func(FollowReport)

	// Wake makes Follow poll the store at once, for example after a publish. It has a buffer of one.
	// It may be nil.
	Wake <-chan struct{}

	// Trust are the keys of publishers. Follow then delivers only versions that one of them has signed, and
	// none with a lower number than the Ratchet has. It raises the ratchet before it delivers. The cache is
	// exempt from the ratchet, because no publisher writes it. Empty: any version will do.
	Trust   notes.Trust
	Ratchet *notes.Ratchet // required with Trust

	// Fresh is called with each verified fresh.note. Its Until is zero if it does not say until when the delivered
	// version is current. Fresh may be nil.
	Fresh func(Fresh)

	// Pin is the only version that Follow delivers; pointer and ratchet then decide nothing. 0: the current one.
	Pin int64

	// Lean says for a path whether Follow keeps a large body as gzip and brotli alone. Nil: it keeps every body in all forms.
	Lean func(m *Manifest, path string) bool

	// Cached is called once Follow has delivered the cached version, or has found none to deliver. It may be nil.
	Cached func()

	// CacheFailed is called when the copy cannot be read or written. Following goes on.
	CacheFailed func(error)
}

// FollowState describes the store as a follower sees it.
type FollowState string

// The states.
const (
	Following   FollowState = "following"   // the delivered version is the current one
	Waiting     FollowState = "waiting"     // nothing has been published yet
	Unreachable FollowState = "unreachable" // the store does not answer
	Refused     FollowState = "refused"     // the current version is damaged, incomplete, lower, or refused by Deliver
	Failed      FollowState = "failed"      // a panic: a fault of this program, see blob.PanicError
)

// FollowReport is the outcome of a poll of the store.
type FollowReport struct {
	State    FollowState
	Version  int64 // the version that the pointer named; 0: not learned
	Err      error // nil when following; for operators, it may say where the store is
	Repeated bool  // it equals the report before it
}

// Public describes the problem for the public, without the location of the store. It is empty if there
// is no problem.
func (r FollowReport) Public() string {
	version := "the current version"
	if r.Version > 0 {
		version = fmt.Sprintf("version %d", r.Version)
	}
	switch {
	case r.Err == nil:
		return ""
	case errors.Is(r.Err, ErrNone):
		return "nothing is published"
	}
	for _, refusal := range refusals {
		if errors.Is(r.Err, refusal.err) {
			return version + refusal.public
		}
	}
	if stateOf(r.Err) == Failed {
		return "looking for versions fails by a fault of the program"
	}
	return "the storage does not answer"
}

// refusals are the errors of a version that a follower refuses, and their sentences for the public.
var refusals = []struct {
	err    error
	public string
}{
	{ErrLower, " is lower than the version served"},
	{notes.ErrLower, " is lower than the highest version that its key has signed"},
	{ErrRatchet, " is not served, because " + ErrRatchet.Error()},
	{ErrUnsigned, " is not signed by a trusted key"},
	{ErrDamaged, " is damaged"},
	{ErrBuild, " was made by another release"},
	{blob.ErrNotFound, " is incomplete"},
	{ErrNotAccepted, " cannot be served by this release"},
}

var (
	// ErrLower means that the pointer names a lower version than the last delivered one.
	ErrLower = errors.New("lower than the version served")
	// ErrRatchet means that the number of the version could not be written to the ratchet.
	ErrRatchet = errors.New("its number cannot be kept on disk, so an older version could follow it")
	// ErrNotAccepted means that Deliver refused the version.
	ErrNotAccepted = errors.New("not accepted")
)

const (
	// pointerTime limits the read of the pointer. It is shorter than the deadline of a store, so that
	// a follower which has just started from its copy soon reports that the store does not answer.
	pointerTime = 3 * time.Second
	// watchTime limits the wait for a change. Follow then reads the pointer even if its tag has not
	// changed, because an earlier reading under the same tag may have been damaged on its way.
	watchTime = 5 * time.Second

	// stallTime ends the loading of a version when no data has arrived for so long.
	stallTime = 5 * time.Second

	// The pause after a failed poll doubles from the first to the longest. A poll and the pause after
	// it take less than ten seconds.
	firstPause   = 100 * time.Millisecond
	longestPause = 4 * time.Second
)

// Follow delivers the current version, and each later one, until ctx ends; it returns the
// cause. It delivers a version when all of it is in memory and every hash is right. It refuses a
// version that is damaged, incomplete or lower than the last one, and tries again; the last good
// version stays. Neither a fault of the store nor a panic ends Follow.
//
// With a cache, Follow starts with the cached version even if the store does not answer, and caches
// every delivered version. It calls Deliver and Report from its own goroutine, and CacheFailed from
// another one too.
//
// Follow does not use [blob.Follow], which follows a single object. The pointer names thousands of
// objects, which can be damaged while its tag stays, so Follow reads it again regardless of the tag.
// It keeps a refused version in memory and offers it again while it waits for the next. Each step has
// its own time limit, so that a report comes every ten seconds even while a large version arrives.
func Follow(ctx context.Context, config FollowConfig) error {
	f := &follower{FollowConfig: config}
	if f.Cache != nil {
		f.cache = newCache(f.Cache, f.Store.String())
		if err := blob.Guard(func() error { f.startFromCache(ctx); return nil }); err != nil {
			f.cacheFailed(err)
		}
		keeping, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer stop() // before the wait, however Follow ends
		wg.Go(func() { f.cache.run(keeping, f.cacheFailed) })
	}
	if f.Cached != nil {
		f.Cached()
	}
	for failures := 0; ctx.Err() == nil; {
		err := blob.Guard(func() error { return f.poll(ctx) })
		if err == nil {
			err = blob.Guard(func() error { return f.watch(ctx) })
		}
		if err == nil {
			failures = 0
			continue
		}
		if ctx.Err() != nil {
			break
		}
		f.report(FollowReport{State: stateOf(err), Version: f.polledVersion, Err: err})
		failures++
		f.pause(ctx, failures, err)
	}
	return context.Cause(ctx)
}

// follower belongs to the goroutine that runs Follow.
type follower struct {
	FollowConfig

	cache    *cache
	current  *Version // the last delivered version; nil: none yet
	unproven bool     // current is from the cache, and may be lower than the ratchet

	polledTag     blob.Tag     // of the pointer, at the last poll
	polledVersion int64        // in the pointer, at the last poll; 0: not learned
	watched       *blob.Object // the pointer that watch has read and poll has not used yet
	woken         bool         // Wake fired since the last poll
	delivered     bool         // a version was delivered since the last watch
	falseAlarms   int          // changes in a row that the store reported and that were none
	lastReport    *FollowReport

	askedFresh time.Time // when fresh.note was read
	freshFor   int64     // the version delivered at that time

	refused      *Version  // by Deliver; nil: none
	refusal      error     // of Deliver
	offerAgainAt time.Time // when refused is offered again
	refusals     int       // of refused, in a row
}

// poll reads the pointer, unless watch has read it, and delivers the version that it names, unless that is
// the current one.
func (f *follower) poll(ctx context.Context) error {
	f.polledVersion = 0
	pointer, tag, manifest, err := f.find(ctx)
	if err == nil && f.Pin > 0 {
		pointer, manifest, err = f.pinned(ctx)
	}
	f.polledTag, f.polledVersion = tag, pointer.Version
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
		if err := f.load(ctx, pointer, manifest); err != nil {
			return err
		}
	} else if f.unproven {
		if _, _, err := f.readSigned(ctx, pointer); err != nil {
			return err
		}
	}
	f.unproven = false
	f.freshen(ctx)
	f.refused = nil
	f.report(FollowReport{State: Following, Version: pointer.Version})
	return nil
}

// find reads the pointer. If Wake fired, it reads at the same time the manifest that the next version would
// have, and returns it; nil if it read none. The manifest may not be current: the pointer and its hash tell.
func (f *follower) find(ctx context.Context) (pointer Pointer, tag blob.Tag, manifest []byte, err error) {
	reading, cancel := context.WithTimeout(ctx, pointerTime)
	defer cancel()
	var guessing sync.WaitGroup
	if f.woken && f.current != nil {
		next := f.current.Pointer.Version + 1
		guessing.Go(func() {
			_ = blob.Guard(func() error { // load reports an error if the manifest is needed
				o, err := f.Store.Get(reading, ManifestKey(next), maxManifest)
				manifest = o.Data
				return err
			})
		})
	}
	f.woken = false
	pointer, tag, err = f.loadPointer(ctx)
	if err != nil || f.current != nil && pointer.Version != f.current.Pointer.Version+1 {
		cancel() // the manifest is not needed
	}
	guessing.Wait()
	return pointer, tag, manifest, err
}

func (f *follower) loadPointer(ctx context.Context) (Pointer, blob.Tag, error) {
	if o := f.watched; o != nil {
		f.watched = nil // the next poll reads it again, because this reading may be damaged
		pointer, err := parsePointer(o.Data)
		return pointer, o.Tag, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, pointerTime, fmt.Errorf("no answer within %v", pointerTime))
	defer cancel()
	return LoadPointer(ctx, f.Store)
}

// pinned returns a pointer to the pinned version, and its manifest unless that version was delivered.
func (f *follower) pinned(ctx context.Context) (Pointer, []byte, error) {
	if f.current != nil {
		return f.current.Pointer, nil, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, stallTime, fmt.Errorf("no answer within %v", stallTime))
	defer cancel()
	o, err := f.Store.Get(ctx, ManifestKey(f.Pin), maxManifest)
	if err != nil {
		return Pointer{Version: f.Pin}, nil, fmt.Errorf("read the pinned version %d: %w", f.Pin, err)
	}
	return Pointer{Version: f.Pin, Manifest: Digest(o.Data)}, o.Data, nil
}

// mayServe refuses a pointer with a lower number, with other content under the same number, or with a
// number so far ahead that no builder can have reached it. With trusted keys, the ratchet decides instead.
func (f *follower) mayServe(pointer Pointer) error {
	if f.current == nil || !f.Trust.Empty() {
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

// load loads the version that pointer names and delivers it. manifest is its manifest if find has read it.
func (f *follower) load(ctx context.Context, pointer Pointer, manifest []byte) error {
	previous := f.current
	if f.refused != nil && f.refused.Pointer.Manifest == pointer.Manifest {
		if time.Now().Before(f.offerAgainAt) {
			return f.refusal
		}
		previous = f.refused // all of it is in memory
	}
	var note []byte
	var keys []string
	if !f.Trust.Empty() { // before the manifest, because an unsigned one may name any amount of data
		var err error
		if note, keys, err = f.readSigned(ctx, pointer); err != nil {
			return err
		}
		pointer.Signed = true
	}
	// A request that hangs must not keep the follower from polling again.
	loading, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(stallTime, func() { cancel(fmt.Errorf("nothing arrived for %v", stallTime)) })
	defer stalled.Stop()
	v, err := loader{lean: f.Lean, previous: previous, manifest: manifest, note: note, arrived: func() { stalled.Reset(stallTime) }}.load(loading, pointer, f.Store)
	if err != nil {
		return err
	}
	if !f.Trust.Empty() {
		if _, err := OpenNote(f.Trust, note, pointer, v.Manifest.Ledger); err != nil {
			return err
		}
		if f.Pin == 0 {
			// If we crash after this, the follower starts with the version in its cache, although that is lower.
			if err := unkept(pointer, f.Ratchet.Raise(ctx, keys, mark(pointer))); err != nil {
				return err
			}
		}
	}
	if err := blob.Guard(func() error { return f.Deliver(v) }); err != nil {
		if f.refused == nil || f.refused.Pointer.Manifest != pointer.Manifest {
			f.refusals = 0
		}
		f.refusals++
		again := retry.Rule{First: time.Second, Longest: time.Minute}.Full(f.refusals)
		f.refused, f.offerAgainAt = v, time.Now().Add(again)
		f.refusal = fmt.Errorf("version %d %w: %w", pointer.Version, ErrNotAccepted, err)
		return f.refusal
	}
	f.current, f.delivered = v, true
	if f.cache != nil {
		f.cache.keep(v)
	}
	return nil
}

// watch returns nil when it is time for another poll.
func (f *follower) watch(ctx context.Context) error {
	watching, cancel := context.WithTimeout(ctx, watchTime)
	began, woken := time.Now(), false
	var listening sync.WaitGroup // until the end, so that no signal of Wake is lost
	listening.Go(func() {
		select {
		case <-f.Wake:
			woken = true
			cancel()
		case <-watching.Done():
		}
	})
	o, err := f.Store.Watch(watching, PointerKey, f.polledTag, blob.MaxDocument)
	ended := watching.Err() != nil
	cancel()
	listening.Wait()
	switch {
	case woken: // perhaps by a later change than the one that Watch has returned
		f.woken = true
	case err == nil:
		f.watched = &o
	case ended:
		return nil //nolint:nilerr // the error says that the wait has ended
	case !errors.Is(err, blob.ErrNotFound) && !errors.Is(err, blob.ErrTooLarge):
		return fmt.Errorf("watch pointer: %w", err)
	}
	// A store that reports changes without a change must not keep this loop busy.
	if f.delivered || time.Since(began) >= firstPause {
		f.falseAlarms = 0
	} else if f.falseAlarms++; f.falseAlarms > maxFalseAlarms {
		retry.Sleep(ctx, firstPause)
	}
	f.delivered = false
	return nil
}

// maxFalseAlarms is the number of false alarms in a row before watch pauses.
const maxFalseAlarms = 3

// startFromCache delivers the newest version of the cache that is whole and that Deliver accepts.
func (f *follower) startFromCache(ctx context.Context) {
	for v, err := range f.cache.versions(ctx, f.Lean) {
		if err == nil && f.Pin > 0 && v.Pointer.Version != f.Pin {
			continue
		}
		if err == nil && !f.Trust.Empty() {
			_, err = OpenNote(f.Trust, v.Note(), v.Pointer, v.Manifest.Ledger)
		}
		if err == nil {
			if err = blob.Guard(func() error { return f.Deliver(v) }); err == nil {
				f.current, f.unproven = v, !f.Trust.Empty()
				f.cache.keep(v) // repairs the cache
				return
			}
		}
		f.cacheFailed(err)
	}
}

func (f *follower) report(r FollowReport) {
	r.Repeated = f.lastReport != nil && f.lastReport.Version == r.Version && fmt.Sprint(f.lastReport.Err) == fmt.Sprint(r.Err)
	f.lastReport = &r
	if f.Report != nil {
		f.Report(r)
	}
}

func (f *follower) cacheFailed(err error) {
	if f.CacheFailed != nil {
		f.CacheFailed(err)
	}
}

// pause waits before the next poll: longer with every failure, and never in step with other
// edges. After a refusal it watches the pointer meanwhile, because the next version may be good.
func (f *follower) pause(ctx context.Context, failures int, err error) {
	ctx, cancel := context.WithTimeout(ctx, retry.Rule{First: firstPause, Longest: longestPause}.Pause(failures))
	defer cancel()
	if stateOf(err) == Refused {
		began := time.Now()
		err := blob.Guard(func() error { _, err := f.Store.Watch(ctx, PointerKey, f.polledTag, blob.MaxDocument); return err })
		if err == nil && time.Since(began) >= firstPause {
			return
		}
	}
	<-ctx.Done()
}

func stateOf(err error) FollowState {
	var fault *blob.PanicError
	if errors.As(err, &fault) {
		return Failed
	}
	for _, refusal := range refusals {
		if errors.Is(err, refusal.err) {
			return Refused
		}
	}
	if errors.Is(err, ErrNone) {
		return Refused
	}
	return Unreachable
}
