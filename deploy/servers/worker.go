package servers

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gridcast/builder"
	"gridcast/builder/ledger"
	"gridcast/deploy/console"
	"gridcast/deploy/flags"
	"gridcast/deploy/operator"
	"gridcast/deploy/sandbox"
	"gridcast/deploy/service"
	"gridcast/deploy/terminal"
	"gridcast/deploy/usage"
	"gridcast/edge/adminport"
	"gridcast/edge/keys"
	"gridcast/scheduler"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/clock"
	"gridcast/snapshots/notes"
	"gridcast/snapshots/retry"
)

// operatorPort serves the console. It listens from the start of the process; until the service runs it
// answers with the reason.
type operatorPort struct {
	listener net.Listener
	token    *flags.Token
	worker   *worker        // of the process
	observer *observer      // of POST /live; nil: nobody may send observations
	signKeys *notes.Signers // for the list of API keys; nil: it is not signed
	console  atomic.Pointer[console.Console]
	handler  atomic.Pointer[http.Handler] // of the console
}

// listen opens the operator's port of a process, which may have local edges. It returns nil if the
// flags disable the port.
func listen(ctx context.Context, f *flags.Console, w *worker, local ...console.Edge) (*operatorPort, error) {
	w.asked = slices.Concat(local, console.Remotes(f.Edges))
	if f.OperatorListen == "" {
		return nil, nil //nolint:nilnil // the methods of a nil port do nothing
	}
	token, err := f.Token()
	if err != nil {
		return nil, err
	}
	observations, err := f.LiveToken()
	if err != nil {
		return nil, err
	}
	p := &operatorPort{token: token, worker: w}
	if observations != nil {
		p.observer = &observer{token: observations}
	}
	if p.signKeys, err = f.KeySigners(); err != nil {
		return nil, err
	}
	if p.listener, err = adminport.Listen(ctx, f.OperatorListen); err != nil {
		return nil, fmt.Errorf("listen for operators on %s: %w; choose another address with --operator-listen", f.OperatorListen, err)
	}
	if address, ok := p.listener.Addr().(*net.TCPAddr); ok && !address.IP.IsLoopback() {
		w.streams.Log.Warn("the operator's port is not on loopback; have a proxy before it speak TLS", "address", address)
	}
	return p, nil
}

// open serves the console of a running service.
func (p *operatorPort) open(ctx context.Context, running *service.Service) error {
	w := p.worker
	actions, err := running.Operator(ctx, w.tiers)
	if err != nil {
		return err
	}
	actions.SignKeys = p.signKeys
	page, err := console.New(console.Config{
		Token: p.token.Value, Operator: actions, Log: w.streams.Log, Speed: w.clock.Speed(), Release: w.streams.Version, Address: p.listener.Addr(), Edges: w.asked,
		Sources: running.Sources, Problem: w.trouble, Usage: w.usage.Report,
	})
	if err != nil {
		return err
	}
	if p.observer != nil {
		p.observer.operator.Store(actions)
	}
	handler := page.Handler()
	p.console.Store(page)
	p.handler.Store(&handler)
	return nil
}

// ServeHTTP answers /healthz, /readyz, which is good while versions are built, observations, and the console.
func (p *operatorPort) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	handler := p.handler.Load()
	switch {
	case r.URL.Path == "/healthz", r.URL.Path == "/readyz" && handler != nil && p.worker.started.Load():
		_, _ = w.Write([]byte("ok\n")) // a client that has gone needs no answer
		return
	case r.URL.Path == "/readyz":
		http.Error(w, "versions are not built; the log and the console say why", http.StatusServiceUnavailable)
		return
	case p.observer != nil && r.URL.Path == "/live" && r.Method == http.MethodPost:
		p.observer.ServeHTTP(w, r)
		return
	case handler != nil:
		(*handler).ServeHTTP(w, r)
		return
	}
	w.Header().Set("Retry-After", "1")
	http.Error(w, "the scheduler has not started yet; its log says why", http.StatusServiceUnavailable)
}

// url is the address of the console; empty without one.
func (p *operatorPort) url() string {
	if p == nil {
		return ""
	}
	return "http://" + p.listener.Addr().String()
}

func (p *operatorPort) serve(ctx context.Context) error {
	if p == nil {
		return nil
	}
	var following sync.WaitGroup
	defer following.Wait()
	following.Go(func() { p.token.Follow(ctx, p.worker.streams.Log) })
	if p.observer != nil {
		following.Go(func() { p.observer.token.Follow(ctx, p.worker.streams.Log) })
	}
	server := adminport.Server(p)
	server.RegisterOnShutdown(func() {
		if page := p.console.Load(); page != nil {
			page.Close() // ends open responses, so that the server can drain
		}
	})
	if err := adminport.Run(ctx, p.listener, server, service.StopGrace); err != nil {
		return fmt.Errorf("serve operators: %w", err)
	}
	return nil
}

// worker builds versions, runs the jobs and serves the console, in a process with or without an edge.
type worker struct {
	clock    clock.Clock
	tiers    keys.Tiers
	registry *prometheus.Registry
	streams  *terminal.Streams
	port     *operatorPort
	asked    []console.Edge   // their state is shown, and their usage counted
	apiPort  string           // of the edge of this process
	drained  chan struct{}    // closed after the last request to the edge of this process; nil: it has none
	service  *service.Service // nil until it is made
	usage    *usage.Collector // of the service
	sources  *flags.Sources
	webhooks *flags.Webhooks
	laps     service.Laps   // of the races of a demo; nil: none
	sandbox  *sandbox.World // beside the world of this worker; nil: none
	edges    []string       // admin ports that are measured

	problem atomic.Pointer[string] // why the service has not started; nil if it has or is about to
	started atomic.Bool            // versions are built
}

// trouble is the reason why no version is built; empty if versions are built.
func (w *worker) trouble() string {
	if text := w.problem.Load(); text != nil {
		return *text
	}
	return ""
}

// memoryLimit is the size from which the garbage collector runs more often, in bytes. Without a limit it lets the
// garbage of a build grow to the size of the data. With 77 seasons through a replayed season, serve then had up to
// 359 MB resident; with the limit it has up to 200.
const memoryLimit = 170 << 20

// run opens a builder and runs the service until ctx ends. It retries after an error, because the
// edge serves the published version meanwhile. It returns the error if nothing is published or the
// command line is wrong.
func (w *worker) run(ctx context.Context, store blob.Store, open func(context.Context) (*builder.Builder, error)) error {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	backoff := retry.Rule{First: time.Second, Longest: 30 * time.Second}
	for failures := 1; ; failures++ {
		err := w.start(ctx, open)
		w.streams.EndProgress()
		var (
			usage terminal.UsageError
			lost  *flags.LostError
		)
		switch {
		case err == nil:
			w.problem.Store(nil)
			w.started.Store(true)
			return w.runStarted(ctx)
		case ctx.Err() != nil:
			return nil //nolint:nilerr // a signal interrupted the start, which is no failure
		case errors.As(err, &usage), errors.Is(err, ledger.ErrKind), !published(ctx, store) && !errors.As(err, &lost):
			return err
		}
		text := err.Error()
		w.problem.Store(&text)
		pause := backoff.Pause(failures)
		w.streams.Log.Error("versions are not built; what is published is served meanwhile", "err", err, "again_in", pause)
		if !retry.Sleep(ctx, pause) {
			return nil
		}
	}
}

// start makes the service if there is none yet, opens the console, and starts the service.
func (w *worker) start(ctx context.Context, open func(context.Context) (*builder.Builder, error)) error {
	if w.service == nil {
		built, err := open(ctx)
		if err != nil {
			return err
		}
		if w.service, err = w.newService(ctx, built); err != nil {
			return err
		}
	}
	if w.port != nil && w.port.console.Load() == nil {
		if err := w.port.open(ctx, w.service); err != nil {
			return err
		}
	}
	return w.service.Start(ctx, w.streams.Progress)
}

// newService returns the service on a builder, and gives the collector and the sandbox the builder's store.
func (w *worker) newService(ctx context.Context, built *builder.Builder) (*service.Service, error) {
	sources, err := w.sources.Ingest(ctx, built, w.clock.IsSystem(), w.streams)
	if err != nil {
		return nil, err
	}
	sender, err := w.webhooks.Sender(w.streams.Log)
	if err != nil {
		return nil, err
	}
	s := service.New(built, w.clock, w.streams.Log, w.registry)
	s.Ingest(sources)
	s.Deliver(sender)
	s.Measure(w.edges)
	if w.laps != nil {
		s.Replay(w.laps)
	}
	notify := func(ctx context.Context) { console.Notify(ctx, w.asked) }
	if w.port != nil {
		if w.port.signKeys != nil {
			s.TrustKeys(w.port.signKeys.Trust())
		}
		if w.port.observer != nil {
			s.ExpectFeed()
		}
		s.OnPublish(notify)
	}
	w.usage = w.collector(built.Store)
	if w.sandbox != nil {
		w.sandbox.Store, w.sandbox.Gate = built.Store, s.Idle
		if w.port != nil {
			w.sandbox.OnPublish = notify
		}
	}
	return s, nil
}

// runStarted runs the started service, and beside it the collector and the sandbox, until ctx ends.
func (w *worker) runStarted(ctx context.Context) (err error) {
	intervals, err := scheduler.NewIntervals()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, intervals.Stop()) }()
	w.usage.Intervals = intervals
	w.service.UseIntervals(intervals)
	var beside sync.WaitGroup
	defer beside.Wait()
	simulating, stop := context.WithCancel(ctx)
	defer stop()
	beside.Go(func() { w.usage.Run(ctx) })
	if w.sandbox != nil {
		w.sandbox.Intervals = intervals
		beside.Go(func() { w.sandbox.Run(simulating) })
	}
	return w.service.Run(ctx)
}

// collector returns the collector of the edges' usage. The edge of this process has the name of its machine and port,
// so that the usage of several is told apart.
func (w *worker) collector(store blob.Store) *usage.Collector {
	c := &usage.Collector{Store: store, Log: w.streams.Log, Drained: w.drained}
	for _, e := range w.asked {
		c.Edges = append(c.Edges, usage.Edge{Name: e.Name(), Usage: e.Usage})
	}
	if w.drained != nil {
		host, _ := os.Hostname() // without one the port alone names it
		c.Edges[0].Name = host + ":" + w.apiPort
	}
	return c
}

// published reports whether the store has a version, even a damaged one.
func published(ctx context.Context, store blob.Store) bool {
	pointer, _, err := snapshots.LoadPointer(ctx, store)
	return err != nil || pointer.Version > 0
}

const (
	// muchGarbage is the amount of allocated bytes from which returning garbage is worth a collection.
	muchGarbage = 16 << 20
	// quietSecond is the most that a process allocates in a second between two versions: it only polls the store.
	quietSecond = 1 << 20
)

// returnMemory returns the garbage of loading and building to the system, until ctx ends. The Go runtime keeps as much
// free memory as it has in use. A process that has allocated much since the last return, and hardly anything for a
// second, will not need it soon.
func returnMemory(ctx context.Context) error {
	allocated := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	last, returned := uint64(0), uint64(0)
	return (*scheduler.Intervals)(nil).Every(ctx, time.Second, func(context.Context) {
		metrics.Read(allocated)
		now := allocated[0].Value.Uint64()
		if now-last < quietSecond && now-returned > muchGarbage {
			runtime.GC() // a pool keeps its encoders until the second collection
			debug.FreeOSMemory()
			returned = now
		}
		last = now
	})
}

// maxFeed limits the lines of one request, in bytes.
const maxFeed = 1 << 20

// observer answers POST /live: lines of observations, with a token that permits nothing else.
type observer struct {
	token    *flags.Token
	guesses  console.Guesses
	operator atomic.Pointer[operator.Operator]
}

// observed is the answer: the number of lines, how many were news, and the faults of the others.
type observed struct {
	Lines  int      `json:"lines"`
	New    int      `json:"new"`
	Faults []string `json:"faults"`
}

// ServeHTTP stores the observations of a request, line by line. A faulty line keeps no other from being stored.
func (o *observer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if o.guesses.TooMany(r) {
		w.Header().Set("Retry-After", "60")
		http.Error(w, "too many wrong tokens from your address; wait a minute, because until then no token is looked at", http.StatusTooManyRequests)
		return
	}
	// Hashes, so that comparing takes the same time for any length.
	sum, want := sha256.Sum256([]byte(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))), sha256.Sum256([]byte(o.token.Value()))
	if subtle.ConstantTimeCompare(sum[:], want[:]) != 1 {
		o.guesses.Wrong(r)
		http.Error(w, "Authorization: Bearer needs the token of --live-token-file", http.StatusUnauthorized)
		return
	}
	actions := o.operator.Load()
	if actions == nil {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the scheduler has not started yet; its log says why", http.StatusServiceUnavailable)
		return
	}
	answer := observed{Faults: []string{}}
	var err error
	answer.Lines, answer.New, err = actions.ObserveLines(r.Context(), http.MaxBytesReader(w, r.Body, maxFeed), "push", func(line int, err error) {
		answer.Faults = append(answer.Faults, fmt.Sprintf("line %d: %v", line, err))
	})
	if err != nil {
		answer.Faults = append(answer.Faults, err.Error())
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if len(answer.Faults) > 0 {
		w.WriteHeader(http.StatusUnprocessableEntity)
	}
	_ = json.NewEncoder(w).Encode(answer) // a client that has gone needs no answer
}
