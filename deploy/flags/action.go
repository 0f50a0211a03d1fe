package flags

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/user"

	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
	"gridcast/deploy/view"
)

// Action is for commands that change something.
type Action struct {
	By     string `help:"Your name, for the record. Default: the user of this machine." placeholder:"NAME"`
	Reason string `help:"Why, for the record. Readers see the reason of a rollback, and of a decision about a round, a result or a championship, word for word." placeholder:"TEXT" env:"-"`
	Yes    bool   `help:"Do not ask." env:"-"`
}

// Actor is the operator's name in the ledger and the audit log.
func (f *Action) Actor() string { return actor(f.By) }

// actor marks a name as claimed; an empty name means the user of this machine.
func actor(name string) string {
	if name == "" {
		if u, err := user.Current(); err == nil {
			name = u.Username
		}
	}
	return operator.Claimed + cmp.Or(name, "unknown")
}

// Apply shows the preview of an action, asks for confirmation if the action voids, replaces or ends
// something, and performs the action. It fails if the state changed since the preview. The reason of the request counts if
// the operator gives none.
func (f *Action) Apply(ctx context.Context, s *terminal.Streams, o *operator.Operator, action operator.Action, request operator.Request) (operator.Answer, error) {
	request.Actor, request.Reason = f.Actor(), cmp.Or(f.Reason, request.Reason)
	p, err := o.Look(ctx, action, request)
	if errors.Is(err, operator.ErrNoReason) {
		return operator.Answer{}, terminal.Usagef("--reason is missing: %w", err)
	}
	if err != nil {
		return operator.Answer{}, err
	}
	p.Explain()
	printPreview(s, p.Preview)
	if p.Refusal != "" && !request.Force {
		return operator.Answer{}, fmt.Errorf("%s; --force applies it nevertheless", p.Refusal)
	}
	if p.Question != "" && !f.Yes {
		if err := s.Confirm(p.Question); err != nil {
			return operator.Answer{}, err
		}
	}
	request.Seen = p.Seen
	return o.Do(ctx, action, request)
}

// ApplyAndPrint is Apply for commands that end with the answer of the action.
func (f *Action) ApplyAndPrint(ctx context.Context, s *terminal.Streams, o *operator.Operator, action operator.Action, request operator.Request,
	show func(*terminal.Streams, operator.Answer),
) error {
	answer, err := f.Apply(ctx, s, o, action, request)
	if err == nil {
		show(s, answer)
	}
	return err
}

func printPreview(s *terminal.Streams, p operator.Preview) {
	var lines []string
	if p.Question != "" {
		lines = append(lines, p.Title+":")
		for _, effect := range p.Effects {
			lines = append(lines, "  "+effect)
		}
		if n := len(p.Variants); n > 0 {
			lines = append(lines, fmt.Sprintf("  %d published variants change: %s.", n, view.First(p.Variants, 6)))
		}
	}
	for _, warning := range p.Warnings {
		lines = append(lines, "  ! "+warning)
	}
	for _, line := range lines {
		_, _ = fmt.Fprintln(s.Err, line) // if this fails, so does Confirm
	}
}
