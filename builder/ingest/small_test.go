package ingest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/builder/source"
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
	outcome, err := s.Poll(t.Context(), s.now.Add(time.Second), false)
	must.Hold(t, err == nil && len(outcome.Polled) == 0, "a second later: got the polls %v, %v, want none", outcome.Polled, err)
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
		{"the day after, without an hour", edited("bay", "date: 2030-03-24\ntime: 13:00", "date: 2030-03-25\ntime:"), time.Time{}, "applied bay start; event round_moved"},
		{"a start three days later", edited("cape", "date: 2030-04-07", "date: 2030-04-10"), time.Time{}, "held cape start (start)"},
		{"the start is corrected", edited("cape", "", ""), time.Time{}, ""},
		{"a round is gone", removed("fjord"), time.Time{}, ""},
		{"another revision without it", map[string][]byte{raceFolder("alps") + "race-results.yml": raced("bert-berg", "carl-coda", "anna-arno")}, time.Time{}, "applied alps result"},
		{"a day later", nil, end.Add(30 * time.Hour), "event round_postponed"},
		{"the round is back", edited("fjord", "", ""), time.Time{}, "event round_reinstated"},
		{"five of six rounds are gone", removed(smallRounds[1:]...), time.Time{}, "held  calendar (shrunken); fault f1db"},
		{"no news", nil, time.Time{}, "held  calendar (shrunken); fault f1db"},
		{"the rounds are back", smallFiles(), time.Time{}, "applied bay start; event round_moved"},
		{"the first result again", result("alps"), time.Time{}, "applied alps result"},
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
	_, ok := log.Origin(2030, "dale", assemble.Start)
	must.Hold(t, !ok, "a start of the first archive has an origin")
}

// TestSmallFaults: while the source is down or unreadable, the archive stays, the state names the fault,
// and the waits grow to half an hour.
func TestSmallFaults(t *testing.T) {
	t.Parallel() // the client waits before it asks again
	for _, test := range []struct {
		what  string
		fault func(http.ResponseWriter, *http.Request) bool
		files map[string][]byte
		want  source.FaultKind
		waits []time.Duration
	}{
		{"503", page(503, "text/plain", "down"), nil, source.Unreachable, []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 30 * time.Minute, 30 * time.Minute}},
		{"403", page(403, "text/html", "no"), nil, source.Refused, []time.Duration{30 * time.Minute, 30 * time.Minute}},
		{"401", page(401, "application/json", `{"detail":"Session in progress"}`), nil, source.Refused, []time.Duration{30 * time.Minute}},
		{"404", page(404, "application/json", `{"detail":"No results found."}`), nil, source.Refused, []time.Duration{30 * time.Minute}},
		{"429", page(429, "application/json", `{"error":"ratelimited"}`), nil, source.Throttled, []time.Duration{30 * time.Second}},
		{"a connection that ends", func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }, nil, source.Unreachable, []time.Duration{30 * time.Second}},
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
			state := s.state(t)
			must.Hold(t, state.Fault == "" && state.Failures == 0 && state.Reason == "", "it answers again, and the state is %+v", state)
		})
	}
}

// TestSmallClock: a source that was polled by a clock days ahead is polled again once that clock is right. A scheduler waits for
// another whose clock is up to a minute ahead.
func TestSmallClock(t *testing.T) {
	for ahead, polls := range map[time.Duration]int{5 * 24 * time.Hour: 1, time.Minute + 1: 1, time.Minute: 0} {
		s := newSmall(t)
		s.poll(t, opening.Add(ahead))
		polled := s.poll(t, opening).Polled
		must.Hold(t, len(polled) == polls, "after a poll by a clock %s ahead: polled %v, want %d", ahead, polled, polls)
		next := s.poll(t, opening.Add(2*time.Minute)).Polled
		must.Hold(t, len(next) == 1, "after a poll by a clock %s ahead: polled %v with the next poll", ahead, next)
	}
}

func (s *small) inUse(t *testing.T) string {
	t.Helper()
	stored := must.Get(archive.NewStore(s.store).Load(t.Context()))(t)
	return stored.SHA256
}

// TestSmallRaces: a scheduler that loses a race starts over with the state of the winner: for the claim
// of a source, for the facts log, for the archive, and for the ledger.
func TestSmallRaces(t *testing.T) {
	arrives := func(s *small) {
		s.commit(result("alps"))
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
		"the state of the source": {arrives, swaps("/state.json"), poll, 0, 0},
		"the facts log":           {arrives, creates(ingest.LogPrefix), poll, 1, 0},
		"the archive":             {arrives, swaps("archive.json"), poll, 1, 0},
		"another archive": {arrives, swaps("archive.json"), func(s *small) {
			s.use(t, func(f *season.Facts) {
				ring := f.Circuits["ring"]
				ring.Name = "Neuer Alpenring"
				f.Circuits["ring"] = ring
			})
		}, 1, 0},
		"the release of a block": {func(s *small) {
			arrives(s)
			poll(s)
			same := statement("alps", assemble.Result, ingest.PartialRound{Results: s.round(t, "alps").Results})
			for _, entry := range []ingest.ManualEntry{{Statements: []ingest.Statement{same}}, {Released: []assemble.BlockID{same.BlockID}}} {
				poll(s)
				must.Do(t, s.Enter(t.Context(), s.now, entry))
			}
		}, creates(ingest.LogPrefix), poll, 1, 0},
		"the rename of a driver": {func(s *small) {
			s.commit(map[string][]byte{raceFolder("alps") + "qualifying-results.yml": qualified()})
			arrives(s)
			poll(s)
			s.commit(renamed())
			s.now = s.now.Add(2 * time.Minute)
		}, creates(ledger.Prefix), poll, 1, 1},
		"the round that is back": {func(s *small) {
			s.commit(removed("fjord"))
			s.next(t)
			arrives(s)
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
			must.Require(t, err == nil && done, "got %v, and the race happened: %t", err, done)
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
		s.commit(result("alps"))
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
		must.Hold(t, err != nil && err.Error() == "ingest: other schedulers changed the archive 8 times meanwhile", "got %v, want it to give up", err)
	})
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
	begin := func() *small {
		s := newSmall(t)
		s.commit(result("alps"))
		s.poll(t, smallStart("alps").Add(4*time.Hour))
		return s
	}
	s := begin()
	s.replace(t, "sources/f1db/"+s.state(t).SHA256+".zst", "damaged")
	other := s.scheduler(t, s.store) // without the document in memory
	outcome, err := other.Apply(t.Context(), s.now)
	if err != nil || outcome.Faults["f1db"] == nil || outcome.Changed {
		t.Errorf("a damaged document: got %+v, %v, want a fault and no change", outcome, err)
	}

	s.replace(t, "sources/f1db/state.json", "{")
	if _, err := s.scheduler(t, s.store).Poll(t.Context(), s.now.Add(time.Minute), true); err == nil || !strings.HasSuffix(err.Error(), ".zst is damaged") {
		t.Errorf("a damaged document that the source sends again: got %v", err)
	}

	s = begin()
	s.replace(t, "sources/f1db/state.json", "{")
	wantSummary(t, "a damaged state", s.next(t), "")
	state := s.state(t)
	must.Hold(t, state.SHA256 != "" && !state.Polled.IsZero(), "after a damaged state the next one is %+v", state)

	for _, prefix := range []string{ingest.LogPrefix, ingest.ManualPrefix} {
		s = begin()
		must.Do(t, s.Enter(t.Context(), s.now, ingest.ManualEntry{Actor: "operator:anna"}))
		s.replace(t, prefix+"00000001.json", "{}")
		var damage *chain.DamageError
		_, err := s.scheduler(t, s.store).Poll(t.Context(), s.now, true)
		must.Hold(t, errors.As(err, &damage), "a damaged file under %s: got %v", prefix, err)
	}

	s = begin()
	s.Sources[0].Upstream = &herald{name: "f1db", unreadable: true}
	s.Ingest = &ingest.Ingest{Store: s.store, Facts: s.Facts, Ledger: s.Ledger, Log: s.Log, Sources: s.Sources, Interval: s.Interval}
	if outcome, err := s.Apply(t.Context(), s.now); err != nil || outcome.Faults["f1db"] == nil {
		t.Errorf("a document that this release cannot read: got %+v, %v, want a fault", outcome, err)
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
		v := process.PollStates()
		must.Hold(t, len(v) == 1 && v[0].SHA256 == s.state(t).SHA256, "%s: the states are %+v, want that of the source", what, v)
	}
	same := func(*ingest.Ingest) {}
	poll("nothing new since the start", true, same)
	s.commit(result("alps"))
	must.Require(t, s.next(t).Changed, "a result did not change the archive")
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
	held := s.next(t).Held
	must.Require(t, len(held) == 1, "held are %+v, want the start", held)
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
			outcome, err := s.Apply(t.Context(), s.now)
			must.Hold(t, err != nil && s.inUse(t) == before, "got %+v, %v, want an error and the archive as it was", outcome, err)
		})
	}
	must.Fail(t, "a start in the year 10030: got no error, want one, because RFC 3339 has no such year", must.Err(json.Marshal(ingest.PartialRound{Start: opening.AddDate(8000, 0, 0)})))
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

// replace overwrites an object of the store.
func (s *small) replace(t *testing.T, key, data string) {
	t.Helper()
	object := must.Get(s.store.Get(t.Context(), key, 1<<20))(t)
	must.Get(s.store.Swap(t.Context(), key, object.Tag, []byte(data)))(t)
}
