// Package redislimit counts requests over all edges, in Redis.
//
// In the mode [Strict] Redis counts each request, and the count is exact. Requests that come
// while Redis is being asked wait for the next call, which counts all of them.
//
// In the mode [Lease] an edge reserves a share of what a window has left and decides by itself
// until the share is used up. Tokens that an edge does not use are lost with their window.
// Shares are an eighth of what is left, divided by the number of edges, so that little is lost.
// Without a token a request waits for Redis, but the first of a window on an edge no more than
// 5 ms: then it is allowed, and takes its token from the answer. So the sum over all edges never
// exceeds the limit, be Redis fast or slow, with one exception: if others use up the whole
// window before that first question reaches Redis, the sum is one more for each such edge.
//
// Windows are those of Redis' clock. A Redis that has not answered for 250 ms is taken for gone.
// Then an edge uses the tokens it holds and counts for itself, from the last count it knows:
// together edges then allow the limit times their number at most, and tell Redis when it is
// back, even one that has forgotten everything. A background goroutine tries Redis every second
// and returns to it. An edge starts without Redis too.
//
// All keys of a call are in one script, and so Redis must be a single server, not a cluster.
package redislimit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"gridcast/edge/limit"
	"gridcast/edge/limit/resp"
)

// Mode says how often Redis is asked.
type Mode string

// The modes.
const (
	Lease  Mode = "lease"  // for a share of what is left
	Strict Mode = "strict" // for every request
)

// Config says which Redis counts and how.
type Config struct {
	URL  string // redis://user:password@host:port/db, or rediss:// for TLS
	Mode Mode
	Log  *slog.Logger
}

// How long Redis is waited for.
const (
	patience      = 250 * time.Millisecond // afterwards it does not answer
	leasePatience = 5 * time.Millisecond   // by the first request of a window
)

// portions is into how many shares an edge divides its part of what is left.
const portions = 8

// The rhythm of the background.
const (
	beatEvery  = time.Second
	beatWithin = 500 * time.Millisecond
)

// Source makes counters that share their counts through Redis. It is safe for concurrent use.
type Source struct {
	mode    Mode
	options resp.Options
	log     *slog.Logger
	name    string // of this edge, among the others

	client atomic.Pointer[resp.Client] // nil until Redis has been reached once
	up     atomic.Bool
	late   atomic.Bool   // an answer was, and the background has not found out yet what that means
	edges  atomic.Int64  // that count in this Redis, this one included
	skew   atomic.Int64  // Redis' clock minus ours, in milliseconds
	failed chan struct{} // wakes the background

	queue  queue
	counts counts

	stop    context.CancelFunc
	running sync.WaitGroup
}

var _ limit.Source = (*Source)(nil)

// Open returns a source that is trying to reach Redis; it has tried once. Close must be called.
func Open(ctx context.Context, cfg Config) (*Source, error) {
	if cfg.Mode != Lease && cfg.Mode != Strict {
		return nil, fmt.Errorf("limits in Redis: mode %q, want %s or %s", cfg.Mode, Lease, Strict)
	}
	options, err := resp.ParseURL(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("limits in Redis: %w", err)
	}
	s := &Source{mode: cfg.Mode, options: options, log: cfg.Log, name: rand.Text(), failed: make(chan struct{}, 1), queue: newQueue()}
	s.edges.Store(1)
	s.counts = newCounts(s)
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.beat(ctx)
	s.running.Go(func() { s.run(ctx) })
	for range callers {
		s.running.Go(func() { s.serve(ctx) })
	}
	return s, nil
}

// Close lets the other edges know, and ends the background. Counters go on alone.
func (s *Source) Close() {
	s.stop()
	s.running.Wait()
	s.queue.close()
	s.up.Store(false)
	if c := s.client.Load(); c != nil {
		ctx, cancel := context.WithTimeout(context.Background(), beatWithin)
		defer cancel()
		_, _ = c.Do(ctx, "ZREM", edgesKey, s.name) // it would be forgotten anyway
		c.Close()
	}
}

// String implements [limit.Source].
func (s *Source) String() string {
	switch {
	case !s.answers():
		return "each edge for itself, because Redis does not answer"
	case s.mode == Strict:
		return "exactly over all edges, in Redis"
	default:
		return fmt.Sprintf("over %d edges, leased from Redis", s.edges.Load())
	}
}

// Counter implements [limit.Source].
func (s *Source) Counter(id string, offset int64) limit.Counter {
	return &counter{source: s, key: "gridcast:limit:" + id, offset: offset, own: limit.NewWindow(offset)}
}

// run keeps the edge among the living until ctx ends.
func (s *Source) run(ctx context.Context) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.failed:
		}
		s.beat(ctx)
	}
}

// beat tells Redis that this edge is there, and learns how many there are and what time it is.
func (s *Source) beat(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, beatWithin)
	defer cancel()
	err := s.connect(ctx)
	if err == nil {
		err = s.greet(ctx)
	}
	if ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
		return // closing
	}
	defer s.late.Store(false)
	switch was := s.up.Swap(err == nil); {
	case err != nil && was:
		s.lost(err)
	case err == nil && !was:
		s.log.Info("redis counts requests", "mode", string(s.mode), "edges", s.edges.Load())
	}
}

// connect makes a connection where there is none that is of use.
func (s *Source) connect(ctx context.Context) error {
	if c := s.client.Load(); c != nil && c.Err() == nil {
		return nil
	}
	client, err := resp.Dial(ctx, s.options)
	if err != nil {
		return err
	}
	s.client.Store(client)
	return nil
}

func (s *Source) greet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	var words resp.Words
	words.Add(edgesKey)
	words.Add(s.name)
	reply, err := greeting.Ints(ctx, s.client.Load(), 1, &words)
	if errors.Is(err, context.DeadlineExceeded) {
		s.client.Load().Close() // nobody may be at the other end any more
	}
	if err != nil {
		return fmt.Errorf("greet Redis: %w", err)
	}
	s.edges.Store(max(1, reply[0]))
	s.skew.Store(reply[1] - began.Add(time.Since(began)/2).UnixMilli())
	return nil
}

// fail notes that a call was not answered. There is no other until the background has reached
// Redis: what a late answer grants is lost, and nobody else should wait in vain.
func (s *Source) fail(err error) {
	if errors.Is(err, context.DeadlineExceeded) {
		s.late.Store(true)
	} else if s.up.Swap(false) {
		s.lost(err)
	}
	select {
	case s.failed <- struct{}{}:
	default:
	}
}

// lost notes that Redis has stopped answering.
func (s *Source) lost(err error) {
	s.counts.outages.Inc()
	s.log.Warn("redis does not answer, this edge counts for itself", "err", err)
}

// answers reports whether Redis is asked.
func (s *Source) answers() bool { return s.up.Load() && !s.late.Load() }

// inRedis is now by Redis' clock.
func (s *Source) inRedis(now time.Time) time.Time {
	return now.Add(time.Duration(s.skew.Load()) * time.Millisecond)
}
