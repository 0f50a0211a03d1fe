package main

import (
	"context"
	"strings"

	"gridcast/deploy/operator"
)

type operatorsCmds struct {
	Add    operatorsAddCmd    `cmd:"" help:"Give a person a token of their own for the console; it is shown once."`
	List   operatorsListCmd   `cmd:"" help:"List those who have a token."`
	Revoke operatorsRevokeCmd `cmd:"" help:"Refuse a person's token from now on."`
}

type operatorsAddCmd struct {
	storeFlags  `embed:""`
	actionFlags `embed:""`
	reasonFlag  `embed:""`
	Name        string `arg:"" help:"Who: stands beside every change they make."`
	Role        string `required:"" help:"read: look at everything; operate: carry out every action." enum:"read,operate" env:"-"`
}

func (c *operatorsAddCmd) Run(ctx context.Context, s *streams) error {
	o, err := c.operate(ctx)
	if err != nil {
		return err
	}
	done, err := c.apply(ctx, s, o, operator.AddOperator{Name: c.Name, Role: operator.Role(c.Role)}, operator.Request{Reason: c.Reason})
	switch {
	case err != nil:
		return err
	case s.json:
		s.printJSON(map[string]string{"name": c.Name, "role": c.Role, "token": done.Secret})
		return nil
	}
	s.printf("%s\n\n%s\n", done.Secret, done.Text)
	return nil
}

type operatorsListCmd struct {
	storeFlags `embed:""`
}

func (c *operatorsListCmd) Run(ctx context.Context, s *streams) error {
	store, err := c.openToRead(ctx)
	if err != nil {
		return err
	}
	list, err := operator.LoadPeople(ctx, store)
	if err != nil {
		return err
	}
	if s.json {
		s.printJSON(list)
		return nil
	}
	if len(list) == 0 {
		s.printf("nobody has a token of their own; gridcast operators add NAME --role operate gives one\n")
		return nil
	}
	rows := make([][]any, len(list))
	for i, p := range list {
		state := "active"
		if !p.Revoked.IsZero() {
			state = strings.TrimSpace("revoked " + shortTime(p.Revoked))
		}
		rows[i] = []any{plain(p.Name), p.Role, shortTime(p.Created), state}
	}
	s.printTable([]any{"name", "role", "created", "state"}, rows)
	return nil
}

type operatorsRevokeCmd struct {
	storeFlags  `embed:""`
	actionFlags `embed:""`
	reasonFlag  `embed:""`
	Name        string `arg:"" help:"Whose token, from operators list."`
}

func (c *operatorsRevokeCmd) Run(ctx context.Context, s *streams) error {
	o, err := c.operate(ctx)
	if err != nil {
		return err
	}
	done, err := c.apply(ctx, s, o, operator.RevokeOperator{Name: c.Name}, operator.Request{Reason: c.Reason})
	if err != nil {
		return err
	}
	s.printf("%s\n", done.Text)
	return nil
}
