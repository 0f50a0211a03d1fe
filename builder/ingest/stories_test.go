package ingest_test

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/builder/settings"
	"gridcast/builder/source"
	"gridcast/builder/testseason"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
)

// story is a season in the small world that writes down what it sees.
type story struct {
	*small
	t    *testing.T
	gp   season.GrandPrixID // the round that it is about
	text strings.Builder
}

// tell writes down values: an outcome, a state and an event in short, others as they are printed.
func (s *story) tell(what string, got ...any) {
	for i := range got {
		switch v := got[i].(type) {
		case ingest.Outcome:
			got[i] = summary(v)
		case ingest.PollState:
			got[i] = brief(v)
		case []ledger.Event:
			var all []string
			for _, e := range v {
				all = append(all, strings.TrimSpace(fmt.Sprintf("%s by %s: %s", e.Type, e.Actor, e)))
			}
			got[i] = all
		case time.Time:
			got[i] = v.Format(time.RFC3339)
		}
	}
	fmt.Fprintf(&s.text, "%s: %s\n", what, cmp.Or(strings.TrimSpace(fmt.Sprintln(got...)), "nothing"))
}

// brief lists the parts of a state that are set.
func brief(state ingest.PollState) string {
	var parts []string
	add := func(format string, n int, value any) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf(format, value))
		}
	}
	blocks := func(list []assemble.Proposal) (all []string) {
		for _, p := range list {
			all = append(all, fmt.Sprintf("%s %s", p.GrandPrix, p.Block))
			for _, r := range p.Refused {
				all = append(all, fmt.Sprintf("(%s: %s)", r.Gate, r.Reason))
			}
		}
		return all
	}
	add("%s", len(state.Fault), state.Fault)
	add("gate %s", len(state.Gate), state.Gate)
	add("held %s", len(state.Held), blocks(state.Held))
	add("disputed %s", len(state.Disputed), blocks(state.Disputed))
	add("unlicensed %s", len(state.Unlicensed), blocks(state.Unlicensed))
	add("missing %v", len(state.Missing), len(state.Missing))
	add("standings %q", len(state.Standings), state.Standings)
	add("doubted %v", len(state.Doubted), state.Doubted)
	if state.CheckOnly {
		parts = append(parts, "check-only")
	}
	return strings.Join(parts, ", ")
}

func (s *story) stateOf(name string) ingest.PollState {
	s.t.Helper()
	return must.Get(ingest.LoadPollState(s.t.Context(), s.store, name))(s.t)
}

func (s *story) next(what string) ingest.Outcome {
	s.t.Helper()
	outcome := s.small.next(s.t)
	s.tell(what, outcome)
	return outcome
}

// at polls at an instant and writes down the outcome.
func (s *story) at(what string, at time.Time) ingest.Outcome {
	s.t.Helper()
	outcome := s.poll(s.t, at)
	s.tell(what, outcome)
	return outcome
}

// raced commits the result of the first round and polls after the race.
func (s *story) raced(more map[string][]byte) {
	s.t.Helper()
	s.commit(result("alps"))
	s.commit(more)
	s.poll(s.t, smallStart("alps").Add(4*time.Hour))
}

// result is the file of a result: Arno, Berg, Coda, or another order.
func result(gp string, order ...string) map[string][]byte {
	if order == nil {
		order = []string{"anna-arno", "bert-berg", "carl-coda"}
	}
	return map[string][]byte{raceFolder(gp) + "race-results.yml": raced(order...)}
}

// settle settles at an instant, with automatic verification after an hour, and writes down the events.
func (s *story) settle(what string, at time.Time) {
	s.t.Helper()
	policy := builder.Policy{AutoVerifyAfter: time.Hour, Stability: s.Stability}
	s.tell(what, must.Get(policy.Settle(s.t.Context(), testseason.Fresh(s.t, s.Ledger), must.Get(s.Facts.Load(s.t.Context()))(s.t), at))(s.t))
}

// accept accepts the first held change and applies it.
func (s *story) accept(held []assemble.Proposal, reason string) {
	s.t.Helper()
	must.Require(s.t, len(held) != 0, "nothing is held")
	must.Get(s.Accept(s.t.Context(), s.now, "operator:anna", held[0].ID, reason))(s.t)
	outcome := must.Get(s.Apply(s.t.Context(), s.now))(s.t)
	s.tell("accepted", outcome, outcome.Events)
}

func (s *story) enter(e ingest.ManualEntry) {
	s.t.Helper()
	must.Do(s.t, s.Enter(s.t.Context(), s.now, e))
}

func statement(gp season.GrandPrixID, block assemble.Block, r ingest.PartialRound) ingest.Statement {
	return ingest.Statement{BlockID: assemble.BlockID{Year: 2030, GrandPrix: gp, Block: block}, Entered: r}
}

func entered(actor string, statements ...ingest.Statement) ingest.ManualEntry {
	return ingest.ManualEntry{Actor: actor, Reason: "announced", Statements: statements}
}

func released(gp season.GrandPrixID, block assemble.Block) ingest.ManualEntry {
	return ingest.ManualEntry{Actor: "operator:ben", Released: []assemble.BlockID{{Year: 2030, GrandPrix: gp, Block: block}}}
}

// drivers lists the drivers of the round in the archive in use.
func (s *story) drivers() (qualifying, grid, result []season.DriverID) {
	r := s.round(s.t, s.gp)
	for _, row := range r.Qualifying {
		qualifying = append(qualifying, row.Driver)
	}
	slots := slices.Clone(r.Grid)
	season.SortGrid(slots)
	for _, slot := range slots {
		grid = append(grid, slot.Driver)
	}
	for _, row := range r.Results {
		result = append(result, row.Driver)
	}
	return qualifying, grid, result
}

// herald adds a source beside F1DB. It has the round of the archive in use, as change leaves it.
func (s *story) herald(checkOnly bool, change func(*season.Round)) *herald {
	h := &herald{noncommercial: true, sparse: true}
	s.Sources = append(s.Sources, ingest.Source{Upstream: h, CheckOnly: checkOnly, Every: time.Minute})
	s.says(h, change)
	return h
}

// says gives the source a new revision.
func (s *story) says(h *herald, change func(*season.Round)) {
	said := *s.round(s.t, s.gp)
	said.Results = slices.Clone(said.Results)
	if change != nil {
		change(&said)
	}
	h.told++
	h.revision, h.facts = fmt.Sprint("revision ", h.told), must.Get(s.Facts.Load(s.t.Context()))(s.t).Archive.Facts()
	h.facts.Seasons = []season.Season{{Year: 2030, Rounds: []season.Round{said}}}
}

// restarted is the same scheduler in a new process.
func (s *story) restarted() *ingest.Ingest {
	other := s.scheduler(s.t, s.store)
	other.Sources = s.Sources
	return other
}

var stories = map[string]func(*story){
	// A held change waits for a person. A trial shows its outcome before the person accepts it.
	"a start that a person accepts": func(s *story) {
		s.poll(s.t, s.now)
		s.commit(edited("cape", "date: 2030-04-07", "date: 2030-04-10"))
		held := s.next("a start three days later").Held
		s.tell("another ID", strings.ReplaceAll(must.Err(s.Accept(s.t.Context(), s.now, "operator:anna", "nothing", "")).Error(), held[0].ID, "ID"))
		trial := must.Get(s.TrialAccept(s.t.Context(), s.now, held[0].ID))(s.t)
		s.tell("a trial applies and holds", len(trial.Applied), len(trial.Held))
		s.tell("the start", s.round(s.t, "cape").StartsAt())
		s.accept(held, "announced")
		s.tell("the start", s.round(s.t, "cape").StartsAt())
	},
	// A published code changes when a person accepts it, and the ledger names that person.
	"a code that a person accepts": func(s *story) {
		s.raced(nil)
		s.commit(map[string][]byte{anna: bytes.Replace(driverFile("anna-arno", "Anna", "Arno"), []byte("ARN"), []byte("XYZ"), 1)})
		code := func() string {
			return must.Get(s.Facts.Load(s.t.Context()))(s.t).Archive.AsOf(s.now).Codes(2030)["anna-arno"]
		}
		held := s.next("another code").Held
		s.tell("the code", code())
		s.accept(held, "she married")
		s.tell("the code", code())
		s.next("the next poll")
	},
	// A round in the past that a person accepted goes again when the source drops it and nobody verified its result.
	"a past round that a person accepts": func(s *story) {
		s.poll(s.t, s.now)
		files := make(map[string][]byte)
		another("gulf", "2030-04-01")(files)
		s.now = smallStart("cape").Add(4 * time.Hour)
		s.commit(files)
		s.accept(s.next("a round in the past").Held, "it was run")
		s.settle("settled", s.now)
		for name := range files {
			files[name] = nil
		}
		s.commit(files)
		s.next("the round is gone")
		s.commit(result("alps"))
		s.next("another revision")
		s.at("a day later", s.now.Add(25*time.Hour))
		s.next("after that")
	},
	// Portraits follow the settings of the store, also without a source. Settings that cannot be read change nothing.
	"portraits": func(s *story) {
		s.raced(nil)
		tell := func(what string, o ingest.Outcome) {
			s.tell(what, o.Changed, must.Get(s.Facts.Load(s.t.Context()))(s.t).Archive.Facts().Headshots.Template)
		}
		must.Get(settings.Update(s.t.Context(), s.store, false, func(s *settings.Settings) {
			s.Headshots = &season.Headshots{Template: "https://images.example/{driver}.png", Drivers: []season.DriverID{"anna-arno"}}
		}))(s.t)
		alone := s.scheduler(s.t, s.store)
		alone.Sources = nil
		tell("new settings", must.Get(alone.Apply(s.t.Context(), s.now))(s.t))
		log := must.Get(ingest.LoadFactsLog(s.t.Context(), s.store))(s.t)
		s.tell("changed by", log.Entries[len(log.Entries)-1].Actor)
		s.replace(s.t, "settings.json", "{")
		tell("damaged settings", s.small.next(s.t))
	},
	// A second source fills gaps if its terms are accepted, disputes other results, and its facts are named as
	// non-commercial. Another process knows of it after Load.
	"two sources": func(s *story) {
		s.raced(nil)
		h := s.herald(true, func(alps *season.Round) {
			alps.Results[0].Driver, alps.Results[1].Driver = alps.Results[1].Driver, alps.Results[0].Driver
			alps.Qualifying = []season.QualifyingRow{{Driver: "anna-arno", Team: "rosso", Position: 1}}
		})
		stable := func(g *ingest.Ingest, archive string) {
			stood := g.Stability(archive, 2030, "alps")
			from, _, _ := strings.Cut(stood.From, " at ")
			s.tell("the result is contested, from, since", stood.Contested, len(strings.Fields(from)), stood.Since)
		}
		s.next("a check-only source")
		s.tell("its state", s.stateOf("herald"))
		stable(s.Ingest, s.inUse(s.t))
		s.Sources[1].CheckOnly = false
		h.revision = "licensed"
		s.next("its terms are accepted")
		public := s.Provenance(s.now)
		for _, part := range public.Borrowed {
			s.tell("borrowed", part.GrandPrix, part.Block, "of", part.Source, "under", part.Licence)
		}
		s.tell("sources, disagreements and disputes in public", len(public.Sources), public.Sources[1].Disagreements, len(public.Disputed))
		s.says(h, nil)
		s.next("the sources agree")
		s.commit(removed("fjord"))
		s.next("F1DB drops a round")
		s.tell("the states", s.stateOf("f1db"), "|", s.stateOf("herald"))
		h.down = errBroken
		s.next("an error of another type")
		stable(s.Ingest, s.inUse(s.t))
		stable(s.Ingest, "another archive")

		reader := s.scheduler(s.t, s.store) // a process that never polls
		stable(reader, s.inUse(s.t))
		s.tell("before Load there are states and sources", len(reader.PollStates()), len(reader.Provenance(s.now).Sources))
		must.Do(s.t, reader.Load(s.t.Context()))
		must.Equal(s.t, "Stability after Load", s.Stability(s.inUse(s.t), 2030, "alps"), reader.Stability(s.inUse(s.t), 2030, "alps"))
		s.tell("after Load there are states", len(reader.PollStates()))
		for _, name := range []string{"f1db", "stranger"} {
			if name == "stranger" {
				reader.Sources[0].Upstream = &herald{name: name}
			}
			d, ok, err := reader.LastDocument(s.t.Context(), reader.Sources[0])
			s.tell("the last document of "+name, d.Source, ok, err)
		}
	},
	// Manual facts win over the source until they are released, and a source confirms or disputes them.
	"facts by hand": func(s *story) {
		s.poll(s.t, s.now)
		s.now = smallStart("alps").Add(-20 * time.Hour)
		driver := func(id season.DriverID, first, last string) season.Driver {
			return season.Driver{ID: id, Name: first + " " + last, FirstName: first, LastName: last, Abbreviation: strings.ToUpper(last[:3]), Country: "ITA"}
		}
		entry := entered("operator:anna", statement("alps", assemble.Qualifying, ingest.PartialRound{Qualifying: []season.QualifyingRow{
			{Driver: "bert-berg", Team: "verde", Position: 1}, {Driver: "anna-arno", Team: "rosso", Position: 2}, {Driver: "dora-dorn", Team: "bianco", Position: 3},
		}}))
		entry.Drivers = map[season.DriverID]season.Driver{
			"anna-arno": driver("anna-arno", "Anna", "Arno"), "bert-berg": driver("bert-berg", "Bert", "Berg"), "dora-dorn": driver("dora-dorn", "Dora", "Dorn"),
		}
		entry.Teams = map[season.TeamID]season.Team{"rosso": {ID: "rosso", Name: "Rosso"}, "verde": {ID: "verde", Name: "Verde"}, "bianco": {ID: "bianco", Name: "Bianco"}}
		trial := must.Get(s.Trial(s.t.Context(), s.now, entry))(s.t)
		qualifying, _, _ := s.drivers()
		s.tell("a trial applies, and in use is", len(trial.Applied), qualifying)
		s.enter(entry)
		s.at("entered", s.now)
		manual := must.Get(s.Manual(s.t.Context()))(s.t)
		active, ok := manual.Find(entry.Statements[0].BlockID)
		s.tell("active", active.Entry.Actor, ok, len(manual.Active()))
		for _, origin := range []ingest.Origin{{Source: assemble.ManualSource, Revision: "1"}, {Source: "f1db", Revision: "1"}, {Source: assemble.ManualSource, Revision: "2"}, {Source: assemble.ManualSource, Revision: "x"}} {
			e := manual.EntryOf(origin)
			s.tell("the entry of "+origin.Source+" "+origin.Revision, e != nil && e.Reason == entry.Reason)
		}
		s.commit(map[string][]byte{alpsQualifying: qualified()})
		s.next("the source has another order")
		s.enter(released("alps", assemble.Qualifying))
		s.next("released")
		qualifying, _, _ = s.drivers()
		s.tell("in use is", qualifying)

		// A release of facts that the source has too changes nothing but the log.
		s.enter(entered("operator:ben", statement("alps", assemble.Qualifying, ingest.PartialRound{Qualifying: s.round(s.t, "alps").Qualifying})))
		s.next("entered as the source has it")
		s.enter(released("alps", assemble.Qualifying))
		s.next("released again")
		s.next("after that")
		log := must.Get(ingest.LoadFactsLog(s.t.Context(), s.store))(s.t)
		s.tell("the log is done with the manual entry", log.Entries[len(log.Entries)-1].Manual)
	},
	// A start that a person enters moves the round with their reason. The source then cannot move it. An entry is held if
	// the ledger refuses its event.
	"a start by hand": func(s *story) {
		s.poll(s.t, s.now)
		enter := func(what, gp string, start time.Time) {
			st := statement(season.GrandPrixID(gp), assemble.Start, ingest.PartialRound{Date: start.Truncate(24 * time.Hour), Start: start})
			st.Forced = true
			s.enter(entered("operator:anna", st))
			s.tell("events", s.next(what).Events)
		}
		enter("two hours later", "bay", smallStart("bay").Add(2*time.Hour))
		enter("the same again", "bay", smallStart("bay").Add(2*time.Hour))
		enter("in the past", "alps", s.now.Add(-time.Hour))
	},
	// Manual facts are in use on every scheduler, once. Assumed entries yield to a source; a source that has the same
	// order with times adds those.
	"facts by hand on two schedulers": func(s *story) {
		s.raced(nil)
		s.gp = "bay"
		s.poll(s.t, smallStart("bay").Add(-20*time.Hour))
		h := s.herald(false, nil)
		s.next("a second source")
		two := s.restarted()
		both := func(what string) {
			for _, g := range []*ingest.Ingest{two, s.Ingest, two} {
				s.now = s.now.Add(2 * time.Minute)
				outcome := must.Get(g.Poll(s.t.Context(), s.now, true))(s.t)
				s.tell(what, outcome.Changed, outcome)
			}
			_, grid, _ := s.drivers()
			s.tell("the grid", grid)
		}
		slot := func(driver season.DriverID, team season.TeamID, position int) season.GridSlot {
			return season.GridSlot{Driver: driver, Team: team, Position: position}
		}
		official := []season.GridSlot{slot("anna-arno", "rosso", 1), slot("bert-berg", "verde", 2), slot("carl-coda", "verde", 3)}
		byHand := []season.GridSlot{slot("bert-berg", "verde", 1), slot("anna-arno", "rosso", 2), slot("carl-coda", "verde", 3)}
		entries := slices.Clone(s.round(s.t, "alps").Entries)
		assumed := statement("bay", assemble.Entries, ingest.PartialRound{GrandPrix: "bay", Entries: slices.Clone(entries)})
		assumed.Assumed = true
		s.enter(entered("operator:anna", assumed, statement("bay", assemble.Grid, ingest.PartialRound{GrandPrix: "bay", Grid: byHand})))
		both("entered")
		entries[0].Number = 99
		s.says(h, func(r *season.Round) { r.Grid, r.Entries = official, entries })
		both("the source has another grid and another number")
		s.says(h, func(r *season.Round) { r.Grid = byHand })
		both("the source agrees")
		s.enter(released("bay", assemble.Grid))
		s.says(h, func(r *season.Round) { r.Grid = official })
		both("released")
		origin, _ := must.Get(ingest.LoadFactsLog(s.t.Context(), s.store))(s.t).Origin(2030, "bay", assemble.Grid)
		s.tell("the grid comes from", origin.Source, origin.Revision)

		s.enter(entered("operator:anna", statement("bay", assemble.Qualifying, ingest.PartialRound{Qualifying: []season.QualifyingRow{
			{Driver: "anna-arno", Team: "rosso", Position: 1}, {Driver: "bert-berg", Team: "verde", Position: 2}, {Driver: "carl-coda", Team: "verde", Position: 3},
		}})))
		both("qualifying without times")
		s.commit(map[string][]byte{raceFolder("bay") + "qualifying-results.yml": qualified()})
		both("F1DB has times")
		s.tell("the time of the first", s.round(s.t, "bay").Qualifying[0].Segments[0])
	},
	// Without a source, the release of a manual fact restores the fact before. Manual facts pass the same gates, unless
	// they are forced.
	"facts by hand without a source": func(s *story) {
		s.commit(map[string][]byte{alpsQualifying: qualified()})
		s.at("before qualifying", smallStart("alps").AddDate(0, 0, -2))
		early := statement("alps", assemble.Qualifying, ingest.PartialRound{Qualifying: []season.QualifyingRow{{Driver: "anna-arno", Team: "rosso", Position: 1}}})
		for _, early.Forced = range []bool{false, true} {
			s.tell("an early statement, forced", early.Forced, brief(ingest.PollState{Judgement: ingest.Judgement{Held: must.Get(s.Trial(s.t.Context(), s.now, ingest.ManualEntry{Statements: []ingest.Statement{early}}))(s.t).Held}}))
		}
		s.poll(s.t, smallStart("alps").Add(-20*time.Hour))
		s.Sources[0].Upstream = &herald{name: "f1db", down: &source.Fault{Kind: source.Unreachable, Err: errBroken}}
		for _, order := range [][2]season.DriverID{{"bert-berg", "carl-coda"}, {"carl-coda", "bert-berg"}} { // entered twice
			grid := []season.GridSlot{{Driver: order[0], Team: "verde", Position: 1}, {Driver: "anna-arno", Team: "rosso", Position: 2}, {Driver: order[1], Team: "verde", Position: 3}}
			s.enter(entered("operator:anna", statement("alps", assemble.Grid, ingest.PartialRound{Grid: grid})))
			s.next("a grid")
			_, in, _ := s.drivers()
			s.tell("the grid", in)
		}
		s.enter(released("alps", assemble.Grid))
		s.next("released")
		_, in, _ := s.drivers()
		s.tell("the grid", in)
	},
	// A source's name for a driver, a team or a Grand Prix can be merged into ours.
	"aliases": func(s *story) {
		s.raced(nil)
		out := must.Get(s.TrialAlias(s.t.Context(), s.now, "carl-coda", "dora-dorn"))(s.t)
		r, _ := out.Facts.Round(2030, "alps")
		s.tell("a trial of an alias: third is", r.Results[2].Driver)
		h := s.herald(false, func(r *season.Round) {
			r.GrandPrix, r.Results = "alpine", nil
			r.Grid = []season.GridSlot{{Driver: "anna-arno", Team: "scuderia", Position: 1}, {Driver: "bert-berg", Team: "verde", Position: 2}, {Driver: "carl-coda", Team: "verde", Position: 3}}
		})
		h.facts.Teams = maps.Clone(h.facts.Teams)
		h.facts.Teams["scuderia"] = season.Team{ID: "scuderia", Name: "Scuderia"}
		s.next("names that nobody knows")
		for _, alias := range []assemble.Alias{{Kind: assemble.RoundAlias, From: "alpine", To: "alps"}, {Kind: assemble.TeamAlias, From: "scuderia", To: "rosso"}} {
			s.enter(ingest.ManualEntry{Actor: "operator:anna", Named: []assemble.Alias{alias}})
		}
		s.next("merged")
		s.tell("the grid", s.round(s.t, "alps").Grid)
		s.tell("named", must.Get(s.Manual(s.t.Context()))(s.t).Named())
	},
	// Once a result is verified, a source cannot take a driver out of it.
	"a verified result": func(s *story) {
		s.poll(s.t, s.now)
		s.raced(nil)
		s.settle("59 minutes after the result arrived", s.now.Add(59*time.Minute))
		s.settle("an hour after it arrived", s.now.Add(time.Hour))
		s.commit(result("alps", "anna-arno", "bert-berg"))
		s.at("a driver is gone", s.now.Add(2*time.Hour))
	},
	// While the standings of the source contradict its result, automatic verification waits twice as long. They count
	// against their own source alone.
	"standings that contradict the result": func(s *story) {
		standings := func(leader string) map[string][]byte {
			return map[string][]byte{raceFolder("alps") + "driver-standings.yml": []byte("- position: 1\n  driverId: " + leader + "\n  points: 25\n")}
		}
		s.raced(standings("bert-berg"))
		arrived := s.now
		s.settle("119 minutes after the result arrived", arrived.Add(2*time.Hour-time.Minute))
		s.settle("two hours after it arrived", arrived.Add(2*time.Hour))
		s.herald(true, nil)
		s.next("a second source")
		s.tell("the states", s.stateOf("f1db"), "|", s.stateOf("herald"))
		s.tell("doubted", s.Stability(s.inUse(s.t), 2030, "alps").Doubted)
		s.commit(standings("anna-arno"))
		s.next("the standings agree")
		s.tell("the state", s.stateOf("f1db"))
		s.tell("doubted", s.Stability(s.inUse(s.t), 2030, "alps").Doubted)
	},
	// A round that its source has again stays postponed if it would start within an hour, and if the archive in use has
	// no such round.
	"a round that comes back at its start": func(s *story) {
		s.postponed()
		s.now = smallStart("fjord")
		s.next("after its start")
	},
	// At another circuit the hour is unknown, and no event gives the assumed one.
	"elsewhere at an unknown hour": func(s *story) {
		elsewhere := func(gp string, days int) map[string][]byte {
			start := smallStart(gp)
			name := raceFolder(gp) + "race.yml"
			return map[string][]byte{name: []byte(strings.NewReplacer("circuitId: ring", "circuitId: lake", "\ntime: 13:00", "",
				"date: "+start.Format(time.DateOnly), "date: "+start.AddDate(0, 0, days).Format(time.DateOnly)).Replace(string(smallFiles()[name])))}
		}
		s.commit(map[string][]byte{
			"src/data/countries/malta.yml": []byte("id: malta\nname: Malta\nalpha3Code: MLT\n"),
			"src/data/circuits/lake.yml":   []byte("id: lake\nfullName: Lago\nplaceName: Lago\ncountryId: malta\n"),
		})
		s.postponed()
		s.commit(elsewhere("fjord", 21))
		s.commit(elsewhere("dale", 1))
		s.next("on another day")
		for _, key := range []int64{2030004, 2030006} {
			record, _ := s.Ledger.Fold().Record(key)
			r := s.round(s.t, record.GrandPrix)
			s.tell(string(r.GrandPrix), r.Circuit, r.Date.Format(time.DateOnly), "hour unknown", r.Provisional(), record.Override.Status, "start", record.Override.Start)
		}
	},
	"a round that is missing in the archive": func(s *story) {
		s.postponed()
		s.use(s.t, func(f *season.Facts) { f.Seasons[0].Rounds = f.Seasons[0].Rounds[:5] })
		s.commit(removed("fjord"))
		s.next("gone again")
	},
	// The store keeps the last document of a source and the one before it, also when the source goes back to an earlier
	// one. A scheduler without documents in memory still applies the last one.
	"superseded documents": func(s *story) {
		s.poll(s.t, smallStart("alps").Add(4*time.Hour))
		documents := map[string]string{}
		for i, order := range [][]string{{"anna-arno", "bert-berg", "carl-coda"}, {"bert-berg", "anna-arno", "carl-coda"}, {"anna-arno", "bert-berg", "carl-coda"}, {"anna-arno", "carl-coda", "bert-berg"}} {
			s.commit(result("alps", order...))
			s.next(strings.Join(order, ", "))
			documents["sources/f1db/"+s.state(s.t).SHA256+".zst"] = fmt.Sprint("document ", i+1)
			var keys []string
			for info, err := range s.store.List(s.t.Context(), "sources/") {
				must.Do(s.t, err)
				if name, ok := documents[info.Key]; ok {
					keys = append(keys, name)
				} else if strings.HasSuffix(info.Key, ".zst") {
					keys = append(keys, "document 0")
				}
			}
			slices.Sort(keys)
			s.tell("in the store", keys)
		}
		s.tell("another scheduler", must.Get(s.scheduler(s.t, s.store).Apply(s.t.Context(), s.now))(s.t))
	},
}

// postponed drops the last round for a day, so that it is postponed, and commits it again.
func (s *story) postponed() {
	s.commit(removed("fjord"))
	s.small.next(s.t)
	s.commit(edited("cape", "laps: 60", "laps: 61"))
	s.small.next(s.t)
	s.at("a day later", s.now.Add(25*time.Hour))
	s.commit(edited("fjord", "", ""))
}

// TestStories compares what every story tells with testdata/stories.txt.
func TestStories(t *testing.T) {
	told := make(map[string]string)
	for name, run := range stories {
		t.Run(name, func(t *testing.T) {
			s := &story{small: newSmall(t), t: t, gp: "alps"}
			run(s)
			told[name] = strings.TrimSpace(s.text.String())
		})
	}
	golden.Inputs(t, "testdata/stories.txt", told)
}
