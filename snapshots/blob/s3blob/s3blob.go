// Package s3blob is a blob.Store in a bucket of any S3-compatible server that honours
// conditional writes: If-None-Match * for Create, If-Match for Swap. Call CheckConditions
// once before trusting a server.
//
// An object is stored under the prefix and its key, without metadata of gridcast; a tag is the
// server's ETag. The store repeats failed requests, with growing and random pauses, until the
// deadline of the operation. It repeats a conditional write too, under its condition. If
// the condition then fails, one of its own lost attempts may be the reason, so the outcome
// is blob.ErrUnknown instead of blob.ErrConflict.
package s3blob

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"

	"gridcast/snapshots/blob"
	"gridcast/snapshots/retry"
)

var (
	_ blob.Store = (*Store)(nil)
	_ blob.Clock = (*Store)(nil)
)

// The defaults of Config.
const (
	defaultDeadline = 20 * time.Second
	defaultAttempt  = 10 * time.Second
	defaultPoll     = time.Second
)

// Store is a bucket, or a part of one.
type Store struct {
	config Config
	core   minio.Core
	date   *atomic.Pointer[date] // of the latest answer

	mu   sync.Mutex      // guards seen
	seen map[string]look // the keys that Watch was called with
}

// look is the instant of the last answer to a read of an object, and its tag.
type look struct {
	at  time.Time
	tag blob.Tag
}

// New returns the store that c describes. It sends nothing yet.
func New(c Config) (*Store, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("bucket %s: %w", c.Bucket, err)
	}
	c.Deadline, c.Attempt, c.Poll = cmp.Or(c.Deadline, defaultDeadline), cmp.Or(c.Attempt, defaultAttempt), cmp.Or(c.Poll, defaultPoll)
	transport, err := c.transport()
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", c.Bucket, err)
	}
	host, secure, err := c.server()
	if err != nil {
		return nil, err
	}
	latest := &atomic.Pointer[date]{}
	client, err := minio.New(host, &minio.Options{
		Creds: c.credentials(), Secure: secure, Region: c.Region, Transport: witness{transport, latest},
		BucketLookup: lookups[c.Addressing],
		MaxRetries:   1, // this package retries, because it knows the effect of a repeated write
	})
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", c.Bucket, err)
	}
	client.SetAppInfo("gridcast", "1")
	return &Store{config: c, core: minio.Core{Client: client}, date: latest, seen: map[string]look{}}, nil
}

// String names the store.
func (s *Store) String() string {
	name := "s3://" + s.config.Bucket
	if s.config.Prefix != "" {
		name += "/" + s.config.Prefix
	}
	if s.config.Endpoint != "" {
		name += "?endpoint=" + s.config.Endpoint
	}
	return name
}

// Get implements blob.Store.
func (s *Store) Get(ctx context.Context, key string, limit int64) (blob.Object, error) {
	return s.get(ctx, call{operation: "get", on: key}, minio.GetObjectOptions{}, limit)
}

func (s *Store) get(ctx context.Context, c call, options minio.GetObjectOptions, limit int64) (blob.Object, error) {
	if err := blob.CheckKey(c.on); err != nil {
		return blob.Object{}, fmt.Errorf("%s: %w", c.operation, err)
	}
	var o blob.Object
	err := s.retry(ctx, c, func(ctx context.Context) error {
		body, info, _, err := s.core.GetObject(ctx, s.config.Bucket, s.name(c.on), options)
		if err != nil {
			return err
		}
		defer func() { _ = body.Close() }()
		// The transport reports an error if the server sends less than it stated.
		o.Data, err = blob.ReadAll(body, info.Size, limit)
		o.Tag = blob.Tag(info.ETag)
		return err
	})
	if err != nil {
		return blob.Object{}, err
	}
	s.note(c.on, look{time.Now(), o.Tag})
	return o, nil
}

// note remembers a read of a watched key.
func (s *Store) note(key string, l look) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, watched := s.seen[key]; watched {
		s.seen[key] = l
	}
}

// Create implements blob.Store.
func (s *Store) Create(ctx context.Context, key string, data []byte) (blob.Tag, error) {
	var options minio.PutObjectOptions
	options.SetMatchETagExcept("*")
	return s.put(ctx, "create", key, data, options)
}

// Swap implements blob.Store.
func (s *Store) Swap(ctx context.Context, key string, old blob.Tag, data []byte) (blob.Tag, error) {
	if old == "" {
		return s.Create(ctx, key, data)
	}
	var options minio.PutObjectOptions
	options.SetMatchETag(string(old))
	return s.put(ctx, "swap", key, data, options)
}

func (s *Store) put(ctx context.Context, operation, key string, data []byte, options minio.PutObjectOptions) (blob.Tag, error) {
	if err := blob.CheckKey(key); err != nil {
		return "", fmt.Errorf("%s: %w", operation, err)
	}
	options.ContentType = "application/octet-stream"
	// The hash in the signature lets the server refuse a body that was damaged on its way.
	// The other way, chunks signed one by one, leaves traces in the metadata of some servers.
	options.DisableContentSha256 = true
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	var tag blob.Tag
	err := s.retry(ctx, call{operation: operation, on: key, write: true, conditional: true}, func(ctx context.Context) error {
		info, err := s.core.PutObject(ctx, s.config.Bucket, s.name(key), bytes.NewReader(data), int64(len(data)), "", digest, options)
		tag = blob.Tag(info.ETag)
		return err
	})
	if err != nil {
		return "", err
	}
	return tag, nil
}

// Delete implements blob.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := blob.CheckKey(key); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return s.retry(ctx, call{operation: "delete", on: key, write: true}, func(ctx context.Context) error {
		err := s.core.RemoveObject(ctx, s.config.Bucket, s.name(key), minio.RemoveObjectOptions{})
		if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
			return nil
		}
		return err
	})
}

// name is the name in the bucket of the object under key. key may be the prefix of a listing.
func (s *Store) name(key string) string {
	if s.config.Prefix == "" {
		return key
	}
	return s.config.Prefix + "/" + key
}

// lookDeadline bounds one poll of Watch, so that its caller soon learns of an outage.
const lookDeadline = 3 * time.Second

// Watch implements blob.Store by a conditional read each second, because some servers do not deliver
// notifications, and others can lose them. If this store has read the object less
// than a second ago, the first poll waits until that second is over, because requests cost money.
func (s *Store) Watch(ctx context.Context, key string, seen blob.Tag, limit int64) (blob.Object, error) {
	c := call{operation: "watch", on: key, deadline: min(lookDeadline, s.config.Deadline)}
	var options minio.GetObjectOptions
	if seen != "" {
		if err := options.SetMatchETagExcept(string(seen)); err != nil {
			return blob.Object{}, fmt.Errorf("watch %s: %w", key, err)
		}
	}
	s.mu.Lock()
	last := s.seen[key]
	s.seen[key] = last // from now on note records reads of it
	s.mu.Unlock()
	for ask := seen == "" || last.tag != seen; ; ask = true {
		if ask {
			o, err := s.get(ctx, c, options, limit)
			last.at = time.Now()
			switch {
			case err == nil && o.Tag != seen:
				return o, nil
			case err == nil, errors.Is(err, blob.ErrNotFound) && seen == "":
			case errors.Is(err, errUnmodified):
				s.note(key, look{last.at, seen})
			default:
				return blob.Object{}, err
			}
		}
		jitter := s.config.Poll / 10
		if !retry.Sleep(ctx, time.Until(last.at.Add(s.config.Poll-jitter+rand.N(2*jitter+1)))) { //nolint:gosec // G404: jitter
			return blob.Object{}, fmt.Errorf("watch %s in %s: %w", key, s, context.Cause(ctx))
		}
	}
}

// List implements blob.Store. It repeats a failed page, after the last yielded key.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		if err := blob.CheckPrefix(prefix); err != nil {
			yield(blob.Info{}, fmt.Errorf("list: %w", err))
			return
		}
		for after := ""; ; {
			page, err := s.page(ctx, prefix, after)
			if err != nil {
				yield(blob.Info{}, err)
				return
			}
			before := after
			for _, info := range page {
				key, ours := strings.CutPrefix(info.Key, s.name(""))
				if !ours || !strings.HasPrefix(key, prefix) {
					yield(blob.Info{}, fmt.Errorf("list %s in %s: the server lists %q, which was not asked for", prefix, s, info.Key))
					return
				}
				info.Key, after = key, key
				if !yield(info, nil) {
					return
				}
			}
			if len(page) < pageSize {
				return
			}
			if after <= before {
				yield(blob.Info{}, fmt.Errorf("list %s in %s: the server repeats the keys up to %q", prefix, s, after))
				return
			}
		}
	}
}

// pageSize is the number of objects in one request: the most that S3 allows.
const pageSize = 1000

// page returns the next objects after a key, by their names in the bucket; fewer than pageSize are the last.
func (s *Store) page(ctx context.Context, prefix, after string) ([]blob.Info, error) {
	options := minio.ListObjectsOptions{Prefix: s.name(prefix), Recursive: true, MaxKeys: pageSize, FetchOwner: new(false)}
	if after != "" {
		options.StartAfter = s.name(after)
	}
	var page []blob.Info
	err := s.retry(ctx, call{operation: "list", on: cmp.Or(prefix, "all objects")}, func(ctx context.Context) error {
		page = page[:0]
		for object := range s.core.ListObjectsIter(ctx, s.config.Bucket, options) {
			if object.Err != nil {
				return object.Err
			}
			page = append(page, blob.Info{Key: object.Key, Size: object.Size, Modified: object.LastModified})
			if len(page) == pageSize {
				return nil
			}
		}
		return ctx.Err()
	})
	return page, err
}

// CheckConditions probes the server (see blob.Probe) and refuses one that does not honour conditional
// writes. In an empty store, where the first start is, writers race, too. The check is less patient than other
// operations, because an operator is waiting for the start of the program.
func (s *Store) CheckConditions(ctx context.Context) error {
	var err error
	for range probes {
		if err = s.probeInTime(ctx); !errors.Is(err, blob.ErrUnknown) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("check %s: %w", s, err)
	}
	return nil
}

// probes is the number of attempts while answers are lost.
const probes = 3

// probeTime bounds one try, and raceTime one with a race.
const (
	probeTime = 5 * time.Second
	raceTime  = 30 * time.Second
)

func (s *Store) probeInTime(ctx context.Context) error {
	within, rounds := raceTime, blob.Rounds
	for _, err := range s.List(ctx, "") {
		if err != nil {
			return err
		}
		within, rounds = probeTime, 0
		break
	}
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("not done within %v", within))
	defer cancel()
	return blob.Probe(ctx, s, rounds).Err()
}
