package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"gridcast/builder/settings"
	"gridcast/deploy/console"
	"gridcast/deploy/flags"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
	"gridcast/deploy/view"
	"gridcast/edge"
	"gridcast/snapshots"
	"gridcast/snapshots/backup"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/open"
)

type storeCmds struct {
	Backup  storeBackupCmd  `cmd:"" help:"Copy every object of the store that the backup lacks."`
	Restore storeRestoreCmd `cmd:"" help:"Restore a lost store from a backup."`
}

// place opens a store by its URL, or by the path of a folder.
func place(ctx context.Context, name string, access open.Access) (blob.Store, error) {
	if !strings.HasPrefix(name, "dir:") && !strings.Contains(name, "://") {
		name = "dir:" + name
	}
	return open.Store(ctx, name, access)
}

type storeBackupCmd struct {
	flags.Storage
	flags.Action
	To string `arg:"" help:"The destination: a folder, or a store in the form of --store."`
}

func (c *storeBackupCmd) Run(ctx context.Context, s *terminal.Streams) error {
	o, err := c.Operator(ctx, s)
	if err != nil {
		return err
	}
	to, err := place(ctx, c.To, open.ReadWrite)
	if err != nil {
		return err
	}
	done, damage := c.Apply(ctx, s, o, operator.BackupStore{To: to}, operator.Request{Progress: s.Progress})
	if done.Record != nil { // also of a copy that lacks damaged objects
		s.Print(done.Record, "%s\n", done.Text)
	}
	return damage
}

type storeRestoreCmd struct {
	flags.Storage
	flags.Signing
	flags.KeySigning
	flags.Action
	From     string   `arg:"" help:"The backup: a folder, or a store in the form of --store."`
	Above    int64    `help:"The highest version that any edge has served." placeholder:"N" env:"-"`
	CacheDir string   `help:"The --cache-dir of an edge of this machine, which knows the version that it has served." placeholder:"DIR" type:"path"`
	Edges    []string `help:"The admin ports of the edges. The restored version gets a higher number than any that they served." placeholder:"URL"`
}

func (c *storeRestoreCmd) Run(ctx context.Context, s *terminal.Streams) error {
	from, err := place(ctx, c.From, open.ReadOnly)
	if err != nil {
		return err
	}
	store, err := c.OpenUnmounted(ctx) // the preview makes nothing
	if err != nil {
		return err
	}
	action := operator.RestoreStore{From: from, Open: c.Open, Above: c.Above}
	saw := func(version int64, head snapshots.Ledger) {
		action.Above = max(action.Above, version)
		if head.Seq > action.Since.Seq {
			action.Since = head
		}
	}
	if c.CacheDir != "" {
		served, _, err := edge.Served(ctx, c.CacheDir)
		if err != nil {
			return fmt.Errorf("--cache-dir %s: %w", c.CacheDir, err)
		}
		saw(served.Version, served.Ledger)
	}
	for _, r := range console.AskEdges(ctx, console.Remotes(c.Edges)) {
		if r.Problem != "" {
			action.Silent = append(action.Silent, r.Name)
		}
		saw(r.Status.Version, *cmp.Or(r.Status.Ledger, new(snapshots.Ledger)))
	}
	o := &operator.Operator{Store: store, Name: flags.ProcessName()}
	if err := cmp.Or(c.Signing.Equip(o), c.KeySigning.Equip(o)); err != nil {
		return err
	}
	done, err := c.Apply(ctx, s, o, action, operator.Request{Progress: s.Progress})
	if err != nil {
		return err
	}
	restored := done.Record.(backup.Restored)
	if s.PrintedJSON(restored) {
		return nil
	}
	s.Printf("%s\nledger   up to file %d\nkept     %d documents that the store had already\n", done.Text, restored.Ledger.Seq, len(restored.Kept))
	for _, lost := range restored.Lost {
		s.Printf("LOST     %s\n", lost)
	}
	return nil
}

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
		return terminal.Usagef("nothing to change: give --model, --auto-verify-after, --auto-revise-after, --headshots, --no-headshots, --public-address, --contact, --terms, --security-policy or --languages; gridcast settings show prints the present values")
	}
	return c.apply(ctx, s, func(s *terminal.Streams, answer operator.Answer) { s.Printf("%s\n", answer.Text) })
}
