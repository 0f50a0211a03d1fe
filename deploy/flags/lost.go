package flags

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"gridcast/builder/ledger"
	"gridcast/edge"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/open"
)

// LostError means that the store is empty or not there now, and that this machine has served a version of it or of
// another store.
type LostError struct {
	Store  string // the configured one
	Source string // the one of the copy: another name if the configured one may be mistyped
	Served int64
}

func (e *LostError) Error() string {
	if e.Source != e.Store {
		return fmt.Sprintf("the store %s is empty, but this machine has served version %d of %s: is the name of the store right? If a new store is meant: --new-store", e.Store, e.Served, e.Source)
	}
	return fmt.Sprintf("the store %s is empty, but this machine has served version %d of it: is the disk mounted? gridcast store restore, or --new-store", e.Store, e.Served)
}

// Lost returns a *LostError if the store is empty or its folder is missing, although the copy in --cache-dir holds a
// version.
func (f *Edge) Lost(ctx context.Context, storage Storage) error {
	store, err := storage.OpenUnmounted(ctx)
	if f.CacheDir == "" || err != nil {
		return nil //nolint:nilerr // the caller opens the store next, and reports it
	}
	_, _, err = snapshots.LoadPointer(ctx, store)
	if errors.Is(err, snapshots.ErrNone) {
		if _, err = ledger.Load(ctx, store, ledger.AnyKind); !errors.Is(err, ledger.ErrNotOpened) {
			return nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	served, source, err := edge.Served(ctx, f.CacheDir)
	if err != nil {
		return nil //nolint:nilerr // there is no copy to compare with
	}
	return &LostError{store.String(), source, served.Version}
}

// OpenUnmounted opens the store for reading. Its folder may be missing: reads then fail until it is there.
func (f Storage) OpenUnmounted(ctx context.Context) (blob.Store, error) {
	return f.open(ctx, open.Unmounted)
}
