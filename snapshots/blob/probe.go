package blob

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
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
	Race   error // of simultaneous writes under one condition, one wins; nil, too, after a fault above
	Delete error // the right to delete
}

// Err joins the faults.
func (p Probed) Err() error { return errors.Join(p.Write, p.Create, p.Swap, p.Race, p.Delete) }

// Probe tests, with an object of its own that it removes, the right to write to a store and both conditions
// of a write. A condition that the store does not honour is an ErrUnconditional. If rounds is not 0, Probe also lets
// writers race for that many rounds, because some servers look at a condition before another write is done.
func Probe(ctx context.Context, s Store, rounds int) Probed {
	key := ProbeFolder + rand.Text()
	tag, err := s.Create(ctx, key, []byte("one"))
	if err != nil {
		_ = s.Delete(ctx, key) // the object may exist anyway; if this fails, a prune finds it
		return Probed{Write: err}
	}
	p := Probed{
		Create: probeCreate(ctx, s, key),
		Swap:   errors.Join(probeSwap(ctx, s, key, tag), probeSwapOfNothing(ctx, s, key+"-nothing")),
		Delete: s.Delete(ctx, key),
	}
	for round := 0; round < rounds && p.Err() == nil; round++ {
		p.Race = probeRace(ctx, s, key+"-race-"+strconv.Itoa(round))
	}
	return p
}

// Rounds is the number of rounds in which writers race: a fault that shows in one of two rounds is missed once in a
// thousand probes. Racers is the number of writers.
const (
	Rounds = 10
	racers = 6
)

// probeRace lets writers make an object at once, and then replace it at once. The object must hold the content of
// the only winner each time.
func probeRace(ctx context.Context, s Store, key string) error {
	tag, err := race(ctx, s, key, "If-None-Match: *", "made", func(content []byte) (Tag, error) { return s.Create(ctx, key, content) })
	if err == nil && tag != "" {
		_, err = race(ctx, s, key, "If-Match", "replaced", func(content []byte) (Tag, error) { return s.Swap(ctx, key, tag, content) })
	}
	return errors.Join(err, s.Delete(ctx, key))
}

// race lets writers write at once, each over a connection of its own. It returns the tag of the object. The tag is
// empty if no answer of a winner arrived.
func race(ctx context.Context, s Store, key, header, done string, write func([]byte) (Tag, error)) (Tag, error) {
	contents, tags, errs := make([][]byte, racers), make([]Tag, racers), make([]error, racers)
	start := make(chan struct{})
	var running sync.WaitGroup
	for i := range racers {
		contents[i] = fmt.Appendf(nil, "%s by writer %d", done, i)
		running.Go(func() {
			<-start
			tags[i], errs[i] = write(contents[i])
		})
	}
	close(start)
	running.Wait()
	winner, won, unknown := -1, 0, 0
	for i, err := range errs {
		switch {
		case err == nil:
			winner = i
			won++
		case errors.Is(err, ErrUnknown):
			unknown++
		case !errors.Is(err, ErrConflict):
			return "", fmt.Errorf("%s, %d writers at once: %w", header, racers, err)
		}
	}
	switch {
	case won > 1:
		return "", fmt.Errorf("%w under load: %s: %d of %d simultaneous writers were told that they %s the object, so all but one lost their write",
			ErrUnconditional, header, won, racers, done)
	case won+unknown == 0:
		return "", fmt.Errorf("%w under load: %s: all of %d simultaneous writers were refused", ErrUnconditional, header, racers)
	case won == 0:
		return "", nil
	}
	o, err := s.Get(ctx, key, MaxDocument)
	switch {
	case err != nil:
		return "", fmt.Errorf("read after %d writers at once: %w", racers, err)
	case !bytes.Equal(o.Data, contents[winner]):
		return "", fmt.Errorf("%w under load: %s: an acknowledged write is lost, the object holds %.40q", ErrUnconditional, header, o.Data)
	}
	return tags[winner], nil
}

func probeCreate(ctx context.Context, s Store, key string) error {
	_, err := s.Create(ctx, key, []byte("two"))
	return expectRefusal(err, "If-None-Match: *", "replaced an object that exists")
}

func probeSwap(ctx context.Context, s Store, key string, tag Tag) error {
	fresh, err := s.Swap(ctx, key, tag, []byte("three"))
	switch {
	case errors.Is(err, ErrConflict):
		return fmt.Errorf("%w: If-Match: it refused the tag it had just given; a proxy in front may change the ETag", ErrUnconditional)
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
