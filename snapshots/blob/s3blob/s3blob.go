// Package s3blob is a blob.Store in a bucket of any S3-compatible server that honours
// conditional writes: If-None-Match * for Create, If-Match for Swap. Call CheckConditions
// once before trusting a server.
//
// An object is stored under the prefix and its key, with no metadata of ours; a tag is the
// server's ETag. Requests that fail are repeated, with growing and random pauses, until the
// deadline of the operation. A conditional write is repeated too, under its condition; when
// the condition then fails, one of our own lost attempts may be the reason, and the outcome
// is blob.ErrUnknown instead of blob.ErrConflict.
package s3blob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"github.com/minio/minio-go/v7"

	"gridcast/snapshots/blob"
)

var _ blob.Store = (*Store)(nil)

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
}

// New returns the store that c describes. It sends nothing yet.
func New(c Config) (*Store, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("bucket %s: %w", c.Bucket, err)
	}
	orDefault(&c.Deadline, defaultDeadline)
	orDefault(&c.Attempt, defaultAttempt)
	orDefault(&c.Poll, defaultPoll)
	transport, err := c.transport()
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", c.Bucket, err)
	}
	host, secure, err := c.server()
	if err != nil {
		return nil, err
	}
	client, err := minio.New(host, &minio.Options{
		Creds: c.credentials(), Secure: secure, Region: c.Region, Transport: witness{transport},
		BucketLookup: lookups[c.Addressing],
		MaxRetries:   1, // retries are ours: they know what a repeated write may do
	})
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", c.Bucket, err)
	}
	client.SetAppInfo("gridcast", "1")
	return &Store{config: c, core: minio.Core{Client: client}}, nil
}

func orDefault(d *time.Duration, value time.Duration) {
	if *d <= 0 {
		*d = value
	}
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

// MakeBucket makes the bucket, unless it is there and ours already.
func (s *Store) MakeBucket(ctx context.Context) error {
	return s.retry(ctx, call{operation: "make bucket", on: s.config.Bucket}, func(ctx context.Context) error {
		err := s.core.MakeBucket(ctx, s.config.Bucket, minio.MakeBucketOptions{Region: s.config.Region})
		if code := minio.ToErrorResponse(err).Code; code == minio.BucketAlreadyOwnedByYou {
			return nil
		}
		return err
	})
}

// Get implements blob.Store.
func (s *Store) Get(ctx context.Context, key string) (blob.Object, error) {
	return s.get(ctx, call{operation: "get", on: key}, minio.GetObjectOptions{})
}

func (s *Store) get(ctx context.Context, c call, options minio.GetObjectOptions) (blob.Object, error) {
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
		o.Tag = blob.Tag(info.ETag)
		if info.Size < 0 { // the server did not say
			o.Data, err = io.ReadAll(body)
			return err
		}
		o.Data = make([]byte, info.Size)
		_, err = io.ReadFull(body, o.Data)
		return err
	})
	if err != nil {
		return blob.Object{}, err
	}
	return o, nil
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

// name is the name in the bucket of the object under key.
func (s *Store) name(key string) string {
	if s.config.Prefix == "" {
		return key
	}
	return s.config.Prefix + "/" + key
}
