package ingest_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/builder/testseason"
	"gridcast/deploy/must"
)

// TestRefusedEvents: an event that the ledger refuses costs one change. The change is held and named, no person can accept
// it, and each further poll applies the rest of the document.
func TestRefusedEvents(t *testing.T) {
	bay := smallStart("bay")
	// moved has F1DB and a second source say another start, which passes the gates.
	moved := func(s *story, at time.Time, clock string) {
		s.gp, s.now = "bay", at
		s.commit(edited("bay", "time: 13:00", "time: "+clock))
		start := must.Get(time.Parse("2006-01-02 15:04", bay.Format(time.DateOnly)+" "+clock))(s.t)
		s.herald(true, func(r *season.Round) { r.Start = start })
	}
	byPerson := func(s *story) {
		must.Get(testseason.Fresh(s.t, s.Ledger).Append(s.t.Context(), s.now, "operator:anna", func(f *ledger.Fold) ([]ledger.Event, error) {
			key, _ := f.Key(2030, "bay")
			record, _ := f.Record(key)
			return []ledger.Event{record.Move(bay, bay.Add(2*time.Hour), "announced")}, nil
		}))(s.t)
	}
	accept := func(s *story, held []assemble.Proposal) {
		must.Get(s.Accept(s.t.Context(), s.now, "operator:anna", held[0].ID, "announced"))(s.t)
	}
	for _, test := range []struct {
		event   ledger.Type
		refusal error
		opened  time.Time // zero: opening
		run     func(*story)
		want    string // held
	}{
		{ledger.RoundMoved, ledger.ErrPast, time.Time{}, func(s *story) {
			moved(s, bay.Add(-30*time.Minute), "12:00")
		}, "bay start"},
		{ledger.RoundMoved, ledger.ErrStarted, time.Time{}, func(s *story) {
			moved(s, bay.Add(30*time.Minute), "16:00")
		}, "bay start"},
		{ledger.RoundMoved, ledger.ErrAlreadyVerified, time.Time{}, func(s *story) {
			s.commit(result("bay"))
			s.poll(s.t, bay.Add(4*time.Hour))
			policy := builder.Policy{AutoVerifyAfter: time.Hour, Stability: s.Stability}
			must.Get(policy.Settle(s.t.Context(), testseason.Fresh(s.t, s.Ledger), must.Get(s.Facts.Load(s.t.Context()))(s.t), s.now.Add(2*time.Hour)))(s.t)
			moved(s, s.now.Add(3*time.Hour), "12:00")
		}, "bay start"},
		{ledger.RoundMoved, ledger.ErrByPerson, time.Time{}, func(s *story) {
			byPerson(s)
			moved(s, s.now, "14:00")
		}, "bay start"},
		{ledger.RoundMoved, ledger.ErrByPerson, time.Time{}, func(s *story) {
			byPerson(s)
			s.commit(edited("bay", "time: 13:00", "time: 14:00"))
			accept(s, s.small.next(s.t).Held)
		}, "bay start"},
		{ledger.RoundMoved, ledger.ErrOlder, opening.AddDate(0, 0, 2), func(s *story) {
			s.commit(edited("bay", "time: 13:00", "time: 14:00"))
		}, "bay start"},
		{ledger.CodeChanged, ledger.ErrOlder, smallStart("alps").AddDate(0, 0, 2), func(s *story) {
			s.raced(nil)
			s.commit(map[string][]byte{anna: bytes.Replace(driverFile("anna-arno", "Anna", "Arno"), []byte("ARN"), []byte("XYZ"), 1)})
			accept(s, s.small.next(s.t).Held)
		}, "anna-arno names"},
		{ledger.DriverRenamed, ledger.ErrOlder, smallStart("alps").AddDate(0, 0, 2), func(s *story) {
			s.raced(map[string][]byte{alpsQualifying: qualified()})
			s.commit(renamed())
		}, "carl-coda names"},
		{ledger.RoundPostponed, ledger.ErrOlder, opening.AddDate(0, 0, 4), func(s *story) {
			s.commit(removed("fjord"))
			s.small.next(s.t)
			s.commit(edited("cape", "laps: 60", "laps: 62"))
			s.small.next(s.t)
			s.now = s.now.Add(25 * time.Hour)
		}, "fjord calendar"},
		{ledger.RoundReinstated, ledger.ErrNoStart, time.Time{}, func(s *story) {
			s.postponed()
			start := smallStart("fjord").Add(time.Millisecond)
			st := statement("fjord", assemble.Start, ingest.PartialRound{Date: start.Truncate(24 * time.Hour), Start: start})
			st.Forced = true
			s.enter(entered("operator:anna", st))
		}, "fjord calendar"},
	} {
		t.Run(string(test.event)+" "+test.refusal.Error(), func(t *testing.T) {
			s := &story{small: newSmallOpened(t, test.opened), t: t, gp: "alps"}
			s.poll(t, s.now)
			test.run(s)
			s.commit(map[string][]byte{raceFolder("dale") + "race.yml": bytes.Replace(smallFiles()[raceFolder("dale")+"race.yml"], []byte("laps: 60"), []byte("laps: 61"), 1)})
			for _, what := range []string{"the first poll", "the next poll"} {
				s.small.next(t)
				var held []assemble.Proposal
				for _, c := range s.state(t).Held {
					if c.Refused[0].Gate == assemble.LedgerGate {
						held = append(held, c)
					}
				}
				if len(held) != 1 || !strings.HasPrefix(strings.TrimSpace(string(held[0].GrandPrix)+string(held[0].Driver)+" "+string(held[0].Block)), test.want) {
					t.Fatalf("%s: got held %+v, want %s, because %q", what, held, test.want, test.refusal)
				}
				must.Show(t, what+": the reason", held[0].Refused[0].Reason, test.refusal.Error())
				must.Hold(t, s.round(t, "dale").ScheduledLaps == 61, "%s: the rest of the document is not applied", what)
				err := must.Err(s.Accept(t.Context(), s.now, "operator:anna", held[0].ID, "announced"))
				must.Show(t, what+": the error of accepting it", fmt.Sprint(err), test.refusal.Error())
			}
		})
	}
}
