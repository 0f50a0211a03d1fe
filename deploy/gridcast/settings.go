package main

import (
	"context"
	"errors"
	"time"

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
	if s.JSON {
		s.PrintJSON(settings)
		return nil
	}
	var rows [][]any
	for _, setting := range operator.SettingsOf(settings) {
		rows = append(rows, []any{setting.Name, setting.Value})
	}
	s.PrintTable([]any{"", ""}, rows)
	return nil
}

type settingsSetCmd struct {
	flags.Storage        `embed:""`
	flags.Action         `embed:""`
	flags.OptionalReason `embed:""`
	Model                *string        `help:"What makes the picks from now on: v2, r2, grid-frequency." env:"-"`
	AutoVerifyAfter      *time.Duration `help:"How long a classification must have stood to verify by itself; 0: only an operator verifies." env:"-"`
	AutoReviseAfter      *time.Duration `help:"The same for a later correction; 0: only an operator corrects." env:"-"`
	Headshots            string         `help:"Portraits: a file with an https address, in which {driver}, {code} and {year} are filled in, and below it a line with the identifier of each driver who has one." placeholder:"FILE" type:"path" xor:"portraits" env:"-"`
	NoHeadshots          bool           `help:"No driver has a portrait, whatever the archive says." xor:"portraits" env:"-"`
}

func (c *settingsSetCmd) Run(ctx context.Context, s *terminal.Streams) error {
	action := operator.ChangeSettings{Model: c.Model, AutoVerifyAfter: c.AutoVerifyAfter, AutoReviseAfter: c.AutoReviseAfter}
	portraits, err := flags.ReadHeadshots(c.Headshots)
	if err != nil {
		return terminal.Usagef("%w", err)
	}
	if portraits.Template != "" || c.NoHeadshots {
		action.Headshots = &portraits
	}
	if action == (operator.ChangeSettings{}) {
		return terminal.Usagef("say what to change: --model, --auto-verify-after, --auto-revise-after, --headshots or --no-headshots; gridcast settings show says how they are")
	}
	o, err := c.Operator(ctx, s)
	if err != nil {
		return err
	}
	done, err := c.Apply(ctx, s, o, action, operator.Request{Reason: c.Reason})
	if errors.Is(err, operator.ErrSettled) {
		s.Printf("Nothing to change: %v.\n", operator.ErrSettled)
		return nil
	}
	if err != nil {
		return err
	}
	s.Printf("%s\n", done.Text)
	return nil
}
