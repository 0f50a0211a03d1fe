package snapshots_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/blobtest"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

// lie answers a read of one key instead of the store; truth is the honest answer.
type lie func(ctx context.Context, truth func() (blob.Object, error)) (blob.Object, error)

// liar is a store that lies about one key, in Get, Watch or both, until it is told to stop.
type liar struct {
	blob.Store

	mu    sync.Mutex // guards all below
	key   string
	ops   string // "get", "watch" or "get watch"
	lying lie    // nil: honest
}

func (l *liar) tell(ops, key string, lying lie) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ops, l.key, l.lying = ops, key, lying
}

func (l *liar) read(ctx context.Context, op, key string, limit int64, truth func() (blob.Object, error)) (blob.Object, error) {
	l.mu.Lock()
	lying := l.lying
	if l.key != key || !strings.Contains(l.ops, op) {
		lying = nil
	}
	l.mu.Unlock()
	if lying == nil {
		return truth()
	}
	o, err := lying(ctx, truth)
	if err == nil && int64(len(o.Data)) > limit {
		return blob.Object{}, blob.ErrTooLarge
	}
	return o, err
}

func (l *liar) Get(ctx context.Context, key string, limit int64) (blob.Object, error) {
	return l.read(ctx, "get", key, limit, func() (blob.Object, error) { return l.Store.Get(ctx, key, limit) })
}

func (l *liar) Watch(ctx context.Context, key string, seen blob.Tag, limit int64) (blob.Object, error) {
	return l.read(ctx, "watch", key, limit, func() (blob.Object, error) { return l.Store.Watch(ctx, key, seen, limit) })
}

// endless is larger than any limit. All reads share it, because making it takes longer than the rest of a subtest.
var endless = make([]byte, 20<<20)

// lies returns every way in which a read can go wrong. other holds bytes that are right under another key; stale
// holds those of the earlier version.
func lies(other, stale []byte) map[string]lie {
	changed := func(change func([]byte) []byte) lie {
		return func(_ context.Context, truth func() (blob.Object, error)) (blob.Object, error) {
			o, err := truth()
			o.Data = change(o.Data)
			return o, err
		}
	}
	fails := func(err error) lie {
		return func(context.Context, func() (blob.Object, error)) (blob.Object, error) { return blob.Object{}, err }
	}
	var reads atomic.Int64
	return map[string]lie{
		"a wrong bit, elsewhere each time": changed(func(data []byte) []byte {
			if n := reads.Add(1); len(data) > 0 {
				data[int(n)%len(data)] ^= 1 << (n % 8)
			}
			return data
		}),
		"cut short":      changed(func(data []byte) []byte { return data[:len(data)/2] }),
		"one byte short": changed(func(data []byte) []byte { return data[:max(len(data), 1)-1] }),
		"one byte long":  changed(func(data []byte) []byte { return append(data, ' ') }),
		"empty":          changed(func([]byte) []byte { return nil }),
		"endless":        changed(func([]byte) []byte { return endless }),
		"zeros":          changed(func(data []byte) []byte { return make([]byte, len(data)) }),
		"null":           changed(func([]byte) []byte { return []byte("null") }),
		"an error page":  changed(func([]byte) []byte { return []byte("<html>502 Bad Gateway</html>") }),
		"replaced":       changed(func([]byte) []byte { return bytes.Clone(other) }),
		"stale":          changed(func([]byte) []byte { return bytes.Clone(stale) }),
		"a number too far": changed(func(data []byte) []byte {
			return edited(data, `"version":2`, `"version":9007199254740992`)
		}),
		"missing":       fails(fmt.Errorf("read: %w", blob.ErrNotFound)),
		"forbidden":     fails(errors.New("403 Forbidden")),
		"out of memory": fails(blob.ErrTooLarge),
		"no answer": func(ctx context.Context, _ func() (blob.Object, error)) (blob.Object, error) {
			<-ctx.Done()
			return blob.Object{}, context.Cause(ctx)
		},
		"another tag each time": func(_ context.Context, truth func() (blob.Object, error)) (blob.Object, error) {
			o, err := truth()
			o.Tag = blob.Tag(strconv.FormatInt(reads.Add(1), 10))
			o.Data = append(o.Data, 'x')
			return o, err
		},
		"panic": func(context.Context, func() (blob.Object, error)) (blob.Object, error) {
			panic("a bug in the client")
		},
	}
}

// A follower of a lying store serves the last good version and reports every few seconds. Ten seconds after the store
// is honest again, it is current. The same holds after a restart from its copy.
func TestFollowOutlivesEveryLie(t *testing.T) {
	first, second := bodies{"drivers": "d1", "calendar/2024": "c1"}, bodies{"drivers": "d2", "calendar/2024": "c1"}
	// The objects of one version and of two, for lies that repeat an old truth.
	old := memblob.New()
	publish(t, old, first)
	get := func(s blob.Store, key string) []byte {
		o := must.Get(s.Get(t.Context(), key, blob.MaxDocument))(t)
		return o.Data
	}
	for key, like := range map[string]string{
		snapshots.PointerKey:        snapshots.PointerKey,
		"manifests/2.json.gz":       "manifests/1.json.gz",
		"objects/2/drivers.json.gz": "objects/1/drivers.json.gz",
	} {
		for name, lying := range lies(get(old, "objects/1/calendar/2024.json.gz"), get(old, like)) {
			for _, ops := range []string{"get", "watch", "get watch"} {
				if ops != "get" && key != snapshots.PointerKey {
					continue // nothing else is watched
				}
				t.Run(fmt.Sprintf("%s/%s/%s", key, name, ops), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						state := snapshots.Refused // of a manifest or a body
						switch {
						case key == snapshots.PointerKey, name == "a number too far" && strings.HasPrefix(key, "objects/"):
							state = "" // any, or the truth
						case name == "forbidden", name == "no answer":
							state = snapshots.Unreachable
						case name == "panic":
							state = snapshots.Failed
						}
						outlive(t, first, second, state, func(l *liar) { l.tell(ops, key, lying) })
					})
				})
			}
		}
	}
}

func outlive(t *testing.T, first, second bodies, state snapshots.FollowState, begin func(*liar)) {
	s, cache := &liar{Store: strict(t)}, memblob.New()
	publish(t, s, first)
	e := follow(t, s, cache)
	begin(s)
	publish(t, s.Store, second)
	e.endure(t, time.Minute, first, second)
	if last := e.lastReport(); state != "" && (last.State != state || last.Version != 2 || len(e.numbers()) > 1) {
		t.Errorf("report %+v after the versions %d, want version 2 %s", last, e.numbers(), state)
	}
	if len(e.numbers()) == 0 || e.numbers()[0] != 1 {
		t.Fatalf("versions %v, want 1 first", e.numbers())
	}

	// Another one starts from the copy while the store still lies.
	_ = e.stop()
	e = follow(t, s, cache)
	must.Require(t, len(e.numbers()) != 0, "nothing was served after a restart from the copy")
	e.endure(t, time.Minute, first, second)

	s.tell("", "", nil)
	must.Advance(10 * time.Second)
	if diff := cmp.Diff(second, e.lastContent()); diff != "" || e.lastReport().State != snapshots.Following {
		t.Errorf("ten seconds after the store is honest: %+v, content (-want +got):\n%s", e.lastReport(), diff)
	}
	_ = e.stop()

	// The copy now suffices without a store.
	dead := faultblob.Wrap(s, func(context.Context, faultblob.Call) faultblob.Fate {
		return faultblob.Fate{Err: errors.New("connection refused")}
	})
	e = follow(t, named{dead, s.String()}, cache)
	must.Equal(t, "from the copy, without a store", second, e.lastContent())
	_ = e.stop()
}

// named is a store with another name, because a cache belongs to the name of its store.
type named struct {
	blob.Store

	name string
}

func (n named) String() string { return n.name }

// endure lets time pass. Every served version must be the first or the second one, and a report must come every ten
// seconds.
func (e *edge) endure(t *testing.T, d time.Duration, first, second bodies) {
	t.Helper()
	for range d / time.Second {
		must.Advance(time.Second)
		e.mu.Lock()
		age := time.Since(e.looked)
		must.Hold(t, age <= 10*time.Second, "no report for %v", age)
		for _, v := range e.versions {
			want := map[int64]bodies{1: first, 2: second}[v.Pointer.Version]
			must.Equal(t, fmt.Sprintf("version %d was served with", v.Pointer.Version), want, contentOf(v))
		}
		e.mu.Unlock()
	}
}

// A version that Deliver refuses is offered again now and then without another download, and never replaces the good
// one in the copy.
func TestVersionThatIsNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cache := strict(t), memblob.New()
		var reads atomic.Int64
		store := faultblob.Wrap(s, func(_ context.Context, call faultblob.Call) faultblob.Fate {
			if call.Op == faultblob.Get && strings.HasPrefix(call.Key, "objects/2/") {
				reads.Add(1)
			}
			return faultblob.Fate{}
		})
		var offers int
		cannot := errors.New("variant standings is missing")
		refuse := func(v *snapshots.Version) error {
			if v.Pointer.Version != 2 {
				return nil
			}
			offers++
			return cannot
		}
		publish(t, s, bodies{"drivers": "d1"})
		e := followWith(t, store, cache, refuse)
		publish(t, s, bodies{"drivers": "d2"})
		must.Advance(10 * time.Minute)
		last := e.lastReport()
		if last.State != snapshots.Refused || !errors.Is(last.Err, snapshots.ErrNotAccepted) || !errors.Is(last.Err, cannot) || last.Version != 2 {
			t.Errorf("report: %+v, want version 2 refused with the edge's own reason", last)
		}
		must.Hold(t, offers >= 10 && offers <= 20, "offered %d times in ten minutes, want some 15", offers)
		if reads.Load() != 1 {
			t.Errorf("%d reads of its one object", reads.Load())
		}
		_ = e.stop()

		// A restart without the store serves the delivered version.
		e = followWith(t, named{faultblob.Wrap(s, func(context.Context, faultblob.Call) faultblob.Fate {
			return faultblob.Fate{Err: errors.New("connection refused")}
		}), store.String()}, cache, refuse)
		must.Equal(t, "versions from the copy", []int64{1}, e.numbers())
		_ = e.stop()

		// The next version is taken at once.
		e = followWith(t, store, cache, refuse)
		publish(t, s, bodies{"drivers": "d3"})
		must.Advance(time.Second)
		must.Equal(t, "versions", []int64{1, 3}, e.numbers())
		_ = e.stop()
	})
}

// A panic of the store or of Deliver is reported and does not end Follow.
func TestPanicIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &liar{Store: strict(t)}
		publish(t, s, bodies{"drivers": "d1"})
		broken := true
		e := followWith(t, s, memblob.New(), func(v *snapshots.Version) error {
			if broken && v.Pointer.Version == 2 {
				panic("index out of range")
			}
			return nil
		})
		publish(t, s, bodies{"drivers": "d2"})
		must.Advance(5 * time.Second)
		last := e.lastReport()
		var fault *blob.PanicError
		must.Require(t, last.State == snapshots.Failed && errors.As(last.Err, &fault), "report: %+v, want the panic", last)
		must.Show(t, "the stack", string(fault.Stack), "TestPanicIsReported")
		e.mu.Lock()
		broken = false
		e.mu.Unlock()
		must.Advance(time.Minute)
		must.Equal(t, "versions", []int64{1, 2}, e.numbers())
		must.Equal(t, "states", "following failed following", e.states())
		s.tell("get watch", snapshots.PointerKey, func(context.Context, func() (blob.Object, error)) (blob.Object, error) { panic("no pointer") })
		must.Advance(time.Minute)
		last = e.lastReport()
		must.Hold(t, last.State == snapshots.Failed && last.Version == 0, "report: %+v, want that no version was learned", last)
		_ = e.stop()

		s.tell("", "", nil)
		begun := false
		e = followAs(t, snapshots.FollowConfig{Store: s, Cached: func() { begun = true }, Cache: faultblob.Wrap(memblob.New(), func(context.Context, faultblob.Call) faultblob.Fate { panic("no disk") })}, nil)
		must.Hold(t, begun && slices.Equal(e.numbers(), []int64{2}) && len(e.cache) == 1+2+1, "begun %t, versions %v, faults at the start, of two slots, and of a write: %v", begun, e.numbers(), e.cache)
		_ = e.stop()
	})
}

// TestPace counts the calls and the reports of a follower in a minute with two versions, by the answers of the store about
// the pointer. Neither a fault nor a wrong report of a change keeps it busy. The clock is the seed of the pauses: they repeat.
func TestPace(t *testing.T) {
	var inner blob.Store
	failures := 0
	answer := func(o blob.Object, err error) lie {
		return func(context.Context, func() (blob.Object, error)) (blob.Object, error) { return o, err }
	}
	for name, tt := range map[string]struct {
		ops   string
		lying lie
	}{
		"as stored": {},
		"always a change": {"watch", func(ctx context.Context, _ func() (blob.Object, error)) (blob.Object, error) {
			return inner.Get(ctx, snapshots.PointerKey, blob.MaxDocument)
		}},
		"nothing new":        {"watch", answer(blob.Object{Tag: "always new"}, nil)},
		"gone":               {"watch", answer(blob.Object{}, blob.ErrNotFound)},
		"too large":          {"watch", answer(blob.Object{}, blob.ErrTooLarge)},
		"no answer":          {"get watch", answer(blob.Object{}, errStopped)},
		"no watch":           {"watch", answer(blob.Object{}, errStopped)},
		"damaged":            {"get watch", answer(blob.Object{Tag: "damaged", Data: []byte("{")}, nil)},
		"damaged where read": {"get", answer(blob.Object{Tag: "damaged", Data: []byte("{")}, nil)},
		"one watch of four": {"watch", func(_ context.Context, truth func() (blob.Object, error)) (blob.Object, error) {
			if failures++; failures%4 > 0 {
				return blob.Object{}, errStopped
			}
			return truth()
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			inner = strict(t)
			publish(t, inner, bodies{"drivers": "d1"})
			s, wake, counts := &liar{Store: inner}, make(chan struct{}, 1), map[string]int{}
			var mu sync.Mutex
			e := followAs(t, snapshots.FollowConfig{Wake: wake, Store: faultblob.Wrap(s, func(_ context.Context, c faultblob.Call) (fate faultblob.Fate) {
				mu.Lock()
				defer mu.Unlock()
				counts[fmt.Sprint(c.Op, " ", c.Key)]++
				return fate
			})}, nil)
			wake <- struct{}{}
			must.Advance(10 * time.Second)
			s.tell(tt.ops, snapshots.PointerKey, tt.lying)
			must.Advance(20 * time.Second)
			publish(t, inner, bodies{"drivers": "d2"})
			must.Advance(10 * time.Second)
			s.tell("", "", nil)
			must.Advance(20 * time.Second)
			_ = e.stop()
			for _, state := range strings.Fields(e.states()) {
				counts[state]++
			}
			golden.Sentence(t, "pace: "+name, fmt.Sprint(counts, ", versions ", e.numbers()))
		})
	}
}

// A wrong byte in the copy costs nothing while both slots hold the version, and one version otherwise. The copy is
// whole again soon after the store answers.
func TestWrongByteInTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := bodies{"drivers": "d1", "calendar/2024": "c1"}, bodies{"drivers": "d2", "calendar/2024": "c1"}
		for _, versions := range []int{1, 2} {
			s, filled := strict(t), memblob.New()
			publish(t, s, first)
			e := follow(t, s, filled)
			if versions == 2 {
				publish(t, s, second)
				must.Advance(time.Second)
			}
			_ = e.stop()
			lost := 0
			for _, key := range keysOf(t, filled) {
				cache := memblob.New()
				blobtest.Copy(t, cache, filled)
				o := must.Get(cache.Get(t.Context(), key, blob.MaxDocument))(t)
				at := len(o.Data) / 2
				if strings.HasSuffix(key, snapshots.PointerKey) {
					at = 0 // it is no JSON
				}
				o.Data[at] ^= 1
				cache.Corrupt(key, o.Data)

				down := faultblob.Wrap(s, func(context.Context, faultblob.Call) faultblob.Fate {
					return faultblob.Fate{Err: errors.New("connection refused")}
				})
				e := follow(t, named{down, s.String()}, cache)
				_ = e.stop()
				for _, err := range e.cache {
					must.Fail(t, "a wrong byte in "+key, err, snapshots.ErrDamaged)
				}
				want, known := map[string]int{"source.txt": 0, snapshots.PointerKey: 2}[path.Base(key)]
				must.Hold(t, len(e.cache) == want || !known && len(e.cache) > 0, "a wrong byte in %s: reported %v", key, e.cache)
				switch diff := cmp.Diff(map[int]bodies{1: first, 2: second}[versions], e.lastContent()); {
				case diff == "":
				case versions == 2 && cmp.Equal(first, e.lastContent()):
					lost++
				default:
					t.Errorf("a wrong byte in %s, %d versions (-want +got):\n%s", key, versions, diff)
				}

				e = follow(t, s, cache)
				must.Advance(time.Second)
				_ = e.stop()
				e = follow(t, named{down, s.String()}, cache)
				if _ = e.stop(); len(e.cache) > 0 {
					t.Errorf("a wrong byte in %s was not repaired: %v", key, e.cache)
				}
			}
			must.Hold(t, lost == map[int]int{1: 0, 2: 4}[versions],
				"the newer version was lost by %d wrong bytes, want only those in its own objects, manifest, pointer and source", lost)
		}
	})
}

// Each write to the copy, and each listing of it, that fails is reported. The copy has two earlier versions, or none.
func TestFailingCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, filled := strict(t), memblob.New()
		e := follow(t, s, filled)
		for _, text := range []string{"1", "2"} {
			publish(t, s, bodies{"drivers": text, "calendar/2024": text})
			must.Advance(time.Second)
		}
		_ = e.stop()
		publish(t, s, bodies{"drivers": "3", "calendar/2024": "3"})
		cut := memblob.New() // by a crash before its pointer
		must.Get(cut.Create(t.Context(), "source.txt", []byte(s.String())))(t)
		for _, before := range []*memblob.Store{filled, memblob.New(), cut} {
			for n, all := int64(0), int64(1); n <= all; n++ {
				var calls atomic.Int64
				cache := memblob.New()
				blobtest.Copy(t, cache, before)
				e := follow(t, s, faultblob.Wrap(cache, func(_ context.Context, c faultblob.Call) (fate faultblob.Fate) {
					if (c.Op.Writes() || c.Op == faultblob.List) && calls.Add(1) == n {
						fate.Err = errors.New("one write failed")
					}
					return fate
				}))
				must.Advance(time.Second)
				if n == 0 {
					all = calls.Load()
				}
				_ = e.stop()
				must.Hold(t, len(e.cache) > 0 == (n > 0 && calls.Load() >= n), "write %d of %d failed: reported %v", n, all, e.cache)
			}
		}
	})
}

// The public text of a report never contains the location of the store.
func TestPublicReport(t *testing.T) {
	texts := map[string]string{}
	for _, err := range []error{
		snapshots.ErrNone, snapshots.ErrLower, snapshots.ErrDamaged, snapshots.ErrNotAccepted, blob.ErrNotFound, errors.New("dial tcp"), &blob.PanicError{},
	} {
		r := snapshots.FollowReport{Version: 7, Err: fmt.Errorf("pointer in s3://secret-bucket?endpoint=http://10.0.0.1: %w", err)}
		got := r.Public()
		texts[fmt.Sprint(err)] = got
		must.Hold(t, got != "", "%v: there is no public text", err)
		must.Hide(t, "the public text", got, ":", "/", "secret")
	}
	golden.Inputs(t, "testdata/public.txt", texts)
	must.Equal(t, "without a number", "the current version is damaged", snapshots.FollowReport{Err: snapshots.ErrDamaged}.Public())
	got := (snapshots.FollowReport{State: snapshots.Following, Version: 7}).Public()
	must.Hold(t, got == "", "nothing is wrong, public text %q", got)
}
