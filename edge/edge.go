// Package edge is the gateway: it answers the public API from a published version in memory.
//
// On the path of a request nothing is asked of the builder, the storage or an upstream, no
// lock is taken and nothing is allocated: a key is found by its hash, counted in one atomic
// word, and the response has been finished since its version was loaded. [gateway.serve] is
// that path, in the order of the contract.
//
// Beside it, an [Edge] follows versions and keys in the store, and refuses what is not sound
// while it goes on with the last that was.
package edge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"gridcast/edge/express"
	"gridcast/edge/keys"
	"gridcast/edge/limit"
	"gridcast/snapshots/blob"
)

// Deps is what an edge is given by the program.
type Deps struct {
	Store blob.Store
	Log   *slog.Logger
	// RaceTime converts an instant to race time, in which the countdown runs; nil: they are
	// the same.
	RaceTime func(actual time.Time) time.Time
	// Clock is the clock of limits and of the expiry of keys; nil: real time.
	Clock func() time.Time
	// Limits makes the counters of the keys; nil: limit.Memory.
	Limits limit.Source
	// Listener is where the API is served; nil: Config.Listen is opened by Run.
	Listener net.Listener
	// Registry takes the edge's metrics and is what the admin listener shows; nil: a new
	// one with the metrics of the Go runtime and the process.
	Registry *prometheus.Registry
}

// Edge is one gateway.
type Edge struct {
	cfg      Config
	deps     Deps
	log      *slog.Logger
	keys     *keys.Follower
	versions *versions
	gateway  *gateway
	lane     *express.Lane
	metrics  *metrics

	stopping atomic.Bool
	started  chan struct{} // closed by awaitReady
}

// New checks the configuration and returns an edge that does nothing yet.
func New(cfg Config, deps Deps) (*Edge, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("edge configuration: %w", err)
	}
	if deps.Store == nil || deps.Log == nil {
		return nil, errors.New("edge: store and log are required")
	}
	if deps.RaceTime == nil {
		deps.RaceTime = func(actual time.Time) time.Time { return actual }
	}
	if deps.Limits == nil {
		deps.Limits = limit.Memory{}
	}
	if deps.Registry == nil {
		deps.Registry = newRegistry()
	}
	e := &Edge{cfg: cfg, deps: deps, log: deps.Log, started: make(chan struct{})}
	e.keys = keys.NewFollower(deps.Store, cfg.CacheDir, cfg.Tiers, deps.Limits, deps.Log)
	e.versions = &versions{}
	e.metrics = newMetrics(deps.Registry, cfg.Tiers.Names(), e)
	public, err := newPublic(e)
	if err != nil {
		return nil, fmt.Errorf("edge: %w", err)
	}
	e.gateway = &gateway{
		keys:      e.keys,
		versions:  e.versions,
		public:    public,
		anonymous: limit.NewAnonymous(cfg.AnonymousLimit, cfg.AnonymousSlots),
		proxies:   cfg.TrustedProxies,
		clock:     deps.Clock,
		raceTime:  deps.RaceTime,
		metrics:   e.metrics,
		log:       deps.Log,
	}
	if c, ok := deps.Limits.(prometheus.Collector); ok {
		deps.Registry.MustRegister(c)
	}
	e.lane = e.newLane()
	e.metrics.registerLane(deps.Registry, e.lane)
	return e, nil
}

// Run serves until ctx ends: then it stops being ready, waits Config.DrainDelay, accepts no
// more and lets the connections end for Config.DrainTimeout. It returns nil after a clean end.
// It must be called once.
func (e *Edge) Run(ctx context.Context) error {
	serving, err := e.listen()
	if err != nil {
		return err
	}
	// Following goes on while connections drain: the last response is as good as the first.
	following, stopFollowing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopFollowing()
	group, ended := errgroup.WithContext(ctx)
	group.Go(func() error { return e.keys.Run(following) })
	group.Go(func() error { return e.followVersions(following) })
	group.Go(func() error { return e.awaitReady(following) })
	for _, server := range serving {
		group.Go(server.serve)
	}
	group.Go(func() error {
		<-ended.Done()
		defer stopFollowing()
		return e.stop(serving)
	})
	return group.Wait()
}

// Ready returns nil if requests are answered with data, else why not. It is what /readyz says.
func (e *Edge) Ready() error {
	switch {
	case e.stopping.Load():
		return errors.New("stopping")
	case e.keys.Table() == nil:
		return errors.New("no keys loaded yet")
	case e.versions.current() == nil:
		return errors.New("no version loaded yet")
	}
	return nil
}

// Started returns a channel that is closed when the edge has been ready for the first time.
func (e *Edge) Started() <-chan struct{} { return e.started }

// awaitReady closes the channel of Started.
func (e *Edge) awaitReady(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for e.Ready() != nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
	e.log.Info("edge ready", "version", e.Status().Version)
	close(e.started)
	return nil
}

// stop drains the servers.
func (e *Edge) stop(serving []server) error {
	e.stopping.Store(true)
	e.log.Info("edge stops", "delay", e.cfg.DrainDelay, "deadline", e.cfg.DrainTimeout)
	if e.cfg.DrainDelay > 0 {
		time.Sleep(e.cfg.DrainDelay)
	}
	deadline, cancel := context.WithTimeout(context.Background(), e.cfg.DrainTimeout)
	defer cancel()
	errs := make([]error, 0, len(serving))
	for _, server := range serving {
		errs = append(errs, server.shutdown(deadline))
	}
	return errors.Join(errs...)
}
