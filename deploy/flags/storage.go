// Package flags holds the flags that commands share, and opens the things that the flags name: the
// store, the race clock, the builder, the sources of facts.
//
// A method whose name begins with Provide makes a parameter of the Run method of each command with these flags: kong
// calls it before Run, and a Run that has no such parameter opens nothing.
package flags

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"gridcast/builder/ledger"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
	"gridcast/edge"
	"gridcast/edge/keys"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/dirblob"
	"gridcast/snapshots/blob/open"
)

// Storage names the store that holds published versions, ledger, keys and archive.
type Storage struct {
	Log   *slog.Logger `kong:"-"` // of a directory's notices of changes; nil: none
	Store string       `help:"Where everything is kept: dir:PATH or s3://bucket/prefix?endpoint=URL&region=R; default ${default}." default:"dir:.var/store" placeholder:"URL"`
}

// Open opens the store for reading and writing, and makes it if it is missing. It is for commands that may begin a store.
func (f Storage) Open(ctx context.Context) (blob.Store, error) {
	return f.open(ctx, open.ReadWrite)
}

// OpenToRead opens the store without the checks that writing needs, which change the store.
func (f Storage) OpenToRead(ctx context.Context) (blob.Store, error) {
	return f.open(ctx, open.ReadOnly)
}

func (f Storage) open(ctx context.Context, access open.Access) (blob.Store, error) {
	store, err := open.Store(ctx, f.Store, access)
	if dir, ok := store.(*dirblob.Store); ok && err == nil {
		dir.Log = f.Log
	}
	return store, err
}

// ProvideStore opens the store for a command that only reads.
func (f Storage) ProvideStore(ctx context.Context) (blob.Store, error) { return f.OpenToRead(ctx) }

// Operator opens the store for actions that need nothing else. A missing store is an error, and nothing is made.
func (f Storage) Operator(ctx context.Context, _ *terminal.Streams) (*operator.Operator, error) {
	store, err := f.open(ctx, open.Existing)
	if err != nil {
		return nil, err
	}
	return NewOperator(ctx, store)
}

// StorageWith is for actions that need more than the store. Its part gives that to their operator.
type StorageWith[P interface {
	Equip(*operator.Operator) error
}] struct {
	Storage
	Part P `embed:""`
}

// Operator opens the store for the actions.
func (f StorageWith[P]) Operator(ctx context.Context, s *terminal.Streams) (*operator.Operator, error) {
	o, err := f.Storage.Operator(ctx, s)
	if err != nil {
		return nil, err
	}
	return o, f.Part.Equip(o)
}

// NewOperator returns an operator for actions that need only the store.
func NewOperator(ctx context.Context, store blob.Store) (*operator.Operator, error) {
	log, err := auditlog.Load(ctx, store)
	if err != nil {
		return nil, err
	}
	return &operator.Operator{
		Store: store, Audit: log, Tiers: keys.DefaultTiers(), Name: ProcessName(),
		Now: func() time.Time { return operator.RaceTime(ctx, store) },
	}, nil
}

// ProcessName is the host and process number, so that people can tell builders apart.
func ProcessName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

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
