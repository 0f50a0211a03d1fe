package s3blob

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/minio/minio-go/v7"

	"gridcast/snapshots/blob"
)

// lookDeadline bounds one look of Watch, so that its caller soon learns of an outage.
const lookDeadline = 3 * time.Second

// Watch implements blob.Store by a conditional read each second: the notifications that some
// servers offer are not delivered by others, and can be lost.
func (s *Store) Watch(ctx context.Context, key string, seen blob.Tag) (blob.Object, error) {
	c := call{operation: "watch", on: key, deadline: min(lookDeadline, s.config.Deadline)}
	var options minio.GetObjectOptions
	if seen != "" {
		if err := options.SetMatchETagExcept(string(seen)); err != nil {
			return blob.Object{}, fmt.Errorf("watch %s: %w", key, err)
		}
	}
	for {
		o, err := s.get(ctx, c, options)
		switch {
		case err == nil && o.Tag != seen:
			return o, nil
		case err == nil, errors.Is(err, errUnmodified), errors.Is(err, blob.ErrNotFound) && seen == "":
		default:
			return blob.Object{}, err
		}
		jitter := s.config.Poll / 10
		if !wait(ctx, s.config.Poll-jitter+rand.N(2*jitter+1)) { //nolint:gosec // G404: jitter
			return blob.Object{}, fmt.Errorf("watch %s in %s: %w", key, s, context.Cause(ctx))
		}
	}
}
