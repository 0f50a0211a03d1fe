package main

import (
	"context"

	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/open"
)

// storeFlags says where published versions, ledger, keys and archive are kept.
type storeFlags struct {
	Store string `help:"Where everything is kept: dir:PATH or s3://bucket/prefix?endpoint=URL&region=R; default ${default}." default:"dir:.var/store" placeholder:"URL"`
}

func (f *storeFlags) open(ctx context.Context) (blob.Store, error) {
	return open.Store(ctx, f.Store, open.ReadWrite)
}

// openToRead leaves the store as it is, even where it would be checked for what writing needs.
func (f *storeFlags) openToRead(ctx context.Context) (blob.Store, error) {
	return open.Store(ctx, f.Store, open.ReadOnly)
}
