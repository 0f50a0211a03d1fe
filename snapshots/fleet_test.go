package snapshots_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"text/tabwriter"
	"time"

	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/blob/s3blob"
	"gridcast/snapshots/blob/s3test"
)

// fleetStore is a store as the edges of a fleet have it: it is asked once a second whether an
// object has changed, as over S3, each answer takes a while, and it gives only so many a second.
type fleetStore struct {
	blob.Store

	delay     time.Duration
	perSecond int // answers; 0: any number

	mu      sync.Mutex // guards what follows
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

// Watch implements [blob.Store] as s3blob does.
func (s *fleetStore) Watch(ctx context.Context, key string, seen blob.Tag, limit int64) (blob.Object, error) {
	for {
		if err := s.answer(ctx, "unchanged"); err != nil {
			return blob.Object{}, err
		}
		o, err := s.Store.Get(ctx, key, limit)
		if err != nil && !errors.Is(err, blob.ErrNotFound) || o.Tag != seen {
			return o, err
		}
		select {
		case <-time.After(900*time.Millisecond + rand.N(200*time.Millisecond)):
		case <-ctx.Done():
			return blob.Object{}, context.Cause(ctx)
		}
	}
}

// take returns what was counted since the last time, and the most in one second.
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

// TestFleet has a hundred followers on one store, or a thousand where everything is measured, and publishes
// what a verified result changes: eleven variants. It prints how long it takes until they serve it, and what the store has to
// answer, at rest and then. Time is that of the test: it shows the protocol, not this machine.
func TestFleet(t *testing.T) {
	if testing.Short() {
		t.Skip("short: more goroutines than the race detector follows")
	}
	edges := 100
	if measuringAll() {
		edges = 1000
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "edges\ttold\tan answer takes\tanswers a second\tserved by half\tby 99 %\tby all\tat rest: answers a second\tfor the change\tmost in a second\t")
	for _, c := range []struct {
		told      bool // of the change, all at once
		delay     time.Duration
		perSecond int
		all       time.Duration // by when all must serve it
	}{
		{false, 0, 0, 1200 * time.Millisecond},
		{false, 30 * time.Millisecond, 0, 1500 * time.Millisecond},
		{false, 100 * time.Millisecond, 0, 2 * time.Second},
		{false, 30 * time.Millisecond, 5500, 10 * time.Second},
		{true, 30 * time.Millisecond, 0, 90 * time.Millisecond}, // three answers: pointer, manifest, objects
		{true, 100 * time.Millisecond, 0, 300 * time.Millisecond},
		{true, 30 * time.Millisecond, 5500, 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, edges, c.delay, c.perSecond)
			f.settle(t, time.Minute)
			rest, took, reads, most := f.change(t, c.told)
			limit := "any"
			if c.perSecond > 0 {
				limit = strconv.Itoa(c.perSecond)
			}
			at := func(share float64) time.Duration {
				return took[min(len(took)-1, int(share*float64(len(took))))].Round(10 * time.Millisecond)
			}
			total := reads["current.json"] + reads["manifests"] + reads["objects"]
			fmt.Fprintf(w, "%d\t%t\t%s\t%s\t%s\t%s\t%s\t%.0f\t%d\t%d\t\n", edges, c.told, c.delay, limit, at(0.5), at(0.99), at(1), rest, total, most)
			if got := at(1); got > c.all {
				t.Errorf("the last of %d edges served the change after %s, want %s at most", edges, got, c.all)
			}
			// A manifest and eleven bodies, and nothing that they had already.
			if reads["manifests"] != edges || reads["objects"] != 11*edges {
				t.Errorf("%d edges read %d manifests and %d objects, want %d and %d", edges, reads["manifests"], reads["objects"], edges, 11*edges)
			}
		})
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table.String())
}

// TestFleetOverS3 is the same on a real server and by the clock on the wall, each answer of which is
// late by 20 ms: followers, clients and server are on this machine, and share its cores.
func TestFleetOverS3(t *testing.T) {
	edges, err := strconv.Atoi(os.Getenv("GRIDCAST_FLEET"))
	if err != nil {
		t.Skip("a measurement: set GRIDCAST_FLEET to a number of edges")
	}
	server := s3test.Versity(t)
	config := server.Config(t)
	inner := s3test.Store(t, config)
	proxy := s3test.Front(t, server)
	f := &fleet{inner: inner, edges: edges, store: &fleetStore{reads: map[string]int{}, seconds: map[int64]int{}}}
	proxy.Choose(func(r *http.Request) s3test.Fault {
		for _, kind := range []string{"current.json", "manifests", "objects"} {
			if strings.Contains(r.URL.Path, "/"+kind) {
				f.store.count(kind)
			}
		}
		return s3test.Latency
	})
	config.Endpoint = proxy.URL()
	f.follow(t, func() blob.Store {
		s, err := s3blob.New(config)
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
	f.settle(t, time.Minute)
	rest, took, reads, most := f.change(t, os.Getenv("GRIDCAST_FLEET_TOLD") != "")
	t.Logf("%d edges over S3: %s; at rest %.0f answers a second, for the change %v, most in a second %d", edges, quantiles(took), rest, reads, most)
}

// fleet is some edges that follow a store.
type fleet struct {
	inner blob.Store
	store *fleetStore
	edges int
	looks []chan struct{} // of each edge

	mu     sync.Mutex // guards what follows
	served []time.Time
}

func newFleet(t *testing.T, edges int, delay time.Duration, perSecond int) *fleet {
	t.Helper()
	f := &fleet{inner: memblob.New(), edges: edges}
	f.store = &fleetStore{Store: f.inner, delay: delay, perSecond: perSecond, reads: map[string]int{}, seconds: map[int64]int{}}
	f.follow(t, func() blob.Store { return f.store })
	return f
}

// follow publishes a first version, and starts the edges, each on a store of its own opening.
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
			_ = snapshots.Follow(ctx, snapshots.FollowConfig{Store: s, Look: look, Deliver: func(*snapshots.Version) error {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.served = append(f.served, time.Now())
				return nil
			}})
		})
	}
}

// publish publishes fifteen variants, of which the first eleven say something.
func (f *fleet) publish(t *testing.T, text string) {
	t.Helper()
	d := draftOf(loadBase(t, f.inner), nil)
	for i := range 15 {
		if i >= 11 {
			text = "always"
		}
		d.Variants = append(d.Variants, variant(fmt.Sprintf("calendar/%d", 2010+i), text))
	}
	if _, err := (&snapshots.Publisher{Store: f.inner}).Publish(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

// settle waits until all edges serve the first version.
func (f *fleet) settle(t *testing.T, atMost time.Duration) {
	t.Helper()
	time.Sleep(atMost)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.served) != f.edges {
		t.Fatalf("%d of %d edges serve the first version", len(f.served), f.edges)
	}
	f.served = nil
	f.store.take()
}

// change returns the answers a second while nothing changes, then publishes, tells the edges or leaves them
// to find out, and returns how long each edge took to serve the change and what it asked for.
func (f *fleet) change(t *testing.T, told bool) (rest float64, took []time.Duration, reads map[string]int, most int) {
	t.Helper()
	const still = 20 * time.Second
	time.Sleep(still)
	reads, _ = f.store.take()
	for _, n := range reads {
		rest += float64(n) / still.Seconds()
	}
	f.publish(t, "after")
	published := time.Now()
	for _, look := range f.looks {
		if told {
			look <- struct{}{}
		}
	}
	time.Sleep(30 * time.Second)
	reads, most = f.store.take()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.served) != f.edges {
		t.Fatalf("%d of %d edges serve the change", len(f.served), f.edges)
	}
	for _, at := range f.served {
		took = append(took, at.Sub(published))
	}
	slices.Sort(took)
	return rest, took, reads, most
}
