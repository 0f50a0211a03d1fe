package s3blob_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/s3blob"
	"gridcast/snapshots/blob/s3test"
)

// operation is one call of the contract, on a store in which "there" holds "old" and
// "missing" holds nothing.
type operation struct {
	name string
	key  string // its key
	do   func(ctx context.Context, s blob.Store, tag blob.Tag) (string, error)

	write   bool
	done    string // the content of the key after success
	outcome string // the caller's outcome without a fault
}

var operations = []operation{
	{"get", "there", func(ctx context.Context, s blob.Store, _ blob.Tag) (string, error) {
		o, err := s.Get(ctx, "there", blob.MaxDocument)
		return string(o.Data), err
	}, false, "old", "old"},
	{"list", "there", func(ctx context.Context, s blob.Store, _ blob.Tag) (string, error) {
		var keys []string
		for info, err := range s.List(ctx, "") {
			if err != nil {
				return "", err
			}
			keys = append(keys, info.Key)
		}
		return strings.Join(keys, " "), nil
	}, false, "old", "there"},
	{"watch", "there", func(ctx context.Context, s blob.Store, _ blob.Tag) (string, error) {
		o, err := s.Watch(ctx, "there", "another", blob.MaxDocument)
		return string(o.Data), err
	}, false, "old", "old"},
	{"create", "missing", func(ctx context.Context, s blob.Store, _ blob.Tag) (string, error) {
		_, err := s.Create(ctx, "missing", []byte("new"))
		return "done", err
	}, true, "new", "done"},
	{"create, refused", "there", func(ctx context.Context, s blob.Store, _ blob.Tag) (string, error) {
		_, err := s.Create(ctx, "there", []byte("new"))
		return "done", err
	}, true, "old", "conflict"},
	{"swap", "there", func(ctx context.Context, s blob.Store, tag blob.Tag) (string, error) {
		_, err := s.Swap(ctx, "there", tag, []byte("new"))
		return "done", err
	}, true, "new", "done"},
	{"swap, refused", "there", func(ctx context.Context, s blob.Store, _ blob.Tag) (string, error) {
		_, err := s.Swap(ctx, "there", "0123456789abcdef0123456789abcdef", []byte("new"))
		return "done", err
	}, true, "old", "conflict"},
	{"delete", "there", func(ctx context.Context, s blob.Store, _ blob.Tag) (string, error) {
		return "done", s.Delete(ctx, "there")
	}, true, "nothing", "done"},
}

// seen names the caller's outcome in a word.
func seen(result string, err error) string {
	switch {
	case err == nil:
		return result
	case errors.Is(err, blob.ErrUnknown):
		return "unknown"
	case errors.Is(err, blob.ErrConflict):
		return "conflict"
	case errors.Is(err, blob.ErrNotFound):
		return "not found"
	}
	return "error"
}

// TestFaults makes every fault on the first request of every operation, then on every request, and checks the caller's
// outcome and the store's content afterwards.
func TestFaults(t *testing.T) {
	server := s3test.Versity(t)
	t.Run("faults", func(t *testing.T) {
		for _, fault := range s3test.Faults {
			t.Run(string(fault), func(t *testing.T) {
				t.Parallel()
				proxy := s3test.Front(t, server)
				// A request must time out only without an answer; on a busy machine the others need patience.
				attempt := time.Minute
				if fault == s3test.Stalled {
					attempt = 150 * time.Millisecond
				}
				for _, op := range operations {
					saw, holds := faulty(t, server, proxy, op, time.Minute, attempt, func() { proxy.First(1, fault) })
					checkOnce(t, fault, op, saw, holds)
					before := proxy.Made()[fault]
					saw, holds = faulty(t, server, proxy, op, 250*time.Millisecond, attempt, func() { proxy.Seeded(1, 1, []s3test.Fault{fault}) })
					checkAlways(t, fault, op, saw, holds, proxy.Made()[fault] > before)
				}
			})
		}
	})
}

// faulty runs the operation through the proxy and returns the caller's outcome, and the
// store's content, read around the proxy.
func faulty(t *testing.T, server *s3test.Server, proxy *s3test.Proxy, op operation, deadline, attempt time.Duration, arrange func()) (saw, holds string) {
	t.Helper()
	config := server.Config(t)
	direct := s3test.Store(t, config)
	tag := must.Get(direct.Create(t.Context(), "there", []byte("old")))(t)
	config.Endpoint = proxy.URL()
	config.Deadline, config.Attempt = deadline, attempt
	through := must.Get(s3blob.New(config))(t)
	arrange()
	result, err := op.do(t.Context(), through, tag)
	proxy.First(0, s3test.None)
	o, getErr := direct.Get(t.Context(), op.key, blob.MaxDocument)
	switch {
	case getErr == nil:
		return seen(result, err), string(o.Data)
	case errors.Is(getErr, blob.ErrNotFound):
		return seen(result, err), "nothing"
	}
	t.Fatal(getErr)
	return "", ""
}

// checkOnce: the store survives one fault. Only a conditional write with a lost answer is in
// doubt, because the server refuses its repetition; and then the error says so.
func checkOnce(t *testing.T, fault s3test.Fault, op operation, saw, holds string) {
	t.Helper()
	must.Hold(t, holds == op.done, "%s once, %s: the store holds %q, want %q", fault, op.name, holds, op.done)
	doubtful := op.write && op.name != "delete" && fault != s3test.Latency
	must.Hold(t, saw == op.outcome || doubtful && saw == "unknown",
		"%s once, %s: the caller saw %q, want %q", fault, op.name, saw, op.outcome)
}

// checkAlways: the store never reports a success that did not happen. A write of which nothing was sent before
// the deadline is in no doubt.
func checkAlways(t *testing.T, fault s3test.Fault, op operation, saw, holds string, sent bool) {
	t.Helper()
	switch saw {
	case op.outcome:
		must.Hold(t, holds == op.done,
			"%s always, %s: the caller saw %q and the store holds %q, want %q", fault, op.name, saw, holds, op.done)
	case "unknown":
		must.Hold(t, op.write, "%s always, %s: a read is in doubt", fault, op.name)
	case "error":
		must.Hold(t, !op.write || !sent || fault == s3test.Cut,
			"%s always, %s: a write that may have arrived is not in doubt", fault, op.name)
	default:
		t.Errorf("%s always, %s: the caller saw %q", fault, op.name, saw)
	}
}

// A missing server is an error within the deadline, and no doubt: nothing was sent.
func TestUnreachable(t *testing.T) {
	server := s3test.Versity(t)
	config := server.Config(t)
	config.Deadline = 300 * time.Millisecond
	s3test.Store(t, config)
	server.Stop()
	store, err := s3blob.New(config) // without earlier connections
	must.Do(t, err)
	start := time.Now()
	_, err = store.Create(t.Context(), "a", []byte("x"))
	if err == nil || errors.Is(err, blob.ErrUnknown) || errors.Is(err, blob.ErrConflict) {
		t.Errorf("create without a server: got %v, want an error that leaves no doubt", err)
	}
	if took := time.Since(start); took > 15*time.Second { // the default deadline is 20 s
		t.Errorf("create without a server took %v, deadline is %v", took, config.Deadline)
	}
	server.Start(t)
	must.Until(t, "a create when the server is back", func() bool {
		_, err := store.Create(t.Context(), "a", []byte("x"))
		return err == nil || errors.Is(err, blob.ErrConflict) // or an attempt outlasted its deadline
	})
}
