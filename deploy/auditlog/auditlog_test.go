package auditlog_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gridcast/deploy/auditlog"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/chain"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

func nothing() error { return nil }

// key is the store key of an entry.
func key(seq int64) string { return chain.Chain{Prefix: auditlog.Prefix}.Key(seq) }

func TestDoAnnouncesTheChange(t *testing.T) {
	store := memblob.New()
	log := load(t, store)
	change := auditlog.Intent{Actor: "operator:anna", Action: auditlog.Rollback, Subject: "12", Reason: "wrong grid"}
	must.Do(t, log.Do(t.Context(), change, func() error {
		must.Equal(t, "entries while the change is made", 1, len(load(t, store).Entries()))
		return nil
	}))
	e := load(t, store).Entries()[0]
	got := auditlog.Intent{Actor: e.Actor, Action: e.Action, Subject: e.Subject, Reason: e.Reason}
	must.Hold(t, got == change && !e.At.IsZero(), "got %+v, want %+v with an instant", e, change)
}

func TestDoNotesAFailure(t *testing.T) {
	log := load(t, memblob.New())
	failure := errors.New("held")
	ctx, cancel := context.WithCancel(t.Context())
	err := log.Do(ctx, auditlog.Intent{Actor: "a", Action: auditlog.Rebuild}, func() error {
		cancel() // the failure is recorded, although the context ended
		return failure
	})
	must.Hold(t, errors.Is(err, failure), "got error %v, want %v", err, failure)
	entries := log.Entries()
	must.Hold(t, len(entries) == 2 && entries[1].Action == auditlog.Failed && entries[1].Of == 1 && entries[1].Reason == "held",
		"got %+v, want the change and its failure", entries)
}

func TestWriteThatFails(t *testing.T) {
	refused := errors.New("disk full")
	for name, tt := range map[string]struct {
		fate faultblob.Fate
		want error
	}{
		"refused":                   {faultblob.Fate{Err: refused}, refused},
		"done, but the answer lost": {faultblob.Fate{Err: blob.ErrUnknown, Applied: true}, nil},
		"neither done nor answered": {faultblob.Fate{Err: blob.ErrUnknown}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var failed atomic.Bool
			store := faultblob.Wrap(memblob.New(), func(_ context.Context, c faultblob.Call) faultblob.Fate {
				if c.Op == faultblob.Create && !failed.Swap(true) {
					return tt.fate
				}
				return faultblob.Fate{}
			})
			log := load(t, store)
			done := false
			err := log.Do(t.Context(), auditlog.Intent{Actor: "a", Action: auditlog.RevokeKey}, func() error { done = true; return nil })
			must.Hold(t, errors.Is(err, tt.want) && done == (tt.want == nil), "got error %v and done %v, want error %v", err, done, tt.want)
			want := 0
			if done {
				want = 1
			}
			must.Equal(t, "entries", want, len(load(t, store).Entries()))
		})
	}
}

// TestPruneMakesRoomForItsLine prunes on a full disk. Only a prune is performed there, and recorded afterwards.
func TestPruneMakesRoomForItsLine(t *testing.T) {
	for _, action := range []auditlog.Verb{auditlog.Prune, auditlog.CreateKey} {
		full := true
		store := faultblob.Wrap(memblob.New(), func(_ context.Context, c faultblob.Call) faultblob.Fate {
			if c.Op == faultblob.Create && full {
				return faultblob.Fate{Err: syscall.ENOSPC}
			}
			return faultblob.Fate{}
		})
		log, err := auditlog.Load(t.Context(), store)
		must.Do(t, err)
		err = log.Do(t.Context(), auditlog.Intent{Actor: "operator:anna", Action: action}, func() error {
			full = false
			return nil
		})
		lines := len(log.Entries())
		if pruned := action == auditlog.Prune; pruned != (err == nil && lines == 1 && !full) || !pruned && (lines != 0 || !full) {
			t.Errorf("%s on a full disk: got %v, %d lines, still full %t", action, err, lines, full)
		}
	}
}

func TestManyWriters(t *testing.T) {
	store := memblob.New()
	const writers, each = 4, 25
	var wg sync.WaitGroup
	for w := range writers {
		log := load(t, store)
		wg.Go(func() {
			for i := range each {
				c := auditlog.Intent{Actor: strconv.Itoa(w), Action: auditlog.RunJob, Subject: strconv.Itoa(i)}
				must.Succeed(t, "Do", log.Do(t.Context(), c, nothing))
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, e := range load(t, store).Entries() {
		seen[e.Actor+"/"+e.Subject] = true
	}
	must.Hold(t, len(seen) == writers*each, "got %d different entries, want %d", len(seen), writers*each)
}

// three is a log of three entries, the reasons of which are "reason 0" to "reason 2".
func three(t *testing.T) *memblob.Store {
	t.Helper()
	store := memblob.New()
	log := load(t, store)
	for i := range 3 {
		c := auditlog.Intent{Actor: "a", Action: auditlog.Rebuild, Reason: fmt.Sprint("reason ", i)}
		must.Do(t, log.Do(t.Context(), c, nothing))
	}
	return store
}

// An operator can revoke a key in spite of damaged files. The log records the damage once, with the hash of the
// damaged bytes.
func TestLogGoesOnAfterDamage(t *testing.T) {
	broken := errors.New("bad sector")
	edit := func(seq int64, change func(string) string) func(*testing.T, *memblob.Store) blob.Store {
		return func(t *testing.T, store *memblob.Store) blob.Store {
			object := must.Get(store.Get(t.Context(), key(seq), blob.MaxDocument))(t)
			changed := change(string(object.Data))
			must.Require(t, changed != string(object.Data), "the case changes nothing")
			store.Corrupt(key(seq), []byte(changed))
			return store
		}
	}
	remove := func(seq int64) func(*testing.T, *memblob.Store) blob.Store {
		return func(t *testing.T, store *memblob.Store) blob.Store {
			must.Do(t, store.Delete(t.Context(), key(seq)))
			return store
		}
	}
	for name, tt := range map[string]struct {
		do      func(*testing.T, *memblob.Store) blob.Store
		damaged string // the key that is named
		unread  bool   // there are no bytes to quote
		entries int    // that can still be read
	}{
		"the first cut":     {do: edit(1, func(s string) string { return s[:len(s)/2] }), damaged: key(1), entries: 2},
		"the last cut":      {do: edit(3, func(s string) string { return s[:len(s)/2] }), damaged: key(3), entries: 2},
		"the last empty":    {do: edit(3, func(string) string { return "" }), damaged: key(3), entries: 2},
		"a field added":     {do: edit(2, func(s string) string { return strings.Replace(s, `"seq"`, `"more":1,"seq"`, 1) }), damaged: key(2), entries: 2},
		"renumbered":        {do: edit(2, func(s string) string { return strings.Replace(s, `"seq":2`, `"seq":3`, 1) }), damaged: key(2), entries: 2},
		"spaced":            {do: edit(2, func(s string) string { return s + " " }), damaged: key(2), entries: 2},
		"a reason changed":  {do: edit(2, func(s string) string { return strings.Replace(s, "reason 1", "reason 7", 1) }), damaged: key(3), entries: 3},
		"one missing":       {do: remove(2), damaged: key(3), unread: true, entries: 1},
		"the first missing": {do: remove(1), damaged: key(2), unread: true, entries: 0},
		"a stray number": {
			do: func(t *testing.T, store *memblob.Store) blob.Store {
				must.Get(store.Create(t.Context(), key(99_999_999), []byte("{}")))(t)
				return store
			},
			damaged: key(99_999_999), unread: true, entries: 3,
		},
		"one without end": {do: edit(2, func(s string) string { return s + strings.Repeat(" ", blob.MaxDocument) }), damaged: key(2), unread: true, entries: 2},
		"one unreadable": {
			do: func(_ *testing.T, store *memblob.Store) blob.Store {
				return faultblob.Wrap(store, func(_ context.Context, c faultblob.Call) faultblob.Fate {
					if c == (faultblob.Call{Op: faultblob.Get, Key: key(2)}) {
						return faultblob.Fate{Err: broken}
					}
					return faultblob.Fate{}
				})
			},
			damaged: key(2), unread: true, entries: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := tt.do(t, three(t))
			log := load(t, store)
			damage := log.Damage()
			must.Require(t, len(damage) == 1 && damage[0].Key == tt.damaged && (damage[0].SHA256 == "") == tt.unread,
				"damage: got %v, want one at %s", damage, tt.damaged)
			got := len(log.Entries())
			must.Hold(t, got == tt.entries, "%d entries can be read, want %d", got, tt.entries)
			for i := range 2 {
				revoked := false
				c := auditlog.Intent{Actor: "operator:anna", Action: auditlog.RevokeKey, Subject: fmt.Sprint("leaked ", i)}
				if err := load(t, store).Do(t.Context(), c, func() error { revoked = true; return nil }); err != nil || !revoked {
					t.Fatalf("revoke: got %t, %v", revoked, err)
				}
			}
			again := load(t, store)
			var notes []auditlog.AuditLine
			revoked := map[string]bool{}
			for _, e := range again.Entries() {
				switch e.Action {
				case auditlog.DamageFound:
					if e.Subject == tt.damaged {
						notes = append(notes, e)
					}
				case auditlog.RevokeKey:
					revoked[e.Subject] = true
				}
			}
			must.Hold(t, len(revoked) == 2, "the log has %d revocations, want 2", len(revoked))
			if len(notes) != 1 || notes[0].Damaged != damage[0].SHA256 || notes[0].Actor != auditlog.Recorder || notes[0].Reason == "" {
				t.Errorf("notes of the damage: got %+v, want one that quotes %q", notes, damage[0].SHA256)
			}
			files, rest, err := chain.Chain{Store: store, Prefix: auditlog.Prefix}.Load(t.Context())
			must.Require(t, err == nil && len(files) >= 3, "got %d files, rest %+v, %v", len(files), rest, err)
		})
	}
}

// A second change of a damaged file shows, because its hash differs from the recorded one.
func TestSecondDamageOfOneFileIsNoted(t *testing.T) {
	store := three(t)
	for i, text := range []string{"cut", "cut again"} {
		store.Corrupt(key(1), []byte(text))
		must.Do(t, load(t, store).Do(t.Context(), auditlog.Intent{Actor: "a", Action: auditlog.Rebuild}, nothing))
		noted := map[string]bool{}
		for _, e := range load(t, store).Entries() {
			if e.Action == auditlog.DamageFound {
				noted[e.Damaged] = true
			}
		}
		must.Hold(t, len(noted) == i+1 && noted[chain.Hash([]byte(text))], "after %q: noted %v", text, noted)
	}
}

// A process that runs on while a file is damaged behind its back goes on too.
func TestRunningLogMeetsDamage(t *testing.T) {
	store := three(t)
	running := load(t, store)
	must.Do(t, load(t, store).Do(t.Context(), auditlog.Intent{Actor: "b", Action: auditlog.Rebuild}, nothing))
	store.Corrupt(key(4), make([]byte, blob.MaxDocument+1))
	must.Do(t, running.Do(t.Context(), auditlog.Intent{Actor: "a", Action: auditlog.RevokeKey}, nothing))
	got := running.Damage()
	must.Hold(t, len(got) == 1 && got[0].Key == key(4), "damage: got %v, want file 4", got)
}

// The log goes on after another process's unreadable file. A store that cannot be read at all is an error.
func TestRunningLogMeetsAnUnreadableFile(t *testing.T) {
	inner, down := three(t), errors.New("bad sector")
	var bad atomic.Value
	bad.Store("")
	store := faultblob.Wrap(inner, func(_ context.Context, c faultblob.Call) faultblob.Fate {
		if key := bad.Load(); c.Key == key && c.Op == faultblob.Get || key == "all" {
			return faultblob.Fate{Err: down}
		}
		return faultblob.Fate{}
	})
	running := load(t, store)
	must.Do(t, load(t, inner).Do(t.Context(), auditlog.Intent{Actor: "b", Action: auditlog.Rebuild}, nothing))
	revoke := auditlog.Intent{Actor: "a", Action: auditlog.RevokeKey}
	bad.Store("all")
	must.Fail(t, "a store that is down", running.Do(t.Context(), revoke, nothing), down)
	bad.Store(key(4))
	err := running.Do(t.Context(), revoke, nothing)
	must.Require(t, err == nil, "file 4 is unreadable: %v", err)
	got := running.Damage()
	must.Hold(t, len(got) == 1 && got[0].Key == key(4), "damage: got %v, want file 4", got)
	if e := running.Entries(); e[len(e)-1].Seq != 6 || e[len(e)-1].Action != auditlog.RevokeKey {
		t.Errorf("the last entry is %+v, want the revocation behind file 4 and the note of it", e[len(e)-1])
	}
	if got := load(t, inner).Damage(); len(got) > 0 {
		t.Errorf("when it can be read again: damage %v, want none", got)
	}
}

func TestTextsArePrintable(t *testing.T) {
	store := memblob.New()
	log := load(t, store)
	for name, c := range map[string]auditlog.Intent{
		"an escape in the reason":    {Actor: "a", Action: auditlog.Rebuild, Reason: "\x1b[2J"},
		"a bell in the subject":      {Actor: "a", Action: auditlog.RevokeKey, Subject: "key\a"},
		"a line break in the actor":  {Actor: "a\nb", Action: auditlog.Rebuild},
		"bytes that are not UTF-8":   {Actor: "a", Action: auditlog.Rebuild, Reason: "caf\xe9"},
		"text written right to left": {Actor: "a", Action: auditlog.Rebuild, Reason: "\u202eabc"},
		"a reason without end":       {Actor: "a", Action: auditlog.Rebuild, Reason: strings.Repeat("a", chain.MaxText+1)},
	} {
		must.Fail(t, fmt.Sprintf("%s was accepted", name), log.Do(t.Context(), c, func() error { t.Errorf("%s: done", name); return nil }))
	}
	fine := auditlog.Intent{Actor: "operator:Jörg", Action: auditlog.Rebuild, Reason: "Überschwemmung & <Schlamm>"}
	long := errors.New("one\ntwo\x1b " + strings.Repeat("ü", chain.MaxText))
	err := log.Do(t.Context(), fine, func() error { return long })
	must.Require(t, errors.Is(err, long), "got %v", err)
	entries := load(t, store).Entries()
	must.Hold(t, len(entries) == 2 && strings.HasPrefix(entries[1].Reason, "one two  ü") && len(entries[1].Reason) <= chain.MaxText,
		"got %+v, want the change and its failure on one line", entries)
}

// The bytes of a line never change.
func TestFileBytes(t *testing.T) {
	const old = `{"seq":1,"previous":"","id":"A1","at":"2026-06-01T09:00:00Z","actor":"operator:anna","action":"rollback","subject":"12","reason":"wrong <grid>"}`
	store := memblob.New()
	must.Get(store.Create(t.Context(), key(1), []byte(old)))(t)
	log := load(t, store)
	if len(log.Damage()) > 0 || len(log.Entries()) != 1 || log.Entries()[0].Reason != "wrong <grid>" {
		t.Fatalf("got %+v, damage %v", log.Entries(), log.Damage())
	}
	must.Do(t, log.Do(t.Context(), auditlog.Intent{Actor: "operator:anna", Action: auditlog.Rollback, Subject: "12", Reason: "wrong <grid>"}, func() error { return nil }))
	e := log.Entries()[1]
	object := must.Get(store.Get(t.Context(), key(2), blob.MaxDocument))(t)
	want := strings.NewReplacer(`"seq":1`, `"seq":2`, `"previous":""`, `"previous":"`+chain.Hash([]byte(old))+`"`,
		`"A1"`, `"`+e.ID+`"`, "2026-06-01T09:00:00Z", e.At.Format(time.RFC3339Nano)).Replace(old)
	must.Equal(t, "the stored entry", want, string(object.Data))
}

func load(t *testing.T, store blob.Store) *auditlog.Log {
	t.Helper()
	return must.Get(auditlog.Load(t.Context(), store))(t)
}

// A process is killed at each of its writes in turn: of the notes of a damage, of an announced
// change, of its failure. No change is made that the log does not have, and the next process goes
// on with a log that is no worse than before.
func TestCrashAtEveryWrite(t *testing.T) {
	const writes = 4 // the note of the damage, two changes, and the failure of the second
	for _, applied := range []bool{false, true} {
		for n := 1; n <= writes+1; n++ {
			t.Run(fmt.Sprintf("write %d, applied %v", n, applied), func(t *testing.T) {
				inner := three(t)
				inner.Corrupt(key(2), []byte("{"))
				var made []string
				failure := errors.New("the change failed")
				store, _ := faultblob.Mortal(inner, n, applied)
				log := load(t, store)
				do := func(subject string, err error) error {
					c := auditlog.Intent{Actor: "a", Action: auditlog.RevokeKey, Subject: subject}
					return log.Do(t.Context(), c, func() error { made = append(made, subject); return err })
				}
				first, second := do("one", nil), do("two", failure)
				must.Hold(t, (first == nil) == (n > 2) && errors.Is(second, failure) == (n > 3), "got %v and %v", first, second)

				log = load(t, inner)
				has := map[string]bool{}
				for _, e := range log.Entries() {
					has[e.Subject] = true
				}
				for _, subject := range made {
					must.Hold(t, has[subject], "change %s was made, and the log does not have it", subject)
				}
				if err := do("three", nil); err != nil {
					t.Fatalf("the next process: %v", err)
				}
				log = load(t, inner)
				notes := 0
				for _, e := range log.Entries() {
					if e.Action == auditlog.DamageFound {
						notes++
					}
				}
				if notes != 1 || len(log.Damage()) != 1 {
					t.Errorf("%d notes of %d damaged files, want 1 of 1: %v", notes, len(log.Damage()), log.Damage())
				}
			})
		}
	}
}

// TestLastBackup checks that a backup that failed does not count, and that the one before it does.
func TestLastBackup(t *testing.T) {
	log := must.Get(auditlog.Load(t.Context(), memblob.New()))(t)
	got := log.LastBackup()
	must.Hold(t, got.At.IsZero(), "an empty log has the backup %+v", got)
	must.Do(t, log.Do(t.Context(), auditlog.Intent{Actor: "operator:anna", Action: auditlog.BackupStore, Subject: "dir:good"}, func() error { return nil }))
	failed := errors.New("no space left")
	if err := log.Do(t.Context(), auditlog.Intent{Actor: "operator:anna", Action: auditlog.BackupStore, Subject: "dir:bad"}, func() error { return failed }); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	if got := log.LastBackup(); got.Subject != "dir:good" || got.At.IsZero() {
		t.Errorf("got the backup %+v, want the one that did not fail", got)
	}
}
