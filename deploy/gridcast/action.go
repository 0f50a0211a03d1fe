package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"gridcast/builder"
	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/ledger"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/operator"
	"gridcast/edge/keys"
	"gridcast/snapshots/blob"
)

// actionFlags is what every command is told that changes something.
type actionFlags struct {
	By  string `help:"Who does it, for the record. Default: the user of this machine." placeholder:"NAME"`
	Yes bool   `help:"Do not ask." env:"-"`
}

// reasonFlag is for actions that may have a reason.
type reasonFlag struct {
	Reason string `help:"Why, for the record." placeholder:"TEXT" env:"-"`
}

// whyFlag is for actions that must have one.
type whyFlag struct {
	Reason string `required:"" help:"Why, for the record." placeholder:"TEXT" env:"-"`
}

// actor is the operator as ledger and audit log name them.
func (f *actionFlags) actor() string { return operatorActor(f.By) }

// operatorActor is the operator of that name, or the user of this machine if it is empty.
func operatorActor(name string) string {
	if name == "" {
		if u, err := user.Current(); err == nil {
			name = u.Username
		}
	}
	if name == "" {
		name = "unknown"
	}
	return operator.Claimed + name
}

// apply shows what an action would do, asks where it voids, replaces or ends something, and does
// it, if what was shown is still so.
func (f *actionFlags) apply(ctx context.Context, s *streams, o *operator.Operator, action operator.Action, request operator.Request) (operator.Answer, error) {
	request.Actor = f.actor()
	switch err := operator.Complete(action, request); {
	case errors.Is(err, operator.ErrNoReason):
		return operator.Answer{}, usageError{fmt.Errorf("--reason is missing: %w", err)}
	case err != nil:
		return operator.Answer{}, err
	}
	p, err := o.Preview(ctx, action)
	if err != nil {
		return operator.Answer{}, err
	}
	s.printPreview(p)
	if p.Refusal != "" && !request.Force {
		return operator.Answer{}, fmt.Errorf("%s; --force does it all the same", p.Refusal)
	}
	if p.Question != "" && !f.Yes {
		if err := s.confirm(p.Question); err != nil {
			return operator.Answer{}, err
		}
	}
	request.Seen = p.Seen
	return o.Do(ctx, action, request)
}

// printPreview says on the terminal what an action will do. What needs no answer and has nothing
// out of the ordinary speaks for itself afterwards.
func (s *streams) printPreview(p operator.Preview) {
	var lines []string
	if p.Question != "" {
		lines = append(lines, p.Title+":")
		for _, effect := range p.Effects {
			lines = append(lines, "  "+effect)
		}
		if n := len(p.Variants); n > 0 {
			lines = append(lines, fmt.Sprintf("  %d published variants change: %s.", n, firstOf(p.Variants)))
		}
	}
	for _, warning := range p.Warnings {
		lines = append(lines, "  ! "+warning)
	}
	for _, line := range lines {
		_, _ = fmt.Fprintln(s.err, line) // confirm notices if nothing can be shown
	}
}

// firstOf lists the first of many.
func firstOf(names []string) string {
	const most = 6
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// confirm asks on a terminal; elsewhere the answer has to be in the flags.
func (s *streams) confirm(question string) error {
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return usageError{fmt.Errorf("%s Nobody is there to be asked: confirm with --yes", question)}
	}
	if _, err := fmt.Fprintf(s.err, "%s [y/N] ", question); err != nil {
		return err
	}
	answer, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	default:
		return errors.New("not confirmed: nothing was written")
	}
}

// operate opens the store for actions that need no more than the store.
func (f *storeFlags) operate(ctx context.Context) (*operator.Operator, error) {
	store, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	return operate(ctx, store)
}

func operate(ctx context.Context, store blob.Store) (*operator.Operator, error) {
	log, err := auditlog.Load(ctx, store)
	if err != nil {
		return nil, err
	}
	return &operator.Operator{
		Store: store, Audit: log, Tiers: keys.DefaultTiers(), Name: processName(),
		Now: func() time.Time { return operator.RaceTime(ctx, store) },
	}, nil
}

// roundsFlags is what a command is told that looks at the rounds.
type roundsFlags struct {
	storeFlags `embed:""`
	clockFlags `embed:""`
}

// look opens the store to look at rounds; nothing can be written with the operator it returns.
func (f *roundsFlags) look(ctx context.Context) (*operator.Operator, error) {
	store, err := f.openToRead(ctx)
	if err != nil {
		return nil, err
	}
	return f.operator(ctx, &operator.Operator{Store: store})
}

// decide opens the store to decide about rounds.
func (f *roundsFlags) decide(ctx context.Context) (*operator.Operator, error) {
	o, err := f.operate(ctx)
	if err != nil {
		return nil, err
	}
	return f.operator(ctx, o)
}

// operator gives o the ledger, the facts and race time. The ledger has to be of the kind that
// the clock may write: at the real time a simulated race looks long over.
func (f *roundsFlags) operator(ctx context.Context, o *operator.Operator) (*operator.Operator, error) {
	c, err := f.clock()
	if err != nil {
		return nil, err
	}
	o.Ledger, err = ledger.Load(ctx, o.Store, kindOf(c))
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
	facts := archive.NewStore(o.Store)
	if err := builder.Vouch(ctx, o.Ledger, facts); err != nil {
		return nil, err
	}
	o.Facts = func(ctx context.Context) (archive.Stored, error) {
		loaded, err := facts.Load(ctx)
		if errors.Is(err, blob.ErrNotFound) {
			err = fmt.Errorf("%w; gridcast build puts one into the store", err)
		}
		return loaded, err
	}
	o.Now = func() time.Time { return f.instant(c) }
	return o, nil
}

// round returns a round as it stands now.
func round(ctx context.Context, o *operator.Operator, session int64) (*almanac.Round, error) {
	a, err := o.Almanac(ctx)
	if err != nil {
		return nil, err
	}
	return a.Round(session)
}

// span is how long something lasts, in the units of time.ParseDuration and in days (d) and weeks
// (w): 90m, 36h, 30d.
type span time.Duration

// UnmarshalText reads a span from the command line.
func (s *span) UnmarshalText(text []byte) error {
	for unit, length := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if number, ok := strings.CutSuffix(string(text), unit); ok {
			n, err := strconv.Atoi(number)
			if err != nil {
				return fmt.Errorf("%q: must be a whole number of days or weeks, such as 30d", text)
			}
			*s = span(time.Duration(n) * length)
			return nil
		}
	}
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q: must be a duration such as 90m, 36h or 30d", text)
	}
	*s = span(d)
	return nil
}
