package units

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/check"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
)

// Refused is a document that was not published as rendered, because it failed its check. The version has
// the document of its base instead, or an empty one if the base has none.
type Refused struct {
	Path string
	Err  error
}

// Refuse checks the version and replaces each document that fails with the one of the base, so that a wrong
// document keeps no other from being published. It repeats this until nothing fails but documents of the
// base.
//
// If the archive is an older one and lacks a season, its documents stay too. Then the documents about no
// single season stay as well, because they would contradict it.
func (v *Version) Refuse(ctx context.Context, base *snapshots.Base, a *almanac.Almanac) ([]Refused, error) {
	v.keepLostSeasons(base, a)
	refused := map[string]error{}
	faults := check.Faults{}
	for path, d := range v.Documents() {
		if d.Fault != nil {
			faults[path] = d.Fault
		}
	}
	for {
		replaced := false
		for _, path := range slices.Sorted(maps.Keys(faults)) {
			if _, before := refused[path]; before {
				continue // it is the document of the base; nothing better is known
			}
			refused[path], replaced = faults[path], true
			if err := v.restore(ctx, base, a, path); err != nil {
				return nil, fmt.Errorf("keep %s as it was: %w", path, err)
			}
		}
		if len(faults) > 0 && !replaced {
			break
		}
		if faults = v.Check(Current(base, a)); len(faults) == 0 {
			break
		}
	}
	all := make([]Refused, 0, len(refused))
	for _, path := range slices.Sorted(maps.Keys(refused)) {
		all = append(all, Refused{Path: path, Err: refused[path]})
	}
	return all, nil
}

// keepLostSeasons marks the documents that stay because the almanac lacks a season of the base.
func (v *Version) keepLostSeasons(base *snapshots.Base, a *almanac.Almanac) {
	has := func(year int) bool { _, ok := a.Year(year); return ok }
	if !slices.ContainsFunc(base.Manifest.Seasons, func(year int) bool { return !has(year) }) {
		return
	}
	var lost error
	for _, entry := range base.Manifest.Entries {
		variant, err := catalog.ParsePath(entry.Path)
		if err != nil {
			continue // a feed, or a document of another release
		}
		year := variant.Season()
		if year != 0 && !has(year) && v.Document(entry.Path) == nil {
			lost = fmt.Errorf("the archive no longer has the season %d", year)
			v.Put(&Document{Path: entry.Path, Fault: lost})
		}
	}
	if lost != nil {
		for path, d := range v.others {
			if variant, _ := catalog.ParsePath(path); !variant.Endpoint.Derived() || path == (catalog.Variant{Endpoint: catalog.Live}).Path() {
				d.Fault = lost
			}
		}
	}
}

// restore replaces the document of a path by the base's. If the base has none, readers get an empty document; a derived
// document is left out, because a later version brings it.
func (v *Version) restore(ctx context.Context, base *snapshots.Base, a *almanac.Almanac, path string) error {
	variant, err := catalog.ParsePath(path)
	if err != nil {
		return err
	}
	d := &Document{Path: path}
	if entry, ok := base.Entry(path); ok {
		d.Published, d.Reused = snapshots.Reused(entry), true
		d.Body, err = base.Body(ctx, entry)
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			d.Body = nil // the nightly check reports a damaged store, and nothing here needs the bytes
		}
		v.Put(d)
		return nil
	}
	if variant.Endpoint.Derived() {
		v.Drop(path)
		return nil
	}
	if d.Body, err = Empty(path, a.At); err == nil {
		err = d.pack(a.At)
	}
	v.Put(d)
	return err
}

// Empty returns the document of a path that readers get if no version has one without a fault.
func Empty(path string, generatedAt time.Time) ([]byte, error) {
	variant, err := catalog.ParsePath(path)
	if err != nil {
		return nil, err
	}
	switch variant.Endpoint {
	case catalog.NextRace:
		return wire.Marshal(&wire.Countdown{Rounds: []wire.CountdownRound{}})
	case catalog.ChangesLog:
		return wire.Marshal(wire.Wrap(wire.ChangesPage{Page: max(variant.Page, 0), Changes: []wire.LoggedChange{}}, generatedAt))
	case catalog.Accuracy:
		return wire.Marshal(wire.Wrap(wire.Accuracy{}, generatedAt))
	case catalog.Overview:
		return wire.Marshal(wire.Wrap(wire.NewOverview(variant.Year), generatedAt))
	}
	return wire.Marshal(wire.Wrap([]struct{}{}, generatedAt))
}

// Current returns the default year of a version: the one of the almanac, or of the base if the archive has
// lost that season.
func Current(base *snapshots.Base, a *almanac.Almanac) int {
	if _, ok := a.Year(base.Manifest.CurrentSeason); !ok && base.Manifest.CurrentSeason > a.Current {
		return base.Manifest.CurrentSeason
	}
	return a.Current
}
