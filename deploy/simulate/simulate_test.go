// Package simulate_test runs whole installations through simulated weeks. One seed chooses everything that a real world
// leaves to chance: the order of events, crashes, slow and lost answers of the storage, mistakes of sources and of people.
// After each step it checks the invariants. A failure names its seed, which replays it.
package simulate_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"

	"gridcast/builder/ledger"
	"gridcast/builder/proof"
	"gridcast/deploy/must"
	"gridcast/deploy/operator"
	"gridcast/snapshots"
)

// TestWeeks simulates a week for each of SEEDS seeds, by default one, or for SEED alone. Each seed has a process of its own
// with one processor, in which it takes the same course in every build. As many processes run at once as there are processors.
func TestWeeks(t *testing.T) {
	must.Long(t, "simulates a week")
	n := 1
	if text := os.Getenv("SEEDS"); text != "" {
		n = must.Get(strconv.Atoi(text))(t)
	}
	seeds := make([]string, n)
	for i := range seeds {
		seeds[i] = strconv.Itoa(i + 1)
	}
	if seed := os.Getenv("SEED"); seed != "" {
		seeds = []string{seed}
	}
	// Edges wait for the disk at each file of their copies, unless it is in memory. Rare collections of garbage save a tenth.
	env := append(os.Environ(), "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1", "GOGC=400")
	if info, err := os.Stat("/dev/shm"); os.Getenv("TMPDIR") == "" && err == nil && info.IsDir() {
		env = append(env, "TMPDIR=/dev/shm")
	}
	var running errgroup.Group
	running.SetLimit(runtime.NumCPU())
	began, counts, folder := time.Now(), make([]map[string]int, len(seeds)), t.TempDir()
	for i, seed := range seeds {
		running.Go(func() error {
			file := filepath.Join(folder, seed)
			child := exec.CommandContext(t.Context(), must.Get(os.Executable())(t), "-test.run=^TestSeed$", "-test.v", "-test.timeout=0")
			child.Env = append(slices.Clone(env), "SIMULATE_SEED="+seed, "SIMULATE_POINTS="+file)
			out, err := child.CombinedOutput()
			t.Logf("%s", out)
			if err != nil {
				t.Errorf("seed %s: %v", seed, err)
				return nil
			}
			must.Do(t, json.Unmarshal(must.Get(os.ReadFile(file))(t), &counts[i]))
			return nil
		})
	}
	_ = running.Wait()
	t.Logf("%d seeds in %s", len(seeds), time.Since(began).Round(time.Millisecond))
	if len(seeds) >= enough && !t.Failed() {
		checkPoints(t, counts)
	}
}

// enough is the number of seeds that reach every named point of the simulation.
const enough = 30

// TestSeed runs the seed of a process of TestWeeks.
func TestSeed(t *testing.T) {
	seed := os.Getenv("SIMULATE_SEED")
	if seed == "" {
		t.Skip("TestWeeks runs it")
	}
	warm(t)
	small.once.Do(func() { makeSmall(t) })
	began := time.Now()
	sum, steps := week(t, must.Get(strconv.ParseUint(seed, 10, 64))(t))
	t.Logf("seed %s: %d steps, trace %016x, %s", seed, steps, sum, time.Since(began).Round(time.Millisecond))
	must.Do(t, os.WriteFile(os.Getenv("SIMULATE_POINTS"), must.Get(json.Marshal(points.count))(t), 0o600))
}

// warm starts the goroutines that the server of an edge never ends, outside of a bubble.
func warm(t *testing.T) {
	t.Helper()
	server := fasthttp.Server{Handler: func(*fasthttp.RequestCtx) {}, Logger: silent{}}
	client, served := net.Pipe()
	go func() { _ = server.ServeConn(served) }()
	must.Get(io.WriteString(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"))(t)
	must.Get(http.ReadResponse(bufio.NewReader(client), nil))(t)
	must.Do(t, client.Close())
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// week runs the week of a seed. It returns the digest of everything that happened.
func week(t *testing.T, seed uint64) (sum uint64, steps int) {
	t.Helper()
	cryptotest.SetGlobalRandom(t, seed)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, seed)
		defer must.Advance(2 * time.Minute) // the server's workers look once in a while whether to end
		defer w.end()
		time.Sleep(10 * time.Second)
		for _, tier := range []string{"pro", "standard", "trial"} {
			w.createKey(tier)
			w.tick()
		}
		for w.now().Before(begin.Add(weekLength)) {
			w.step()
			steps++
		}
		w.settle()
		w.checkUsage()
		w.checkWebhooks()
		sum = w.trace.sum
		w.write()
	})
	return sum, steps
}

// step lets something happen, and checks the world.
func (w *world) step() {
	w.note("step at %s", w.now().UTC().Format(time.RFC3339))
	w.machines()
	if w.random.IntN(3) == 0 {
		w.operate()
		w.tick()
	}
	w.feed()
	w.tick()
	if w.random.IntN(4) == 0 {
		w.thief.act()
		w.tick()
	}
	if w.random.IntN(12) == 0 {
		w.clients.burst()
	}
	if w.random.IntN(30) == 0 {
		w.disaster()
	}
	if w.random.IntN(15) == 0 {
		w.rotate()
	}
	time.Sleep(time.Duration(500+w.random.IntN(6000)) * time.Millisecond)
	w.jump(w.next())
	time.Sleep(time.Duration(1200+w.random.IntN(3000)) * time.Millisecond)
	w.clients.read()
	w.checkRecord()
}

// tick lets everything of this instant happen.
func (w *world) tick() { time.Sleep(time.Duration(10_000+w.random.IntN(1_000_000)) * time.Nanosecond) }

// next returns the instant to which race time moves on: one at which something is due, or one before it.
func (w *world) next() time.Time {
	now := w.now()
	next := now.Add(time.Duration(1+w.random.IntN(300)) * time.Minute)
	due := func(at time.Time) {
		if at.After(now) && at.Before(next) {
			next = at.Add(time.Duration(w.random.IntN(3000)) * time.Millisecond)
		}
	}
	for _, s := range w.schedulers {
		if s.now == nil || s.now.service.Load() == nil {
			continue
		}
		for _, job := range s.now.service.Load().Jobs() {
			if job.Name == "freeze" || job.Name == "build" {
				due(job.Next)
			}
		}
	}
	for _, u := range w.upstreams {
		for _, at := range u.bounds {
			due(at)
		}
	}
	facts := small.truth.Facts()
	for i := range facts.Seasons[1].Rounds { // a race is watched
		if since := now.Sub(facts.Seasons[1].Rounds[i].Start); since > -30*time.Minute && since < 2*time.Hour {
			due(now.Add(time.Duration(4+w.random.IntN(16)) * time.Minute))
		}
	}
	return next
}

// machines changes the weather, kills processes and starts them again.
func (w *world) machines() {
	for _, s := range w.schedulers {
		w.tick()
		switch {
		case s.now == nil:
			if w.random.IntN(2) == 0 {
				s.start()
				w.tick() // its first calls have no weather
			}
		case s.now.line.isDead():
			s.stop(true)
		case w.random.IntN(25) == 0:
			s.stop(w.random.IntN(2) == 0)
		case w.random.IntN(12) == 0:
			s.now.line.killAfter(1 + w.random.IntN(200))
		}
		if s.now != nil {
			s.now.line.set(w.weather())
		}
		switch w.random.IntN(30) {
		case 0:
			s.skew.Store(int64(time.Duration(w.random.IntN(7200)-3600) * time.Second))
		case 1, 2, 3, 4, 5:
			s.skew.Store(0)
		}
	}
	for _, g := range w.edges {
		w.tick()
		switch {
		case g.now == nil:
			if w.random.IntN(2) == 0 {
				if g.folder != "" && w.random.IntN(2) == 0 {
					g.tear()
				}
				g.start()
				w.tick()
			}
		case w.random.IntN(20) == 0 || g.folder == "" && w.random.IntN(8) == 0:
			g.stop()
		}
		if g.now != nil {
			sky := w.weather()
			g.now.line.set(sky)
			switch {
			case sky != weather{}:
				g.clear = time.Time{}
			case g.clear.IsZero():
				g.clear = time.Now()
			}
		}
	}
}

// weather returns none for most of the time.
func (w *world) weather() weather {
	some := func(most uint64) uint64 {
		if w.random.IntN(2) == 0 {
			return 0
		}
		return w.random.Uint64N(most)
	}
	switch w.random.IntN(6) {
	case 0:
		return weather{slow: some(60), lost: some(80), failed: some(80), full: some(40), torn: some(40)}
	case 1:
		return weather{failed: some(1000), full: some(300)}
	}
	return weather{}
}

// settle ends all faults, and expects the world to be well soon, without a person.
func (w *world) settle() {
	w.calm.Store(true)
	for _, s := range w.schedulers {
		s.skew.Store(0)
		if s.now != nil && s.now.line.isDead() {
			s.stop(true)
		}
		if s.now == nil {
			s.start()
		}
		s.now.line.calm()
	}
	for _, g := range w.edges {
		if g.now == nil {
			g.start()
		}
		g.now.line.calm()
		if g.clear.IsZero() {
			g.clear = time.Now()
		}
	}
	time.Sleep(time.Second)
	w.jump(w.now().Add(ledger.StepAccepted + time.Minute)) // a clock that was set right is believed then
	time.Sleep(6 * time.Minute)                            // the longest wait for a retry of a job is five minutes
	w.note("settled")
	if pointer, _, err := snapshots.LoadPointer(w.t.Context(), w.disk); err == nil && pointer.Held {
		o := w.actions()
		if o == nil {
			w.fail("no scheduler has started")
		}
		_, err := w.do(o, operator.ReleasePublishing{}, false) // a hold is a decision of a person
		must.Do(w.t, err)
		time.Sleep(time.Minute)
	}
	w.clients.read()
	w.checkRecord()
	pointer, _, err := snapshots.LoadPointer(w.t.Context(), w.disk)
	if err != nil {
		w.fail("the pointer cannot be read: %v", err)
	}
	for _, s := range w.schedulers {
		running := s.now.service.Load()
		if running == nil {
			w.fail("the scheduler %s has not started", s.name)
		}
		for _, job := range running.Jobs() {
			if job.LastError != "" {
				w.fail("the job %s of %s still fails: %s", job.Name, s.name, job.LastError)
			}
		}
	}
	for _, g := range w.edges {
		status := g.now.edge.Status()
		if status.Version != pointer.Version || status.StoreProblem != "" || !status.Ready || status.Stale {
			w.fail("the edge %s serves version %d of %d: ready %t, stale %t, problem %q, refused %+v", g.name, status.Version, pointer.Version, status.Ready, status.Stale, status.StoreProblem, status.Refused)
		}
	}
	found := must.Get(snapshots.Verify(w.t.Context(), w.disk, 0, nil))(w.t)
	if len(found.Faults) > 0 {
		w.fail("version %d is damaged: %v", found.Version, found.Faults)
	}
	audit := must.Get(proof.AuditStore(w.t.Context(), w.disk))(w.t)
	if err := audit.Err(); err != nil {
		w.fail("the audit: %v", err)
	}
}
