package snapshots

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"gridcast/snapshots/blob"
)

var (
	// ErrHeld says that an operator has rolled back and holds the pointer; only a draft with
	// Release may be published.
	ErrHeld = errors.New("publishing is held")
	// ErrBaseChanged says that another builder published meanwhile. Load the base and build again.
	ErrBaseChanged = errors.New("another version was published meanwhile")
	// ErrMayNotFollow says that the version would take back what readers were told.
	ErrMayNotFollow = errors.New("may not follow the current version")
)

// Publisher puts drafts into a store. Its fields must not change while it publishes; it may
// be used by several goroutines, which then race like separate builders.
type Publisher struct {
	Store   blob.Store
	Workers int              // objects in flight at once; 0: 32
	Now     func() time.Time // real time, for claims and the pointer; nil: time.Now

	// Progress is told at the start of each phase that has something to do and as its objects are
	// done, never concurrently; may be nil.
	Progress Progress
}

// Progress is told how far a long job has come: what is under way, how many steps of it are done,
// and how many there are. Everything that takes long has this one signature, so that a bar on a
// terminal and a page of the console show any of it.
type Progress func(phase string, done, total int)

// Tell calls p; a nil p has nobody to tell.
func (p Progress) Tell(phase string, done, total int) {
	if p != nil {
		p(phase, done, total)
	}
}

// The phases of a publish that take time, in their order.
const (
	Upload = "upload" // new objects are written
	Check  = "check"  // objects are read back
	Swap   = "swap"   // the version is made current
)

// defaultWorkers is how many objects are in flight at once: those that a verified result changes, some
// dozen, are one round trip to the store.
const defaultWorkers = 32

func workers(configured int) int {
	if configured > 0 {
		return configured
	}
	return defaultWorkers
}

// Receipt says what a publish did.
type Receipt struct {
	Version        int64   `json:"version"` // the current version now
	Variants       int     `json:"variants"`
	ObjectsWritten int     `json:"objects_written"` // bodies and their codings; not claim, manifest and pointer
	ObjectsReused  int     `json:"objects_reused"`  // of the base, neither written nor read
	BytesWritten   int64   `json:"bytes_written"`
	Seconds        float64 `json:"seconds"`
	Unchanged      bool    `json:"-"` // nothing was published, because the base says all of it

	// Base is the current version for a next draft, without another read; nil if others have published
	// since.
	Base *Base `json:"-"`
}

// Publish makes the draft the current version. Either all of it becomes visible to readers,
// by one swap of the pointer, or nothing does.
//
// It publishes nothing, and the receipt says Unchanged, when every entry, the seasons, the
// archive, the ledger head, the due time, and what is missing or refused equal the base's and there
// is no hold to end.
//
// The error is ErrHeld, ErrMayNotFollow or ErrBaseChanged in these cases, ErrDamaged when
// the store returned other bytes than it was given, and blob.ErrUnknown when it could not
// be learned whether the version is current; a later LoadBase tells. After any error a
// publish can be tried again, under the next number.
func (p *Publisher) Publish(ctx context.Context, d Draft) (Receipt, error) {
	start := time.Now()
	receipt, err := p.publish(ctx, d)
	receipt.Seconds = time.Since(start).Seconds()
	if err != nil {
		return receipt, fmt.Errorf("publish to %s: %w", p.Store, err)
	}
	return receipt, nil
}

func (p *Publisher) publish(ctx context.Context, d Draft) (Receipt, error) {
	if err := d.validate(); err != nil {
		return Receipt{}, err
	}
	base := d.Base.Pointer
	if base.Held && !d.Release {
		return Receipt{}, fmt.Errorf("version %d: %w: %s", base.Version, ErrHeld, base.Reason)
	}
	if err := d.mayFollow(); err != nil {
		return Receipt{}, fmt.Errorf("%w: %w", ErrMayNotFollow, err)
	}
	variants := d.resolve()
	receipt := Receipt{Variants: len(variants)}
	fresh := d.newObjects(variants)
	for _, v := range variants {
		if v.reused {
			receipt.ObjectsReused += 1 + len(v.entry.Encodings)
		}
	}
	for _, o := range fresh {
		receipt.BytesWritten += int64(len(o.data))
	}
	receipt.ObjectsWritten = len(fresh)
	if !d.changes(variants) {
		receipt.Version, receipt.Unchanged, receipt.Base = base.Version, true, d.Base
		return receipt, nil
	}

	version, missing, err := d.Begun.take(fresh)
	if err == nil {
		version, err = p.upload(ctx, version, d, missing)
	}
	if err != nil {
		return Receipt{}, err
	}
	next, files, err := p.putManifest(ctx, d.manifest(version, variants))
	if err != nil {
		return Receipt{}, err
	}
	// If we crash here, the version is complete and nobody sees it: readers come by the
	// pointer alone. It is never made current later, because the base may have moved on.

	tag, err := p.swap(ctx, d.Base.tag, base.Version, next)
	if err != nil {
		return Receipt{}, err
	}
	// If we crash here, the version is current, and the next build finds nothing to do.

	receipt.Version = version
	if tag != "" {
		known := stored{map[string][]byte{}, d.Base.stored.parts}
		maps.Copy(known.files, d.Base.stored.files)
		maps.Copy(known.files, files)
		if receipt.Base, err = d.Base.next(ctx, next, tag, known); err != nil {
			receipt.Base = nil // it is published all the same; whoever needs it reads it
		}
	}
	return receipt, nil
}

// upload writes the objects of a version and reads them back. It claims the number, if that is 0; else these
// are the rest of a version of which whoever looks on has been told already.
func (p Publisher) upload(ctx context.Context, version int64, d Draft, fresh []newObject) (int64, error) {
	if version != 0 {
		p.Progress = nil
	} else {
		var err error
		if version, err = p.claim(ctx, d.Base.Pointer.Version, d.Builder); err != nil {
			return 0, err
		}
	}
	// If we crash here, the number is lost and nothing else: nobody uses it again.

	if err := p.each(ctx, Upload, fresh, func(ctx context.Context, o newObject) error {
		return p.create(ctx, o.key(version), o.data)
	}); err != nil {
		return 0, fmt.Errorf("version %d: %w", version, err)
	}
	// If we crash during or after the upload, objects remain that no manifest names, below a
	// number that nobody uses again. Prune removes them a day later.

	if err := p.each(ctx, Check, fresh, func(ctx context.Context, o newObject) error {
		o.of.Object = o.key(version)
		_, err := o.of.read(ctx, p.Store)
		return err
	}); err != nil {
		return 0, fmt.Errorf("version %d: %w", version, err)
	}
	return version, nil
}

// Begun is a publish whose objects are written while the rest of its draft is still made.
type Begun struct {
	uploaded map[string]newObject // by where they are in version 0
	cancel   context.CancelFunc
	done     chan struct{} // closed when what follows is known
	version  int64         // 0: nothing has been written
	err      error
}

// Begin writes the objects of a draft of which only Variants, Seasons and CurrentSeason may still change, for
// Publish of that draft with Begun set, which writes what is missing. Until then nobody sees them; those that
// the draft lacks in the end, all of them if it is never published, are as after a crash. Nothing is written
// that may not be published as the draft is now. Whoever does not come to Publish calls Begun.End.
func (p *Publisher) Begin(ctx context.Context, d Draft) *Begun {
	ctx, cancel := context.WithCancel(ctx)
	b := &Begun{uploaded: map[string]newObject{}, cancel: cancel, done: make(chan struct{})}
	fresh := d.newObjects(d.resolve())
	if held := d.Base.Pointer.Held && !d.Release; held || d.mayFollow() != nil || len(fresh) == 0 {
		close(b.done)
		return b
	}
	for _, o := range fresh {
		b.uploaded[o.key(0)] = o
	}
	go func() {
		defer close(b.done)
		b.version, b.err = p.upload(ctx, 0, d, fresh)
	}()
	return b
}

// End waits until nothing is written any more.
func (b *Begun) End() {
	b.cancel()
	<-b.done
}

// take returns the version that was begun and which of the objects it lacks: all, and version 0, if it was not
// begun with them.
func (b *Begun) take(objects []newObject) (version int64, missing []newObject, err error) {
	if b == nil {
		return 0, objects, nil
	}
	<-b.done
	for _, o := range objects {
		switch there, ok := b.uploaded[o.key(0)]; {
		case !ok:
			missing = append(missing, o)
		case !there.of.equal(o.of):
			return 0, objects, nil // it was written with other bytes, which stay
		}
	}
	return b.version, missing, b.err
}

// newObjects are those that the variants and the downloads of a draft need written.
func (d *Draft) newObjects(variants []Variant) []newObject {
	var fresh []newObject
	for _, v := range variants {
		if !v.reused {
			fresh = append(fresh, newObject{v.objectKey, v.data, v.entry})
		}
	}
	for _, download := range d.Bulk {
		if b := download.Bulk; b.Object == "" {
			fresh = append(fresh, newObject{func(version int64) string { return bulkKey(version, b.Year) }, download.data, Entry{SHA256: b.SHA256, Size: b.Size}})
		}
	}
	return fresh
}

// newObject is an object to be written.
type newObject struct {
	key  func(version int64) string // its place in a version
	data []byte
	of   Entry // what data must be when it is read back
}

// claim is the content of versions/<n>.json: from its creation on, number n belongs to the
// builder that wrote it and is never used by anybody else.
type claim struct {
	Builder string    `json:"builder"`
	Nonce   string    `json:"nonce"` // tells two claims of the same builder apart
	At      time.Time `json:"at"`
}

// claim takes the first free number above current and above every claim.
func (p *Publisher) claim(ctx context.Context, current int64, builder string) (int64, error) {
	used, err := numbers(ctx, p.Store, claimFolder, manifestFolder)
	if err != nil {
		return 0, err
	}
	for i := 0; current == 0 && i < len(used); i++ {
		// No pointer, but perhaps versions: go on from the first that is one.
		if _, _, err := loadManifest(ctx, used[i], "", stored{}, p.Store); err == nil {
			current = used[i]
		}
	}
	data, err := json.Marshal(claim{Builder: builder, Nonce: rand.Text(), At: p.now()})
	if err != nil {
		return 0, fmt.Errorf("claim: %w", err)
	}
	for version := last(used, current) + 1; version <= maxVersion; version++ {
		mine, err := blob.Claim(ctx, p.Store, claimKey(version), data)
		if err != nil {
			return 0, err
		}
		if mine {
			return version, nil
		}
	}
	return 0, fmt.Errorf("no version above %d is possible", current)
}

// last returns the highest number in use: current or one above it, as far as no two that follow
// one another are further apart than maxGap. A number beyond that was never claimed by a
// builder; to go on from there would use up the numbers there are.
func last(used []int64, current int64) int64 {
	for _, version := range used {
		if version-current > maxGap {
			break
		}
		current = max(current, version)
	}
	return current
}

// each runs do for every object, several at once, and reports progress. It stops at the
// first error.
func (p *Publisher) each(ctx context.Context, phase string, objects []newObject, do func(context.Context, newObject) error) error {
	if len(objects) == 0 {
		return nil
	}
	var mu sync.Mutex // guards done
	done := 0
	p.Progress.Tell(phase, done, len(objects))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(workers(p.Workers))
	for _, object := range objects {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() error {
			if err := do(groupCtx, object); err != nil {
				return fmt.Errorf("%s: %w", phase, err)
			}
			mu.Lock()
			defer mu.Unlock()
			done++
			p.Progress.Tell(phase, done, len(objects))
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// create writes an object whose key nobody else may write.
func (p *Publisher) create(ctx context.Context, key string, data []byte) error {
	switch mine, err := blob.Claim(ctx, p.Store, key, data); {
	case err != nil:
		return err
	case !mine:
		return fmt.Errorf("object %s: %w: another one is there already", key, ErrDamaged)
	}
	return nil
}

// putManifest stores the manifest and reads back what is new of it. It returns the pointer to it, and
// the files that are new, by key.
func (p *Publisher) putManifest(ctx context.Context, m Manifest) (Pointer, map[string][]byte, error) {
	if err := m.check(m.Version); err != nil {
		return Pointer{}, nil, fmt.Errorf("manifest of version %d: %w", m.Version, err)
	}
	files, err := m.encode()
	if err != nil {
		return Pointer{}, nil, fmt.Errorf("manifest of version %d: %w", m.Version, err)
	}
	next, fresh := Pointer{Version: m.Version, At: p.now().Round(0)}, map[string][]byte{}
	put := func(ctx context.Context, f file) error {
		if err := p.create(ctx, f.key, f.data); err != nil {
			return err
		}
		_, err := readChecked(ctx, p.Store, storedObject{f.key, Digest(f.data), int64(len(f.data))})
		return err
	}
	own := files[len(files)-1]
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(workers(p.Workers))
	for _, part := range files[:len(files)-1] {
		group.Go(func() error { return put(groupCtx, part) })
	}
	if err := group.Wait(); err != nil {
		return Pointer{}, nil, err
	}
	if err := put(ctx, own); err != nil { // last: whoever finds it finds the parts
		return Pointer{}, nil, err
	}
	for _, f := range files {
		fresh[f.key] = f.data
	}
	next.Manifest = Digest(own.data)
	return next, fresh, nil
}

const (
	// settleTime is how long a publish goes on to learn the outcome of its swap after its
	// context has ended.
	settleTime = 5 * time.Second
	// swapAttempts is how often a swap is tried whose outcome is unknown and that left no
	// trace. The store has already retried within each.
	swapAttempts = 4
)

// swap makes next the pointer if it still is the one with the tag old, of version base.
// Whatever the store answers, the pointer is read back: what it says is what readers see. The tag is
// that of next; empty if a later version has followed it.
func (p *Publisher) swap(ctx context.Context, old blob.Tag, base int64, next Pointer) (blob.Tag, error) {
	data, err := json.Marshal(next)
	if err != nil {
		return "", fmt.Errorf("pointer: %w", err)
	}
	p.Progress.Tell(Swap, 0, 1)
	var unknown error // of a swap that may arrive yet
	for attempt := 1; ; attempt++ {
		_, swapErr := p.Store.Swap(ctx, PointerKey, old, data)
		if errors.Is(swapErr, blob.ErrUnknown) {
			unknown = swapErr
		}
		outcome, tag, err := p.outcome(ctx, old, next)
		switch {
		case err != nil:
			return "", fmt.Errorf("make version %d current: %w", next.Version, errors.Join(blob.ErrUnknown, swapErr, err))
		case outcome == won:
			p.Progress.Tell(Swap, 1, 1)
			return tag, nil
		case outcome == lost:
			return "", fmt.Errorf("make version %d current: %w (base was %d)", next.Version, ErrBaseChanged, base)
		case swapErr == nil:
			return "", fmt.Errorf("make version %d current: %w: the store took the pointer and returns the old one", next.Version, ErrDamaged)
		case attempt >= swapAttempts || !errors.Is(swapErr, blob.ErrUnknown):
			return "", fmt.Errorf("make version %d current: %w", next.Version, errors.Join(unknown, swapErr))
		}
		// Still the old pointer. If the lost swap arrives later, this repetition is refused,
		// and reading back shows that the first one won.
	}
}

// outcome is what became of a swap.
type outcome int

const (
	undecided outcome = iota // the pointer is the base's
	won                      // the version is current, or was until a later one followed
	lost                     // another version followed the base
)

// outcome reads the pointer back. Where it names a later version, ours has won if that one was
// built on it. The tag is that of next, where the pointer is next.
func (p *Publisher) outcome(ctx context.Context, old blob.Tag, next Pointer) (outcome, blob.Tag, error) {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), settleTime)
		defer cancel()
	}
	pointer, tag, err := LoadPointer(ctx, p.Store)
	switch {
	case errors.Is(err, ErrNone) && old == "", err == nil && tag == old:
		return undecided, "", nil
	case err != nil:
		return undecided, "", err
	case pointer.Version == next.Version && pointer.Manifest == next.Manifest:
		return won, tag, nil
	}
	at, hash := pointer.Version, pointer.Manifest
	for at > next.Version {
		manifest, _, err := loadManifest(ctx, at, hash, stored{}, p.Store)
		if err != nil {
			return undecided, "", err
		}
		at, hash = manifest.Base, manifest.BaseManifest
	}
	if at == next.Version && hash == next.Manifest {
		return won, "", nil
	}
	return lost, "", nil
}

func (p *Publisher) now() time.Time {
	if p.Now != nil {
		return p.Now().UTC()
	}
	return time.Now().UTC()
}
