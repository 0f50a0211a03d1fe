package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"gridcast/builder"
	"gridcast/builder/archive"
	"gridcast/builder/ingest"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/builder/source/media"
	"gridcast/deploy/clock"
	"gridcast/deploy/operator"
	"gridcast/snapshots/blob"
)

// clockFlags sets race time. What runs on another clock than the real one writes only
// simulated ledgers.
type clockFlags struct {
	Now       string `help:"Race time at the start of this command, RFC 3339; for a simulated ledger." placeholder:"INSTANT" env:"-"`
	RaceClock string `help:"Race time as RACE@REAL*SPEED, the same for every process; for a simulated ledger." placeholder:"CLOCK"`
}

func (f *clockFlags) clock() (clock.Clock, error) {
	switch {
	case f.RaceClock != "" && f.Now != "" && f.RaceClock != os.Getenv("GRIDCAST_RACE_CLOCK"):
		return clock.Clock{}, usageError{errors.New("--now and --race-clock both say what time it is: give one of them")}
	case f.RaceClock != "" && f.Now == "": // a flag beats the environment
		c, err := clock.Parse(f.RaceClock)
		if err != nil {
			return clock.Clock{}, usageError{fmt.Errorf("--race-clock: %w", err)}
		}
		return c, nil
	case f.Now != "":
		t, err := f.now()
		if err != nil {
			return clock.Clock{}, err
		}
		return clock.From(t)
	default:
		return clock.System(), nil
	}
}

// instant is the race time of a command that runs once on clock c: with --now exactly that,
// however long the command takes, so that what it does can be repeated to the byte.
func (f *clockFlags) instant(c clock.Clock) time.Time {
	if t, err := f.now(); err == nil {
		return t
	}
	return c.Now()
}

func (f *clockFlags) now() (time.Time, error) {
	t, err := time.Parse(time.RFC3339, f.Now)
	if err != nil {
		return time.Time{}, usageError{fmt.Errorf("--now %q: must be an instant such as 2024-07-28T12:00:00Z", f.Now)}
	}
	return t.UTC(), nil
}

// kindOf says which kind of ledger may be written on a clock.
func kindOf(c clock.Clock) ledger.Kind {
	if c.IsSystem() {
		return ledger.Real
	}
	return ledger.Simulated
}

// builderFlags is what a process that builds is told.
type builderFlags struct {
	storeFlags      `embed:""`
	clockFlags      `embed:""`
	Archive         string        `help:"An archive file to build from; it is put into the store. Default: the one in the store, else the embedded seasons." placeholder:"PATH" type:"path"`
	Model           string        `help:"What makes the picks: ${enum}. Kept in the store: every scheduler and every later command goes by it, until one is told otherwise." enum:"v2,r2,grid-frequency" default:"v2"`
	AutoVerifyAfter time.Duration `help:"Verify a result by itself once it has stood unchanged for so long after the end of the race; 0: only an operator does. Kept in the store: every scheduler of it goes by it, until one is told otherwise." default:"0s"`
	AutoReviseAfter time.Duration `help:"Correct a verified result by itself once the source's other classification has stood for so long; 0: only an operator does. Kept in the store, too." default:"0s"`
	Headshots       string        `help:"Portraits: a file with an https address, in which {driver}, {code} and {year} are filled in, and below it a line with the identifier of each driver who has one, also of those to come. Kept in the store, too; gridcast settings set --no-headshots takes them away." placeholder:"FILE" type:"path"`
}

func (f *builderFlags) policy() (builder.Policy, error) {
	if f.AutoVerifyAfter < 0 {
		return builder.Policy{}, usageError{fmt.Errorf("--auto-verify-after %s: must not be negative", f.AutoVerifyAfter)}
	}
	if f.AutoReviseAfter < 0 {
		return builder.Policy{}, usageError{fmt.Errorf("--auto-revise-after %s: must not be negative", f.AutoReviseAfter)}
	}
	model, err := predict.ByName(f.Model)
	if err != nil {
		return builder.Policy{}, usageError{fmt.Errorf("--model: %w", err)}
	}
	return builder.Policy{Model: model, AutoVerifyAfter: f.AutoVerifyAfter, AutoReviseAfter: f.AutoReviseAfter}, nil
}

// builder returns a builder on the store and the race time it builds at.
func (f *builderFlags) builder(ctx context.Context, s *streams) (*builder.Builder, clock.Clock, error) {
	c, err := f.clock()
	if err != nil {
		return nil, c, err
	}
	store, err := f.open(ctx)
	if err != nil {
		return nil, c, err
	}
	b, err := f.builderOn(ctx, s, store, kindOf(c), f.instant(c))
	return b, c, err
}

// builderOn is builder on an open store, whose ledger is of the kind or is opened at the
// instant. What the process was told becomes the store's.
func (f *builderFlags) builderOn(ctx context.Context, s *streams, store blob.Store, kind ledger.Kind, at time.Time) (*builder.Builder, error) {
	if err := f.settle(ctx, s, store); err != nil {
		return nil, err
	}
	return f.builderAside(ctx, s, store, kind, at)
}

// builderAside is builderOn that leaves the settings of the store alone.
func (f *builderFlags) builderAside(ctx context.Context, s *streams, store blob.Store, kind ledger.Kind, at time.Time) (*builder.Builder, error) {
	policy, err := f.policy()
	if err != nil {
		return nil, err
	}
	facts := archive.NewStore(store)
	if err := f.putArchive(ctx, facts); err != nil {
		return nil, err
	}
	inUse, err := facts.Load(ctx)
	if err != nil {
		return nil, err
	}
	l, err := ledger.Open(ctx, store, kind, at, builder.Actor, inUse.SHA256)
	if err != nil {
		return nil, err
	}
	if err := builder.Vouch(ctx, l, facts); err != nil {
		return nil, err
	}
	started := time.Now() // with its monotonic reading, by which Since goes
	l.UseClock(ledger.Steady(time.Now, func() time.Duration { return time.Since(started) }))
	// What the facts log knows of arrivals counts for a build that asks nobody too.
	known := &ingest.Ingest{Store: store, Facts: facts, Ledger: l, Log: s.log}
	if err := known.Load(ctx); err != nil {
		return nil, err
	}
	policy.Stability, policy.Arrived = known.Stability, known.Arrived
	return &builder.Builder{Store: store, Ledger: l, Facts: facts.Load, Policy: policy, Name: processName(), Log: s.log}, nil
}

// settle has every scheduler of a store go by the rules that this one is told. What changes is in the
// audit log.
func (f *builderFlags) settle(ctx context.Context, s *streams, store blob.Store) error {
	if _, err := f.policy(); err != nil {
		return err
	}
	told := func(flag, variable string) bool { return s.given(flag) || os.Getenv(variable) != "" }
	var action operator.ChangeSettings
	if told("model", "GRIDCAST_MODEL") {
		action.Model = &f.Model
	}
	if told("auto-verify-after", "GRIDCAST_AUTO_VERIFY_AFTER") {
		action.AutoVerifyAfter = &f.AutoVerifyAfter
	}
	if told("auto-revise-after", "GRIDCAST_AUTO_REVISE_AFTER") {
		action.AutoReviseAfter = &f.AutoReviseAfter
	}
	portraits, err := readHeadshots(f.Headshots)
	if err != nil {
		return usageError{err}
	}
	if portraits.Template != "" {
		action.Headshots = &portraits
	}
	if action == (operator.ChangeSettings{}) {
		return nil
	}
	o, err := operate(ctx, store)
	if err != nil {
		return err
	}
	_, err = o.Do(ctx, action, operator.Request{Actor: operatorActor(""), Reason: "told at the start of " + processName()})
	if errors.Is(err, operator.ErrSettled) {
		return nil
	}
	return err
}

// readHeadshots reads a file of portraits; none if no file is named.
func readHeadshots(file string) (season.Headshots, error) {
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

// putArchive makes sure that the store has an archive: the file asked for, else what is there,
// else the embedded seasons.
func (f *builderFlags) putArchive(ctx context.Context, facts *archive.Store) error {
	if f.Archive != "" {
		file, err := os.ReadFile(f.Archive)
		if err != nil {
			return fmt.Errorf("read archive: %w", err)
		}
		_, err = facts.Put(ctx, file)
		return err
	}
	_, err := facts.Load(ctx)
	if errors.Is(err, blob.ErrNotFound) {
		_, err = facts.Put(ctx, archive.EmbeddedBytes())
	}
	return err
}

// processName tells builders apart for people.
func processName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}
