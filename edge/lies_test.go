package edge_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"gridcast/deploy/must"
	"gridcast/edge"
	"gridcast/edge/edgetest"
	"gridcast/edge/keys"
	"gridcast/schemas/catalog"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/blobtest"
	"gridcast/snapshots/blob/memblob"
)

// liar is a store that lies to the readers of one of its keys.
type liar struct {
	blob.Store

	mu  sync.Mutex // guards the following
	key string
	lie func(blob.Object, error) (blob.Object, error) // nil: it is honest
}

func (l *liar) tell(key string, lie func(blob.Object, error) (blob.Object, error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.key, l.lie = key, lie
}

func (l *liar) relay(key string, limit int64, o blob.Object, err error) (blob.Object, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// A lie about a body includes the delta, because an edge reads the body only if it has no delta.
	ofBody := strings.HasPrefix(l.key, "objects/") && strings.HasPrefix(key, "deltas/")
	if l.lie == nil || l.key != key && !ofBody {
		return o, err
	}
	if o, err = l.lie(o, err); int64(len(o.Data)) > limit {
		return blob.Object{}, blob.ErrTooLarge
	}
	return o, err
}

func (l *liar) Get(ctx context.Context, key string, limit int64) (blob.Object, error) {
	o, err := l.Store.Get(ctx, key, limit)
	return l.relay(key, limit, o, err)
}

func (l *liar) Watch(ctx context.Context, key string, seen blob.Tag, limit int64) (blob.Object, error) {
	o, err := l.Store.Watch(ctx, key, seen, limit)
	return l.relay(key, limit, o, err)
}

// TestEdgeForgetsALie lets the store lie about each kind of object that an edge reads, while a
// version is published and a key revoked. Running and restarted, the edge answers from the last
// good ones, and is current ten seconds after the store is honest again.
func TestEdgeForgetsALie(t *testing.T) {
	if testing.Short() {
		t.Skip("short: every lie about every kind of object")
	}
	// The compressors start endless goroutines, which must not start in a bubble.
	// The endpoints that every version must have are enough, because the lies are about one body of them.
	var without []string
	for _, v := range catalog.All(edgetest.Known, edgetest.Picks) {
		if i, _ := catalog.Lookup("/" + string(v.Endpoint)); catalog.Endpoints[i].Additive {
			without = append(without, v.Path())
		}
	}
	versions := [2]map[string][]byte{}
	store := memblob.New()
	for i := range versions {
		edgetest.Publish(t, store, int64(i+1), without...)
		versions[i] = blobtest.Objects(t, store)
	}
	must.Get(edge.New(edge.DefaultConfig(), edge.Deps{Store: store, Log: discard}))(t)
	data := func(change func([]byte) []byte) func(blob.Object, error) (blob.Object, error) {
		return func(o blob.Object, err error) (blob.Object, error) {
			o.Data = change(append([]byte(nil), o.Data...))
			return o, err
		}
	}
	endless := make([]byte, 80<<20) // for all reads, because making it takes longer than the rest of a subtest
	lies := map[string]func(blob.Object, error) (blob.Object, error){
		"a wrong bit": data(func(d []byte) []byte {
			if len(d) > 0 {
				d[len(d)/2] ^= 1
			}
			return d
		}),
		"cut short": data(func(d []byte) []byte { return d[:len(d)/2] }),
		"empty":     data(func([]byte) []byte { return nil }),
		"endless": func(o blob.Object, err error) (blob.Object, error) {
			o.Data = endless
			return o, err
		},
		"an error page": data(func([]byte) []byte { return []byte("<html>502 Bad Gateway</html>") }),
		"another value": data(func([]byte) []byte { return []byte(`{"version":1}`) }),
		"missing": func(blob.Object, error) (blob.Object, error) {
			return blob.Object{}, fmt.Errorf("read: %w", blob.ErrNotFound)
		},
		"an error": func(blob.Object, error) (blob.Object, error) {
			return blob.Object{}, errors.New("500 Internal Server Error")
		},
		"a panic": func(blob.Object, error) (blob.Object, error) { panic("a bug in the client") },
	}
	for _, key := range []string{keys.Object, snapshots.PointerKey, "manifests/2.json.gz", "objects/2/drivers.json.gz"} {
		for name, lie := range lies {
			if testing.Short() && name != "a wrong bit" && name != "empty" && name != "a panic" {
				continue
			}
			if name == "endless" && key != keys.Object && key != snapshots.PointerKey {
				continue // an object with a stated size is read no further
			}
			t.Run(key+"/"+name, func(t *testing.T) {
				cache := t.TempDir()
				synctest.Test(t, func(t *testing.T) { forget(t, cache, versions, key, lie) })
			})
		}
	}
}

func forget(t *testing.T, cache string, versions [2]map[string][]byte, key string, lie func(blob.Object, error) (blob.Object, error)) {
	store := &liar{Store: memblob.New()}
	put := func(version map[string][]byte) {
		t.Helper()
		for _, key := range slices.SortedFunc(maps.Keys(version), func(a, b string) int {
			return cmp.Compare(b, a) // objects and manifest first, then the pointer
		}) {
			o, err := store.Store.Get(t.Context(), key, blob.MaxDocument)
			if errors.Is(err, blob.ErrNotFound) || err == nil && !bytes.Equal(o.Data, version[key]) {
				_, err = store.Swap(t.Context(), key, o.Tag, version[key])
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	put(versions[0])
	var good, leaked, leakedID string
	change := func(f func(*keys.List) error) {
		t.Helper()
		must.Do(t, keys.Update(t.Context(), store.Store, f))
	}
	change(func(d *keys.List) (err error) {
		if _, good, err = d.Create(keys.Request{Name: "a", Tier: "pro"}, time.Now()); err != nil {
			return err
		}
		record, created, err := d.Create(keys.Request{Name: "b", Tier: "pro"}, time.Now())
		leaked, leakedID = created, record.ID
		return err
	})
	e, stop := startEdge(t, store, cache)
	must.Advance(time.Second)
	first := ask(e, good)
	if first.status != http.StatusOK {
		t.Fatalf("before the lie: got %d", first.status)
	}

	store.tell(key, lie)
	put(versions[1])
	change(func(d *keys.List) error {
		_, err := d.Revoke(leakedID, time.Now())
		return err
	})
	for range 20 {
		must.Advance(3 * time.Second)
		if got := ask(e, good); got.status != http.StatusOK {
			t.Fatalf("while the store lies: got %d", got.status)
		}
	}
	if s := e.Status(); !s.Stale && !s.Keys.Stale && s.Refused == nil && s.StoreProblem == "" && s.Keys.Problem == "" {
		t.Errorf("nothing is said of the lie: %+v", s)
	}
	stop()

	e, stop = startEdge(t, store, cache)
	must.Advance(5 * time.Second)
	if got := ask(e, good); got.status != http.StatusOK {
		t.Errorf("after a restart, while the store lies: got %d", got.status)
	}
	must.Advance(time.Minute)

	store.tell("", nil)
	must.Advance(10 * time.Second)
	if got := ask(e, good); got.status != http.StatusOK || got.body == first.body {
		t.Errorf("ten seconds of honesty later: got %d, the new version %t, want 200 and it", got.status, got.body != first.body)
	}
	if got := ask(e, leaked); got.status != http.StatusUnauthorized {
		t.Errorf("ten seconds of honesty later, the revoked key: got %d, want 401", got.status)
	}
	if s := e.Status(); s.Stale || s.Keys.Stale || s.Version != 2 {
		t.Errorf("ten seconds of honesty later: got %+v", s)
	}
	stop()
}

// startEdge starts an edge in a bubble; stop ends it and everything it has started.
func startEdge(t *testing.T, store blob.Store, cache string) (e *edge.Edge, stop func()) {
	t.Helper()
	cfg := edge.DefaultConfig()
	cfg.CacheDir = cache
	e = must.Get(edge.New(cfg, edge.Deps{Store: store, Log: discard, Listener: newIdleListener()}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- e.Run(ctx) }()
	return e, func() {
		cancel()
		must.Succeed(t, "Run", <-ran)
		must.Advance(time.Minute) // the server's workers check once in a while whether to end
	}
}

// ask requests the standings from the handler; they differ in every version.
func ask(e *edge.Edge, key string) (answer struct {
	status int
	body   string
},
) {
	var ctx fasthttp.RequestCtx
	ctx.Request.SetRequestURI("/api/v1/standings")
	ctx.Request.Header.Set("X-API-Key", key)
	ctx.Request.Header.SetProtocol("HTTP/1.1")
	e.Handle(&ctx)
	answer.status, answer.body = ctx.Response.StatusCode(), string(ctx.Response.Body())
	return answer
}
