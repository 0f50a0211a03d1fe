package main

import (
	"context"
	"strings"

	"gridcast/deploy/flags"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
)

type operatorsCmds struct {
	Add    operatorsAddCmd    `cmd:"" help:"Give a person a token of their own for the console; it is shown once."`
	List   operatorsListCmd   `cmd:"" help:"List those who have a token."`
	Revoke operatorsRevokeCmd `cmd:"" help:"Refuse a person's token from now on."`
}

type operatorsAddCmd struct {
	flags.Storage        `embed:""`
	flags.Action         `embed:""`
	flags.OptionalReason `embed:""`
	Name                 string `arg:"" help:"Who: stands beside every change they make."`
	Role                 string `required:"" help:"read: look at everything; operate: carry out every action." enum:"read,operate" env:"-"`
}

func (c *operatorsAddCmd) Run(ctx context.Context, s *terminal.Streams) error {
	o, err := c.Operator(ctx, s)
	if err != nil {
		return err
	}
	done, err := c.Apply(ctx, s, o, operator.AddOperator{Name: c.Name, Role: operator.Role(c.Role)}, operator.Request{Reason: c.Reason})
	switch {
	case err != nil:
		return err
	case s.JSON:
		s.PrintJSON(map[string]string{"name": c.Name, "role": c.Role, "token": done.Secret})
		return nil
	}
	s.Printf("%s\n\n%s\n", done.Secret, done.Text)
	return nil
}

type operatorsListCmd struct {
	flags.Storage `embed:""`
}

func (c *operatorsListCmd) Run(ctx context.Context, s *terminal.Streams) error {
	store, err := c.OpenToRead(ctx)
	if err != nil {
		return err
	}
	list, err := operator.LoadPeople(ctx, store)
	if err != nil {
		return err
	}
	if s.JSON {
		s.PrintJSON(list)
		return nil
	}
	if len(list) == 0 {
		s.Printf("nobody has a token of their own; gridcast operators add NAME --role operate gives one\n")
		return nil
	}
	rows := make([][]any, len(list))
	for i, p := range list {
		state := "active"
		if !p.Revoked.IsZero() {
			state = strings.TrimSpace("revoked " + terminal.Time(p.Revoked))
		}
		rows[i] = []any{terminal.Quoted(p.Name), p.Role, terminal.Time(p.Created), state}
	}
	s.PrintTable([]any{"name", "role", "created", "state"}, rows)
	return nil
}

type operatorsRevokeCmd struct {
	flags.Storage        `embed:""`
	flags.Action         `embed:""`
	flags.OptionalReason `embed:""`
	Name                 string `arg:"" help:"Whose token, from operators list."`
}

func (c *operatorsRevokeCmd) Run(ctx context.Context, s *terminal.Streams) error {
	o, err := c.Operator(ctx, s)
	if err != nil {
		return err
	}
	done, err := c.Apply(ctx, s, o, operator.RevokeOperator{Name: c.Name}, operator.Request{Reason: c.Reason})
	if err != nil {
		return err
	}
	s.Printf("%s\n", done.Text)
	return nil
}
