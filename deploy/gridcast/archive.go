package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"gridcast/builder/archive"
	"gridcast/builder/season"
	"gridcast/builder/source/f1db"
	"gridcast/builder/source/media"
	"gridcast/deploy/flags"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
	"gridcast/deploy/view"
	"gridcast/snapshots/blob"
)

type archiveCmds struct {
	Import archiveImportCmds `cmd:"" help:"Import facts from a source."`
	Show   archiveShowCmd    `cmd:"" help:"Show the contents of an archive."`
	List   archiveListCmd    `cmd:"" help:"List the archives that a store has used."`
	Diff   archiveDiffCmd    `cmd:"" help:"Show the differences between two archives, round by round."`
	Use    archiveUseCmd     `cmd:"" help:"Build from an archive that the store has used before."`
}

type archiveImportCmds struct {
	F1DB importF1DBCmd `cmd:"" name:"f1db" help:"Import an F1DB release, into an archive file or into a store."`
}

// importF1DBCmd writes an archive file, or makes the archive the one in use of a store.
type importF1DBCmd struct {
	flags.Action
	Path      string `arg:"" help:"f1db-json-splitted.zip, or the folder it unpacks to." type:"path"`
	Archive   string `help:"Write an archive file instead of changing the store." placeholder:"FILE" type:"path" env:"-"`
	Store     string `help:"Put the archive into this store." placeholder:"URL"`
	Force     bool   `help:"Accept the loss of results that the archive in use has." env:"-"`
	From      int    `help:"First season; default: the first in the source." placeholder:"YEAR" env:"-"`
	To        int    `help:"Last season; default: the last in the source." placeholder:"YEAR" env:"-"`
	Colours   string `help:"Team colours that replace gridcast's own: a file with lines such as \"2026 cadillac #444444\"." placeholder:"FILE" type:"path" env:"-"`
	Headshots string `help:"Portraits: a file with an https address that contains {driver}, {code} or {year}, and below it the identifiers of the drivers with a portrait, one a line; without any, all drivers." placeholder:"FILE" type:"path" env:"-"`
}

func (c *importF1DBCmd) Run(ctx context.Context, s *terminal.Streams) error {
	if c.Archive != "" && s.Given["store"] {
		return terminal.Usagef("--archive writes a file, --store changes a store: give one of them")
	}
	if c.Archive == "" && c.Store == "" {
		return terminal.Usagef("the destination is missing: give --archive FILE or --store URL")
	}
	looks, err := c.media()
	if err != nil {
		return err
	}
	a, report, err := f1db.Import(c.Path, f1db.Options{From: c.From, To: c.To, Media: looks, Progress: s.Progress})
	if err != nil {
		return err
	}
	stored, err := c.save(ctx, s, a, looks.Headshots)
	if err != nil {
		return err
	}
	if out := (imported{report, stored.SHA256, stored.Bytes()}); !s.PrintedJSON(out) {
		printImport(s, out)
	}
	return nil
}

// media returns the colours and portraits of gridcast, overridden by the files.
func (c *importF1DBCmd) media() (media.Media, error) {
	m := media.Default()
	if c.Colours != "" {
		text, err := os.ReadFile(c.Colours)
		if err != nil {
			return m, fmt.Errorf("read colours: %w", err)
		}
		colours, err := media.ReadColours(bytes.NewReader(text))
		if err != nil {
			return m, fmt.Errorf("%s: %w", c.Colours, err)
		}
		m.Colours.Override(colours)
	}
	var err error
	m.Headshots, err = flags.ReadHeadshots(c.Headshots)
	return m, err
}

type imported struct {
	f1db.Report
	SHA256 string
	Bytes  int64
}

// save writes the archive to the file or the store, and the portraits to the settings of the store.
func (c *importF1DBCmd) save(ctx context.Context, s *terminal.Streams, a *season.Archive, portraits season.Headshots) (archive.Stored, error) {
	stored, err := archive.Encode(a, archive.Stored{})
	if err != nil {
		return stored, err
	}
	if c.Archive != "" {
		return stored, archive.WriteFile(c.Archive, stored)
	}
	store := flags.Storage{Store: c.Store}
	if _, err := store.Open(ctx); err != nil { // an import may begin a store
		return stored, err
	}
	o, err := store.Importer(ctx, s)
	if err != nil {
		return stored, err
	}
	_, err = c.Apply(ctx, s, o, operator.ImportArchive{Archive: stored, Origin: c.Path}, operator.Request{Force: c.Force})
	if err == nil && portraits.Template != "" { // for drivers of later imports too
		_, err = o.Do(ctx, operator.ChangeSettings{Headshots: &portraits}, operator.Request{Actor: c.Actor(), Reason: c.Reason})
	}
	return stored, err
}

func printImport(s *terminal.Streams, r imported) {
	s.Printf("seasons  %d (%d to %d)\nrounds   %d\nresults  %d\narchive  %d bytes, sha256 %s\n\n",
		r.Seasons, r.From, r.To, r.Rounds, r.Results, r.Bytes, r.SHA256)
	s.PrintTable([]any{"table", "rows", "imported"}, view.Each(r.Tables, func(t f1db.Table) []any {
		return []any{t.Name, t.Rows, t.Imported}
	}))
	s.Printf("\n")
	s.PrintTable([]any{"skipped", "rows", "why"}, view.Each(r.Skipped, func(skip f1db.Skip) []any {
		return []any{skip.What, skip.Rows, skip.Why}
	}))
}

type archiveShowCmd struct {
	Archive string `help:"An archive file; default: the archive in the store, else the embedded seasons." placeholder:"FILE" type:"path" env:"-"`
	Store   string `help:"Show the archive in use of this store." placeholder:"URL"`
}

// shownSeason is a row of archive show.
type shownSeason struct {
	Year     int `json:"year"`
	Rounds   int `json:"rounds"`
	Finished int `json:"finished"`
	Results  int `json:"results"`
	Practice int `json:"practice"`
	PitStops int `json:"pit_stops"`
	Colours  int `json:"team_colours"`
}

func (c *archiveShowCmd) Run(ctx context.Context, s *terminal.Streams) error {
	if c.Archive != "" && s.Given["store"] {
		return terminal.Usagef("--archive and --store name two archives: give one of them")
	}
	facts, err := c.load(ctx)
	if err != nil {
		return err
	}
	var seasons []shownSeason
	for _, year := range facts.Archive.Facts().Seasons {
		seasons = append(seasons, countSeason(&year))
	}
	out := struct {
		Source  string        `json:"source"`
		SHA256  string        `json:"sha256"`
		Seasons []shownSeason `json:"seasons"`
	}{facts.Archive.Facts().Source, facts.SHA256, seasons}
	if s.PrintedJSON(out) {
		return nil
	}
	s.Printf("source  %s\nsha256  %s\n\n", out.Source, out.SHA256)
	slices.Reverse(seasons)
	header := []any{"season", "rounds", "finished", "results", "practice laps", "pit stops", "colours"}
	s.PrintTable(header, view.Each(seasons, func(y shownSeason) []any {
		return []any{y.Year, y.Rounds, y.Finished, y.Results, y.Practice, y.PitStops, y.Colours}
	}))
	return nil
}

func (c *archiveShowCmd) load(ctx context.Context) (archive.Stored, error) {
	if c.Archive != "" || c.Store == "" {
		return flags.ReadArchive(c.Archive)
	}
	store, err := flags.Storage{Store: c.Store}.OpenToRead(ctx)
	if err != nil {
		return archive.Stored{}, err
	}
	facts, err := archive.NewStore(store).Load(ctx)
	if errors.Is(err, blob.ErrNotFound) {
		return archive.Stored{}, fmt.Errorf("%s has no archive yet; gridcast archive import puts one there", store)
	}
	return facts, err
}

func countSeason(year *season.Season) shownSeason {
	shown := shownSeason{Year: year.Year, Rounds: len(year.Rounds), Colours: len(year.Colours)}
	for i := range year.Rounds {
		r := &year.Rounds[i]
		if r.Finished() {
			shown.Finished++
		}
		shown.Results += len(r.Results)
		for _, session := range r.Practice {
			shown.Practice += len(session)
		}
		shown.PitStops += len(r.PitStops)
	}
	return shown
}

type archiveListCmd struct{ flags.Storage }

func (c *archiveListCmd) Run(ctx context.Context, s *terminal.Streams, store blob.Store) error {
	list, err := archive.NewStore(store).List(ctx)
	if err != nil {
		return err
	}
	none := fmt.Sprintf("%s has no archive yet; gridcast archive import puts one there", store)
	terminal.PrintRows(s, list, none, []any{"sha256", "bytes", "added", ""}, func(a archive.Listing) []any {
		state := ""
		if a.InUse {
			state = "in use"
		}
		return []any{a.SHA256[:min(len(a.SHA256), 16)], a.Bytes, terminal.Time(a.Added), state}
	})
	return nil
}

type archiveDiffCmd struct {
	flags.Storage
	Before string `arg:"" help:"An archive file, or the first digits of the sum of an archive in the store." placeholder:"A"`
	After  string `arg:"" optional:"" help:"The archive to compare with; default: the one in use." placeholder:"B"`
}

func (c *archiveDiffCmd) Run(ctx context.Context, s *terminal.Streams, store blob.Store) error {
	load := func(name string) (archive.Stored, error) {
		if _, err := os.Stat(name); err == nil {
			return archive.ReadFile(name)
		}
		if name == "" {
			return archive.NewStore(store).Load(ctx)
		}
		return archive.NewStore(store).Find(ctx, name)
	}
	before, err := load(c.Before)
	if err != nil {
		return err
	}
	after, err := load(c.After)
	if err != nil {
		return err
	}
	diff := archive.Compare(before.Archive, after.Archive)
	if s.PrintedJSON(diff) {
		return nil
	}
	for _, sentence := range diff.Sentences() {
		s.Printf("%s\n", sentence)
	}
	if len(diff.Rounds) == 0 {
		return nil
	}
	s.Printf("\n")
	s.PrintTable([]any{"season", "round", "", "what", ""}, view.Each(diff.Rounds, func(r archive.RoundDiff) []any {
		lost := ""
		if r.LostResult {
			lost = "result lost"
		}
		return []any{r.Year, r.Name, r.Kind, strings.Join(r.Changed, ", "), lost}
	}))
	return nil
}

type archiveUseCmd struct {
	flags.Storage
	flags.Action
	operator.UseArchive
	Force bool `help:"Accept the loss of results that the archive in use has." env:"-"`
}

func (c *archiveUseCmd) Run(ctx context.Context, s *terminal.Streams) error {
	o, err := c.Importer(ctx, s)
	if err != nil {
		return err
	}
	request := operator.Request{Force: c.Force}
	return c.ApplyAndPrint(ctx, s, o, c.UseArchive, request, func(s *terminal.Streams, answer operator.Answer) {
		s.Print(map[string]string{"sha256": answer.Record.(archive.Stored).SHA256},
			"%s A running scheduler builds from it within a second; else gridcast build does.\n", answer.Text)
	})
}
