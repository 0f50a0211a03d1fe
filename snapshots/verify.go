package snapshots

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"gridcast/snapshots/blob"
)

// Verification is what a Verify found.
type Verification struct {
	Version int64
	Objects int   // read, whether good or not
	Bytes   int64 // read
	Faults  []error
}

// Verify reads every object of a version again, 0 being the current one, and compares it with
// the manifest. What is missing or wrong is a fault of the version; the error is for a store
// that does not answer.
func Verify(ctx context.Context, store blob.Store, version int64, progress func(Progress)) (Verification, error) {
	m, err := LoadManifest(ctx, store, version)
	if err != nil {
		return Verification{}, fmt.Errorf("verify: %w", err)
	}
	return verify(ctx, store, m, defaultWorkers, progress)
}

func verify(ctx context.Context, store blob.Store, m Manifest, parallel int, progress func(Progress)) (Verification, error) {
	var objects []storedObject
	for _, e := range m.Entries {
		objects = append(objects, e.stored()...)
	}
	var mu sync.Mutex // guards result
	result := Verification{Version: m.Version}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, object := range objects {
		group.Go(func() error {
			_, fault := readChecked(groupCtx, store, object)
			mu.Lock()
			defer mu.Unlock()
			result.Objects++
			switch {
			case fault == nil:
				result.Bytes += object.size
			case errors.Is(fault, ErrDamaged), errors.Is(fault, blob.ErrNotFound):
				result.Faults = append(result.Faults, fault)
			default:
				return fmt.Errorf("verify version %d: %w", m.Version, fault)
			}
			if progress != nil {
				progress(Progress{Stage: Check, Done: result.Objects, Total: len(objects), Bytes: result.Bytes})
			}
			return nil
		})
	}
	return result, group.Wait()
}
