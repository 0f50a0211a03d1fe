// Package console is the operator's port: one page that shows the state of the service and lets a person act
// on it: verify results, decide about rounds, rebuild, roll back, manage keys and webhooks.
//
// The port is never public. Operators sign in with a token of their own, which proves their name. With the
// shared token they can give any name. Every change is in the audit log before it is applied.
package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"gridcast/deploy/operator"
	"gridcast/deploy/usage"
	"gridcast/edge/adminport"
	"gridcast/snapshots"
)

// Config is the configuration of a console.
type Config struct {
	Token    func() string      // returns the shared one that signs in now; at least MinToken characters
	Operator *operator.Operator // of the running service
	Log      *slog.Logger
	Speed    float64  // race seconds in a real second
	Release  string   // of the program, for the footer; may be empty
	Address  net.Addr // where the console listens: on loopback it answers only to local names; may be nil

	// Edges are polled for the version that they serve, so that a run can report when a new version arrives.
	Edges []Edge
	// EdgesWait is how long a run waits for edges to serve its version before it reports those
	// that do not; 0: DefaultEdgesWait.
	EdgesWait time.Duration
	// Problem returns the reason why versions are not built; empty: they are. May be nil.
	Problem func() string
	// Sources returns the sources of facts with their states; may be nil.
	Sources func() []operator.Source
	// Usage returns the usage of keys from a day on; nil: the stored one.
	Usage func(ctx context.Context, from usage.Day) (usage.Report, error)
}

// MinToken is the minimum length of a token.
const MinToken = 16

// Validate reports every fault at once.
func (c *Config) Validate() error {
	var faults []error
	if n := len(c.Token()); n < MinToken {
		faults = append(faults, fmt.Errorf("the operator's token has %d characters, want at least %d", n, MinToken))
	}
	if c.Operator == nil || c.Log == nil || c.Speed <= 0 {
		faults = append(faults, errors.New("operator, log and speed are required"))
	}
	return errors.Join(faults...)
}

// Console answers the requests of operators. It is safe for concurrent use.
type Console struct {
	Config
	sessions *sessions
	runs     runs
	history  history

	latest atomic.Pointer[snapshots.Base] // the base that was loaded or published last
	// upload is the last uploaded archive, because a browser without scripts cannot send the file again with
	// its confirmation.
	upload atomic.Pointer[operator.ImportArchive]

	ctx      context.Context // of the runs
	stop     context.CancelFunc
	starting sync.Mutex // guards the start of a run and the end of ctx, so that none starts while Close waits
	wg       sync.WaitGroup
}

// New returns a console. Close ends its background work.
func New(cfg Config) (*Console, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("operator's port: %w", err)
	}
	if cfg.EdgesWait == 0 {
		cfg.EdgesWait = DefaultEdgesWait
	}
	if cfg.Usage == nil {
		cfg.Usage = func(ctx context.Context, from usage.Day) (usage.Report, error) {
			return usage.Load(ctx, cfg.Operator.Store, from)
		}
	}
	c := &Console{Config: cfg, sessions: &sessions{token: cfg.Token, tokens: &operator.Tokens{Store: cfg.Operator.Store}}}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c, nil
}

// Close cancels the runs under way and waits for them to end. No run starts afterwards.
func (c *Console) Close() {
	c.starting.Lock()
	c.stop()
	c.starting.Unlock()
	c.wg.Wait()
}

// Handler is the operator's port.
func (c *Console) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /sign-in", c.showSignIn)
	mux.HandleFunc("POST /sign-in", c.signIn)

	for pattern, handle := range map[string]operatorFunc{
		"GET /{$}":                c.showPage,
		"GET " + racePath:         c.showPage,
		"POST /sign-out":          c.signOut,
		"GET /versions/{version}": c.showVersion,
		"GET /runs/{run}":         c.showRun,
	} {
		mux.Handle(pattern, c.signedIn(handle))
	}
	for pattern, parse := range actions {
		mux.Handle(pattern, c.signedIn(c.act(parse)))
	}
	sameOrigin := http.NewCrossOriginProtection()
	sameOrigin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.refuse(w, r, http.StatusForbidden, "refused: another site's page made this request; use the console itself")
	}))
	return secured(adminport.LocalHosts(c.Address, sameOrigin.Handler(mux)))
}

// secured sets the headers of every answer. The page contains its style and script, and may load nothing
// else.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentSecurityPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin") // no-referrer would blank the Origin of the console's own forms
		h.Set("Cache-Control", "no-store")
		most := int64(maxForm)
		switch r.URL.Path {
		case "/archive":
			most = maxUpload
		case "/calendar":
			most = maxCalendar
		}
		r.Body = http.MaxBytesReader(w, r.Body, most)
		next.ServeHTTP(w, r)
	})
}

// The limits of forms, in bytes.
const (
	maxForm     = 64 << 10
	maxCalendar = 4 << 20 // the file, and the same again as text
)
