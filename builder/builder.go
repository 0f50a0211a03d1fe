// Package builder makes published versions: it loads the facts, settles in the ledger what has
// fallen due, joins both, renders every variant, checks the whole and publishes it. Build is
// that sequence, top to bottom; each step is a package below this one.
package builder

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/check"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/builder/provenance"
	"gridcast/builder/render"
	"gridcast/builder/season"
	"gridcast/builder/settings"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
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
	// Provenance describes the sources of the facts at an instant. It may be nil: then what the
	// version before says of them stays.
	Provenance func(at time.Time) provenance.Summary
	Log        *slog.Logger

	latest atomic.Pointer[snapshots.Base] // the base that was loaded or published last; nil before the first
	last   atomic.Pointer[rendering]      // nil before the first

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
	Events  []ledger.Event // appended to the ledger
	Refused []Refused      // documents that stay as they were, because what was rendered is wrong
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
		receipt, refused, err := b.publish(ctx, r, rules.Model, facts, base)
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

// publish makes one attempt on the version that was current when it was last asked for, with the ledger as
// it was read after that.
func (b *Builder) publish(ctx context.Context, r Request, model predict.Model, facts archive.Stored, base *snapshots.Base) (snapshots.Receipt, []Refused, error) {
	state := b.Ledger.Current(r.At)
	v := facts.Archive.AsOf(r.At)
	a := b.join(v, state)
	if len(a.Years) == 0 {
		return snapshots.Receipt{}, nil, b.nothingKnown(r.At)
	}
	key := derivedKey(model, facts, a)
	var (
		derived    derivedData
		made       bool
		derivedErr error
		deriving   sync.WaitGroup
	)
	deriving.Go(func() { derived, made, derivedErr = b.derived(ctx, key) })
	defer deriving.Wait()
	published, err := b.contested(ctx, base, a)
	if err != nil {
		return snapshots.Receipt{}, nil, err
	}
	version, err := b.renderAll(ctx, base, published, a, r.Progress)
	if err != nil {
		return snapshots.Receipt{}, nil, err
	}
	if deriving.Wait(); derivedErr != nil { // what is derived can wait, what it is derived from cannot
		b.Log.Error("derived documents cannot be read; they stay as they were", "err", derivedErr)
	}
	addDerived(version, base, a, derived)
	var refused []Refused
	finish := func(draft *snapshots.Draft) (err error) {
		if refused, err = refuse(ctx, base, a, version); err != nil {
			return err
		}
		*draft = b.draftOf(r, base, a, state, version)
		refused = append(refused, addFeeds(draft, a, version)...)
		until := draft.DueAt // by then there is another version, or this one is overdue
		if until.Before(r.At) {
			until = r.At
		}
		for _, lack := range almanac.MissingBy(v, state, until) {
			draft.Missing = append(draft.Missing, snapshots.Missing{
				Code: string(lack.Code), Since: lack.Since, Until: lack.Until, Session: lack.Session, Urgent: lack.Urgent, Text: lack.Text, Mend: lack.Mend,
			})
		}
		for _, d := range refused {
			draft.Refused = append(draft.Refused, snapshots.RefusedEntry{Path: d.Path, Reason: d.Err.Error()})
		}
		draft.Archive, draft.Expected, draft.Derived = facts.SHA256, expected(a), base.Manifest.Derived
		if made {
			draft.Derived = key
		}
		draft.State, err = b.stateOf(a, base)
		return err
	}
	draft := b.draftOf(r, base, a, state, version)
	draft.Finish = finish                    // the objects are uploaded while their content is checked
	faulty := len(base.Manifest.Refused) > 0 // then it probably is again, and what is uploaded would lie about
	for _, d := range version {
		faulty = faulty || d.fault != nil
	}
	if faulty {
		if err := finish(&draft); err != nil {
			return snapshots.Receipt{}, nil, err
		}
	}
	publisher := snapshots.Publisher{Store: b.Store, Progress: r.Progress}
	receipt, err := publisher.Publish(ctx, draft)
	if receipt.Base != nil {
		b.latest.Store(receipt.Base)
	}
	return receipt, refused, err
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
	if last := b.Ledger.State().At(); last.After(at) {
		return fmt.Errorf("the build is of %s, but the ledger goes up to %s: give that instant or a later one",
			at.UTC().Format(time.RFC3339), last.UTC().Format(time.RFC3339))
	}
	return fmt.Errorf("no season is known at %s", at.UTC().Format(time.RFC3339))
}

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

// contested reads what the base has of the results of which the source says otherwise by now. What cannot
// be read is rendered by what the source says.
func (b *Builder) contested(ctx context.Context, base *snapshots.Base, a *almanac.Almanac) (render.Published, error) {
	published := render.Published{}
	for _, r := range a.Differing() {
		entry, ok := base.Entry(catalog.Variant{Endpoint: catalog.Results, SessionKey: r.Session}.Path())
		if !ok {
			continue
		}
		var said wire.Success[[]wire.ResultRecord]
		body, err := base.Body(ctx, entry)
		if err == nil {
			err = json.Unmarshal(body, &said)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			b.Log.Error("what is published of a result cannot be read; laps and gaps are as the source says by now", "session_key", r.Session, "err", err)
		}
		for _, record := range said.Data {
			published[record.SessionKey] = record
		}
	}
	return published, nil
}

// rendering is what a builder rendered last: the bodies of one version, some 12 MB of 75 seasons.
type rendering struct {
	almanac *almanac.Almanac
	of      map[string]rendered // by path: what was rendered from one season alone
}

// rendered is a body, and of when it is.
type rendered struct {
	body   []byte
	sha256 string
	at     time.Time
}

// join joins facts and ledger, with the seasons of the last rendering where they are the same.
func (b *Builder) join(v *season.View, s *ledger.State) *almanac.Almanac {
	var before *almanac.Almanac
	if last := b.last.Load(); last != nil {
		before = last.almanac
	}
	return almanac.JoinAfter(before, v, s)
}

// again returns a document of the base that need not be rendered again, because this builder has rendered
// these bytes, as of the same instant, from the same season; nil if it has not.
func (l *rendering) again(base *snapshots.Base, v catalog.Variant) *document {
	path := v.Path()
	entry, ok := base.Entry(path)
	before := l.of[path]
	if !ok || before.body == nil || before.sha256 != entry.SHA256 || !before.at.Equal(entry.GeneratedAt) {
		return nil
	}
	return &document{variant: v, body: before.body, published: snapshots.Reused(entry), reused: true}
}

// renderAll renders every variant of the almanac. What cannot have changed since the last rendering is not
// rendered again.
func (b *Builder) renderAll(ctx context.Context, base *snapshots.Base, published render.Published, a *almanac.Almanac, progress snapshots.Progress) (map[string]*document, error) {
	last := b.last.Load()
	same, contested := map[int]bool{}, map[int]bool{}
	for i := range a.Years {
		y := &a.Years[i]
		if last != nil {
			was, ok := last.almanac.Year(y.Year)
			same[y.Year] = ok && y.Same(was)
		}
		contested[y.Year] = slices.ContainsFunc(y.Rounds, func(r almanac.Round) bool { _, ok := published[r.Session]; return ok })
	}
	// from is the season from which alone a variant is rendered; 0 if from more.
	from := func(v catalog.Variant) int {
		if year := v.Season(); v.Endpoint != catalog.Results || !contested[year] {
			return year
		}
		return 0
	}
	variants := render.Variants(a)
	documents := make([]*document, len(variants))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	var done atomic.Int64
	for i, v := range variants {
		if same[from(v)] {
			if documents[i] = last.again(base, v); documents[i] != nil {
				done.Add(1)
				continue
			}
		}
		group.Go(func() error {
			documents[i] = newDocument(base, v, a.At, func(at time.Time) ([]byte, error) { return render.BodyAfter(published, a, v, at) })
			progress.Tell(Render, int(done.Add(1)), len(variants))
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	version := make(map[string]*document, len(documents))
	next := &rendering{a, make(map[string]rendered, len(documents))}
	for _, d := range documents {
		path := d.variant.Path()
		version[path] = d
		if entry := d.published.Entry(); d.fault == nil && from(d.variant) != 0 {
			next.of[path] = rendered{d.body, entry.SHA256, entry.GeneratedAt}
		}
	}
	b.last.Store(next)
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
		if v, err := catalog.ParsePath(path); err != nil {
			version[path] = &document{variant: v, fault: err}
		} else {
			version[path] = newDocument(base, v, a.At, func(at time.Time) ([]byte, error) { return render.Data(data, at) })
		}
	}
}

// newDocument renders a variant. One that cannot be rendered has a fault.
func newDocument(base *snapshots.Base, v catalog.Variant, now time.Time, render func(at time.Time) ([]byte, error)) *document {
	d := &document{variant: v}
	d.body, d.published, d.reused, d.fault = renderedAsOf(base, v.Path(), now, render)
	return d
}

// renderedAsOf renders what is published under a path: as of when the base first rendered it, and if that
// gives the base's bytes, these, their codings and their tag stay; else as of now.
func renderedAsOf(base *snapshots.Base, path string, now time.Time, render func(at time.Time) ([]byte, error)) (body []byte, published snapshots.Variant, reused bool, err error) {
	if entry, ok := base.Entry(path); ok {
		if body, err = render(entry.GeneratedAt); err != nil {
			return nil, published, false, err
		}
		if snapshots.Digest(body) == entry.SHA256 {
			return body, snapshots.Reused(entry), true, nil
		}
	}
	if body, err = render(now); err == nil {
		published, err = encoded(path, body, now)
	}
	return body, published, false, err
}

// encoded makes of a body what is published.
func encoded(path string, body []byte, now time.Time) (snapshots.Variant, error) {
	if path == (catalog.Variant{Endpoint: catalog.NextRace}).Path() {
		return snapshots.Unfinished(path, body), nil
	}
	packed, err := snapshots.Pack(body)
	return snapshots.New(path, body, packed, now), err
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
		year := v.Season()
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
		known := catalog.Known{Current: currentOf(base, a), Seasons: seasonsOf(version)}
		faults = check.Bodies(known, bodiesOf(version), func(path string) bool { return version[path].reused })
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
	if err == nil {
		d.published, err = encoded(d.variant.Path(), d.body, a.At)
	}
	return err
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
func (b *Builder) draftOf(r Request, base *snapshots.Base, a *almanac.Almanac, state *ledger.State, version map[string]*document) snapshots.Draft {
	d := snapshots.Draft{
		Base: base, BuiltAt: a.At, DueAt: a.DueAt(), CurrentSeason: currentOf(base, a), Seasons: seasonsOf(version),
		Builder: b.Name, Reason: r.Reason, Release: r.Release,
		Ledger: snapshots.Ledger{Kind: string(state.Kind()), Seq: state.Head().Seq, Hash: state.Head().Hash},
	}
	for _, path := range slices.Sorted(maps.Keys(version)) {
		d.Variants = append(d.Variants, version[path].published)
	}
	return d
}

// bodiesOf are the bodies at hand: the others are those of the base, derived or not to be read.
func bodiesOf(version map[string]*document) map[string][]byte {
	bodies := make(map[string][]byte, len(version))
	for path, d := range version {
		if d.body != nil {
			bodies[path] = d.body
		}
	}
	return bodies
}

// addFeeds adds the feeds to a draft. One that cannot be rendered or fails its check, against the
// documents too, stays as it was, and so do all while the archive lacks a season that is published.
func addFeeds(d *snapshots.Draft, a *almanac.Almanac, version map[string]*document) (faults []Refused) {
	known, bodies := catalog.Known{Seasons: d.Seasons, Current: d.CurrentSeason}, bodiesOf(version)
	for _, f := range catalog.Feeds {
		entry, before := d.Base.Entry(f.Stored)
		if before && len(d.Seasons) > len(a.Years) {
			d.Variants = append(d.Variants, snapshots.Reused(entry))
			continue
		}
		body, feed, reused, err := renderedAsOf(d.Base, f.Stored, a.At, func(at time.Time) ([]byte, error) { return render.Feed(a, f, at) })
		if err == nil && !reused {
			err = check.Feed(f, body, known, bodies)
		}
		if err != nil {
			faults = append(faults, Refused{Path: f.Stored, Err: err})
			if !before {
				continue
			}
			feed = snapshots.Reused(entry)
		}
		d.Variants = append(d.Variants, feed)
	}
	return faults
}
