package redislimit

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"gridcast/edge/limit/resp"
)

// callers is how many calls may be under way: Redis has work while answers are handed out, and
// a slow network is used better.
const callers = 4

var errDown = errors.New("redis does not answer")

// serve makes calls, one after the other, until ctx ends.
func (s *Source) serve(ctx context.Context) {
	var words resp.Words
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.queue.ready:
		}
		for {
			runtime.Gosched() // whoever is about to join, joins
			c := s.queue.next()
			if c == nil {
				break
			}
			s.queue.finish(c, s.call(ctx, c, &words))
		}
	}
}

// call asks Redis, and notes its answers in the groups.
func (s *Source) call(ctx context.Context, c *call, words *resp.Words) error {
	client := s.client.Load()
	if client == nil || !s.answers() {
		return errDown
	}
	ctx, cancel := context.WithDeadline(ctx, c.begun.Add(patience))
	defer cancel()
	var reply []int64
	err := ctx.Err() // it may have waited too long for its turn
	if err == nil {
		s.write(c, words)
		reply, err = reservation.Ints(ctx, client, len(c.groups), words)
	}
	if err == nil && len(reply) != 3*len(c.groups) {
		err = fmt.Errorf("got %d numbers for %d keys", len(reply), len(c.groups))
	}
	if errors.Is(err, context.Canceled) {
		return errDown // closing
	}
	if err != nil {
		s.counts.failed.Inc()
		s.fail(err)
		return fmt.Errorf("ask Redis: %w", err)
	}
	s.counts.answered.Inc()
	for i := range c.groups {
		r := reply[3*i:]
		c.groups[i].answer = answer{window: r[0], granted: int(r[1]), count: int(r[2])}
	}
	return nil
}

// write puts the call into words, as the script wants them.
func (s *Source) write(c *call, words *resp.Words) {
	words.Reset()
	for i := range c.groups {
		words.Add(c.groups[i].counter.key)
	}
	divisor := int64(0)
	if s.mode == Lease {
		divisor = portions * s.edges.Load()
	}
	words.AddInt(divisor)
	for i := range c.groups {
		g := &c.groups[i]
		window, count := g.counter.known.load()
		for _, n := range [...]int64{
			g.counter.offset, int64(g.perMinute), int64(g.wanted), window, int64(count), g.debt.window, int64(g.debt.n),
		} {
			words.AddInt(n)
		}
	}
}
