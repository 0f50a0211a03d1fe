package flags

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"gridcast/builder"
	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/ingest"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/clock"
)

// Rounds is for commands about rounds, which need the ledger and race time.
type Rounds struct {
	Storage
	Clock
}

// Reader opens the store to read about rounds. The operator that it returns cannot write.
func (f Rounds) Reader(ctx context.Context) (*operator.Operator, error) {
	store, err := f.OpenToRead(ctx)
	if err != nil {
		return nil, err
	}
	o := &operator.Operator{Store: store}
	return o, f.complete(ctx, o)
}

// ProvideAlmanac joins the facts and the ledger of the store for a command that only reads.
func (f Rounds) ProvideAlmanac(ctx context.Context) (*almanac.Almanac, error) {
	o, err := f.Reader(ctx)
	if err != nil {
		return nil, err
	}
	return o.Almanac(ctx)
}

// Operator opens the store for actions on rounds.
func (f Rounds) Operator(ctx context.Context, s *terminal.Streams) (*operator.Operator, error) {
	o, err := f.Storage.Operator(ctx, s)
	if err != nil {
		return nil, err
	}
	return o, f.complete(ctx, o)
}

// complete gives o the ledger, the facts and race time. The clock must fit the kind of the ledger,
// because at the real time a simulated race looks long over.
func (f Rounds) complete(ctx context.Context, o *operator.Operator) error {
	c, err := f.Race()
	if err != nil {
		return err
	}
	facts := archive.NewStore(o.Store)
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = facts.Load(ctx) }) // beside the ledger; the first user has the error
	if o.Ledger, err = ledger.Load(ctx, o.Store, LedgerKind(c)); err == nil {
		err = uncut(ctx, o.Store, o.Ledger)
	}
	reading.Wait()
	switch {
	case errors.Is(err, ledger.ErrNotOpened):
		return fmt.Errorf("%w; gridcast build makes one", err)
	case err != nil:
		return clockHint(err, LedgerKind(c))
	}
	o.Now = func() time.Time { return f.Instant(c) }
	return joinFacts(ctx, o, facts)
}

// joinFacts gives o the archive of its store, beside its ledger.
func joinFacts(ctx context.Context, o *operator.Operator, facts *archive.Store) error {
	o.Archives = facts
	o.Facts = func(ctx context.Context) (archive.Stored, error) {
		loaded, err := facts.Load(ctx)
		if errors.Is(err, blob.ErrNotFound) {
			if _, useErr := facts.InUse(ctx); errors.Is(useErr, blob.ErrNotFound) {
				err = fmt.Errorf("%w; gridcast build puts one into the store", err)
			}
		}
		return loaded, err
	}
	return facts.Vouch(ctx, o.Ledger)
}

// Importer opens an existing store for actions on its archive. Its ledger may be of either kind; the operator has none
// if the store has none yet.
func (f Storage) Importer(ctx context.Context, s *terminal.Streams) (*operator.Operator, error) {
	o, err := f.Operator(ctx, s)
	if err != nil {
		return nil, err
	}
	l, err := ledger.Load(ctx, o.Store, ledger.AnyKind)
	if errors.Is(err, ledger.ErrNotOpened) {
		return o, nil
	}
	if err == nil {
		o.Ledger, err = ledger.Load(ctx, o.Store, l.Fold().Kind()) // to append
	}
	if err != nil {
		return nil, err
	}
	return o, joinFacts(ctx, o, archive.NewStore(o.Store))
}

// Manual is for commands that enter facts by hand.
type Manual struct {
	Rounds
	Sources
}

// Reader opens the store to read facts entered by hand, and the last document of each source.
func (f Manual) Reader(ctx context.Context, s *terminal.Streams) (*operator.Operator, error) {
	o, err := f.Rounds.Reader(ctx)
	if err != nil {
		return nil, err
	}
	return o, f.assemble(o, s)
}

// Operator opens the store for actions that enter facts. They compare the facts with the last
// document of each source, and poll no source.
func (f Manual) Operator(ctx context.Context, s *terminal.Streams) (*operator.Operator, error) {
	o, err := f.Rounds.Operator(ctx, s)
	if err != nil {
		return nil, err
	}
	return o, f.assemble(o, s)
}

// assemble gives o the means to assemble the archive of its store.
func (f Manual) assemble(o *operator.Operator, s *terminal.Streams) error {
	c, err := f.Race()
	if err != nil {
		return err
	}
	upstreams, err := f.Upstreams(c.IsSystem(), s.Version)
	if err != nil {
		return err
	}
	o.Ingest = &ingest.Ingest{
		Store: o.Store, Facts: o.Archives, Release: s.Version, Ledger: o.Ledger, Sources: upstreams,
		Log:      slog.New(slog.NewTextHandler(s.Err, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Interval: func(time.Time) time.Duration { return freshFor },
	}
	usual, err := predict.ByName(predict.Names[0])
	rules := &builder.Builder{Store: o.Store, Policy: builder.Policy{Model: usual}, Log: o.Ingest.Log}
	o.Model = func(ctx context.Context) predict.Model { return rules.Rules(ctx).Model }
	return err
}

// Clock sets race time. A process on another clock than the real one writes only simulated ledgers.
type Clock struct {
	Now       time.Time `help:"Race time at the start of this command, RFC 3339; for a simulated ledger." placeholder:"INSTANT" env:"-"`
	RaceClock string    `help:"Race time as RACE@REAL*SPEED, the same for every process; for a simulated ledger." placeholder:"CLOCK"`
}

// Race returns the race clock.
func (f Clock) Race() (clock.Clock, error) {
	switch {
	case f.RaceClock != "" && !f.Now.IsZero() && f.RaceClock != os.Getenv("GRIDCAST_RACE_CLOCK"):
		return clock.Clock{}, terminal.Usagef("--now and --race-clock both set race time: give one of them")
	case !f.Now.IsZero(): // a flag beats the environment
		return clock.At(f.Now.UTC(), time.Now(), 1)
	case f.RaceClock != "":
		c, err := clock.Parse(f.RaceClock)
		if err != nil {
			return clock.Clock{}, terminal.Usagef("--race-clock: %w", err)
		}
		return c, nil
	default:
		return clock.System(), nil
	}
}

// Instant is the race time of a command that runs once on clock c. With --now it does not move while
// the command runs, so that a repeated command writes the same bytes.
func (f Clock) Instant(c clock.Clock) time.Time {
	if f.Now.IsZero() {
		return c.Now()
	}
	return f.Now.UTC()
}

// clockHint names the flags that help if a ledger is not of the kind of the race clock.
func clockHint(err error, kind ledger.Kind) error {
	switch {
	case !errors.Is(err, ledger.ErrKind):
		return err
	case kind == ledger.Real:
		return fmt.Errorf("%w; set race time with --race-clock, to the value of the server, or with --now", err)
	default:
		return fmt.Errorf("%w; leave out --now and --race-clock", err)
	}
}

// LedgerKind is the kind of ledger that a process on clock c may write.
func LedgerKind(c clock.Clock) ledger.Kind {
	if c.IsSystem() {
		return ledger.Real
	}
	return ledger.Simulated
}
