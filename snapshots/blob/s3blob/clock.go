package s3blob

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// date is a reading of the server's clock, which shows whole seconds. Both other instants are
// this machine's, with their monotonic part.
type date struct {
	at              time.Time // the server wrote this at some time between
	asked, answered time.Time
}

// maxDateAge is the life of a reading, for which two clocks run side by side.
const maxDateAge = 30 * time.Second

// maxWait is the longest transfer of a usable reading, and maxSet the largest difference between wall and
// monotonic clock before this machine's clock counts as set since.
const (
	maxWait = time.Second
	maxSet  = time.Second
)

// StoreTime implements blob.Clock by the Date of the latest answer. If that is old, it requests
// the bucket. Its error is up to a second, plus half the time of the answer.
func (s *Store) StoreTime(ctx context.Context) (time.Time, time.Duration, error) {
	d := s.date.Load()
	if d == nil || !d.fresh(time.Now()) {
		before := d
		err := s.retry(ctx, call{operation: "ask for the time", on: s.config.Bucket}, func(ctx context.Context) error {
			_, err := s.core.BucketExists(ctx, s.config.Bucket)
			return err
		})
		// Every answer has a date, also a refusal.
		if d = s.date.Load(); d == nil || d == before {
			if err == nil {
				err = fmt.Errorf("ask for the time in %s: the answer has no Date: %w", s, errors.ErrUnsupported)
			}
			return time.Time{}, 0, err
		}
	}
	at, within := d.now(time.Now())
	return at, within, nil
}

// fresh reports whether the reading is still usable at now.
func (d *date) fresh(now time.Time) bool {
	monotonic, wall := now.Sub(d.asked), now.Round(0).Sub(d.asked.Round(0))
	return d.answered.Sub(d.asked) <= maxWait && monotonic <= maxDateAge && (wall-monotonic).Abs() <= maxSet
}

// now returns the middle of the server's possible clock readings at now, and the distance to its ends.
func (d *date) now(now time.Time) (at time.Time, within time.Duration) {
	earliest := d.at.Add(now.Sub(d.answered))
	latest := d.at.Add(time.Second).Add(now.Sub(d.asked))
	within = latest.Sub(earliest) / 2
	return earliest.Add(within), within
}
