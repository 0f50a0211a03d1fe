package auditlog_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gridcast/builder/auditlog"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

func nothing() error { return nil }

func TestDoAnnouncesTheChange(t *testing.T) {
	store := memblob.New()
	log := load(t, store)
	change := auditlog.Change{Actor: "operator:anna", Action: auditlog.Rollback, Subject: "12", Reason: "wrong grid"}
	err := log.Do(t.Context(), change, func() error {
		if n := len(load(t, store).Entries()); n != 1 {
			t.Errorf("got %d entries while the change is made, want 1", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	e := load(t, store).Entries()[0]
	got := auditlog.Change{Actor: e.Actor, Action: e.Action, Subject: e.Subject, Reason: e.Reason}
	if got != change || e.At.IsZero() {
		t.Errorf("got %+v, want %+v with an instant", e, change)
	}
}

func TestDoNotesAFailure(t *testing.T) {
	log := load(t, memblob.New())
	failure := errors.New("held")
	ctx, cancel := context.WithCancel(t.Context())
	err := log.Do(ctx, auditlog.Change{Actor: "a", Action: auditlog.Rebuild}, func() error {
		cancel() // what made it fail must not keep it from being noted
		return failure
	})
	if !errors.Is(err, failure) {
		t.Errorf("got error %v, want %v", err, failure)
	}
	entries := log.Entries()
	if len(entries) != 2 || entries[1].Action != auditlog.Failed || entries[1].Of != 1 || entries[1].Reason != "held" {
		t.Errorf("got %+v, want the change and its failure", entries)
	}
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
			err := log.Do(t.Context(), auditlog.Change{Actor: "a", Action: auditlog.RevokeKey}, func() error { done = true; return nil })
			if !errors.Is(err, tt.want) || done != (tt.want == nil) {
				t.Errorf("got error %v and done %v, want error %v", err, done, tt.want)
			}
			want := 0
			if done {
				want = 1
			}
			if n := len(load(t, store).Entries()); n != want {
				t.Errorf("got %d entries, want %d", n, want)
			}
		})
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
				c := auditlog.Change{Actor: strconv.Itoa(w), Action: auditlog.RunJob, Subject: strconv.Itoa(i)}
				if err := log.Do(t.Context(), c, nothing); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, e := range load(t, store).Entries() {
		seen[e.Actor+"/"+e.Subject] = true
	}
	if len(seen) != writers*each {
		t.Errorf("got %d different entries, want %d", len(seen), writers*each)
	}
}

func TestDamageShows(t *testing.T) {
	whole := memblob.New()
	log := load(t, whole)
	for i := range 3 {
		c := auditlog.Change{Actor: "a", Action: auditlog.Rebuild, Reason: fmt.Sprint("reason ", i)}
		if err := log.Do(t.Context(), c, nothing); err != nil {
			t.Fatal(err)
		}
	}
	for name, change := range map[string]func(string) string{
		"reason changed": func(s string) string { return strings.Replace(s, "reason 1", "reason 7", 1) },
		"field added":    func(s string) string { return strings.Replace(s, `"seq"`, `"more":1,"seq"`, 1) },
		"renumbered":     func(s string) string { return strings.Replace(s, `"seq":2`, `"seq":3`, 1) },
		"spaced":         func(s string) string { return s + " " },
	} {
		t.Run(name, func(t *testing.T) {
			damaged := memblob.New()
			for seq := range int64(3) {
				key := auditlog.Key(seq + 1)
				object, err := whole.Get(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				text := string(object.Data)
				if seq == 1 {
					text = change(text)
				}
				if _, err := damaged.Create(t.Context(), key, []byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			_, err := auditlog.Load(t.Context(), damaged)
			var damage *auditlog.DamageError
			if !errors.As(err, &damage) {
				t.Errorf("got %v, want a DamageError", err)
			}
		})
	}
}

func load(t *testing.T, store blob.Store) *auditlog.Log {
	t.Helper()
	log, err := auditlog.Load(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	return log
}
