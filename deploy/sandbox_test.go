package deploy_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp/fasthttputil"

	"gridcast/builder"
	"gridcast/builder/archive"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/deploy/sandbox"
	"gridcast/edge"
	"gridcast/edge/edgetest"
	"gridcast/edge/keys"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/clock"
	"gridcast/snapshots/notes"
)

// openCycle opens the builder of a cycle, as the command does. Its title odds have few simulations, because each of the
// fifty versions would simulate both titles anew for a third of the time.
func openCycle(log *slog.Logger, signers *notes.Signers) func(context.Context, blob.Store, time.Time) (*builder.Builder, error) {
	return func(ctx context.Context, view blob.Store, begins time.Time) (*builder.Builder, error) {
		facts := archive.NewStore(view)
		inUse, err := facts.InUse(ctx)
		if err != nil {
			return nil, err
		}
		l, err := ledger.Open(ctx, view, ledger.Simulated, begins, ledger.BuilderActor, inUse)
		policy := builder.Policy{Model: predict.GridFrequency()}
		sandbox.Rules(&policy.AutoVerifyAfter, &policy.AutoReviseAfter)
		return &builder.Builder{Store: view, Ledger: l, Facts: facts.Load, Archives: facts, Policy: policy, Name: "test", Signers: signers, Log: log, TitleRuns: 200}, err
	}
}

// sandboxed is a running sandbox in a bubble, and a client of it.
type sandboxed struct {
	*states
	store blob.Store
	gate  func() // of builds; nil: none
	key   string // the file of the version key
	stop  func()
}

// hour is the real time of a weekend in the tests.
const hour = 6 * time.Minute

// start runs the sandbox of a store.
func (s *sandboxed) start() {
	log := slog.New(slog.NewTextHandler(s.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	if s.key == "" {
		s.key = filepath.Join(s.t.TempDir(), "key")
		must.Do(s.t, notes.MakeKey(s.key, "example.com/sandbox"))
	}
	signers := must.Get(notes.ReadSigners(s.key))(s.t)
	world := &sandbox.World{Store: s.store, Length: hour, Open: openCycle(log, signers), Gate: s.gate, Log: log}
	ctx, cancel := context.WithCancel(s.t.Context())
	var running sync.WaitGroup
	running.Go(func() { world.Run(ctx) })
	s.stop = func() { cancel(); running.Wait() }
}

// goes lets real time pass until an instant of race time from the lights out of the running weekend, and reads the version
// that clients then have.
func (s *sandboxed) goes(to time.Duration) *snapshots.Manifest {
	s.t.Helper()
	m := s.look()
	must.Advance(time.Until(m.Sandbox.Weekend.LightsOut.Add(time.Duration(float64(to) / float64(s.clock().Speed())))))
	return s.look()
}

// look reads the version that clients have now.
func (s *sandboxed) look() *snapshots.Manifest {
	s.t.Helper()
	s.base = must.Get(snapshots.LoadBase(s.t.Context(), blob.Under(s.store, snapshots.SandboxFolder), nil))(s.t)
	s.now = s.clock().Now()
	return &s.base.Manifest
}

func (s *sandboxed) clock() clock.Clock {
	s.t.Helper()
	return must.Get(clock.Parse(s.base.Manifest.Clock))(s.t)
}

// seen is a state of a weekend of the sandbox, and cells that it must have, each with its endpoint.
type seen struct {
	at    time.Duration // from the planned lights out
	state string
	cells []string
}

// weekends are the states of each kind of weekend. The cells are those of the table in deploy/docs/states.md.
var weekends = []struct {
	key    int64
	states []seen
}{
	{2024020, []seen{
		{-50 * time.Hour, "scheduled", []string{"next-race 27 October 20:00", "weekends scheduled", "probabilities none"}},
		{-18 * time.Hour, "frozen", []string{"live waiting", "weekends scheduled"}},
		{40 * time.Minute, "live", []string{"live running", "weekends live", "next-race 3 November"}},
		{130 * time.Minute, "result waiting", []string{"live over", "results 2024, 19; none of this round"}},
		{5 * time.Hour, "verified", []string{"weekends finished", "results 2024, 20; SAI, 1 revisions"}},
	}},
	{2024023, []seen{
		{-50 * time.Hour, "scheduled", []string{"weekends scheduled, 5 sessions, sprint true"}},
		{40 * time.Minute, "live", []string{"live running"}},
		{5 * time.Hour, "verified", []string{"weekends finished", "results 2024, 23; VER, 1 revisions"}},
	}},
	{2025001, []seen{
		{40 * time.Minute, "live", []string{"live running"}},
		{85 * time.Minute, "suspended", []string{"live suspended 2025001, lap 40"}},
		{110 * time.Minute, "restarted", []string{"live running"}},
		{6 * time.Hour, "verified", []string{"results 2025, 1; NOR, 1 revisions"}},
	}},
	{2025015, []seen{
		{-15 * time.Hour, "frozen", []string{"live waiting"}},
		{-8 * time.Hour, "picked driver withdrawn", []string{"probabilities grid, 20 drivers, not starting NOR", "live waiting 2025015, lap 0, 19 cars"}},
		{40 * time.Minute, "live", []string{"live running", "not starting NOR"}},
		{6 * time.Hour, "verified", []string{"results 2025, 15; PIA, 1 revisions"}},
	}},
	{2025016, []seen{
		{-5 * time.Hour, "postponed without a date", []string{"weekends postponed"}},
		{-1 * time.Hour, "reinstated", []string{"weekends scheduled", "next-race 7 September 17:00"}},
		{40 * time.Minute, "its planned start has passed", []string{"weekends scheduled", "live waiting"}},
		{4*time.Hour + 40*time.Minute, "live", []string{"live running"}},
		{7*time.Hour + 30*time.Minute, "verified", []string{"results 2025, 16; VER, 1 revisions"}},
	}},
	{2025020, []seen{
		{12 * time.Minute, "live", []string{"live running"}},
		{25 * time.Minute, "suspended", []string{"live suspended 2025020, lap 12"}},
		{5 * time.Hour, "abandoned without a result", []string{"weekends awaiting_result", "live suspended 2025020, lap 12, 20 cars, 19 with chances, stale", "results 2025, 19; none of this round"}},
		{7 * time.Hour, "cancelled after it", []string{"weekends cancelled", "changes 2025, 5; pick_voided of 2025020"}},
	}},
	{2025022, []seen{
		{40 * time.Minute, "live", []string{"live running"}},
		{3 * time.Hour, "verified", []string{"standings 2025, NOR 383", "results 2025, 21; VER, 1 revisions"}},
		{6 * time.Hour, "revised", []string{"standings 2025, NOR 365", "results 2025, 21; VER, 2 revisions", "changes 2025, 6; result_revised of 2025022"}},
	}},
}

// TestSandbox lives through a cycle of the sandbox with a client, and into the next one. It compares every endpoint in each
// state with testdata/sandbox.txt, and the cells that deploy/docs/states.md names with the table of this file. Every scheduler
// stops in the middle of a weekend and for a whole one. The next one goes on where the timetable is.
func TestSandbox(t *testing.T) {
	must.Long(t, "replays eight weekends")
	objects := map[string][]byte{} // of the last weekend
	defer func() {
		if !t.Failed() {
			boundsMemory(t, objects)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		begins(0)
		s := &sandboxed{states: &states{t: t}, store: memblob.New()}
		s.start()
		defer func() { s.stop() }()
		version := int64(0)
		for i, w := range weekends {
			must.Advance(time.Second)
			m := s.look()
			must.Equal(t, "weekend", catalog.SandboxKinds[i].Name, m.Sandbox.Weekend.Kind)
			must.Equal(t, "next weekend", catalog.SandboxKinds[(i+1)%len(weekends)].Name, m.Sandbox.Next[0].Kind)
			must.Equal(t, "seasons", []int{2024, 2025}, m.Seasons)
			must.Hold(t, m.Version > version, "%s begins with version %d after %d", m.Sandbox.Weekend.Kind, m.Version, version)
			for _, state := range w.states {
				if state.state == "reinstated" {
					s.restart(m)
				}
				m = s.goes(state.at)
				name := m.Sandbox.Weekend.Kind + ": " + state.state
				cells := strings.Join(s.cells(name, w.key), "\n")
				must.Show(t, name, strings.Join(strings.Fields(cells), " "), state.cells...)
				fmt.Fprintf(&s.told, "%s, %s\n%s\n\n", name, s.now.Format("2006-01-02 15:04"), cells)
			}
			version = m.Version
			if i == len(weekends)-1 {
				for info, err := range s.store.List(t.Context(), snapshots.SandboxFolder) {
					must.Do(t, err)
					objects[info.Key] = must.Get(s.store.Get(t.Context(), info.Key, blob.MaxDocument))(t).Data
				}
			}
			must.Advance(time.Until(m.Sandbox.Weekend.EndsAt))
		}
		must.Advance(time.Second)
		cycle := s.base.Manifest.Sandbox.Cycle
		m := s.look()
		must.Equal(t, "the next cycle", cycle+1, m.Sandbox.Cycle)
		must.Hold(t, m.Version > version && m.Ledger.Seq < 100, "the next cycle begins with version %d after %d, and ledger file %d", m.Version, version, m.Ledger.Seq)
		m = s.goes(-50 * time.Hour)
		s.is("normal, again", 2024020)
		s.stop()
		must.Advance(time.Until(m.Sandbox.Weekend.EndsAt) + hour + time.Second)
		must.Equal(t, "the version of a weekend without a scheduler", m.Version, s.look().Version)
		s.start()
		must.Advance(time.Second)
		next := s.look()
		must.Equal(t, "weekend after one without a scheduler", catalog.SandboxKinds[2].Name, next.Sandbox.Weekend.Kind)
		must.Hold(t, next.Version > m.Version && next.Sandbox.Cycle == m.Sandbox.Cycle, "version %d of cycle %d follows version %d of cycle %d", next.Version, next.Sandbox.Cycle, m.Version, m.Sandbox.Cycle)
		golden.File(t, "testdata/sandbox.txt", s.told.String())
	})
}

// restart stops the scheduler before the postponed round is reinstated, and starts one after it, and then a second: they catch up
// with the decision and repeat none. The first one goes on.
func (s *sandboxed) restart(postponed *snapshots.Manifest) {
	s.stop()
	must.Advance(time.Until(postponed.Sandbox.Weekend.LightsOut) - time.Duration(float64(105*time.Minute)/s.clock().Speed()))
	must.Equal(s.t, "the version without a scheduler", postponed.Version, s.look().Version)
	s.start()
	must.Advance(2 * time.Second)
	other := *s
	other.start() // a second scheduler
	must.Advance(2 * time.Second)
	other.stop()
	s.look()
	changes, _ := answer[[]wire.Change](s.states, catalog.Changes, "")
	must.Hold(s.t, len(changes) > 1 && changes[0].Kind == "round_reinstated" && changes[1].Kind == "round_postponed" && (len(changes) == 2 || changes[2].SessionKey != changes[0].SessionKey), "changes: %+v", changes)
}

// boundsMemory starts an edge of a store without a sandbox and one of the same store with these objects of a sandbox. The
// second keeps at most 8 MB more on its heap.
func boundsMemory(t *testing.T, objects map[string][]byte) {
	t.Helper()
	retained := func(sandbox map[string][]byte) int64 {
		store := memblob.New()
		edgetest.Publish(t, store, 1, "")
		must.Do(t, keys.Update(t.Context(), store, func(d *keys.List) error {
			_, _, err := d.Create(keys.Request{Name: "one", Tier: "sandbox"}, time.Now())
			return err
		}))
		for key, data := range sandbox {
			must.Get(store.Create(t.Context(), key, data))(t)
		}
		before := heap()
		e := must.Get(edge.New(edge.DefaultConfig(), edge.Deps{Store: store, Log: slog.New(slog.DiscardHandler), Listener: fasthttputil.NewInmemoryListener()}))(t)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { must.Do(t, e.Run(ctx)) })
		defer running.Wait()
		defer cancel()
		must.Until(t, "the edge serves its worlds", func() bool { return e.Status().Version > 0 && (e.Status().Sandbox != nil) == (sandbox != nil) })
		return heap() - before
	}
	without, with := retained(nil), retained(objects)
	t.Logf("an edge keeps %.1f MB on the heap, with a sandbox %.1f MB", float64(without)/1e6, float64(with)/1e6)
	must.Hold(t, with-without > 1e5 && with-without < 8e6, "the sandbox takes %d bytes of the heap", with-without)
}

// heap returns the bytes that are in use after a collection.
func heap() int64 {
	runtime.GC()
	runtime.GC() // frees objects with a finalizer
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// begins lets time pass until a weekend of the next cycle begins.
func begins(number int) {
	cycle := time.Duration(len(catalog.SandboxKinds)) * hour
	time.Sleep(cycle - time.Duration(time.Now().UnixNano())%cycle + time.Duration(number)*hour)
}

// TestSandboxFaults checks that the sandbox keeps two cycles and removes nothing of the real world, that it waits while a build
// of the real world runs, and that it goes on after a fault of the store and after panics.
func TestSandboxFaults(t *testing.T) {
	must.Long(t, "replays the beginning of a weekend")
	synctest.Test(t, func(t *testing.T) {
		begins(0)
		cycle := time.Now().UnixNano() / int64(len(catalog.SandboxKinds)) / int64(hour)
		inner := memblob.New()
		kept := []string{"ledger/00000001.json", fmt.Sprintf("sandbox/%d/ledger/00000001.json", cycle-1)}
		gone := fmt.Sprintf("sandbox/%d/ledger/00000001.json", cycle-2)
		for _, key := range append(kept, gone) {
			must.Get(inner.Create(t.Context(), key, []byte("{}")))(t)
		}
		var broken atomic.Bool
		broken.Store(true)
		building := make(chan struct{}) // closed when the build of the real world has ended
		s := &sandboxed{states: &states{t: t}, store: faultblob.Wrap(inner, func(_ context.Context, call faultblob.Call) faultblob.Fate {
			if broken.Load() && call.Op.Writes() {
				must.Hold(t, strings.HasPrefix(call.Key, snapshots.SandboxFolder), "the sandbox writes %s", call.Key)
				return faultblob.Fate{Err: errors.New("the disk is full")}
			}
			return faultblob.Fate{}
		})}
		var calls atomic.Int32
		s.gate = func() {
			<-building
			if n := calls.Add(1); n == 1 || n == 3 { // at the start, and in a job
				panic("a bug")
			}
		}
		s.start()
		defer func() { s.stop() }()
		must.Advance(20 * time.Second)
		must.Fail(t, "a version on a full disk", must.Err2(snapshots.LoadPointer(t.Context(), blob.Under(inner, snapshots.SandboxFolder))), snapshots.ErrNone)
		broken.Store(false)
		must.Advance(time.Minute)
		must.Fail(t, "a version beside a build of the real world", must.Err2(snapshots.LoadPointer(t.Context(), blob.Under(inner, snapshots.SandboxFolder))), snapshots.ErrNone)
		close(building)
		must.Advance(2 * time.Minute)
		must.Hold(t, calls.Load() > 3, "the sandbox built %d times: a panic ended it", calls.Load())
		must.Equal(t, "weekend", "normal", s.look().Sandbox.Weekend.Kind)
		for _, key := range kept {
			must.Get(inner.Get(t.Context(), key, blob.MaxDocument))(t)
		}
		must.Fail(t, "a cycle before the last one", must.Err(inner.Get(t.Context(), gone, blob.MaxDocument)), blob.ErrNotFound)
	})
}
