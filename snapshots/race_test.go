package snapshots_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/s3blob"
	"gridcast/snapshots/blob/s3test"
)

// opener opens a store again, as another process would.
type opener func() blob.Store

func openers(t *testing.T) map[string]func(t *testing.T) opener {
	t.Helper()
	return map[string]func(t *testing.T) opener{
		"memory": func(t *testing.T) opener {
			s := strict(t)
			return func() blob.Store { return s }
		},
		"directory": func(t *testing.T) opener {
			root := t.TempDir()
			return func() blob.Store { return openDirectory(t, root) }
		},
		"versitygw": func(t *testing.T) opener {
			config := s3test.Versity(t).Config(t)
			s3test.Store(t, config)
			return s3Opener(t, config)
		},
		"versitygw with faults": func(t *testing.T) opener {
			server := s3test.Versity(t)
			config := server.Config(t)
			s3test.Store(t, config)
			proxy := s3test.Front(t, server)
			proxy.Seeded(7, 0.05, s3test.Faults)
			t.Cleanup(func() { t.Logf("faults made: %v", proxy.Made()) })
			config.Endpoint, config.Attempt = proxy.URL(), 500*time.Millisecond
			return s3Opener(t, config)
		},
	}
}

func s3Opener(t *testing.T, config s3blob.Config) opener {
	config.Poll = 50 * time.Millisecond
	return func() blob.Store {
		return must.Get(s3blob.New(config))(t)
	}
}

// Builders race on one store. Each adds one to a count that it reads from its base, so a lost
// or mixed version shows in the count; an edge follows and checks every byte.
func TestRacingBuilders(t *testing.T) {
	for name, prepare := range openers(t) {
		for _, builders := range []int{2, 8} {
			t.Run(fmt.Sprintf("%s, %d builders", name, builders), func(t *testing.T) { race(t, prepare(t), builders) })
		}
	}
}

func race(t *testing.T, open opener, builders int) {
	goOn := raceUntil()
	e := &racingEdge{moved: sync.NewCond(new(sync.Mutex))}
	ctx, cancel := context.WithCancel(t.Context())
	reader := open()
	var following sync.WaitGroup
	following.Go(func() {
		_ = snapshots.Follow(ctx, snapshots.FollowConfig{Store: reader, Deliver: func(v *snapshots.Version) error { e.take(t, v); return nil }})
	})

	l := &racers{published: map[int64]int{}}
	var racing sync.WaitGroup
	for i := range builders {
		s := open()
		racing.Go(func() {
			for goOn() {
				l.once(t, s, i)
			}
		})
	}
	racing.Wait()
	e.wait(loadBase(t, open()).Pointer.Version)
	cancel()
	following.Wait()

	v := must.Get(snapshots.Open(t.Context(), open(), nil))(t)
	checkWhole(t, v)
	if got, want := counted(t, v), len(l.published)+l.doubtful; got < len(l.published) || got > want {
		t.Errorf("the count is %d after %d publishes and %d in doubt", got, len(l.published), l.doubtful)
	}
	t.Logf("%d published, %d outrun, %d in doubt; version %d; the edge saw %d", len(l.published), l.outrun, l.doubtful, v.Pointer.Version, e.seen)
}

// racingEdge checks every delivered version while builders race.
type racingEdge struct {
	moved *sync.Cond // its lock guards the rest
	last  int64
	seen  int
}

func (e *racingEdge) take(t *testing.T, v *snapshots.Version) {
	checkWhole(t, v)
	e.moved.L.Lock()
	defer e.moved.L.Unlock()
	must.Hold(t, v.Pointer.Version > e.last, "the edge went from version %d to %d", e.last, v.Pointer.Version)
	e.last = v.Pointer.Version
	e.seen++
	e.moved.Broadcast()
}

// wait waits until the edge has the version.
func (e *racingEdge) wait(version int64) {
	e.moved.L.Lock()
	defer e.moved.L.Unlock()
	for e.last < version {
		e.moved.Wait()
	}
}

// raceUntil returns a function that says whether to publish once more.
func raceUntil() (goOn func() bool) {
	var mu sync.Mutex
	left := 40
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		left--
		return left >= 0
	}
}

// racers holds the counts that the builders of a race share.
type racers struct {
	mu        sync.Mutex // guards all below
	published map[int64]int
	outrun    int
	doubtful  int
}

// once publishes the count of the base and one.
func (l *racers) once(t *testing.T, s blob.Store, builder int) {
	ctx := t.Context()
	base, err := snapshots.LoadBase(ctx, s, nil)
	if err != nil {
		t.Errorf("builder %d: %v", builder, err)
		return
	}
	count := 0
	if e, ok := base.Entry("count"); ok {
		body, err := base.Body(ctx, e)
		if err != nil {
			t.Errorf("builder %d: %v", builder, err)
			return
		}
		if count, err = strconv.Atoi(string(body)); err != nil {
			t.Errorf("builder %d: %v", builder, err)
			return
		}
	}
	p := snapshots.Publisher{Store: s}
	r, err := p.Publish(ctx, draftOf(base, bodies{"count": strconv.Itoa(count + 1), "drivers": "the same"}))

	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		other, twice := l.published[r.Version]
		must.Hold(t, !twice, "builders %d and %d both published version %d", other, builder, r.Version)
		l.published[r.Version] = builder
	case errors.Is(err, snapshots.ErrBaseChanged):
		l.outrun++
	case errors.Is(err, blob.ErrUnknown):
		l.doubtful++
	default:
		t.Errorf("builder %d: %v", builder, err)
	}
}

func counted(t *testing.T, v *snapshots.Version) int {
	t.Helper()
	b, ok := v.Body("count")
	if !ok {
		t.Fatal("no count in the last version")
	}
	return must.Get(strconv.Atoi(string(b.Identity)))(t)
}
