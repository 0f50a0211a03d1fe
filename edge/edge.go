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
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"

	"gridcast/edge/adminport"
	"gridcast/edge/keys"
	"gridcast/edge/limit"
	"gridcast/edge/resident"
	"gridcast/schemas/catalog"
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
	// Builder says why the builder of the same process does not build; nil: there is none, and
	// an empty text: it does.
	Builder func() string
	// Widgets are the releases of the widget that are served, the newest first. Pages of others name
	// one by its version and its hash, so a release never changes and none is taken away.
	Widgets []Widget
	// Start says what the start page shows besides; nil: nothing. It is asked once, by a request.
	Start func() StartPage
}

// Widget is a release of the widget.
type Widget struct {
	Version string // "1.0.0"
	Module  []byte // an ES module
}

// StartPage says what the start page of a demo shows, where anybody may see the key.
type StartPage struct {
	Key     string // with which the widget asks; empty: the reader gives one
	Console string // URL of the operator's console
}

// Edge is one gateway.
type Edge struct {
	cfg       Config
	deps      Deps
	log       *slog.Logger
	keys      *keys.Follower
	versions  *versions
	downloads *downloads
	gateway   *gateway
	lane      lane // nil: the HTTP server answers everything
	metrics   *metrics

	tls         *tls.Config                 // nil: the edge does not serve TLS itself
	certificate atomic.Pointer[certificate] // nil before the edge listens, and without TLS

	stopping atomic.Bool
	look     chan struct{} // see Look
	started  chan struct{} // closed by awaitReady
	sayAfter time.Duration // of waiting, before the edge says what it waits for
}

// lane stands between the listener and the HTTP server, and answers plain requests before it.
type lane interface {
	// Listen takes the connections of a listener, and returns the listener of the server for
	// those that the lane does not answer itself. It is called once.
	Listen(net.Listener) (net.Listener, error)
	// ConnState must be the server's hook.
	ConnState(net.Conn, fasthttp.ConnState)
	// Drain lets the connections end. It is called before the server's Shutdown.
	Drain(context.Context) error
	// Open returns how many connections are open, whoever serves them.
	Open() int
}

// newLane is set where a lane is part of the program. It returns nil if the configuration does without.
var newLane func(*Edge) lane

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
		deps.Registry = adminport.NewRegistry()
	}
	files, err := descriptors()
	if err != nil {
		return nil, fmt.Errorf("edge: %w", err)
	}
	if bound := connectionBound(cfg.MaxConnections, files); bound < cfg.MaxConnections {
		deps.Log.Info("fewer connections than configured: the limit of open files is low, see ulimit -n",
			"connections", bound, "configured", cfg.MaxConnections, "open_files", files)
		cfg.MaxConnections = bound
	}
	e := &Edge{cfg: cfg, deps: deps, log: deps.Log, started: make(chan struct{}), look: make(chan struct{}, 1), sayAfter: 3 * time.Second}
	e.keys = keys.NewFollower(keys.FollowerConfig{
		Store: deps.Store, CacheDir: cfg.CacheDir, Tiers: cfg.Tiers, Limits: deps.Limits, Log: deps.Log,
	})
	e.versions = &versions{}
	e.downloads = &downloads{
		store: deps.Store, log: deps.Log, patient: cfg.WriteTimeout, wake: make(chan struct{}, 1), wanted: e.versions.bulk,
		most: mostSending, slowest: slowestClient,
	}
	if cfg.CacheDir != "" {
		e.downloads.folder = filepath.Join(cfg.CacheDir, "downloads")
	}
	e.metrics = newMetrics(deps.Registry, cfg.Tiers.Names(), e)
	pages, err := newPages(e)
	if err != nil {
		return nil, fmt.Errorf("edge: %w", err)
	}
	e.gateway = &gateway{
		keys:      e.keys,
		versions:  e.versions,
		pages:     pages,
		downloads: e.downloads,
		anonymous: limit.NewAnonymous(cfg.AnonymousLimit, cfg.AnonymousSlots),
		proxies:   cfg.TrustedProxies,
		clock:     deps.Clock,
		raceTime:  deps.RaceTime,
		metrics:   e.metrics,
		log:       deps.Log,
	}
	for i := range catalog.Endpoints {
		if fields := resident.Deprecation(&catalog.Endpoints[i]); fields != nil {
			if e.gateway.deprecated == nil {
				e.gateway.deprecated = map[int][]resident.Field{}
			}
			e.gateway.deprecated[i] = fields
		}
	}
	if c, ok := deps.Limits.(prometheus.Collector); ok {
		deps.Registry.MustRegister(c)
	}
	if cfg.TLSCert != "" {
		e.tls = e.tlsConfig()
	}
	if newLane != nil {
		e.lane = newLane(e)
	}
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
	group.Go(func() error { return e.downloads.run(following) })
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

// awaitReady closes the channel of Started. Until then it says what the edge waits for, once for
// each reason.
func (e *Edge) awaitReady(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var said string
	for began := time.Now(); e.Ready() != nil; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		if why := e.Ready(); why != nil && !e.stopping.Load() && why.Error() != said && time.Since(began) > e.sayAfter {
			said = why.Error()
			e.warnWaiting(said)
		}
	}
	e.log.Info("edge ready", "version", e.Status().Version)
	close(e.started)
	return nil
}

// warnWaiting says what is missing and which command brings it.
func (e *Edge) warnWaiting(why string) {
	problem, command := e.keys.Health().Problem, "gridcast keys create --name NAME --tier standard --store "+e.deps.Store.String()
	if e.keys.Table() != nil {
		status := e.Status()
		problem, command = status.StoreProblem, "gridcast build --store "+e.deps.Store.String()
		if status.Refused != nil {
			problem = status.Refused.Reason
		}
	}
	if problem == "" {
		problem = "the store has none"
	}
	e.log.Warn("edge waits, requests are answered 503", "why", why, "problem", problem, "if_it_was_never_made", command)
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

// server is something that Run runs and stops.
type server struct {
	serve    func() error // returns nil once it is shut down
	shutdown func(context.Context) error
}

// listen opens the listeners, so that Run fails at once if an address is taken.
func (e *Edge) listen() ([]server, error) {
	listener := e.deps.Listener
	if listener == nil {
		opened, err := net.Listen("tcp", e.cfg.Listen)
		if err != nil {
			return nil, fmt.Errorf("listen for the API: %w", err)
		}
		listener = opened
	}
	api, err := e.apiServer(listener)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	e.log.Info("edge listens", "address", listener.Addr().String(), "tls", e.cfg.TLSCert != "")
	if e.cfg.AdminListen == "" {
		return []server{api}, nil
	}
	admin, err := e.adminServer()
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return []server{api, admin}, nil
}

// apiServer serves the API on the listener.
func (e *Edge) apiServer(listener net.Listener) (server, error) {
	s := e.httpServer()
	listener, err := e.accepting(retrying(listener, e.log), s)
	if err != nil {
		return server{}, err
	}
	return server{
		serve: func() error {
			if err := s.Serve(listener); err != nil && !e.stopping.Load() {
				return fmt.Errorf("serve the API: %w", err)
			}
			return nil
		},
		shutdown: func(ctx context.Context) error {
			e.gateway.closing.Store(true)
			var err error
			open := func() int { return int(s.GetOpenConnectionsCount()) }
			if e.lane != nil {
				err, open = e.lane.Drain(ctx), e.lane.Open
			}
			if err == nil {
				err = s.ShutdownWithContext(ctx)
			}
			// Serve may not have begun when Shutdown came: this ends it as soon as it does.
			_ = listener.Close()
			if err != nil && !errors.Is(err, net.ErrClosed) {
				return fmt.Errorf("drain the API: %d connections still open: %w", open(), err)
			}
			return nil
		},
	}, nil
}

// accepting returns what the server accepts from: the listener with TLS, with the express lane
// before the server, or as it is.
func (e *Edge) accepting(listener net.Listener, s *fasthttp.Server) (net.Listener, error) {
	if e.tls != nil {
		certificate, err := newCertificate(e.cfg.TLSCert, e.cfg.TLSKey, e.tls, e.log)
		if err != nil {
			return nil, err
		}
		e.certificate.Store(certificate)
	}
	if e.lane != nil {
		s.ConnState = func(c net.Conn, state fasthttp.ConnState) {
			if c, ok := c.(*recorded); ok {
				e.lane.ConnState(c.Conn, state)
			}
		}
		handedOff, err := e.lane.Listen(listener)
		return recorder{handedOff}, err
	}
	// Beyond Concurrency fasthttp answers in plain text, so connections wait before it.
	listener = netutil.LimitListener(listener, e.cfg.MaxConnections)
	if e.tls != nil {
		listener = tls.NewListener(listener, e.tls)
	}
	return recorder{listener}, nil
}

// tlsConfig is the configuration of TLS. The certificate is loaded when the edge listens.
func (e *Edge) tlsConfig() *tls.Config {
	cfg := &tls.Config{
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return e.certificate.Load().get(hello) },
		NextProtos:     []string{"http/1.1"},
		MinVersion:     tls.VersionTLS12,
		// Responses are short: to begin with small records would only cost more of them.
		DynamicRecordSizingDisabled: true,
	}
	// Whoever learns a ticket's key could read recordings of TLS 1.2, not those of TLS 1.3.
	without := cfg.Clone()
	without.SessionTicketsDisabled = true
	cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if slices.Contains(hello.SupportedVersions, tls.VersionTLS13) {
			return nil, nil //nolint:nilnil // cfg itself
		}
		return without, nil
	}
	return cfg
}

// httpServer is the configuration of fasthttp.
func (e *Edge) httpServer() *fasthttp.Server {
	return &fasthttp.Server{
		Name:         "gridcast",
		Handler:      e.gateway.handle,
		ErrorHandler: e.gateway.handleHTTPError,
		Concurrency:  e.cfg.MaxConnections + 1,

		ReadTimeout:  e.cfg.ReadTimeout,
		WriteTimeout: e.cfg.WriteTimeout,
		IdleTimeout:  e.cfg.IdleTimeout,

		ReadBufferSize:     e.cfg.MaxHeaderBytes,
		WriteBufferSize:    32 << 10, // a response in one write: the largest bodies are compressed
		MaxRequestBodySize: e.cfg.MaxBodyBytes,

		DisablePreParseMultipartForm: true,
		NoDefaultContentType:         true,
		SecureErrorLogMessage:        true, // requests carry keys
		Logger:                       debugLog{e.log},
	}
}

// debugLog takes what fasthttp says about connections that end badly, which clients do.
type debugLog struct{ log *slog.Logger }

func (d debugLog) Printf(format string, args ...any) {
	d.log.Debug("http server", "message", fmt.Sprintf(format, args...))
}
