package builder

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"gridcast/builder/almanac"
	"gridcast/builder/check"
	"gridcast/builder/ledger"
	"gridcast/builder/render"
	"gridcast/builder/season"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
)

// document is one variant of a version that is being built.
type document struct {
	variant   catalog.Variant
	body      []byte // nil: that of the base, which was not read
	published snapshots.Variant
	reused    bool  // the bytes are those of the base
	fault     error // why it could not be rendered
}

// Refused is a document that a build did not publish as it was rendered, because it failed its
// check: it stays as it was in the version before, or is empty where there was none.
type Refused struct {
	Path string
	Err  error
}

// renderAll renders every variant of the almanac. A variant whose bytes, rendered as of when
// the base first rendered them, are the base's keeps them, their codings and their tag; only
// the others get the almanac's instant and are encoded.
func renderAll(ctx context.Context, base *snapshots.Base, a *almanac.Almanac, derived derivedData, progress snapshots.Progress) (map[string]*document, error) {
	variants := render.Variants(a)
	documents := make([]*document, len(variants))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	var done atomic.Int64
	for i, v := range variants {
		group.Go(func() error {
			documents[i] = renderOne(base, a, v)
			progress.Tell(Render, int(done.Add(1)), len(variants))
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	version := make(map[string]*document, len(documents))
	for _, d := range documents {
		version[d.variant.Path()] = d
	}
	addDerived(version, base, a, derived)
	return version, nil
}

// addDerived adds the variants that a job of its own has made for what is published now. While
// the job has not been there, what the base has of them stays.
func addDerived(version map[string]*document, base *snapshots.Base, a *almanac.Almanac, derived derivedData) {
	if derived == nil {
		for _, entry := range base.Manifest.Entries {
			if v, err := catalog.ParsePath(entry.Path); err == nil && render.Derived(v.Endpoint) {
				version[entry.Path] = &document{variant: v, published: snapshots.Reused(entry), reused: true}
			}
		}
		return
	}
	for path, data := range derived {
		v, err := catalog.ParsePath(path)
		d := &document{variant: v, fault: err}
		version[path] = d
		if entry, ok := base.Entry(path); ok && d.fault == nil {
			if d.body, d.fault = render.Data(data, entry.GeneratedAt); d.fault == nil && snapshots.Digest(d.body) == entry.SHA256 {
				d.published, d.reused = snapshots.Reused(entry), true
				continue
			}
		}
		if d.fault == nil {
			if d.body, d.fault = render.Data(data, a.At); d.fault == nil {
				d.fault = d.encode(a)
			}
		}
	}
}

// renderOne renders a variant. One that cannot be rendered has a fault and no body.
func renderOne(base *snapshots.Base, a *almanac.Almanac, v catalog.Variant) *document {
	d := &document{variant: v}
	entry, ok := base.Entry(v.Path())
	if ok {
		if d.body, d.fault = render.Body(a, v, entry.GeneratedAt); d.fault != nil {
			return d
		}
		if snapshots.Digest(d.body) == entry.SHA256 {
			d.published, d.reused = snapshots.Reused(entry), true
			return d
		}
	}
	if d.body, d.fault = render.Body(a, v, a.At); d.fault == nil {
		d.fault = d.encode(a)
	}
	return d
}

// encode makes of the body what is published.
func (d *document) encode(a *almanac.Almanac) error {
	if d.variant.Endpoint == catalog.NextRace {
		d.published = snapshots.Unfinished(d.variant.Path(), d.body)
		return nil
	}
	encodings, err := render.Encode(d.body)
	if err != nil {
		return err
	}
	d.published = snapshots.New(d.variant.Path(), d.body, encodings, a.At)
	return nil
}

// refuse checks the documents as a client would read them, and puts in the place of each that
// fails what was published before, so that one that is wrong keeps no other from being published.
// It goes on until nothing is wrong but what was published before. Seasons that the almanac no
// longer has, because the archive is an older one, stay too, and with them what is said across
// seasons: who drives, and which race is next.
func refuse(ctx context.Context, base *snapshots.Base, a *almanac.Almanac, version map[string]*document) ([]Refused, error) {
	refused := map[string]error{}
	var lost error
	for _, entry := range base.Manifest.Entries {
		v, err := catalog.ParsePath(entry.Path)
		if err != nil {
			continue // of a release with other endpoints
		}
		year := v.Year
		if v.SessionKey > 0 {
			year = int(v.SessionKey / catalog.KeysPerSeason)
		}
		_, rendered := version[entry.Path]
		if _, ok := a.Year(year); year != 0 && !ok && !rendered {
			lost = fmt.Errorf("the archive no longer has the season %d", year)
			version[entry.Path] = &document{variant: v, fault: lost}
		}
	}
	if lost != nil {
		for _, endpoint := range []catalog.Name{catalog.Drivers, catalog.NextRace, catalog.Accuracy, catalog.Changes} {
			version[catalog.Variant{Endpoint: endpoint}.Path()].fault = lost
		}
	}
	faults := check.Faults{}
	for path, d := range version {
		if d.fault != nil {
			faults[path] = d.fault
		}
	}
	for {
		changed := false
		for _, path := range slices.Sorted(maps.Keys(faults)) {
			if _, before := refused[path]; before {
				continue // it is as it was; nothing better is known
			}
			refused[path], changed = faults[path], true
			if version[path] == nil { // promised, and not rendered
				v, err := catalog.ParsePath(path)
				if err != nil {
					return nil, err
				}
				version[path] = &document{variant: v}
			}
			if _, before := base.Entry(path); !before && render.Derived(version[path].variant.Endpoint) {
				delete(version, path) // it comes with a later version
				continue
			}
			if err := version[path].stay(ctx, base, a); err != nil {
				return nil, fmt.Errorf("keep %s as it was: %w", path, err)
			}
		}
		if len(faults) > 0 && !changed {
			break
		}
		bodies := make(map[string][]byte, len(version))
		for path, d := range version {
			if d.body != nil { // else it is that of the base, derived or not to be read
				bodies[path] = d.body
			}
		}
		known := catalog.Known{Current: currentOf(base, a), Seasons: seasonsOf(version)}
		faults = check.Bodies(known, bodies, func(path string) bool { return version[path].reused })
		if len(faults) == 0 {
			break
		}
	}
	all := make([]Refused, 0, len(refused))
	for _, path := range slices.Sorted(maps.Keys(refused)) {
		all = append(all, Refused{Path: path, Err: refused[path]})
	}
	return all, nil
}

// stay puts the document of the base in the place of this one; where the base has none, one that
// says nothing.
func (d *document) stay(ctx context.Context, base *snapshots.Base, a *almanac.Almanac) (err error) {
	if entry, ok := base.Entry(d.variant.Path()); ok {
		d.published, d.reused = snapshots.Reused(entry), true
		if d.body, err = base.Body(ctx, entry); err != nil && ctx.Err() == nil {
			d.body, err = nil, nil // the store's damage is for the nightly check to tell; nothing here needs the bytes
		}
		return err
	}
	switch d.variant.Endpoint {
	case catalog.NextRace:
		d.body, err = wire.Marshal(&wire.Countdown{Rounds: []wire.CountdownRound{}})
	case catalog.Accuracy:
		d.body, err = wire.Marshal(wire.Wrap(wire.Accuracy{}, a.At))
	default:
		d.body, err = wire.Marshal(wire.Wrap([]struct{}{}, a.At))
	}
	if err != nil {
		return err
	}
	return d.encode(a)
}

// seasonsOf lists the seasons that the version has a calendar of, ascending.
func seasonsOf(version map[string]*document) []int {
	var years []int
	for _, d := range version {
		if d.variant.Endpoint == catalog.Calendar {
			years = append(years, d.variant.Year)
		}
	}
	slices.Sort(years)
	return years
}

// currentOf is the default year: that of the almanac, or of the base where the archive has lost the
// season that was.
func currentOf(base *snapshots.Base, a *almanac.Almanac) int {
	if _, ok := a.Year(base.Manifest.CurrentSeason); !ok && base.Manifest.CurrentSeason > a.Current {
		return base.Manifest.CurrentSeason
	}
	return a.Current
}

// draftOf is the version as it is published, its variants in the order of the catalog.
func draftOf(base *snapshots.Base, a *almanac.Almanac, version map[string]*document) snapshots.Draft {
	d := snapshots.Draft{Base: base, BuiltAt: a.At, DueAt: a.DueAt(), CurrentSeason: currentOf(base, a), Seasons: seasonsOf(version)}
	for _, path := range slices.Sorted(maps.Keys(version)) {
		d.Variants = append(d.Variants, version[path].published)
	}
	return d
}

// addFeeds adds the feeds to a draft. One that cannot be rendered stays as it was.
func addFeeds(d *snapshots.Draft, a *almanac.Almanac) (faults []Refused) {
	for _, f := range catalog.Feeds {
		feed, err := renderFeed(d.Base, a, f)
		if err != nil {
			faults = append(faults, Refused{Path: f.Stored, Err: err})
			entry, before := d.Base.Entry(f.Stored)
			if !before {
				continue
			}
			feed = snapshots.Reused(entry)
		}
		d.Variants = append(d.Variants, feed)
	}
	return faults
}

func renderFeed(base *snapshots.Base, a *almanac.Almanac, f catalog.Feed) (snapshots.Variant, error) {
	if entry, ok := base.Entry(f.Stored); ok {
		body, err := render.Feed(a, f, entry.GeneratedAt)
		if err != nil || snapshots.Digest(body) == entry.SHA256 {
			return snapshots.Reused(entry), err
		}
	}
	body, err := render.Feed(a, f, a.At)
	if err != nil {
		return snapshots.Variant{}, err
	}
	encodings, err := render.Encode(body)
	return snapshots.New(f.Stored, body, encodings, a.At), err
}

// Publishable says whether what an event makes visible can be published: it renders and checks the
// documents of its round as they would be, with the state after it. A document that is wrong
// without the event too does not count. Events are appended only if they are publishable: the
// ledger cannot take them back.
func Publishable(v *season.View, before, after *ledger.State, session int64) error {
	record, ok := after.Record(session)
	if !ok {
		return nil // keys, renames: they show nothing by themselves
	}
	then := almanac.Join(v, after, record.Year)
	now := sync.OnceValue(func() *almanac.Almanac { return almanac.Join(v, before, record.Year) })
	var faults []error
	for _, variant := range []catalog.Variant{
		{Endpoint: catalog.Predictions, SessionKey: session},
		{Endpoint: catalog.Predictions, Year: record.Year},
		{Endpoint: catalog.Probabilities, SessionKey: session},
		{Endpoint: catalog.Probabilities, Year: record.Year},
		{Endpoint: catalog.Results, SessionKey: session},
		{Endpoint: catalog.Calendar, Year: record.Year},
		{Endpoint: catalog.Standings, Type: catalog.DriversType, Year: record.Year},
		{Endpoint: catalog.Standings, Type: catalog.ConstructorsType, Year: record.Year},
		{Endpoint: catalog.NextRace},
	} {
		if err := whole(then, variant); err != nil && whole(now(), variant) == nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// whole says what is wrong with a variant of the almanac by itself.
func whole(a *almanac.Almanac, v catalog.Variant) error {
	if _, ok := a.Year(v.Year); v.Year != 0 && !ok {
		return nil
	}
	body, err := render.Body(a, v, a.At)
	if err != nil {
		return fmt.Errorf("%s: %w", v.Path(), err)
	}
	if err := check.Body(v.Path(), body); err != nil {
		return fmt.Errorf("%s: %w", v.Path(), err)
	}
	return nil
}
