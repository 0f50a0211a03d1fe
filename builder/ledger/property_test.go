package ledger_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob/memblob"
)

// randomEvents proposes the events of a careless caller, often against the rules.
func randomEvents(r *rand.Rand, s *ledger.Fold, at time.Time) []ledger.Event {
	drivers := []season.DriverID{"a", "b", "c", "d"}
	r.Shuffle(len(drivers), func(i, j int) { drivers[i], drivers[j] = drivers[j], drivers[i] })
	random := ledger.Pick{P1: drivers[0], P2: drivers[1], P3: drivers[2], WinProbability: r.Float64(), Model: "random"}
	around := func() time.Time { return at.Add(time.Duration(r.IntN(72)-24) * time.Hour) }
	key := 2026000 + int64(1+r.IntN(4))
	round, _ := s.Record(key)
	round.Key = key
	valid := round.Start(opened.Add(time.Duration(key-2026000) * 48 * time.Hour))
	if r.IntN(8) == 0 {
		valid = around()
	}
	switch r.IntN(23) {
	case 0:
		names := []season.GrandPrixID{"monaco", "spain", "austria", "britain"}
		keys, err := ledger.AssignKeys(s, []season.Season{calendar(2026, names[:1+r.IntN(4)]...)})
		if err != nil || len(keys) == 0 {
			return nil
		}
		return one(keysEvent(keys...))
	case 1, 2:
		freeze := ledger.Freeze(key, random, valid, r.IntN(2) == 0)
		if r.IntN(2) == 0 {
			freeze.Archive, freeze.Basis = anArchive, []ledger.Basis{ledger.OnGrid, ledger.OnQualifying, ledger.OnForm}[r.IntN(3)]
		}
		if r.IntN(2) == 0 {
			freeze.Pick.P1, freeze.Pick.P2, freeze.Pick.P3, freeze.Pick.WinProbability, freeze.Chances = "leclerc", "norris", "russell", 0.41, chances
		}
		return one(freeze)
	case 3:
		return one(ledger.FreezeLive(key, random, valid, 25*r.IntN(4), ledger.Observation{Lap: 1 + r.IntN(50), SHA256: anArchive, At: valid.Add(time.Minute)}))
	case 4, 5:
		return one(round.Verify(rows(drivers...), valid, []string{"", "stewards"}[r.IntN(2)]))
	case 6:
		return round.Postpone(valid, "flood")
	case 7:
		return round.Cancel("flood")
	case 8:
		return one(round.Move(valid, around(), "storm"))
	case 9, 11, 16, 18, 19:
		return one(round.Release(valid, []time.Time{valid, valid, valid, around()}[r.IntN(4)], "let go"))
	case 10:
		return one(ledger.Rename(drivers[0], drivers[1]+"2"))
	case 12:
		steps := []season.SessionKind{season.Practice1, season.Practice2, season.Qualifying, season.Sprint, "warm-up"}
		return one(ledger.Event{Type: ledger.ForecastNoted, Session: key, Step: steps[r.IntN(5)], Model: "random", Chances: chances})
	case 13:
		return one(ledger.Event{Type: ledger.ResultsVouched, Archive: anArchive, Rounds: []int64{key, key + int64(r.IntN(3))}})
	case 17:
		decided := ledger.Championship{Competitor: string(drivers[0])}
		if stand := s.Championship(2026); len(stand) > 0 && r.IntN(2) == 0 {
			decided, key = ledger.Championship{Competitor: stand[0].Competitor, Restores: stand[0].EventID}, stand[0].Session
		} else if r.IntN(4) == 0 {
			decided.Excluded = true
		} else {
			decided.Points = float64(r.IntN(9) - 4)
		}
		return one(ledger.Event{Type: ledger.ChampionshipDecided, Year: 2026, Session: key, Reason: "stewards", Championship: &decided})
	case 20, 21, 22:
		for record := range s.Records() {
			start := record.Start(opened.Add(time.Duration(record.Key-2026000) * 48 * time.Hour))
			if record.Pick == nil || record.Pick.Chances == nil || !at.Before(start) {
				continue
			}
			e := ledger.Event{Type: ledger.DriverWithdrawn, Session: record.Key, Driver: record.Pick.Chances[0].Driver, Start: start}
			if record.Withdrawn(e.Driver) {
				e.Type = ledger.DriverReturned
			}
			return one(e)
		}
		return nil
	case 14:
		codes := []string{"ANN", "BOB", "CAY"}
		return one(ledger.Event{Type: ledger.CodeChanged, Year: 2026, Driver: drivers[0], From: codes[r.IntN(3)], To: codes[r.IntN(3)]})
	default:
		return one(round.Reinstate([]time.Time{{}, around()}[r.IntN(2)], "dry"))
	}
}

// Every accepted append passes the audit, and the fold of any instant equals the fold at that time.
func TestRandomLives(t *testing.T) {
	for name, wrong := range map[string]bool{"clocks that agree": false, "clocks that are days ahead": true} {
		t.Run(name, func(t *testing.T) { randomLives(t, wrong) })
	}
}

func randomLives(t *testing.T, wrongClocks bool) {
	accepted := map[ledger.Type]int{}
	lives, least := uint64(60), 10
	if testing.Short() { // they compute one after the other, ten times as long under the race detector
		lives, least = 20, 2
	}
	for seed := range lives {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			store := memblob.New(memblob.Strict(t, isLedgerFile))
			l := must.Get(ledger.Open(t.Context(), store, ledger.Simulated, opened, "replay", ""))(t)
			at := opened
			var states []*ledger.Fold
			for range 250 {
				at = at.Add(time.Duration(r.IntN(4)) * time.Hour)
				var events []ledger.Event
				for range 1 + r.IntN(2) {
					events = append(events, randomEvents(r, l.Fold(), at)...)
				}
				clock, actor := at, []string{"random", ledger.SourceActor("f1db", "1")}[r.IntN(2)]
				if wrongClocks && r.IntN(8) == 0 {
					clock = clock.Add(time.Duration(r.IntN(200)) * time.Hour)
				}
				written, err := decideOn(t.Context(), l, clock, actor, func(*ledger.Fold) ([]ledger.Event, error) { return events, nil })
				if err != nil || len(written) == 0 {
					continue
				}
				for _, e := range written {
					accepted[e.Type]++
				}
				states = append(states, l.Fold())
			}
			mustBeGreen(t, store)

			read := must.Get(ledger.Load(t.Context(), store, ledger.Simulated))(t)
			for i, then := range states {
				sameState(t, then, read.UpTo(then.Head().Seq))
				if wrongClocks {
					continue // at that instant less was known
				}
				if i+1 < len(states) && states[i+1].At().Equal(then.At()) {
					continue // not the last of its instant
				}
				sameState(t, then, read.AsOf(then.At()))
			}
			sameState(t, l.Fold(), read.Fold())
		})
	}
	for _, kind := range []ledger.Type{
		ledger.KeysAssigned, ledger.PickFrozen, ledger.PickVoided, ledger.LivePickFrozen, ledger.ResultVerified,
		ledger.RoundPostponed, ledger.RoundCancelled, ledger.RoundMoved, ledger.RoundReinstated, ledger.RoundReleased, ledger.DriverRenamed,
		ledger.ForecastNoted, ledger.ResultsVouched, ledger.CodeChanged, ledger.ChampionshipDecided,
		ledger.DriverWithdrawn, ledger.DriverReturned,
	} {
		if accepted[kind] < least {
			t.Errorf("only %d events %s were accepted: the test proves little of them", accepted[kind], kind)
		}
	}
}

func sameState(t *testing.T, want, got *ledger.Fold) {
	t.Helper()
	if want.Head() != got.Head() || want.Kind() != got.Kind() || !want.At().Equal(got.At()) {
		t.Fatalf("got a %s state at %v, want a %s one at %v", got.Kind(), got.Head(), want.Kind(), want.Head())
	}
	sessions := func(s *ledger.Fold) (all []ledger.RoundRecord) {
		for session := range s.Records() {
			all = append(all, session)
		}
		return all
	}
	if !reflect.DeepEqual(want.AllChampionship(2026), got.AllChampionship(2026)) {
		t.Fatalf("decisions at %v: got %+v, want %+v", want.Head(), got.AllChampionship(2026), want.AllChampionship(2026))
	}
	if reflect.DeepEqual(sessions(want), sessions(got)) {
		return // cmp takes ten times as long
	}
	if diff := cmp.Diff(sessions(want), sessions(got)); diff != "" {
		t.Fatalf("sessions at %v (-want +got):\n%s", want.Head(), diff)
	}
}
