package redislimit

import "github.com/prometheus/client_golang/prometheus"

type sourceMetrics struct {
	answered, failed prometheus.Counter
	outages, alone   prometheus.Counter
}

// newMetrics returns the metrics of a source, and the collector of all of them.
func newMetrics(s *Source) (sourceMetrics, prometheus.Collector) {
	asks := func(result string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gridcast_edge_limit_redis_asks_total", Help: "Questions to Redis by their result.",
			ConstLabels: prometheus.Labels{"result": result},
		})
	}
	gauge := func(name, help string, value func() float64) prometheus.GaugeFunc {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "gridcast_edge_limit_" + name, Help: help}, value)
	}
	up := gauge("redis_up", "1 while Redis counts, 0 while this edge counts for itself.", func() float64 {
		if s.answering.Load() {
			return 1
		}
		return 0
	})
	edges := gauge("edges", "Edges that count in this Redis.", func() float64 { return float64(s.edges.Load()) })
	m := sourceMetrics{
		answered: asks("answered"),
		failed:   asks("failed"),
		outages: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gridcast_edge_limit_redis_outages_total", Help: "How often Redis has stopped answering.",
		}),
		alone: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gridcast_edge_limit_alone_total", Help: "Requests that were decided without Redis and without a token.",
		}),
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(up, edges, m.answered, m.failed, m.outages, m.alone)
	return m, registry
}
