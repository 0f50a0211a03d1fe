package snapshots_test

import (
	"context"
	"maps"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

// trips is a store that takes a second for an answer, by the clock of a synctest bubble. A duration in seconds is
// therefore a number of successive round trips; requests side by side count once.
type trips struct {
	blob.Store

	mu      sync.Mutex
	calls   map[faultblob.Call]int
	writers int
}

// Writers implements blob.Grouper.
func (s *trips) Writers() int { return s.writers }

func newTrips(inner blob.Store) *trips {
	s := &trips{calls: map[faultblob.Call]int{}}
	s.Store = faultblob.Wrap(inner, func(ctx context.Context, call faultblob.Call) faultblob.Fate {
		if call.Op == faultblob.Watch {
			<-ctx.Done() // it never reports a change, so the test wakes the follower
			return faultblob.Fate{}
		}
		s.mu.Lock()
		s.calls[call]++
		s.mu.Unlock()
		time.Sleep(time.Second)
		return faultblob.Fate{}
	})
	return s
}

// take returns the calls since the last take.
func (s *trips) take() map[faultblob.Call]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := maps.Clone(s.calls)
	clear(s.calls)
	return calls
}

// verified are the seven documents of decades that a verified result changes.
func verified(what string) bodies {
	return bodies{
		"calendar/2026": what, "standings/drivers/2026": what, "predictions/2026": what, "results/2026": what,
		"results/session/2026022": what, "drivers": what, "next-race": what,
	}
}

// A publish of a verified result makes as few round trips as its order allows: the numbers in use, the claim, the
// objects, the objects read back, the manifest, the manifest read back, the pointer, the pointer read back. The
// next publish does not read them again.
func TestPublishTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTrips(memblob.New(memblob.Strict(t, snapshots.Immutable)))
		receipt := publish(t, s, decades())
		s.take()
		for _, c := range []struct {
			what                    string
			workers, writers, trips int
		}{{"first", 0, 0, 8}, {"grouped", 0, 4, 8 + 1 + 1}, {"slow", 2, 4, 8 + 3 + 3}} {
			began := time.Now()
			s.writers = c.writers
			base := must.Get(snapshots.LoadBase(t.Context(), s, receipt.Base))(t)
			must.Equal(t, "to learn that nothing was published", map[faultblob.Call]int{{Op: faultblob.Get, Key: snapshots.PointerKey}: 1}, s.take())
			must.Hold(t, base == receipt.Base, "it is another base, though nothing was published")
			receipt = must.Get((&snapshots.Publisher{Store: s, Workers: c.workers}).Publish(t.Context(), draftOf(base, decades().with(verified(c.what)))))(t)
			got := int(time.Since(began) / time.Second)
			must.Equal(t, "seconds of the receipt", float64(c.trips), receipt.Seconds)
			must.Hold(t, got == 1+c.trips, "the %s result took %d round trips, want %d", c.what, got, 1+c.trips)
			if calls := s.take(); calls[faultblob.Call{Op: faultblob.Get, Key: snapshots.ManifestKey(base.Pointer.Version)}] > 0 {
				t.Error("the manifest of the version before was read again")
			}
			if diff := cmp.Diff(loadBase(t, s), receipt.Base, cmp.AllowUnexported(snapshots.Base{}, snapshots.Part{}),
				cmpopts.IgnoreFields(snapshots.Base{}, "store", "stored")); diff != "" {
				t.Errorf("the base for the next version (-as it is read +as it was published):\n%s", diff)
			}
			s.take()
		}

		// Another builder publishes: only the new files of its manifest are read.
		publish(t, s, decades().with(verified("theirs")))
		s.take()
		base := must.Get(snapshots.LoadBase(t.Context(), s, receipt.Base))(t)
		want := map[faultblob.Call]int{
			{Op: faultblob.Get, Key: snapshots.PointerKey}: 1, {Op: faultblob.Get, Key: snapshots.ManifestKey(5)}: 1,
		}
		must.Equal(t, "to learn what another builder published", want, s.take())
		must.Get((&snapshots.Publisher{Store: s}).LoadBase(t.Context(), receipt.Base))(t)
		must.Equal(t, "to learn it as a publisher", want, s.take())
		must.Hold(t, base.Pointer.Version == 5 && base.Manifest.Version == 5,
			"got version %d with the manifest of %d, want 5", base.Pointer.Version, base.Manifest.Version)

		// A rollback keeps the facts that the archive lacks.
		d := draftOf(base, bodies{"drivers": "d"})
		d.Missing = []snapshots.Missing{{Code: "grid"}}
		must.Get((&snapshots.Publisher{Store: s}).Publish(t.Context(), d))(t)
		began := time.Now()
		must.Equal(t, "seconds of a rollback", rollback(t, s, 1).Seconds, time.Since(began).Seconds())
		m := loadBase(t, s).Manifest
		must.Equal(t, "missing facts after it", d.Missing, m.Missing)
		must.Equal(t, "the time of its documents", raceDay, m.DocumentsAt())
	})
}

// An edge that is woken serves a verified result after two round trips and three reads: the pointer with the
// manifest of the next version, and the delta with all bodies.
func TestFollowTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memblob.New()
		publish(t, inner, decades())
		s := newTrips(inner)
		look, served := make(chan struct{}, 1), make(chan int64, 1)
		ctx, cancel := context.WithCancel(t.Context())
		var following sync.WaitGroup
		following.Go(func() {
			_ = snapshots.Follow(ctx, snapshots.FollowConfig{Store: s, Wake: look, Deliver: func(v *snapshots.Version) error {
				served <- v.Pointer.Version
				return nil
			}})
		})
		<-served
		synctest.Wait()
		s.take()
		publish(t, inner, decades().with(verified("now")))
		began := time.Now()
		look <- struct{}{}
		version := <-served
		must.Hold(t, version == 2, "version %d is served, want 2", version)
		got := time.Since(began)
		must.Hold(t, got == 2*time.Second, "it took %d round trips, want 2", got/time.Second)
		want := map[faultblob.Call]int{
			{Op: faultblob.Get, Key: snapshots.PointerKey}:     1,
			{Op: faultblob.Get, Key: snapshots.ManifestKey(2)}: 1,
			{Op: faultblob.Get, Key: "deltas/2"}:               1,
		}
		must.Equal(t, "reads of the edge", want, s.take())
		cancel()
		following.Wait()
	})
}

// Listing forty versions takes a few round trips, because their manifests are read side by side. It reads no file twice.
func TestHistoryTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memblob.New()
		receipt := publish(t, inner, decades())
		for i := range 39 {
			receipt = must.Get((&snapshots.Publisher{Store: inner}).Publish(t.Context(), draftOf(receipt.Base, decades().with(verified(strconv.Itoa(i))))))(t)
		}
		s := newTrips(inner)
		began := time.Now()
		list := must.Get(snapshots.List(t.Context(), s))(t)
		must.Hold(t, len(list) == 40, "got %d versions, want 40", len(list))
		got := int(time.Since(began) / time.Second)
		must.Hold(t, got <= 8, "it took %d round trips, want at most 8", got)
		for call, times := range s.take() {
			must.Hold(t, times <= 1 || call.Op != faultblob.Get, "%s was read %d times, want once", call.Key, times)
		}
	})
}

// TestPruneTrips checks that a prune makes no more round trips for more published versions: it reads their manifests
// once, side by side.
func TestPruneTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trips := func(versions int) time.Duration {
			s := newTrips(memblob.New())
			for n := range versions {
				publish(t, s, bodies{"calendar/2026": strconv.Itoa(n)})
			}
			began := time.Now()
			must.Get(snapshots.Prune(t.Context(), s, versions, began, true))(t)
			return time.Since(began)
		}
		few, many := trips(2), trips(10)
		must.Hold(t, many == few, "2 versions take %v, 10 take %v, want as many round trips", few, many)
	})
}
