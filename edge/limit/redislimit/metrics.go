package redislimit

import "github.com/prometheus/client_golang/prometheus"

// counts are the metrics of a source.
type counts struct {
	up               prometheus.GaugeFunc
	edges            prometheus.GaugeFunc
	answered, failed prometheus.Counter
	outages, alone   prometheus.Counter
}

func newCounts(s *Source) counts {
	asks := func(result string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gridcast_edge_limit_redis_asks_total", Help: "Questions to Redis by their result.",
			ConstLabels: prometheus.Labels{"result": result},
		})
	}
	gauge := func(name, help string, value func() float64) prometheus.GaugeFunc {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "gridcast_edge_limit_" + name, Help: help}, value)
	}
	return counts{
		up: gauge("redis_up", "1 while Redis counts, 0 while this edge counts for itself.", func() float64 {
			if s.answers() {
				return 1
			}
			return 0
		}),
		edges:    gauge("edges", "Edges that count in this Redis.", func() float64 { return float64(s.edges.Load()) }),
		answered: asks("answered"),
		failed:   asks("failed"),
		outages: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gridcast_edge_limit_redis_outages_total", Help: "How often Redis has stopped answering.",
		}),
		alone: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gridcast_edge_limit_alone_total", Help: "Requests that were decided without Redis and without a token.",
		}),
	}
}

var _ prometheus.Collector = (*Source)(nil)

// Describe implements prometheus.Collector.
func (s *Source) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(s, out) }

// Collect implements prometheus.Collector.
func (s *Source) Collect(out chan<- prometheus.Metric) {
	for _, m := range []prometheus.Metric{s.counts.up, s.counts.edges, s.counts.answered, s.counts.failed, s.counts.outages, s.counts.alone} {
		out <- m
	}
}
