package s3blob

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"gridcast/snapshots/blob"
)

// ErrUnconditional means that the server ignores a condition on which gridcast's safety rests.
var ErrUnconditional = errors.New("server does not honour conditional writes")

// CheckConditions tests, with an object of its own that it removes, whether the server
// honours If-None-Match and If-Match. It refuses a server that accepts a write against its condition
// with ErrUnconditional and the name of the header. The check is less patient than
// other operations, because an operator is waiting for the start of the program.
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

// probeTime bounds one try.
const probeTime = 5 * time.Second

func (s *Store) probeInTime(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, probeTime, fmt.Errorf("not done within %v", probeTime))
	defer cancel()
	return s.probe(ctx)
}

func (s *Store) probe(ctx context.Context) error {
	key := blob.ProbeFolder + rand.Text()
	tag, err := s.Create(ctx, key, []byte("one"))
	if errors.Is(err, blob.ErrUnknown) {
		_ = s.Delete(ctx, key) // the object may exist anyway; if this fails, a prune finds it
		return err
	}
	if err != nil {
		return err
	}
	err = errors.Join(s.checkCreate(ctx, key), s.checkSwap(ctx, key, tag), s.checkSwapOfNothing(ctx, key+"-nothing"))
	return errors.Join(err, s.Delete(ctx, key))
}

func (s *Store) checkCreate(ctx context.Context, key string) error {
	_, err := s.Create(ctx, key, []byte("two"))
	return expectRefusal(err, "If-None-Match: *", "replaced an object that exists")
}

func (s *Store) checkSwap(ctx context.Context, key string, tag blob.Tag) error {
	fresh, err := s.Swap(ctx, key, tag, []byte("three"))
	if errors.Is(err, blob.ErrConflict) {
		return errors.New("If-Match: the server refused the tag it had just given")
	}
	if err != nil {
		return fmt.Errorf("If-Match: %w", err)
	}
	if fresh == tag {
		return fmt.Errorf("the server gave two contents the tag %s", tag)
	}
	_, err = s.Swap(ctx, key, tag, []byte("four"))
	return expectRefusal(err, "If-Match", "replaced an object that had another tag")
}

func (s *Store) checkSwapOfNothing(ctx context.Context, key string) error {
	_, err := s.Swap(ctx, key, "0123456789abcdef0123456789abcdef", []byte("five"))
	refusal := expectRefusal(err, "If-Match", "wrote an object that did not exist")
	if err == nil {
		return errors.Join(refusal, s.Delete(ctx, key))
	}
	return refusal
}

// expectRefusal converts the outcome of a write with a false condition into the outcome
// of the check.
func expectRefusal(err error, header, did string) error {
	switch {
	case err == nil:
		return fmt.Errorf("%w: %s ignored, it %s", ErrUnconditional, header, did)
	case errors.Is(err, blob.ErrConflict):
		return nil
	}
	return fmt.Errorf("%s: %w", header, err)
}
