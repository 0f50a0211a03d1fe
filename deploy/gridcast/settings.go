package main

import (
	"context"
	"errors"

	"gridcast/builder/settings"
	"gridcast/deploy/flags"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
	"gridcast/deploy/view"
	"gridcast/snapshots/blob"
)

type settingsCmds struct {
	Show settingsShowCmd `cmd:"" help:"Show the settings of the store."`
	Set  settingsSetCmd  `cmd:"" help:"Change settings of the store: running schedulers apply them within seconds, and every later command too."`
}

type settingsShowCmd struct{ flags.Storage }

func (c *settingsShowCmd) Run(ctx context.Context, s *terminal.Streams, store blob.Store) error {
	settings, err := settings.Load(ctx, store)
	if err != nil {
		return err
	}
	s.PrintList(settings, "", []any{"", ""}, view.Each(operator.SettingsOf(settings), func(setting operator.Setting) []any {
		return []any{setting.Name, setting.Value}
	}))
	return nil
}

type settingsSetCmd struct {
	storeAction[operator.ChangeSettings]
	Headshots string `help:"Portraits: a file with an https address that contains {driver}, {code} or {year}, and below it the identifiers of the drivers with a portrait, one a line; without any, all drivers." placeholder:"FILE" type:"path" xor:"portraits" env:"-"`
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
		return terminal.Usagef("nothing to change: give --model, --auto-verify-after, --auto-revise-after, --headshots or --no-headshots; gridcast settings show prints the present values")
	}
	err = c.apply(ctx, s, func(s *terminal.Streams, answer operator.Answer) { s.Printf("%s\n", answer.Text) })
	if errors.Is(err, operator.ErrSettled) {
		s.Printf("Nothing to change: %v.\n", operator.ErrSettled)
		return nil
	}
	return err
}
