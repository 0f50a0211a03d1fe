// Package builder makes published versions. It loads the facts, appends due events to the ledger, joins
// both, renders every document, checks them and publishes the version. Build is that sequence, top to
// bottom. Each step is a package below this one.
package builder

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/derive"
	"gridcast/builder/ledger"
	"gridcast/builder/live"
	"gridcast/builder/provenance"
	"gridcast/builder/render"
	"gridcast/builder/running"
	"gridcast/builder/season"
	"gridcast/builder/settings"
	"gridcast/builder/tiles"
	"gridcast/builder/units"
	"gridcast/schemas/catalog"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/notes"
)

// Builder builds versions into a store. It is safe for concurrent use, also by several
// processes on one store: the ledger and the pointer accept only one of two competing writes.
type Builder struct {
	Store blob.Store
	// Signers sign every version. Builds then reuse no document of a version that they have not signed. Nil:
	// versions are not signed.
	Signers *notes.Signers
	Ledger  *ledger.Ledger
	Facts   func(context.Context) (archive.Stored, error) // the archive in use
	// Archives has loaded Facts, so that an ingest of this process need not decode them again. It may be nil.
	Archives *archive.Store
	Policy   Policy // from the command line; the settings of the store take precedence: see Rules
	Name     string // host and process, for people
	// Release is the release of this program, which every manifest names.
	Release string
	// Provenance describes the sources of the facts at an instant. If nil, versions keep the
	// description that the version before has.
	Provenance func(at time.Time) provenance.Summary
	Log        *slog.Logger
	// Simulated says that the versions are those of the sandbox; nil: of the real world, or of a ledger replayed by hand.
	Simulated *Simulation

	// latest is the base that was loaded or published last; nil before the first. Cache, by the digests of the manifest's
	// files: to load it a build reads 1 file of the store, and 8 without.
	latest atomic.Pointer[snapshots.Base]
	memory units.Memory // of the seasons of the last version

	rules  storeRules   // the settings of the store
	healed atomic.Int64 // real time of the last Heal, in nanoseconds since 1970

	observed struct { // see Observed
		once sync.Once
		log  *live.Log
	}
	derived derive.Memory

	// TitleRuns is the number of simulations of the title odds; zero: that of published odds, [title.DefaultConfig].
	TitleRuns int
}

// Simulation is the part of the sandbox's timetable to which versions belong.
type Simulation struct {
	Clock   string // see snapshots.About
	Sandbox *snapshots.Sandbox
}

// Render is the phase of a build in which the variants are rendered. Those after it are
// snapshots.Upload, snapshots.Check and snapshots.Swap.
const Render = "rendering"

// Request asks for a build.
type Request struct {
	At       time.Time          // race time
	Reason   string             // for people; may be empty
	Release  bool               // end a hold
	Repair   bool               // read back everything that the version reuses, and write again what is damaged
	Progress snapshots.Progress // called concurrently; may be nil
}

// Outcome is the result of a build.
type Outcome struct {
	snapshots.Receipt
	Events  []ledger.Event  // appended to the ledger
	Refused []units.Refused // documents that keep their earlier bytes, because the new ones failed their check
	Damage  []string        // damaged files of the store that the build has written or made again
}

// maxRebases is how often a build starts again on a newer version before it gives up. Each time
// another builder has published, so readers are not behind.
const maxRebases = 5

// Build appends the events that are due at r.At and publishes the version of that instant. If nothing
// differs from the current version, it publishes nothing, and the receipt says Unchanged.
//
// The error wraps snapshots.ErrHeld if publishing is held, and ledger.ErrClock if the clock is ahead.
// Picks are frozen even while publishing is held. If a due event could not be appended, Build publishes
// without it and returns an *UnsettledError. A document that fails its check is no error: the version
// keeps the document of its base, and the outcome lists it in Refused.
func (b *Builder) Build(ctx context.Context, r Request) (Outcome, error) {
	began := time.Now()
	var (
		facts                        archive.Stored
		rules                        Policy
		base                         *snapshots.Base
		fresh                        ledger.Fresh
		factsErr, baseErr, ledgerErr error
		reading                      sync.WaitGroup // concurrently, because the store may be far away
	)
	reading.Go(func() { facts, factsErr = b.Facts(ctx) })
	reading.Go(func() { base, baseErr = b.loadBase(ctx) })
	reading.Go(func() { rules = b.Rules(ctx) })
	reading.Go(func() { fresh, ledgerErr = b.Ledger.Refresh(ctx) })
	reading.Wait()
	if baseErr == nil && ledgerErr == nil && b.Ledger.Head().Seq < base.Manifest.Ledger.Seq {
		fresh, ledgerErr = b.Ledger.Refresh(ctx) // no version may have an older ledger head than its base
	}
	err := cmp.Or(factsErr, ledgerErr)
	if err == nil { // a version of the future would keep every right clock from publishing until then
		err = b.Ledger.CheckClock(ctx, r.At)
	}
	if err != nil {
		return Outcome{}, fmt.Errorf("build: %w", err)
	}
	var (
		damage  []string
		healErr error
		healing sync.WaitGroup // while events are settled
	)
	if baseErr == nil {
		healing.Go(func() { base, damage, healErr = b.heal(ctx, base, r) })
	}
	_, _ = b.observe(ctx, facts.Archive.AsOf(r.At), b.Ledger.Fold())
	events, err := rules.Settle(ctx, fresh, facts, r.At)
	healing.Wait()
	var unsettled *UnsettledError
	if err != nil && !errors.As(err, &unsettled) {
		return Outcome{Events: events}, fmt.Errorf("build: %w", err)
	}
	if baseErr = cmp.Or(baseErr, healErr); baseErr != nil { // the events above are appended even so
		return Outcome{Events: events}, fmt.Errorf("build: %w", errors.Join(baseErr, err))
	}
	if r.Repair && base.Manifest.BuiltAt.After(r.At) { // a running builder has published meanwhile
		r.At = base.Manifest.BuiltAt
	}
	settled := err // publish without the refused events, and return the error then
	// raced says that another builder published after this build began.
	raced := !base.Pointer.At.Before(began)
	for range maxRebases {
		if base.Manifest.Archive != facts.SHA256 { // the builder of base may have read a later archive
			if facts, err = b.Facts(ctx); err != nil {
				return Outcome{Events: events}, fmt.Errorf("build: %w", err)
			}
		}
		if raced && base.Manifest.BuiltAt.After(r.At) { // no version may be of an earlier instant than its base
			r.At = base.Manifest.BuiltAt
		}
		in := inputs{From: derive.From{At: r.At, Facts: facts, Ledger: b.Ledger.Current(r.At), Model: rules.Model, TitleRuns: b.TitleRuns}, Settings: rules.settings, Base: base}
		in.Live, in.Unread = b.observe(ctx, facts.Archive.AsOf(r.At), in.Ledger)
		if in.Ledger.Kind() == ledger.Simulated { // in fast time laps arrive while a build runs, and the ledger ends at r.At too
			in.Live = in.Live.AsOf(r.At)
		}
		receipt, refused, err := b.publish(ctx, r, in)
		if errors.Is(err, snapshots.ErrBaseChanged) {
			b.Log.Info("another builder published; building again on its version")
			if base, err = b.loadBase(ctx); err == nil {
				_, err = b.Ledger.Refresh(ctx)
			}
			if raced = true; err == nil {
				continue
			}
		}
		if err != nil {
			return Outcome{Events: events}, fmt.Errorf("build: %w", err)
		}
		receipt.Seconds = time.Since(began).Seconds() // Publish counts only its own time
		for _, d := range refused {
			b.Log.Error("document refused; readers get its earlier bytes", "path", d.Path, "err", d.Err)
		}
		if settled != nil {
			settled = fmt.Errorf("build: version %d is published without events that were due: %w", receipt.Version, settled)
		}
		return Outcome{Receipt: receipt, Events: events, Refused: refused, Damage: damage}, settled
	}
	return Outcome{Events: events}, fmt.Errorf("build: other builders published %d versions meanwhile", maxRebases)
}

// loadBase loads the current version. It reads only the files that it has not read before.
func (b *Builder) loadBase(ctx context.Context) (*snapshots.Base, error) {
	base, err := b.publisher(nil).LoadBase(ctx, b.latest.Load())
	if err == nil {
		kept := base
		if base.Repaired != nil { // said once
			again := *base
			again.Repaired, kept = nil, &again
		}
		b.latest.Store(kept)
	}
	if err == nil && b.Simulated != nil && !base.Empty() {
		return base.OfCycle(b.Simulated.Sandbox.Cycle)
	}
	return base, err
}

// healEvery is the time in which builds read back every file that they reuse.
const healEvery = 24 * time.Hour

// heal reads back a share of the files that a version on the base would reuse: those whose turn in the day has come since
// the last heal. A new process does not know the last one, and takes an hour's share. heal returns the base to build on,
// and the damage that it or the loading of base found.
func (b *Builder) heal(ctx context.Context, base *snapshots.Base, r Request) (*snapshots.Base, []string, error) {
	now := time.Now()
	last := b.healed.Swap(now.UnixNano())
	since := min(now.Sub(time.Unix(0, cmp.Or(last, now.Add(-time.Hour).UnixNano()))), healEvery)
	chosen := func(key string) bool {
		sum := fnv.New64a()
		_, _ = sum.Write([]byte(key))
		turn := time.Duration(sum.Sum64() % uint64(healEvery))
		return (time.Duration(now.UnixNano())%healEvery-turn+healEvery)%healEvery < since
	}
	var progress snapshots.Progress
	if r.Repair {
		chosen, progress = nil, r.Progress
	}
	healed, err := base.Heal(ctx, chosen, progress)
	if err != nil && !r.Repair {
		b.Log.Error("files of the version cannot be read back; the next build tries again", "err", err)
		b.healed.Store(last)
		healed, err = base, nil
	}
	if err != nil {
		return nil, nil, err
	}
	damage := slices.Clone(healed.Repaired)
	if healed.Damage != nil {
		damage = append(damage, strings.Split(healed.Damage.Error(), "\n")...)
	}
	for _, fault := range damage {
		b.Log.Error("damage in the store; this build writes it again", "err", fault)
	}
	return healed, damage, nil
}

// Freshen signs again that the current version is current, and the text about the list of API keys; see
// [snapshots.Publisher.Freshen]. It does nothing without a key.
func (b *Builder) Freshen(ctx context.Context, keys func(ctx context.Context, before string) (string, error)) error {
	return b.publisher(nil).Freshen(ctx, keys)
}

func (b *Builder) publisher(progress snapshots.Progress) *snapshots.Publisher {
	return &snapshots.Publisher{Store: b.Store, Progress: progress, Signers: b.Signers}
}

// documents makes the documents of a version. It also returns the key and the inputs of the derived documents among
// them: those of the base if Derive has not run on these inputs yet.
func (b *Builder) documents(ctx context.Context, in inputs, a *almanac.Almanac, progress snapshots.Progress) (version *units.Version, key string, from snapshots.Derivation, err error) {
	var (
		derived    derive.File
		found      bool
		derivedErr error
		reading    sync.WaitGroup // while documents are rendered, because the store may be far away
	)
	key = in.Key(a)
	reading.Go(func() { derived, found, derivedErr = b.deriver().Read(ctx, key) })
	version, err = b.memory.Render(ctx, in.Base, a, func(done, total int) { progress.Report(Render, done, total) })
	reading.Wait()
	if err != nil {
		return nil, "", from, err
	}
	if derivedErr != nil { // derived documents can wait, results cannot
		b.Log.Error("derived documents cannot be read; readers get the earlier ones", "err", derivedErr)
	}
	if err := liveDocuments(ctx, b.Observed(), in, a, version); err != nil {
		return nil, "", from, err
	}
	if !found {
		for _, entry := range in.Base.Manifest.Entries {
			if v, err := catalog.ParsePath(entry.Path); err == nil && v.Endpoint.Derived() && v.Endpoint != catalog.Live {
				d := &units.Document{Path: entry.Path, Published: snapshots.Reused(entry), Reused: true}
				if r, refused := in.Base.Manifest.RefusedAt(entry.Path); refused {
					d.Fault = errors.New(r.Reason) // its bytes are not of the inputs that the base names
				}
				version.Put(d)
			}
		}
		return version, in.Base.Manifest.Derived, in.Base.Manifest.DerivedFrom, nil
	}
	for path, data := range derived.Data {
		version.Put(units.Render(in.Base, path, in.At, func(at time.Time) ([]byte, error) { return render.Data(data, at) }))
	}
	return version, key, derived.Derivation, nil
}

// publish makes one attempt to publish the version of these inputs.
func (b *Builder) publish(ctx context.Context, r Request, in inputs) (snapshots.Receipt, []units.Refused, error) {
	v := in.Facts.Archive.AsOf(in.At)
	a := almanac.Join(v, in.Ledger)
	if len(a.Years) == 0 {
		return snapshots.Receipt{}, nil, nothingKnown(b.Ledger.Fold(), in.At)
	}
	version, derived, derivedFrom, err := b.documents(ctx, in, a, r.Progress)
	if err != nil {
		return snapshots.Receipt{}, nil, err
	}
	current, years := units.Current(in.Base, a), in.Base.Manifest.DefaultYears
	if current == a.Current {
		years = defaultYears(in.Base, a, version)
	}
	draft := snapshots.Draft{
		Base: in.Base, EndHold: r.Release,
		About: snapshots.About{
			Builder: b.Name, Reason: r.Reason, Release: b.Release, Settings: in.Settings, Operator: b.Told(in.Base),
			BuiltAt: in.At, DueAt: a.DueAt(), CurrentSeason: current, DefaultYears: years, Archive: in.Facts.SHA256,
			Ledger: derive.Head(in.Ledger), Live: in.Live.Head.Hash, Derived: derived, DerivedFrom: derivedFrom,
			Expected: expected(a), Missing: missingUntilDue(v, in.Ledger, a, b.SettingsMissing(in.At)),
		},
	}
	if b.Simulated != nil {
		draft.Clock, draft.Sandbox = b.Simulated.Clock, b.Simulated.Sandbox
	}
	if draft.State, err = factsState(a, in.Base, b.Provenance); err != nil {
		return snapshots.Receipt{}, nil, err
	}
	refused, err := version.Refuse(ctx, in.Base, a)
	if err != nil {
		return snapshots.Receipt{}, nil, err
	}
	b.memory.Keep(version)
	draft.Seasons = version.Seasons()
	for _, d := range version.Documents() {
		draft.Variants = append(draft.Variants, d.Published)
	}
	refused = append(refused, addFeeds(&draft, a, version)...)
	if err := tiles.Add(&draft, b.Signers, b.Ledger.Files()[:in.Ledger.Head().Seq], in.Ledger); err != nil {
		return snapshots.Receipt{}, nil, err
	}
	for _, document := range refused {
		draft.Refused = append(draft.Refused, snapshots.RefusedEntry{Path: document.Path, Version: in.Base.Keeps(document.Path), Reason: document.Err.Error()})
	}
	receipt, err := b.publisher(r.Progress).Publish(ctx, draft)
	if receipt.Base != nil {
		b.latest.Store(receipt.Base)
	}
	return receipt, refused, err
}

// Derive makes the forecasts, the title odds and the track record of the version that Build publishes at an
// instant, unless the store has them. It first notes in the ledger the forecasts that are due. It returns true if a
// build would now publish other documents. The first call takes some seconds of one processor, a later one only the
// time for changed inputs. Builds never wait for Derive: versions keep the earlier derived documents until it has run.
func (b *Builder) Derive(ctx context.Context, at time.Time) (bool, error) {
	facts, err := b.Facts(ctx)
	if err != nil {
		return false, fmt.Errorf("derive: %w", err)
	}
	fresh, err := b.Ledger.Refresh(ctx)
	if err != nil {
		return false, fmt.Errorf("derive: %w", err)
	}
	rules := b.Rules(ctx)
	if rules.Unread { // the forecasts would be those of another model
		return false, nil
	}
	if err := derive.NoteForecasts(ctx, fresh, rules.Model, facts, at); err != nil {
		b.Log.Error("the ledger has no forecast of this step of the week, so the track record will lack it; the next version tries again", "err", err)
	}
	made, err := b.deriver().Derive(ctx, derive.From{At: at, Facts: facts, Ledger: b.Ledger.Current(at), Model: rules.Model, TitleRuns: b.TitleRuns})
	if err != nil {
		return false, fmt.Errorf("derive: %w", err)
	}
	return made, nil
}

func (b *Builder) deriver() *derive.Deriver {
	return &derive.Deriver{Store: b.Store, Observed: b.Observed(), Log: b.Log, Memory: &b.derived}
}

// Observed returns the log of observations of this builder's store.
func (b *Builder) Observed() *live.Log {
	b.observed.once.Do(func() { b.observed.log = &live.Log{Store: b.Store} })
	return b.observed.log
}

// observe reads the observations of the round of /live. If the store does not answer, the ones read before count,
// because results must not wait for them. The error means that none are known.
func (b *Builder) observe(ctx context.Context, v *season.View, s *ledger.Fold) (*live.Tape, error) {
	tape, err := running.Observe(ctx, b.Observed(), v, s)
	if err != nil {
		b.Log.Error("the observations of the race cannot be read; /live shows the earlier ones", "err", err)
	}
	if tape != nil {
		return tape, nil
	}
	return &live.Tape{}, err
}

// Look reads the observations of the race that runs at an instant, and returns the hash of their head; empty: there are
// none. The error means that they are not known.
func (b *Builder) Look(ctx context.Context, facts archive.Stored, at time.Time) (string, error) {
	tape, err := b.observe(ctx, facts.Archive.AsOf(at), b.Ledger.Fold())
	return tape.Head.Hash, err
}

// State returns the description of the facts that a build at an instant would publish on /status, as
// JSON. The service compares it with the published one to decide about a build.
func (b *Builder) State(facts archive.Stored, at time.Time, base *snapshots.Base) (json.RawMessage, error) {
	return factsState(almanac.Join(facts.Archive.AsOf(at), b.Ledger.Current(at)), base, b.Provenance)
}

// Rules returns the policy with the settings of the store applied. If they cannot be read, or name a model that this
// program does not have, Rules applies those that it has read last. If it has never read any, the policy verifies
// nothing, and it freezes picks only in the last minute, by the model of the command line: see Policy.Unread.
func (b *Builder) Rules(ctx context.Context) Policy {
	now, err := settings.Load(ctx, b.Store)
	rules, problem := b.rules.apply(b.Policy, now, err)
	if problem != "" && ctx.Err() == nil {
		b.Log.Error(problem)
	}
	rules.Observed = b.Observed().Known
	return rules
}

// Unread reports whether the settings of the store could not be read since the start of this process.
func (b *Builder) Unread() bool {
	b.rules.mu.Lock()
	defer b.rules.mu.Unlock()
	return b.rules.problem != nil && b.rules.read == nil
}

// Told returns the operator as a version on base names it: by the settings that were read last, or as base if none
// could be read.
func (b *Builder) Told(base *snapshots.Base) snapshots.Operator {
	b.rules.mu.Lock()
	defer b.rules.mu.Unlock()
	if b.rules.read == nil {
		return base.Manifest.Operator
	}
	return b.rules.read.Told()
}

// SettingsMissing returns the missing fact that the settings of the store cannot be read, at an instant of race time; none
// if they can.
func (b *Builder) SettingsMissing(now time.Time) []almanac.MissingFact {
	r := &b.rules
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.problem == nil {
		return nil
	}
	if r.since.IsZero() {
		r.since = now.UTC().Truncate(time.Second)
	}
	return []almanac.MissingFact{{
		Code: almanac.SettingsUnread, Since: r.since, Urgent: true, Fix: "gridcast settings set", Text: r.describe(),
	}}
}
