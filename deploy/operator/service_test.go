package operator_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gridcast/builder"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/clock"
	"gridcast/deploy/operator"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

// Who serves what the service publishes is told of it, also of what falls due by itself, and of nothing
// else.
func TestTell(t *testing.T) {
	if testing.Short() {
		t.Skip("short: it renders twenty seasons twice")
	}
	w := belgianWeekend(t)
	clock := &raceTime{}
	clock.set(w.at)
	log := slog.New(slog.DiscardHandler)
	b := &builder.Builder{Store: w.Store, Ledger: w.Ledger, Facts: w.Facts, Log: log, Policy: builder.Policy{Model: predict.GridFrequency()}}
	s := operator.NewService(b, clock, log, prometheus.NewRegistry())
	var one, another atomic.Int64
	s.Tell(func(context.Context) { one.Add(1) }, func(context.Context) { another.Add(1) })
	for _, unchanged := range []bool{false, true} {
		o, err := s.Build(t.Context(), builder.Request{Reason: "test"})
		if err != nil || o.Unchanged != unchanged || o.Base == nil || o.Base.Pointer.Version != 1 {
			t.Fatalf("got %+v, %v; want version 1, unchanged: %t", o, err, unchanged)
		}
		s.WaitTold()
		if one.Load() != 1 || another.Load() != 1 {
			t.Errorf("told %d and %d times, want once each", one.Load(), another.Load())
		}
	}
}

// What nobody waits for begins when everybody has what they wait for.
func TestAttend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		s := operator.NewService(&builder.Builder{Store: memblob.New(), Log: log}, clock.System(), log, prometheus.NewRegistry())
		var derived atomic.Int64
		s.DeriveWith(func() { derived.Add(1) })
		first, second := s.Hold(), s.Hold()
		done := make(chan error, 1)
		go func() { done <- s.Derive(t.Context()) }()
		for _, over := range []func(){first, first} { // one that is over twice counts once
			over()
			synctest.Wait()
			if derived.Load() > 0 {
				t.Fatal("title odds are made while somebody waits to be served")
			}
		}
		second()
		if err := <-done; err != nil || derived.Load() != 1 {
			t.Errorf("derived %d times, %v; want once when nobody waits any more", derived.Load(), err)
		}
		if err := s.Derive(t.Context()); err != nil || derived.Load() != 2 {
			t.Errorf("derived %d times, %v; want at once where nobody waits", derived.Load(), err)
		}

		// A service that stops does not wait for it.
		defer s.Hold()()
		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- s.Derive(ctx) }()
		synctest.Wait()
		cancel()
		if err := <-done; err != nil || derived.Load() != 2 {
			t.Errorf("after the stop: derived %d times, %v; want 2 and no error", derived.Load(), err)
		}
	})
}

// Between the yes of an operator and the ledger lie as many round trips to the store as their order needs:
// the ledger is read, the audit log is written, the ledger is written. The store takes a
// second of the bubble's time to answer.
func TestVerifyTrips(t *testing.T) {
	w := belgianWeekend(t) // outside of the bubble: what packs and unpacks archives is shared with other tests
	w.at = belgiumStart.Add(24 * time.Hour)
	facts, err := w.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		slow := faultblob.Wrap(w.Store, func(context.Context, faultblob.Call) faultblob.Fate {
			time.Sleep(time.Second)
			return faultblob.Fate{}
		})
		if w.Ledger, err = ledger.Load(t.Context(), slow, ledger.Simulated); err != nil {
			t.Fatal(err)
		}
		if w.Audit, err = auditlog.Load(t.Context(), slow); err != nil {
			t.Fatal(err)
		}
		w.Store, w.Facts = slow, func(context.Context) (builder.StoredArchive, error) { return facts, nil }
		p := w.preview(t, operator.VerifyResult(belgium))
		began := time.Now()
		done := must(t, w.Operator, operator.VerifyResult(belgium), operator.Request{Seen: p.Seen})
		if got := time.Since(began); got != 3*time.Second {
			t.Errorf("%d round trips, want 3", got/time.Second)
		}
		if done.Round.Result == nil || done.Unpublished == "" {
			t.Errorf("got %+v, want it verified and to be published", done)
		}
	})
}
