package edge

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"gridcast/edge/keys"
	"gridcast/edge/limit"
	"gridcast/edge/resident"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// gateway answers requests. Its fields are read-only or atomic.
//
// A request goes through this file from top to bottom. The HTTP
// server calls [gateway.handle]; [gateway.serve] chooses by the path; [gateway.serveBase] is the contract
// below the base path. [request] reads the request, [answer] writes the response.
type gateway struct {
	keys      *keys.Follower
	real      *world
	sandbox   *world
	tier      int              // of the keys that sandbox answers: index into keys.Tiers.Names, -1 without them
	public    *limit.Anonymous // of the public key
	pages     *pages
	anonymous *limit.Anonymous
	proxies   []netip.Prefix
	clock     func() time.Time                                    // limits, expiry of keys; nil: real time
	raceTime  func(set *resident.Set, actual time.Time) time.Time // the countdown
	metrics   *metrics
	log       *slog.Logger

	closing atomic.Bool // the server marks each response as its connection's last
}

// handle is the handler of fasthttp.
func (g *gateway) handle(ctx *fasthttp.RequestCtx) {
	var r request
	defer func() {
		if p := recover(); p != nil {
			g.reportPanic(p)
			g.replace(ctx, &r, panicked, unrouted, time.Now()) // the injected clock may have failed
		}
	}()
	closing := g.closing.Load()
	fault, last := r.read(ctx, len(g.proxies) > 0)
	if fault != nil {
		g.replace(ctx, &r, fault, httpOnly, g.now(time.Now()))
	} else {
		a := g.serve(&r)
		a.write(&ctx.Response)
		g.count(&r, &a)
	}
	if closing || last {
		ctx.SetConnectionClose()
	}
	if c := r.conn; c != nil && (closing || fault != nil || last && c.unread()) {
		c.lingers = true
	}
}

// serve answers a preflight, a page outside the base path, or an endpoint.
func (g *gateway) serve(r *request) answer {
	now := g.now(time.Now())
	if r.method == options {
		return g.uncharged(r, preflight, unrouted, g.anonymous.Peek, now)
	}
	if !underBase(r.target) {
		a := g.pages.serve(r)
		a.endpoint, a.tier = outside, noTier
		return a
	}
	return g.serveBase(r, now)
}

// now returns the time of the clock of limits for the real time actual.
func (g *gateway) now(actual time.Time) time.Time {
	if g.clock == nil {
		return actual
	}
	return g.clock()
}

// serveBase answers below the base path, in the order of the contract: key table, key, limit, origin, route,
// method, parameters, version, data.
func (g *gateway) serveBase(r *request, now time.Time) answer {
	table := g.keys.Table()
	if table == nil {
		return g.uncharged(r, noKeysYet, unrouted, g.anonymous.Peek, now)
	}
	key, present := r.credential()
	entry := r.authenticate(table, key)
	if entry != nil {
		r.usage = entry.Usage
		if !entry.Accepts(now) {
			entry = nil
		}
	}
	w, set := g.real, g.real.current()
	if entry == nil || entry.Tier == g.tier {
		if simulated := g.sandbox.current(); simulated != nil {
			w, set = g.sandbox, simulated
		}
	}
	a := answer{endpoint: unrouted, tier: g.tier}
	switch {
	case entry != nil:
		a.rate, a.tier = entry.Counter.Take(now, entry.PerMinute), entry.Tier
	case w.sandbox && string(key) == keys.Public:
		a.rate = g.public.Take(g.client(r), now)
	case present:
		return g.uncharged(r, keyRefused, unrouted, g.anonymous.Take, now)
	default:
		return g.uncharged(r, keyMissing, unrouted, g.anonymous.Take, now)
	}

	if !a.rate.Allowed {
		a.response, a.retryAfter = overLimit, a.rate.RetryAfter(now)
		return a
	}
	if entry != nil && !entry.Allows(r.origin) {
		a.response = originRefused
		return a
	}

	page := g.route(r, w, set, &a)
	if page == nil { // route has answered
		return a
	}
	race := g.raceTime(set, now)
	if !race.Equal(now) {
		a.clock = race.Unix()
	}
	if page.Countdown != nil {
		a.response = w.countdown.answer(page.Countdown, race)
	} else {
		a.response = page.Answer(r.acceptEncoding, r.ifNoneMatch)
	}
	return a
}

// route returns the page of the target in the set of a world, which is nil before the first
// version; or it returns nil and puts the error response into the answer.
func (g *gateway) route(r *request, w *world, set *resident.Set, a *answer) *resident.Page {
	if set != nil && r.method == get {
		if page := set.Find(r.target); page != nil { // one of the common spellings
			a.endpoint = page.Endpoint
			return page
		}
	}
	path, query, _ := bytes.Cut(r.target[len(catalog.BasePath):], []byte{'?'})
	if len(path) > 1 {
		path = bytes.TrimSuffix(path, []byte{'/'})
	}
	index, ok := catalog.Lookup(path)
	if !ok {
		a.response = noRoute
		return nil
	}
	a.endpoint = index
	if r.method != get {
		a.response = wrongMethod
		return nil
	}
	known := everyYear()
	if set != nil {
		known = set.Known()
	}
	variant, err := catalog.Endpoints[index].Select(query, known)
	if err != nil {
		a.response = refusal(http.StatusUnprocessableEntity, wire.BadParam, err.Error())
		return nil
	}
	if set == nil {
		a.response, a.retryAfter = noVersionYet, retrySoon
		return nil
	}
	if catalog.Endpoints[index].File {
		g.sendFile(r, w.downloads, variant.Year, a)
		return nil
	}
	page := set.Page(variant)
	if page == nil {
		a.response, a.retryAfter = notInVersion, retrySoon
	}
	return page
}

// sendFile puts the download of a season into the answer, or the reason why it is missing.
func (g *gateway) sendFile(r *request, files *downloads, year int, a *answer) {
	d := files.of(year)
	if d == nil {
		a.response, a.retryAfter = notOnDisk, retrySoon
		return
	}
	a.response = d.Answer(r.ifNoneMatch)
	if a.response.Status != http.StatusOK {
		return
	}
	file, err := files.open(d.File, recipient{r.usage, g.client(r), r.conn})
	switch {
	case err == nil:
		a.file = file
	case errors.Is(err, errBusy):
		a.response, a.retryAfter = tooManyDownloads, retrySoon
	default:
		a.response, a.retryAfter = notOnDisk, retrySoon
	}
}

// uncharged answers without a key's limit. The rate headers show the window of the client's
// address, as window reads or counts it.
func (g *gateway) uncharged(r *request, response *resident.Response, endpoint int,
	window func(netip.Addr, time.Time) limit.Verdict, now time.Time,
) answer {
	a := answer{response: response, rate: window(g.client(r), now), endpoint: endpoint, tier: noTier}
	if response.Status == http.StatusServiceUnavailable {
		a.retryAfter = retrySoon
	}
	return a
}

func (g *gateway) client(r *request) netip.Addr {
	return client(peer(r.remote), r.forwardedFor, g.proxies)
}

// everyYear replaces the known seasons before there is a version, so that a client with malformed
// parameters gets 422 and not 503.
var everyYear = sync.OnceValue(func() catalog.Known {
	k := catalog.Known{Current: 1}
	for year := 1; year < 10000; year++ {
		k.Seasons = append(k.Seasons, year)
	}
	return k
})

// underBase reports whether the raw target is the base path or below it.
func underBase(target []byte) bool {
	const base = catalog.BasePath
	if len(target) < len(base) || string(target[:len(base)]) != base {
		return false
	}
	return len(target) == len(base) || target[len(base)] == '/' || target[len(base)] == '?'
}

// handleHTTPError answers the requests that fasthttp refuses before handle.
func (g *gateway) handleHTTPError(ctx *fasthttp.RequestCtx, err error) {
	var (
		small *fasthttp.ErrSmallBuffer
		timed interface{ Timeout() bool }
	)
	response := malformedRequest
	switch {
	case errors.As(err, &small):
		response = largeHeader
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		response = largeBody
	case errors.As(err, &timed) && timed.Timeout():
		response = slowRequest
	}
	if c, ok := ctx.Conn().(*connection); ok {
		c.lingers = true
	}
	g.replace(ctx, &request{remote: ctx.RemoteAddr()}, response, httpOnly, g.now(time.Now()))
}

// replace sends and counts an error instead of the response so far.
func (g *gateway) replace(ctx *fasthttp.RequestCtx, r *request, response *resident.Response, endpoint int, now time.Time) {
	ctx.Response.Reset()
	a := g.uncharged(r, response, endpoint, g.anonymous.Peek, now)
	a.write(&ctx.Response)
	g.count(r, &a)
}

// count counts an answer in the metrics and in the usage of its key. The bytes of a file count when it is closed.
func (g *gateway) count(r *request, a *answer) {
	g.metrics.count(a)
	if r.usage == nil {
		return
	}
	size := len(a.response.Body)
	if r.head || a.file != nil {
		size = 0
	}
	r.usage.Count(a.response.Status, size)
}

// reportPanic logs that a request met a bug.
func (g *gateway) reportPanic(p any) {
	g.metrics.panics.Inc()
	g.log.Error("request ran into a bug", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
}

// peer returns the address of the other side of a connection, zero if it has none.
func peer(remote net.Addr) netip.Addr {
	if tcp, ok := remote.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
