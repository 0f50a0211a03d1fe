package builder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/check"
	"gridcast/builder/derive"
	"gridcast/builder/ledger"
	"gridcast/builder/live"
	"gridcast/builder/provenance"
	"gridcast/builder/render"
	"gridcast/builder/running"
	"gridcast/builder/season"
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
	Unread      error           // why they are not known: Live is empty, and /live stays that of the base
	Base        *snapshots.Base // the version before, with the generated_at of each document
}

// liveDocuments puts the documents of /live into a version. The timelines of earlier races stay those of the base,
// unless their result was verified after they were made. It refuses a document if its observations cannot be read.
func liveDocuments(ctx context.Context, log *live.Log, in inputs, a *almanac.Almanac, version *units.Version) error {
	races := render.LiveRaces(a, in.Ledger, in.Live)
	unread := func(path string, err error) {
		delete(races, path)
		version.Put(&units.Document{Path: path, Fault: err})
	}
	if in.Unread != nil {
		unread(catalog.Variant{Endpoint: catalog.Live}.Path(), in.Unread)
	}
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
			unread(entry.Path, err)
			continue
		}
		races[entry.Path] = render.Timeline(running.RaceOf(r, in.Ledger, tape), a.At)
	}
	for _, r := range a.Verified() { // some have no timeline, because over never came or because it is lost
		path := catalog.Variant{Endpoint: catalog.Live, SessionKey: r.Session}.Path()
		_, made := races[path]
		_, known := in.Base.Entry(path)
		recent := r.Year >= a.At.UTC().Year()-1 && r.Record.Result().At.After(in.Base.Manifest.BuiltAt)
		_, refused := in.Base.Manifest.RefusedAt(path)
		if made || known || !recent && !refused && in.Base.Damage == nil {
			continue
		}
		tape, err := log.Refresh(ctx, r.Session)
		if err != nil {
			unread(path, err)
			continue
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

func wireSource(s provenance.SourceSummary) wire.SourceState {
	use := wire.UsePublished
	if s.CheckOnly {
		use = wire.UseCompared
	}
	return wire.SourceState{
		Source: s.Name, Licence: s.Licence, NonCommercial: s.NonCommercial, Use: use, Revision: s.Revision, ChangedAt: wire.Instant(s.Changed),
		Silent: s.Silent, SilentSince: wire.Instant(s.Answered), Waiting: s.Waiting, Disagreements: s.Disagreements,
	}
}

// factsState returns the description of the facts that a version publishes on /status, as JSON. sources describes the
// sources at an instant; if it is nil, the part about sources is that of the base.
func factsState(a *almanac.Almanac, base *snapshots.Base, sources func(time.Time) provenance.Summary) (json.RawMessage, error) {
	state := wire.FactsState{
		NextChange: wire.Instant(a.NextChange(0)), Sources: []wire.SourceState{}, Rounds: []wire.RoundState{},
		NonCommercial: []wire.BorrowedFact{},
	}
	var before wire.FactsState
	if sources == nil && base != nil && base.Manifest.State != nil {
		if err := json.Unmarshal(base.Manifest.State, &before); err != nil {
			before = wire.FactsState{} // written by a release with another form
		}
		state.Sources = append(state.Sources, before.Sources...)
		state.NonCommercial = append(state.NonCommercial, before.NonCommercial...)
	}
	var sourced provenance.Summary
	if sources != nil {
		sourced = sources(a.At)
		for _, source := range sourced.Sources {
			state.Sources = append(state.Sources, wireSource(source))
		}
	}
	for _, r := range a.Rounds(0) {
		round := roundState(r)
		for _, p := range sourced.Disputed {
			if p.Year == r.Year && p.GrandPrix == r.Facts.GrandPrix {
				round.Disputed = append(round.Disputed, wire.Dispute{Part: p.Block, Source: p.Source})
			}
		}
		if i := slices.IndexFunc(before.Rounds, func(was wire.RoundState) bool { return was.SessionKey == r.Session }); i >= 0 {
			round.Disputed = before.Rounds[i].Disputed
		}
		state.Rounds = append(state.Rounds, round)
	}
	for _, p := range sourced.Borrowed {
		for _, r := range a.Rounds(p.Year) {
			if r.Facts.GrandPrix == p.GrandPrix {
				state.NonCommercial = append(state.NonCommercial, wire.BorrowedFact{
					SessionKey: r.Session, GPName: r.Facts.Name, Part: p.Block, Source: p.Source, Licence: p.Licence,
				})
			}
		}
	}
	return json.Marshal(state) // in the form of a manifest, so that an equal state has equal bytes
}

func roundState(r *almanac.Round) wire.RoundState {
	state := wire.RoundState{SessionKey: r.Session, GPName: r.Facts.Name, Status: render.Status(r.State)}
	switch revisions := r.Record.Revisions; {
	case r.Result != nil && (len(revisions) > 1 || len(revisions) == 1 && revisions[0].Reason != ""):
		state.Result, state.Revision = wire.FactsRevised, r.Result.Revision
	case r.Result != nil:
		state.Result, state.Revision = wire.FactsVerified, max(1, r.Result.Revision)
	case r.Off(), r.State == almanac.Scheduled:
	case r.Source() != nil:
		state.Result = wire.FactsProvisional
	default:
		state.Result = wire.FactsAwaited
	}
	if p := r.Pick; p != nil {
		state.FrozenAt, state.PickBasis = wire.Instant(p.FrozenAt), string(p.Basis)
		if p.Basis == "" && p.GridKnown { // recorded before there were bases
			state.PickBasis = string(ledger.OnGrid)
		}
	}
	return state
}

// expected lists the seasons that are expected to change again, with the next instant.
func expected(a *almanac.Almanac) []snapshots.Expected {
	var all []snapshots.Expected
	for _, y := range a.Years {
		if at := a.NextChange(y.Year); !at.IsZero() {
			all = append(all, snapshots.Expected{Year: y.Year, At: at.UTC()})
		}
	}
	return all
}

// missingUntilDue lists the facts that are missing, or will be before the next version is due, and those in also.
func missingUntilDue(v *season.View, s *ledger.Fold, a *almanac.Almanac, also []almanac.MissingFact) []snapshots.Missing {
	facts := slices.Concat(also, almanac.Missing(v, s, season.Later(a.DueAt(), a.At)))
	if len(facts) == 0 {
		return nil // which the manifest omits
	}
	missing := make([]snapshots.Missing, 0, len(facts))
	for _, fact := range facts {
		missing = append(missing, snapshots.Missing{
			Code: string(fact.Code), Since: fact.Since, Until: fact.Until, Session: fact.Session, Urgent: fact.Urgent, Text: fact.Text, Fix: fact.Fix,
		})
	}
	return missing
}

// nothingKnown returns the reason why there is nothing to publish at an instant. Ledger events of later
// instants, such as the assignment of session keys, do not exist then.
func nothingKnown(s *ledger.Fold, at time.Time) error {
	if last := s.At(); last.After(at) {
		return fmt.Errorf("the build is of %s, but the ledger goes up to %s: give that instant or a later one",
			at.UTC().Format(time.RFC3339), last.UTC().Format(time.RFC3339))
	}
	return fmt.Errorf("no season is known at %s", at.UTC().Format(time.RFC3339))
}

// defaultYears returns the default season of each endpoint that looks back. For the odds of the title it is the latest
// season that has odds in the version.
func defaultYears(base *snapshots.Base, a *almanac.Almanac, version *units.Version) map[string]int {
	years, last := render.DefaultYears(a), base.Manifest.DefaultYears[string(catalog.TitleOdds)] // for documents of the base
	for _, y := range slices.Backward(a.Years) {
		d := version.Document(catalog.Variant{Endpoint: catalog.TitleOdds, Year: y.Year}.Path())
		if d != nil && d.Body == nil {
			break
		}
		var odds wire.Success[wire.TitleOdds]
		if d != nil && json.Unmarshal(d.Body, &odds) == nil && len(odds.Data.Drivers) > 0 {
			last = y.Year
			break
		}
	}
	if _, known := a.Year(last); known && last != a.Current {
		years[string(catalog.TitleOdds)] = last
	}
	return years
}
