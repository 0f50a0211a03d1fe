package fleet_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"text/tabwriter"
	"time"

	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/blob/s3blob"
	"gridcast/snapshots/blob/s3test"
)

// fleetStore is the store of a fleet of edges. It notices a change by a poll every second, as over S3, takes a
// while for each answer, and gives a limited number of answers a second.
type fleetStore struct {
	blob.Store

	delay     time.Duration
	perSecond int // answers; 0: any number

	mu      sync.Mutex // guards the fields below
	free    time.Time  // when the next answer can be given
	reads   map[string]int
	seconds map[int64]int // answers by the second in which they were asked for
}

// answer waits as long as an answer takes, and counts it.
func (s *fleetStore) answer(ctx context.Context, kind string) error {
	now := time.Now()
	s.count(kind)
	at := now
	s.mu.Lock()
	if s.perSecond > 0 {
		s.free = s.free.Add(time.Second / time.Duration(s.perSecond))
		if s.free.Before(now) {
			s.free = now
		}
		at = s.free
	}
	s.mu.Unlock()
	select {
	case <-time.After(at.Sub(now) + s.delay):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *fleetStore) count(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads[kind]++
	s.seconds[time.Now().Unix()]++
}

// Get implements [blob.Store].
func (s *fleetStore) Get(ctx context.Context, key string, limit int64) (blob.Object, error) {
	kind, _, _ := strings.Cut(key, "/")
	if err := s.answer(ctx, kind); err != nil {
		return blob.Object{}, err
	}
	return s.Store.Get(ctx, key, limit)
}

// Watch implements [blob.Store] as s3blob does for a follower that has read the object before.
func (s *fleetStore) Watch(ctx context.Context, key string, seen blob.Tag, limit int64) (blob.Object, error) {
	for {
		select {
		case <-time.After(900*time.Millisecond + rand.N(200*time.Millisecond)):
		case <-ctx.Done():
			return blob.Object{}, context.Cause(ctx)
		}
		if err := s.answer(ctx, "unchanged"); err != nil {
			return blob.Object{}, err
		}
		o, err := s.Store.Get(ctx, key, limit)
		if err != nil && !errors.Is(err, blob.ErrNotFound) || o.Tag != seen {
			return o, err
		}
	}
}

// take returns the counts since the last call, and the most in one second.
func (s *fleetStore) take() (reads map[string]int, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reads = s.reads
	for _, n := range s.seconds {
		most = max(most, n)
	}
	s.reads, s.seconds = map[string]int{}, map[int64]int{}
	return reads, most
}

// TestFleet has a hundred followers on one store, or a thousand in a full measurement, and publishes the eleven
// variants that a verified result changes. It prints the time until all serve them, and the load of the store at
// rest and during the change. Its clock is that of the test: it shows the protocol, not this machine.
func TestFleet(t *testing.T) {
	must.Long(t, "more goroutines than the race detector follows")
	edges := 100
	if measuringAll() {
		edges = 1000
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "edges\ttold\tan answer takes\tanswers a second\tserved by half\tby 99 %\tby all\tat rest: answers a second\tfor the change\tmost in a second\t")
	for _, c := range []struct {
		told      bool // all edges are woken at once
		delay     time.Duration
		perSecond int
		all       time.Duration // by when all must serve it
	}{
		{false, 0, 0, 1200 * time.Millisecond},
		{false, 30 * time.Millisecond, 0, 1500 * time.Millisecond},
		{false, 80 * time.Millisecond, 0, 2 * time.Second}, // another continent
		{false, 100 * time.Millisecond, 0, 2 * time.Second},
		{false, 30 * time.Millisecond, 5500, 10 * time.Second},
		{true, 30 * time.Millisecond, 0, 90 * time.Millisecond}, // three answers for an edge that is just reading the pointer: pointer, manifest, delta
		{true, 80 * time.Millisecond, 0, 240 * time.Millisecond},
		{true, 100 * time.Millisecond, 0, 300 * time.Millisecond},
		{true, 30 * time.Millisecond, 5500, 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, edges, c.delay, c.perSecond)
			rest, changed := f.rest(t, nil), f.change(t, "after", c.told, nil)
			limit := "any"
			if c.perSecond > 0 {
				limit = strconv.Itoa(c.perSecond)
			}
			fmt.Fprintf(w, "%d\t%t\t%s\t%s\t%s\t%s\t%s\t%.0f\t%d\t%d\t\n", edges, c.told, c.delay, limit,
				changed.by(0.5), changed.by(0.99), changed.by(1), rest.perSecond(), changed.answers(), changed.most)
			if got := changed.by(1); got > c.all {
				t.Errorf("the last of %d edges served the change after %s, want %s at most", edges, got, c.all)
			}
			if got := changed.by(0.5); c.told && c.perSecond == 0 && got > 2*c.delay { // pointer beside manifest, delta
				t.Errorf("half of %d edges served the change after %s, want two answers, %s", edges, got, 2*c.delay)
			}
			// Each edge reads a manifest and a delta with eleven bodies. An edge that is woken after it found the
			// change by itself asks for one manifest in vain.
			vain := 0
			if c.told {
				vain = edges
			}
			if m, d, o := changed.reads["manifests"], changed.reads["deltas"], changed.reads["objects"]; m < edges || m > edges+vain || d != edges || o > 0 {
				t.Errorf("%d edges read %d manifests, %d deltas and %d objects, want %d, %d and none", edges, m, d, o, edges, edges)
			}
			// An edge that found the change by polling has read the pointer then. Each edge reads it every five seconds anyway.
			if n := changed.reads["current.json"]; !c.told && c.perSecond == 0 && n > edges*3/4 {
				t.Errorf("%d edges read the pointer %d times more after they had been answered with it", edges, n)
			}
		})
	}
	must.Do(t, w.Flush())
	t.Log("\n" + table.String())
}

// TestFleetOverS3 is TestFleet with a thousand clients of a real server, by the wall clock, on the processors of this
// machine. Every second change wakes the edges.
func TestFleetOverS3(t *testing.T) {
	if !measuringAll() {
		t.Skip("a measurement, and minutes of every processor: set " + measureAll)
	}
	const edges, delay = 1000, 30 * time.Millisecond
	access := &accessLog{name: filepath.Join(t.TempDir(), "access.log")}
	server := s3test.Versity(t, "--access-log", access.name)
	config := server.Config(t)
	f := &fleet{inner: s3test.Store(t, config), edges: edges, take: func() (map[string]int, int) { return access.take(t) }}
	config.Poll = time.Second + delay // as if lateStore were on the way of each poll
	f.follow(t, func() blob.Store {
		s := must.Get(s3blob.New(config))(t)
		return lateStore{s, delay}
	})
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "told\tserved by half\tby 99 %\tby all\tat rest: answers a second\tµs each of the server\tof the edges\t"+
		"for the change\tmost in a second\tµs each of the server\tof the edges\t")
	for round := range 4 {
		told := round%2 == 1
		rest, changed := f.rest(t, server), f.change(t, strconv.Itoa(round), told, server)
		fmt.Fprintf(w, "%t\t%s\t%s\t%s\t%.0f\t%d\t%d\t%d\t%d\t%d\t%d\t\n", told, changed.by(0.5), changed.by(0.99), changed.by(1),
			rest.perSecond(), rest.each(rest.server), rest.each(rest.edges),
			changed.forChange(), changed.most, changed.each(changed.server), changed.each(changed.edges))
	}
	must.Do(t, w.Flush())
	t.Log("\n" + table.String())
}

// lateStore is a store whose answers arrive late. A proxy instead would take more of the machine than the measured
// programs, and three times the connections.
type lateStore struct {
	blob.Store

	delay time.Duration
}

// Get implements [blob.Store].
func (s lateStore) Get(ctx context.Context, key string, limit int64) (blob.Object, error) {
	defer time.Sleep(s.delay)
	return s.Store.Get(ctx, key, limit)
}

// Watch implements [blob.Store].
func (s lateStore) Watch(ctx context.Context, key string, seen blob.Tag, limit int64) (blob.Object, error) {
	defer time.Sleep(s.delay)
	return s.Store.Watch(ctx, key, seen, limit)
}

// accessLog is the access log of a versitygw.
type accessLog struct {
	name string
	read int64 // bytes of it
}

// take returns the answers since the last call, by the first folder of their key, and the most in one second.
func (l *accessLog) take(t *testing.T) (reads map[string]int, most int) {
	t.Helper()
	file := must.Get(os.Open(l.name))(t)
	defer file.Close()
	data := must.Get(io.ReadAll(io.NewSectionReader(file, l.read, math.MaxInt64-l.read)))(t)
	data = data[:bytes.LastIndexByte(data, '\n')+1] // one may be half written
	l.read += int64(len(data))
	reads, seconds := map[string]int{}, map[string]int{}
	for line := range strings.Lines(string(data)) {
		// - bucket [22/November/2026:14:16:05 +0000] 127.0.0.1 access-key request s3_GetObject test/gridcast/objects/… /bucket/… 304
		fields := strings.Fields(line)
		if len(fields) < 10 || fields[7] != "s3_GetObject" {
			continue
		}
		kind, _, _ := strings.Cut(strings.TrimPrefix(fields[8], "test/gridcast/"), "/")
		if fields[10] == "304" {
			kind = "unchanged"
		}
		reads[kind]++
		seconds[fields[2]]++
	}
	for _, n := range seconds {
		most = max(most, n)
	}
	return reads, most
}

// fleet is some edges that follow a store.
type fleet struct {
	inner blob.Store
	edges int
	take  func() (reads map[string]int, most int) // since the last time
	looks []chan struct{}                         // of each edge

	mu     sync.Mutex // guards the fields below
	served []time.Time
}

func newFleet(t *testing.T, edges int, delay time.Duration, perSecond int) *fleet {
	t.Helper()
	inner := memblob.New()
	s := &fleetStore{Store: inner, delay: delay, perSecond: perSecond, reads: map[string]int{}, seconds: map[int64]int{}}
	f := &fleet{inner: inner, edges: edges, take: s.take}
	f.follow(t, func() blob.Store { return s })
	return f
}

// follow publishes a first version and starts the edges, each on a store of its own, until all of them serve it.
func (f *fleet) follow(t *testing.T, open func() blob.Store) {
	t.Helper()
	f.publish(t, "before")
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	for range f.edges {
		s, look := open(), make(chan struct{}, 1)
		f.looks = append(f.looks, look)
		running.Go(func() {
			time.Sleep(rand.N(5 * time.Second)) // they were not all started at once
			_ = snapshots.Follow(ctx, snapshots.FollowConfig{Store: s, Wake: look, Deliver: func(*snapshots.Version) error {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.served = append(f.served, time.Now())
				return nil
			}})
		})
	}
	f.settle(t)
}

// publish publishes fifteen variants, of which the first eleven contain the number.
func (f *fleet) publish(t *testing.T, text string) {
	t.Helper()
	d := draftOf(loadBase(t, f.inner))
	for i := range 15 {
		if i >= 11 {
			text = "always"
		}
		d.Variants = append(d.Variants, variant(fmt.Sprintf("calendar/%d", 2010+i), text))
	}
	publish(t, f.inner, d)
}

// settle waits until all edges serve the published version, and returns when each began to.
func (f *fleet) settle(t *testing.T) (served []time.Time) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		f.mu.Lock()
		if len(f.served) == f.edges {
			served, f.served = f.served, nil
		}
		n := len(f.served)
		f.mu.Unlock()
		if served != nil {
			return served
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d edges serve what was published", n, f.edges)
		}
	}
}

// answered counts the answers of a store during a while, and their cost.
type answered struct {
	reads         map[string]int
	most          int // in one second
	within        time.Duration
	server, edges time.Duration   // of a processor
	took          []time.Duration // until each edge served the change, ascending
}

func (a answered) answers() (n int) {
	for _, of := range a.reads {
		n += of
	}
	return n
}

// forChange counts the answers that an edge needed because of a change.
func (a answered) forChange() int { return a.answers() - a.reads["unchanged"] }

func (a answered) perSecond() float64 { return float64(a.answers()) / a.within.Seconds() }

// each returns the share of one answer, in microseconds.
func (a answered) each(cpu time.Duration) int64 { return cpu.Microseconds() / int64(a.answers()) }

// by returns when a share of the edges served the change.
func (a answered) by(share float64) time.Duration {
	return a.took[min(len(a.took)-1, int(share*float64(len(a.took))))].Round(10 * time.Millisecond)
}

// during counts the answers of the store while do runs. The server may be nil, as in a bubble.
func (f *fleet) during(t *testing.T, server *s3test.Server, do func()) (a answered) {
	t.Helper()
	var serverBefore, edgesBefore time.Duration
	f.take()
	if server != nil {
		serverBefore, edgesBefore = cpuOf(t, server), ownCPU()
	}
	began := time.Now()
	do()
	a.within = time.Since(began)
	if server != nil {
		a.server, a.edges = cpuOf(t, server)-serverBefore, ownCPU()-edgesBefore
	}
	a.reads, a.most = f.take()
	return a
}

// ownCPU is the processor time that this process has used.
func ownCPU() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // the arguments are right
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// rest counts the answers of the store while nothing changes.
func (f *fleet) rest(t *testing.T, server *s3test.Server) answered {
	t.Helper()
	return f.during(t, server, func() { time.Sleep(20 * time.Second) })
}

// change publishes, wakes the edges or leaves them to poll, and counts the answers until all serve the version. It
// counts the publisher's own reads too, if the counted store is the publisher's.
func (f *fleet) change(t *testing.T, text string, told bool, server *s3test.Server) answered {
	t.Helper()
	var took []time.Duration
	a := f.during(t, server, func() {
		f.publish(t, text)
		published := time.Now()
		for _, look := range f.looks {
			if told {
				look <- struct{}{}
			}
		}
		for _, at := range f.settle(t) {
			took = append(took, at.Sub(published))
		}
	})
	slices.Sort(took)
	a.took = took
	return a
}

// cpuOf returns the processor time of a server since its start.
func cpuOf(t *testing.T, s *s3test.Server) time.Duration {
	t.Helper()
	stat := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.Process().Pid)))(t)
	// The name in parentheses may hold anything. After it, the 12th and 13th fields are user and system time.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	var ticks int64
	for _, field := range fields[11:13] {
		ticks += must.Get(strconv.ParseInt(field, 10, 64))(t)
	}
	return time.Duration(ticks) * (10 * time.Millisecond) // Linux reports hundredths of a second everywhere
}
