// Package builder makes published versions: it loads the facts, settles in the ledger what has
// fallen due, joins both, renders every variant, checks the whole and publishes it. Build is
// that sequence, top to bottom; each step is a package below this one.
package builder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/check"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/builder/provenance"
	"gridcast/builder/render"
	"gridcast/builder/season"
	"gridcast/builder/settings"
	"gridcast/builder/units"
	"gridcast/schemas/catalog"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
)

// Builder builds versions into a store. It is safe for concurrent use, also by several
// processes on one store: the ledger and the pointer decide who was first.
type Builder struct {
	Store  blob.Store
	Ledger *ledger.Ledger
	Facts  func(context.Context) (archive.Stored, error) // the archive in use
	Policy Policy                                        // as the process was told; the settings of the store come before it: see Rules
	Name   string                                        // who builds: host and process, for people
	// Release is the release of this program, which every manifest names.
	Release string
	// Provenance describes the sources of the facts at an instant. It may be nil: then what the
	// version before says of them stays.
	Provenance func(at time.Time) provenance.Summary
	Log        *slog.Logger

	latest atomic.Pointer[snapshots.Base] // the base that was loaded or published last; nil before the first
	memory units.Memory                   // of the seasons of the last version

	models struct { // those of the settings: what they remember is worth keeping
		sync.Mutex // guards what follows
		byName     map[string]predict.Model
	}
	deriving struct { // what Derive remembers
		sync.Mutex             // guards what follows
		key        string      // in the store, of data
		data       derivedData // that was derived last
		model      *predict.Ranked
		archive    *season.Archive
		inputs     *predict.Inputs // of archive
		parts      parts           // made or read before
	}
}

// Render is the phase of a build in which the variants are rendered. Those after it are
// snapshots.Upload, snapshots.Check and snapshots.Swap.
const Render = "rendering"

// Request is what a build is asked for.
type Request struct {
	At       time.Time          // race time
	Reason   string             // why, for people; may be empty
	Release  bool               // end a hold
	Progress snapshots.Progress // told concurrently; may be nil
}

// Outcome is what a build did.
type Outcome struct {
	snapshots.Receipt
	Events  []ledger.Event  // appended to the ledger
	Refused []units.Refused // documents that stay as they were, because what was rendered is wrong
}

// maxRebases is how often a build starts again on a newer version before it gives up. Each
// time somebody else has published, so the service is not behind.
const maxRebases = 5

// Build settles what is due at r.At and publishes the version of that instant. If everything
// is as published already, it publishes nothing and says so in the receipt. A pointer that is
// held gives snapshots.ErrHeld, after settling: picks are frozen whether or not anybody may
// publish them. An event that was due and could not be appended is an error, an *UnsettledError, of
// a build that has published all the same. A document that fails its check is no error: it stays as
// it was, and the outcome says so. A clock that is ahead, ledger.ErrClock, publishes nothing.
func (b *Builder) Build(ctx context.Context, r Request) (Outcome, error) {
	began := time.Now()
	var (
		facts                        archive.Stored
		rules                        Policy
		base                         *snapshots.Base
		fresh                        ledger.Fresh
		factsErr, baseErr, ledgerErr error
		reading                      sync.WaitGroup // side by side: the store may be far away
	)
	reading.Go(func() { facts, factsErr = b.Facts(ctx) })
	reading.Go(func() { base, baseErr = b.loadBase(ctx) })
	reading.Go(func() { rules = b.Rules(ctx) })
	reading.Go(func() { fresh, ledgerErr = b.Ledger.Refresh(ctx) })
	reading.Wait()
	if baseErr == nil && ledgerErr == nil && b.Ledger.Head().Seq < base.Manifest.Ledger.Seq {
		fresh, ledgerErr = b.Ledger.Refresh(ctx) // a version never knows less of the ledger than the one before
	}
	if err := cmp.Or(factsErr, ledgerErr); err != nil {
		return Outcome{}, fmt.Errorf("build: %w", err)
	}
	events, err := rules.Settle(ctx, fresh, facts, r.At)
	var unsettled *UnsettledError
	if err != nil && !errors.As(err, &unsettled) {
		return Outcome{Events: events}, fmt.Errorf("build: %w", err)
	}
	if baseErr != nil { // picks are frozen all the same
		return Outcome{Events: events}, fmt.Errorf("build: %w", errors.Join(baseErr, err))
	}
	settled := err // what was not settled keeps nobody from seeing the rest: publish first, and fail loudly then
	for range maxRebases {
		receipt, refused, err := b.publish(ctx, r, Inputs{At: r.At, Facts: facts, Ledger: b.Ledger.Current(r.At), Model: rules.Model, Base: base})
		if errors.Is(err, snapshots.ErrBaseChanged) {
			b.Log.Info("somebody else published; building again on the new version")
			if base, err = b.loadBase(ctx); err == nil {
				_, err = b.Ledger.Refresh(ctx)
			}
			if err == nil {
				continue
			}
		}
		if err != nil {
			return Outcome{Events: events}, fmt.Errorf("build: %w", err)
		}
		receipt.Seconds = time.Since(began).Seconds() // rendering counts, not only publishing
		for _, d := range refused {
			b.Log.Error("document refused; it stays as it was", "path", d.Path, "err", d.Err)
		}
		if settled != nil {
			settled = fmt.Errorf("build: version %d is published, but without what was due: %w", receipt.Version, settled)
		}
		return Outcome{Receipt: receipt, Events: events, Refused: refused}, settled
	}
	return Outcome{Events: events}, fmt.Errorf("build: others published %d versions meanwhile", maxRebases)
}

// loadBase loads the current version. It reads only the files that it has not read before.
func (b *Builder) loadBase(ctx context.Context) (*snapshots.Base, error) {
	base, err := snapshots.LoadBase(ctx, b.Store, b.latest.Load())
	if err == nil {
		b.latest.Store(base)
	}
	return base, err
}

// Inputs are everything that the documents of a version are made from. Equal inputs give equal documents
// in one release of the program.
type Inputs struct {
	At     time.Time       // race time
	Facts  archive.Stored  // named by the digest of its file
	Ledger *ledger.Fold    // named by its head
	Model  predict.Model   // from the settings; it names the derived documents
	Base   *snapshots.Base // the version before, with the generated_at of each document
}

// documents makes the documents of a version. It also returns the key of the derived documents among
// them; the key is empty while nobody has derived any from these inputs.
func (b *Builder) documents(ctx context.Context, in Inputs, a *almanac.Almanac, progress snapshots.Progress) (version *units.Version, derivedFrom string, err error) {
	var (
		key        = derivedKey(in.Model, in.Facts, a)
		derived    derivedData
		found      bool
		derivedErr error
		reading    sync.WaitGroup // beside the rendering: the store may be far away
	)
	reading.Go(func() { derived, found, derivedErr = b.derived(ctx, key) })
	version, err = b.memory.Render(ctx, in.Base, a, func(done, total int) { progress.Tell(Render, done, total) })
	reading.Wait()
	if err != nil {
		return nil, "", err
	}
	if derivedErr != nil { // derived documents can wait, the results that they are derived from cannot
		b.Log.Error("derived documents cannot be read; they stay as they were", "err", derivedErr)
	}
	if !found {
		for _, entry := range in.Base.Manifest.Entries {
			if v, err := catalog.ParsePath(entry.Path); err == nil && render.Derived(v.Endpoint) {
				version.Put(&units.Document{Path: entry.Path, Published: snapshots.Reused(entry), Reused: true})
			}
		}
		return version, "", nil
	}
	for path, data := range derived {
		version.Put(units.Render(in.Base, path, in.At, func(at time.Time) ([]byte, error) { return render.Data(data, at) }))
	}
	return version, key, nil
}

// publish makes one attempt to publish the version of these inputs.
func (b *Builder) publish(ctx context.Context, r Request, in Inputs) (snapshots.Receipt, []units.Refused, error) {
	v := in.Facts.Archive.AsOf(in.At)
	a := almanac.Join(v, in.Ledger)
	if len(a.Years) == 0 {
		return snapshots.Receipt{}, nil, b.nothingKnown(in.At)
	}
	version, derivedFrom, err := b.documents(ctx, in, a, r.Progress)
	if err != nil {
		return snapshots.Receipt{}, nil, err
	}
	draft := snapshots.Draft{
		Base: in.Base, Builder: b.Name, Reason: r.Reason, EndHold: r.Release, Release: b.Release,
		BuiltAt: in.At, DueAt: a.DueAt(), CurrentSeason: a.Current, Archive: in.Facts.SHA256,
		Ledger:  snapshots.Ledger{Kind: string(in.Ledger.Kind()), Seq: in.Ledger.Head().Seq, Hash: in.Ledger.Head().Hash},
		Derived: cmp.Or(derivedFrom, in.Base.Manifest.Derived), Expected: expected(a), Missing: missingUntilDue(v, in.Ledger, a),
	}
	if draft.State, err = b.stateOf(a, in.Base); err != nil {
		return snapshots.Receipt{}, nil, err
	}
	fill(&draft, version)
	var refused []units.Refused
	draft.Finish = func(d *snapshots.Draft) (err error) { // while the objects are uploaded
		if refused, err = version.Refuse(ctx, in.Base, a); err != nil {
			return err
		}
		b.memory.Keep(version)
		d.CurrentSeason = units.Current(in.Base, a)
		fill(d, version)
		refused = append(refused, addFeeds(d, a, version)...)
		for _, document := range refused {
			d.Refused = append(d.Refused, snapshots.RefusedEntry{Path: document.Path, Reason: document.Err.Error()})
		}
		return nil
	}
	if version.Faulty() || len(in.Base.Manifest.Refused) > 0 { // then some objects will probably not be wanted
		if err := draft.Finish(&draft); err != nil {
			return snapshots.Receipt{}, nil, err
		}
		draft.Finish = nil
	}
	publisher := snapshots.Publisher{Store: b.Store, Progress: r.Progress}
	receipt, err := publisher.Publish(ctx, draft)
	if receipt.Base != nil {
		b.latest.Store(receipt.Base)
	}
	return receipt, refused, err
}

// fill puts the seasons and the documents of a version into a draft.
func fill(d *snapshots.Draft, version *units.Version) {
	documents := version.Documents()
	d.Seasons, d.Variants = version.Seasons(), make([]snapshots.Variant, 0, len(documents))
	for _, path := range slices.Sorted(maps.Keys(documents)) {
		d.Variants = append(d.Variants, documents[path].Published)
	}
}

// missingUntilDue lists the facts that are missing, or will be before the next version is due.
func missingUntilDue(v *season.View, s *ledger.Fold, a *almanac.Almanac) []snapshots.Missing {
	until := a.DueAt()
	if until.Before(a.At) {
		until = a.At
	}
	var missing []snapshots.Missing
	for _, fact := range almanac.MissingBy(v, s, until) {
		missing = append(missing, snapshots.Missing{
			Code: string(fact.Code), Since: fact.Since, Until: fact.Until, Session: fact.Session, Urgent: fact.Urgent, Text: fact.Text, Fix: fact.Fix,
		})
	}
	return missing
}

// Rules is the policy with what the settings of the store say. Settings that cannot be read, or that
// name a model which this program does not have, are logged, and the policy is as the process was told:
// picks are made all the same.
func (b *Builder) Rules(ctx context.Context) Policy {
	shared, err := settings.Load(ctx, b.Store)
	if err != nil {
		b.Log.Error("the settings of the store cannot be read; the rules are those of the command line", "err", err)
	}
	rules := b.Policy.With(shared)
	if shared.Model == "" {
		return rules
	}
	b.models.Lock()
	defer b.models.Unlock()
	model := b.models.byName[shared.Model]
	if model == nil {
		if model, err = predict.ByName(shared.Model); err != nil {
			b.Log.Error("the settings of the store name a model that is not here; picks are made by that of the command line", "err", err)
			return rules
		}
		if b.Policy.Model != nil && b.Policy.Model.Name() == model.Name() {
			model = b.Policy.Model
		}
		if b.models.byName == nil {
			b.models.byName = make(map[string]predict.Model)
		}
		b.models.byName[shared.Model] = model
	}
	rules.Model = model
	return rules
}

// nothingKnown says why there is nothing to publish at an instant. What was written later, such as
// the keys of the sessions, does not exist then.
func (b *Builder) nothingKnown(at time.Time) error {
	if last := b.Ledger.Fold().At(); last.After(at) {
		return fmt.Errorf("the build is of %s, but the ledger goes up to %s: give that instant or a later one",
			at.UTC().Format(time.RFC3339), last.UTC().Format(time.RFC3339))
	}
	return fmt.Errorf("no season is known at %s", at.UTC().Format(time.RFC3339))
}

// addFeeds adds the feeds to a draft. One that cannot be rendered or fails its check, against the
// documents too, stays as it was, and so do all while the archive lacks a season that is published.
func addFeeds(d *snapshots.Draft, a *almanac.Almanac, version *units.Version) (refused []units.Refused) {
	known, bodies := catalog.Known{Seasons: d.Seasons, Current: d.CurrentSeason}, units.Bodies(version.Documents())
	for _, f := range catalog.Feeds {
		entry, before := d.Base.Entry(f.Stored)
		if before && len(d.Seasons) > len(a.Years) {
			d.Variants = append(d.Variants, snapshots.Reused(entry))
			continue
		}
		feed := units.Render(d.Base, f.Stored, a.At, func(at time.Time) ([]byte, error) { return render.Feed(a, f, at) })
		if feed.Fault == nil && !feed.Reused {
			feed.Fault = check.Feed(f, feed.Body, known, bodies)
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
	return refused
}
