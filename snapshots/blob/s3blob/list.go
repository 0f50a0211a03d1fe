package s3blob

import (
	"context"
	"fmt"
	"iter"

	"github.com/minio/minio-go/v7"

	"gridcast/snapshots/blob"
)

// List implements blob.Store. A page that fails is asked for again, after the last key that
// was yielded.
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
			for _, info := range page {
				if !yield(info, nil) {
					return
				}
				after = info.Key
			}
			if len(page) < pageSize {
				return
			}
		}
	}
}

// pageSize is what one request lists: the most that S3 allows.
const pageSize = 1000

// page returns the next objects after a key; fewer than pageSize are the last.
func (s *Store) page(ctx context.Context, prefix, after string) ([]blob.Info, error) {
	options := minio.ListObjectsOptions{Prefix: s.under(prefix), Recursive: true, MaxKeys: pageSize, FetchOwner: new(false)}
	if after != "" {
		options.StartAfter = s.name(after)
	}
	var page []blob.Info
	err := s.retry(ctx, call{operation: "list", on: prefix}, func(ctx context.Context) error {
		page = page[:0]
		for object := range s.core.ListObjectsIter(ctx, s.config.Bucket, options) {
			if object.Err != nil {
				return object.Err
			}
			page = append(page, blob.Info{Key: object.Key[len(s.under("")):], Size: object.Size, Modified: object.LastModified})
			if len(page) == pageSize {
				return nil
			}
		}
		return ctx.Err()
	})
	return page, err
}

// under is name for the prefix of a listing, which may be empty.
func (s *Store) under(prefix string) string {
	if s.config.Prefix == "" {
		return prefix
	}
	return s.config.Prefix + "/" + prefix
}
