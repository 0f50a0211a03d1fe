package ingest

import (
	"errors"
	"fmt"
	"time"

	"gridcast/builder/assemble"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/builder/source/calendar"
)

// CalendarPlan is the part of a calendar file that the facts in use lack.
type CalendarPlan struct {
	Entry ManualEntry
	New   []calendar.Round // with the name that the round will have
	Moved []MovedStart
	Moves []ledger.Event // of starts that are published
	calendar.Reading
}

// MovedStart is a round with another start than in the facts in use.
type MovedStart struct {
	Name     string
	Year     int
	From, To time.Time
}

// PlanCalendar compares a calendar file, in a form of package calendar, with the facts in use and
// the ledger. It accepts rounds of this season and of the next two. Rounds that the file leaves out
// stay. mapped is that of calendar.Read. reason stands in the moves of the plan. A round with a fault is left out; the
// error has the faults if no round remains.
func PlanCalendar(file []byte, mapped map[string]string, facts *season.Facts, decided *ledger.Fold, now time.Time, reason string) (CalendarPlan, error) {
	known := calendar.Known{Seasons: facts.Seasons, Circuits: facts.Circuits}
	read, err := calendar.Read(file, known, mapped)
	if err != nil {
		return CalendarPlan{}, err
	}
	plan, editions := CalendarPlan{Reading: read}, known.Editions()
	numbers := make(map[int]int) // highest round number, by year
	for i := range facts.Seasons {
		numbers[facts.Seasons[i].Year] = len(facts.Seasons[i].Rounds)
	}
	var faults []error
	for _, read := range read.Rounds {
		if read.Year < now.UTC().Year() || read.Year > now.UTC().Year()+2 {
			faults = append(faults, fmt.Errorf("%s: %s is outside the seasons %d to %d; archive import changes other seasons",
				read.Place, read.Date.Format(time.DateOnly), now.UTC().Year(), now.UTC().Year()+2))
			continue
		}
		was, _ := facts.Round(read.Year, read.GrandPrix)                       // nil: a new round
		if read.Start.IsZero() && (was == nil || !read.Date.Equal(was.Date)) { // a calendar has the day at the circuit
			known := season.Round{GrandPrix: read.GrandPrix, Circuit: read.Circuit}
			if was != nil && was.Circuit == read.Circuit {
				known.Start = was.Start
			}
			read.Date = facts.UTCDay(&known, read.Date)
		}
		next := read.Over(was, editions[read.GrandPrix])
		if was == nil && next.Number == 0 {
			next.Number = numbers[read.Year] + 1
		}
		if err := plan.add(&read, was, &next, decided, now, reason); err != nil {
			faults = append(faults, err)
			continue
		}
		if was == nil {
			numbers[read.Year]++
			added := read
			added.Name = next.Name
			plan.New = append(plan.New, added)
		}
	}
	if len(faults) == len(read.Rounds) {
		return CalendarPlan{}, errors.Join(faults...)
	}
	for _, fault := range faults {
		plan.Left = append(plan.Left, fmt.Sprintf("left out: %v", fault))
	}
	return plan, nil
}

// add enters the blocks of a round that differ from the facts in use; was is nil for a new round. With an error it enters
// nothing.
func (p *CalendarPlan) add(read *calendar.Round, was, next *season.Round, decided *ledger.Fold, now time.Time, reason string) error {
	if was != nil && !assemble.Same(assemble.Start, was, next) {
		key, ok := decided.Key(read.Year, read.GrandPrix)
		record, _ := decided.Record(key)
		valid := record.Start(was.StartsAt())
		if ok && record.Override.Status == ledger.AsPlanned && !was.Provisional() && !next.Provisional() && !valid.Equal(next.StartsAt()) {
			move := record.Move(valid, next.StartsAt(), reason)
			if _, err := decided.Trial(now, []ledger.Event{move}); err != nil {
				return fmt.Errorf("%s: %s of %d: %w", read.Place, next.Name, read.Year, err)
			}
			p.Moves = append(p.Moves, move)
		}
		p.Moved = append(p.Moved, MovedStart{next.Name, read.Year, was.StartsAt(), next.StartsAt()})
	}
	if read.Venue != nil {
		p.Entry.Circuits = with(p.Entry.Circuits, read.Venue.ID, *read.Venue)
	}
	for _, block := range []assemble.Block{assemble.Calendar, assemble.Start, assemble.Sessions} {
		if !assemble.Has(block, next) || was != nil && assemble.Same(block, was, next) {
			continue
		}
		p.Entry.Statements = append(p.Entry.Statements, Statement{
			BlockID: assemble.BlockID{Year: read.Year, GrandPrix: read.GrandPrix, Block: block}, Entered: PartialRound(assemble.Only(block, next)),
		})
	}
	return nil
}
