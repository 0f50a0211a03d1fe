package edge

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"gridcast/edge/keys"
	"gridcast/edge/limit"
	"gridcast/edge/resident"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// gateway answers requests. What is in it is read-only or
// atomic.
type gateway struct {
	keys      *keys.Follower
	versions  *versions
	public    *public
	anonymous *limit.Anonymous
	countdown countdown
	proxies   []netip.Prefix
	clock     func() time.Time                 // limits, expiry of keys; nil: real time
	raceTime  func(actual time.Time) time.Time // the countdown
	metrics   *metrics
	log       *slog.Logger

	closing atomic.Bool // the server says of each response that it is its connection's last
}

// serve is the request path under the base path, in the order of the contract: preflight,
// key table, key, limit, origin, route, method, parameters, version, data.
func (g *gateway) serve(r *request) answer {
	now := g.now(time.Now())
	if r.method == options {
		return g.withoutKey(r, preflight, now, g.anonymous.Peek)
	}
	if !underBase(r.target) {
		a := g.public.serve(r)
		a.rate, a.endpoint, a.tier = g.anonymous.Peek(g.client(r), now), outside, noTier
		return a
	}
	return g.serveBase(r, now)
}

// now is the time by the clock of limits, where real is the real one.
func (g *gateway) now(real time.Time) time.Time {
	if g.clock == nil {
		return real
	}
	return g.clock()
}

// serveBase is serve below the base path, from the key table on. The answer to a request that
// must not wait has no response, and nothing has been counted, if it had to wait.
func (g *gateway) serveBase(r *request, now time.Time) answer {
	entry, a := g.identify(r, now)
	if entry == nil {
		return a
	}
	rate, decided := r.rate(entry, now)
	if !decided {
		return answer{}
	}
	a = answer{rate: rate, endpoint: unrouted, tier: entry.Tier}
	entry.Usage.Count(rate.Allowed)
	if !rate.Allowed {
		a.response, a.retryAfter = overLimit, rate.RetryAfter(now)
		return a
	}
	if !entry.Allows(r.origin) {
		a.response = originRefused
		return a
	}
	page := r.page
	if page == nil {
		page = g.route(r, g.versions.current(), &a)
	} else {
		a.endpoint = page.Endpoint
	}
	switch {
	case page == nil: // route has answered
	case page.Countdown != nil:
		a.response = g.countdown.answer(page.Countdown, g.raceTime(now))
	default:
		a.response = page.Answer(r.acceptEncoding, r.ifNoneMatch)
	}
	return a
}

// identify returns the entry of the request's key, or nil and the refusal.
func (g *gateway) identify(r *request, now time.Time) (*keys.Entry, answer) {
	table := g.keys.Table()
	if table == nil {
		return nil, g.withoutKey(r, noKeysYet, now, g.anonymous.Peek)
	}
	key, present := r.credential()
	entry := r.authenticate(table, key, now)
	switch {
	case entry != nil:
		return entry, answer{}
	case present:
		return nil, g.withoutKey(r, keyRefused, now, g.anonymous.Take)
	default:
		return nil, g.withoutKey(r, anonymousRefused, now, g.anonymous.Take)
	}
}

// route returns the page that the target means in the set, which is nil before the first
// version; or it returns nil and puts the refusal into the answer.
func (g *gateway) route(r *request, set *resident.Set, a *answer) *resident.Page {
	if set != nil && r.method == get {
		if page := set.Find(r.target); page != nil {
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
	known := everyYear
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
	page := set.Page(variant)
	if page == nil {
		a.response, a.retryAfter = notInVersion, retrySoon
	}
	return page
}

// withoutKey answers a request that nobody's limit is charged for; the headers show the
// window of the client's address.
func (g *gateway) withoutKey(r *request, response *resident.Response, now time.Time,
	window func(netip.Addr, time.Time) limit.Decision,
) answer {
	a := answer{response: response, rate: window(g.client(r), now), endpoint: unrouted, tier: noTier}
	if response.Status == http.StatusServiceUnavailable {
		a.retryAfter = retrySoon
	}
	return a
}

func (g *gateway) client(r *request) netip.Addr {
	return client(r.peer, r.forwardedFor, g.proxies)
}

// everyYear stands in for what a version knows before there is one, so that malformed
// parameters are told from an edge that can not answer yet.
var everyYear = func() catalog.Known {
	k := catalog.Known{Current: 1}
	for year := 1; year < 10000; year++ {
		k.Seasons = append(k.Seasons, year)
	}
	return k
}()

// underBase reports whether the raw target is the base path or below it.
func underBase(target []byte) bool {
	const base = catalog.BasePath
	if len(target) < len(base) || string(target[:len(base)]) != base {
		return false
	}
	return len(target) == len(base) || target[len(base)] == '/' || target[len(base)] == '?'
}
