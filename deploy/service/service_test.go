package service_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gridcast/builder"
	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/assemble"
	"gridcast/builder/ledger"
	"gridcast/builder/testseason"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/deploy/operator"
	"gridcast/deploy/service"
	"gridcast/scheduler/webhook"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/clock"
)

// belgianWeekend returns a service that logs to w, without a build, and its metrics. Its clock, which the
// caller may set, says an hour before Belgium 2024.
func belgianWeekend(t *testing.T, w io.Writer) (*service.Service, *raceTime, *prometheus.Registry) {
	t.Helper()
	start := time.Date(2024, 7, 28, 13, 0, 0, 0, time.UTC)
	clock := &raceTime{}
	clock.set(start.Add(-time.Hour))
	log, registry := slog.New(slog.NewTextHandler(w, nil)), prometheus.NewRegistry()
	b := testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Opened: start.AddDate(0, 0, -2)}).Builder
	b.Log = log
	return service.New(b, clock, log, registry), clock, registry
}

// TestOnPublish: the service calls each function once for each new version, and not for an unchanged one. A
// build that publishes while the service stops is no fault.
func TestOnPublish(t *testing.T) {
	must.Long(t, "it builds two seasons twice")
	var log bytes.Buffer
	s, now, _ := belgianWeekend(t, &log)
	var one, another atomic.Int64
	s.OnPublish(func(context.Context) { one.Add(1) }, func(context.Context) { another.Add(1) })
	for _, unchanged := range []bool{false, true} {
		o, err := s.Build(t.Context(), builder.Request{Reason: "test"})
		must.Require(t, err == nil && o.Unchanged == unchanged && o.Base != nil && o.Base.Pointer.Version == 1, "got %+v, %v; want version 1, unchanged: %t", o, err, unchanged)
		s.WaitNotified()
		if one.Load() != 1 || another.Load() != 1 {
			t.Errorf("told %d and %d times, want once each", one.Load(), another.Load())
		}
	}
	s.WithoutDerived()
	must.Do(t, s.Start(t.Context(), nil))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must.Do(t, s.Run(ctx))
	now.pass(now.Now().AddDate(0, 0, 1))
	o, err := s.Build(t.Context(), builder.Request{Reason: "test"})
	s.WaitNotified()
	must.Hold(t, err == nil && o.Version == 2 && one.Load() == 2, "after the jobs stopped: got %+v, %v, told %d times, want version 2", o, err, one.Load())
	must.Hide(t, "the log", log.String(), "level=ERROR")
}

// TestPlansOnChange: the service reads the calendar after a change, after the clock was set back, and else every ten
// seconds.
func TestPlansOnChange(t *testing.T) {
	must.Long(t, "it builds two seasons")
	synctest.Test(t, func(t *testing.T) {
		var plans atomic.Int64 // Arrived is asked once a plan for each round
		s, now, _ := belgianWeekend(t, io.Discard)
		s.CountPlans(&plans)
		s.WithoutDerived()
		must.Do(t, s.Start(t.Context(), nil))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		after := func(wait time.Duration) int64 {
			plans.Store(0)
			must.Advance(wait)
			return plans.Load()
		}
		after(5 * time.Second)
		if n := after(100 * time.Second); n < 9 || n > 11 {
			t.Errorf("in 100 s without a change there are %d plans, want one each ten seconds", n)
		}
		now.pass(now.Now().Add(30 * time.Minute))
		after(15 * time.Second)
		now.pass(now.Now().Add(-10 * time.Minute))
		if n := after(2 * time.Second); n < 1 || n > 2 {
			t.Errorf("in two seconds after the clock was set back there are %d plans, want one", n)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestChangeDuringTheStart: an event that is appended between the first build and the first look at the ledger is published.
func TestChangeDuringTheStart(t *testing.T) {
	must.Long(t, "it renders two seasons")
	synctest.Test(t, func(t *testing.T) {
		season := testseason.New(t, testseason.Config{Stored: testseason.Short(t, testseason.Austria)})
		clock := &raceTime{}
		clock.set(testseason.Austria.Qualified.Add(-time.Hour))
		s := service.New(season.Builder, clock, season.Log, prometheus.NewRegistry())
		s.WithoutDerived()
		must.Do(t, s.Start(t.Context(), nil))
		season.Decide(clock.Now(), testseason.Austria.Key, func(r *almanac.Round) ([]ledger.Event, error) { return r.Postpone("storm") })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		must.Advance(5 * time.Second)
		published := must.Get(snapshots.LoadManifest(t.Context(), season.Store, 0))(t).Ledger.Seq
		must.Hold(t, published == season.Ledger.Head().Seq, "the ledger ends with file %d, and the version has %d", season.Ledger.Head().Seq, published)
		cancel()
		must.Do(t, <-done)
	})
}

// TestClockJumpsDuringABuild: the clock is set back or forward while a build runs. No version is built for an earlier instant
// than the one before. Only a clock that is behind the
// ledger may refuse a build.
func TestClockJumpsDuringABuild(t *testing.T) {
	must.Long(t, "it builds two seasons")
	s, now, _ := belgianWeekend(t, io.Discard)
	jump, jumped := time.Duration(0), 0
	s.DuringBuilds(func() {
		if jump != 0 {
			now.set(now.Now().Add(jump))
			jump = 0
			jumped++
		}
	})
	var last time.Time
	right := now.Now()
	for version, by := range []time.Duration{-30 * time.Minute, 0, 2 * time.Hour, -3 * time.Hour, 0, 0} {
		if by == 0 {
			right = right.Add(4 * time.Hour)
			now.set(right)
		}
		jump = by
		o, err := s.Build(t.Context(), builder.Request{Reason: "test"})
		if err != nil {
			if !now.Now().Before(last) {
				t.Fatalf("build %d, jump by %v: %v", version+1, by, err)
			}
			continue
		}
		if built := o.Base.Manifest.BuiltAt; built.Before(last) {
			t.Errorf("build %d, jump by %v: built for %v, after %v", version+1, by, built, last)
		} else {
			last = built
		}
	}
	must.Hold(t, jumped == 3, "the clock jumped in %d builds, want 3", jumped)
}

// TestHold: background work begins when the last hold is released.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		s := service.New(&builder.Builder{Store: memblob.New(), Log: log}, clock.System(), log, prometheus.NewRegistry())
		var derived atomic.Int64
		s.DeriveWith(func() { derived.Add(1) })
		first, second := s.Hold(), s.Hold()
		done := make(chan error, 1)
		go func() { done <- s.Derive(t.Context()) }()
		for _, release := range []func(){first, first} { // a second release of the same hold does not count
			release()
			synctest.Wait()
			must.Require(t, derived.Load() <= 0, "title odds are made while somebody waits to be served")
		}
		second()
		if err := <-done; err != nil || derived.Load() != 1 {
			t.Errorf("derived %d times, %v; want once when nobody waits any more", derived.Load(), err)
		}
		if err := s.Derive(t.Context()); err != nil || derived.Load() != 2 {
			t.Errorf("derived %d times, %v; want at once where nobody waits", derived.Load(), err)
		}

		// A stopping service does not wait for holds.
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

// Every gate has a metric from the start, so that an alert tells zero from missing data.
func TestEveryGateIsCounted(t *testing.T) {
	_, _, registry := belgianWeekend(t, io.Discard)
	families := must.Get(registry.Gather())(t)
	series := make(map[string]int)
	for _, family := range families {
		series[family.GetName()] = len(family.GetMetric())
	}
	if got, want := series["gridcast_facts_waiting"], len(assemble.Gates()); got != want || series["gridcast_source_silent_seconds"] != 1 {
		t.Errorf("there are %d series of changes that wait and %d of silence, want %d and 1", got, series["gridcast_source_silent_seconds"], want)
	}
}

// TestPauseByTheService: a receiver that failed to the end is paused. The audit log says so once, even with
// two schedulers.
func TestPauseByTheService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memblob.New()
		sender := must.Get(webhook.NewSender(webhook.SenderOptions{Master: []byte("correct horse battery staple, again and again"), InsecureLoopback: true}))(t)
		h := must.Get(webhook.New(sender, "https://receiver.example/hook", nil, 0))(t)
		must.Do(t, webhook.Update(t.Context(), store, func(hooks *[]webhook.Hook) error { *hooks = append(*hooks, h); return nil }))
		state := `{"format":1,"failures":10,"failing":"2026-06-07T13:00:00Z","give_up":"nothing was taken\nsince Sunday"}`
		must.Get(store.Swap(t.Context(), webhook.DeliveryKey(h.ID), "", []byte(state)))(t)
		status := func() operator.WebhookStatus {
			t.Helper()
			list, err := (&operator.Operator{Store: store}).ListWebhooks(t.Context())
			must.Require(t, err == nil && len(list) == 1, "got %+v, %v; want one webhook", list, err)
			return list[0]
		}
		if got := status(); got.State != webhook.Failing {
			t.Errorf("before the first delivery: %s", got.State)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for range 2 {
			s := service.New(&builder.Builder{Store: store}, clock.System(), slog.New(slog.DiscardHandler), prometheus.NewRegistry())
			s.Deliver(sender)
			running.Go(func() { s.RunWebhooks(ctx) })
		}
		must.Advance(time.Minute)
		cancel()
		running.Wait()
		if got := status(); got.State != webhook.GivenUp || got.State.String() != "given up" || got.Trouble != "nothing was taken\nsince Sunday" {
			t.Errorf("got %+v, want it given up", got)
		}
		log := must.Get(auditlog.Load(t.Context(), store))(t)
		done := 0
		for _, e := range log.Entries() {
			switch {
			case e.Actor == operator.ServiceActor && e.Action == auditlog.PauseWebhook && e.Subject == h.ID && e.Reason == "nothing was taken since Sunday":
				done++
			case e.Actor == operator.ServiceActor && e.Action == auditlog.Failed && e.Subject == h.ID && e.Reason == "it was paused or resumed meanwhile":
				done--
			default:
				t.Errorf("audit log: got %+v", e)
			}
		}
		if done != 1 {
			t.Errorf("audit log: got %+v, want one pause", log.Entries())
		}
	})
}

// TestStopCancelsABuild: a build that outlasts the time for a stop is cancelled, which is no failure of the service.
func TestStopCancelsABuild(t *testing.T) {
	must.Long(t, "it builds two seasons")
	synctest.Test(t, func(t *testing.T) {
		var hangs atomic.Bool
		race := &raceTime{}
		race.set(time.Date(2024, 7, 28, 12, 0, 0, 0, time.UTC))
		b := testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Opened: race.Now().AddDate(0, 0, -2)}).Builder
		load := b.Facts
		b.Facts = func(ctx context.Context) (archive.Stored, error) {
			if hangs.Load() {
				<-ctx.Done()
				return archive.Stored{}, ctx.Err()
			}
			return load(ctx)
		}
		s := service.New(b, race, b.Log, prometheus.NewRegistry())
		s.WithoutDerived()
		must.Do(t, s.Start(t.Context(), nil))
		actions := must.Get(s.Operator(t.Context(), nil))(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		synctest.Wait()
		hangs.Store(true)
		built := must.Get(actions.RunJob("build", "test"))(t)
		synctest.Wait()
		cancel()
		began := time.Now()
		if err := <-ended; err != nil {
			t.Errorf("the service ended with %v, want no error", err)
		}
		if took := time.Since(began); took != service.StopGrace {
			t.Errorf("the stop took %v, want %v", took, service.StopGrace)
		}
		if err := <-built; !errors.Is(err, context.Canceled) {
			t.Errorf("the build ended with %v, want %v", err, context.Canceled)
		}
	})
}

// TestSilentFeedIsMeasured: the age of the latest observation, and for how long /live has been stale, are metrics while a
// race runs and a source is expected; lines are counted by outcome.
func TestSilentFeedIsMeasured(t *testing.T) {
	must.Long(t, "it builds two seasons")
	s, clock, registry := belgianWeekend(t, io.Discard)
	s.ExpectFeed()
	build := func() {
		must.Get(s.Build(t.Context(), builder.Request{Reason: "test"}))(t)
	}
	value := func(name string) float64 {
		families := must.Get(registry.Gather())(t)
		for _, family := range families {
			for _, m := range family.GetMetric() {
				if label := m.GetLabel(); family.GetName() == name && len(label) == 0 {
					return m.GetGauge().GetValue()
				} else if len(label) == 1 && family.GetName()+" "+label[0].GetValue() == name {
					return m.GetCounter().GetValue()
				}
			}
		}
		return -1 // absent
	}
	start := clock.Now().Add(time.Hour)
	build()
	actions := must.Get(s.Operator(t.Context(), nil))(t)
	send := func(line string) {
		must.Get2(actions.ObserveLines(t.Context(), strings.NewReader(line), "feed", func(int, error) {}))(t)
	}
	for _, step := range []struct {
		after      time.Duration
		line       string
		age, stale float64
	}{
		{-time.Minute, "", -1, 0},
		{time.Minute, "", 60, 0},
		{5 * time.Minute, "", 300, 120}, // the feed never began
		{6 * time.Minute, `{"session_key":2024014,"at":"2024-07-28T13:06:00Z","phase":"started"}`, 0, 0},
		{7 * time.Minute, `{"session_key":2024014,"at":"2024-07-28T13:07:00Z","lap":40,"cars":[{"driver":"RUS"}]}`, 60, 0},
		{12 * time.Minute, "", 360, 180},
		{13 * time.Minute, `{"session_key":2024014,"at":"2024-07-28T13:13:00Z","phase":"suspended"}`, 0, 0},
		{22 * time.Minute, "", 540, 0}, // of the ten minutes of a suspension
		{23*time.Minute + 30*time.Second, "", 630, 30},
	} {
		clock.set(start.Add(step.after))
		if step.line != "" {
			send(step.line)
		}
		build()
		if age, stale := value("gridcast_live_observation_age_seconds"), value("gridcast_live_stale_seconds"); age != step.age || stale != step.stale {
			t.Errorf("%s after lights out: age %v, stale %v; want %v, %v", step.after, age, stale, step.age, step.stale)
		}
	}
	if stored, refused := value("gridcast_live_lines_total stored"), value("gridcast_live_lines_total refused"); stored != 2 || refused != 1 {
		t.Errorf("%v lines stored and %v refused, want 2 and 1", stored, refused)
	}
}

// TestHeldStartWithFaults: a start while publishing is held and the facts cannot be read fails, so that its caller tries
// again.
func TestHeldStartWithFaults(t *testing.T) {
	must.Long(t, "it renders two seasons")
	for _, fails := range []int{2, 3} { // the facts, read after the build; none
		season := testseason.New(t, testseason.Config{Stored: testseason.Short(t, testseason.Austria)})
		season.Publish(testseason.Austria.Opened)
		season.Publish(testseason.Austria.Qualified)
		publisher := snapshots.Publisher{Store: season.Store}
		must.Get(publisher.Rollback(t.Context(), 1, "test", "a hold", testseason.Austria.Qualified))(t)
		clock := &raceTime{}
		clock.set(testseason.Austria.Qualified)
		calls, load := 0, season.Facts
		season.Facts = func(ctx context.Context) (archive.Stored, error) {
			if calls++; calls == fails {
				return archive.Stored{}, errors.New("the storage answered 503")
			}
			return load(ctx)
		}
		s := service.New(season.Builder, clock, season.Log, prometheus.NewRegistry())
		s.WithoutDerived()
		err := s.Start(t.Context(), nil)
		golden.Sentence(t, fmt.Sprintf("call %d of the facts fails", fails), fmt.Sprint(err))
	}
}
