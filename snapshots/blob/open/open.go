// Package open opens the store of a --store flag.
package open

import (
	"context"
	"fmt"
	"strings"

	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/dirblob"
	"gridcast/snapshots/blob/s3blob"
)

// Access is the purpose of opening a store.
type Access int

// The kinds of access.
const (
	ReadOnly Access = iota // nothing is written, not even to check the server
	ReadWrite
	Existing  // as ReadWrite, but a missing directory is an error
	Unmounted // as ReadOnly, but the directory of a store may be missing: reads fail until it is there
)

// Store opens the store of a name:
//
//	dir:PATH             see dirblob; only ReadWrite makes a missing directory
//	s3://bucket/prefix   with ?endpoint=…&region=…&addressing=…&ca=…, see s3blob.ParseURL; for writing, Store refuses
//	                     a server that does not honour conditional writes
func Store(ctx context.Context, name string, access Access) (blob.Store, error) {
	if path, ok := strings.CutPrefix(name, "dir:"); ok && path != "" {
		switch access {
		case ReadOnly:
			return dirblob.OpenReadOnly(path)
		case Unmounted:
			return dirblob.OpenUnmounted(path), nil
		case Existing:
			if _, err := dirblob.OpenReadOnly(path); err != nil {
				return nil, err
			}
			return dirblob.Open(path)
		default:
			return dirblob.Open(path)
		}
	}
	if !strings.HasPrefix(name, "s3://") {
		return nil, fmt.Errorf("store %q: want dir:PATH or s3://bucket/prefix?endpoint=URL", s3blob.Redacted(name))
	}
	config, err := s3blob.ParseURL(name)
	if err != nil {
		return nil, err
	}
	store, err := s3blob.New(config)
	if err != nil {
		return nil, err
	}
	if access == ReadWrite || access == Existing {
		if err := store.CheckConditions(ctx); err != nil {
			return nil, err
		}
	}
	return store, nil
}
