package units_test

import (
	"errors"
	"testing"
	"time"

	"gridcast/builder/units"
	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/memblob"
)

// TestRender checks when a document keeps the bytes and the instant of the base.
func TestRender(t *testing.T) {
	const path = "calendar/2026"
	published, now := time.Date(2026, 7, 5, 14, 0, 0, 0, time.UTC), time.Date(2026, 7, 6, 14, 0, 0, 0, time.UTC)
	stamped := func(at time.Time) ([]byte, error) {
		return []byte(`{"generated_at":"` + at.Format(time.DateOnly) + `"}`), nil
	}
	body, _ := stamped(published)
	packed := must.Get(snapshots.Pack(body))(t)
	store := memblob.New()
	base := must.Get(snapshots.LoadBase(t.Context(), store, nil))(t)
	publisher := snapshots.Publisher{Store: store}
	must.Get(publisher.Publish(t.Context(), snapshots.Draft{
		Base:     base,
		About:    snapshots.About{Builder: "test", BuiltAt: published, CurrentSeason: 2026, Seasons: []int{2026}, Ledger: snapshots.Ledger{Kind: "real"}},
		Variants: []snapshots.Variant{snapshots.New(path, body, packed, published)},
	}))(t)
	base = must.Get(snapshots.LoadBase(t.Context(), store, nil))(t)
	failed := errors.New("no such driver")
	for _, test := range []struct {
		name, path string
		render     func(time.Time) ([]byte, error)
		at         time.Time // generated_at of the document
		reused     bool
		fault      error
	}{
		{name: "same bytes as of the first instant", path: path, render: stamped, at: published, reused: true},
		{name: "other bytes", path: path, render: func(at time.Time) ([]byte, error) { b, _ := stamped(at); return append(b, '\n'), nil }, at: now},
		{name: "not in the base", path: "calendar/2025", render: stamped, at: now},
		{name: "a fault", path: path, render: func(time.Time) ([]byte, error) { return nil, failed }, fault: failed},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := units.Render(base, test.path, now, test.render)
			if !errors.Is(d.Fault, test.fault) || d.Reused != test.reused {
				t.Fatalf("got reused %t, fault %v; want %t, %v", d.Reused, d.Fault, test.reused, test.fault)
			}
			if got := d.Published.Entry().GeneratedAt; test.fault == nil && !got.Equal(test.at) {
				t.Errorf("generated at %s, want %s", got, test.at)
			}
		})
	}
}
