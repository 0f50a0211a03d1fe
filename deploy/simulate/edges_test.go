package simulate_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gridcast/deploy/must"
	"gridcast/edge"
	"gridcast/edge/keys"
	"gridcast/edge/limit"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// gate is a machine on which an edge runs, is killed and starts again.
type gate struct {
	w      *world
	name   string
	folder string // of its copy; empty: it has none
	trusts bool   // signatures
	runs   int
	now    *serving // nil: it does not run

	counting atomic.Pointer[edge.Edge] // of now, for collectors of usage
	clear    time.Time                 // since then its connection to the store has no faults; zero: it has some
	served   int64                     // the highest version that a reader got, since the start for an edge with a copy
}

// serving is one process of an edge.
type serving struct {
	line     *line
	edge     *edge.Edge
	answered map[string]int // requests by the id of the key
	pipe     *pipe
	cancel   context.CancelFunc
	ended    chan struct{}
	err      error
}

// pipe is a listener in memory.
type pipe struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipe) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (*pipe) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (g *gate) start() {
	g.runs++
	w := g.w
	s := &serving{line: w.newLine(fmt.Sprintf("%s.%d", g.name, g.runs)), pipe: &pipe{conns: make(chan net.Conn), closed: make(chan struct{})}, ended: make(chan struct{}), answered: map[string]int{}}
	cfg := edge.DefaultConfig()
	cfg.CacheDir, cfg.DrainTimeout = g.folder, time.Second
	if g.trusts {
		cfg.Trust, cfg.TrustKeys = w.rotation.trust, w.keySigners.Trust()
	}
	s.edge = must.Get(edge.New(cfg, edge.Deps{
		Store: s.line.store(), Log: slog.New(points.handler(w)), Listener: s.pipe, Limits: w.clients.limits, Registry: prometheus.NewRegistry(),
		RaceTime: func(actual time.Time) time.Time { return w.now().Add(time.Until(actual)) },
	}))(w.t)
	ctx, cancel := context.WithCancel(w.t.Context())
	g.counting.Store(s.edge)
	s.cancel, g.now, g.clear = cancel, s, time.Now()
	if g.folder != "" || w.thief.disturbs() {
		g.served = 0 // the copy may be older than the last version that was served
	}
	w.running.Go(func() {
		defer close(s.ended)
		s.err = s.edge.Run(ctx)
	})
}

func (g *gate) stop() {
	if g.now == nil {
		return
	}
	g.counting.Store(nil)
	g.now.line.kill()
	g.now.cancel()
	<-g.now.ended
	if g.now.err != nil {
		g.w.fail("the edge %s ended: %v", g.name, g.now.err)
	}
	g.now = nil
}

// tear damages a file of the copy, as a crash of the machine does. It leaves the ratchet, without which an edge has no memory.
func (g *gate) tear() {
	var files []string
	part := []string{"version", "keys"}[g.w.random.IntN(2)]
	must.Do(g.w.t, filepath.WalkDir(filepath.Join(g.folder, part), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return nil
	}))
	if len(files) == 0 {
		return
	}
	file := files[g.w.random.IntN(len(files))]
	data := must.Get(os.ReadFile(file))(g.w.t)
	g.w.note("tear %d bytes of a file of %s", len(data), g.name)
	must.Do(g.w.t, os.WriteFile(file, data[:len(data)/2], 0o600))
}

// get asks the edge as a client does. ok is false if the edge answers no connection.
func (g *gate) get(target, key string) (status int, body []byte, ok bool) {
	client, server := net.Pipe()
	defer client.Close()
	select {
	case g.now.pipe.conns <- server:
	case <-time.After(3 * time.Second):
		return 0, nil, false
	case <-g.now.ended:
		return 0, nil, false
	}
	_ = client.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := fmt.Fprintf(client, "GET %s HTTP/1.1\r\nHost: api.example.org\r\nX-API-Key: %s\r\nConnection: close\r\n\r\n", target, key); err != nil {
		return 0, nil, false
	}
	r, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil {
		return 0, nil, false
	}
	defer r.Body.Close()
	body, err = io.ReadAll(r.Body)
	return r.StatusCode, body, err == nil
}

// shared counts for all edges, as a Redis does.
type shared struct {
	mu      sync.Mutex
	windows map[string]*limit.Window
}

func (*shared) String() string { return "shared" }
func (*shared) Fault() string  { return "" }

func (s *shared) Counter(id string, offset int64) limit.Counter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.windows[id] == nil {
		s.windows[id] = limit.NewWindow(offset)
	}
	return s.windows[id]
}

// clients are the readers and their keys.
type clients struct {
	w       *world
	limits  *shared
	keys    []*client
	paths   []string
	picks   map[int64]wire.Prediction // as served
	results map[string]string         // by session and number of revisions
	lost    int64                     // the highest version before the last loss of the whole store; zero: there was none
}

// client is an API key, as its owner knows it.
type client struct {
	id, secret string
	tier       string
	created    time.Time
	asked      int       // number of its requests
	changed    time.Time // by the last action of an operator
	revoking   bool      // somebody has tried to revoke it
	revoked    time.Time // the operator was told so then; zero: not
	allowed    []time.Time
}

func newClients(w *world) *clients {
	return &clients{
		w: w, limits: &shared{windows: map[string]*limit.Window{}}, picks: map[int64]wire.Prediction{}, results: map[string]string{},
		paths: []string{"standings/drivers/2024", "calendar/2024", "predictions/2024", "results/2024", "drivers"},
	}
}

// bounds of the answers to an operator's decision, in real time.
const (
	revokedWithin = 5 * time.Second  // while the store answers
	healedWithin  = 30 * time.Second // after faults ended
)

// read reads documents from each edge and checks every answer.
func (c *clients) read() {
	for _, g := range c.w.edges {
		if g.now == nil {
			continue
		}
		for _, k := range c.keys {
			path := c.paths[c.w.random.IntN(len(c.paths))]
			c.ask(g, k, path)
		}
	}
}

func (c *clients) ask(g *gate, k *client, path string) {
	w := c.w
	v := must.Get(catalog.ParsePath(path))(w.t)
	asked := time.Now()
	k.asked++
	status, body, ok := g.get(v.Target(), k.secret)
	w.note("read %s %s %d %d", g.name, path, status, len(body))
	if !ok {
		return
	}
	if status == http.StatusOK || status == http.StatusTooManyRequests {
		g.now.answered[k.id]++
	}
	steady := func(since time.Time, bound time.Duration) bool {
		if g.clear.IsZero() {
			return false
		}
		if !since.After(g.clear.Add(healedWithin)) {
			since, bound = g.clear, healedWithin
		}
		return asked.Sub(since) > bound
	}
	switch status {
	case http.StatusOK:
		if !k.revoked.IsZero() && steady(k.revoked, revokedWithin) {
			w.fail("the edge %s accepts the key %s, which was revoked %s ago", g.name, k.id, asked.Sub(k.revoked))
		}
		k.allowed = append(k.allowed, asked)
		c.limit(k)
		c.check(g, path, body)
	case http.StatusUnauthorized:
		if !k.revoking && steady(k.created, revokedWithin) {
			w.fail("the edge %s refuses the key %s, which is valid since %s: %s", g.name, k.id, asked.Sub(k.created), body)
		}
	case http.StatusServiceUnavailable:
		if w.witness.first() != 0 && g.steadySince(asked, healedWithin) {
			status := g.now.edge.Status()
			w.fail("the edge %s has nothing to serve, %s after the last fault: %v; problem %q, refused %+v", g.name, asked.Sub(g.clear), g.now.edge.Ready(), status.StoreProblem, status.Refused)
		}
	case http.StatusTooManyRequests, http.StatusNotFound:
	default:
		w.fail("the edge %s answers %s with %d: %s", g.name, path, status, body)
	}
}

func (g *gate) steadySince(now time.Time, bound time.Duration) bool {
	return !g.clear.IsZero() && now.Sub(g.clear) > bound && now.Sub(g.w.witness.firstAt) > bound
}

// limit checks that no window of a minute has more answers than the tier allows, over all edges.
func (c *clients) limit(k *client) {
	most := keys.DefaultTiers()[k.tier]
	n := len(k.allowed)
	// A window begins at the key's own second, so two of them may touch a minute.
	if n > 2*most && k.allowed[n-1].Sub(k.allowed[n-1-2*most]) < time.Minute {
		c.w.fail("the key %s of the tier %s got %d answers in %s", k.id, k.tier, 2*most+1, k.allowed[n-1].Sub(k.allowed[n-1-2*most]))
	}
	counted, ok := c.limits.windows[k.id]
	if !ok {
		return
	}
	if reset, count := counted.Latest(); count > most {
		c.w.fail("the window of the key %s until %d has %d requests, its tier allows %d", k.id, reset, count, most)
	}
}

// check compares a body with the published versions.
func (c *clients) check(g *gate, path string, body []byte) {
	w := c.w
	sum := sha256.Sum256(body)
	digest := hex.EncodeToString(sum[:])
	versions, known := w.witness.of(path, digest)
	if !known {
		w.fail("the edge %s serves a body of %s that no published version has: %.300s", g.name, path, body)
	}
	// The newest version with this body that the edge may have.
	newest := slices.Max(versions)
	if newest < g.served {
		w.fail("the edge %s serves %s of version %d, after version %d", g.name, path, newest, g.served)
	}
	oldest := slices.Min(versions)
	g.served = max(g.served, oldest)
	if g.trusts && !slices.ContainsFunc(versions, func(v int64) bool { return !w.witness.forged[v] }) {
		w.fail("the edge %s serves %s of a version that nobody has signed", g.name, path)
	}
	if slices.ContainsFunc(versions, func(v int64) bool { return w.witness.forged[v] }) {
		return
	}
	// The restored ledger lacks everything since the backup, and decides anew. Until an edge has got the restored version,
	// it serves its copy of an older one, which belongs to the lost ledger.
	if newest <= c.lost {
		return
	}
	switch path {
	case "predictions/2024":
		c.checkPicks(body)
	case "results/2024":
		c.checkResults(body)
	}
}

func (c *clients) checkPicks(body []byte) {
	b := must.JSON[wire.Success[[]wire.PredictionRecord]](c.w.t, body)
	for _, p := range b.Data {
		known, ok := c.picks[p.SessionKey]
		if ok && known != p.Prediction && !c.w.witness.voided(p.SessionKey) {
			c.w.fail("the pick of %d was %+v and is %+v", p.SessionKey, known, p.Prediction)
		}
		c.picks[p.SessionKey] = p.Prediction
	}
}

func (c *clients) checkResults(body []byte) {
	b := must.JSON[wire.Success[[]wire.ResultRecord]](c.w.t, body)
	for _, r := range b.Data {
		name := fmt.Sprintf("%d, revision %d", r.SessionKey, len(r.Revisions))
		var order []string
		for _, row := range slices.Concat(r.Race, r.Sprint) {
			order = append(order, fmt.Sprint(row.Position, row.Driver, row.Points))
		}
		text := fmt.Sprint(order)
		if known, ok := c.results[name]; ok && known != text {
			c.w.fail("the result of %s was %s and is %s", name, known, text)
		}
		c.results[name] = text
		for i, revision := range r.Revisions {
			if i > 0 && revision.Reason == "" {
				c.w.fail("the result of %s has no reason", name)
			}
		}
	}
}

// burst asks all edges more often than the key of a tier may.
func (c *clients) burst() {
	var tried []*client
	for _, k := range c.keys {
		if k.tier == "trial" && !k.revoking {
			tried = append(tried, k)
		}
	}
	if len(tried) == 0 {
		return
	}
	k := tried[c.w.random.IntN(len(tried))]
	for range 15 {
		for _, g := range c.w.edges {
			if g.now != nil {
				c.ask(g, k, "drivers")
			}
		}
	}
}
