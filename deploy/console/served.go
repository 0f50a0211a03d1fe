package console

import (
	"context"
	"time"

	"gridcast/snapshots"
)

// served is the published version, and the versions that the edges serve.
type served struct {
	snapshots.Manifest // zero: nothing is published

	Held       bool
	HeldReason string
	Edges      []edgeView
}

type edgeView struct {
	EdgeReport

	BuiltAt time.Time // race time
	Behind  bool      // the edge serves an older version than the published one
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
		p.Served = served{Manifest: base.Manifest, Held: base.Pointer.Held, HeldReason: base.Pointer.Reason}
	}
	for _, r := range reports {
		p.Served.Edges = append(p.Served.Edges, edgeView{
			EdgeReport: r, BuiltAt: time.Time(r.Status.BuiltAt),
			Behind: r.Problem == "" && r.Status.Version < p.Served.Version, Faults: r.Faults(p.Served.Version),
		})
	}
	return err
}
