package snapshots

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

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
	Store    blob.Store
	Workers  int              // objects in flight at once; 0: 16
	Now      func() time.Time // real time, for claims and the pointer; nil: time.Now
	Progress func(Progress)   // called as objects are stored and checked, never concurrently; may be nil
}

const defaultWorkers = 16

// Stage is a part of a publish that takes time.
type Stage string

// The stages, in their order.
const (
	Upload Stage = "upload" // new objects are written
	Check  Stage = "check"  // what was written is read back
)

// Progress says how far a stage is.
type Progress struct {
	Stage Stage
	Done  int // objects
	Total int
	Bytes int64 // done
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
}

// Publish makes the draft the current version. Either all of it becomes visible to readers,
// by one swap of the pointer, or nothing does.
//
// It publishes nothing, and the receipt says Unchanged, when every entry, the seasons, the
// archive, the ledger head and the due time equal the base's and there is no hold to end.
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
	receipt := receiptOf(variants)
	if !d.changes(variants) {
		receipt.Version, receipt.Unchanged = base.Version, true
		return receipt, nil
	}

	version, err := p.claim(ctx, base.Version, claim{Builder: d.Builder})
	if err != nil {
		return Receipt{}, err
	}
	if err := p.upload(ctx, version, variants); err != nil {
		return Receipt{}, fmt.Errorf("version %d: %w", version, err)
	}
	next, err := p.putManifest(ctx, d.manifest(version, variants))
	if err != nil {
		return Receipt{}, err
	}
	if err := p.swap(ctx, d.Base.tag, base.Version, next); err != nil {
		return Receipt{}, err
	}
	receipt.Version = version
	return receipt, nil
}

// putManifest stores the manifest, reads it back and returns the pointer to it.
func (p *Publisher) putManifest(ctx context.Context, m Manifest) (Pointer, error) {
	if err := m.check(m.Version); err != nil {
		return Pointer{}, fmt.Errorf("manifest of version %d: %w", m.Version, err)
	}
	data, err := json.Marshal(m)
	if err != nil {
		return Pointer{}, fmt.Errorf("manifest of version %d: %w", m.Version, err)
	}
	key, digest := ManifestKey(m.Version), Digest(data)
	if err := p.put(ctx, key, data); err != nil {
		return Pointer{}, err
	}
	if _, err := readChecked(ctx, p.Store, storedObject{key, digest, int64(len(data))}); err != nil {
		return Pointer{}, err
	}
	return Pointer{Version: m.Version, Manifest: digest, At: p.now()}, nil
}

func receiptOf(variants []Variant) Receipt {
	r := Receipt{Variants: len(variants)}
	for _, v := range variants {
		objects := v.entry.stored()
		if v.reused {
			r.ObjectsReused += len(objects)
			continue
		}
		r.ObjectsWritten += len(objects)
		for _, object := range objects {
			r.BytesWritten += object.size
		}
	}
	return r
}

func (p *Publisher) now() time.Time {
	if p.Now != nil {
		return p.Now().UTC()
	}
	return time.Now().UTC()
}
