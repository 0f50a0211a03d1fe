// Package faultblob wraps a blob.Store, for tests, and lets a function decide the fate of
// every call: let it through, refuse it, or apply it and lose the answer.
package faultblob

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"gridcast/snapshots/blob"
)

var (
	_ blob.Store = (*Store)(nil)
	_ blob.Clock = (*Store)(nil)
)

// Op is the called method.
type Op string

// The operations.
const (
	Get    Op = "get"
	Create Op = "create"
	Swap   Op = "swap"
	List   Op = "list"
	Delete Op = "delete"
	Watch  Op = "watch"
)

// Writes reports whether the operation changes the store.
func (o Op) Writes() bool { return o == Create || o == Swap || o == Delete }

// Call describes one call; for List, Key is the prefix.
type Call struct {
	Op  Op
	Key string
}

// Fate is the outcome of a call. The zero Fate lets it through.
type Fate struct {
	Err     error                    // returned to the caller, unless nil
	Applied bool                     // with Err: the call reaches the store first, and its answer is lost
	Mangle  func(data []byte) []byte // changes the bytes of Get and Watch

	Lie func(blob.Tag, error) (blob.Tag, error) // changes the answer of a write that reached the store
}

// Store is a blob.Store whose calls can fail.
type Store struct {
	inner blob.Store
	fate  func(context.Context, Call) Fate
}

// Wrap returns a store that asks fate before every call to inner. fate must be safe for
// concurrent use; it may block, and should heed ctx when it does.
func Wrap(inner blob.Store, fate func(context.Context, Call) Fate) *Store {
	return &Store{inner: inner, fate: fate}
}

// ErrKilled is the error of a dead mortal store.
var ErrKilled = errors.New("killed")

// Mortal returns a store that dies at the nth write to it, from 1: it refuses that write, or
// applies it and loses the answer. Nothing gets through afterwards, as after kill -9. died reports whether
// the store has died.
func Mortal(inner blob.Store, n int, applied bool) (store *Store, died func() bool) {
	var mu sync.Mutex // guards writes
	writes := 0
	store = Wrap(inner, func(_ context.Context, call Call) Fate {
		mu.Lock()
		defer mu.Unlock()
		if call.Op.Writes() {
			writes++
		}
		switch {
		case writes == n && call.Op.Writes():
			return Fate{Err: ErrKilled, Applied: applied}
		case writes >= n:
			return Fate{Err: ErrKilled}
		}
		return Fate{}
	})
	return store, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return writes >= n
	}
}

// String names the store.
func (s *Store) String() string { return "faulty " + s.inner.String() }

// StoreTime implements blob.Clock if the inner store does.
func (s *Store) StoreTime(ctx context.Context) (time.Time, time.Duration, error) {
	if clock, ok := s.inner.(blob.Clock); ok {
		return clock.StoreTime(ctx)
	}
	return time.Time{}, 0, errors.ErrUnsupported
}

// Get implements blob.Store.
func (s *Store) Get(ctx context.Context, key string, limit int64) (blob.Object, error) {
	return s.read(ctx, Call{Get, key}, limit, func() (blob.Object, error) { return s.inner.Get(ctx, key, limit) })
}

// Watch implements blob.Store.
func (s *Store) Watch(ctx context.Context, key string, seen blob.Tag, limit int64) (blob.Object, error) {
	return s.read(ctx, Call{Watch, key}, limit, func() (blob.Object, error) { return s.inner.Watch(ctx, key, seen, limit) })
}

// Create implements blob.Store.
func (s *Store) Create(ctx context.Context, key string, data []byte) (blob.Tag, error) {
	return s.write(ctx, Call{Create, key}, func() (blob.Tag, error) { return s.inner.Create(ctx, key, data) })
}

// Swap implements blob.Store.
func (s *Store) Swap(ctx context.Context, key string, old blob.Tag, data []byte) (blob.Tag, error) {
	return s.write(ctx, Call{Swap, key}, func() (blob.Tag, error) { return s.inner.Swap(ctx, key, old, data) })
}

// Delete implements blob.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	_, err := s.write(ctx, Call{Delete, key}, func() (blob.Tag, error) { return "", s.inner.Delete(ctx, key) })
	return err
}

// List implements blob.Store.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[blob.Info, error] {
	if f := s.fate(ctx, Call{List, prefix}); f.Err != nil {
		return func(yield func(blob.Info, error) bool) { yield(blob.Info{}, f.Err) }
	}
	return s.inner.List(ctx, prefix)
}

func (s *Store) read(ctx context.Context, call Call, limit int64, do func() (blob.Object, error)) (blob.Object, error) {
	f := s.fate(ctx, call)
	if f.Err != nil {
		return blob.Object{}, f.Err
	}
	o, err := do()
	if err == nil && f.Mangle != nil {
		o.Data = f.Mangle(o.Data)
		if int64(len(o.Data)) > limit {
			return blob.Object{}, fmt.Errorf("%s %s: %w", call.Op, call.Key, blob.ErrTooLarge)
		}
	}
	return o, err
}

func (s *Store) write(ctx context.Context, call Call, do func() (blob.Tag, error)) (blob.Tag, error) {
	f := s.fate(ctx, call)
	if f.Err != nil && !f.Applied {
		return "", f.Err
	}
	tag, err := do()
	switch {
	case f.Err != nil:
		return "", f.Err
	case f.Lie != nil:
		return f.Lie(tag, err)
	}
	return tag, err
}
