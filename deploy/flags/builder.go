package flags

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"gridcast/builder"
	"gridcast/builder/archive"
	"gridcast/builder/ingest"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/builder/source/media"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/clock"
)

// Builder is for processes that build versions.
type Builder struct {
	Storage
	Signing
	Clock
	Archive         string        `help:"An archive file to build from; it is put into the store. Default: the one in the store, else the embedded seasons." placeholder:"PATH" type:"path"`
	Model           string        `help:"The model that makes the picks: ${enum}. The store keeps it for every scheduler and every later command, until it is set again." enum:"v2,r2,grid-frequency" default:"v2"`
	AutoVerifyAfter time.Duration `help:"Verify a result automatically once it has not changed for this long after the race; 0: only an operator verifies. The store keeps it for every scheduler, until it is set again." default:"0s"`
	AutoReviseAfter time.Duration `help:"Correct a verified result automatically once the source's new classification has not changed for this long; 0: only an operator corrects. The store keeps it, too." default:"0s"`
	Headshots       string        `help:"Portraits: a file with an https address that contains {driver}, {code} or {year}, and below it the identifiers of the drivers with a portrait, one a line; without any, all drivers. The store keeps it; gridcast settings set --no-headshots removes it." placeholder:"FILE" type:"path"`
}

// Policy returns the rules that the flags set.
func (f *Builder) Policy() (builder.Policy, error) {
	if f.AutoVerifyAfter < 0 {
		return builder.Policy{}, terminal.Usagef("--auto-verify-after %s: must not be negative", f.AutoVerifyAfter)
	}
	if f.AutoReviseAfter < 0 {
		return builder.Policy{}, terminal.Usagef("--auto-revise-after %s: must not be negative", f.AutoReviseAfter)
	}
	model, err := predict.ByName(f.Model)
	if err != nil {
		return builder.Policy{}, terminal.Usagef("--model: %w", err)
	}
	return builder.Policy{Model: model, AutoVerifyAfter: f.AutoVerifyAfter, AutoReviseAfter: f.AutoReviseAfter}, nil
}

// New opens the store and returns a builder on it, and its race clock.
func (f *Builder) New(ctx context.Context, s *terminal.Streams) (*builder.Builder, clock.Clock, error) {
	c, err := f.Race()
	if err != nil {
		return nil, c, err
	}
	store, err := f.Open(ctx)
	if err != nil {
		return nil, c, err
	}
	b, err := f.On(ctx, s, store, LedgerKind(c), f.Instant(c))
	return b, c, err
}

// On returns a builder on an open store. The ledger must be of the kind; an empty store gets a new
// ledger, opened at the instant. The flags given become the settings of the store.
func (f *Builder) On(ctx context.Context, s *terminal.Streams, store blob.Store, kind ledger.Kind, at time.Time) (*builder.Builder, error) {
	if err := f.storeSettings(ctx, s, store); err != nil {
		return nil, err
	}
	return f.WithoutSettings(ctx, s, store, kind, at)
}

// WithoutSettings is On that does not change the settings of the store.
func (f *Builder) WithoutSettings(ctx context.Context, s *terminal.Streams, store blob.Store, kind ledger.Kind, at time.Time) (*builder.Builder, error) {
	policy, err := f.Policy()
	if err != nil {
		return nil, err
	}
	facts := archive.NewStore(store)
	key, err := f.Signers()
	if err != nil {
		return nil, err
	}
	l, err := f.openLedger(ctx, facts, store, kind, at)
	if err != nil {
		return nil, err
	}
	if err := facts.Vouch(ctx, l); err != nil {
		return nil, err
	}
	// A build that polls no source needs the arrival times in the facts log too.
	log := &ingest.Ingest{Store: store, Facts: facts, Ledger: l, Log: s.Log}
	if err := log.Load(ctx); err != nil {
		return nil, err
	}
	policy.Stability, policy.Arrived = log.Stability, log.Arrived
	return &builder.Builder{Store: store, Signers: key, Ledger: l, Facts: facts.Load, Archives: facts, Policy: policy, Name: ProcessName(), Release: s.Version, Log: s.Log}, nil
}

// openLedger opens the ledger of a store, and puts an archive into a store that has none. It reads no facts.
func (f *Builder) openLedger(ctx context.Context, facts *archive.Store, store blob.Store, kind ledger.Kind, at time.Time) (*ledger.Ledger, error) {
	if err := f.PutArchive(ctx, facts); err != nil {
		return nil, err
	}
	inUse, err := facts.InUse(ctx)
	if err != nil {
		return nil, err
	}
	l, err := ledger.Open(ctx, store, kind, at, ledger.BuilderActor, inUse)
	if err != nil {
		return nil, clockHint(err, kind)
	}
	if err := uncut(ctx, store, l); err != nil {
		return nil, err
	}
	started := time.Now() // with its monotonic reading, by which Since goes
	l.UseClock(ledger.Steady(time.Now, func() time.Duration { return time.Since(started) }))
	return l, nil
}

// uncut returns an error if the ledger ends before the head that the published version names. A new event would take the
// number of a lost file, and the file could not be restored any more.
func uncut(ctx context.Context, store blob.Store, l *ledger.Ledger) error {
	base, err := snapshots.LoadBase(ctx, store, nil)
	switch {
	case errors.Is(err, snapshots.ErrNoBase):
		return nil // a pick is frozen in time without it
	case err != nil:
		return err
	}
	noted := base.Manifest.Ledger.Seq
	if l.Head().Seq < noted {
		_, err = l.Refresh(ctx) // another process may have written and published
	}
	if err == nil && l.Head().Seq < noted {
		err = fmt.Errorf("version %d has seen file %d of the ledger in %s, and file %d is the last one: the others are lost; gridcast store restore BACKUP brings them back, and where no copy has them gridcast snapshots rollback goes on from a version that has not seen them", base.Pointer.Version, noted, store, l.Head().Seq)
	}
	return err
}

// Ingest opens the store and returns the ingest that polls the sources and brings their facts into it, and the
// instant of race time. It reads facts only if there is news.
func (f *Builder) Ingest(ctx context.Context, from Sources, s *terminal.Streams) (*ingest.Ingest, time.Time, error) {
	c, err := f.Race()
	if err != nil {
		return nil, time.Time{}, err
	}
	at := f.Instant(c)
	store, err := f.Open(ctx)
	if err == nil {
		err = f.storeSettings(ctx, s, store)
	}
	if err != nil {
		return nil, at, err
	}
	facts := archive.NewStore(store)
	l, err := f.openLedger(ctx, facts, store, LedgerKind(c), at)
	if err != nil {
		return nil, at, err
	}
	in, err := from.Ingest(ctx, &builder.Builder{Store: store, Ledger: l, Archives: facts}, c.IsSystem(), s)
	if err == nil {
		in.Vouch = func(ctx context.Context) error { return facts.Vouch(ctx, l) }
	}
	return in, at, err
}

// Operator opens the store for actions that build.
func (f *Builder) Operator(ctx context.Context, s *terminal.Streams) (*operator.Operator, error) {
	b, clock, err := f.New(ctx, s)
	if err != nil {
		return nil, err
	}
	o, err := NewOperator(ctx, b.Store)
	if err != nil {
		return nil, err
	}
	o.Ledger, o.Facts, o.Build, o.Sign = b.Ledger, b.Facts, b.Build, b.Signers
	o.Now = func() time.Time { return f.Instant(clock) }
	return o, nil
}

// storeSettings writes the rules that were set, by flag or environment, into the store, so that every
// scheduler of the store follows them. The audit log records each change.
func (f *Builder) storeSettings(ctx context.Context, s *terminal.Streams, store blob.Store) error {
	if _, err := f.Policy(); err != nil {
		return err
	}
	action := operator.ChangeSettings{
		Model:           given(s, "model", &f.Model),
		AutoVerifyAfter: given(s, "auto-verify-after", &f.AutoVerifyAfter), AutoReviseAfter: given(s, "auto-revise-after", &f.AutoReviseAfter),
	}
	portraits, err := ReadHeadshots(f.Headshots)
	if err != nil {
		return terminal.Usagef("%w", err)
	}
	if portraits.Template != "" {
		action.Headshots = &portraits
	}
	if action == (operator.ChangeSettings{}) {
		return nil
	}
	o, err := NewOperator(ctx, store)
	if err != nil {
		return err
	}
	_, err = o.Do(ctx, action, operator.Request{Actor: actor(""), Reason: "told at the start of " + ProcessName()})
	return err
}

// ReadHeadshots reads a file of portraits. An empty name means no portraits.
func ReadHeadshots(file string) (season.Headshots, error) {
	if file == "" {
		return season.Headshots{}, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return season.Headshots{}, fmt.Errorf("read headshots: %w", err)
	}
	portraits, err := media.ReadHeadshots(bytes.NewReader(text))
	if err != nil {
		return portraits, fmt.Errorf("%s: %w", file, err)
	}
	return portraits, nil
}

// ReadArchive reads an archive file. An empty name means the embedded seasons.
func ReadArchive(file string) (archive.Stored, error) {
	if file == "" {
		return archive.Embedded()
	}
	return archive.ReadFile(file)
}

// PutArchive puts the archive of the flag into the store. Without the flag, a store that has no
// archive gets the embedded seasons.
func (f *Builder) PutArchive(ctx context.Context, facts *archive.Store) error {
	if f.Archive == "" {
		if _, err := facts.InUse(ctx); !errors.Is(err, blob.ErrNotFound) {
			return err
		}
	}
	stored, err := ReadArchive(f.Archive)
	if err != nil {
		return err
	}
	return facts.Put(ctx, stored)
}

// given returns the value of a flag that was set; nil if it was not.
func given[T any](s *terminal.Streams, flag string, value *T) *T {
	if Given(s, flag) {
		return value
	}
	return nil
}

// Given reports whether a flag was set, on the command line or in the environment.
func Given(s *terminal.Streams, flag string) bool {
	return s.Given[flag] || os.Getenv("GRIDCAST_"+strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))) != ""
}
