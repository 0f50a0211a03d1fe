// Package redislimit counts requests over all edges, in Redis: in a single server, under
// Sentinel or in a cluster, depending on the URL (see [Config]).
//
// # What both modes have in common
//
// Redis' clock gives the windows. For each key Redis holds the number of a window and its
// count; a script changes both in one step. Requests of a key that arrive during a question
// about that key wait for the next question, which counts all of them; questions about
// different keys travel together. Each question has a number, which its answer repeats: the answer to another question
// counts as none, and ends the connections.
//
// A question without an answer after 250 ms has failed, and so have all others until Redis is known to answer
// again. A background goroutine finds that out within about two seconds. Meanwhile the edge counts for itself, from
// the last known count, so that each edge allows the limit at most. When Redis is back, the edge reports the
// requests that it allowed without it. An edge starts without Redis too. In a cluster each edge counts for itself
// the keys of a missing server, and all keys if that server has gridcast:edges, by which edges know of each other.
//
// After a flush, a restart or a failover without all writes Redis has lost its counts. Each edge's
// next question then restores the count of that edge's last answer. Tokens given to other edges since
// then are allowed once more. One flush costs little; twenty in half a minute made 3,951 of 3,000 when
// leased and 3,178 when strict. The sum never exceeds the limit times the number of edges.
//
// A jump of Redis' clock costs at most two minutes: a stored window that is more than one
// ahead of now began while the clock was wrong, and is ignored.
//
// # Lease
//
// In the mode [Lease] an edge reserves a share of the window's remaining requests, and decides alone
// until the share is used up: nearly every request costs as much as in memory. A share is an
// eighth of the rest, divided by the number of edges, and at least the need of the waiting
// requests. Shares become smaller towards the end of the limit, so few tokens are lost when an edge
// does not use them before the window ends. The sum over all edges is the limit, or a few
// less where several edges use a key at once.
//
// The first request of a window on an edge waits no more than 5 ms for its share. Then it is
// allowed, and takes its token from the answer. If others use up the whole window before that
// question reaches Redis, the sum is one more for each such edge. Otherwise it does not exceed
// the limit while Redis answers and keeps its counts.
//
// The number of edges counts those with a sign of life within 5 s. While it is wrong, shares
// are smaller or larger than necessary; the sum stays right.
//
// # Strict
//
// In the mode [Strict] Redis counts each request, and the sum is exactly the limit while Redis
// answers and keeps its counts. Each request waits for Redis: a round trip, and up to another one
// if another question about the key is running. The rate of one key does not depend on
// Redis, because all its waiting requests are one question. The rate of all keys does: a script
// takes Redis about 10 µs, so 100,000 questions a second fill one server. Choose it where one
// request beyond the limit costs more than that.
package redislimit

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gridcast/edge/limit"
)

// Mode is the way of asking Redis.
type Mode string

// The modes.
const (
	Lease  Mode = "lease"  // for a share of the rest
	Strict Mode = "strict" // for every request
)

// Config names the Redis and the mode.
type Config struct {
	// URL is redis://user:password@host:port/db, with rediss:// for TLS. More servers of a
	// cluster follow as ?addr=host:port&addr=…; a cluster is recognised by itself. With
	// ?master_set=NAME the addresses are those of sentinels. The user needs the keys gridcast:*
	// and the commands evalsha, eval, time, hmget, hset, expire, zadd, zremrangebyscore, zcard and
	// zrem; for another database select, in a cluster asking and cluster|slots.
	URL string
	// PasswordFile holds the password of the user, instead of the URL. It is read for each connection, so that a new
	// password needs no restart; empty: none.
	PasswordFile string
	// RootCAs are the certificates that those of the servers are checked against; nil: the
	// system's.
	RootCAs *x509.CertPool
	Mode    Mode
	Log     *slog.Logger

	timeout time.Duration // with an answer; zero: callTimeout
}

// The waits for Redis.
const (
	callTimeout  = 250 * time.Millisecond // then the question has failed
	firstTimeout = 5 * time.Millisecond   // for the first request of a window in lease mode
	closeTimeout = 500 * time.Millisecond // to deregister
	dialTimeout  = 500 * time.Millisecond // for each address
)

var beatInterval = time.Second // tests shorten it

// portions is the number of shares into which an edge divides its part of the rest.
const portions = 8

// Source makes counters that share their counts through Redis. It is safe for concurrent use.
type Source struct {
	prometheus.Collector // of the metrics

	mode   Mode
	client *client
	log    *slog.Logger
	name   string // of this edge, among the others

	answering atomic.Bool   // whether edges ask Redis; false from a failure to the next good beat
	edges     atomic.Int64  // edges that count in this Redis, this one included
	skew      atomic.Int64  // Redis' clock minus ours, in milliseconds
	failed    chan struct{} // wakes the background
	down      bool          // the last beat failed; owned by the background
	metrics   sourceMetrics

	ctx     context.Context // ends with Close
	stop    context.CancelFunc
	running sync.WaitGroup
	mu      sync.RWMutex // guards closed, and running against an Add after Close
	closed  bool
}

var _ limit.Source = (*Source)(nil)

// client returns the client that the configuration asks for.
func (cfg Config) client() (*client, error) {
	if cfg.Mode != Lease && cfg.Mode != Strict {
		return nil, fmt.Errorf("limits in Redis: mode %q, want %s or %s", cfg.Mode, Lease, Strict)
	}
	s, err := parse(cfg.URL, cfg.RootCAs)
	if err != nil {
		return nil, err
	}
	if s.passwordFile = cfg.PasswordFile; s.passwordFile != "" && s.password != "" {
		return nil, errors.New("limits in Redis: want the password in the URL or in a file, not in both")
	}
	if _, _, err := s.credentials(context.Background()); err != nil {
		return nil, fmt.Errorf("password of Redis: %w", err)
	}
	return newClient(s, cmp.Or(cfg.timeout, callTimeout)), nil
}

// checkKey is the key under which Check counts. Redis forgets it after two minutes.
const checkKey = "gridcast:check"

// Check tests whether an edge with this configuration can count in Redis: whether Redis answers,
// and allows the user both scripts. It returns the lead of Redis' clock over this machine's.
func Check(ctx context.Context, cfg Config) (ahead time.Duration, err error) {
	client, err := cfg.client()
	if err != nil {
		return 0, err
	}
	defer client.close()
	name := rand.Text()
	_, ahead, err = client.register(ctx, name)
	if err != nil {
		return 0, err
	}
	if _, err := client.do(ctx, "zrem", edgesKey, name); err != nil {
		return 0, fmt.Errorf("take leave of Redis: %w", err)
	}
	if _, err := reservation.run(ctx, client, 3, checkKey, 0, 0, 1, 1, -1, 0, -1, 0); err != nil {
		return 0, fmt.Errorf("count in Redis: %w", err)
	}
	return ahead, nil
}

// Open returns a source and tries once to reach Redis; the source goes on trying. Call Close.
func Open(ctx context.Context, cfg Config) (*Source, error) {
	client, err := cfg.client()
	if err != nil {
		return nil, err
	}
	s := &Source{mode: cfg.Mode, client: client, log: cfg.Log, name: rand.Text(), failed: make(chan struct{}, 1)}
	s.edges.Store(1)
	s.metrics, s.Collector = newMetrics(s)
	s.ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.beat() // beat logs it if Redis does not answer
	if !s.down {
		s.log.Info("redis counts requests", "mode", string(s.mode), "edges", s.edges.Load())
	}
	s.running.Go(s.run)
	return s, nil
}

// Close deregisters the edge and ends the background. Counters go on alone.
func (s *Source) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.running.Wait()
	if s.answering.Swap(false) {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		_, _ = s.client.do(ctx, "zrem", edgesKey, s.name) // Redis would forget it anyway
	}
	s.client.close()
}

// start runs f, and Close waits for its return; after Close it reports false.
func (s *Source) start(f func()) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return false
	}
	s.running.Go(f)
	return true
}

// String implements [limit.Source].
func (s *Source) String() string {
	switch {
	case !s.answering.Load():
		return "each edge for itself, because Redis does not answer"
	case s.mode == Strict:
		return "exactly over all edges, in Redis"
	default:
		return fmt.Sprintf("over %d edges, leased from Redis", s.edges.Load())
	}
}

// Fault implements [limit.Source].
func (s *Source) Fault() string {
	if s.answering.Load() {
		return ""
	}
	return "Redis does not answer: each edge counts requests for itself"
}

// Counter implements [limit.Source].
func (s *Source) Counter(id string, offset int64) limit.Counter {
	return &counter{source: s, key: "gridcast:limit:" + id, offset: offset, local: limit.NewWindow(offset)}
}

// run registers the edge again and again until Close.
func (s *Source) run() {
	tick := time.NewTicker(beatInterval)
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		case <-s.failed:
		}
		s.beat()
	}
}

// beat registers this edge in Redis, and reads the number of edges and Redis' time.
// Its outcome decides whether edges ask Redis until the next beat.
func (s *Source) beat() {
	ctx, cancel := context.WithTimeout(s.ctx, s.client.timeout)
	defer cancel()
	edges, ahead, err := s.client.register(ctx, s.name)
	if s.ctx.Err() != nil {
		return // Close is running
	}
	if err == nil {
		s.edges.Store(max(1, edges))
		s.skew.Store(ahead.Milliseconds())
	}
	s.answering.Store(err == nil)
	switch {
	case err != nil && !s.down:
		s.metrics.outages.Inc()
		s.log.Warn("redis does not answer, this edge counts for itself", "err", err)
	case err == nil && s.down:
		s.log.Info("redis counts requests", "mode", string(s.mode), "edges", s.edges.Load())
	}
	s.down = err != nil
}

// register registers an edge. It returns the number of edges, and the lead of Redis' clock over this machine's.
func (c *client) register(ctx context.Context, edge string) (edges int64, ahead time.Duration, err error) {
	began := time.Now()
	reply, err := registration.run(ctx, c, 2, edgesKey, edge)
	if err != nil {
		return 0, 0, fmt.Errorf("register at Redis: %w", err)
	}
	return reply[0], time.UnixMilli(reply[1]).Sub(began.Add(time.Since(began) / 2)), nil
}

// reserve asks Redis for the tokens of a call.
func (s *Source) reserve(c *counter, q *call) error {
	if !s.answering.Load() {
		return errors.New("redis does not answer")
	}
	ctx, cancel := context.WithDeadline(s.ctx, q.started.Add(s.client.timeout))
	defer cancel()
	divisor := int64(0)
	if s.mode == Lease {
		divisor = portions * s.edges.Load()
	}
	reset, count := c.local.Latest()
	reply, err := reservation.run(ctx, s.client, 3, c.key,
		divisor, c.offset, int64(q.perMinute), int64(q.wanted),
		c.window(reset), int64(count), q.unreported.window, int64(q.unreported.n))
	if err != nil {
		if errors.Is(err, errShifted) {
			s.log.Warn("redis gave this edge the answer to another question, connections are replaced", "err", err)
		}
		if s.ctx.Err() == nil {
			s.metrics.failed.Inc()
			s.fail()
		}
		return fmt.Errorf("ask Redis: %w", err)
	}
	s.metrics.answered.Inc()
	q.window, q.granted, q.count = reply[0], int(reply[1]), int(reply[2])
	return nil
}

// fail stops asking until the background has reached Redis. A late answer's tokens are lost,
// and no other request should wait in vain.
func (s *Source) fail() {
	s.answering.Store(false)
	select {
	case s.failed <- struct{}{}:
	default:
	}
}

// inRedis converts now to Redis' clock.
func (s *Source) inRedis(now time.Time) time.Time {
	return now.Add(time.Duration(s.skew.Load()) * time.Millisecond)
}
