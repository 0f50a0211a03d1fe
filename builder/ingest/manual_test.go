package ingest_test

import (
	stdcmp "cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/builder/source"
	"gridcast/builder/stewards"
	"gridcast/deploy/must"
)

// herald is a source with the facts that a test gives it.
type herald struct {
	name          string // empty: herald
	revision      string
	facts         season.Facts
	down          error
	noncommercial bool
	sparse        bool
	unreadable    bool
	told          int // revisions of tellOfAustria
}

func (h *herald) Name() string { return stdcmp.Or(h.name, "herald") }
func (h *herald) Licence() source.Licence {
	return source.Licence{Name: "CC0", NonCommercial: h.noncommercial}
}

func (h *herald) Fetch(_ context.Context, _ time.Time, _, _ int, known source.Known) (source.Payload, error) {
	switch {
	case h.down != nil:
		return source.Payload{}, h.down
	case known.SHA256 == source.Sum([]byte(h.revision)):
		return source.Payload{NotModified: true}, nil
	}
	return source.Payload{Packed: []byte(h.revision), Revision: h.revision}, nil
}

func (h *herald) Read(packed []byte) (source.Document, error) {
	if h.unreadable {
		return source.Document{}, errors.New("of another format")
	}
	return source.Document{Source: h.Name(), Revision: string(packed), From: 2024, To: 2031, Facts: h.facts, Sparse: h.sparse}, nil
}

// TestPlanCalendar: a calendar file gives an entry of all that differs from the facts in use, and the
// moves of starts that are published.
func TestPlanCalendar(t *testing.T) {
	for _, test := range []struct {
		what, file       string // first entries separated by ---, if any
		said, new, moved []string
		moves            int
		fault            string
	}{
		{"nothing new", "grand_prix,start\nalps,2030-03-10T13:00:00Z\n", nil, nil, nil, 0, ""},
		{"a start moves", "grand_prix,start\nbay,2030-03-24T15:00:00Z\n", []string{"bay start"}, nil, []string{"bay"}, 1, ""},
		{"another day, at the hour that is known", "grand_prix,start\nbay,2030-03-25\n", []string{"bay start"}, nil, []string{"bay"}, 1, ""},
		{"another day at another circuit, where no hour is known", "grand_prix,circuit,circuit_name,locality,country,start\nbay,hilltop,Hilltop,Hill,Italy,2030-03-25\n", []string{"bay calendar", "bay start"}, nil, []string{"bay"}, 0, ""},
		{"a new round at a known circuit", "grand_prix,name,circuit,start\ngulf,Grand Prix of gulf,ring,2030-06-02T13:00:00Z\n", []string{"gulf calendar", "gulf start"}, []string{"Grand Prix of gulf"}, nil, 0, ""},
		{
			"a new round at a new circuit", "grand_prix,name,circuit,circuit_name,locality,country,start\nhills,Grand Prix of hills,hilltop,Hilltop,Hill,Italy,2031-03-02\n",
			[]string{"hills calendar", "hills start"},
			[]string{"Grand Prix of hills"},
			nil, 0, "",
		},
		{"other sessions", "grand_prix,start,practice-1\ncape,2030-04-07T13:00:00Z,2030-04-05T11:00:00Z\n", []string{"cape sessions"}, nil, nil, 0, ""},
		{
			"the first hour of a new round",
			"grand_prix,name,circuit,start\nhills,Grand Prix of hills,ring,2031-03-02\n---\ngrand_prix,start\nhills,2031-03-02T13:00:00Z\n",
			[]string{"hills start"},
			nil,
			[]string{"hills"},
			0, "",
		},
		{"a season that is over", "grand_prix,start\nalps,2029-03-10T13:00:00Z\n", nil, nil, nil, 0, "line 2: 2029-03-10 is outside the seasons 2030 to 2032; archive import changes other seasons"},
		{"a start that the ledger refuses", "grand_prix,start\nalps,2030-03-01T13:00:00Z\n", nil, nil, nil, 0, `line 2: Grand Prix of alps of 2030: ledger refuses round_moved of 2030001: that start has passed: 2030-03-01T13:00:00Z; if the race began then, postpone it and reinstate it with that start`},
		{"no calendar", "", nil, nil, nil, 0, "the calendar is empty: the first line names the columns"},
	} {
		t.Run(test.what, func(t *testing.T) {
			s := newSmall(t)
			by := func(e ingest.ManualEntry) ingest.ManualEntry {
				e.Actor, e.Reason = "operator:anna", "announced"
				return e
			}
			read := func(file string) (ingest.CalendarPlan, error) {
				stored := must.Get(s.Facts.Load(t.Context()))(t)
				facts := stored.Archive.Facts()
				return ingest.PlanCalendar([]byte(file), nil, &facts, s.Ledger.Fold(), opening, "announced")
			}
			earlier, file, two := strings.Cut(test.file, "---\n")
			if !two {
				file = earlier
			} else if plan, err := read(earlier); err != nil {
				t.Fatal(err)
			} else if err := s.Enter(t.Context(), opening, by(plan.Entry)); err != nil {
				t.Fatal(err)
			} else if _, err := s.Apply(t.Context(), opening); err != nil {
				t.Fatal(err)
			}
			plan, err := read(file)
			if test.fault != "" {
				must.Hold(t, err != nil && err.Error() == test.fault, "got %v, want %s", err, test.fault)
				return
			}
			must.Do(t, err)
			var said, added, moved []string
			for _, st := range plan.Entry.Statements {
				said = append(said, string(st.GrandPrix)+" "+string(st.Block))
			}
			for _, r := range plan.New {
				added = append(added, r.Name)
			}
			for _, m := range plan.Moved {
				moved = append(moved, m.Name[len("Grand Prix of "):])
			}
			must.Equal(t, "statements, new rounds and moved starts", [][]string{test.said, test.new, test.moved}, [][]string{said, added, moved})
			if len(plan.Moves) != test.moves || test.moves > 0 && plan.Moves[0].Reason != "announced" {
				t.Errorf("moves are %+v, want %d", plan.Moves, test.moves)
			}
			must.Do(t, s.Enter(t.Context(), opening, by(plan.Entry)))
			if outcome, err := s.Apply(t.Context(), opening); err != nil || len(outcome.Held) > 0 || outcome.Changed != (len(said) > 0) {
				t.Errorf("entered: got %+v, %v", outcome, err)
			}
		})
	}
}

// TestPlanOfAnotherDay: a file has the day at the circuit. A race in the evening keeps its hour there, also if that is of another day
// in UTC once the clocks have changed.
func TestPlanOfAnotherDay(t *testing.T) {
	at := func(text string) time.Time { return must.Get(time.Parse(time.RFC3339, text))(t) }
	facts := season.NewFacts()
	facts.Circuits["miami"] = season.Circuit{ID: "miami", Name: "Miami", Locality: "Miami", Country: "United States of America"}
	was := season.Round{Number: 1, GrandPrix: "miami", Name: "Miami Grand Prix", Circuit: "miami", Date: at("2030-10-20T00:00:00Z"), Start: at("2030-10-20T23:30:00Z")}
	facts.Seasons = []season.Season{{Year: 2030, Rounds: []season.Round{was}}}
	plan := must.Get(ingest.PlanCalendar([]byte("grand_prix,start\nmiami,2030-11-10\n"), nil, &facts, new(ledger.Fold), opening, "announced"))(t)
	must.Require(t, len(plan.Moved) == 1, "moved are %+v, want one round", plan.Moved)
	must.Equal(t, "the start at half past seven on the day", at("2030-11-11T00:30:00Z"), plan.Moved[0].To.UTC())
}

// TestTrialOfAChain: the trial of an alias takes the earlier names of its driver along.
func TestTrialOfAChain(t *testing.T) {
	s := newSmall(t)
	s.now = smallStart("alps").Add(4 * time.Hour)
	s.commit(result("alps"))
	s.next(t)
	rename := func(*ledger.Fold) ([]ledger.Event, error) {
		return []ledger.Event{ledger.Rename("carl-coda", "carlo-coda")}, nil
	}
	must.Get(must.Get(s.Ledger.Refresh(t.Context()))(t).Append(t.Context(), s.now, "operator:anna", rename))(t)
	must.Get(s.Apply(t.Context(), s.now))(t)
	for range 100 { // the names are in a map
		out := must.Get(s.TrialAlias(t.Context(), s.now, "carlo-coda", "dora-dorn"))(t)
		r, _ := out.Facts.Round(2030, "alps")
		must.Require(t, r.Results[2].Driver == "dora-dorn" && len(out.Held) == 0, "third is %s, and held are %+v", r.Results[2].Driver, out.Held)
	}
	must.Fail(t, "an alias that stands", must.Err(s.TrialAlias(t.Context(), s.now, "carl-coda", "carlo-coda")), ledger.ErrUnchanged)
}

// TestDriversEntry: a list of drivers becomes the entries, the qualifying or the grid of a round; without
// an entry list the drivers are assumed to take part.
func TestDriversEntry(t *testing.T) {
	s := newSmall(t)
	s.commit(map[string][]byte{raceFolder("alps") + "race-results.yml": raced("anna-arno", "bert-berg", "carl-coda")})
	at := smallStart("alps").Add(4 * time.Hour)
	s.poll(t, at)
	stored := must.Get(s.Facts.Load(t.Context()))(t)
	view := stored.Archive.AsOf(at)
	var bay *almanac.Round
	for _, r := range almanac.Rounds(view, s.Ledger.Fold(), 2030) {
		if r.Facts.GrandPrix == "bay" {
			bay = r
		}
	}
	for _, test := range []struct {
		block  assemble.Block
		listed bool
		text   string
		want   []string
	}{
		{assemble.Entries, false, "ARN\nBER", []string{"entries"}},
		{assemble.Qualifying, false, "BER ARN\nNEW = Nina Newby, ITA, rosso, 9", []string{"qualifying", "entries assumed"}},
		{assemble.Grid, true, "BER ARN\n--\nCOD", []string{"grid"}},
	} {
		var entries []season.Entry
		if test.listed {
			entries = view.Seasons[0].Rounds[0].Entries
		}
		roster := stewards.NewRoster(view, 2030, "bay", entries)
		list := must.Get(roster.Read(test.text))(t)
		entry := ingest.DriversEntry(bay, test.block, roster, list)
		var got []string
		for _, st := range entry.Statements {
			text := string(st.Block)
			if st.Assumed {
				text += " assumed"
			}
			got = append(got, text)
		}
		if !slices.Equal(got, test.want) || len(entry.Drivers) != len(list.New) {
			t.Errorf("%s: got %v and %d new drivers, want %v and %d", test.block, got, len(entry.Drivers), test.want, len(list.New))
		}
		trial, err := s.Trial(t.Context(), smallStart("bay").Add(-time.Hour), entry)
		if err != nil || len(trial.Applied) != len(test.want) {
			t.Errorf("%s: a trial gives %+v, %v, want %v applied", test.block, trial.Applied, err, test.want)
		}
	}
}
