// Package builder makes published versions: it loads the facts, settles in the ledger what has
// fallen due, joins both, renders every variant, checks the whole and publishes it. Build is
// that sequence, top to bottom; each step is a package below this one.
package builder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
)

// Builder builds versions into a store. It is safe for concurrent use, also by several
// processes on one store: the ledger and the pointer decide who was first.
type Builder struct {
	Store  blob.Store
	Ledger *ledger.Ledger
	Facts  func(context.Context) (Facts, error) // the archive in use
	Policy Policy
	Name   string // who builds: host and process, for people
	// Sourced says how the sources of the facts stand at an instant. It may be nil: then what the
	// version before says of them stays.
	Sourced func(at time.Time) Sourced
	Log     *slog.Logger
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
	facts, err := b.Facts(ctx)
	if err != nil {
		return Outcome{}, fmt.Errorf("build: %w", err)
	}
	events, err := b.Rules(ctx).Settle(ctx, b.Ledger, facts, r.At)
	var unsettled *UnsettledError
	if err != nil && !errors.As(err, &unsettled) {
		return Outcome{Events: events}, fmt.Errorf("build: %w", err)
	}
	settled := err // what was not settled keeps nobody from seeing the rest: publish first, and fail loudly then
	for range maxRebases {
		receipt, refused, err := b.publish(ctx, r, facts)
		if errors.Is(err, snapshots.ErrBaseChanged) {
			b.Log.Info("somebody else published; building again on the new version")
			continue
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

// publish makes one attempt on the version that is current now.
func (b *Builder) publish(ctx context.Context, r Request, facts Facts) (snapshots.Receipt, []Refused, error) {
	base, err := snapshots.LoadBase(ctx, b.Store)
	if err != nil {
		return snapshots.Receipt{}, nil, err
	}
	if err := b.Ledger.Refresh(ctx); err != nil {
		return snapshots.Receipt{}, nil, err
	}
	state := b.Ledger.Current(r.At)
	v := facts.Archive.AsOf(r.At)
	a := almanac.Join(v, state)
	if len(a.Years) == 0 {
		return snapshots.Receipt{}, nil, b.nothingKnown(r.At)
	}
	derived, _, err := b.derived(ctx, b.derivedKey(facts, a))
	if err != nil { // what is derived can wait, what it is derived from cannot
		b.Log.Error("derived documents cannot be read; they stay as they were", "err", err)
	}
	version, err := renderAll(ctx, base, a, derived, r.Progress)
	if err != nil {
		return snapshots.Receipt{}, nil, err
	}
	refused, err := refuse(ctx, base, a, version)
	if err != nil {
		return snapshots.Receipt{}, nil, err
	}
	draft := draftOf(base, a, version)
	refused = append(refused, addFeeds(&draft, a)...)
	until := draft.DueAt // by then there is another version, or this one is overdue
	if until.Before(r.At) {
		until = r.At
	}
	for _, lack := range almanac.MissingBy(facts.Archive.AsOf(r.At), state, until) {
		draft.Missing = append(draft.Missing, snapshots.Missing{
			Code: string(lack.Code), Since: lack.Since, Until: lack.Until, Session: lack.Session, Urgent: lack.Urgent, Text: lack.Text, Mend: lack.Mend,
		})
	}
	for _, d := range refused {
		draft.Refused = append(draft.Refused, snapshots.RefusedEntry{Path: d.Path, Reason: d.Err.Error()})
	}
	draft.Builder, draft.Reason, draft.Release = b.Name, r.Reason, r.Release
	draft.Archive, draft.Expected = facts.SHA256, expected(a)
	if draft.State, err = b.stateOf(a, base); err != nil {
		return snapshots.Receipt{}, nil, err
	}
	draft.Ledger = snapshots.Ledger{Kind: string(state.Kind()), Seq: state.Head().Seq, Hash: state.Head().Hash}
	publisher := snapshots.Publisher{Store: b.Store, Progress: r.Progress}
	receipt, err := publisher.Publish(ctx, draft)
	return receipt, refused, err
}

// Rules is the policy with what the settings of the store say. Settings that cannot be read are logged,
// and the policy is as the process was told.
func (b *Builder) Rules(ctx context.Context) Policy {
	settings, err := LoadSettings(ctx, b.Store)
	if err != nil {
		b.Log.Error("the settings of the store cannot be read; the rules are those of the command line", "err", err)
	}
	return settings.Apply(b.Policy)
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
