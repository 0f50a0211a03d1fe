package blob

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
)

// ErrUnconditional means that a store ignores a condition that gridcast's safety rests on, or refuses a write
// although its condition holds.
var ErrUnconditional = errors.New("server does not honour conditional writes")

// Probed is the outcome of a probe. A nil error means that the store passed; an error about a condition names
// the header that carries it.
type Probed struct {
	Write  error // the right to write; if it lacks, nothing else was probed
	Create error // Create refuses to replace an object
	Swap   error // Swap replaces exactly the object with the given tag
	Delete error // the right to delete
}

// Err joins the faults.
func (p Probed) Err() error { return errors.Join(p.Write, p.Create, p.Swap, p.Delete) }

// Probe tests, with an object of its own that it removes, the right to write to a store and both conditions
// of a write. A condition that the store does not honour is an ErrUnconditional.
func Probe(ctx context.Context, s Store) Probed {
	key := ProbeFolder + rand.Text()
	tag, err := s.Create(ctx, key, []byte("one"))
	if err != nil {
		if errors.Is(err, ErrUnknown) {
			_ = s.Delete(ctx, key) // the object may exist anyway; if this fails, a prune finds it
		}
		return Probed{Write: err}
	}
	return Probed{
		Create: probeCreate(ctx, s, key),
		Swap:   errors.Join(probeSwap(ctx, s, key, tag), probeSwapOfNothing(ctx, s, key+"-nothing")),
		Delete: s.Delete(ctx, key),
	}
}

func probeCreate(ctx context.Context, s Store, key string) error {
	_, err := s.Create(ctx, key, []byte("two"))
	return expectRefusal(err, "If-None-Match: *", "replaced an object that exists")
}

func probeSwap(ctx context.Context, s Store, key string, tag Tag) error {
	fresh, err := s.Swap(ctx, key, tag, []byte("three"))
	switch {
	case errors.Is(err, ErrConflict):
		return fmt.Errorf("%w: If-Match: it refused the tag it had just given", ErrUnconditional)
	case err != nil:
		return fmt.Errorf("If-Match: %w", err)
	case fresh == tag:
		return fmt.Errorf("%w: If-Match: it gave two contents the tag %s", ErrUnconditional, tag)
	}
	_, err = s.Swap(ctx, key, tag, []byte("four"))
	return expectRefusal(err, "If-Match", "replaced an object that had another tag")
}

func probeSwapOfNothing(ctx context.Context, s Store, key string) error {
	_, err := s.Swap(ctx, key, "0123456789abcdef0123456789abcdef", []byte("five"))
	refusal := expectRefusal(err, "If-Match", "wrote an object that did not exist")
	if err == nil {
		return errors.Join(refusal, s.Delete(ctx, key))
	}
	return refusal
}

// expectRefusal converts the outcome of a write with a false condition into the outcome of the probe.
func expectRefusal(err error, header, did string) error {
	switch {
	case err == nil:
		return fmt.Errorf("%w: %s ignored, it %s", ErrUnconditional, header, did)
	case errors.Is(err, ErrConflict):
		return nil
	}
	return fmt.Errorf("%s: %w", header, err)
}
