package builder

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/check"
	"gridcast/builder/derive"
	"gridcast/builder/live"
	"gridcast/builder/render"
	"gridcast/builder/running"
	"gridcast/builder/units"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
)

// inputs name everything that the documents of a version are made from. In one release of the program,
// equal inputs give equal documents.
type inputs struct {
	derive.From                 // At, Facts, Ledger and Model; the settings name the model
	Settings    string          // the digest of the store's settings, or unreadSettings
	Live        *live.Tape      // the observations of the race that /live shows, named by the head of their log
	Base        *snapshots.Base // the version before, with the generated_at of each document
}

// liveDocuments puts the documents of /live into a version. The timelines of earlier races stay those of the base,
// unless their result was verified after they were made.
func liveDocuments(ctx context.Context, log *live.Log, in inputs, a *almanac.Almanac, version *units.Version) error {
	races := render.LiveRaces(a, in.Ledger, in.Live)
	for _, entry := range in.Base.Manifest.Entries {
		v, err := catalog.ParsePath(entry.Path)
		if _, made := races[entry.Path]; made || err != nil || v.Endpoint != catalog.Live || v.SessionKey <= 0 {
			continue
		}
		r, err := a.Round(v.SessionKey)
		if err != nil || r.Record.Result() == nil || !r.Record.Result().At.After(entry.GeneratedAt) {
			version.Put(&units.Document{Path: entry.Path, Published: snapshots.Reused(entry), Reused: true})
			continue
		}
		tape, err := log.Refresh(ctx, r.Session)
		if err != nil {
			return err
		}
		races[entry.Path] = render.Timeline(running.RaceOf(r, in.Ledger, tape), a.At)
	}
	for _, r := range a.Verified() { // some have no timeline, because over never came or because it is lost
		path := catalog.Variant{Endpoint: catalog.Live, SessionKey: r.Session}.Path()
		_, made := races[path]
		_, known := in.Base.Entry(path)
		recent := r.Year >= a.At.UTC().Year()-1 && r.Record.Result().At.After(in.Base.Manifest.BuiltAt)
		if made || known || !recent && in.Base.Damage == nil {
			continue
		}
		tape, err := log.Refresh(ctx, r.Session)
		if err != nil {
			return err
		}
		if len(tape.Observations) > 0 {
			races[path] = render.Timeline(running.RaceOf(r, in.Ledger, tape), a.At)
		}
	}
	for path, race := range races {
		text, err := wire.Marshal(race)
		if err != nil {
			return err
		}
		version.Put(units.Render(in.Base, path, in.At, func(at time.Time) ([]byte, error) { return render.Data(text, at) }))
	}
	return nil
}

// fill puts the seasons and the documents of a version into a draft.
func fill(d *snapshots.Draft, version *units.Version) {
	documents := version.Documents()
	d.Seasons, d.Variants = version.Seasons(), make([]snapshots.Variant, 0, len(documents))
	for _, path := range slices.Sorted(maps.Keys(documents)) {
		d.Variants = append(d.Variants, documents[path].Published)
	}
}

// addFeeds adds the feeds and the drawn portraits to a draft. A feed that cannot be rendered, or that contradicts the
// documents, is refused and keeps its earlier bytes. So do all feeds and portraits while the archive lacks a published
// season.
func addFeeds(d *snapshots.Draft, a *almanac.Almanac, version *units.Version) (refused []units.Refused) {
	known := catalog.Known{Seasons: d.Seasons, Current: min(d.CurrentSeason, a.Past())}
	for _, f := range catalog.Feeds {
		entry, before := d.Base.Entry(f.Stored)
		if before && len(d.Seasons) > len(a.Years) {
			d.Variants = append(d.Variants, snapshots.Reused(entry))
			refused = append(refused, units.Refused{Path: f.Stored, Err: errors.New("the archive no longer has all seasons")})
			continue
		}
		feed := units.Render(d.Base, f.Stored, a.At, func(at time.Time) ([]byte, error) { return render.Feed(a, f, at) })
		if feed.Fault == nil && !feed.Reused {
			feed.Fault = check.Feed(f, feed.Body, known, version.BodiesFrom(known.Current))
		}
		if feed.Fault != nil {
			refused = append(refused, units.Refused{Path: f.Stored, Err: feed.Fault})
			if !before {
				continue
			}
			feed.Published = snapshots.Reused(entry)
		}
		d.Variants = append(d.Variants, feed.Published)
	}
	if len(d.Seasons) > len(a.Years) { // the grid, too, stays that of the base
		for _, entry := range d.Base.Manifest.Entries {
			if strings.HasPrefix(entry.Path, catalog.Portraits) {
				d.Variants = append(d.Variants, snapshots.Reused(entry))
				refused = append(refused, units.Refused{Path: entry.Path, Err: errors.New("the archive no longer has all seasons")})
			}
		}
		return refused
	}
	portraits := render.Portraits(a)
	for _, path := range slices.Sorted(maps.Keys(portraits)) {
		drawn := units.Render(d.Base, path, a.At, func(time.Time) ([]byte, error) { return portraits[path], nil })
		d.Variants = append(d.Variants, drawn.Published)
	}
	return refused
}
