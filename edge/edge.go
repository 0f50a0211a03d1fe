// Package edge is the gateway: it answers the public API from a published version in memory.
//
// The path of a request asks no builder, storage or upstream, takes no lock and allocates nothing.
// The edge finds a key by its hash and counts it in one atomic word. The response has been finished
// since its version was loaded. [gateway.serve] is that path, in the order of the contract.
//
// Beside it, an [Edge] follows versions and keys in the store. It refuses a faulty one and
// goes on with the last good one.
package edge

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"

	"gridcast/edge/adminport"
	"gridcast/edge/keys"
	"gridcast/edge/limit"
	"gridcast/edge/resident"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/uptime"
)

// Deps holds the program's values for an edge.
type Deps struct {
	Store blob.Store
	Log   *slog.Logger
	// RaceTime converts an instant to race time, for the countdown; nil: they are the same.
	RaceTime func(actual time.Time) time.Time
	// Clock is the clock of limits and of the expiry of keys; nil: real time.
	Clock func() time.Time
	// Limits makes the counters of the keys; nil: limit.Memory.
	Limits limit.Source
	// Listener is the listener of the API; nil: Run opens Config.Listen.
	Listener net.Listener
	// Admin is the listener of metrics and profiles; nil: Run opens Config.AdminListen.
	Admin net.Listener
	// Registry takes the edge's metrics, and the admin listener shows it; nil: a new
	// one with the metrics of the Go runtime and the process.
	Registry *prometheus.Registry
	// Release is the release of the program, for /status.
	Release string
	// Builder returns the fault of the builder in the same process, empty if it builds; nil: there is no
	// builder.
	Builder func() string
	// Downloads makes the files of seasons; nil: the edge answers requests for them with 503.
	Downloads Downloads
	// Widgets are the served releases of the widget, the newest first. Other sites' pages name
	// a release by its version and its hash, so a release never changes and none is removed.
	Widgets []Widget
	// Start returns the additions to the start page; nil: none. The edge calls it once, in a request.
	Start func() StartPage
}

// Widget is a release of the widget.
type Widget struct {
	Version string // such as "1.0.0"
	Module  []byte // an ES module
}

func (w Widget) path() string { return "/widget/" + w.Version + "/gridcast.js" }

// StartPage holds the additions to the start page of a demo, where the key is public.
type StartPage struct {
	Key     string // the widget's key; empty: the reader gives one
	Console string // URL of the operator's console
}

// Edge is one gateway.
type Edge struct {
	cfg     Config
	deps    Deps
	log     *slog.Logger
	keys    *keys.Follower
	real    *world
	sandbox *world // empty while the store has no sandbox
	slots   *slots // of the downloads of both
	gateway *gateway
	metrics *metrics

	uptime atomic.Pointer[measured] // never nil

	tls         *tls.Config                 // nil: the edge has no TLS
	certificate atomic.Pointer[certificate] // nil before the edge listens, and without TLS

	instance string     // see UsageDocument
	began    time.Time  // New was called then
	counting sync.Mutex // serialises Usage, and guards answered
	answered int64      // answers of Usage

	stopping  atomic.Bool
	started   chan struct{} // closed by awaitReady
	warnAfter time.Duration // wait before the edge logs the reason for waiting
	firstLook time.Duration // serveAtLatest
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
		deps.Registry = adminport.NewRegistry("unknown", "unknown")
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
	e := &Edge{cfg: cfg, deps: deps, log: deps.Log, started: make(chan struct{}), warnAfter: 3 * time.Second, firstLook: serveAtLatest, instance: rand.Text(), began: time.Now()}
	following := keys.FollowerConfig{
		Store: deps.Store, CacheDir: cfg.CacheDir, Tiers: cfg.Tiers, Limits: deps.Limits, Log: deps.Log, Trust: cfg.TrustKeys,
	}
	if !cfg.Trust.Empty() {
		following.Fresh = func(ctx context.Context) string {
			ctx, cancel := context.WithTimeout(ctx, serveAtLatest)
			defer cancel()
			fresh, _ := snapshots.ReadFresh(ctx, deps.Store, cfg.Trust)
			return fresh.Keys
		}
	}
	e.keys = keys.NewFollower(following)
	e.slots = &slots{most: mostSending, slowest: slowestClient, patient: cfg.WriteTimeout}
	e.real, e.sandbox = newWorld(e, false), newWorld(e, true)
	e.uptime.Store(newMeasured(&uptime.Log{}))
	e.metrics = newMetrics(deps.Registry, cfg.Tiers.Names(), e)
	e.gateway = &gateway{
		keys:      e.keys,
		real:      e.real,
		sandbox:   e.sandbox,
		pages:     newPages(e),
		tier:      slices.Index(cfg.Tiers.Names(), keys.Sandbox),
		public:    limit.NewAnonymous(cfg.Tiers[keys.Sandbox], cfg.AnonymousSlots),
		anonymous: limit.NewAnonymous(cfg.AnonymousLimit, cfg.AnonymousSlots),
		proxies:   cfg.TrustedProxies,
		clock:     deps.Clock,
		raceTime:  e.raceTime,
		metrics:   e.metrics,
		log:       deps.Log,
	}
	if c, ok := deps.Limits.(prometheus.Collector); ok {
		deps.Registry.MustRegister(c)
	}
	if cfg.TLSCert != "" {
		e.tls = e.tlsConfig()
	}
	return e, nil
}

// Run serves until ctx ends: then it stops being ready, waits Config.DrainDelay, accepts no
// more and lets the connections end for Config.DrainTimeout. It then returns nil, also if connections are still open:
// they end with the process. It must be called once.
func (e *Edge) Run(ctx context.Context) error {
	api, admin, err := e.listen()
	if err != nil {
		return err
	}
	// Following goes on while connections drain, so that the last response is current too.
	following, stopFollowing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopFollowing()
	group, ended := errgroup.WithContext(ctx)
	group.Go(func() error { return e.keys.Run(following) })
	group.Go(func() error { return e.follow(following, e.real) })
	group.Go(func() error { return e.real.downloads.run(following) })
	if e.gateway.tier >= 0 { // else there are no keys for it
		group.Go(func() error { e.followSandbox(following); return nil })
		group.Go(func() error { return e.sandbox.downloads.run(following) })
	}
	group.Go(func() error { return e.awaitReady(following) })
	group.Go(func() error { e.followUptime(following); return nil })
	if c := e.certificate.Load(); c != nil {
		group.Go(func() error { c.follow(following); return nil })
	}
	group.Go(func() error {
		e.awaitFirstLook(ended)
		return api.serve()
	})
	if admin != nil {
		group.Go(func() error { return adminport.Serve(following, admin, e.adminPages()) })
	}
	group.Go(func() error {
		<-ended.Done()
		defer stopFollowing()
		return e.stop(api)
	})
	return group.Wait()
}

// Ready returns nil if the edge answers requests with data, otherwise the reason. /readyz shows it.
func (e *Edge) Ready() error {
	switch {
	case e.stopping.Load():
		return errors.New("stopping")
	case e.keys.Table() == nil:
		return errors.New("no keys loaded yet")
	case e.real.current() == nil:
		return errors.New("no version loaded yet")
	}
	return nil
}

// raceTime converts an instant of real time to the race time of a set, nil before the first version.
func (e *Edge) raceTime(set *resident.Set, actual time.Time) time.Time {
	if set != nil && !set.Clock().IsSystem() {
		return set.Clock().Race(actual)
	}
	return e.deps.RaceTime(actual)
}

// Started returns a channel that is closed when the edge has been ready for the first time.
func (e *Edge) Started() <-chan struct{} { return e.started }

const (
	// serveAtLatest bounds the wait for a storage that does not answer.
	serveAtLatest = 2 * time.Second
	// copyAtLatest bounds the wait for the copy on disk. A proxy waits as long for an answer.
	copyAtLatest = 10 * time.Second
)

// awaitFirstLook waits until keys and version have been loaded, from the copy or the store, or looking for them has
// failed once. Clients wait meanwhile, so that a restarted edge refuses none of them while it loads. A busy machine may
// take longer than serveAtLatest to load the copy, so that bound does not end the wait for it.
func (e *Edge) awaitFirstLook(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, copyAtLatest)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	hasSandbox := e.gateway.tier >= 0
	opened := func() bool {
		return e.keys.Opened() && e.real.opened.Load() && (!hasSandbox || e.sandbox.opened.Load() || e.sandbox.absent.Load())
	}
	looked := func() bool {
		return e.keys.Health() != (keys.Health{}) && e.real.looked() && (!hasSandbox || e.sandbox.looked())
	}
	for began := time.Now(); !opened() || !looked() && time.Since(began) < e.firstLook; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// awaitReady closes the channel of Started. Until then it logs each missing part once, and once more when it is known
// why it is missing.
func (e *Edge) awaitReady(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var logged string
	for began := time.Now(); e.Ready() != nil; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		if why := e.Ready(); why != nil && !e.stopping.Load() && time.Since(began) > e.warnAfter {
			problem, command := e.missing()
			if said := fmt.Sprint(why, problem == unread); said != logged {
				logged = said
				e.log.Warn("edge waits, requests are answered 503", "why", why, "problem", problem, "remedy", command+" --store '"+e.deps.Store.String()+"'")
			}
		}
	}
	e.log.Info("edge ready", "version", e.Status().Version)
	close(e.started)
	return nil
}

// unread is the problem of a part that the store has not answered about.
const unread = "it is still being read"

// missing returns why the edge waits, and the command that helps. An edge only reads, so it advises nobody to build: another
// process may build that very moment, or publish to another store.
func (e *Edge) missing() (problem, command string) {
	health, status := e.keys.Health(), e.Status()
	withoutKeys := e.keys.Table() == nil
	switch {
	case withoutKeys && health.Problem != "":
		problem = health.Problem
	case !withoutKeys && status.Refused != nil:
		problem = status.Refused.Reason
	case !withoutKeys && status.StoreProblem != "":
		problem = status.StoreProblem
	case withoutKeys && health.Current.IsZero(), !withoutKeys && e.real.confirmed.Load() == nil:
		problem = unread
	case withoutKeys:
		return "the store has no list of API keys yet", "gridcast keys create --name NAME --tier standard"
	default:
		problem = "the store has no version yet: the first build of its scheduler publishes one"
	}
	return problem, "gridcast doctor edge"
}

// stop drains the server of the API.
func (e *Edge) stop(api server) error {
	e.stopping.Store(true)
	e.log.Info("edge stops", "delay", e.cfg.DrainDelay, "deadline", e.cfg.DrainTimeout)
	if e.cfg.DrainDelay > 0 {
		time.Sleep(e.cfg.DrainDelay)
	}
	deadline, cancel := context.WithTimeout(context.Background(), e.cfg.DrainTimeout)
	defer cancel()
	return api.shutdown(deadline)
}

// server is the server of the API, which Run starts and stops.
type server struct {
	serve    func() error // returns nil once it is shut down
	shutdown func(context.Context) error
}

// listen opens the listeners, so that Run fails at once if an address is in use. Without an admin port admin is nil.
func (e *Edge) listen() (api server, admin net.Listener, err error) {
	listener := e.deps.Listener
	if listener == nil {
		// Idle connections end before a keep-alive of TCP would find a dead client, and each costs four system calls.
		withoutKeepAlive := net.ListenConfig{KeepAlive: -1}
		if listener, err = withoutKeepAlive.Listen(context.Background(), "tcp", e.cfg.Listen); err != nil {
			return server{}, nil, fmt.Errorf("listen for the API: %w; choose another address with --listen", err)
		}
	}
	// Open the admin port first, so that a fault there accepts no connection of the API.
	if admin = e.deps.Admin; admin == nil && e.cfg.AdminListen != "" {
		if admin, err = adminport.Open(context.Background(), e.cfg.AdminListen); err != nil {
			return server{}, nil, errors.Join(err, listener.Close())
		}
	}
	if admin != nil {
		e.log.Info("edge shows metrics", "address", admin.Addr().String())
	}
	if api, err = e.apiServer(listener); err != nil {
		if admin != nil {
			err = errors.Join(err, admin.Close())
		}
		return server{}, nil, errors.Join(err, listener.Close())
	}
	e.log.Info("edge listens", "address", listener.Addr().String(), "tls", e.cfg.TLSCert != "")
	return api, admin, nil
}

func (e *Edge) apiServer(listener net.Listener) (server, error) {
	s := e.httpServer()
	if e.tls != nil {
		certificate, err := newCertificate(e.cfg.TLSCert, e.cfg.TLSKey, e.tls, e.log)
		if err != nil {
			return server{}, err
		}
		e.certificate.Store(certificate)
	}
	accepting := newAcceptor(retryListener{listener, e.log}, e.tls, e.cfg.MaxConnections, e.slack())
	return server{
		serve: func() error {
			if err := s.Serve(accepting); err != nil && !e.stopping.Load() {
				return fmt.Errorf("serve the API: %w", err)
			}
			return nil
		},
		shutdown: func(ctx context.Context) error {
			e.gateway.closing.Store(true)
			err := s.ShutdownWithContext(ctx)
			// Shutdown may come before Serve; then this ends Serve as soon as it starts.
			_ = accepting.Close()
			if err == nil {
				err = accepting.drained(ctx)
			}
			switch {
			case errors.Is(err, context.DeadlineExceeded): // their clients had the time, so this is no failure
				e.log.Warn("edge cuts connections at the drain deadline", "connections", accepting.connections())
			case err != nil && !errors.Is(err, net.ErrClosed):
				return fmt.Errorf("drain the API: %w", err)
			}
			return nil
		},
	}, nil
}

// tlsConfig returns the TLS configuration. The certificate is loaded when the edge listens.
func (e *Edge) tlsConfig() *tls.Config {
	cfg := &tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return e.certificate.Load().pair.Load(), nil },
		NextProtos:     []string{"http/1.1"},
		MinVersion:     tls.VersionTLS12,
		// Of TLS 1.2 only suites with forward secrecy and without CBC; those of TLS 1.3 are fixed.
		CipherSuites: []uint16{
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
			tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		},
		// Responses are short, so small first records would only cost more of them.
		DynamicRecordSizingDisabled: true,
	}
	// A leaked ticket key opens recordings of TLS 1.2, but not of TLS 1.3.
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

// slack is the time by which a connection may end too late.
func (e *Edge) slack() time.Duration {
	return min(time.Second, e.cfg.ReadTimeout/10, e.cfg.WriteTimeout/10, e.cfg.IdleTimeout/10)
}

func (e *Edge) httpServer() *fasthttp.Server {
	return &fasthttp.Server{
		Name:         "gridcast",
		Handler:      e.gateway.handle,
		ErrorHandler: e.gateway.handleHTTPError,
		ConnState: func(c net.Conn, state fasthttp.ConnState) {
			if c, ok := c.(*connection); ok && state == fasthttp.StateClosed {
				c.end()
			}
		},
		// Beyond Concurrency fasthttp answers in plain text, so the acceptor holds fewer connections.
		Concurrency: e.cfg.MaxConnections + 1,

		ReadTimeout:  e.cfg.ReadTimeout,
		WriteTimeout: e.cfg.WriteTimeout,
		IdleTimeout:  e.cfg.IdleTimeout,

		ReadBufferSize:     e.cfg.MaxHeaderBytes,
		WriteBufferSize:    32 << 10, // a response in one write: the largest bodies are compressed
		MaxRequestBodySize: e.cfg.MaxBodyBytes,

		ReduceMemoryUsage: true, // see connection
		LazyRequestTime:   true,

		DisablePreParseMultipartForm: true,
		NoDefaultContentType:         true,
		SecureErrorLogMessage:        true, // requests carry keys
		Logger:                       debugLog{e.log},
	}
}

// debugLog takes fasthttp's messages about connections that clients end badly.
type debugLog struct{ log *slog.Logger }

func (d debugLog) Printf(format string, args ...any) {
	d.log.Debug("http server", "message", fmt.Sprintf(format, args...))
}
