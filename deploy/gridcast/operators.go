package main

import (
	"context"
	"strings"

	"gridcast/deploy/flags"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
	"gridcast/snapshots/blob"
)

type operatorsCmds struct {
	Add    storeAction[operator.AddOperator]    `cmd:"" help:"Give a person a token for the console; the command shows it once."`
	List   operatorsListCmd                     `cmd:"" help:"List the people with a token."`
	Revoke storeAction[operator.RevokeOperator] `cmd:"" help:"Refuse a person's token from now on."`
}

type operatorsListCmd struct{ flags.Storage }

func (c *operatorsListCmd) Run(ctx context.Context, s *terminal.Streams, store blob.Store) error {
	list, err := operator.LoadPeople(ctx, store)
	if err != nil {
		return err
	}
	const none = "no operator has a token; gridcast operators add NAME --role operate creates one"
	terminal.PrintRows(s, list, none, []any{"name", "role", "created", "state"}, func(p operator.Person) []any {
		state := "active"
		if !p.Revoked.IsZero() {
			state = strings.TrimSpace("revoked " + terminal.Time(p.Revoked))
		}
		return []any{p.Name, p.Role, terminal.Time(p.Created), state}
	})
	return nil
}
