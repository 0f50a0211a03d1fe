package snapshots

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Rollback makes the content of version to current again, under a new number, and holds the
// pointer: builders publish nothing until a draft says Release. It works although the
// current manifest, or the pointer itself, is damaged. now is race time, reason is for people
// and must not be empty.
//
// Every object of the version is read and checked first. If another version is published
// meanwhile, the error is ErrBaseChanged.
func (p *Publisher) Rollback(ctx context.Context, to int64, builder, reason string, now time.Time) (Receipt, error) {
	start := time.Now()
	receipt, err := p.rollback(ctx, to, builder, reason, now)
	receipt.Seconds = time.Since(start).Seconds()
	if err != nil {
		return receipt, fmt.Errorf("roll back to version %d: %w", to, err)
	}
	return receipt, nil
}

func (p *Publisher) rollback(ctx context.Context, to int64, builder, reason string, now time.Time) (Receipt, error) {
	if reason == "" || now.IsZero() {
		return Receipt{}, errors.New("a rollback needs a reason and the time")
	}
	h, err := loadHistory(ctx, p.Store)
	if err != nil {
		return Receipt{}, err
	}
	switch {
	case to == h.pointer.Version:
		return Receipt{}, errors.New("it is the current version")
	case !slices.Contains(h.versions, to):
		return Receipt{}, fmt.Errorf("no such published version; there are %v", h.versions)
	}
	m := h.manifests[to]
	version, err := p.claim(ctx, h.pointer.Version, claim{Builder: builder})
	if err != nil {
		return Receipt{}, err
	}
	m.Version, m.Base, m.BaseManifest, m.RollbackOf = version, h.pointer.Version, h.pointer.Manifest, to
	m.Builder, m.Reason, m.BuiltAt = builder, reason, now
	next, err := p.putManifest(ctx, m)
	if err != nil {
		return Receipt{}, err
	}
	// Prune removes manifests first, then the objects that none of those left reaches. Ours
	// is there, and if the old one still is too, prune will count the objects as reached.
	if _, err := LoadManifest(ctx, p.Store, to); err != nil {
		return Receipt{}, fmt.Errorf("pruned meanwhile: %w", err)
	}
	result, err := verify(ctx, p.Store, m, workers(p.Workers), p.Progress)
	if err != nil {
		return Receipt{}, err
	}
	if len(result.Faults) > 0 {
		return Receipt{}, errors.Join(result.Faults...)
	}
	next.Held, next.Reason = true, reason
	if err := p.swap(ctx, h.tag, h.pointer.Version, next); err != nil {
		return Receipt{}, err
	}
	return Receipt{Version: version, Variants: len(m.Entries), ObjectsReused: result.Objects}, nil
}
