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

	"github.com/alecthomas/kong"

	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/deploy/flags"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
)

type entriesCmds struct {
	Set driversSetCmd `cmd:"" help:"Enter the drivers of a round, by their codes."`
}

type qualifyingCmds struct {
	Set driversSetCmd `cmd:"" help:"Enter the outcome of qualifying, by the drivers' codes in order."`
}

type gridCmds struct {
	Set driversSetCmd `cmd:"" help:"Enter the starting grid, by the drivers' codes in order."`
}

// driversSetCmd enters drivers of a round: the entries, qualifying or the grid, by the command above it.
type driversSetCmd struct {
	flags.Manual
	flags.Action
	File string `help:"The drivers' codes in order, as --template writes them; - reads them from standard input." placeholder:"FILE" env:"-"`
	operator.EnterDrivers
	Force    bool `help:"Enter it although a gate refuses it." env:"-"`
	Template bool `help:"Only print the known drivers, as a file to put in order for --file." env:"-"`
}

func (c *driversSetCmd) Run(ctx context.Context, k *kong.Context, s *terminal.Streams) error {
	c.Block = assemble.Block(k.Selected().Parent.Name)
	if c.Template {
		o, err := c.Reader(ctx, s)
		if err != nil {
			return err
		}
		text, err := o.Template(ctx, c.Key, c.Block)
		s.Printf("%s", terminal.Lines(text)) // empty after an error
		return err
	}
	switch {
	case (c.File == "") == (c.Text == ""):
		return terminal.Usagef("give the drivers in order: --file with a code a line, or --order with the codes; --template prints the known ones")
	case c.File != "":
		file, err := readFile(c.File)
		if err != nil {
			return err
		}
		c.Text = string(file)
	}
	o, err := c.Operator(ctx, s)
	if err != nil {
		return err
	}
	return c.ApplyAndPrint(ctx, s, o, c.EnterDrivers, operator.Request{Force: c.Force}, entered{}.print)
}

// readFile reads a file of the command line; - is standard input.
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

// entered prints the text of an answer about facts, and the command that publishes them.
type entered struct{}

func (entered) print(s *terminal.Streams, answer operator.Answer) {
	publishes := ""
	if answer.Unpublished != "" {
		publishes = " A running scheduler publishes it, else gridcast build does."
	}
	s.Print(map[string]any{"text": answer.Text, "events": answer.Events}, "%s%s\n", answer.Text, publishes)
}

type factsCmds struct {
	List    factsListCmd                        `cmd:"" help:"List the facts entered by hand, and whether the sources agree."`
	Release manualAction[operator.ReleaseFacts] `cmd:"" help:"Release facts entered by hand: the sources apply again."`
}

type factsListCmd struct{ flags.Manual }

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
		state := "no source has it"
		switch {
		case len(fact.Disputed) > 0:
			state = strings.Join(fact.Disputed, ", ") + " differs"
		case len(fact.Confirmed) > 0:
			state = "confirmed by " + strings.Join(fact.Confirmed, ", ")
		case fact.Assumed:
			state = "assumed; gives way to any source"
		}
		rows = append(rows, []any{fact.SessionKey, fact.GrandPrix, operator.BlockWords[fact.Block], terminal.Time(fact.At), operator.Who(fact.By), fact.Reason, state})
	}
	s.PrintList(listed, "no facts are entered by hand", []any{"session", "round", "what", "entered", "by", "because", "sources"}, rows)
	return nil
}

type calendarCmds struct {
	Import calendarImportCmd `cmd:"" help:"Enter the calendar of a season from a table with commas or an iCalendar file."`
}

type calendarImportCmd struct {
	flags.Manual
	flags.Action
	File     string `arg:"" optional:"" help:"The calendar (.csv or .ics); - reads it from standard input." placeholder:"FILE"`
	Year     int    `help:"The season of --template; default: the current one." env:"-"`
	Force    bool   `help:"Enter it although a gate refuses it." env:"-"`
	Template bool   `help:"Only print the known calendar, as a table to edit and import." env:"-"`

	Map map[string]string `help:"The Grand Prix of the rows and events with a text, by its identifier, or none to leave them out; repeat for more." placeholder:"'TEXT=grand-prix'" mapsep:"none" env:"-"`
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
		s.Printf("%s", terminal.Lines(text)) // empty after an error
		return err
	}
	if c.File == "" {
		return terminal.Usagef("name the file of the calendar; --template prints the known calendar")
	}
	file, err := readFile(c.File)
	if err != nil {
		return err
	}
	o, err := c.Operator(ctx, s)
	if err != nil {
		return err
	}
	action := operator.ImportCalendar{File: file, Origin: filepath.Base(c.File), Map: c.Map}
	return c.ApplyAndPrint(ctx, s, o, action, operator.Request{Force: c.Force}, entered{}.print)
}
