package simulate_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gridcast/builder"
	"gridcast/builder/archive"
	"gridcast/builder/ingest"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/builder/source"
	"gridcast/deploy/must"
	"gridcast/deploy/operator"
	"gridcast/deploy/service"
	"gridcast/edge/keys"
	sched "gridcast/scheduler"
	"gridcast/scheduler/webhook"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/notes"
	"gridcast/snapshots/retry"
)

// world is one simulated installation: a store, two schedulers, three edges, and the people and sources around them. The
// seed decides everything that a real world leaves to chance.
type world struct {
	t      *testing.T
	seed   uint64
	random *rand.Rand // of the goroutine of the test alone
	folder string     // of files: signing keys and the copies of edges
	disk   *memblob.Store
	calm   atomic.Bool // no fault happens any more

	clock struct { // race time
		sync.Mutex

		race, real time.Time
	}
	trace struct { // of everything that happens, to compare two runs
		sync.Mutex

		sum  uint64
		last []string // if it is written to a file
	}
	pauses struct { // of sources
		sync.Mutex

		count map[string]uint64
	}

	witness     witness
	keySigners  *notes.Signers
	upstreams   []*upstream
	schedulers  []*scheduler
	edges       []*gate
	sender      *webhook.Sender
	subscribers subscribers
	clients     *clients
	thief       *thief
	copies      copies
	rotation    rotation
	running     sync.WaitGroup

	intervals *sched.Intervals // of all processes: each stop of gocron's scheduler takes a time slice of the one processor
}

// now is true race time, which the clock of the store shows.
func (w *world) now() time.Time {
	w.clock.Lock()
	defer w.clock.Unlock()
	return w.clock.race.Add(time.Since(w.clock.real))
}

// jump moves race time ahead, to just after an instant. At the very instant of an interval gocron would run its job again and
// again, until the clock goes on, and the clock of a bubble stands still meanwhile.
func (w *world) jump(to time.Time) {
	w.clock.Lock()
	defer w.clock.Unlock()
	w.clock.race, w.clock.real = to.Add(time.Nanosecond), time.Now()
}

// address matches a pointer as fmt prints it.
var address = regexp.MustCompile(`\b0x[0-9a-f]{6,}`)

// note adds to the trace.
func (w *world) note(format string, args ...any) {
	text := time.Now().UTC().Format("15:04:05.000000000 ") + strings.ReplaceAll(fmt.Sprintf(format, args...), w.folder, "")
	if strings.Contains(text, "0x") && address.MatchString(text) {
		w.t.Errorf("the trace has an address of memory, which differs in every build: %s", text)
	}
	w.trace.Lock()
	defer w.trace.Unlock()
	sum := fnv.New64a()
	_, _ = io.WriteString(sum, text)
	w.trace.sum += sum.Sum64() // in any order, because some things happen at one instant
	if tracePath == "" {
		return
	}
	if w.trace.last = append(w.trace.last, text); len(w.trace.last) > 200_000 {
		w.trace.last = slices.Clone(w.trace.last[100_000:])
	}
}

// pause waits as long as a request to something outside takes.
func (w *world) pause(ctx context.Context, what string) error {
	w.pauses.Lock()
	w.pauses.count[what]++
	n := w.pauses.count[what]
	w.pauses.Unlock()
	if !retry.Sleep(ctx, time.Duration(20_000_000+w.chance("pause of "+what, n)%400_000_000)) {
		return context.Cause(ctx)
	}
	return nil
}

// tracePath names the file of the trace; empty: nobody wants it.
var tracePath = os.Getenv("SIMULATE_TRACE")

// write writes the trace to its file.
func (w *world) write() {
	if tracePath != "" {
		w.trace.Lock()
		defer w.trace.Unlock()
		slices.Sort(w.trace.last)
		must.Do(w.t, os.WriteFile(tracePath, []byte(strings.Join(w.trace.last, "\n")+"\n"), 0o600))
	}
}

// fail reports a broken invariant. The first one ends the seed.
func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.write()
	w.t.Fatalf("seed %d at %s: %s\nreplay it: make simulate SEED=%d", w.seed, w.now().UTC().Format(time.RFC3339), fmt.Sprintf(format, args...), w.seed)
}

// scheduler is a machine on which a scheduler runs, is killed and starts again.
type scheduler struct {
	w     *world
	name  string
	sign  *notes.Signers
	skew  atomic.Int64 // of its clock, in nanoseconds
	runs  int
	now   *run // nil: it does not run
	since time.Time
}

// Now is the clock of the machine.
func (s *scheduler) Now() time.Time { return s.w.now().Add(time.Duration(s.skew.Load())).UTC() }

// Speed implements the clock of a scheduler.
func (*scheduler) Speed() float64 { return 1 }

// run is one process of a scheduler.
type run struct {
	line    *line
	cancel  context.CancelFunc
	ended   chan struct{}
	service atomic.Pointer[service.Service]
	actions atomic.Pointer[operator.Operator]
}

// start starts a process.
func (s *scheduler) start() {
	s.runs++
	s.since = time.Now()
	r := &run{line: s.w.newLine(fmt.Sprintf("%s.%d", s.name, s.runs)), ended: make(chan struct{})}
	ctx, cancel := context.WithCancel(s.w.t.Context())
	r.cancel, s.now = cancel, r
	s.w.running.Go(func() {
		defer close(r.ended)
		s.serve(ctx, r)
	})
}

// serve is the commands scheduler and serve: it opens the store and runs the service, and tries again after a
// fault.
func (s *scheduler) serve(ctx context.Context, r *run) {
	log := slog.New(points.handler(s.w))
	var running *service.Service
	backoff := retry.Rule{First: time.Second, Longest: 30 * time.Second}
	for failures := 1; ctx.Err() == nil; failures++ {
		err := func() (err error) {
			if running == nil {
				if running, err = s.open(ctx, r, log); err != nil {
					return err
				}
			}
			if r.actions.Load() == nil {
				actions, err := running.Operator(ctx, keys.DefaultTiers())
				if err != nil {
					return err
				}
				actions.SignKeys = s.w.keySigners
				r.actions.Store(actions)
			}
			return running.Start(ctx, nil)
		}()
		if err == nil {
			r.service.Store(running)
			var collecting sync.WaitGroup
			collecting.Go(func() { s.w.collector(r, log).Run(ctx) })
			_ = running.Run(ctx)
			collecting.Wait()
			return
		}
		points.met(s.w, err)
		if !backoff.Wait(ctx, failures) {
			return
		}
	}
}

func (s *scheduler) open(ctx context.Context, r *run, log *slog.Logger) (*service.Service, error) {
	store := r.line.store()
	facts := archive.NewStore(store)
	inUse, err := facts.InUse(ctx)
	if err != nil {
		return nil, err
	}
	l, err := ledger.Open(ctx, store, ledger.Real, s.Now(), ledger.BuilderActor, inUse)
	if err != nil {
		return nil, err
	}
	started := s.w.now()
	l.UseClock(ledger.Steady(s.Now, func() time.Duration { return s.w.now().Sub(started) }))
	if err := facts.Vouch(ctx, l); err != nil {
		return nil, err
	}
	in := &ingest.Ingest{Store: store, Facts: facts, Ledger: l, Log: log, Interval: func(time.Time) time.Duration { return 45 * time.Second }}
	for i, u := range s.w.upstreams {
		in.Sources = append(in.Sources, ingest.Source{Upstream: u, CheckOnly: i > 0})
	}
	if err := in.Load(ctx); err != nil {
		return nil, err
	}
	b := &builder.Builder{
		Store: store, Signers: s.sign, Ledger: l, Facts: facts.Load, Archives: facts, Name: s.name, Release: "v1.0.0", Log: log,
		Policy: builder.Policy{Model: predict.GridFrequency(), AutoVerifyAfter: 2 * time.Hour, AutoReviseAfter: 2 * time.Hour},
	}
	running := service.New(b, s, log, prometheus.NewRegistry())
	running.Ingest(in)
	running.UseIntervals(s.w.intervals)
	running.TrustKeys(s.w.keySigners.Trust())
	running.ExpectFeed()
	running.Deliver(s.w.sender)
	return running, nil
}

// stop ends the process as a signal does, or as kill -9 does.
func (s *scheduler) stop(killed bool) {
	if s.now == nil {
		return
	}
	if killed {
		s.now.line.kill()
	}
	s.now.cancel()
	<-s.now.ended
	s.now, s.since = nil, time.Now()
}

// newWorld makes a store with its ledger, keys and settings, and starts everything.
func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	small.once.Do(func() { makeSmall(t) })
	w := &world{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 1)), disk: memblob.New(), folder: t.TempDir()}
	w.intervals = must.Get(sched.NewIntervals())(t)
	w.pauses.count = map[string]uint64{}
	w.jump(begin)
	w.witness.init()
	w.copies.place = memblob.New()
	origin := notes.NewOrigin()
	for _, file := range []string{"version.key", "keys.key"} {
		must.Do(t, notes.MakeKey(filepath.Join(w.folder, file), origin+"/"+file[:4]))
	}
	w.rotation.files = []string{filepath.Join(w.folder, "version.key")}
	w.rotation.trust = w.newSigners().Trust()
	w.keySigners = must.Get(notes.ReadSigners(filepath.Join(w.folder, "keys.key")))(t)
	must.Do(t, archive.NewStore(w.disk).Put(t.Context(), small.opening))
	w.clients, w.thief = newClients(w), newThief(w)
	w.makeSources()
	w.subscribe()
	for i, name := range []string{"trusting", "cached", "fresh"} {
		g := &gate{w: w, name: name}
		if i < 2 {
			g.folder = filepath.Join(w.folder, name)
		}
		g.trusts = i == 0
		w.edges = append(w.edges, g)
	}
	for _, name := range []string{"a", "b"} {
		s := &scheduler{w: w, name: name, sign: w.newSigners()}
		w.schedulers = append(w.schedulers, s)
		s.start()
		time.Sleep(time.Duration(100+w.random.IntN(1000)) * time.Millisecond)
	}
	for _, g := range w.edges {
		g.start()
	}
	return w
}

func (w *world) makeSources() {
	var changes []mutation
	names := slices.Sorted(maps.Keys(mutations))
	for range w.random.IntN(5) {
		name := names[w.random.IntN(len(names))]
		from := begin.Add(time.Duration(w.random.Int64N(int64(weekLength)))).Truncate(time.Second)
		length := time.Duration(w.random.Int64N(int64(12 * time.Hour))).Truncate(time.Second)
		by := time.Duration(w.random.IntN(12)-6) * time.Hour / 2
		changes = append(changes, mutation{name, from, from.Add(length), mutations[name](w.random.IntN(3), by)})
	}
	for i, name := range []string{"f1db", "other"} {
		delay := time.Duration(5+w.random.IntN(80)) * time.Minute
		if i > 0 {
			changes = nil
		}
		u := newUpstream(w, name, delay, changes)
		calls := uint64(0)
		var mu sync.Mutex
		u.fault = func() *source.Fault {
			mu.Lock()
			defer mu.Unlock()
			calls++
			if w.calm.Load() {
				return nil
			}
			switch w.chance("fault of "+name, calls) % 40 {
			case 0:
				return &source.Fault{Kind: source.Unreachable, Err: errors.New("no connection")}
			case 1:
				return &source.Fault{Kind: source.Throttled, RetryAfter: 10 * time.Minute, Err: errors.New("too many requests")}
			case 2:
				return &source.Fault{Kind: source.Malformed, Err: errors.New("not what it was")}
			}
			return nil
		}
		w.upstreams = append(w.upstreams, u)
	}
}

// end stops everything.
func (w *world) end() {
	for _, s := range w.schedulers {
		s.stop(false)
	}
	for _, g := range w.edges {
		g.stop()
	}
	w.running.Wait()
	must.Do(w.t, w.intervals.Stop())
}

// TestAddress: the trace would refuse an action that prints the address of its function.
func TestAddress(t *testing.T) {
	text := fmt.Sprintf("%+v", operator.RestoreStore{Open: func(context.Context) (blob.Store, error) { return nil, blob.ErrNotFound }})
	must.Hold(t, address.MatchString(text), "%s has no address", text)
	must.Hold(t, !address.MatchString("get objects/0x/60xdeadbeef 0x1f"), "an address was found in a key")
}
