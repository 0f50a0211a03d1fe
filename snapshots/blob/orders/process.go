package orders

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
)

// Process is a program under test. Run calls the store, from any number of goroutines, and returns its outcome. It keeps
// nothing between two runs, and depends on nothing but the answers of the store.
type Process struct {
	Name string
	Run  func(ctx context.Context, store blob.Store) (outcome string)
}

// node is a process after some answers: it waits for the answer to one of its pending calls, or is done.
type node struct {
	steps   []step // from the beginning
	pending []call
	done    bool
	outcome string
	next    map[string]*node // by the digest of a step
}

// step is an answer to a pending call of a process.
type step struct {
	index  int // of the call
	answer answer
}

func (s step) digest() string { return fmt.Sprintf("%d %s", s.index, s.answer.digest()) }

// run returns process i after one more answer than at from. With from nil it returns the process at its beginning.
func (s *search) run(i int, from *node, more step) *node {
	var steps []step
	if from != nil {
		if known := from.next[more.digest()]; known != nil {
			return known
		}
		steps = append(slices.Clone(from.steps), more)
	}
	n := &node{steps: steps, next: map[string]*node{}}
	s.runs++
	synctest.Test(s.t, func(t *testing.T) {
		cryptotest.SetGlobalRandom(t, uint64(i)) // two processes have different nonces, each the same in every run
		w := &wire{now: s.world.Now}
		go func() {
			outcome := s.world.Processes[i].Run(t.Context(), w)
			w.mu.Lock()
			defer w.mu.Unlock()
			w.done, w.outcome = true, outcome
		}()
		for _, step := range steps {
			w.settle()
			if len(w.waiting) <= step.index {
				t.Fatalf("%s makes other calls for the same answers: its runs depend on more than the store", s.world.Processes[i].Name)
			}
			w.reply(step)
		}
		w.settle()
		n.done, n.outcome = w.done, w.outcome
		for _, r := range w.waiting {
			n.pending = append(n.pending, r.call)
		}
		w.kill()
	})
	if from != nil {
		from.next[more.digest()] = n
	}
	return n
}

// wire is the store of a running process. Its calls wait for replies.
type wire struct {
	now time.Time

	mu      sync.Mutex // guards all below
	waiting []request
	done    bool
	outcome string
	killed  bool
}

type request struct {
	call
	reply chan answer
}

// settle waits until the process is done or every one of its goroutines waits for the store, and sorts the calls.
func (w *wire) settle() {
	for synctest.Wait(); len(w.waiting) == 0 && !w.done; synctest.Wait() {
		time.Sleep(time.Millisecond) // of the bubble: the process itself waits for an instant
	}
	slices.SortFunc(w.waiting, func(a, b request) int { return strings.Compare(a.digest, b.digest) })
}

func (w *wire) reply(s step) {
	w.mu.Lock()
	r := w.waiting[s.index]
	w.waiting = slices.Delete(w.waiting, s.index, s.index+1)
	w.mu.Unlock()
	r.reply <- s.answer
}

// kill ends the process: every call fails from now on.
func (w *wire) kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.killed = true
	for _, r := range w.waiting {
		r.reply <- answer{err: errKilled}
	}
}

var errKilled = errors.New("killed")

// ask waits for the answer to a call. A call begins unless ctx has ended, and does not heed ctx afterwards.
func (w *wire) ask(ctx context.Context, c call) answer {
	if err := context.Cause(ctx); err != nil {
		return answer{err: err}
	}
	c.digest = fmt.Sprintf("%s %s %s %s %d", c.Op, c.Key, tagOf(c.data), c.old, c.limit)
	r := request{c, make(chan answer, 1)}
	w.mu.Lock()
	if w.killed {
		w.mu.Unlock()
		return answer{err: errKilled}
	}
	w.waiting = append(w.waiting, r)
	w.mu.Unlock()
	return <-r.reply
}

// String names the store.
func (w *wire) String() string { return "orders:" }

// Get implements blob.Store.
func (w *wire) Get(ctx context.Context, key string, limit int64) (blob.Object, error) {
	got := w.ask(ctx, call{Call: faultblob.Call{Op: faultblob.Get, Key: key}, limit: limit})
	got.object.Data = bytes.Clone(got.object.Data)
	return got.object, got.err
}

// Create implements blob.Store.
func (w *wire) Create(ctx context.Context, key string, data []byte) (blob.Tag, error) {
	got := w.ask(ctx, call{Call: faultblob.Call{Op: faultblob.Create, Key: key}, data: bytes.Clone(data)})
	return got.object.Tag, got.err
}

// Swap implements blob.Store.
func (w *wire) Swap(ctx context.Context, key string, old blob.Tag, data []byte) (blob.Tag, error) {
	got := w.ask(ctx, call{Call: faultblob.Call{Op: faultblob.Swap, Key: key}, old: old, data: bytes.Clone(data)})
	return got.object.Tag, got.err
}

// Delete implements blob.Store.
func (w *wire) Delete(ctx context.Context, key string) error {
	return w.ask(ctx, call{Call: faultblob.Call{Op: faultblob.Delete, Key: key}}).err
}

// List implements blob.Store.
func (w *wire) List(ctx context.Context, prefix string) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		got := w.ask(ctx, call{Call: faultblob.Call{Op: faultblob.List, Key: prefix}})
		if got.err != nil {
			yield(blob.Info{}, got.err)
			return
		}
		for _, info := range got.infos {
			if !yield(info, nil) {
				return
			}
		}
	}
}

// Watch implements blob.Store. No process here waits for another one.
func (w *wire) Watch(context.Context, string, blob.Tag, int64) (blob.Object, error) {
	return blob.Object{}, errors.ErrUnsupported
}

// StoreTime implements blob.Clock.
func (w *wire) StoreTime(context.Context) (time.Time, time.Duration, error) { return w.now, 0, nil }
