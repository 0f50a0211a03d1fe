package edge

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gridcast/schemas/catalog"
	"gridcast/snapshots/blob/dirblob"
)

// Labels of requests without an endpoint of the catalog, and of requests without a key.
const (
	unrouted = -1 // decided before a route was found, or no route
	outside  = -2 // outside the base path
	httpOnly = -3 // refused by the HTTP layer
	noTier   = -1
)

// statuses is the fixed list of the label status: every status of the edge.
var statuses = []int{200, 204, 304, 400, 401, 403, 404, 405, 408, 413, 422, 429, 431, 500, 503}

// statusIndex is the place of each status in statuses, plus one.
var statusIndex = func() (table [600]uint8) {
	for i, status := range statuses {
		table[status] = uint8(i + 1)
	}
	return table
}()

// metrics are the counters of an edge. An index finds those of requests, so that counting
// one is a single atomic addition.
type metrics struct {
	requests [][][]prometheus.Counter // by endpoint + offset, tier + offset, index in statuses
	refused  prometheus.Counter
	panics   prometheus.Counter
	loaded   prometheus.Counter

	followPanics prometheus.Counter
}

const (
	endpointOffset = 3 // httpOnly becomes 0
	tierOffset     = 1 // noTier becomes 0
)

func newMetrics(registry *prometheus.Registry, tiers []string, e *Edge) *metrics {
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gridcast_edge_requests_total",
		Help: "Responses by endpoint, status and tier of the key. " +
			"status=429 are refusals for the limit, status=401 requests without a valid key.",
	}, []string{"endpoint", "status", "tier"})
	registry.MustRegister(requests)
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "gridcast_edge_" + name, Help: help})
		registry.MustRegister(c)
		return c
	}
	m := &metrics{
		refused:      counter("versions_refused_total", "Published versions that were not taken because something in them was wrong."),
		panics:       counter("panics_total", "Requests that ran into a bug of the edge."),
		followPanics: counter("follow_panics_total", "Looks for a newer version that ended in a panic, which is a bug."),
		loaded:       counter("versions_loaded_total", "Versions that were taken."),
	}
	m.registerState(registry, e)

	m.requests = append(m.requests, // the constants above, ascending
		resolve(requests, "http", tiers), resolve(requests, "outside", tiers), resolve(requests, "unrouted", tiers))
	for i := range catalog.Endpoints {
		m.requests = append(m.requests, resolve(requests, string(catalog.Endpoints[i].Name), tiers))
	}
	return m
}

// resolve finds the counters of an endpoint, by tier + offset and index in statuses.
func resolve(requests *prometheus.CounterVec, endpoint string, tiers []string) [][]prometheus.Counter {
	counters := make([][]prometheus.Counter, len(tiers)+tierOffset)
	for i, tier := range append([]string{"none"}, tiers...) {
		counters[i] = make([]prometheus.Counter, len(statuses))
		for j, status := range statuses {
			counters[i][j] = requests.WithLabelValues(endpoint, strconv.Itoa(status), tier)
		}
	}
	return counters
}

// registerState registers the metrics that are read on each scrape.
func (m *metrics) registerState(registry *prometheus.Registry, e *Edge) {
	gauge := func(name, help string, value func(StatusDocument) float64) {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "gridcast_edge_" + name, Help: help,
		}, func() float64 { return value(e.Status()) }))
	}
	gauge("version", "The version being served, 0 before the first.", func(s StatusDocument) float64 { return float64(s.Version) })
	gauge("version_age_seconds", "Race time since the version being served was built.",
		func(s StatusDocument) float64 { return float64(s.AgeSeconds) })
	gauge("version_overdue_seconds", "Race time since a newer version was due, 0 if it is not.", func(s StatusDocument) float64 {
		if !s.Overdue {
			return 0
		}
		return time.Time(s.RaceTime).Sub(time.Time(s.DueAt)).Seconds()
	})
	sandbox := func(name, help string, value func(*SandboxStatus) float64) {
		gauge("sandbox_"+name, help, func(s StatusDocument) float64 {
			if s.Sandbox == nil {
				return 0
			}
			return value(s.Sandbox)
		})
	}
	sandbox("version", "The version of the sandbox being served, 0 without one.", func(s *SandboxStatus) float64 { return float64(s.Version) })
	sandbox("behind_seconds", "Real time since a newer version of the sandbox was due, 0 if it is not.",
		func(s *SandboxStatus) float64 { return float64(s.BehindSeconds) })
	sandbox("stale", "1 while it has not been known for 30 seconds whether the version of the sandbox is the current one.",
		func(s *SandboxStatus) float64 { return number(s.Stale) })
	gauge("held", "1 while automatic builds are held.", func(s StatusDocument) float64 { return number(s.Held) })
	gauge("ready", "1 while requests are answered with data.", func(s StatusDocument) float64 { return number(s.Ready) })
	gauge("store_unreachable", "1 while the latest look for a newer version failed.",
		func(s StatusDocument) float64 { return number(s.StoreProblem != "") })
	gauge("version_stale", "1 while it has not been known for 30 seconds whether the version served is the current one.",
		func(s StatusDocument) float64 { return number(s.Stale) })
	gauge("good_until_timestamp_seconds", "Until when the publisher has signed that the version served is current, 0 without --trust.", func(s StatusDocument) float64 {
		if time.Time(s.GoodUntil).IsZero() {
			return 0
		}
		return float64(time.Time(s.GoodUntil).Unix())
	})
	gauge("pinned", "1 while the edge serves one version alone, by --pin.", func(s StatusDocument) float64 { return number(s.Pinned) })
	gauge("certificate_expiry_timestamp_seconds", "When the certificate in use expires, 0 without TLS.", func(s StatusDocument) float64 {
		if s.Certificate == nil {
			return 0
		}
		return float64(time.Time(s.Certificate.Expires).Unix())
	})
	gauge("keys", "Keys in the table, expired ones included.", func(s StatusDocument) float64 { return float64(s.Keys.Count) })
	gauge("keys_stale", "1 while the latest look at the stored keys failed, or was long ago, or fresh.note names a newer list.",
		func(s StatusDocument) float64 { return number(s.Keys.Problem != "" || s.Keys.Stale) })
	if folder := e.cfg.CacheDir; folder != "" {
		gauge("cache_free_bytes", "Free bytes for the edge's own copy, -1 if the system does not tell.", func(StatusDocument) float64 {
			free, err := dirblob.Free(folder)
			if err != nil {
				return -1
			}
			return float64(free)
		})
	}
	registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "gridcast_edge_keys_panics_total", Help: "Looks at the stored keys that ended in a panic, which is a bug.",
	}, func() float64 { return float64(e.keys.Panics()) }))
}

func (m *metrics) count(a *answer) {
	if i := int(statusIndex[a.response.Status]) - 1; i >= 0 {
		m.requests[a.endpoint+endpointOffset][a.tier+tierOffset][i].Inc()
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
