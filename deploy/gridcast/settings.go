package main

import (
	"context"
	"errors"
	"time"

	"gridcast/builder/settings"
	"gridcast/deploy/operator"
)

type settingsCmds struct {
	Show settingsShowCmd `cmd:"" help:"Show the settings of the store."`
	Set  settingsSetCmd  `cmd:"" help:"Change settings of the store: running schedulers go by them at their next look, and every later command too."`
}

type settingsShowCmd struct {
	storeFlags `embed:""`
}

func (c *settingsShowCmd) Run(ctx context.Context, s *streams) error {
	store, err := c.openToRead(ctx)
	if err != nil {
		return err
	}
	settings, err := settings.Load(ctx, store)
	if err != nil {
		return err
	}
	if s.json {
		s.printJSON(settings)
		return nil
	}
	s.printTable([]any{"", ""}, settingRows(settings))
	return nil
}

func settingRows(settings settings.Settings) [][]any {
	list := operator.SettingsOf(settings)
	rows := make([][]any, len(list))
	for i, setting := range list {
		rows[i] = []any{setting.Name, setting.Value}
	}
	return rows
}

type settingsSetCmd struct {
	storeFlags      `embed:""`
	actionFlags     `embed:""`
	reasonFlag      `embed:""`
	Model           *string        `help:"What makes the picks from now on: v2, r2, grid-frequency." env:"-"`
	AutoVerifyAfter *time.Duration `help:"How long a classification must have stood to verify by itself; 0: only an operator verifies." env:"-"`
	AutoReviseAfter *time.Duration `help:"The same for a later correction; 0: only an operator corrects." env:"-"`
	Headshots       string         `help:"Portraits: a file with an https address, in which {driver}, {code} and {year} are filled in, and below it a line with the identifier of each driver who has one." placeholder:"FILE" type:"path" xor:"portraits" env:"-"`
	NoHeadshots     bool           `help:"No driver has a portrait, whatever the archive says." xor:"portraits" env:"-"`
}

func (c *settingsSetCmd) Run(ctx context.Context, s *streams) error {
	action := operator.ChangeSettings{Model: c.Model, AutoVerifyAfter: c.AutoVerifyAfter, AutoReviseAfter: c.AutoReviseAfter}
	portraits, err := readHeadshots(c.Headshots)
	if err != nil {
		return usageError{err}
	}
	if portraits.Template != "" || c.NoHeadshots {
		action.Headshots = &portraits
	}
	if action == (operator.ChangeSettings{}) {
		return usageError{errors.New("say what to change: --model, --auto-verify-after, --auto-revise-after, --headshots or --no-headshots; gridcast settings show says how they are")}
	}
	o, err := c.operate(ctx)
	if err != nil {
		return err
	}
	done, err := c.apply(ctx, s, o, action, operator.Request{Reason: c.Reason})
	if errors.Is(err, operator.ErrSettled) {
		s.printf("Nothing to change: %v.\n", operator.ErrSettled)
		return nil
	}
	if err != nil {
		return err
	}
	s.printf("%s\n", done.Text)
	return nil
}
