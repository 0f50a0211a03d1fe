// Package memblob is a blob.Store in memory, for tests: strict about the mistakes that a correct program
// never makes. It reports a second write to an immutable key and a read of a deleted one as
// faults of the program under test. Wrap it in faultblob to make calls fail.
package memblob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gridcast/snapshots/blob"
)

var (
	_ blob.Store = (*Store)(nil)
	_ blob.Clock = (*Store)(nil)
)

// Reporter is the part of *testing.T to which a strict store reports.
type Reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// Store is an in-memory blob.Store.
type Store struct {
	reporter  Reporter              // nil: not strict
	immutable func(key string) bool // keys that are written at most once, ever
	now       func() time.Time      // for Info.Modified and StoreTime
	hasClock  bool                  // an option has set the clock

	mu      sync.Mutex // guards all below
	objects map[string]object
	deleted map[string]bool          // immutable keys that once existed
	writes  int64                    // source of tags
	changed map[string]chan struct{} // closed at the next change of the key
}

type object struct {
	data     []byte
	tag      blob.Tag
	modified time.Time
}

func (o object) read(operation, key string, limit int64) (blob.Object, error) {
	if int64(len(o.data)) > limit {
		return blob.Object{}, fmt.Errorf("%s %s: %w: %d bytes, at most %d", operation, key, blob.ErrTooLarge, len(o.data), limit)
	}
	return blob.Object{Data: bytes.Clone(o.data), Tag: o.tag}, nil
}

// Option changes how a Store behaves.
type Option func(*Store)

// Strict makes the store report to r when a key for which immutable is true is written a second
// time, also after it was deleted, or read after it was deleted. A refused Create is no write.
func Strict(r Reporter, immutable func(key string) bool) Option {
	return func(s *Store) { s.reporter, s.immutable = r, immutable }
}

// Clock gives the store a clock, for Info.Modified and StoreTime. Without it time.Now
// dates objects, and StoreTime is not supported.
func Clock(now func() time.Time) Option {
	return func(s *Store) { s.now, s.hasClock = now, true }
}

// New returns an empty store.
func New(options ...Option) *Store {
	s := &Store{
		now:       time.Now,
		immutable: func(string) bool { return false },
		objects:   map[string]object{},
		deleted:   map[string]bool{},
		changed:   map[string]chan struct{}{},
	}
	for _, option := range options {
		option(s)
	}
	return s
}

// String names the store.
func (s *Store) String() string { return "mem:" }

// StoreTime implements blob.Clock.
func (s *Store) StoreTime(context.Context) (time.Time, time.Duration, error) {
	if !s.hasClock {
		return time.Time{}, 0, errors.ErrUnsupported
	}
	return s.now(), 0, nil
}

// Get implements blob.Store.
func (s *Store) Get(ctx context.Context, key string, limit int64) (blob.Object, error) {
	if err := check(ctx, "get", key); err != nil {
		return blob.Object{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[key]
	if !ok {
		if s.deleted[key] {
			s.complain("get %s: read of an immutable object that was deleted", key)
		}
		return blob.Object{}, fmt.Errorf("get %s: %w", key, blob.ErrNotFound)
	}
	return o.read("get", key, limit)
}

// Create implements blob.Store.
func (s *Store) Create(ctx context.Context, key string, data []byte) (blob.Tag, error) {
	if err := check(ctx, "create", key); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.objects[key]; ok {
		return "", fmt.Errorf("create %s: %w", key, blob.ErrConflict)
	}
	if s.deleted[key] {
		s.complain("create %s: an immutable object of that key was written and deleted before", key)
	}
	return s.put(key, data), nil
}

// Swap implements blob.Store.
func (s *Store) Swap(ctx context.Context, key string, old blob.Tag, data []byte) (blob.Tag, error) {
	if old == "" {
		return s.Create(ctx, key, data)
	}
	if err := check(ctx, "swap", key); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if o, ok := s.objects[key]; !ok || o.tag != old {
		return "", fmt.Errorf("swap %s: %w", key, blob.ErrConflict)
	}
	if s.immutable(key) {
		s.complain("swap %s: second write to an immutable object", key)
	}
	return s.put(key, data), nil
}

// List implements blob.Store.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		if err := blob.CheckPrefix(prefix); err != nil {
			yield(blob.Info{}, fmt.Errorf("list: %w", err))
			return
		}
		for _, info := range s.infos(prefix) {
			if err := context.Cause(ctx); err != nil {
				yield(blob.Info{}, fmt.Errorf("list %s: %w", prefix, err))
				return
			}
			if !yield(info, nil) {
				return
			}
		}
	}
}

func (s *Store) infos(prefix string) []blob.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	var infos []blob.Info
	for key, o := range s.objects {
		if strings.HasPrefix(key, prefix) {
			infos = append(infos, blob.Info{Key: key, Size: int64(len(o.data)), Modified: o.modified})
		}
	}
	slices.SortFunc(infos, func(a, b blob.Info) int { return strings.Compare(a.Key, b.Key) })
	return infos
}

// Delete implements blob.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := check(ctx, "delete", key); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.objects[key]; !ok {
		return nil
	}
	delete(s.objects, key)
	if s.immutable(key) {
		s.deleted[key] = true
	}
	s.notify(key)
	return nil
}

// Watch implements blob.Store.
func (s *Store) Watch(ctx context.Context, key string, seen blob.Tag, limit int64) (blob.Object, error) {
	for {
		if err := check(ctx, "watch", key); err != nil {
			return blob.Object{}, err
		}
		o, changed := s.look(key)
		switch {
		case o.tag != seen && o.tag == "":
			return blob.Object{}, fmt.Errorf("watch %s: %w", key, blob.ErrNotFound)
		case o.tag != seen:
			return o.read("watch", key, limit)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return blob.Object{}, fmt.Errorf("watch %s: %w", key, context.Cause(ctx))
		}
	}
}

// Corrupt replaces the bytes under key behind the program's back, like a failing disk:
// without a condition, without a new tag and without a report to watchers.
func (s *Store) Corrupt(key string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[key]
	o.data = bytes.Clone(data)
	s.objects[key] = o
}

func (s *Store) look(key string) (object, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed[key] == nil {
		s.changed[key] = make(chan struct{})
	}
	return s.objects[key], s.changed[key]
}

func (s *Store) put(key string, data []byte) blob.Tag {
	s.writes++
	tag := blob.Tag(strconv.FormatInt(s.writes, 10))
	s.objects[key] = object{data: bytes.Clone(data), tag: tag, modified: s.now()}
	s.notify(key)
	return tag
}

func (s *Store) notify(key string) {
	if c := s.changed[key]; c != nil {
		close(c)
		delete(s.changed, key)
	}
}

func (s *Store) complain(format string, args ...any) {
	if s.reporter != nil {
		s.reporter.Helper()
		s.reporter.Errorf("memblob: "+format, args...)
	}
}

func check(ctx context.Context, operation, key string) error {
	if err := blob.CheckKey(key); err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("%s %s: %w", operation, key, err)
	}
	return nil
}
