package backup

import (
	"context"
	"encoding/json"
	"fmt"

	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/chain"
)

// ledger names the files of the ledger. Their content is the business of another package.
var ledger = chain.Chain{Prefix: "ledger/"}

// ledgerHead returns the last file of the ledger in a store; zero if there is none.
func ledgerHead(ctx context.Context, store blob.Store) (snapshots.Ledger, error) {
	var head snapshots.Ledger
	for info, err := range store.List(ctx, ledger.Prefix) {
		if err != nil {
			return snapshots.Ledger{}, err
		}
		if seq, ok := ledger.Number(info.Key); ok {
			head.Seq = max(head.Seq, seq)
		}
	}
	if head.Seq == 0 {
		return snapshots.Ledger{}, nil
	}
	o, err := store.Get(ctx, ledger.Key(head.Seq), maxCopied)
	if err != nil {
		return snapshots.Ledger{}, err
	}
	head.Hash = snapshots.Digest(o.Data)
	var file struct {
		Kind string `json:"kind"`
	}
	if json.Unmarshal(o.Data, &file) == nil {
		head.Kind = file.Kind
	}
	return head, nil
}

// checkHead returns an error unless the ledger in a store has the noted file. A noted hash without a number
// may be the hash of any file.
func checkHead(ctx context.Context, store blob.Store, noted snapshots.Ledger) error {
	switch {
	case noted.Seq == 0 && noted.Hash == "":
		return nil
	case noted.Seq == 0:
		return findHash(ctx, store, noted.Hash)
	}
	o, err := store.Get(ctx, ledger.Key(noted.Seq), maxCopied)
	if err != nil {
		return fmt.Errorf("ledger file %d: %w", noted.Seq, err)
	}
	if got := snapshots.Digest(o.Data); noted.Hash != "" && got != noted.Hash {
		return fmt.Errorf("ledger file %d: %w: its hash is %s, %s was noted", noted.Seq, snapshots.ErrDamaged, got, noted.Hash)
	}
	return nil
}

// findHash returns an error unless a file of the ledger has the hash.
func findHash(ctx context.Context, store blob.Store, hash string) error {
	for info, err := range store.List(ctx, ledger.Prefix) {
		if err != nil {
			return err
		}
		o, err := store.Get(ctx, info.Key, maxCopied)
		if err != nil {
			return err
		}
		if snapshots.Digest(o.Data) == hash {
			return nil
		}
	}
	return fmt.Errorf("no ledger file has the hash %s that was noted: %w", hash, blob.ErrNotFound)
}
