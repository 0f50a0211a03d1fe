package ingest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/builder/settings"
	"gridcast/builder/source"
	"gridcast/builder/testseason"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/chain"
	"gridcast/snapshots/blob/faultblob"
)

// edited is a file of the calendar with one text replaced.
func edited(gp, old, with string) map[string][]byte {
	name := raceFolder(gp) + "race.yml"
	return map[string][]byte{name: bytes.Replace(smallFiles()[name], []byte(old), []byte(with), 1)}
}

func removed(rounds ...string) map[string][]byte {
	files := make(map[string][]byte)
	for _, gp := range rounds {
		files[raceFolder(gp)+"race.yml"] = nil
	}
	return files
}

// TestSmallSeason: each commit of the source has one outcome: applied blocks, held blocks, events.
func TestSmallSeason(t *testing.T) {
	s := newSmall(t)
	wantSummary(t, "the calendar is known", s.poll(t, s.now), "")
	requests, sent := s.host.Served()
	assembled := s.Assembled()
	wantSummary(t, "no news", s.next(t), "")
	if now, again := s.host.Served(); now != requests+1 || again != sent || s.Assembled() != assembled {
		t.Errorf("an idle poll: got %d requests, %d archives and %d assemblies, want 1, 0 and 0", now-requests, again-sent, s.Assembled()-assembled)
	}
	if outcome, err := s.Poll(t.Context(), s.now.Add(time.Second), false); err != nil || len(outcome.Polled) != 0 {
		t.Errorf("a second later: got the polls %v, %v, want none", outcome.Polled, err)
	}
	end := smallStart("alps").Add(4 * time.Hour)
	for _, step := range []struct {
		what  string
		files map[string][]byte
		at    time.Time // zero: two minutes later
		want  string
	}{
		{"qualifying before its start", map[string][]byte{raceFolder("alps") + "qualifying-results.yml": qualified()}, time.Time{}, "held alps entries (derived); held alps qualifying (early)"},
		{"no news", nil, time.Time{}, "held alps entries (derived); held alps qualifying (early)"},
		{"no news, after qualifying", nil, smallStart("alps").Add(-20 * time.Hour), "applied alps entries; applied alps qualifying"},
		{"the result", map[string][]byte{raceFolder("alps") + "race-results.yml": raced("bert-berg", "anna-arno", "carl-coda")}, end, "applied alps result"},
		{"a start one hour later", edited("bay", "time: 13:00", "time: 14:00"), time.Time{}, "applied bay start; event round_moved"},
		{"a start three days later", edited("cape", "date: 2030-04-07", "date: 2030-04-10"), time.Time{}, "held cape start (start)"},
		{"the start is corrected", edited("cape", "", ""), time.Time{}, ""},
		{"a round is gone", removed("fjord"), time.Time{}, ""},
		{"another revision without it", map[string][]byte{raceFolder("alps") + "race-results.yml": raced("bert-berg", "carl-coda", "anna-arno")}, time.Time{}, "applied alps result"},
		{"a day later", nil, end.Add(30 * time.Hour), "event round_postponed"},
		{"the round is back", edited("fjord", "", ""), time.Time{}, "event round_reinstated"},
		{"five of six rounds are gone", removed(smallRounds[1:]...), time.Time{}, "held  calendar (shrunken); fault f1db"},
		{"no news", nil, time.Time{}, "held  calendar (shrunken); fault f1db"},
		{"the rounds are back", smallFiles(), time.Time{}, "applied bay start; event round_moved"},
		{"the first result again", map[string][]byte{raceFolder("alps") + "race-results.yml": raced("anna-arno", "bert-berg", "carl-coda")}, time.Time{}, "applied alps result"},
		{"another identifier of a driver", renamed(), time.Time{}, "event driver_renamed"},
	} {
		if step.files != nil {
			s.commit(step.files)
		}
		at := step.at
		if at.IsZero() {
			at = s.now.Add(2 * time.Minute)
		}
		wantSummary(t, step.what, s.poll(t, at), step.want)
		if gate := s.state(t).Gate; (gate == assemble.ShrinkGate) != strings.Contains(step.want, "shrunken") {
			t.Errorf("%s: the state of the source has gate %q", step.what, gate)
		}
	}
	log := must.Get(ingest.LoadFactsLog(t.Context(), s.store))(t)
	if origin, ok := log.Origin(2030, "alps", assemble.Qualifying); !ok || origin.Source != "f1db" || !s.Arrived(2030, "alps").Equal(origin.At) {
		t.Errorf("the qualifying came from %+v and arrived at %s", origin, s.Arrived(2030, "alps"))
	}
	if _, ok := log.Origin(2030, "dale", assemble.Start); ok {
		t.Error("a start of the first archive has an origin")
	}
}

// TestOneBadCell: a value that cannot be read costs its own block. The state names the file and the value, nobody can
// accept it, and the good block of the same revision is applied.
func TestOneBadCell(t *testing.T) {
	result, alps, bay := raceFolder("alps")+"race-results.yml", raceFolder("alps")+"race.yml", raceFolder("bay")+"race.yml"
	anna := "src/data/drivers/anna-arno.yml"
	for _, test := range []struct {
		file, was, is string
		want          string
		says          []string
	}{
		{result, "points: 25", "points: 12,5", "held alps result (unread)", []string{"01-alps/race-results.yml", "12,5"}},
		{result, "points: 25", "points: .inf", "held alps result (unread)", []string{"01-alps/race-results.yml", "row 1", "+Inf"}},
		{result, "points: 25", "points: .nan", "held alps result (unread)", []string{"01-alps/race-results.yml", "NaN"}},
		{result, "position: 3", "position: third", "held alps result (unread)", []string{"01-alps/race-results.yml", "row 3", "third", "DNF"}},
		{result, "driverNumber: 2", "driverNumber: two", "held alps result (unread)", []string{"row 2", "driverNumber", "two"}},
		{result, "driverId: carl-coda", "driverId: nobody", "held alps result (unread)", []string{"row 3", `"nobody"`}},
		{bay, "round: 2", "round: -2", "held bay calendar (unread)", []string{"02-bay/race.yml", "round -2 of bay", "begin with 1"}},
		{bay, "courseLength: 4.5", "courseLength: .nan", "held bay calendar (unread)", []string{"02-bay/race.yml", "NaN"}},
		{bay, "time: 13:00", "time: 900", "held bay start (unread)", []string{"02-bay/race.yml", `"900"`, "15:04"}},
		{bay, "date: 2030", "date: 2030-2", "held bay start (unread)", []string{"02-bay/race.yml", "2006-01-02"}},
		{bay, "id: ", "id: [", "held bay calendar (unread); held bay sessions (unread); held bay start (unread)", []string{"02-bay/race.yml", "line 1"}},
		{alps, "circuitId: ring", "circuitId: nowhere", "held alps calendar (unread)", []string{"01-alps/race.yml", "nowhere"}},
		{anna, "firstName: Anna", "firstName: [Anna]", "held  names (unread)", []string{"drivers/anna-arno.yml"}},
	} {
		t.Run(path.Base(test.file)+" "+test.is, func(t *testing.T) {
			s := newSmall(t)
			s.commit(map[string][]byte{raceFolder("alps") + "qualifying-results.yml": qualified()}) // it names the drivers
			s.poll(t, smallStart("bay").Add(4*time.Hour))
			files := map[string][]byte{
				result: raced("anna-arno", "bert-berg", "carl-coda"), raceFolder("bay") + "race-results.yml": raced("bert-berg", "anna-arno", "carl-coda"),
			}
			content, changed := smallFiles()[test.file], files[test.file]
			if changed != nil {
				content = changed
			}
			if !bytes.Contains(content, []byte(test.was)) {
				t.Fatalf("%s has no %q", test.file, test.was)
			}
			files[test.file] = bytes.Replace(content, []byte(test.was), []byte(test.is), 1)
			s.commit(files)
			got := s.next(t)
			if !strings.Contains(summary(got), test.want) || !strings.Contains(summary(got), "applied bay result") || len(got.Faults) > 0 {
				t.Errorf("got %s, want %s and the result of bay applied", summary(got), test.want)
			}
			state := s.state(t)
			for _, p := range state.Held {
				for _, says := range test.says {
					if !strings.Contains(p.Refused[0].Reason, says) {
						t.Errorf("the state says %q, want %q in it", p.Refused[0].Reason, says)
					}
				}
				must.Fail(t, p.ID+" was accepted", must.Err(s.Accept(t.Context(), s.now, "operator:ada", p.ID, "why not")))
			}
			s.commit(smallFiles())
			s.commit(map[string][]byte{result: raced("anna-arno", "bert-berg", "carl-coda")})
			if s.next(t); len(s.state(t).Held) > 0 {
				t.Errorf("after a good revision there waits %+v", s.state(t).Held)
			}
		})
	}
}

// TestSmallFaults: while the source is down or unreadable, the archive stays, the state names the fault,
// and the waits grow to half an hour.
func TestSmallFaults(t *testing.T) {
	t.Parallel() // the client waits before it asks again
	page := func(status int, kind, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
			return true
		}
	}
	for _, test := range []struct {
		what  string
		fault func(http.ResponseWriter, *http.Request) bool
		files map[string][]byte
		want  source.FaultKind
		waits []time.Duration
	}{
		{"503", page(503, "text/plain", "down"), nil, source.Unreachable, []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 30 * time.Minute, 30 * time.Minute}},
		{"403", page(403, "text/html", "no"), nil, source.Refused, []time.Duration{30 * time.Minute, 30 * time.Minute}},
		{"no archive", page(200, "application/x-gzip", "no"), nil, source.Malformed, []time.Duration{30 * time.Second}},
		{"no race at all", nil, removed(smallRounds...), source.Malformed, []time.Duration{30 * time.Second, time.Minute}},
	} {
		t.Run(test.what, func(t *testing.T) {
			s := newSmall(t)
			s.poll(t, s.now)
			before := s.state(t)
			s.host.Misbehave(test.fault)
			if test.files != nil {
				s.commit(test.files)
			}
			at := s.now.Add(2 * time.Minute)
			for i, wait := range test.waits {
				wantSummary(t, test.what, s.poll(t, at), "fault f1db")
				state := s.state(t)
				if state.Fault != test.want || state.Failures != i+1 || state.Reason == "" || state.SHA256 != before.SHA256 {
					t.Errorf("after %d polls the state is %+v, want the fault %s and the document as before", i+1, state, test.want)
				}
				if got := state.Next.Sub(at); got != wait {
					t.Errorf("after %d polls the next is in %s, want %s", i+1, got, wait)
				}
				at = state.Next
			}
			silent := s.Provenance(s.now.Add(time.Hour)).Sources[0]
			if !silent.Silent || !silent.Answered.Equal(before.Answered) {
				t.Errorf("an hour later the public state is %+v, want it silent since %s", silent, before.Answered)
			}
			s.host.Misbehave(nil)
			good := smallFiles()
			for name := range test.files {
				if _, kept := good[name]; !kept {
					good[name] = nil
				}
			}
			s.commit(good)
			wantSummary(t, "it answers again", s.poll(t, at.Add(2*time.Minute)), "")
			if state := s.state(t); state.Fault != "" || state.Failures != 0 || state.Reason != "" {
				t.Errorf("it answers again, and the state is %+v", state)
			}
		})
	}
}

// TestSmallAccept: a held change waits for a person. A trial shows its outcome before the person accepts it.
func TestSmallAccept(t *testing.T) {
	s := newSmall(t)
	s.poll(t, s.now)
	s.commit(edited("cape", "date: 2030-04-07", "date: 2030-04-10"))
	held := s.next(t).Held
	if len(held) != 1 {
		t.Fatalf("held are %+v, want the start", held)
	}
	if _, err := s.Accept(t.Context(), s.now, "operator:anna", "nothing", ""); err == nil || err.Error() != fmt.Sprintf("accept nothing: no change of that ID waits; there wait [%s]", held[0].ID) {
		t.Errorf("an unknown ID: got %v", err)
	}
	trial, err := s.TrialAccept(t.Context(), s.now, held[0].ID)
	if err != nil || len(trial.Applied) != 1 || len(trial.Held) != 0 {
		t.Errorf("a trial: got %+v, %v, want the start applied", trial.Applied, err)
	}
	if at := s.round(t, "cape").StartsAt(); !at.Equal(smallStart("cape")) {
		t.Errorf("after the trial the start is %s, want it unchanged", at)
	}
	if accepted, err := s.Accept(t.Context(), s.now, "operator:anna", held[0].ID, "announced"); err != nil || accepted.ID != held[0].ID {
		t.Fatalf("accept: got %+v, %v", accepted, err)
	}
	outcome := must.Get(s.Apply(t.Context(), s.now))(t)
	wantSummary(t, "accepted", outcome, "applied cape start; event round_moved")
	if at := s.round(t, "cape").StartsAt(); !at.Equal(smallStart("cape").AddDate(0, 0, 3)) {
		t.Errorf("the start is %s, want it three days later", at)
	}
}

// TestSmallPortraits: portraits follow the settings of the store. Settings that cannot be read change
// nothing.
func TestSmallPortraits(t *testing.T) {
	s := newSmall(t)
	s.commit(map[string][]byte{raceFolder("alps") + "race-results.yml": raced("anna-arno", "bert-berg", "carl-coda")})
	s.poll(t, smallStart("alps").Add(4*time.Hour))
	url := func() string {
		t.Helper()
		stored := must.Get(archive.NewStore(s.store).Load(t.Context()))(t)
		return stored.Archive.Facts().Headshots.Template
	}
	const template = "https://images.example/{driver}.png"
	must.Get(settings.Update(t.Context(), s.store, false, func(s *settings.Settings) {
		s.Headshots = &season.Headshots{Template: template, Drivers: []season.DriverID{"anna-arno"}}
	}))(t)
	alone := s.scheduler(t, s.store)
	alone.Sources = nil
	if outcome, err := alone.Apply(t.Context(), s.now); err != nil || !outcome.Changed || url() != template {
		t.Errorf("the archive changed: %t, %v, its template is %q; want %q", outcome.Changed, err, url(), template)
	}
	log := must.Get(ingest.LoadFactsLog(t.Context(), s.store))(t)
	if actor := log.Entries[len(log.Entries)-1].Actor; actor != "ingest" {
		t.Errorf("without a source the portraits changed by %s, want ingest", actor)
	}
	object := must.Get(s.store.Get(t.Context(), "settings.json", 1<<10))(t)
	must.Get(s.store.Swap(t.Context(), "settings.json", object.Tag, []byte("{")))(t)
	if outcome := s.next(t); outcome.Changed || url() != template {
		t.Errorf("damaged settings: the archive changed: %t, its template is %q", outcome.Changed, url())
	}
}

// second adds a source beside F1DB.
func (s *small) second(t *testing.T, h *herald, checkOnly bool) {
	t.Helper()
	s.Sources = append(s.Sources, ingest.Source{Upstream: h, CheckOnly: checkOnly, Every: time.Minute})
}

// TestSmallSources: a second source fills gaps if its terms are accepted, disputes other results, and
// its facts are named as non-commercial.
func TestSmallSources(t *testing.T) {
	s := newSmall(t)
	s.commit(map[string][]byte{raceFolder("alps") + "race-results.yml": raced("anna-arno", "bert-berg", "carl-coda")})
	s.poll(t, smallStart("alps").Add(4*time.Hour))
	stored, err := archive.NewStore(s.store).Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := &herald{revision: "one", noncommercial: true, sparse: true, facts: stored.Archive.Facts()}
	h.facts.Seasons = []season.Season{{Year: 2030, Rounds: []season.Round{*s.round(t, "alps")}}}
	alps := &h.facts.Seasons[0].Rounds[0]
	alps.Results = append([]season.Result(nil), alps.Results...)
	alps.Results[0].Driver, alps.Results[1].Driver = alps.Results[1].Driver, alps.Results[0].Driver
	alps.Qualifying = []season.QualifyingRow{{Driver: "anna-arno", Team: "rosso", Position: 1}}
	s.second(t, h, true)
	wantSummary(t, "a check-only source", s.next(t), "disputed alps result")
	state, err := ingest.LoadPollState(t.Context(), s.store, "herald")
	if err != nil || len(state.Unlicensed) != 1 || state.Unlicensed[0].Block != assemble.Qualifying || len(state.Disputed) != 1 || !state.CheckOnly {
		t.Errorf("its state is %+v, %v; want qualifying without a licence and the result disputed", state, err)
	}
	if stable := s.Stability(s.inUse(t), 2030, "alps"); !stable.Contested || stable.From == "" {
		t.Errorf("the disputed result is %+v, want it contested", stable)
	}

	s.Sources[1].CheckOnly = false
	h.revision = "two"
	wantSummary(t, "its terms are accepted", s.next(t), "applied alps qualifying; disputed alps result (disputed)")
	public := s.Provenance(s.now)
	var borrowed []string
	for _, part := range public.Borrowed {
		borrowed = append(borrowed, fmt.Sprintf("%s %s of %s under %s", part.GrandPrix, part.Block, part.Source, part.Licence))
	}
	must.Equal(t, "borrowed", []string{"alps qualifying of herald under CC0"}, borrowed)
	if len(public.Sources) != 2 || public.Sources[1].Disagreements != 1 || len(public.Disputed) != 1 {
		t.Errorf("the public state is %+v", public)
	}

	h.revision, alps.Results = "three", s.round(t, "alps").Results
	wantSummary(t, "the sources agree", s.next(t), "")
	s.commit(removed("fjord"))
	s.next(t)
	if state, err := ingest.LoadPollState(t.Context(), s.store, "herald"); err != nil || len(state.Missing) != 0 || len(s.state(t).Missing) != 1 {
		t.Errorf("F1DB dropped a round, and the states are %+v and %+v, %v; want it missing at F1DB alone", s.state(t).Missing, state.Missing, err)
	}
	h.down = errBroken
	wantSummary(t, "an error of another type", s.next(t), "fault herald")
	if stable := s.Stability(s.inUse(t), 2030, "alps"); stable.Contested || stable.Since.IsZero() || !strings.HasPrefix(stable.From, "of f1db ") {
		t.Errorf("the undisputed result is %+v, want it of f1db and uncontested", stable)
	}
	if stable := s.Stability("another archive", 2030, "alps"); !stable.Contested {
		t.Errorf("a result of another archive is %+v, want it contested", stable)
	}

	reader := s.scheduler(t, s.store) // a process that never polls
	if stable := reader.Stability(s.inUse(t), 2030, "alps"); !stable.Contested || len(reader.PollStates()) != 0 || len(reader.Provenance(s.now).Sources) != 0 {
		t.Errorf("before Load: got %+v, want everything contested and no states", stable)
	}
	must.Do(t, reader.Load(t.Context()))
	if got, want := reader.Stability(s.inUse(t), 2030, "alps"), s.Stability(s.inUse(t), 2030, "alps"); got != want || len(reader.PollStates()) != 2 {
		t.Errorf("after Load: got %+v and %d states, want %+v and 2", got, len(reader.PollStates()), want)
	}
	if d, ok, err := reader.LastDocument(t.Context(), reader.Sources[0]); err != nil || !ok || d.Source != "f1db" {
		t.Errorf("the last document: got %+v, %t, %v", d.Source, ok, err)
	}
	reader.Sources[0].Upstream = &herald{name: "stranger"}
	if _, ok, err := reader.LastDocument(t.Context(), reader.Sources[0]); err != nil || ok {
		t.Errorf("the last document of a source that was never polled: got %t, %v", ok, err)
	}
}

func (s *small) inUse(t *testing.T) string {
	t.Helper()
	stored := must.Get(archive.NewStore(s.store).Load(t.Context()))(t)
	return stored.SHA256
}

func statement(gp season.GrandPrixID, block assemble.Block, r ingest.PartialRound) ingest.Statement {
	return ingest.Statement{BlockID: assemble.BlockID{Year: 2030, GrandPrix: gp, Block: block}, Entered: r}
}

// TestSmallManual: manual facts win over the source until they are released, and a source confirms
// or disputes them.
func TestSmallManual(t *testing.T) {
	s := newSmall(t)
	s.poll(t, s.now)
	at := smallStart("alps").Add(-20 * time.Hour)
	rows := []season.QualifyingRow{
		{Driver: "bert-berg", Team: "verde", Position: 1}, {Driver: "anna-arno", Team: "rosso", Position: 2}, {Driver: "dora-dorn", Team: "bianco", Position: 3},
	}
	entry := ingest.ManualEntry{
		Actor: "operator:anna", Reason: "the source is late",
		Statements: []ingest.Statement{statement("alps", assemble.Qualifying, ingest.PartialRound{Qualifying: rows})},
		Drivers: map[season.DriverID]season.Driver{
			"anna-arno": {ID: "anna-arno", Name: "Anna Arno", FirstName: "Anna", LastName: "Arno", Abbreviation: "ARN", Country: "ITA"},
			"bert-berg": {ID: "bert-berg", Name: "Bert Berg", FirstName: "Bert", LastName: "Berg", Abbreviation: "BER", Country: "ITA"},
			"dora-dorn": {ID: "dora-dorn", Name: "Dora Dorn", FirstName: "Dora", LastName: "Dorn", Abbreviation: "DOR", Country: "ITA"},
		},
		Teams: map[season.TeamID]season.Team{"rosso": {ID: "rosso", Name: "Rosso"}, "verde": {ID: "verde", Name: "Verde"}, "bianco": {ID: "bianco", Name: "Bianco"}},
	}
	trial, err := s.Trial(t.Context(), at, entry)
	if err != nil || len(trial.Applied) != 1 {
		t.Fatalf("a trial: got %+v, %v, want qualifying applied", trial.Applied, err)
	}
	if len(s.round(t, "alps").Qualifying) != 0 {
		t.Error("the trial changed the archive")
	}
	must.Do(t, s.Enter(t.Context(), at, entry))
	wantSummary(t, "entered", s.poll(t, at), "applied alps qualifying")
	manual := must.Get(s.Manual(t.Context()))(t)
	id := entry.Statements[0].BlockID
	if active, ok := manual.Find(id); !ok || active.Entry.Actor != "operator:anna" || len(manual.Active()) != 1 {
		t.Errorf("active: got %+v, %t", active, ok)
	}
	if e := manual.EntryOf(ingest.Origin{Source: assemble.ManualSource, Revision: "1"}); e == nil || e.Reason != entry.Reason {
		t.Errorf("the entry of revision 1: got %+v", e)
	}
	for _, origin := range []ingest.Origin{{Source: "f1db", Revision: "1"}, {Source: assemble.ManualSource, Revision: "2"}, {Source: assemble.ManualSource, Revision: "x"}} {
		if e := manual.EntryOf(origin); e != nil {
			t.Errorf("the entry of %+v: got %+v, want none", origin, e)
		}
	}
	s.commit(map[string][]byte{raceFolder("alps") + "qualifying-results.yml": qualified()})
	wantSummary(t, "the source has another order", s.next(t), "applied alps entries; disputed alps qualifying (disputed)")
	must.Do(t, s.Enter(t.Context(), s.now, ingest.ManualEntry{Actor: "operator:ben", Released: []assemble.BlockID{id}}))
	wantSummary(t, "released", s.next(t), "applied alps qualifying; applied alps qualifying")
	if got := s.round(t, "alps").Qualifying[0].Driver; got != "anna-arno" {
		t.Errorf("after the release %s is first, want the order of the source", got)
	}

	// A release of facts that the source has too changes nothing but the log.
	same := ingest.PartialRound{Qualifying: s.round(t, "alps").Qualifying}
	must.Do(t, s.Enter(t.Context(), s.now, ingest.ManualEntry{Actor: "operator:ben", Statements: []ingest.Statement{statement("alps", assemble.Qualifying, same)}}))
	wantSummary(t, "entered as the source has it", s.next(t), "confirmed alps qualifying")
	must.Do(t, s.Enter(t.Context(), s.now, ingest.ManualEntry{Actor: "operator:ben", Released: []assemble.BlockID{id}}))
	for range 2 {
		s.next(t)
	}
	log := must.Get(ingest.LoadFactsLog(t.Context(), s.store))(t)
	if last := log.Entries[len(log.Entries)-1]; last.Manual != 4 {
		t.Errorf("the last entry of the log is %+v, want the fourth manual entry done with", last)
	}
}

// TestSmallManualStart: a start that a person enters moves the round with their reason. The source then
// cannot move it, and an entry that the ledger refuses stays without an event.
func TestSmallManualStart(t *testing.T) {
	s := newSmall(t)
	s.poll(t, s.now)
	enter := func(gp season.GrandPrixID, start time.Time) {
		t.Helper()
		st := statement(gp, assemble.Start, ingest.PartialRound{Date: start.Truncate(24 * time.Hour), Start: start})
		st.Forced = true
		must.Do(t, s.Enter(t.Context(), s.now, ingest.ManualEntry{Actor: "operator:anna", Reason: "announced", Statements: []ingest.Statement{st}}))
	}
	enter("bay", smallStart("bay").Add(2*time.Hour))
	outcome := s.next(t)
	enter("bay", smallStart("bay").Add(2*time.Hour))
	wantSummary(t, "the same again", s.next(t), "disputed bay start (disputed)")
	wantSummary(t, "a later start", outcome, "applied bay start; disputed bay start (disputed); event round_moved")
	if e := outcome.Events[0]; e.Actor != "operator:anna" || e.Reason != "announced" {
		t.Errorf("the event is %+v, want the person and their reason", e)
	}
	enter("alps", s.now.Add(-time.Hour))
	wantSummary(t, "a start in the past", s.next(t), "applied alps start; disputed alps start (disputed); disputed bay start (disputed)")
}

// TestSmallAliases: a source's name for a driver or a Grand Prix can be merged into ours.
func TestSmallAliases(t *testing.T) {
	s := newSmall(t)
	s.commit(map[string][]byte{raceFolder("alps") + "race-results.yml": raced("anna-arno", "bert-berg", "carl-coda")})
	s.poll(t, smallStart("alps").Add(4*time.Hour))
	out := must.Get(s.TrialAlias(t.Context(), s.now, "carl-coda", "dora-dorn"))(t)
	if r, _ := out.Facts.Round(2030, "alps"); r.Results[2].Driver != "dora-dorn" {
		t.Errorf("a trial of an alias: third is %s", r.Results[2].Driver)
	}
	named := ingest.ManualEntry{Actor: "operator:anna", Named: []assemble.Alias{{Kind: assemble.TeamAlias, From: "verde", To: "rosso"}}}
	must.Do(t, s.Enter(t.Context(), s.now, named))
	s.next(t)
	manual := must.Get(s.Manual(t.Context()))(t)
	must.Equal(t, "named", named.Named, manual.Named())
}

// TestSmallSchedulers: of two schedulers one polls, and both end with the same archive.
func TestSmallSchedulers(t *testing.T) {
	s := newSmall(t)
	other := s.scheduler(t, s.store)
	s.poll(t, s.now)
	s.commit(map[string][]byte{raceFolder("alps") + "race-results.yml": raced("anna-arno", "bert-berg", "carl-coda")})
	s.now = smallStart("alps").Add(4 * time.Hour)
	first, err := other.Poll(t.Context(), s.now, false)
	if err != nil || !first.Changed || len(first.Polled) != 1 {
		t.Fatalf("the first scheduler: got %+v, %v, want it to poll and change the archive", first, err)
	}
	second := s.poll(t, s.now)
	if len(second.Polled) != 0 || second.Changed || second.Archive != first.Archive {
		t.Errorf("the second scheduler: got %+v, want no poll and the same archive", second)
	}
}

// TestSmallRaces: a scheduler that loses a race starts over with the state of the winner: for the claim
// of a source, for the facts log, for the archive, and for the ledger.
func TestSmallRaces(t *testing.T) {
	result := func(s *small) {
		s.commit(map[string][]byte{raceFolder("alps") + "race-results.yml": raced("anna-arno", "bert-berg", "carl-coda")})
		s.now = smallStart("alps").Add(4 * time.Hour)
	}
	creates := func(prefix string) func(faultblob.Call) bool {
		return func(c faultblob.Call) bool {
			return c.Op == faultblob.Create && strings.HasPrefix(c.Key, prefix)
		}
	}
	swaps := func(suffix string) func(faultblob.Call) bool {
		return func(c faultblob.Call) bool {
			return c.Op == faultblob.Swap && strings.HasSuffix(c.Key, suffix)
		}
	}
	poll := func(s *small) { // the other scheduler is faster
		must.Succeed(t, "Poll", must.Err(s.Poll(t.Context(), s.now, true)))
	}
	for what, race := range map[string]struct {
		news   func(s *small)
		loses  func(faultblob.Call) bool
		winner func(s *small)
		polls  int // of the loser
		events int // in the ledger
	}{
		"the state of the source": {result, swaps("/state.json"), poll, 0, 0},
		"the facts log":           {result, creates(ingest.LogPrefix), poll, 1, 0},
		"the archive":             {result, swaps("archive.json"), poll, 1, 0},
		"another archive": {result, swaps("archive.json"), func(s *small) {
			s.use(t, func(f *season.Facts) {
				ring := f.Circuits["ring"]
				ring.Name = "Neuer Alpenring"
				f.Circuits["ring"] = ring
			})
		}, 1, 0},
		"the release of a block": {func(s *small) {
			result(s)
			poll(s)
			same := statement("alps", assemble.Result, ingest.PartialRound{Results: s.round(t, "alps").Results})
			for _, entry := range []ingest.ManualEntry{{Statements: []ingest.Statement{same}}, {Released: []assemble.BlockID{same.BlockID}}} {
				poll(s)
				must.Do(t, s.Enter(t.Context(), s.now, entry))
			}
		}, creates(ingest.LogPrefix), poll, 1, 0},
		"the rename of a driver": {func(s *small) {
			s.commit(map[string][]byte{raceFolder("alps") + "qualifying-results.yml": qualified()})
			result(s)
			poll(s)
			s.commit(renamed())
			s.now = s.now.Add(2 * time.Minute)
		}, creates(ledger.Prefix), poll, 1, 1},
		"the round that is back": {func(s *small) {
			s.commit(removed("fjord"))
			s.next(t)
			result(s)
			s.next(t)
			s.poll(t, s.now.Add(25*time.Hour))
			s.commit(edited("fjord", "", ""))
			s.now = s.now.Add(2 * time.Minute)
		}, creates(ledger.Prefix), poll, 1, 2},
	} {
		t.Run(what, func(t *testing.T) {
			s := newSmall(t)
			s.poll(t, s.now)
			race.news(s)
			done := false
			store := faultblob.Wrap(s.store, inTurn(func(_ context.Context, call faultblob.Call) faultblob.Fate {
				if !done && race.loses(call) {
					done = true
					race.winner(s)
				}
				return faultblob.Fate{}
			}))
			slow := s.scheduler(t, store)
			outcome, err := slow.Poll(t.Context(), s.now, true)
			if err != nil || !done {
				t.Fatalf("got %v, and the race happened: %t", err, done)
			}
			if len(outcome.Polled) != race.polls || s.decided(t) != race.events {
				t.Errorf("it polled %v, and the ledger has %d decisions; want %d polls and %d decisions", outcome.Polled, s.decided(t), race.polls, race.events)
			}
			again, err := slow.Poll(t.Context(), s.now.Add(time.Hour), false)
			if err != nil || again.Changed || len(s.round(t, "alps").Results) != 3 || again.Archive != s.inUse(t) {
				t.Errorf("the next poll: got %+v, %v, want the result in use and no change", again, err)
			}
		})
	}
	t.Run("without end", func(t *testing.T) {
		s := newSmall(t)
		s.poll(t, s.now)
		s.commit(map[string][]byte{raceFolder("alps") + "race-results.yml": raced("anna-arno", "bert-berg", "carl-coda")})
		s.now = smallStart("alps").Add(4 * time.Hour)
		n := 0
		store := faultblob.Wrap(s.store, inTurn(func(_ context.Context, call faultblob.Call) faultblob.Fate {
			if call.Op == faultblob.Create && strings.HasPrefix(call.Key, ingest.LogPrefix) {
				n++
				log, err := ingest.LoadFactsLog(t.Context(), s.store)
				if err != nil {
					t.Error(err)
				}
				must.Succeed(t, "Create", must.Err(s.store.Create(t.Context(), call.Key, fmt.Appendf(nil, `{"seq":%d,"previous":%q,"id":"%d","at":"2030-03-10T17:00:00Z","actor":"other"}`, log.Head.Seq+1, log.Head.Hash, n))))
			}
			return faultblob.Fate{}
		}))
		_, err := s.scheduler(t, store).Poll(t.Context(), s.now, true)
		if err == nil || err.Error() != "ingest: other schedulers changed the archive 8 times meanwhile" {
			t.Errorf("got %v, want it to give up", err)
		}
	})
}

// TestSmallCrashes: if any call to the store fails, once or with its answer lost, the next poll ends with
// the archive and the ledger of a run without a fault.
func TestSmallCrashes(t *testing.T) {
	for name, scenario := range map[string]struct {
		begin, news func(s *small)
		events      int
	}{
		"a result, and a start moves": {func(*small) {}, func(s *small) {
			s.commit(edited("bay", "time: 13:00", "time: 14:00"))
			s.commit(map[string][]byte{raceFolder("alps") + "race-results.yml": raced("anna-arno", "bert-berg", "carl-coda")})
			s.now = smallStart("alps").Add(4 * time.Hour)
		}, 1},
		"a round is gone": {func(s *small) {
			s.commit(removed("fjord"))
			s.next(t)
			s.commit(edited("cape", "laps: 60", "laps: 61"))
			s.next(t)
		}, func(s *small) { s.now = s.now.Add(25 * time.Hour) }, 1},
		"a round is back": {func(s *small) {
			s.commit(removed("fjord"))
			s.next(t)
			s.commit(edited("cape", "laps: 60", "laps: 61"))
			s.next(t)
			s.poll(t, s.now.Add(25*time.Hour))
		}, func(s *small) {
			s.commit(edited("fjord", "", ""))
			s.now = s.now.Add(2 * time.Minute)
		}, 2},
		"another identifier of a driver": {func(s *small) {
			s.commit(map[string][]byte{
				raceFolder("alps") + "race-results.yml": raced("anna-arno", "bert-berg", "carl-coda"), raceFolder("alps") + "qualifying-results.yml": qualified(),
			})
			s.poll(t, smallStart("alps").Add(4*time.Hour))
		}, func(s *small) {
			s.commit(renamed())
			s.now = s.now.Add(2 * time.Minute)
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSmall(t)
			s.poll(t, s.now)
			scenario.begin(s)
			scenario.news(s)
			begun := s.store
			s.restart(t, begun)
			want := s.poll(t, s.now)
			for _, lost := range []bool{false, true} {
				for n := 1; ; n++ {
					s.restart(t, begun)
					calls := -1
					fault := map[bool]error{false: errBroken, true: blob.ErrUnknown}[lost]
					store := faultblob.Wrap(s.store, inTurn(func(_ context.Context, call faultblob.Call) faultblob.Fate {
						if calls >= 0 && (!lost || call.Op.Writes()) {
							if calls++; calls == n {
								return faultblob.Fate{Err: fault, Applied: lost}
							}
						}
						return faultblob.Fate{}
					}))
					faulty := s.scheduler(t, store)
					calls = 0
					if _, err := faulty.Poll(t.Context(), s.now, true); err != nil && !errors.Is(err, fault) {
						t.Errorf("call %d fails, lost %t: got %v, want the error of the store", n, lost, err)
					}
					if calls < n {
						break
					}
					after, err := faulty.Poll(t.Context(), s.now.Add(time.Hour), true)
					if err != nil || after.Archive != want.Archive {
						t.Errorf("call %d failed, lost %t: the next poll ends with %.12s, %v, want %.12s", n, lost, after.Archive, err, want.Archive)
					}
					if got := s.decided(t); got != scenario.events {
						t.Errorf("call %d failed, lost %t: the ledger has %d decisions, want %d", n, lost, got, scenario.events)
					}
				}
			}
		})
	}
}

// decided counts the decisions about rounds and drivers in the ledger.
func (s *small) decided(t *testing.T) int {
	t.Helper()
	l := must.Get(ledger.Load(t.Context(), s.store, ledger.AnyKind))(t)
	n := len(l.Fold().Aliases())
	for record := range l.Fold().Records() {
		n += len(record.Override.Changes)
	}
	return n
}

// renamed is the small world with another identifier of a driver.
func renamed() map[string][]byte {
	return map[string][]byte{
		"src/data/drivers/carl-coda.yml": nil, "src/data/drivers/carlo-coda.yml": driverFile("carlo-coda", "Carl", "Coda"),
		raceFolder("alps") + "qualifying-results.yml": bytes.ReplaceAll(qualified(), []byte("carl-coda"), []byte("carlo-coda")),
		raceFolder("alps") + "race-results.yml":       raced("anna-arno", "bert-berg", "carlo-coda"),
	}
}

// TestSmallVerified: once a result is verified, a source cannot take a driver out of it.
func TestSmallVerified(t *testing.T) {
	s := newSmall(t)
	s.poll(t, s.now)
	s.commit(map[string][]byte{raceFolder("alps") + "race-results.yml": raced("anna-arno", "bert-berg", "carl-coda")})
	s.poll(t, smallStart("alps").Add(4*time.Hour))
	stored, err := s.Facts.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	policy := builder.Policy{AutoVerifyAfter: time.Hour, Stability: s.Stability}
	events, err := policy.Settle(t.Context(), testseason.Fresh(t, s.Ledger), stored, s.now.Add(59*time.Minute))
	if err != nil || len(events) != 0 {
		t.Errorf("59 minutes after the result arrived: got %+v, %v, want no event", events, err)
	}
	events, err = policy.Settle(t.Context(), testseason.Fresh(t, s.Ledger), stored, s.now.Add(time.Hour))
	if err != nil || len(events) != 1 || events[0].Type != ledger.ResultVerified {
		t.Fatalf("an hour after the result arrived: got %+v, %v, want it verified", events, err)
	}
	s.commit(map[string][]byte{raceFolder("alps") + "race-results.yml": raced("anna-arno", "bert-berg")})
	wantSummary(t, "a driver is gone", s.poll(t, s.now.Add(2*time.Hour)), "held alps entries (derived); held alps result (verified)")
}

// TestSmallDoubted: while the standings of the source contradict its result, automatic verification waits twice as
// long. It waits once as long again when they agree.
func TestSmallDoubted(t *testing.T) {
	standings := func(leader string) map[string][]byte {
		return map[string][]byte{
			raceFolder("alps") + "race-results.yml":     raced("anna-arno", "bert-berg", "carl-coda"),
			raceFolder("alps") + "driver-standings.yml": []byte("- position: 1\n  driverId: " + leader + "\n  points: 25\n"),
		}
	}
	for _, tt := range []struct {
		leader string
		wait   time.Duration
	}{{"anna-arno", time.Hour}, {"bert-berg", 2 * time.Hour}} {
		t.Run(tt.leader, func(t *testing.T) {
			s := newSmall(t)
			s.poll(t, s.now)
			s.commit(standings(tt.leader))
			arrived := smallStart("alps").Add(4 * time.Hour)
			s.poll(t, arrived)
			if lines := s.state(t).Standings; (len(lines) > 0) != (tt.wait > time.Hour) {
				t.Errorf("the notices are %q", lines)
			}
			stored := must.Get(s.Facts.Load(t.Context()))(t)
			policy := builder.Policy{AutoVerifyAfter: time.Hour, Stability: s.Stability}
			for want, wait := range []time.Duration{tt.wait - time.Minute, tt.wait} {
				events, err := policy.Settle(t.Context(), testseason.Fresh(t, s.Ledger), stored, arrived.Add(wait))
				if err != nil || len(events) != want {
					t.Errorf("%s after the result arrived: got %+v, %v, want %d events", wait, events, err, want)
				}
			}
		})
	}
	s := newSmall(t)
	s.poll(t, s.now)
	s.commit(standings("bert-berg"))
	s.poll(t, smallStart("alps").Add(4*time.Hour))
	s.commit(standings("anna-arno"))
	s.next(t)
	if stable := s.Stability(s.inUse(t), 2030, "alps"); stable.Doubted || len(s.state(t).Standings) != 0 {
		t.Errorf("when the standings agree: got %+v and %q", stable, s.state(t).Standings)
	}
}

// TestSmallDoubtsOfOneSource: standings that contradict a result count against their own source alone.
func TestSmallDoubtsOfOneSource(t *testing.T) {
	s := newSmall(t)
	s.commit(map[string][]byte{
		raceFolder("alps") + "race-results.yml":     raced("anna-arno", "bert-berg", "carl-coda"),
		raceFolder("alps") + "driver-standings.yml": []byte("- position: 1\n  driverId: bert-berg\n  points: 25\n"),
	})
	s.poll(t, smallStart("alps").Add(4*time.Hour))
	stored, err := archive.NewStore(s.store).Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.second(t, &herald{revision: "one", noncommercial: true, sparse: true, facts: stored.Archive.Facts()}, true)
	s.next(t)
	if state := s.state(t); len(state.Standings) == 0 || len(state.Doubted) != 1 {
		t.Errorf("f1db has the notices %q about %v, want some about one result", state.Standings, state.Doubted)
	}
	state, err := ingest.LoadPollState(t.Context(), s.store, "herald")
	if err != nil || len(state.Standings)+len(state.Doubted) != 0 {
		t.Errorf("the other source has the notices %q about %v, %v, want none", state.Standings, state.Doubted, err)
	}
}

// TestSmallCode: a published code changes when a person accepts it, and the ledger names that person.
func TestSmallCode(t *testing.T) {
	s := newSmall(t)
	s.poll(t, s.now)
	s.commit(map[string][]byte{raceFolder("alps") + "race-results.yml": raced("anna-arno", "bert-berg", "carl-coda")})
	s.poll(t, smallStart("alps").Add(4*time.Hour))
	s.commit(map[string][]byte{anna: bytes.Replace(driverFile("anna-arno", "Anna", "Arno"), []byte("ARN"), []byte("XYZ"), 1)})
	held := s.next(t).Held
	code := func() string {
		stored := must.Get(s.Facts.Load(t.Context()))(t)
		return stored.Archive.AsOf(s.now).Codes(2030)["anna-arno"]
	}
	if len(held) != 1 || code() != "ARN" {
		t.Fatalf("held is %+v, and the code %s", held, code())
	}
	must.Get(s.Accept(t.Context(), s.now, "operator:anna", held[0].ID, "she married"))(t)
	outcome := must.Get(s.Apply(t.Context(), s.now))(t)
	want := ledger.Event{Type: ledger.CodeChanged, Actor: "operator:anna", Year: 2030, Driver: "anna-arno", From: "ARN", To: "XYZ", Reason: "she married"}
	if len(outcome.Events) != 1 {
		t.Fatalf("got the events %+v, want one", outcome.Events)
	}
	got := outcome.Events[0]
	if got.Type != want.Type || got.Actor != want.Actor || got.Year != want.Year || got.Driver != want.Driver || got.From != want.From || got.To != want.To || got.Reason != want.Reason {
		t.Errorf("got the event %+v, want %+v", got, want)
	}
	if got := code(); got != "XYZ" {
		t.Errorf("the code is %s, want XYZ", got)
	}
	wantSummary(t, "the next poll", s.next(t), "")
}

// TestSmallPastRound: a round in the past that a person accepted goes again when the source drops it and nobody
// verified its result.
func TestSmallPastRound(t *testing.T) {
	s := newSmall(t)
	s.poll(t, s.now)
	files := make(map[string][]byte)
	another("gulf", "2030-04-01")(files)
	s.now = smallStart("cape").Add(4 * time.Hour)
	s.commit(files)
	held := s.next(t).Held
	if len(held) == 0 || held[0].GrandPrix != "gulf" || held[0].Block != assemble.Calendar {
		t.Fatalf("held is %+v, want the round", held)
	}
	must.Get(s.Accept(t.Context(), s.now, "operator:anna", held[0].ID, "it was run"))(t)
	must.Get(s.Apply(t.Context(), s.now))(t)
	stored := must.Get(s.Facts.Load(t.Context()))(t)
	must.Get((builder.Policy{}).Settle(t.Context(), testseason.Fresh(t, s.Ledger), stored, s.now))(t)
	for name := range files {
		files[name] = nil
	}
	s.commit(files)
	wantSummary(t, "the round is gone", s.next(t), "")
	s.commit(map[string][]byte{raceFolder("alps") + "race-results.yml": raced("anna-arno", "bert-berg", "carl-coda")})
	s.next(t)
	wantSummary(t, "a day later", s.poll(t, s.now.Add(25*time.Hour)), "event round_postponed")
	wantSummary(t, "after that", s.next(t), "")
}

// TestSmallStoreFaults: every call returns the error of the store, and changes nothing by halves that a
// second call does not complete.
func TestSmallStoreFaults(t *testing.T) {
	id := assemble.BlockID{Year: 2030, GrandPrix: "alps", Block: assemble.Qualifying}
	for name, call := range map[string]func(g *ingest.Ingest, at time.Time, held string) error{
		"Poll": func(g *ingest.Ingest, at time.Time, _ string) error {
			_, err := g.Poll(t.Context(), at, true)
			return err
		},
		"Apply": func(g *ingest.Ingest, at time.Time, _ string) error { _, err := g.Apply(t.Context(), at); return err },
		"Load":  func(g *ingest.Ingest, _ time.Time, _ string) error { return g.Load(t.Context()) },
		"Accept": func(g *ingest.Ingest, at time.Time, held string) error {
			_, err := g.Accept(t.Context(), at, "operator:anna", held, "")
			return err
		},
		"Enter": func(g *ingest.Ingest, at time.Time, _ string) error {
			return g.Enter(t.Context(), at, ingest.ManualEntry{Actor: "operator:anna", Released: []assemble.BlockID{id}})
		},
		"Manual": func(g *ingest.Ingest, _ time.Time, _ string) error { _, err := g.Manual(t.Context()); return err },
		"Trial": func(g *ingest.Ingest, at time.Time, _ string) error {
			_, err := g.Trial(t.Context(), at, ingest.ManualEntry{})
			return err
		},
		"LastDocument": func(g *ingest.Ingest, _ time.Time, _ string) error {
			_, _, err := g.LastDocument(t.Context(), g.Sources[0])
			return err
		},
		"LoadPollStates": func(g *ingest.Ingest, _ time.Time, _ string) error {
			_, err := ingest.LoadPollStates(t.Context(), g.Store)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSmall(t)
			s.poll(t, s.now)
			s.commit(edited("cape", "date: 2030-04-07", "date: 2030-04-10"))
			held := s.next(t).Held[0].ID
			begun := s.store
			for n := 1; ; n++ {
				s.restart(t, begun)
				calls := -1
				store := faultblob.Wrap(s.store, inTurn(func(context.Context, faultblob.Call) faultblob.Fate {
					if calls >= 0 {
						if calls++; calls == n {
							return faultblob.Fate{Err: errBroken}
						}
					}
					return faultblob.Fate{}
				}))
				g := s.scheduler(t, store)
				calls = 0
				err := call(g, s.now.Add(2*time.Minute), held)
				if calls < n {
					break
				}
				if err != nil && !errors.Is(err, errBroken) {
					t.Errorf("call %d to the store fails: got %v, want its error", n, err)
				}
				must.Succeed(t, fmt.Sprintf("after call %d to the store failed", n), call(g, s.now.Add(4*time.Minute), held))
			}
		})
	}
}

// TestSmallDamage: a damaged document is a fault of its source and is fetched again; a damaged state
// counts as empty; a damaged log stops the run.
func TestSmallDamage(t *testing.T) {
	replace := func(s *small, key string, data string) {
		t.Helper()
		object := must.Get(s.store.Get(t.Context(), key, 1<<20))(t)
		must.Get(s.store.Swap(t.Context(), key, object.Tag, []byte(data)))(t)
	}
	begin := func() *small {
		s := newSmall(t)
		s.commit(map[string][]byte{raceFolder("alps") + "race-results.yml": raced("anna-arno", "bert-berg", "carl-coda")})
		s.poll(t, smallStart("alps").Add(4*time.Hour))
		return s
	}
	s := begin()
	replace(s, "sources/f1db/"+s.state(t).SHA256+".zst", "damaged")
	other := s.scheduler(t, s.store) // without the document in memory
	outcome, err := other.Apply(t.Context(), s.now)
	if err != nil || outcome.Faults["f1db"] == nil || outcome.Changed {
		t.Errorf("a damaged document: got %+v, %v, want a fault and no change", outcome, err)
	}

	replace(s, "sources/f1db/state.json", "{")
	if _, err := s.scheduler(t, s.store).Poll(t.Context(), s.now.Add(time.Minute), true); err == nil || !strings.HasSuffix(err.Error(), ".zst is damaged") {
		t.Errorf("a damaged document that the source sends again: got %v", err)
	}

	s = begin()
	replace(s, "sources/f1db/state.json", "{")
	wantSummary(t, "a damaged state", s.next(t), "")
	if state := s.state(t); state.SHA256 == "" || state.Polled.IsZero() {
		t.Errorf("after a damaged state the next one is %+v", state)
	}

	for _, prefix := range []string{ingest.LogPrefix, ingest.ManualPrefix} {
		s = begin()
		must.Do(t, s.Enter(t.Context(), s.now, ingest.ManualEntry{Actor: "operator:anna"}))
		replace(s, prefix+"00000001.json", "{}")
		var damage *chain.DamageError
		if _, err := s.scheduler(t, s.store).Poll(t.Context(), s.now, true); !errors.As(err, &damage) {
			t.Errorf("a damaged file under %s: got %v", prefix, err)
		}
	}

	s = begin()
	s.Sources[0].Upstream = &herald{name: "f1db", unreadable: true}
	s.Ingest = &ingest.Ingest{Store: s.store, Facts: s.Facts, Ledger: s.Ledger, Log: s.Log, Sources: s.Sources, Interval: s.Interval}
	if outcome, err := s.Apply(t.Context(), s.now); err != nil || outcome.Faults["f1db"] == nil {
		t.Errorf("a document that this release cannot read: got %+v, %v, want a fault", outcome, err)
	}
}

// TestSmallSuperseded: the store keeps the last document of a source and the one before it, also when the
// source goes back to an earlier one. A scheduler without documents in memory still applies the last one.
func TestSmallSuperseded(t *testing.T) {
	s := newSmall(t)
	s.poll(t, smallStart("alps").Add(4*time.Hour))
	results := raceFolder("alps") + "race-results.yml"
	for i, rows := range [][]byte{
		raced("anna-arno", "bert-berg", "carl-coda"), raced("bert-berg", "anna-arno", "carl-coda"),
		raced("anna-arno", "bert-berg", "carl-coda"), raced("anna-arno", "carl-coda", "bert-berg"),
	} {
		before := s.state(t).SHA256
		s.commit(map[string][]byte{results: rows})
		s.next(t)
		after := s.state(t).SHA256
		if before == after {
			t.Fatalf("revision %d has the same document", i+1)
		}
		want := []string{"sources/f1db/" + before + ".zst", "sources/f1db/" + after + ".zst", "sources/f1db/state.json"}
		slices.Sort(want)
		var got []string
		for info, err := range s.store.List(t.Context(), "sources/") {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, info.Key)
		}
		if !slices.Equal(got, want) {
			t.Errorf("after revision %d the store has %q, want %q", i+1, got, want)
		}
	}
	other := s.scheduler(t, s.store)
	if outcome, err := other.Apply(t.Context(), s.now); err != nil || len(outcome.Faults) != 0 {
		t.Errorf("another scheduler: got %+v, %v, want no fault", outcome.Faults, err)
	}
}

// readKeys is a store that notes the keys of its reads.
type readKeys struct {
	blob.Store

	mu   sync.Mutex // guards keys
	keys []string
}

func (s *readKeys) Get(ctx context.Context, key string, limit int64) (blob.Object, error) {
	s.mu.Lock()
	s.keys = append(s.keys, key)
	s.mu.Unlock()
	return s.Store.Get(ctx, key, limit)
}

// TestSmallJudged: a new process reads neither archive nor document if its sources have nothing new and an earlier
// process judged their documents with the same inputs. It judges again after an archive of its own, for another release
// and for other terms, while the absence of a round is young, and while a held change waits for the clock.
func TestSmallJudged(t *testing.T) {
	s := newSmall(t)
	s.poll(t, smallStart("alps").Add(4*time.Hour))
	poll := func(what string, idle bool, change func(*ingest.Ingest)) {
		t.Helper()
		s.now = s.now.Add(2 * time.Minute)
		store := &readKeys{Store: s.store}
		process := s.scheduler(t, store)
		change(process)
		outcome, err := process.Poll(t.Context(), s.now, true)
		if err != nil || outcome.Changed || len(outcome.Faults) > 0 || outcome.Archive != s.inUse(t) {
			t.Errorf("%s: got %+v, %v, want the archive in use", what, outcome, err)
		}
		read := slices.ContainsFunc(store.keys, func(key string) bool { return strings.HasPrefix(key, "archives/") || strings.HasSuffix(key, ".zst") })
		if read == idle || idle == (process.Assembled() > 0) {
			t.Errorf("%s: it read %q and assembled %d times; want it idle: %t", what, store.keys, process.Assembled(), idle)
		}
		if v := process.PollStates(); len(v) != 1 || v[0].SHA256 != s.state(t).SHA256 {
			t.Errorf("%s: the states are %+v, want that of the source", what, v)
		}
	}
	same := func(*ingest.Ingest) {}
	poll("nothing new since the start", true, same)
	s.commit(map[string][]byte{raceFolder("alps") + "race-results.yml": raced("anna-arno", "bert-berg", "carl-coda")})
	if !s.next(t).Changed {
		t.Fatal("a result did not change the archive")
	}
	poll("after an archive of its own", false, same)
	poll("nothing new", true, same)
	poll("another release", false, func(g *ingest.Ingest) { g.Release = "v2" })
	poll("the first release again", false, same)
	poll("other terms", false, func(g *ingest.Ingest) { g.Sources[0].CheckOnly = true })

	s.commit(removed("fjord"))
	s.next(t)
	poll("a young absence", false, same)
	s.now = s.now.Add(25 * time.Hour)
	poll("an old absence", false, same)
	poll("nothing new after it", true, same)

	s.commit(edited("cape", "date: 2030-04-07", "date: 2030-04-10"))
	if held := s.next(t).Held; len(held) != 1 {
		t.Fatalf("held are %+v, want the start", held)
	}
	poll("a start that waits", false, same)
	poll("a start that still waits", false, same)
}

// TestSmallFacts: facts that an archive cannot hold are an error, and nothing is in use of them.
func TestSmallFacts(t *testing.T) {
	for what, change := range map[string]func(row *season.QualifyingRow){
		"a time of less than a millisecond": func(row *season.QualifyingRow) { row.Segments[0]++ },
		"an unknown driver":                 func(row *season.QualifyingRow) { row.Driver = "emma-eich" },
	} {
		t.Run(what, func(t *testing.T) {
			s := newSmall(t)
			s.commit(map[string][]byte{raceFolder("alps") + "qualifying-results.yml": qualified()})
			s.poll(t, smallStart("alps").Add(-20*time.Hour))
			before := s.inUse(t)
			rows := slices.Clone(s.round(t, "alps").Qualifying)
			rows[0].Driver, rows[1].Driver = rows[1].Driver, rows[0].Driver
			change(&rows[0])
			must.Do(t, s.Enter(t.Context(), s.now, ingest.ManualEntry{Actor: "operator:anna", Statements: []ingest.Statement{statement("alps", assemble.Qualifying, ingest.PartialRound{Qualifying: rows})}}))
			if outcome, err := s.Apply(t.Context(), s.now); err == nil || s.inUse(t) != before {
				t.Errorf("got %+v, %v, want an error and the archive as it was", outcome, err)
			}
		})
	}
	must.Fail(t, "a start in the year 10030: got no error, want one, because RFC 3339 has no such year", must.Err(json.Marshal(ingest.PartialRound{Start: opening.AddDate(8000, 0, 0)})))
}

// TestSmallReinstated: a round that its source has again stays postponed if it would start within an
// hour, and if the archive in use has no such round.
func TestSmallReinstated(t *testing.T) {
	for what, back := range map[string]func(s *small){
		"after its start": func(s *small) { s.now = smallStart("fjord") },
		"missing in the archive": func(s *small) {
			s.use(t, func(f *season.Facts) { f.Seasons[0].Rounds = f.Seasons[0].Rounds[:5] })
			s.commit(removed("fjord"))
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := newSmall(t)
			s.commit(removed("fjord"))
			s.next(t)
			s.commit(edited("cape", "laps: 60", "laps: 61"))
			s.next(t)
			wantSummary(t, "a day later", s.poll(t, s.now.Add(25*time.Hour)), "event round_postponed")
			s.commit(edited("fjord", "", ""))
			back(s)
			wantSummary(t, what, s.next(t), "")
		})
	}
}

// use puts a changed archive in use, as gridcast archive import does.
func (s *small) use(t *testing.T, change func(*season.Facts)) {
	t.Helper()
	stored := must.Get(s.Facts.Load(t.Context()))(t)
	facts := stored.Archive.Facts()
	facts.Seasons = slices.Clone(facts.Seasons)
	facts.Circuits = maps.Clone(facts.Circuits)
	change(&facts)
	archivetest.Put(t, s.Facts, archivetest.Stored(t, facts))
}

var errBroken = errors.New("the disk is full")

// inTurn lets fate decide about one call at a time, because an archive is read and written part beside part.
func inTurn(fate func(context.Context, faultblob.Call) faultblob.Fate) func(context.Context, faultblob.Call) faultblob.Fate {
	var mu sync.Mutex
	return func(ctx context.Context, call faultblob.Call) faultblob.Fate {
		mu.Lock()
		defer mu.Unlock()
		return fate(ctx, call)
	}
}
