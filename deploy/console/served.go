package console

import (
	"context"
	"time"

	"gridcast/snapshots"
)

// served is the published version, and the versions that the edges serve.
type served struct {
	Version    int64
	BuiltAt    time.Time // race time
	DueAt      time.Time // race time; zero: nothing is due
	Reason     string
	Held       bool
	HeldReason string
	RollbackOf int64
	Published  time.Time // real time
	Ledger     snapshots.Ledger
	Refused    []snapshots.RefusedEntry // documents kept from an earlier version
	Edges      []edgeView
}

// OverdueBy is how long a newer version has been due; 0 if none is.
func (s *served) OverdueBy(now time.Time) time.Duration {
	if s.DueAt.IsZero() || now.Before(s.DueAt) {
		return 0
	}
	return now.Sub(s.DueAt)
}

// edgeView is the state of one edge.
type edgeView struct {
	Name    string
	Version int64
	BuiltAt time.Time // race time
	Behind  bool      // the edge serves an older version than the published one
	Keys    int
	Problem string // the edge cannot be reached
	Faults  []EdgeFault
}

// loadBase loads the current version. It reads only the files that it has not read before.
func (c *Console) loadBase(ctx context.Context) (*snapshots.Base, error) {
	base, err := snapshots.LoadBase(ctx, c.Operator.Store, c.latest.Load())
	if err == nil {
		c.latest.Store(base)
	}
	return base, err
}

func (c *Console) collectServed(ctx context.Context, p *page, reports []EdgeReport) error {
	base, err := c.loadBase(ctx)
	if err == nil {
		m := &base.Manifest
		p.Served = served{
			Version: base.Pointer.Version, BuiltAt: m.BuiltAt, DueAt: m.DueAt, Reason: m.Reason, Held: base.Pointer.Held,
			HeldReason: base.Pointer.Reason, RollbackOf: m.RollbackOf, Published: base.Pointer.At, Ledger: m.Ledger, Refused: m.Refused,
		}
	}
	for _, r := range reports {
		p.Served.Edges = append(p.Served.Edges, edgeView{
			Name: r.Name, Version: r.Status.Version, BuiltAt: time.Time(r.Status.BuiltAt), Keys: r.Status.Keys.Count, Problem: r.Problem,
			Behind: r.Problem == "" && r.Status.Version < p.Served.Version, Faults: r.Faults(p.Served.Version),
		})
	}
	return err
}
