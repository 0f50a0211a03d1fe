package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"gridcast/builder/proof"
	"gridcast/deploy/flags"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
	"gridcast/deploy/view"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
)

type snapshotCmds struct {
	List      snapshotsListCmd                                                           `cmd:"" help:"List the versions in the store."`
	Show      snapshotsShowCmd                                                           `cmd:"" help:"Show the contents of a version."`
	Diff      snapshotsDiffCmd                                                           `cmd:"" help:"Show the differences between two versions, value by value."`
	Verify    snapshotsVerifyCmd                                                         `cmd:"" help:"Read every object of a version again and compare its hash."`
	Reproduce snapshotsReproduceCmd                                                      `cmd:"" help:"Make the documents of a version again from the store, and compare them."`
	Repair    snapshotsRepairCmd                                                         `cmd:"" help:"Read every file of the current version, and write damaged ones again."`
	Rollback  actionCmd[flags.StorageWith[flags.Signing], operator.Rollback, rolledBack] `cmd:"" help:"Publish an earlier version's content again, and hold publishing."`
	Prune     snapshotsPruneCmd                                                          `cmd:"" help:"Remove old versions, and objects that no version needs, or the sandbox."`
}

type snapshotsListCmd struct{ flags.Storage }

func (c *snapshotsListCmd) Run(ctx context.Context, s *terminal.Streams, store blob.Store) error {
	list, err := snapshots.List(ctx, store)
	if err != nil {
		return err
	}
	header := []any{"version", "status", "built (race time)", "variants", "bytes", "base", "reason", "builder"}
	terminal.PrintRows(s, list, "", header, func(summary snapshots.Summary) []any {
		v := view.VersionOf(summary)
		return []any{v.Version, v.State, terminal.Time(v.BuiltAt), v.Variants, v.Bytes, v.Base, v.Because, v.Builder}
	})
	return nil
}

type snapshotsShowCmd struct {
	flags.Storage
	Version int64 `arg:"" optional:"" help:"The version; default: the current one." placeholder:"V"`
}

func (c *snapshotsShowCmd) Run(ctx context.Context, s *terminal.Streams, store blob.Store) error {
	m, err := operator.LoadManifest(ctx, store, c.Version)
	if err != nil {
		return err
	}
	if s.PrintedJSON(m) {
		return nil
	}
	s.Printf("version   %d, on %d\nbuilt     %s by %s\nreason    %s\nseasons   %d, current %d\narchive   %s\nledger    %s, file %d, %s\n\n",
		m.Version, m.Base, terminal.Time(m.BuiltAt), m.Builder, m.Reason, len(m.Seasons), m.CurrentSeason,
		m.Archive, m.Ledger.Kind, m.Ledger.Seq, m.Ledger.Hash)
	header := []any{"variant", "bytes", "gzip", "entity tag", "generated", "object"}
	s.PrintTable(header, view.Each(m.Entries, func(e snapshots.ManifestEntry) []any {
		gzip := terminal.Number(e.Packed.Size) // a small body is not compressed
		return []any{e.Path, e.Size, gzip, e.ETag, terminal.Time(e.GeneratedAt), e.Object}
	}))
	return nil
}

type snapshotsDiffCmd struct {
	flags.Storage
	From int64 `arg:"" help:"The version to compare from." placeholder:"A"`
	To   int64 `arg:"" optional:"" help:"The version to compare to; default: the current one." placeholder:"B"`
}

func (c *snapshotsDiffCmd) Run(ctx context.Context, s *terminal.Streams, store blob.Store) error {
	from, err := operator.LoadManifest(ctx, store, c.From)
	if err != nil {
		return err
	}
	to, err := operator.LoadManifest(ctx, store, c.To)
	if err != nil {
		return err
	}
	changes, err := snapshots.Diff(ctx, store, from, to)
	if err != nil {
		return err
	}
	var rows [][]any
	for _, change := range changes {
		if len(change.Values) == 0 {
			rows = append(rows, []any{change.Path, change.Kind, "", "", ""})
		}
		for _, v := range change.Values {
			rows = append(rows, []any{change.Path, change.Kind, v.At, short(v.Old), short(v.New)})
		}
	}
	s.PrintList(changes, "no variant differs", []any{"variant", "", "value", "old", "new"}, rows)
	return nil
}

// short cuts a value to the width of a table; --json has all of it.
func short(value string) string {
	const most = 60
	if runes := []rune(value); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return value
}

type snapshotsVerifyCmd struct {
	flags.Storage
	operator.CheckVersion
}

func (c *snapshotsVerifyCmd) Run(ctx context.Context, s *terminal.Streams, store blob.Store) error {
	answer, damage := (&operator.Operator{Store: store}).Do(ctx, c.CheckVersion, operator.Request{Progress: s.Progress})
	v, ok := answer.Record.(snapshots.Verification)
	if !ok {
		return damage
	}
	faults := view.Each(v.Faults, error.Error)
	s.Print(map[string]any{"version": v.Version, "objects": v.Objects, "bytes": v.Bytes, "faults": faults},
		"version %d: %d objects, %d bytes, %d faults\n", v.Version, v.Objects, v.Bytes, len(v.Faults))
	return damage
}

type snapshotsRepairCmd struct {
	flags.Builder
	flags.Action
}

func (c *snapshotsRepairCmd) Run(ctx context.Context, s *terminal.Streams) error {
	o, err := c.Operator(ctx, s)
	if err != nil {
		return err
	}
	return c.ApplyAndPrint(ctx, s, o, operator.Repair{}, operator.Request{Reason: "damage in the store", Progress: s.Progress}, record{}.print)
}

type snapshotsReproduceCmd struct {
	flags.Storage
	Version int64 `arg:"" optional:"" help:"The version; default: the current one." placeholder:"V"`
	All     bool  `help:"Every published version, the newest first." env:"-"`
}

func (c *snapshotsReproduceCmd) Run(ctx context.Context, s *terminal.Streams, store blob.Store) error {
	if c.All && c.Version != 0 {
		return terminal.Usagef("give a version or --all, not both")
	}
	m, err := operator.LoadManifest(ctx, store, c.Version)
	if err != nil {
		return err
	}
	versions := []int64{m.Version}
	if c.All {
		h, err := snapshots.LoadHistory(ctx, store)
		if err != nil {
			return err
		}
		versions = h.Versions
	}
	reproducer, err := proof.NewReproducer(ctx, store)
	if err != nil {
		return err
	}
	var faults error
	all := []proof.Reproduction{}
	for _, version := range versions {
		again, err := reproducer.Version(ctx, version)
		if err != nil {
			faults = errors.Join(faults, fmt.Errorf("%w%s", err, otherRelease(again.Release, s.Version)))
			continue
		}
		all = append(all, again)
		if !s.JSON {
			s.Printf("version %d: %d of %d documents are equal\n", again.Version, again.Equal, again.Documents)
		}
		if d := again.FirstDifference; d != nil {
			faults = errors.Join(faults, fmt.Errorf("version %d is not the one that its inputs give: %s, in %s, %s is %q in the store and %q made again%s",
				again.Version, d.Endpoint, d.Variant, cmp.Or(d.Field, "the document"), short(d.Published), short(d.Made), otherRelease(again.Release, s.Version)))
		}
	}
	switch {
	case s.JSON && c.All:
		s.PrintJSON(all)
	case s.JSON && len(all) > 0:
		s.PrintJSON(all[0])
	}
	return faults
}

// otherRelease says that another release built a version, if so.
func otherRelease(built, this string) string {
	if built == this {
		return ""
	}
	return fmt.Sprintf("; gridcast %s built it and this is %s: only the same release promises equal documents", cmp.Or(built, "of an unknown release"), this)
}

// rolledBack prints the text of a rollback, and the command that ends its hold.
type rolledBack struct{}

func (rolledBack) print(s *terminal.Streams, answer operator.Answer) {
	s.Print(answer.Receipt, "%s\ngridcast build --release --reason WHY ends the hold.\n", answer.Text)
}

type snapshotsPruneCmd struct {
	storeAction[operator.Prune]
	DryRun bool `help:"Only show the objects to remove." env:"-"`
}

func (c *snapshotsPruneCmd) Run(ctx context.Context, s *terminal.Streams) error {
	if c.Do.Keep < 1 && !c.Do.Sandbox {
		return terminal.Usagef("--keep %d: must be at least 1", c.Do.Keep)
	}
	if !c.DryRun {
		return c.apply(ctx, s, func(s *terminal.Streams, answer operator.Answer) {
			printPruned(s, answer.Record.(snapshots.Pruned), answer.Text, false)
		})
	}
	store, err := c.Opener.OpenToRead(ctx)
	if err != nil {
		return err
	}
	pruned, err := c.Do.Run(ctx, store, true)
	if err == nil {
		printPruned(s, pruned, c.Do.Summary(pruned, "would be removed"), true)
	}
	return err
}

func printPruned(s *terminal.Streams, pruned snapshots.Pruned, summary string, dryRun bool) {
	if s.PrintedJSON(map[string]any{"kept": pruned.Kept, "removed": pruned.Removed, "bytes": pruned.Bytes, "dry_run": dryRun}) {
		return
	}
	if len(pruned.Removed) > 0 {
		s.PrintTable([]any{"removed", "bytes", "written"}, view.Each(pruned.Removed, func(o blob.Info) []any {
			return []any{o.Key, o.Size, terminal.Time(o.Modified)}
		}))
	}
	s.Printf("%s\n", summary)
}
