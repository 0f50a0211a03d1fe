package snapshots_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/s3blob"
	"gridcast/snapshots/blob/s3test"
)

// following runs Follow against a real store and passes on its versions and reports.
type following struct {
	versions chan *snapshots.Version
	reports  chan snapshots.FollowReport
	stop     func()

	reported int         // reports until now; Follow's own
	early    atomic.Bool // the first version came before any report
}

func followReal(t *testing.T, s, cache blob.Store) *following {
	t.Helper()
	f := &following{versions: make(chan *snapshots.Version, 1000), reports: make(chan snapshots.FollowReport, 1000)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- snapshots.Follow(ctx, snapshots.FollowConfig{
			Store: s, Cache: cache,
			Deliver: func(v *snapshots.Version) error {
				if f.reported == 0 {
					f.early.Store(true)
				}
				f.versions <- v
				return nil
			},
			Report: func(r snapshots.FollowReport) {
				f.reported++
				if !r.Repeated {
					f.reports <- r
				}
			},
			CacheFailed: func(err error) { t.Errorf("cache: %v", err) },
		})
	}()
	f.stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(f.stop)
	return f
}

const timeout = time.Minute

func (f *following) wantVersion(t *testing.T, want int64, content bodies) {
	t.Helper()
	select {
	case v := <-f.versions:
		checkWhole(t, v)
		if got := contentOf(v); v.Pointer.Version != want || got["drivers"] != content["drivers"] {
			t.Fatalf("delivered version %d, %v; want %d, %v", v.Pointer.Version, got, want, content)
		}
	case <-time.After(timeout):
		t.Fatalf("version %d was not delivered within %v", want, timeout)
	}
}

func (f *following) wantState(t *testing.T, want snapshots.FollowState) {
	t.Helper()
	deadline := time.After(timeout)
	for {
		select {
		case r := <-f.reports:
			if r.State == want {
				return
			}
		case <-deadline:
			t.Fatalf("not %s within %v", want, timeout)
		}
	}
}

// The S3 server dies. The edge keeps its version and reports the outage. Another edge starts from its own copy. Both
// go on when the server is back.
func TestOutage(t *testing.T) {
	server := s3test.Versity(t)
	config := server.Config(t)
	patient := s3test.Store(t, config) // the builder's
	config.Poll, config.Deadline = 100*time.Millisecond, 500*time.Millisecond
	s := s3test.Store(t, config)
	root := t.TempDir()
	publish(t, patient, bodies{"drivers": "d1"})
	running := followReal(t, s, openDirectory(t, t.TempDir()))
	running.wantVersion(t, 1, bodies{"drivers": "d1"})
	running.wantState(t, snapshots.Following)

	// Another edge makes its copy and is stopped when the copy is complete.
	t.Run("copy", func(t *testing.T) {
		cache := openDirectory(t, root)
		followReal(t, s, cache).wantVersion(t, 1, bodies{"drivers": "d1"})
		must.Get(cache.Watch(t.Context(), snapshots.PointerKey, "", blob.MaxDocument))(t)
	})

	server.Stop()
	running.wantState(t, snapshots.Unreachable)
	restarted := followReal(t, s, openDirectory(t, root))
	restarted.wantVersion(t, 1, bodies{"drivers": "d1"})
	must.Hold(t, restarted.early.Load(), "it waited for the server before it started from the copy")
	restarted.wantState(t, snapshots.Unreachable)

	server.Start(t)
	for _, f := range []*following{running, restarted} {
		f.wantState(t, snapshots.Following)
	}
	publish(t, patient, bodies{"drivers": "d2"})
	for _, f := range []*following{running, restarted} {
		f.wantVersion(t, 2, bodies{"drivers": "d2"})
	}
}

// Publishing and following through a network that fails in every way, by a seed: every version arrives in the end,
// whole and in order.
func TestFollowThroughFaults(t *testing.T) {
	server := s3test.Versity(t)
	config := server.Config(t)
	direct := s3test.Store(t, config)
	proxy := s3test.Front(t, server)
	config.Endpoint, config.Poll, config.Attempt = proxy.URL(), 50*time.Millisecond, 300*time.Millisecond
	through := must.Get(s3blob.New(config))(t)
	proxy.Seeded(11, 0.2, s3test.Faults)
	publish(t, direct, bodies{"drivers": "d0", "calendar/2024": "c"})
	f := followReal(t, through, nil)
	f.wantVersion(t, 1, bodies{"drivers": "d0"})
	for i := range int64(5) {
		content := bodies{"drivers": "d" + string(rune('1'+i)), "calendar/2024": "c"}
		r := publish(t, through, content)
		f.wantVersion(t, r.Version, content)
	}
	t.Logf("faults made: %v", proxy.Made())
}
