package service_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gridcast/builder"
	"gridcast/builder/settings"
	"gridcast/builder/testseason"
	"gridcast/deploy/must"
	"gridcast/deploy/service"
	"gridcast/scheduler/probe"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/uptime"
)

// bubbleTime is race time that passes as the fake clock of a bubble does.
type bubbleTime struct{ offset time.Duration }

func (c bubbleTime) Now() time.Time { return time.Now().Add(c.offset).UTC() }
func (bubbleTime) Speed() float64   { return 1 }

// measuring returns a scheduler of a store that measures, with answers of its own.
func measuring(t *testing.T, store *memblob.Store, answer func(address string) uptime.Fault) *service.Service {
	t.Helper()
	start := time.Date(2024, 7, 28, 12, 0, 0, 0, time.UTC)
	log := slog.New(slog.DiscardHandler)
	b := testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Opened: start.AddDate(0, 0, -2), Store: store}).Builder
	b.Log = log
	s := service.New(b, bubbleTime{start.Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))}, log, prometheus.NewRegistry())
	s.WithoutDerived()
	s.Measure([]string{"http://key:sesame@edge.internal:9100"})
	s.AskWith(func(_ context.Context, address string) (probe.State, uptime.Fault) {
		return probe.State{Age: 60}, answer(address)
	})
	return s
}

// runs runs a scheduler until the end of the returned function.
func runs(t *testing.T, s *service.Service) (stop func()) {
	t.Helper()
	must.Do(t, s.Start(t.Context(), nil))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return func() { cancel(); must.Do(t, <-done) }
}

// TestMeasuredMinutes runs two schedulers on one store, kills one, stops the other, and lets hours pass without any. The
// minutes of both count once, and those that nobody wrote are unknown.
func TestMeasuredMinutes(t *testing.T) {
	must.Long(t, "it builds two seasons")
	synctest.Test(t, func(t *testing.T) {
		store := memblob.New()
		good := func(string) uptime.Fault { return "" }
		var broken atomic.Bool
		faulty := func(address string) uptime.Fault {
			if broken.Load() && address == "https://api.example.com" {
				return uptime.TLS
			}
			return good(address)
		}
		must.Get(settings.Update(t.Context(), store, false, func(s *settings.Settings) { s.PublicAddress = "https://api.example.com" }))(t)
		day := func(target string) (up, down, measured int) {
			log, _ := must.Get2(uptime.Document(store).Load(t.Context()))(t)
			for _, days := range log.Targets[target] {
				for _, m := range days.Minutes {
					switch {
					case m == uptime.Answered(0, false):
						up++
					case m != 0:
						down++
					}
				}
			}
			return up, down, up + down
		}
		must.Advance(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour + 30*time.Second))) // half a minute after a full hour
		one, two := measuring(t, store, good), measuring(t, store, faulty)
		stopOne, stopTwo := runs(t, one), runs(t, two)
		if _, _, n := day(uptime.Public); n != 0 {
			t.Errorf("%d minutes are written before the hour", n)
		}
		must.Advance(20 * time.Minute)
		broken.Store(true)
		must.Advance(5 * time.Minute)
		broken.Store(false)
		must.Advance(35*time.Minute + 10*time.Second)
		for target, want := range map[string]int{uptime.Public: 5, "edge.internal:9100": 0} {
			if up, down, n := day(target); down != want || n < 60 || n > 61 {
				t.Errorf("%s after an hour: %d up and %d down, want an hour of minutes, %d of them down", target, up, down, want)
			}
		}
		must.Advance(30 * time.Minute)
		two.CutMeasuring() // the second one is killed, and writes nothing that it has not written
		stopTwo()
		must.Advance(10 * time.Minute)
		one.CutMeasuring() // now nobody has the last 40 minutes
		must.Advance(5 * time.Minute)
		stopOne() // in order, so that its last minutes are written at once
		if up, down, n := day(uptime.Public); n < 64 || n > 67 || down != 5 {
			t.Errorf("after a kill and a stop: %d up and %d down, want 65 or 66, the 40 minutes of the kill unknown", up, down)
		}
		must.Advance(26 * time.Hour) // no scheduler runs
		stop := runs(t, measuring(t, store, good))
		must.Advance(90 * time.Minute)
		stop()
		log, _ := must.Get2(uptime.Document(store).Load(t.Context()))(t)
		unknown := 0
		for _, d := range log.Report().Targets[0].Days[87:] {
			unknown += d.Unknown
		}
		if unknown < 26*60 {
			t.Errorf("%d minutes are unknown, want at least those of 26 hours", unknown)
		}
	})
}

// TestMeasurementsOutliveTheStore: while the store refuses writes the measurements stay in memory, and come with the next
// good write.
func TestMeasurementsOutliveTheStore(t *testing.T) {
	must.Long(t, "it builds two seasons")
	synctest.Test(t, func(t *testing.T) {
		store := memblob.New()
		s := measuring(t, store, func(string) uptime.Fault { return uptime.Timeout })
		must.Advance(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour + time.Second)))
		stop := runs(t, s)
		must.Get(store.Create(t.Context(), uptime.Key, []byte("damaged")))(t)
		must.Advance(70 * time.Minute)
		must.Do(t, store.Delete(t.Context(), uptime.Key))
		must.Advance(2 * time.Minute)
		log, _ := must.Get2(uptime.Document(store).Load(t.Context()))(t)
		down := 0
		for _, d := range log.Report().Targets[0].Days {
			down += d.Down
		}
		if down < 70 {
			t.Errorf("%d minutes are down, want all since the start", down)
		}
		stop()
	})
}

// TestVerificationToServed times a result from its verification until each target serves the version with it.
func TestVerificationToServed(t *testing.T) {
	must.Long(t, "it builds two seasons")
	synctest.Test(t, func(t *testing.T) {
		race := time.Date(2024, 7, 28, 13, 0, 0, 0, time.UTC)
		must.Advance(time.Until(race.Add(30 * time.Minute)))
		store := memblob.New()
		b := testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Opened: race.AddDate(0, 0, -2), Store: store, Policy: builder.Policy{AutoVerifyAfter: time.Minute}}).Builder
		s := service.New(b, bubbleTime{}, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
		s.WithoutDerived()
		s.Measure([]string{"quick:9100", "slow:9100", "gone:9100"})
		s.AskWith(func(_ context.Context, address string) (probe.State, uptime.Fault) {
			base := must.Get(snapshots.LoadBase(t.Context(), store, nil))(t)
			switch since := time.Since(base.Pointer.At); {
			case address == "gone:9100":
				return probe.State{}, uptime.Refused
			case address == "slow:9100" && since < 4*time.Second:
				return probe.State{Version: base.Pointer.Version - 1}, ""
			}
			return probe.State{Version: base.Pointer.Version}, ""
		})
		stop := runs(t, s)
		must.Advance(2 * time.Hour)
		var verified time.Time
		for r := range b.Ledger.Fold().Records() {
			if result := r.Result(); result != nil && result.At.After(verified) {
				verified = result.At
			}
		}
		must.Require(t, verified.After(race), "no result is verified: the last is of %s", verified)
		stop()
		log, _ := must.Get2(uptime.Document(store).Load(t.Context()))(t)
		for target, want := range map[string]float64{"quick:9100": 0, "slow:9100": 4, "gone:9100": 120} {
			served := log.Day(target, verified).Served
			if served < want || served > want+2 {
				t.Errorf("%s served the result of %s in %v s, want %v", target, verified, served, want)
			}
		}
	})
}
