package main

import (
	"context"
	"errors"

	"gridcast/builder/settings"
	"gridcast/deploy/flags"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
)

type settingsCmds struct {
	Show settingsShowCmd `cmd:"" help:"Show the settings of the store."`
	Set  settingsSetCmd  `cmd:"" help:"Change settings of the store: running schedulers go by them at their next look, and every later command too."`
}

type settingsShowCmd struct {
	flags.Storage `embed:""`
}

func (c *settingsShowCmd) Run(ctx context.Context, s *terminal.Streams) error {
	store, err := c.OpenToRead(ctx)
	if err != nil {
		return err
	}
	settings, err := settings.Load(ctx, store)
	if err != nil {
		return err
	}
	var rows [][]any
	for _, setting := range operator.SettingsOf(settings) {
		rows = append(rows, []any{setting.Name, setting.Value})
	}
	s.PrintList(settings, "", []any{"", ""}, rows)
	return nil
}

type settingsSetCmd struct {
	storeAction[operator.ChangeSettings] `embed:""`
	Headshots                            string `help:"Portraits: a file with an https address, in which {driver}, {code} and {year} are filled in, and below it a line with the identifier of each driver who has one." placeholder:"FILE" type:"path" xor:"portraits" env:"-"`
}

func (c *settingsSetCmd) Run(ctx context.Context, s *terminal.Streams) error {
	portraits, err := flags.ReadHeadshots(c.Headshots)
	if err != nil {
		return terminal.Usagef("%w", err)
	}
	if portraits.Template != "" {
		c.Do.Headshots = &portraits
	}
	if c.Do == (operator.ChangeSettings{}) {
		return terminal.Usagef("say what to change: --model, --auto-verify-after, --auto-revise-after, --headshots or --no-headshots; gridcast settings show says how they are")
	}
	answer, err := c.apply(ctx, s)
	if errors.Is(err, operator.ErrSettled) {
		s.Printf("Nothing to change: %v.\n", operator.ErrSettled)
		return nil
	}
	if err == nil {
		s.Printf("%s\n", answer.Text)
	}
	return err
}
