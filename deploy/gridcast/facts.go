package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/deploy/flags"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
)

type entriesCmds struct {
	Set entriesSetCmd `cmd:"" help:"Enter who takes part in a round, by the drivers' codes."`
}

type qualifyingCmds struct {
	Set qualifyingSetCmd `cmd:"" help:"Enter the outcome of qualifying, by the drivers' codes in order."`
}

type gridCmds struct {
	Set gridSetCmd `cmd:"" help:"Enter the starting grid, by the drivers' codes in order."`
}

// orderFlags is what a command is told that enters an order of drivers.
type orderFlags struct {
	flags.Manual `embed:""`
	flags.Action `embed:""`
	Reason       string `help:"Why by hand, for the record." placeholder:"TEXT" env:"-"`
	Key          int64  `arg:"" help:"Session key of the round, from rounds list."`
	File         string `help:"The drivers' codes in order, as --template writes them; - reads them from standard input." placeholder:"FILE" env:"-"`
	Order        string `help:"The same on the command line: VER,NOR,RUS." placeholder:"CODES" env:"-"`
	Force        bool   `help:"Also when a gate refuses it." env:"-"`
	Template     bool   `help:"Only print what is known, to be put in order and given as --file." env:"-"`
}

func (c *orderFlags) set(ctx context.Context, s *terminal.Streams, block assemble.Block) error {
	if c.Template {
		o, err := c.Reader(ctx, s)
		if err != nil {
			return err
		}
		text, err := o.Template(ctx, c.Key, block)
		if err != nil {
			return err
		}
		s.Printf("%s", text)
		return nil
	}
	text := c.Order
	switch {
	case (c.File == "") == (c.Order == ""):
		return terminal.Usagef("give the drivers in order: --file with a code a line, or --order with the codes; --template prints what is known")
	case c.File != "":
		file, err := readFile(c.File)
		if err != nil {
			return err
		}
		text = string(file)
	}
	o, err := c.Operator(ctx, s)
	if err != nil {
		return err
	}
	done, err := c.Apply(ctx, s, o, operator.EnterDrivers{Key: c.Key, Block: block, Text: text}, operator.Request{Reason: c.Reason, Force: c.Force})
	if err != nil {
		return err
	}
	printEntered(s, done)
	return nil
}

// readFile reads a file that a command is given; - is standard input.
func readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(os.Stdin, 1<<20))
	}
	file, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return bytes.TrimPrefix(file, []byte("\ufeff")), nil
}

func printEntered(s *terminal.Streams, done operator.Answer) {
	if s.JSON {
		s.PrintJSON(map[string]any{"text": done.Text, "events": done.Events})
		return
	}
	if done.Unpublished == "" {
		s.Printf("%s\n", done.Text)
		return
	}
	s.Printf("%s A running scheduler publishes it, else gridcast build does.\n", done.Text)
}

type entriesSetCmd struct {
	orderFlags `embed:""`
}

func (c *entriesSetCmd) Run(ctx context.Context, s *terminal.Streams) error {
	return c.set(ctx, s, assemble.Entries)
}

type qualifyingSetCmd struct {
	orderFlags `embed:""`
}

func (c *qualifyingSetCmd) Run(ctx context.Context, s *terminal.Streams) error {
	return c.set(ctx, s, assemble.Qualifying)
}

type gridSetCmd struct {
	orderFlags `embed:""`
}

func (c *gridSetCmd) Run(ctx context.Context, s *terminal.Streams) error {
	return c.set(ctx, s, assemble.Grid)
}

type factsCmds struct {
	List    factsListCmd    `cmd:"" help:"List what people entered by hand, and what the sources say of it."`
	Release factsReleaseCmd `cmd:"" help:"Let go of what was entered by hand: the sources are believed again."`
}

type factsListCmd struct {
	flags.Manual `embed:""`
}

// listedFact is a row of facts list --json.
type listedFact struct {
	assemble.BlockID
	SessionKey int64     `json:"session_key,omitzero"`
	At         time.Time `json:"at"`
	By         string    `json:"by"`
	Reason     string    `json:"reason,omitzero"`
	Forced     bool      `json:"forced,omitzero"`
	Assumed    bool      `json:"assumed,omitzero"`
	Confirmed  []string  `json:"confirmed_by,omitzero"`
	Disputed   []string  `json:"disputed_by,omitzero"`
}

func (c *factsListCmd) Run(ctx context.Context, s *terminal.Streams) error {
	o, err := c.Reader(ctx, s)
	if err != nil {
		return err
	}
	hand, err := o.Ingest.Manual(ctx)
	if err != nil {
		return err
	}
	out, err := o.Ingest.Trial(ctx, o.Now(), ingest.ManualEntry{})
	if err != nil {
		return err
	}
	listed := []listedFact{}
	var rows [][]any
	for _, standing := range hand.Active() {
		fact := listedFact{
			BlockID: standing.BlockID, At: standing.Entry.At, By: standing.Entry.Actor, Reason: standing.Entry.Reason,
			Forced: standing.Forced, Assumed: standing.Assumed,
		}
		fact.SessionKey, _ = o.Ledger.Fold().Key(fact.Year, fact.GrandPrix)
		for _, confirmed := range out.Confirmed {
			if confirmed.BlockID == fact.BlockID {
				fact.Confirmed = append(fact.Confirmed, confirmed.Source)
			}
		}
		for _, change := range slices.Concat(out.Disputed, out.Held) {
			if change.BlockID() == fact.BlockID && change.Source != assemble.ManualSource {
				fact.Disputed = append(fact.Disputed, change.Source)
			}
		}
		listed = append(listed, fact)
		state := "no source says anything of it"
		switch {
		case len(fact.Disputed) > 0:
			state = strings.Join(fact.Disputed, ", ") + " says otherwise"
		case len(fact.Confirmed) > 0:
			state = "confirmed by " + strings.Join(fact.Confirmed, ", ")
		case fact.Assumed:
			state = "assumed; gives way to any source"
		}
		rows = append(rows, []any{fact.SessionKey, fact.GrandPrix, operator.BlockWords[fact.Block], terminal.Time(fact.At), fact.By, fact.Reason, state})
	}
	if s.JSON {
		s.PrintJSON(listed)
		return nil
	}
	if len(rows) == 0 {
		s.Printf("nobody has entered facts by hand\n")
		return nil
	}
	s.PrintTable([]any{"session", "round", "what", "entered", "by", "because", "sources"}, rows)
	return nil
}

type factsReleaseCmd struct {
	flags.Manual         `embed:""`
	flags.Action         `embed:""`
	flags.RequiredReason `embed:""`
	Key                  int64  `arg:"" help:"Session key of the round, from facts list."`
	Block                string `arg:"" optional:"" help:"What to let go of: ${enum}. Default: all that was entered of the round." enum:",calendar,start,sessions,entries,qualifying,grid" default:""`
}

func (c *factsReleaseCmd) Run(ctx context.Context, s *terminal.Streams) error {
	o, err := c.Operator(ctx, s)
	if err != nil {
		return err
	}
	done, err := c.Apply(ctx, s, o, operator.ReleaseFacts{Key: c.Key, Block: assemble.Block(c.Block)}, operator.Request{Reason: c.Reason})
	if err != nil {
		return err
	}
	printEntered(s, done)
	return nil
}

type calendarCmds struct {
	Import calendarImportCmd `cmd:"" help:"Enter the calendar of a season from a table with commas or an iCalendar file."`
}

type calendarImportCmd struct {
	flags.Manual `embed:""`
	flags.Action `embed:""`
	Reason       string `help:"Why by hand, for the record." placeholder:"TEXT" env:"-"`
	File         string `arg:"" optional:"" help:"The calendar (.csv or .ics); - reads it from standard input." placeholder:"FILE"`
	Year         int    `help:"The season of --template; default: that of now." env:"-"`
	Force        bool   `help:"Also when a gate refuses it." env:"-"`
	Template     bool   `help:"Only print the calendar as it is known, as a table to be changed and imported." env:"-"`
}

func (c *calendarImportCmd) Run(ctx context.Context, s *terminal.Streams) error {
	if c.Template {
		o, err := c.Reader(ctx, s)
		if err != nil {
			return err
		}
		if c.Year == 0 {
			c.Year = o.Now().UTC().Year()
		}
		text, err := o.CalendarTemplate(ctx, c.Year)
		if err != nil {
			return err
		}
		s.Printf("%s", text)
		return nil
	}
	if c.File == "" {
		return terminal.Usagef("name the file of the calendar; --template prints what is known")
	}
	file, err := readFile(c.File)
	if err != nil {
		return err
	}
	o, err := c.Operator(ctx, s)
	if err != nil {
		return err
	}
	action := operator.ImportCalendar{File: file, Origin: filepath.Base(c.File)}
	done, err := c.Apply(ctx, s, o, action, operator.Request{Reason: c.Reason, Force: c.Force})
	if err != nil {
		return err
	}
	printEntered(s, done)
	return nil
}

type sourceAliasCmd struct {
	flags.Manual         `embed:""`
	flags.Action         `embed:""`
	flags.RequiredReason `embed:""`
	Old                  string `arg:"" help:"The identity that is to be given up: what a source calls it, or called it."`
	New                  string `arg:"" help:"The identity that the archive knows."`
	Kind                 string `help:"What they are: ${enum}." enum:"driver,team,circuit,round" default:"driver" env:"-"`
}

func (c *sourceAliasCmd) Run(ctx context.Context, s *terminal.Streams) error {
	o, err := c.Operator(ctx, s)
	if err != nil {
		return err
	}
	action := operator.MergeIdentities{Kind: assemble.AliasKind(c.Kind), From: c.Old, To: c.New}
	done, err := c.Apply(ctx, s, o, action, operator.Request{Reason: c.Reason})
	if err != nil {
		return err
	}
	printEntered(s, done)
	return nil
}
