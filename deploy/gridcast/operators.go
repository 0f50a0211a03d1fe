package main

import (
	"context"
	"strings"

	"gridcast/deploy/flags"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
)

type operatorsCmds struct {
	Add    storeAction[operator.AddOperator]    `cmd:"" help:"Give a person a token for the console; the command shows it once."`
	List   operatorsListCmd                     `cmd:"" help:"List the people with a token."`
	Revoke storeAction[operator.RevokeOperator] `cmd:"" help:"Refuse a person's token from now on."`
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
	rows := make([][]any, len(list))
	for i, p := range list {
		state := "active"
		if !p.Revoked.IsZero() {
			state = strings.TrimSpace("revoked " + terminal.Time(p.Revoked))
		}
		rows[i] = []any{terminal.Quoted(p.Name), p.Role, terminal.Time(p.Created), state}
	}
	s.PrintList(list, "no operator has a token; gridcast operators add NAME --role operate creates one", []any{"name", "role", "created", "state"}, rows)
	return nil
}
