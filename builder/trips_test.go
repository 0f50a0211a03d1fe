package builder_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/ledger"
	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/chain"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

// A build asks the store for nothing twice: for archive, settings, pointer and ledger before it writes, and
// for derived documents before it publishes.
func TestBuildTrips(t *testing.T) {
	w := newWeekend(t, asItWas)
	before := austriaQualified.Add(-time.Hour)
	build(t, w.builder(), before)

	var mu sync.Mutex
	calls := map[faultblob.Call]int{}
	counting := faultblob.Wrap(w.Store, func(_ context.Context, call faultblob.Call) faultblob.Fate {
		mu.Lock()
		defer mu.Unlock()
		if strings.HasPrefix(call.Key, snapshots.DerivedFolder) {
			call.Key = "what is derived"
		}
		calls[call]++
		return faultblob.Fate{}
	})
	b := w.builder()

	b.Ledger = must.Get(ledger.Load(t.Context(), counting, ledger.Simulated))(t)
	b.Store = counting
	build(t, b, before)
	clear(calls)

	if outcome := build(t, b, before); !outcome.Unchanged {
		t.Fatalf("got %+v, want nothing to do", outcome)
	}
	head := b.Ledger.Head().Seq
	get := func(key string) faultblob.Call { return faultblob.Call{Op: faultblob.Get, Key: key} }
	want := map[faultblob.Call]int{
		get("settings.json"): 1, get("copies/settings.json"): 1, get(snapshots.PointerKey): 1, get(ledgerKey(head + 1)): 1, get("what is derived"): 1,
	}
	must.Equal(t, "a build that finds nothing to do", want, calls)
	clear(calls)

	outcome := build(t, b, austriaQualified)
	must.Require(t, len(outcome.Events) == 1 && !outcome.Unchanged, "got %+v, want a pick frozen and published", outcome)
	for key, most := range map[string]int{
		"settings.json": 1, snapshots.PointerKey: 2, ledgerKey(head + 1): 1, ledgerKey(head + 2): 0, // the pointer is read back
		snapshots.ManifestKey(outcome.Version - 1): 0, "what is derived": 1,
	} {
		n := calls[get(key)]
		must.Hold(t, n <= most, "a build that freezes a pick reads %s %d times, want %d", key, n, most)
	}
}

func ledgerKey(seq int64) string { return chain.Chain{Prefix: ledger.Prefix}.Key(seq) }

// A pick is frozen in time even if the current version cannot be read. A damaged pointer is replaced.
func TestFreezeOnADamagedBase(t *testing.T) {
	for _, silent := range []bool{true, false} {
		w := newWeekend(t, asItWas)
		build(t, w.builder(), austriaQualified.Add(-time.Hour))
		w.Store.(*memblob.Store).Corrupt(snapshots.PointerKey, []byte("{"))
		b := w.builder()
		b.Store = faultblob.Wrap(w.Store, func(_ context.Context, call faultblob.Call) faultblob.Fate {
			if silent && call.Key == snapshots.PointerKey {
				return faultblob.Fate{Err: errors.New("no answer")}
			}
			return faultblob.Fate{}
		})
		outcome, err := b.Build(t.Context(), builder.Request{At: austriaQualified})
		if (err != nil) != silent || len(outcome.Events) != 1 || w.round().Pick == nil {
			t.Errorf("silent %t: got %+v, %v; want the pick frozen, and an error if the pointer is silent", silent, outcome.Events, err)
		}
		if !silent && (outcome.Version != 2 || len(outcome.Damage) != 1) {
			t.Errorf("damaged pointer: got version %d and damage %q, want version 2 on the pointer written again", outcome.Version, outcome.Damage)
		}
	}
}

// TestHealAgain: files whose turn of being read back came while the store did not answer are read with the next build.
func TestHealAgain(t *testing.T) {
	w := newWeekend(t, asItWas)
	before := austriaQualified.Add(-time.Hour)
	build(t, w.builder(), before)
	var mu sync.Mutex
	silent, read := true, map[string]bool{}
	b := w.builder()
	b.Store = faultblob.Wrap(w.Store, func(_ context.Context, call faultblob.Call) faultblob.Fate {
		mu.Lock()
		defer mu.Unlock()
		object := call.Op == faultblob.Get && strings.HasPrefix(call.Key, "objects/")
		if object {
			read[call.Key] = true
		}
		if object && silent {
			return faultblob.Fate{Err: errors.New("no answer")}
		}
		return faultblob.Fate{}
	})
	b.HealedAt(time.Now().Add(-24 * time.Hour)) // so that it is the turn of every file
	build(t, b, before)
	tried := maps.Clone(read)
	must.Require(t, len(tried) > 0, "no file was read back")
	clear(read)
	silent = false
	build(t, b, before)
	for key := range tried {
		must.Hold(t, read[key], "%s is not read again", key)
	}
}

// TestLaterArchive: another process puts a later archive into use and publishes it, after a build has read the earlier one.
// The build is of the later one.
func TestLaterArchive(t *testing.T) {
	for _, before := range []string{"it reads the current version", "it swaps the pointer"} {
		w := newWeekend(t, asItWas)
		build(t, w.builder(), austriaQualified.Add(-time.Hour))
		b, other, later := w.builder(), w.builder(), archivetest.Stored(t, altered(t, withoutGrid).Facts())
		var once, first sync.Once
		loaded, load := make(chan struct{}), b.Facts
		b.Facts = func(ctx context.Context) (archive.Stored, error) {
			stored, err := load(ctx)
			once.Do(func() { close(loaded) })
			return stored, err
		}
		publish := func() {
			first.Do(func() {
				<-loaded
				w.Use(later)
				build(t, other, austriaQualified)
			})
		}
		request := builder.Request{At: austriaQualified}
		if before == "it swaps the pointer" {
			request.Progress = func(phase string, _, _ int) {
				if phase == snapshots.Upload {
					publish()
				}
			}
		} else {
			b.Store = faultblob.Wrap(w.Store, func(_ context.Context, call faultblob.Call) faultblob.Fate {
				if call.Op == faultblob.Get && call.Key == snapshots.PointerKey {
					publish()
				}
				return faultblob.Fate{}
			})
		}
		must.Get(b.Build(t.Context(), request))(t)
		m := must.Get(snapshots.LoadBase(t.Context(), w.Store, nil))(t).Manifest
		must.Hold(t, m.Archive == later.SHA256, "before %s: version %d is of the archive %.8s, want the later one, %.8s", before, m.Version, m.Archive, later.SHA256)
	}
}

// TestOvertakenBeforeTheBase: another builder, whose clock is ahead, publishes after a build has begun and before it has
// read the current version. The build is then of the other's instant.
func TestOvertakenBeforeTheBase(t *testing.T) {
	w := newWeekend(t, asItWas)
	before := austriaQualified.Add(-time.Hour)
	build(t, w.builder(), before)
	other := w.builder()
	var overtake sync.Once
	b := w.builder()
	b.Store = faultblob.Wrap(w.Store, func(_ context.Context, call faultblob.Call) faultblob.Fate {
		if call.Op == faultblob.Get && call.Key == snapshots.PointerKey {
			overtake.Do(func() { build(t, other, austriaQualified.Add(time.Second)) })
		}
		return faultblob.Fate{}
	})
	outcome := build(t, b, austriaQualified)
	base := must.Get(snapshots.LoadBase(t.Context(), w.Store, nil))(t)
	if got := base.Manifest.BuiltAt; outcome.Version < 2 || !got.Equal(austriaQualified.Add(time.Second)) {
		t.Errorf("got version %d of %s, want the instant of the other builder", outcome.Version, got)
	}
	must.Fail(t, "a later build of an earlier instant", must.Err(b.Build(t.Context(), builder.Request{At: austriaQualified})), snapshots.ErrMayNotFollow)
}
