package console

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/builder/stewards"
	"gridcast/deploy/operator"
	"gridcast/deploy/view"
)

type controlSection struct {
	Rounds   []controlledRound
	Calendar string // the known season as a table that can be edited and imported
}

// controlledRound is a round of race control: the known facts of the weekend, and forms for the missing
// ones.
type controlledRound struct {
	view.Round

	Drivers string // codes and names of all possible drivers, for sortable lists
	Blocks  []controlledBlock
	Entered bool // a person entered facts that are not released
}

// controlledBlock is a part of the weekend that a person can enter.
type controlledBlock struct {
	Block  assemble.Block
	Word   string   // its name for people
	Order  []string // codes in known order, or to be sorted
	Known  bool
	Note   string // where from
	ByHand bool
}

const roundsInControl = 2

// collectControl collects race control: the latest race without a verified result, and the next rounds.
func (c *Console) collectControl(ctx context.Context, p *page, a *almanac.Almanac) error {
	if c.Operator.Ingest == nil {
		return nil
	}
	var rounds []*almanac.Round
	for _, r := range a.Waiting() {
		if r.Year == a.Current && p.RaceTime.Sub(r.Start) < 7*24*time.Hour {
			rounds = append(rounds, r)
		}
	}
	var err error
	if p.Control.Calendar, err = c.Operator.CalendarTemplate(ctx, a.Current); err != nil {
		return err
	}
	coming := a.Coming()
	rounds = append(rounds, coming[:min(len(coming), roundsInControl)]...)
	hand, err := c.Operator.Ingest.Manual(ctx)
	if err != nil {
		return err
	}
	for _, r := range rounds {
		round, err := c.control(ctx, r, hand)
		if err != nil {
			return err
		}
		p.Control.Rounds = append(p.Control.Rounds, round)
	}
	return nil
}

func (c *Console) control(ctx context.Context, r *almanac.Round, hand *ingest.ManualLog) (controlledRound, error) {
	roster, r, err := c.Operator.Roster(ctx, r.Session)
	if err != nil {
		return controlledRound{}, err
	}
	known := view.Each(roster.Known, func(s stewards.Starter) string { return s.Code + " " + s.Name })
	controlled := controlledRound{Round: view.RoundOf(r), Drivers: strings.Join(known, "|")}
	for _, b := range []controlledBlock{
		{Block: assemble.Entries, Known: roster.Listed},
		{Block: assemble.Qualifying, Known: len(r.Facts.Qualifying) > 0},
		{Block: assemble.Grid, Known: len(r.Facts.Grid) > 0},
	} {
		b.Word, b.Order = operator.BlockWords[b.Block], operator.CodesOf(operator.KnownOrder(roster, r, b.Block))
		standing, stands := hand.Find(assemble.BlockID{Year: r.Year, GrandPrix: r.Facts.GrandPrix, Block: b.Block})
		switch {
		case stands && standing.Assumed:
			b.Note = "assumed from what was entered"
		case stands:
			b.Note = fmt.Sprintf("entered by %s", operator.Who(standing.Entry.Actor))
			b.ByHand = true
		case b.Known:
			b.Note = "known"
		default:
			b.Note = "not known yet"
		}
		controlled.Entered = controlled.Entered || b.ByHand
		controlled.Blocks = append(controlled.Blocks, b)
	}
	return controlled, nil
}

// parseCalendar reads an uploaded calendar, or its text.
func parseCalendar(_ *Console, r *http.Request) (operator.Action, error) {
	d := operator.ImportCalendar{File: []byte(r.PostFormValue("text")), Origin: cmp.Or(field(r, "name"), "typed in the console")}
	if file, header, err := r.FormFile("file"); err == nil {
		defer func() { _ = file.Close() }() // it was only read
		sent, err := io.ReadAll(file)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", header.Filename, err)
		}
		d.File, d.Origin = sent, filepath.Base(header.Filename)
		// A browser without scripts cannot send the file again with its confirmation.
		r.PostForm.Set("text", string(sent))
		r.PostForm.Set("name", d.Origin)
	}
	for line := range strings.Lines(r.PostFormValue("map")) {
		if text, gp, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			if d.Map == nil {
				d.Map = make(map[string]string)
			}
			d.Map[text] = gp
		}
	}
	if len(bytes.TrimSpace(d.File)) == 0 {
		return nil, errors.New("choose the file of a calendar, or write it as a table")
	}
	return d, nil
}
