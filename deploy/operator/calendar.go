package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/builder/source/calendar"
	"gridcast/deploy/auditlog"
)

// ImportCalendar enters what a calendar says that is not in use: new rounds, starts, when the other
// sessions are held. Rounds that it leaves out stay.
type ImportCalendar struct {
	File   []byte // in a form of package calendar
	Origin string // its name, for people
}

func (ImportCalendar) needsReason() bool { return true }

func (d ImportCalendar) entry() auditlog.Change {
	return auditlog.Change{Action: auditlog.ImportCalendar, Subject: strings.TrimSpace(d.Origin + " " + archive.Sum(d.File)[:12])}
}

// planned is what an import enters.
type planned struct {
	entry  ingest.HandEntry
	new    []string // rounds, for people
	moved  []string
	events []ledger.Event // moves of starts
	notes  []string
}

// read finds what of the calendar is not in use.
func (d ImportCalendar) read(ctx context.Context, o *Operator) (planned, error) {
	if o.Ingest == nil {
		return planned{}, errNoFacts
	}
	if err := o.Ledger.Refresh(ctx); err != nil {
		return planned{}, err
	}
	inUse, err := o.Facts(ctx)
	if err != nil {
		return planned{}, err
	}
	facts, now := inUse.Archive.Facts(), o.Now()
	editions := make(map[season.GrandPrixID]season.Round)
	for i := range facts.Seasons {
		for _, r := range facts.Seasons[i].Rounds {
			editions[r.GrandPrix] = r
		}
	}
	rounds, notes, err := calendar.Read(d.File, calendar.Known{Editions: editions, Circuits: facts.Circuits})
	if err != nil {
		return planned{}, fmt.Errorf("import the calendar %s: %w", d.Origin, err)
	}
	p := planned{notes: notes}
	state := o.Ledger.State()
	numbers := make(map[int]int) // rounds so far, by year
	var faults []error
	for _, said := range rounds {
		if said.Year < now.UTC().Year() || said.Year > now.UTC().Year()+2 {
			faults = append(faults, fmt.Errorf("%s: %s is not a day of %d, or of one of the two years after it: other seasons change by archive import alone",
				said.Place, said.Date.Format(time.DateOnly), now.UTC().Year()))
			continue
		}
		at := slices.IndexFunc(facts.Seasons, func(s season.Season) bool { return s.Year == said.Year })
		var known *season.Round
		if at >= 0 {
			if i := slices.IndexFunc(facts.Seasons[at].Rounds, func(r season.Round) bool { return r.GrandPrix == said.GrandPrix }); i >= 0 {
				known = &facts.Seasons[at].Rounds[i]
			}
			numbers[said.Year] = max(numbers[said.Year], len(facts.Seasons[at].Rounds))
		}
		next := d.next(said, known, editions[said.GrandPrix])
		if known == nil {
			if numbers[said.Year]++; next.Number == 0 {
				next.Number = numbers[said.Year]
			}
			p.new = append(p.new, fmt.Sprintf("%s of %d on %s", next.Name, said.Year, said.Date.Format(time.DateOnly)))
		}
		if said.Venue != nil {
			if p.entry.Circuits == nil {
				p.entry.Circuits = make(map[season.CircuitID]season.Circuit)
			}
			p.entry.Circuits[said.Venue.ID] = *said.Venue
		}
		for _, block := range []assemble.Block{assemble.Calendar, assemble.Start, assemble.Sessions} {
			if !assemble.Has(block, &next) || known != nil && assemble.Same(block, known, &next) {
				continue
			}
			p.entry.Said = append(p.entry.Said, ingest.Statement{
				BlockID: assemble.BlockID{Year: said.Year, GrandPrix: said.GrandPrix, Block: block}, Is: ingest.Part(assemble.Part(block, &next)),
			})
			if known == nil || block != assemble.Start {
				continue
			}
			p.moved = append(p.moved, fmt.Sprintf("%s of %d from %s to %s", next.Name, said.Year, minute(known.StartsAt()), minute(next.StartsAt())))
			key, ok := state.Key(said.Year, said.GrandPrix)
			session, _ := state.Record(key)
			if valid := session.Start(known.StartsAt()); ok && session.Override.Status == ledger.AsPlanned && !known.Provisional() && !valid.Equal(next.StartsAt()) {
				move := session.Move(valid, next.StartsAt(), notGiven)
				if _, err := state.Trial(now, []ledger.Event{move}); err != nil {
					faults = append(faults, fmt.Errorf("%s: %s of %d: %w", said.Place, next.Name, said.Year, err))
				}
				p.events = append(p.events, move)
			}
		}
	}
	if len(faults) > 0 {
		return planned{}, fmt.Errorf("import the calendar %s: %w", d.Origin, errors.Join(faults...))
	}
	return p, nil
}

// next is a round as the calendar has it: what it leaves out is as known of the round, or of the
// latest edition on the same circuit.
func (ImportCalendar) next(said calendar.Round, known *season.Round, latest season.Round) season.Round {
	next := season.Round{GrandPrix: said.GrandPrix, Name: said.Name, Number: said.Number}
	if known != nil {
		next = *known
		if said.Number > 0 {
			next.Number = said.Number
		}
	} else if latest.Name != "" {
		next.Name = latest.Name
		if latest.Circuit == said.Circuit {
			next.Street, next.CourseKm, next.ScheduledLaps = latest.Street, latest.CourseKm, latest.ScheduledLaps
		}
	}
	next.Circuit, next.Date, next.Sprint = said.Circuit, said.Date, next.Sprint || said.Sprint
	if !said.Start.IsZero() || !next.Start.IsZero() && !next.Date.Equal(said.Date) {
		next.Start = said.Start
	}
	sessions := slices.Clone(next.Sessions)
	for _, s := range said.Sessions {
		i := slices.IndexFunc(sessions, func(other season.Session) bool { return other.Kind == s.Kind })
		if i < 0 {
			sessions = append(sessions, s)
		} else {
			sessions[i] = s
		}
	}
	slices.SortStableFunc(sessions, func(a, b season.Session) int {
		if a.Date.Equal(b.Date) {
			return a.Start.Compare(b.Start)
		}
		return a.Date.Compare(b.Date)
	})
	next.Sessions = sessions
	return next
}

func (d ImportCalendar) preview(ctx context.Context, o *Operator) (Preview, error) {
	plan, err := d.read(ctx, o)
	if err != nil {
		return Preview{}, err
	}
	p := Preview{Title: "Import the calendar " + d.Origin, Warnings: plan.notes, Effects: []string{}}
	v, err := o.view(ctx)
	if err != nil {
		return Preview{}, err
	}
	state := o.Ledger.State()
	p.Seen = digest(struct{ Entry, Head any }{plan.entry, state.Head()})
	if len(plan.entry.Said) == 0 {
		p.Effects = append(p.Effects, "All of it is in use already: nothing changes.")
		return p, nil
	}
	p.Question = "Is this the calendar?"
	if n := len(plan.new); n > 0 {
		p.Effects = append(p.Effects, fmt.Sprintf("%s: %s.", count(n, "round is new", "rounds are new"), some(plan.new)))
	}
	if n := len(plan.moved); n > 0 {
		p.Effects = append(p.Effects, fmt.Sprintf("%s: %s.", count(n, "start moves", "starts move"), some(plan.moved)))
	}
	if rest := len(plan.entry.Said) - 3*len(plan.new) - len(plan.moved); rest > 0 {
		p.Effects = append(p.Effects, "Circuits, numbers, or when other sessions are held change too.")
	}
	out, err := o.Ingest.Trial(ctx, v.At, plan.entry)
	if err != nil {
		return Preview{}, err
	}
	p.Refusal = handRefusals(&out, func(c assemble.Proposal) string { return fmt.Sprintf("%s of %d: ", c.GrandPrix, c.Year) })
	next, err := season.New(out.Facts)
	if err != nil {
		return Preview{}, err
	}
	trial, err := state.Trial(v.At, plan.events)
	if err != nil {
		return Preview{}, err
	}
	if was, is := nextOf(v, state), nextOf(next.AsOf(v.At), trial); was != is {
		p.Effects = append(p.Effects, fmt.Sprintf("The next race is %s; until now: %s.", is, was))
	}
	return p, nil
}

// nextOf is the race that starts next, whether or not it has a session key yet.
func nextOf(v *season.View, s *ledger.State) string {
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

// count says a number of things: "1 round is new", "2 rounds are new".
func count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

func some(all []string) string {
	const most = 8
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
}

func (d ImportCalendar) do(ctx context.Context, o *Operator, request Request, _ Preview) (Answer, error) {
	plan, err := d.read(ctx, o)
	if err != nil {
		return Answer{}, err
	}
	if len(plan.entry.Said) == 0 {
		return Answer{Text: "The calendar is in use already."}, nil
	}
	done, err := o.enter(ctx, plan.entry, request)
	done.Text = fmt.Sprintf("The calendar is in use: %s, %s.", count(len(plan.new), "round is new", "rounds are new"), count(len(plan.moved), "start moved", "starts moved"))
	return done, err
}

// CalendarTemplate is the calendar of a year as it is known, as a table that can be imported.
func (o *Operator) CalendarTemplate(ctx context.Context, year int) (string, error) {
	v, err := o.view(ctx)
	if err != nil {
		return "", err
	}
	state := o.Ledger.State()
	sessions := []season.SessionKind{season.Practice1, season.Practice2, season.Practice3, season.SprintQualifying, season.Sprint, season.Qualifying}
	var b strings.Builder
	b.WriteString("round,grand_prix,circuit,start")
	for _, kind := range sessions {
		fmt.Fprintf(&b, ",%s", kind)
	}
	b.WriteString("\n")
	found := false
	for _, r := range almanac.Rounds(v, state, year) {
		if r.Year != year {
			continue
		}
		found = true
		fmt.Fprintf(&b, "%d,%s,%s,%s", r.Facts.Number, r.Facts.GrandPrix, r.Facts.Circuit, instantCell(r.Facts.Date, r.Facts.Start))
		for _, kind := range sessions {
			s, known := r.Facts.Session(kind)
			switch {
			case known:
				b.WriteString("," + instantCell(s.Date, s.Start))
			case kind == season.Sprint && r.Facts.Sprint:
				b.WriteString(",yes")
			default:
				b.WriteString(",")
			}
		}
		b.WriteString("\n")
	}
	if !found {
		fmt.Fprintf(&b, "# nothing is known of %d; a line such as\n# 1,australia,melbourne,2027-03-07T15:00:00+11:00,,,,,,\n", year)
	}
	return b.String(), nil
}

func instantCell(date, start time.Time) string {
	if start.IsZero() {
		return date.Format(time.DateOnly)
	}
	return start.UTC().Format(time.RFC3339)
}
