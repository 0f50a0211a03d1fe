package simulate_test

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"gridcast/deploy/must"
	"gridcast/deploy/usage"
	"gridcast/edge"
)

// collector reads the counters of all edges for a process of a scheduler.
func (w *world) collector(r *run, log *slog.Logger) *usage.Collector {
	c := &usage.Collector{Store: r.line.store(), Intervals: w.intervals, Log: log}
	for _, g := range w.edges {
		c.Edges = append(c.Edges, usage.Edge{Name: g.name, Usage: func(ctx context.Context) (edge.UsageDocument, error) {
			if err := w.pause(ctx, r.line.name+" asks "+g.name); err != nil {
				return edge.UsageDocument{}, err
			}
			if e := g.counting.Load(); e != nil {
				return e.Usage(), nil
			}
			return edge.UsageDocument{}, errors.New("no connection")
		}})
	}
	return c
}

// checkUsage ends the schedulers and compares the stored usage with the requests of the clients: none is counted twice, over
// all restarts of edges and schedulers, and none is missing that an edge has answered which still runs.
func (w *world) checkUsage() {
	for _, s := range w.schedulers {
		s.stop(false)
	}
	report := must.Get(usage.Load(w.t.Context(), w.disk, ""))(w.t)
	sums := report.Sums("", usage.DayOf(time.Now()))
	for _, k := range w.clients.keys {
		stored, least := int(sums[k.id].Requests), 0
		for _, g := range w.edges {
			least += g.now.answered[k.id]
		}
		w.note("usage of %s: %d stored, %d asked, at least %d", k.id, stored, k.asked, least)
		if stored > k.asked {
			w.fail("the usage of the key %s has %d requests, its client has made %d", k.id, stored, k.asked)
		}
		if !k.revoking && stored < least {
			w.fail("the usage of the key %s has %d requests, edges that still run have answered %d", k.id, stored, least)
		}
	}
}
