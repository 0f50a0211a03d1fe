package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"gridcast/builder"
	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/deploy/auditlog"
	"gridcast/snapshots/blob"
)

// operatorFlags is what a command is told that looks at the rounds.
type operatorFlags struct {
	storeFlags `embed:""`
	clockFlags `embed:""`
}

// record is the ledger and what is known, as of one instant of race time.
type record struct {
	store  blob.Store
	ledger *ledger.Ledger
	view   *season.View
}

// load reads the record of the store. The ledger has to be of the kind that the clock may
// write: at the real time a simulated race looks long over.
func (f *operatorFlags) load(ctx context.Context) (*record, error) {
	c, err := f.clock()
	if err != nil {
		return nil, err
	}
	store, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	l, err := ledger.Load(ctx, store, kindOf(c))
	switch {
	case errors.Is(err, ledger.ErrNotOpened):
		return nil, fmt.Errorf("%w; gridcast build makes one", err)
	case errors.Is(err, ledger.ErrKind) && c.IsSystem():
		return nil, fmt.Errorf("%w; say what time it is there with --race-clock, as the server was told, or with --now", err)
	case errors.Is(err, ledger.ErrKind):
		return nil, fmt.Errorf("%w; leave out --now and --race-clock", err)
	case err != nil:
		return nil, err
	}
	archives := builder.NewFactsStore(store)
	facts, err := archives.Load(ctx)
	if errors.Is(err, blob.ErrNotFound) {
		return nil, fmt.Errorf("%w; gridcast build puts one into the store", err)
	}
	if err != nil {
		return nil, err
	}
	if err := archives.Vouch(ctx, l); err != nil {
		return nil, err
	}
	return &record{store: store, ledger: l, view: facts.Archive.AsOf(f.instant(c))}, nil
}

func (r *record) almanac() *almanac.Almanac { return almanac.Join(r.view, r.ledger.Current(r.view.At)) }

// round returns a round of the record.
func (r *record) round(session int64) (*almanac.Round, error) {
	return r.almanac().Round(session)
}

// deciderFlags is what a command is told that decides.
type deciderFlags struct {
	operatorFlags `embed:""`
	deedFlags     `embed:""`
}

// decide appends what an operator decides about a round, once the audit log has it.
func (r *record) decide(ctx context.Context, change auditlog.Change, session int64, decide func(*almanac.Round) ([]ledger.Event, error)) (events []ledger.Event, err error) {
	change.Subject = strconv.FormatInt(session, 10)
	err = audited(ctx, r.store, change, func() (err error) {
		events, err = almanac.Decide(ctx, r.ledger, r.view, change.Actor, session, decide)
		return err
	})
	return events, err
}

// ask has a decision confirmed, and returns the record as it is then: the operator may have
// taken his time.
func (f *deciderFlags) ask(ctx context.Context, s *streams, question string) (*record, error) {
	if err := s.confirm(question); err != nil {
		return nil, err
	}
	return f.load(ctx)
}
