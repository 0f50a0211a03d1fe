package snapshots

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"gridcast/snapshots/blob"
	"gridcast/snapshots/notes"
)

var (
	// ErrHeld means that an operator has rolled back and holds the pointer. Publish then accepts only
	// a draft with EndHold.
	ErrHeld = errors.New("publishing is held")
	// ErrBaseChanged means that another builder published meanwhile. Load the base and build again.
	ErrBaseChanged = errors.New("another version was published meanwhile")
	// ErrMayNotFollow means that the version would lose something that is published, or go back in time.
	ErrMayNotFollow = errors.New("may not follow the current version")
)

// Publisher publishes drafts to a store. Its fields must not change while it publishes. Several
// goroutines may use it; they then race like separate builders.
type Publisher struct {
	Store   blob.Store
	Workers int              // objects in flight at once; 0: 32, or as many as the store groups
	Now     func() time.Time // real time, for claims and the pointer; nil: time.Now
	Signers *notes.Signers   // the version key; nil: versions are not signed

	// Progress is called when a phase starts and whenever one of its objects is done. The calls are
	// never concurrent. It may be nil.
	Progress Progress
}

// Progress reports a long job: the phase under way, the steps done and the steps in all. All long
// jobs share this signature, so that the terminal and the console show any of them.
type Progress func(phase string, done, total int)

// Report calls p unless it is nil.
func (p Progress) Report(phase string, done, total int) {
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

// defaultWorkers is the default number of objects in flight. A verified result changes some dozen
// objects, which then take one round trip to the store.
const defaultWorkers = 32

func (p *Publisher) workers() int {
	if g, ok := p.Store.(blob.Grouper); ok {
		return cmp.Or(p.Workers, g.Writers(), defaultWorkers)
	}
	return cmp.Or(p.Workers, defaultWorkers)
}

// Receipt describes the outcome of a publish.
type Receipt struct {
	Version        int64   `json:"version"` // the current version now
	Variants       int     `json:"variants"`
	ObjectsWritten int     `json:"objects_written"` // bodies; not claim, manifest and pointer
	ObjectsReused  int     `json:"objects_reused"`  // of the base, neither written nor read
	BytesWritten   int64   `json:"bytes_written"`
	Seconds        float64 `json:"seconds"`
	Unchanged      bool    `json:"-"` // nothing was published, because the base equals the draft

	// Base is the base for the next draft, without another read. It is nil if another builder has
	// published since.
	Base *Base `json:"-"`
}

// Publish makes the draft the current version. Either all of it becomes visible to readers,
// by one swap of the pointer, or nothing does.
//
// Publish writes nothing, and the receipt says Unchanged, if there is nothing to publish: the draft has the base's
// entries, seasons, archive, ledger head, due time, missing facts and refused entries, and ends no hold. Every key of
// the publisher must have signed the base, and the base must have no Damage.
//
// The error is ErrHeld, ErrMayNotFollow or ErrBaseChanged; each describes its case. It is ErrDamaged if the store
// returned other bytes than it was given. After blob.ErrUnknown the version may be current, and a later LoadBase shows
// it. After blob.ErrUnsynced a crash may bring the base back. After any error the caller can publish again, under the
// next number.
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
	if d.Base == nil {
		return Receipt{}, errors.New("draft without a base")
	}
	if d.Base.Pointer.Signed && p.Signers == nil {
		return Receipt{}, ErrNoSigner
	}
	if err := errors.Join(d.validate(), d.mayPublish()); err != nil {
		return Receipt{}, err
	}

	// Stage: list the objects that the base does not have.
	base := d.Base.Pointer
	variants := d.resolve()
	objects := fresh(variants)
	receipt := Receipt{Variants: len(variants), ObjectsWritten: len(objects), ObjectsReused: len(variants) - len(objects)}
	for _, o := range objects {
		receipt.BytesWritten += int64(len(o.data))
	}
	if d.Base.Damage == nil && !d.changes(variants) && (p.Signers == nil || d.Base.SignedByAll(p.Signers)) {
		receipt.Version, receipt.Unchanged, receipt.Base = base.Version, true, d.Base
		return receipt, nil
	}

	// Upload the objects, and read them back.
	version, err := p.claim(ctx, base.Version, MaxGap, d.Builder)
	if err != nil {
		return Receipt{}, err
	}
	// If we crash here, the number is lost and nothing else: nobody uses it again.

	if err := p.upload(ctx, version, objects); err != nil {
		return Receipt{}, err
	}
	// If we crash during or after the upload, objects remain that no manifest names, below a
	// number that nobody uses again. Prune removes them a day later.

	// Upload the manifest and the delta, and read them back.
	m := d.manifest(version, variants)
	delta, deltaBytes := encodeDelta(version, variants)
	if deltaBytes != nil {
		m.Deltas = append(m.Deltas, delta)
	}
	next, files, err := p.putManifest(ctx, m, deltaBytes)
	if err != nil {
		return Receipt{}, err
	}
	// If we crash here, the version is complete and nobody sees it: readers come by the pointer alone. No later
	// publish makes it current, because the base may have moved on. The repair of a damaged pointer can: it takes the
	// highest version, and with Signers the highest that they have signed.

	if files[NoteKey(version)], err = p.sign(ctx, &next, m.Ledger); err != nil {
		return Receipt{}, err
	}

	// Swap the pointer, and read it back.
	tag, err := p.swap(ctx, d.Base.tag, base.Version, next)
	if err != nil {
		return Receipt{}, err
	}
	// If we crash here, the version is current, and the next build finds nothing to do.

	receipt.Version = version
	if tag != "" {
		known := stored{files: map[string][]byte{}, parts: d.Base.stored.parts}
		maps.Copy(known.files, d.Base.stored.files)
		maps.Copy(known.files, files)
		receipt.Base, _ = d.Base.next(ctx, next, tag, known) // the version is published all the same; the next LoadBase reads it
	}
	return receipt, nil
}

// upload writes the objects of a version and reads them back.
func (p *Publisher) upload(ctx context.Context, version int64, objects []Variant) error {
	err := Each(ctx, Upload, objects, p.workers(), p.Progress, func(ctx context.Context, o Variant) error {
		return p.create(ctx, o.objectKey(version), o.data)
	})
	if err == nil {
		err = Each(ctx, Check, objects, p.workers(), p.Progress, func(ctx context.Context, o Variant) error {
			o.entry.Object = o.objectKey(version)
			data, err := o.entry.object().Read(ctx, p.Store)
			if err == nil {
				err = o.entry.checkPacked(data)
			}
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("version %d: %w", version, err)
	}
	return nil
}

// fresh returns the variants whose objects the base does not have.
func fresh(variants []Variant) []Variant {
	return slices.DeleteFunc(slices.Clone(variants), func(v Variant) bool { return v.reused })
}

// claim is the content of versions/<n>.json. Number n belongs to the builder that created the file, and no
// other builder ever uses it.
type claim struct {
	Builder string    `json:"builder"`
	Nonce   string    `json:"nonce"` // tells two claims of the same builder apart
	At      time.Time `json:"at"`
}

// claim takes the first free number above current and above every number in use that is less than within above current.
// Edges would refuse a version further above for ever, so a stranger's claim must not lead there.
func (p *Publisher) claim(ctx context.Context, current, within int64, builder string) (int64, error) {
	used, err := numbers(ctx, p.Store, claimFolder, manifestFolder)
	if err != nil {
		return 0, err
	}
	if current > 0 {
		used = slices.DeleteFunc(used, func(version int64) bool { return version-current >= within })
	}
	for i := 0; current == 0 && i < len(used); i++ {
		// There is no pointer, but perhaps a version: go on from the first readable one.
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

// last returns the highest number in use, from current on. It stops at a gap of more than MaxGap: no builder
// claimed a number beyond it, and going on from there would use up the possible numbers.
func last(used []int64, current int64) int64 {
	for _, version := range used {
		if version-current > MaxGap {
			break
		}
		current = max(current, version)
	}
	return current
}

// Each runs do for everything in the list, several at once, and reports progress. It stops at the first error.
func Each[T any](ctx context.Context, phase string, list []T, parallel int, progress Progress, do func(context.Context, T) error) error {
	if len(list) == 0 {
		return nil
	}
	var mu sync.Mutex // guards done
	done := 0
	progress.Report(phase, done, len(list))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, one := range list {
		group.Go(func() error {
			if groupCtx.Err() != nil {
				return nil // Wait returns the first error
			}
			if err := do(groupCtx, one); err != nil {
				return fmt.Errorf("%s: %w", phase, err)
			}
			mu.Lock()
			defer mu.Unlock()
			done++
			progress.Report(phase, done, len(list))
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// create writes an object under a key that only this publish may write.
func (p *Publisher) create(ctx context.Context, key string, data []byte) error {
	switch mine, err := blob.Claim(ctx, p.Store, key, data); {
	case err != nil:
		return err
	case !mine:
		return fmt.Errorf("object %s: %w: another one is there already", key, ErrDamaged)
	}
	return nil
}

// putManifest stores the manifest, and the last of its deltas if delta is not nil, and reads the new files back. It returns
// the pointer to the manifest and the new files of the manifest by key.
func (p *Publisher) putManifest(ctx context.Context, m Manifest, delta []byte) (Pointer, map[string][]byte, error) {
	if err := m.check(m.Version); err != nil {
		return Pointer{}, nil, fmt.Errorf("manifest of version %d: %w", m.Version, err)
	}
	files, err := m.encode()
	if err != nil {
		return Pointer{}, nil, fmt.Errorf("manifest of version %d: %w", m.Version, err)
	}
	next, written := Pointer{Version: m.Version, At: p.now()}, map[string][]byte{}
	put := func(ctx context.Context, f file) error {
		if err := p.create(ctx, f.key, f.data); err != nil {
			return err
		}
		_, err := Object{f.key, Digest(f.data), int64(len(f.data))}.Read(ctx, p.Store)
		return err
	}
	parts, last := files[:len(files)-1], files[len(files)-1:] // the manifest's own file comes last, because its readers need the parts
	own := last[0]
	if delta != nil {
		last = append(last, file{m.Deltas[len(m.Deltas)-1].object().Key, delta})
	}
	for _, group := range [][]file{parts, last} {
		if err := Each(ctx, Upload, group, p.workers(), nil, put); err != nil {
			return Pointer{}, nil, err
		}
	}
	for _, f := range files {
		written[f.key] = f.data
	}
	next.Manifest = Digest(own.data)
	return next, written, nil
}

const (
	// settleTime limits the time to learn the outcome of a swap after the context has ended.
	settleTime = 5 * time.Second
	// swapAttempts limits the attempts of a swap with an unknown outcome that left no trace. The
	// store retries within each of them.
	swapAttempts = 4
)

// swap replaces the pointer that has the tag old, of version base, by next. It reads the pointer back after
// every answer of the store, because readers see only the pointer. It returns the tag of next, or an
// empty tag if a later version has followed.
func (p *Publisher) swap(ctx context.Context, old blob.Tag, base int64, next Pointer) (blob.Tag, error) {
	data, err := json.Marshal(next)
	if err != nil {
		return "", fmt.Errorf("pointer: %w", err)
	}
	p.Progress.Report(Swap, 0, 1)
	var faults error // of all attempts
	for attempt := 1; ; attempt++ {
		_, swapErr := p.Store.Swap(ctx, PointerKey, old, data)
		faults = errors.Join(faults, swapErr)
		outcome, tag, err := p.outcome(ctx, old, next)
		switch {
		case old == "" && errors.Is(err, blob.ErrTooLarge) && attempt < swapAttempts: // a damaged pointer that is too large to have a tag
			if err := p.Store.Delete(ctx, PointerKey); err != nil {
				return "", err
			}
		case err != nil:
			return "", fmt.Errorf("make version %d current: %w", next.Version, errors.Join(blob.ErrUnknown, swapErr, err))
		case outcome == won:
			p.Progress.Report(Swap, 1, 1)
			if p.Signers != nil {
				p.Signers.Advance(next.Version)
			}
			if errors.Is(swapErr, blob.ErrUnsynced) {
				return "", fmt.Errorf("make version %d current: readers see it: %w", next.Version, swapErr)
			}
			return tag, nil
		case outcome == lost:
			return "", fmt.Errorf("make version %d current: %w (base was %d)", next.Version, ErrBaseChanged, base)
		case swapErr == nil:
			return "", fmt.Errorf("make version %d current: %w: the store took the pointer and returns the old one", next.Version, ErrDamaged)
		case attempt >= swapAttempts || !errors.Is(swapErr, blob.ErrUnknown):
			return "", fmt.Errorf("make version %d current: %w", next.Version, faults)
		}
		// Still the old pointer. If the lost swap arrives later, this repetition is refused,
		// and reading back shows that the first one won.
	}
}

// outcome is the outcome of a swap.
type outcome int

const (
	undecided outcome = iota // the pointer is the base's
	won                      // the version is current, or was until a later one followed
	lost                     // another version followed the base
)

// outcome reads the pointer back. If the pointer names a later version, next has won if that version is built
// on it. The tag is that of next if next is the pointer.
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
