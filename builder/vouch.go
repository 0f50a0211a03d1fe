package builder

import (
	"context"
	"errors"
	"fmt"

	"gridcast/builder/archive"
	"gridcast/builder/ledger"
	"gridcast/snapshots/blob"
)

// Vouch marks the results that were in the archive on which the ledger was opened as verified: see
// ledger.Fold.Vouches. It does nothing if the ledger names no such archive, or if the store has
// lost it.
func Vouch(ctx context.Context, l *ledger.Ledger, archives *archive.Store) error {
	opened := l.Fold()
	if opened.OpenedOn() == "" {
		return nil
	}
	first, err := archives.Load(ctx)
	if err == nil && first.SHA256 != opened.OpenedOn() {
		first, err = archives.Get(ctx, opened.OpenedOn())
	}
	if errors.Is(err, blob.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the archive that the ledger was opened on: %w", err)
	}
	l.Vouch(first.Archive.AsOf(opened.OpenedAt()))
	return nil
}
