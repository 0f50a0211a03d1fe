package builder

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"gridcast/builder/almanac"
	"gridcast/builder/check"
	"gridcast/builder/render"
	"gridcast/schemas/catalog"
	"gridcast/snapshots"
)

// version is a rendered version before it is checked and published.
type version struct {
	known  catalog.Known
	bodies map[string][]byte // by path
	reused map[string]bool   // paths whose bytes are those of the base
	draft  snapshots.Draft
}

// renderAll renders every variant of the almanac. A variant whose bytes, rendered as of when
// the base first rendered them, are the base's keeps them, their codings and their tag; only
// the others get the almanac's instant and are encoded.
func renderAll(ctx context.Context, base *snapshots.Base, a *almanac.Almanac, derived derivedData, progress func(done, total int)) (*version, error) {
	variants := render.Variants(a)
	bodies := make([][]byte, len(variants))
	published := make([]snapshots.Variant, len(variants))
	reused := make([]bool, len(variants))

	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	var done atomic.Int64
	for i, v := range variants {
		group.Go(func() (err error) {
			if err := ctx.Err(); err != nil {
				return err
			}
			bodies[i], published[i], reused[i], err = renderOne(base, a, v)
			progress(int(done.Add(1)), len(variants))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	out := &version{
		known:  render.Known(a),
		bodies: make(map[string][]byte, len(variants)),
		reused: make(map[string]bool, len(variants)),
		draft: snapshots.Draft{
			Base: base, BuiltAt: a.At, DueAt: a.DueAt(), CurrentSeason: a.Current,
			Seasons: render.Known(a).Seasons, Variants: published,
		},
	}
	for i, v := range variants {
		out.bodies[v.Path()], out.reused[v.Path()] = bodies[i], reused[i]
	}
	return out, out.addDerived(base, derived, a.At)
}

// addDerived adds the variants that a job of its own has made for what is published now. While
// the job has not been there, what the base has of them stays.
func (v *version) addDerived(base *snapshots.Base, derived derivedData, at time.Time) error {
	if derived == nil {
		for _, entry := range base.Manifest.Entries {
			if variant, err := catalog.ParsePath(entry.Path); err == nil && render.Derived(variant.Endpoint) {
				v.draft.Variants = append(v.draft.Variants, snapshots.Reused(entry))
			}
		}
		return nil
	}
	for _, path := range slices.Sorted(maps.Keys(derived)) {
		if entry, ok := base.Entry(path); ok {
			body, err := render.Data(derived[path], entry.GeneratedAt)
			if err != nil {
				return fmt.Errorf("render %s: %w", path, err)
			}
			if snapshots.Digest(body) == entry.SHA256 {
				v.draft.Variants = append(v.draft.Variants, snapshots.Reused(entry))
				continue
			}
		}
		body, err := render.Data(derived[path], at)
		if err != nil {
			return fmt.Errorf("render %s: %w", path, err)
		}
		encodings, err := render.Encode(body)
		if err != nil {
			return err
		}
		v.draft.Variants = append(v.draft.Variants, snapshots.New(path, body, encodings, at))
		v.bodies[path] = body
	}
	return nil
}

func renderOne(base *snapshots.Base, a *almanac.Almanac, v catalog.Variant) ([]byte, snapshots.Variant, bool, error) {
	path := v.Path()
	if entry, ok := base.Entry(path); ok {
		body, err := render.Body(a, v, entry.GeneratedAt)
		if err != nil {
			return nil, snapshots.Variant{}, false, err
		}
		if snapshots.Digest(body) == entry.SHA256 {
			return body, snapshots.Reused(entry), true, nil
		}
	}
	body, err := render.Body(a, v, a.At)
	if err != nil {
		return nil, snapshots.Variant{}, false, err
	}
	if v.Endpoint == catalog.NextRace {
		return body, snapshots.Unfinished(path, body), false, nil
	}
	encodings, err := render.Encode(body)
	if err != nil {
		return nil, snapshots.Variant{}, false, err
	}
	return body, snapshots.New(path, body, encodings, a.At), false, nil
}

// check looks at the bytes as a client would. What the base has was checked when it was
// published.
func (v *version) check() error {
	return check.Bodies(v.known, v.bodies, func(path string) bool { return v.reused[path] })
}
