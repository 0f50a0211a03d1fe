// Package flags holds the flags that commands share, and opens the things that the flags name: the
// store, the race clock, the builder, the sources of facts.
//
// A method whose name begins with Provide makes a parameter of the Run method of each command with these flags: kong
// calls it before Run, and a Run that has no such parameter opens nothing.
package flags

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"gridcast/deploy/auditlog"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
	"gridcast/edge/keys"
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
