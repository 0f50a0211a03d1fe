package operator

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/builder/source/calendar"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/view"
	"gridcast/snapshots"
)

// ImportCalendar enters the rounds, starts and sessions of a calendar that differ from the facts in use.
// Rounds that the calendar leaves out stay.
type ImportCalendar struct {
	published

	File   []byte // in a form of package calendar
	Origin string // its name, for people
	// Map names the Grand Prix of the rows and events with a text: see calendar.Read.
	Map map[string]string
}

func (d ImportCalendar) look(ctx context.Context, o *Operator) (*Plan, error) {
	if o.Ingest == nil {
		return nil, errNoFacts
	}
	v, err := o.known(ctx)
	if err != nil {
		return nil, err
	}
	inUse, err := o.Facts(ctx)
	if err != nil {
		return nil, err
	}
	facts, state := inUse.Archive.Facts(), o.Ledger.Fold()
	plan, err := ingest.PlanCalendar(d.File, d.Map, &facts, state, v.At, notGiven)
	if err != nil {
		return nil, fmt.Errorf("import the calendar %s: %w", d.Origin, err)
	}
	done := &Plan{
		Preview: Preview{
			Title: "Import the calendar " + d.Origin, Warnings: plan.Left, Effects: []string{},
			Seen: digest(struct{ Entry, Head any }{plan.Entry, state.Head()}),
		},
		entry: auditlog.Intent{Action: auditlog.ImportCalendar, Subject: strings.TrimSpace(d.Origin + " " + snapshots.Digest(d.File)[:12])},
		do: func(ctx context.Context, request Request) (Answer, error) {
			if len(plan.Entry.Statements) == 0 {
				return Answer{Text: "The calendar is in use already."}, nil
			}
			answer, err := o.enter(ctx, plan.Entry, request)
			answer.Text = fmt.Sprintf("The calendar is in use: %s, %s.", view.Count(len(plan.New), "1 round is new", "rounds are new"), view.Count(len(plan.Moved), "1 start moved", "starts moved"))
			return answer, err
		},
	}
	p := &done.Preview
	if len(plan.Entry.Statements) == 0 {
		p.Effects = append(p.Effects, "All of it is in use already: nothing changes.")
		p.Effects = append(p.Effects, plan.Listed...)
		return done, nil
	}
	p.Question, p.Effects = "Is this the calendar?", append(p.Effects, calendarEffects(&plan)...)
	out, err := o.Ingest.Trial(ctx, v.At, plan.Entry)
	if err != nil {
		return nil, err
	}
	p.Refusal = o.refusal(ctx, out.Held, func(c assemble.Proposal) string { return fmt.Sprintf("%s of %d: ", c.GrandPrix, c.Year) })
	next, err := season.New(out.Facts)
	if err != nil {
		return nil, err
	}
	trial, err := state.Trial(v.At, plan.Moves)
	if err != nil {
		return nil, err
	}
	if was, is := nextOf(v, state), nextOf(next.AsOf(v.At), trial); was != is {
		p.Effects = append(p.Effects, fmt.Sprintf("The next race is %s; until now: %s.", is, was))
	}
	p.Effects = append(p.Effects, plan.Listed...)
	return done, nil
}

// nextOf names the race that starts next, with or without a session key.
func nextOf(v *season.View, s *ledger.Fold) string {
	var coming *almanac.Round
	for _, r := range almanac.Rounds(v, s, v.At.UTC().Year()) {
		if r.State == almanac.Scheduled && (coming == nil || r.Start.Before(coming.Start)) {
			coming = r
		}
	}
	if coming == nil {
		return "none"
	}
	return fmt.Sprintf("the %s on %s", label(coming), minute(coming.Start))
}

func calendarEffects(plan *ingest.CalendarPlan) (effects []string) {
	if n := len(plan.New); n > 0 {
		// All of them, because each gets a session key, which it keeps for ever.
		named := view.Each(plan.New, func(r calendar.Round) string {
			return fmt.Sprintf("%s of %d on %s", r.Name, r.Year, r.Date.Format(time.DateOnly))
		})
		effects = append(effects, fmt.Sprintf("%s: %s.", view.Count(n, "1 round is new", "rounds are new"), strings.Join(named, ", ")))
	}
	if n := len(plan.Moved); n > 0 {
		named := view.Each(plan.Moved, func(m ingest.MovedStart) string {
			return fmt.Sprintf("%s of %d from %s to %s", m.Name, m.Year, minute(m.From), minute(m.To))
		})
		effects = append(effects, fmt.Sprintf("%s: %s.", view.Count(n, "1 start moves", "starts move"), view.First(named, 8)))
	}
	if rest := len(plan.Entry.Statements) - 3*len(plan.New) - len(plan.Moved); rest > 0 {
		effects = append(effects, "Circuits, numbers, or when other sessions are held change too.")
	}
	return effects
}

// CalendarTemplate returns the known calendar of a year as a table that ImportCalendar reads.
func (o *Operator) CalendarTemplate(ctx context.Context, year int) (string, error) {
	v, err := o.known(ctx)
	if err != nil {
		return "", err
	}
	header := []string{"round", "grand_prix", "circuit", "start"}
	for _, kind := range calendar.Kinds {
		header = append(header, string(kind))
	}
	lines := []string{strings.Join(header, ",")}
	for _, r := range almanac.Rounds(v, o.Ledger.Fold(), year) {
		if r.Year != year {
			continue
		}
		cells := []string{strconv.Itoa(r.Facts.Number), string(r.Facts.GrandPrix), string(r.Facts.Circuit), instantCell(r.Facts.LocalDay(), r.Facts.Start)}
		for _, kind := range calendar.Kinds {
			cell := ""
			if s, known := r.Facts.Session(kind); known {
				cell = instantCell(s.Date, s.Start)
			} else if r.Facts.Cancelled(kind) {
				cell = "cancelled"
			} else if kind == season.Sprint && r.Facts.Sprint {
				cell = "yes"
			}
			cells = append(cells, cell)
		}
		lines = append(lines, strings.Join(cells, ","))
	}
	if len(lines) == 1 {
		lines = append(lines, fmt.Sprintf("# nothing is known of %d; a line such as\n# 1,australia,melbourne,2027-03-07T15:00:00+11:00,,,,,,", year))
	}
	return strings.Join(lines, "\n") + "\n", nil
}

func instantCell(date, start time.Time) string {
	if start.IsZero() {
		return date.Format(time.DateOnly)
	}
	return start.UTC().Format(time.RFC3339)
}
