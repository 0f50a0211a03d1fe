package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"gridcast/builder/derive"
	"gridcast/deploy/view"
	"gridcast/snapshots"
)

// history holds the list of versions.
//
// Cache, by the pointer, which has the digest of the manifest: listing reads every manifest.
type history struct {
	mu     sync.Mutex
	of     snapshots.Pointer
	listed []snapshots.Summary
}

func (c *Console) collectVersions(ctx context.Context, p *page) error {
	list, err := c.history.list(ctx, c)
	if err != nil && !errors.Is(err, snapshots.ErrNone) { // the section says that nothing is published yet
		return err
	}
	for _, s := range list {
		if s.Status == snapshots.Unpublished {
			continue
		}
		p.Versions = append(p.Versions, view.VersionOf(s))
		if len(p.Versions) == shownVersions {
			break
		}
	}
	p.Served.Reason = because(p.Versions, p.Served.Reason)
	return nil
}

// because returns the reason of the last version that changed an answer, up to the current one. Derived documents follow
// every such version in a version of their own, which says nothing about the cause.
func because(versions []view.VersionRow, reason string) string {
	current := slices.IndexFunc(versions, func(v view.VersionRow) bool { return v.Status == snapshots.Current })
	for i, v := range versions[max(current, 0):] {
		switch {
		case v.Reason == derive.Reason:
		case i > 0:
			return fmt.Sprintf("%s (version %d)", v.Reason, v.Version)
		default:
			return reason
		}
	}
	return reason
}

func (h *history) list(ctx context.Context, c *Console) ([]snapshots.Summary, error) {
	pointer, _, err := snapshots.LoadPointer(ctx, c.Operator.Store)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == pointer {
		return h.listed, nil
	}
	listed, err := snapshots.List(ctx, c.Operator.Store)
	if err != nil {
		return nil, err
	}
	h.of, h.listed = pointer, listed
	return listed, nil
}

type versionPage struct {
	snapshots.Manifest

	Current bool
	Changes []snapshots.Difference
	Values  int  // number of shown values
	More    bool // some are left out
}

const shownValues = 400

func (c *Console) showVersion(w http.ResponseWriter, r *http.Request, _ visitor) {
	version, err := strconv.ParseInt(r.PathValue("version"), 10, 64)
	if err != nil || version < 1 {
		c.refuse(w, r, http.StatusNotFound, "no such version")
		return
	}
	m, err := snapshots.LoadManifest(r.Context(), c.Operator.Store, version)
	if err != nil {
		c.refuse(w, r, http.StatusNotFound, "version cannot be read: "+err.Error()+"; it may have been pruned")
		return
	}
	p := versionPage{Manifest: m}
	pointer, _, err := snapshots.LoadPointer(r.Context(), c.Operator.Store)
	p.Current = err == nil && pointer.Version == version
	if m.Base > 0 {
		base, err := snapshots.LoadManifest(r.Context(), c.Operator.Store, m.Base)
		if err == nil {
			p.Changes, err = snapshots.Diff(r.Context(), c.Operator.Store, base, m)
		}
		if err != nil {
			c.refuse(w, r, http.StatusNotFound, "versions cannot be compared: "+err.Error()+"; the older one may have been pruned")
			return
		}
	}
	left := shownValues
	for i := range p.Changes { // without the values that exceed the page
		if n := len(p.Changes[i].Values); n > left {
			p.Changes[i].Values, p.More = p.Changes[i].Values[:left], true
		}
		left -= len(p.Changes[i].Values)
	}
	p.Values = shownValues - left
	c.render(w, http.StatusOK, "version", p)
}

// served is the published version, and the versions that the edges serve.
type served struct {
	snapshots.Manifest // zero: nothing is published

	Held       bool
	HeldReason string
	Edges      []edgeRow
}

type edgeRow struct {
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
		p.Served.Edges = append(p.Served.Edges, edgeRow{
			EdgeReport: r, BuiltAt: time.Time(r.Status.BuiltAt),
			Behind: r.Problem == "" && r.Status.Version < p.Served.Version, Faults: r.Faults(p.Served.Version),
		})
	}
	return err
}
