package s3blob

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gridcast/snapshots/blob"
)

// CheckConditions probes the server (see blob.Probe) and refuses one that does not honour conditional
// writes. The check is less patient than other operations, because an operator is waiting for the start of
// the program.
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
	return blob.Probe(ctx, s).Err()
}
