package snapshots_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

// edge follows a store inside a synctest bubble.
type edge struct {
	mu       sync.Mutex // guards the slices while it runs
	versions []*snapshots.Version
	reports  []snapshots.FollowReport
	cache    []error
	looked   time.Time                      // when the last report came
	refuse   func(*snapshots.Version) error // the error of Deliver for a version; nil: accept all
	stop     func() error                   // ends Follow and returns its error
}

func follow(t *testing.T, store, cache blob.Store) *edge {
	t.Helper()
	return followWith(t, store, cache, nil)
}

// followWith is follow with an edge that refuses some versions.
func followWith(t *testing.T, store, cache blob.Store, refuse func(*snapshots.Version) error) *edge {
	t.Helper()
	return followAs(t, snapshots.FollowConfig{Store: store, Cache: cache}, refuse)
}

// followAs is followWith for any configuration. It adds the functions.
func followAs(t *testing.T, config snapshots.FollowConfig, refuse func(*snapshots.Version) error) *edge {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	e := &edge{refuse: refuse, looked: time.Now()}
	done := make(chan error, 1)
	go func() {
		config.Deliver = func(v *snapshots.Version) error { return e.deliver(v) }
		config.Report = e.report
		config.CacheFailed = func(err error) { note(e, &e.cache, err) }
		done <- snapshots.Follow(ctx, config)
	}()
	e.stop = sync.OnceValue(func() error {
		cancel(errStopped)
		return <-done
	})
	synctest.Wait()
	return e
}

// deliver records a version, unless the test refuses it.
func (e *edge) deliver(v *snapshots.Version) error {
	e.mu.Lock()
	refuse := e.refuse
	e.mu.Unlock()
	if refuse != nil {
		if err := refuse(v); err != nil {
			return err
		}
	}
	note(e, &e.versions, v)
	return nil
}

// report records new reports, and the time of the last one.
func (e *edge) report(r snapshots.FollowReport) {
	e.mu.Lock()
	e.looked = time.Now()
	e.mu.Unlock()
	if !r.Repeated {
		note(e, &e.reports, r)
	}
}

func note[T any](e *edge, list *[]T, item T) {
	e.mu.Lock()
	defer e.mu.Unlock()
	*list = append(*list, item)
}

func (e *edge) lastReport() snapshots.FollowReport {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.reports[len(e.reports)-1]
}

var errStopped = errors.New("stopped by the test")

func (e *edge) numbers() []int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	numbers := make([]int64, 0, len(e.versions))
	for _, v := range e.versions {
		numbers = append(numbers, v.Pointer.Version)
	}
	return numbers
}

func (e *edge) states() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	states := make([]string, 0, len(e.reports))
	for _, r := range e.reports {
		states = append(states, string(r.State))
	}
	return strings.Join(states, " ")
}

func (e *edge) lastContent() bodies {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.versions) == 0 {
		return nil
	}
	return contentOf(e.versions[len(e.versions)-1])
}

func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := strict(t)
		e := follow(t, s, nil)
		publish(t, s, bodies{"drivers": "d1", "calendar/2024": "c1"})
		synctest.Wait()
		publish(t, s, bodies{"drivers": "d2", "calendar/2024": "c1"})
		synctest.Wait()
		must.Get(s.Swap(t.Context(), snapshots.PointerKey, must.Get(s.Get(t.Context(), snapshots.PointerKey, blob.MaxDocument))(t).Tag, []byte("{")))(t)
		synctest.Wait()
		must.Fail(t, "a damaged pointer", e.lastReport().Err, snapshots.ErrDamaged)
		err := e.stop()
		must.Hold(t, errors.Is(err, errStopped), "follow returned %v, want the cause of its context's end", err)
		diff := cmp.Diff([]int64{1, 2}, e.numbers())
		must.Require(t, diff == "", "versions (-want +got):\n%s", diff)
		must.Equal(t, "content", bodies{"drivers": "d2", "calendar/2024": "c1"}, e.lastContent())
		must.Equal(t, "states", "waiting following following refused", e.states())
		first, _ := e.versions[0].Body("calendar/2024")
		second, _ := e.versions[1].Body("calendar/2024")
		must.Hold(t, first == second, "a body that did not change is in memory twice")
		body, _ := e.versions[1].Body("drivers")
		must.Hold(t, bytes.Equal(body.Encoded[snapshots.GZ], packed("d2")), "coding: got %q", body.Encoded[snapshots.GZ])
	})
}

// TestSlowStore loads a version from a store that needs four seconds for each object, and as long to unpack each body. Every
// answer and every body lets the follower wait again, so that a version of many reads arrives.
func TestSlowStore(t *testing.T) {
	for _, slow := range []faultblob.Op{faultblob.Get, "unpack"} {
		synctest.Test(t, func(t *testing.T) {
			s, pause := memblob.New(), func(op faultblob.Op) {
				if op == slow {
					time.Sleep(4 * time.Second)
				}
			}
			content := bodies{"drivers": "d1", "calendar/2024": "c1"}
			publish(t, s, content)
			for year := range 40 { // more than are read at a time
				content[fmt.Sprintf("results/%d", 1950+year)], content["drivers"] = "r", strconv.Itoa(year) // a delta each
				publish(t, s, content)
			}
			e := followAs(t, snapshots.FollowConfig{Store: faultblob.Wrap(s, func(_ context.Context, c faultblob.Call) (fate faultblob.Fate) {
				if c.Key != snapshots.PointerKey {
					pause(c.Op)
				}
				return fate
			}), Lean: func(*snapshots.Manifest, string) bool { pause("unpack"); return false }}, nil)
			must.Advance(5 * time.Minute)
			must.Hold(t, slices.Equal(e.numbers(), []int64{41}), "slow to %v: versions %v, reports %v", slow, e.numbers(), e.reports)
			_ = e.stop()
		})
	}
}

// TestEndOfFollow: Follow waits for the write to its copy, also when its caller panics.
func TestEndOfFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, kept := memblob.New(), false
		publish(t, s, bodies{"drivers": "d1"})
		defer func() { must.Hold(t, recover() != nil && kept, "Follow ended before the write to its copy: %t", !kept) }()
		_ = snapshots.Follow(t.Context(), snapshots.FollowConfig{
			Store: s, Deliver: func(*snapshots.Version) error { return nil },
			Cache: faultblob.Wrap(memblob.New(), func(_ context.Context, c faultblob.Call) (fate faultblob.Fate) {
				if c.Op.Writes() {
					time.Sleep(time.Minute)
					kept = true
				}
				return fate
			}),
			Report: func(snapshots.FollowReport) { time.Sleep(time.Second); panic("a fault of the caller") },
		})
	})
}

// TestCacheAfterFault: after a version that was kept in part, the cache holds the objects of its two versions alone.
func TestCacheAfterFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, disk, full := memblob.New(), memblob.New(), false
		e := follow(t, s, faultblob.Wrap(disk, func(_ context.Context, c faultblob.Call) faultblob.Fate {
			if full && c.Op == faultblob.Swap && strings.HasSuffix(c.Key, snapshots.PointerKey) {
				return faultblob.Fate{Err: errors.New("no space left on device")}
			}
			return faultblob.Fate{}
		}))
		for _, text := range []string{"d1", "d2", "d3", "d4", "d5"} {
			full = text == "d3"
			publish(t, s, bodies{"drivers": text})
			must.Advance(time.Minute)
			must.Equal(t, "pointers in the copy after "+text, 2, len(keysOf(t, disk, snapshots.PointerKey, "spare/"+snapshots.PointerKey)))
		}
		_ = e.stop()
		must.Hold(t, len(e.cache) == 1, "reported %v, want the full disk once", e.cache)
		var objects []string
		for info, err := range disk.List(t.Context(), "") {
			must.Do(t, err)
			if strings.Contains(info.Key, "objects/") {
				objects = append(objects, info.Key)
			}
		}
		must.Hold(t, len(objects) == 2, "the cache holds %v, want an object for each of two versions", objects)
	})
}

// TestCacheWithoutDescriptors: an edge that has no file to read its copy with leaves the copy as it is.
func TestCacheWithoutDescriptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, disk, none := memblob.New(), memblob.New(), false
		cache := faultblob.Wrap(disk, func(_ context.Context, c faultblob.Call) faultblob.Fate {
			if none && strings.Contains(c.Key, "objects/") {
				return faultblob.Fate{Err: &fs.PathError{Op: "open", Path: c.Key, Err: syscall.EMFILE}}
			}
			return faultblob.Fate{}
		})
		kept := func(version int64) {
			t.Helper()
			m, _, err := snapshots.LoadCached(t.Context(), disk)
			must.Hold(t, err == nil && m.Version == version, "the copy is of version %d, %v; want %d", m.Version, err, version)
		}
		for _, text := range []string{"d1", "d2", "d3"} {
			e := follow(t, s, cache)
			none = text == "d3"
			publish(t, s, bodies{"drivers": text})
			must.Advance(time.Minute)
			_ = e.stop()
		}
		kept(2)
		e := follow(t, s, cache)
		must.Advance(time.Minute)
		must.Show(t, "the reports", fmt.Sprint(e.cache), "keep version 3")
		kept(2)
		none = false
		publish(t, s, bodies{"drivers": "d4"})
		must.Advance(time.Minute)
		_ = e.stop()
		kept(4)
		must.Fail(t, "a store that is no copy", must.Err2(snapshots.LoadCached(t.Context(), s)), snapshots.ErrNone)
	})
}

// TestFollowLean keeps some bodies lean, from the store and from the cache.
func TestFollowLean(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cache := strict(t), memblob.New()
		text := rows(100, 1)
		d := draftOf(loadBase(t, s), nil)
		for _, path := range []string{"calendar/2023", "calendar/2024"} {
			d.Variants = append(d.Variants, snapshots.New(path, text, packs(t, text), raceDay))
		}
		d.Variants = append(d.Variants, snapshots.Unfinished("next-race", text))
		must.Get((&snapshots.Publisher{Store: s}).Publish(t.Context(), d))(t)
		must.Equal(t, "the object of a plain body", []string{"objects/1/next-race.json"}, keysOf(t, s, "objects/1/next-race"))
		for range 2 {
			e := followAs(t, snapshots.FollowConfig{Store: s, Cache: cache, Lean: func(m *snapshots.Manifest, path string) bool {
				return m.CurrentSeason == 2024 && path == "calendar/2023"
			}}, nil)
			must.Advance(time.Second)
			_ = e.stop()
			must.Require(t, len(e.versions) > 0 && len(e.cache) == 0, "%d versions, faults of the copy %v", len(e.versions), e.cache)
			for path, b := range e.versions[0].All() {
				want := []string{snapshots.BR, snapshots.GZ, snapshots.ZST}
				switch path {
				case "calendar/2023":
					want = want[:2]
				case "next-race":
					want = nil
				}
				if diff := cmp.Diff(want, slices.Sorted(maps.Keys(b.Encoded))); diff != "" || (b.Identity == nil) != (len(want) == 2) {
					t.Errorf("%s: codings (-want +got):\n%s\nidentity of %d bytes", path, diff, len(b.Identity))
				}
				must.Hold(t, bytes.Equal(b.Plain(), text) && (b.Identity == nil || &b.Plain()[0] == &b.Identity[0]), "%s: got another text, or a copy", path)
			}
		}
	})
}

// A pointer with its instant in another time zone is the same pointer at every poll.
func TestSamePointerIsDeliveredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memblob.New()
		publish(t, s, bodies{"drivers": "d1"})
		o := must.Get(s.Get(t.Context(), snapshots.PointerKey, blob.MaxDocument))(t)
		p := must.JSON[snapshots.Pointer](t, o.Data)
		p.At = p.At.In(time.FixedZone("", 1800))
		data := must.Get(json.Marshal(p))(t)
		s.Corrupt(snapshots.PointerKey, data)
		e := follow(t, s, nil)
		must.Advance(time.Minute)
		must.Hold(t, slices.Equal(e.numbers(), []int64{1}), "versions %v, reports %v", e.numbers(), e.reports)
		_ = e.stop()
	})
}
