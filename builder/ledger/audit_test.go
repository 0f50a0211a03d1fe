package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/ledger"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/memblob"
)

func audit(t *testing.T, store blob.Store, noted ...string) ledger.Findings {
	t.Helper()
	return must.Get(ledger.Audit(t.Context(), store, noted...))(t)
}

func mustBeGreen(t *testing.T, store blob.Store) {
	t.Helper()
	must.Succeed(t, "audit", audit(t, store).Err())
}

func mustBlame(t *testing.T, r ledger.Findings, key string) {
	t.Helper()
	if r.Green() || r.Faults[0].Key != key {
		t.Errorf("audit: got %v, want the first fault at %s", r.Faults, key)
	}
	if r.Err() == nil {
		t.Error("a report with faults has no error")
	}
}

// mustSay is mustBlame, and compares all faults with a golden.
func mustSay(t *testing.T, r ledger.Findings, key string) {
	t.Helper()
	mustBlame(t, r, key)
	golden.Sentence(t, t.Name(), fmt.Sprint(r.Faults))
}

// script appends the life of a round, six files with those of openWith.
var script = []func(s ledger.RoundRecord) (time.Time, []ledger.Event){
	func(ledger.RoundRecord) (time.Time, []ledger.Event) {
		return start.Add(-3 * time.Hour), one(ledger.Freeze(monaco, pick, start, false))
	},
	func(s ledger.RoundRecord) (time.Time, []ledger.Event) {
		return start.Add(-2 * time.Hour), s.Postpone(start, "flood")
	},
	func(s ledger.RoundRecord) (time.Time, []ledger.Event) {
		return start.Add(-time.Hour), one(s.Reinstate(start.Add(24*time.Hour), "dry"))
	},
	func(s ledger.RoundRecord) (time.Time, []ledger.Event) {
		return start.Add(30 * time.Hour), one(s.Verify(rows("leclerc", "norris", "russell"), start.Add(24*time.Hour), ""))
	},
}

func runScript(ctx context.Context, store blob.Store) error {
	l, err := ledger.Open(ctx, store, ledger.Real, opened, "builder", "")
	if err != nil {
		return err
	}
	if err := appendEvents(ctx, l, opened, keyEvent(monaco, 2026, "monaco")); err != nil {
		return err
	}
	for _, do := range script {
		s, _ := l.Fold().Record(monaco)
		at, events := do(s)
		if err := appendEvents(ctx, l, at, events...); err != nil {
			return err
		}
	}
	return nil
}

func TestAuditReports(t *testing.T) {
	store := newStore(t)
	must.Do(t, runScript(t.Context(), store))
	l := must.Get(ledger.Load(t.Context(), store, ledger.Real))(t)
	s := session(t, l.Fold())
	moved := start.Add(24 * time.Hour)
	mustAppend(t, l, start.Add(900*time.Hour), s.Verify(rows("norris", "russell", "piastri"), moved, "leclerc disqualified"))

	round := ledger.KeyAssignment{Session: monaco, Year: 2026, GrandPrix: "monaco"}
	want := ledger.Findings{
		Kind: ledger.Real, Opened: opened, Head: l.Head(), Events: 8,
		Picks: []ledger.AuditedPick{{
			KeyAssignment: round, Pick: pick, Frozen: start.Add(-3 * time.Hour), Start: start, Actor: "builder",
			Voided: start.Add(-2 * time.Hour), Reason: "postponed before the grid was known",
		}},
		Corrections: []ledger.Correction{{
			KeyAssignment: round, Revision: 2, At: start.Add(900 * time.Hour), Actor: "builder", Reason: "leclerc disqualified",
		}},
		Decisions: []ledger.AuditedChange{
			{round, ledger.CalendarChange{Type: ledger.RoundPostponed, At: start.Add(-2 * time.Hour), Actor: "builder", Reason: "flood", Was: start}},
			{round, ledger.CalendarChange{Type: ledger.RoundReinstated, At: start.Add(-time.Hour), Actor: "builder", Reason: "dry", Start: moved}},
		},
		Faults: []ledger.Fault{},
		Noted:  []ledger.Head{{Seq: 3, Hash: l.Files()[2].Hash}},
	}
	must.Equal(t, "with the hash of the first file", 0, len(audit(t, store, l.Files()[0].Hash).Faults))
	got := audit(t, store, l.Files()[2].Hash)
	must.Equal(t, "report", want, got)
	if got, want := got.Picks[0].Margin(), 3*time.Hour; got != want {
		t.Errorf("margin: got %s, want %s", got, want)
	}
}

// Any byte of any file that is changed is found, in the file where it is.
func TestAuditFindsEveryChangedByte(t *testing.T) {
	store := memblob.New()
	must.Do(t, runScript(t.Context(), store))
	for seq := int64(1); seq <= 6; seq++ {
		whole := must.Get(store.Get(t.Context(), ledger.Key(seq), blob.MaxDocument))(t)
		for i := range whole.Data {
			for _, flip := range []byte{0x01, 0x20, 0x80} {
				data := bytes.Clone(whole.Data)
				data[i] ^= flip
				store.Corrupt(ledger.Key(seq), data)
				if _, err := ledger.Audit(t.Context(), store); errors.Is(err, ledger.ErrEarlier) && strings.Contains(err.Error(), ledger.Key(seq)) {
					continue // the byte of the format: the error names the file
				}
				mustBlame(t, audit(t, store), ledger.Key(seq))
			}
		}
		store.Corrupt(ledger.Key(seq), whole.Data)
	}
	mustBeGreen(t, store)
}

// rewrite replaces a file by one that is valid by itself.
func rewrite(t *testing.T, store *memblob.Store, seq int64, edit func(*ledger.File)) {
	t.Helper()
	object := must.Get(store.Get(t.Context(), ledger.Key(seq), blob.MaxDocument))(t)
	f := must.Get(ledger.DecodeFile(object.Data))(t)
	edit(&f)
	data := must.Get(f.Encode())(t)
	store.Corrupt(ledger.Key(seq), data)
}

func TestAuditFindsRewriting(t *testing.T) {
	const freezes = 3 // the file of the freeze in runScript
	otherPick := func(f *ledger.File) {
		f.Events[0].Pick = &ledger.Pick{P1: "x", P2: "y", P3: "z", WinProbability: 1, Model: "m"}
	}
	t.Run("a file in the middle", func(t *testing.T) {
		store := memblob.New()
		must.Do(t, runScript(t.Context(), store))
		rewrite(t, store, freezes, otherPick)
		mustBlame(t, audit(t, store), ledger.Key(freezes+1))
	})
	for name, tamper := range map[string]func(*testing.T, *memblob.Store, ledger.Head){
		"the last file": func(t *testing.T, store *memblob.Store, head ledger.Head) {
			rewrite(t, store, head.Seq, func(f *ledger.File) { f.Events[0].Result.Rows[0].Points = 26 })
		},
		"the last file cut off": func(t *testing.T, store *memblob.Store, head ledger.Head) {
			must.Do(t, store.Delete(t.Context(), ledger.Key(head.Seq)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := memblob.New()
			must.Do(t, runScript(t.Context(), store))
			head := audit(t, store).Head
			tamper(t, store, head)
			mustBeGreen(t, store) // by itself it looks well
			if r := audit(t, store, head.Hash); r.Green() {
				t.Error("a ledger that lost a noted head passed the audit")
			}
		})
	}
}

// plant puts a valid file with events after the head, without asking whether they may be there.
func plant(t *testing.T, store *memblob.Store, at time.Time, events ...ledger.Event) string {
	t.Helper()
	head := audit(t, store).Head
	for i := range events {
		events[i].ID, events[i].At, events[i].Actor = "planted-"+string(rune('a'+i)), at, "mallory"
	}
	data := must.Get(ledger.File{Seq: head.Seq + 1, Previous: head.Hash, Kind: ledger.Real, Events: events}.Encode())(t)
	must.Get(store.Create(t.Context(), ledger.Key(head.Seq+1), data))(t)
	return ledger.Key(head.Seq + 1)
}

// Readers ignore the events of another program that break the rules, and the audit reports them.
func TestBreachesAreIgnoredAndReported(t *testing.T) {
	better := ledger.Pick{P1: "norris", P2: "russell", P3: "piastri", WinProbability: 0.9, Model: "hindsight"}
	for name, c := range map[string]struct {
		frozen bool // a pick was frozen by the rules before
		at     time.Time
		events []ledger.Event
		want   error
	}{
		"a second freeze":          {true, start.Add(-time.Minute), one(ledger.Freeze(monaco, better, start, true)), ledger.ErrAlreadyFrozen},
		"a late freeze":            {false, start.Add(time.Minute), one(ledger.Freeze(monaco, better, start, true)), ledger.ErrStarted},
		"an early live pick":       {true, start.Add(-time.Minute), one(ledger.FreezeLive(monaco, better, start, 50, lap39)), ledger.ErrNotStarted},
		"an early result":          {true, start.Add(-time.Minute), one((&ledger.RoundRecord{Key: monaco}).Verify(rows("norris"), start, "")), ledger.ErrNotStarted},
		"a freeze of nothing":      {false, start.Add(-time.Minute), one(ledger.Event{Type: ledger.PickFrozen, Session: monaco, Start: start}), nil},
		"an event from the future": {true, start.Add(-time.Minute), one(ledger.Event{Type: "rewritten", Session: monaco}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			store := memblob.New()
			l := openWith(t, store)
			if c.frozen {
				mustAppend(t, l, start.Add(-time.Hour), ledger.Freeze(monaco, pick, start, true))
			}
			before := session(t, l.Fold())
			key := plant(t, store, c.at, c.events...)
			must.Get(l.Refresh(t.Context()))(t)
			if diff := cmp.Diff(before, session(t, l.Fold())); diff != "" {
				t.Errorf("readers follow the planted event (-before +after):\n%s", diff)
			}
			breaches := l.Fold().Breaches()
			if len(breaches) != 1 || (c.want != nil && !errors.Is(breaches[0].Err, c.want)) {
				t.Errorf("breaches: got %v, want one, %v", breaches, c.want)
			}
			mustSay(t, audit(t, store), key)
		})
	}
}

func TestAuditMarksExtraFreezes(t *testing.T) {
	store := memblob.New()
	l := openWith(t, store)
	mustAppend(t, l, start.Add(-time.Hour), ledger.Freeze(monaco, pick, start, true))
	plant(t, store, start.Add(-time.Minute), ledger.Freeze(monaco, pick, start, true))
	picks := audit(t, store).Picks
	if len(picks) != 2 || picks[0].Extra || !picks[1].Extra {
		t.Errorf("picks: got %+v, want the second marked as extra", picks)
	}
}

// A round that was put off only after its start had passed can be picked again. That keeps the
// rules, but the audit marks it.
func TestAuditMarksPicksAfterAMissedStart(t *testing.T) {
	store := newStore(t)
	l := openWith(t, store)
	s := session(t, l.Fold())
	late, next := start.Add(10*time.Minute), start.Add(2*time.Hour)
	mustAppend(t, l, late, s.Postpone(start, "rain at the start")...)
	mustAppend(t, l, late, s.Reinstate(next, "rain has stopped"))
	mustAppend(t, l, start.Add(time.Hour), ledger.Freeze(monaco, pick, next, true))
	r := audit(t, store)
	if !r.Green() || len(r.Picks) != 1 || !r.Picks[0].Late {
		t.Errorf("got faults %v and picks %+v, want no fault and one pick marked late", r.Faults, r.Picks)
	}
}

// The last pick of the ledger counts again if its round gets back the start that it had. A cancellation voids it again.
func TestAuditOfARestoredPick(t *testing.T) {
	store := newStore(t)
	l := openWith(t, store)
	var s ledger.RoundRecord
	freezeAndCancel := func(at time.Time) {
		mustAppend(t, l, at, ledger.Freeze(monaco, pick, start, true))
		s = session(t, l.Fold())
		mustAppend(t, l, at, s.Cancel("flood")...)
	}
	freezeAndCancel(start.Add(-4 * time.Hour))
	mustAppend(t, l, start.Add(-3*time.Hour), s.Reinstate(time.Time{}, "dry"))
	freezeAndCancel(start.Add(-3 * time.Hour))
	mustAppend(t, l, start.Add(-3*time.Hour), ledger.Freeze(2026007, pick, start, true))
	mustAppend(t, l, start.Add(2*time.Hour), s.Reinstate(start, "it was held"))
	r := audit(t, store)
	if !r.Green() || len(r.Picks) != 3 || r.Picks[0].Voided.IsZero() || !r.Picks[1].Voided.IsZero() || r.Picks[1].Reason != "" || r.Picks[1].Late {
		t.Errorf("got faults %v and picks %+v, want a second pick that counts", r.Faults, r.Picks)
	}
	s = session(t, l.Fold())
	must.Equal(t, "the instant of the pick that counts", r.Picks[1].Frozen, s.Pick.FrozenAt)
	mustAppend(t, l, start.Add(3*time.Hour), s.Cancel("it was not")...)
	must.Equal(t, "the end of the second pick", start.Add(3*time.Hour), audit(t, store).Picks[1].Voided)
}

func TestAuditOfOtherThings(t *testing.T) {
	t.Run("nothing", func(t *testing.T) {
		mustSay(t, audit(t, newStore(t)), ledger.Key(1))
	})
	t.Run("a foreign file", func(t *testing.T) {
		store := newStore(t)
		l := openWith(t, store)
		must.Get(store.Create(t.Context(), "ledger/3.json", []byte("{}")))(t)
		mustSay(t, audit(t, store), "ledger/3.json")
		must.Succeed(t, "a reader stumbles over it", must.Err(l.Refresh(t.Context())))
	})
	t.Run("a hole", func(t *testing.T) {
		store := memblob.New()
		must.Do(t, runScript(t.Context(), store))
		must.Do(t, store.Delete(t.Context(), ledger.Key(4)))
		r := audit(t, store)
		mustSay(t, r, ledger.Key(4))
		if r.Head.Seq != 3 {
			t.Errorf("head: got file %d, want 3, the last before the hole", r.Head.Seq)
		}
		store.Corrupt(ledger.Key(2), nil)
		must.Equal(t, "faults of a ledger that is damaged before the hole", 1, len(audit(t, store).Faults))
	})
	t.Run("a cancellation that leaves its pick", func(t *testing.T) {
		store := memblob.New()
		mustAppend(t, openWith(t, store), opened, ledger.Freeze(monaco, pick, start, true))
		key := plant(t, store, opened, ledger.Event{Type: ledger.RoundCancelled, Session: monaco, Reason: "flood"})
		mustSay(t, audit(t, store), key)
	})
	t.Run("an event twice", func(t *testing.T) {
		store := memblob.New()
		openWith(t, store)
		plant(t, store, opened, keyEvent(2026009, 2026, "spain"))
		mustBlame(t, func() ledger.Findings {
			plant(t, store, opened, keyEvent(2026010, 2026, "austria"))
			return audit(t, store)
		}(), ledger.Key(4))
	})
	t.Run("two kinds", func(t *testing.T) {
		store := memblob.New()
		openWith(t, store)
		rewrite(t, store, 2, func(f *ledger.File) { f.Kind = ledger.Simulated })
		mustSay(t, audit(t, store), ledger.Key(2))
	})
	t.Run("time runs backwards", func(t *testing.T) {
		store := memblob.New()
		openWith(t, store)
		rewrite(t, store, 2, func(f *ledger.File) { f.Events[0].At = opened.Add(-1) })
		backwards := audit(t, store)
		rewrite(t, store, 2, func(f *ledger.File) {
			f.Events = slices.Concat(f.Events, f.Events)
			f.Events[0].At, f.Events[1].At = opened, opened.Add(1)
		})
		backwards.Faults = append(backwards.Faults, audit(t, store).Faults...) // of a file with two instants
		mustSay(t, backwards, ledger.Key(2))
	})
}
