package blob_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

// TestFollow follows an object through its life: missing, there, changed, refused, gone and back.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const key = "folder/object"
		var (
			mu      sync.Mutex
			taken   []string
			refuse  error
			offered int // contents passed to Take
			looks   int
			last    error // of the latest poll
			down    error // of the next watch
		)
		store := faultblob.Wrap(memblob.New(), func(_ context.Context, call faultblob.Call) (fate faultblob.Fate) {
			mu.Lock()
			defer mu.Unlock()
			if call.Op == faultblob.Watch {
				fate.Err, down = down, nil
			}
			return fate
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- blob.Follow(ctx, blob.FollowConfig{
				Store: store, Key: key, Limit: 8,
				Take: func(_ context.Context, o blob.Object) error {
					mu.Lock()
					defer mu.Unlock()
					offered++
					if string(o.Data) == "panic" {
						panic("a bug")
					}
					if refuse == nil {
						taken = append(taken, string(o.Data))
					}
					return refuse
				},
				Looked: func(err error) {
					mu.Lock()
					defer mu.Unlock()
					looks, last = looks+1, err
				},
			})
		}()
		var panicked *blob.PanicError
		within := func(d time.Duration, what string, holds func() bool) {
			t.Helper()
			must.Advance(d)
			mu.Lock()
			defer mu.Unlock()
			must.Hold(t, holds(), "%s: taken %q after %d looks, last error %v", what, taken, looks, last)
		}
		count := func(n *int) int {
			mu.Lock()
			defer mu.Unlock()
			return *n
		}
		now := func() string { return taken[len(taken)-1] }
		put := func(data string) {
			t.Helper()
			var old blob.Tag
			if o, err := store.Get(t.Context(), key, 100); err == nil {
				old = o.Tag
			}
			must.Get(store.Swap(t.Context(), key, old, []byte(data)))(t)
		}
		set := func(to *error, err error) {
			mu.Lock()
			defer mu.Unlock()
			*to = err
		}

		within(0, "missing at once", func() bool { return looks > 0 && errors.Is(last, blob.ErrNotFound) })
		within(time.Minute, "missing", func() bool { return len(taken) == 0 && errors.Is(last, blob.ErrNotFound) && looks < 20 })
		put("one")
		within(time.Second, "there", func() bool { return now() == "one" && last == nil })
		put("two")
		within(time.Second, "changed", func() bool { return now() == "two" && last == nil })
		before := count(&looks)
		within(time.Minute, "unchanged", func() bool { return looks-before >= 5 && looks-before <= 7 && last == nil && len(taken) == 2 })

		set(&down, errRefused)
		before = count(&looks)
		within(blob.LookEvery+time.Second, "one failure", func() bool { return looks-before >= 3 && last == nil && offered == 2 }) // of it, of its end, and of the next watch

		refused := errors.New("not today")
		set(&refuse, refused)
		put("three")
		before = count(&offered)
		within(time.Minute, "refused", func() bool {
			return now() == "two" && errors.Is(last, refused) && offered-before > 10 && offered-before < 40
		})
		set(&refuse, nil)
		within(6*time.Second, "no longer refused", func() bool { return now() == "three" && last == nil })
		put("panic")
		within(time.Minute, "panic", func() bool { return now() == "three" && errors.As(last, &panicked) && len(panicked.Stack) > 0 })
		put("too large")
		within(time.Minute, "too large", func() bool { return now() == "three" && errors.Is(last, blob.ErrTooLarge) })
		must.Do(t, store.Delete(t.Context(), key))
		within(time.Second, "gone", func() bool { return now() == "three" && errors.Is(last, blob.ErrNotFound) })
		put("three")
		within(time.Second, "back", func() bool { return len(taken) == 4 && last == nil })
		stop()
		err := <-ended
		must.Hold(t, errors.Is(err, context.Canceled), "got %v, want the cause of the end", err)
	})
}
