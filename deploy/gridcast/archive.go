package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"gridcast/builder"
	"gridcast/builder/archive"
	"gridcast/builder/auditlog"
	"gridcast/builder/season"
	"gridcast/builder/source/f1db"
	"gridcast/snapshots/blob"
)

type archiveCmds struct {
	Import archiveImportCmds `cmd:"" help:"Import facts from a source."`
	Show   archiveShowCmd    `cmd:"" help:"Show what an archive holds."`
}

type archiveImportCmds struct {
	F1DB importF1DBCmd `cmd:"" name:"f1db" help:"Import an F1DB release."`
}

// importF1DBCmd writes an archive file, or puts the archive into a store, whose builders then
// build from it.
type importF1DBCmd struct {
	Path    string `arg:"" help:"f1db-json-splitted.zip, the folder it unpacks to, f1db-json-single.zip or f1db.json." type:"path"`
	Archive string `help:"The archive file to write." placeholder:"FILE" type:"path" xor:"target" required:""`
	Store   string `help:"The store to put the archive into." placeholder:"URL" xor:"target" required:""`
	From    int    `help:"First season; default: the first there is." placeholder:"YEAR"`
	To      int    `help:"Last season; default: the last there is." placeholder:"YEAR"`
	Colours string `help:"A JSON file of team colours by season and constructor." placeholder:"FILE" type:"path"`
}

func (c *importF1DBCmd) Run(ctx context.Context, s *streams) error {
	opts := f1db.Options{From: c.From, To: c.To}
	if c.Colours != "" {
		file, err := os.Open(c.Colours)
		if err != nil {
			return fmt.Errorf("read colours: %w", err)
		}
		opts.Colours, err = f1db.ReadColours(file)
		if err := errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("read colours: %s: %w", c.Colours, err)
		}
	}
	bar := newProgress(s.err, "importing")
	const kib = 1 << 10
	opts.Progress = func(done, total int64) { bar.set(int(done/kib), int(total/kib)) }
	a, report, err := f1db.Import(c.Path, opts)
	bar.finish()
	if err != nil {
		return err
	}
	sum, size, err := c.keep(ctx, a)
	if err != nil {
		return err
	}
	if s.json {
		return s.printJSON(imported{Report: report, SHA256: sum, Bytes: size})
	}
	return s.printImport(report, sum, size)
}

// imported is the answer of archive import --json.
type imported struct {
	f1db.Report
	SHA256 string
	Bytes  int
}

// keep writes the archive to where the command line says.
func (c *importF1DBCmd) keep(ctx context.Context, a *season.Archive) (sum string, size int, err error) {
	var file bytes.Buffer
	if err := archive.Encode(&file, a); err != nil {
		return "", 0, err
	}
	if c.Archive != "" {
		sum, err = archive.WriteFile(c.Archive, a)
		return sum, file.Len(), err
	}
	store, err := (&storeFlags{Store: c.Store}).open(ctx)
	if err != nil {
		return "", 0, err
	}
	var facts builder.Facts
	err = audited(ctx, store, auditlog.Change{Action: auditlog.PutArchive, Subject: c.Path}, func() (err error) {
		facts, err = builder.NewFactsStore(store).Put(ctx, file.Bytes())
		return err
	})
	return facts.SHA256, file.Len(), err
}

func (s *streams) printImport(r f1db.Report, sum string, size int) error {
	if err := s.printf("seasons  %d (%d to %d)\nrounds   %d\nresults  %d\narchive  %d bytes, sha256 %s\n\n",
		r.Seasons, r.From, r.To, r.Rounds, r.Results, size, sum); err != nil {
		return err
	}
	rows := make([][]any, len(r.Tables))
	for i, t := range r.Tables {
		rows[i] = []any{t.Name, t.Rows, t.Imported}
	}
	if err := s.printTable([]any{"table", "rows", "imported"}, rows); err != nil {
		return err
	}
	rows = make([][]any, len(r.Skipped))
	for i, skip := range r.Skipped {
		rows[i] = []any{skip.What, skip.Rows, skip.Why}
	}
	return s.printf("\n%s\n", renderTable([]any{"skipped", "rows", "why"}, rows))
}

type archiveShowCmd struct {
	Archive string `help:"An archive file; default: the embedded seasons." placeholder:"FILE" type:"path" xor:"from"`
	Store   string `help:"Show the archive a store's builders build from." placeholder:"URL" xor:"from"`
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

func (c *archiveShowCmd) Run(ctx context.Context, s *streams) error {
	facts, err := c.load(ctx)
	if err != nil {
		return err
	}
	var seasons []shownSeason
	for _, year := range facts.Archive.Facts().Seasons {
		seasons = append(seasons, countSeason(&year))
	}
	if s.json {
		return s.printJSON(struct {
			Source  string        `json:"source"`
			SHA256  string        `json:"sha256"`
			Seasons []shownSeason `json:"seasons"`
		}{facts.Archive.Facts().Source, facts.SHA256, seasons})
	}
	if err := s.printf("source  %s\nsha256  %s\n\n", facts.Archive.Facts().Source, facts.SHA256); err != nil {
		return err
	}
	var rows [][]any
	for _, y := range slices.Backward(seasons) {
		rows = append(rows, []any{y.Year, y.Rounds, y.Finished, y.Results, y.Practice, y.PitStops, y.Colours})
	}
	return s.printTable([]any{"season", "rounds", "finished", "results", "practice laps", "pit stops", "colours"}, rows)
}

func (c *archiveShowCmd) load(ctx context.Context) (builder.Facts, error) {
	switch {
	case c.Archive != "":
		a, sum, err := archive.ReadFile(c.Archive)
		return builder.Facts{Archive: a, SHA256: sum}, err
	case c.Store != "":
		store, err := (&storeFlags{Store: c.Store}).openToRead(ctx)
		if err != nil {
			return builder.Facts{}, err
		}
		facts, err := builder.NewFactsStore(store).Load(ctx)
		if errors.Is(err, blob.ErrNotFound) {
			return builder.Facts{}, fmt.Errorf("%s has no archive yet; gridcast archive import puts one there", store)
		}
		return facts, err
	default:
		a, err := archive.Embedded()
		return builder.Facts{Archive: a, SHA256: archive.Sum(archive.EmbeddedBytes())}, err
	}
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
