// Package orders runs processes in every order of their store calls, for tests. It searches a small world exhaustively: at
// each moment a process makes one call, a process crashes, an answer is lost, or a late write arrives.
//
// Two orders that lead to the same state have the same continuations. The search continues from a state once, and counts the
// orders through it. A state has the content of the store, the writes in flight, the faults that are left, and for
// each process its calls with their answers. Merging states is sound, because a process here knows those answers alone: its
// clock is that of a bubble, its randomness is seeded, and a tag of the store is a digest of the bytes.
package orders

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
)

// World is a store with processes. The stores that its checks get are copies.
type World struct {
	Store     blob.Store // at the beginning
	Now       time.Time  // by the store's clock, which stands still
	Processes []Process

	// Crashes is the number of processes that may crash. The calls of a crashed process may still arrive.
	Crashes int
	// Lost is the number of answers that may be lost. A write without an answer arrives at once, at a later moment, or never.
	Lost int

	Immutable func(key string) bool                                   // keys that are written once, also after a deletion
	Always    func(t *testing.T, store blob.Store)                    // at every moment
	Written   func(t *testing.T, before, after blob.Store)            // after every write that changed the store
	End       func(t *testing.T, store blob.Store, outcomes []string) // after every order; outcomes are those of the processes
}

// Crashed is the outcome of a process that crashed.
const Crashed = "crashed"

// ErrNoAnswer is the error of a read that loses its answer.
var ErrNoAnswer = errors.New("no answer")

// Explore runs the world in every order. It returns each combination of outcomes with the number of its orders, and ends the
// test with the steps of the first order that breaks a check.
func Explore(t *testing.T, w World) map[string]*big.Int {
	t.Helper()
	s := &search{
		t: t, world: w, contents: map[string]*content{}, ends: map[string]ends{}, checked: map[[2]*content]bool{}, ended: map[string]bool{},
	}
	start := state{content: s.intern(read(t, w.Store)), crashes: w.Crashes, lost: w.Lost}
	for i := range w.Processes {
		start.at = append(start.at, s.run(i, nil, step{}))
	}
	s.always(start.content)
	all, total := s.visit(start), new(big.Int)
	for _, orders := range all {
		total.Add(total, orders)
	}
	t.Logf("%v orders of the calls of %d processes, with up to %d crashes and %d lost answers: %d states, %d contents, %d runs",
		total, len(w.Processes), w.Crashes, w.Lost, len(s.ends), len(s.contents), s.runs)
	return all
}

// ends counts the orders from a state to each combination of outcomes.
type ends map[string]*big.Int

type search struct {
	t     *testing.T
	world World

	contents map[string]*content  // by their bytes
	ends     map[string]ends      // by the key of a state
	checked  map[[2]*content]bool // by Always, with two equal contents, or by Written
	runs     int                  // of processes
	ended    map[string]bool      // by End, by content and outcomes
	steps    []string             // to the present state
}

// state is a moment of the world. It is immutable.
type state struct {
	at      []*node // of each process; nil: crashed
	content *content
	flying  []call // writes without an answer that have not arrived
	crashes int    // that are left
	lost    int    // that are left
}

// key identifies the state by everything that decides its continuations.
func (s state) key() string {
	var key strings.Builder
	for _, n := range s.at {
		switch {
		case n == nil:
			key.WriteString("crashed ")
		case n.done:
			fmt.Fprintf(&key, "done %s ", n.outcome)
		default:
			fmt.Fprintf(&key, "at %p ", n)
		}
	}
	fmt.Fprintf(&key, "%p %d %d", s.content, s.crashes, s.lost)
	flying := make([]string, 0, len(s.flying))
	for _, c := range s.flying {
		flying = append(flying, c.digest)
	}
	slices.Sort(flying)
	return key.String() + strings.Join(flying, " ")
}

// visit returns the ends of all orders from a state.
func (s *search) visit(from state) ends {
	key := from.key()
	if known, ok := s.ends[key]; ok {
		return known
	}
	all := ends{}
	add := func(next state, format string, args ...any) {
		s.steps = append(s.steps, fmt.Sprintf(format, args...))
		if next.content != from.content {
			s.written(from.content, next.content)
		}
		for outcomes, orders := range s.visit(next) {
			if all[outcomes] == nil {
				all[outcomes] = new(big.Int)
			}
			all[outcomes].Add(all[outcomes], orders)
		}
		s.steps = s.steps[:len(s.steps)-1]
	}
	running := false
	for i, n := range from.at {
		if n == nil || n.done {
			continue
		}
		running = true
		name := s.world.Processes[i].Name
		for index, c := range n.pending {
			next := from.clone()
			var got answer
			got, next.content = s.apply(from.content, c)
			next.at[i] = s.run(i, n, step{index, got})
			add(next, "%s: %s", name, c)
			if from.lost == 0 {
				continue
			}
			next = from.clone()
			next.lost--
			if got = (answer{err: ErrNoAnswer}); c.Op.Writes() {
				got.err = fmt.Errorf("%s: %w", c, blob.ErrUnknown)
				next.flying = append(next.flying, c)
			}
			next.at[i] = s.run(i, n, step{index, got})
			add(next, "%s: %s, and its answer is lost", name, c)
		}
		if from.crashes > 0 {
			next := from.clone()
			next.at[i] = nil
			next.crashes--
			next.flying = append(next.flying, slices.DeleteFunc(slices.Clone(n.pending), func(c call) bool { return !c.Op.Writes() })...)
			add(next, "%s crashes", name)
		}
	}
	for i, c := range from.flying {
		next := from.clone()
		next.flying = slices.Delete(next.flying, i, i+1)
		_, next.content = s.apply(from.content, c)
		add(next, "%s arrives", c)
	}
	if !running {
		s.end(from, all)
	}
	s.ends[key] = all
	return all
}

func (s state) clone() state {
	s.at, s.flying = slices.Clone(s.at), slices.Clone(s.flying)
	return s
}

// end counts the order that ends in a state, in which the writes in flight never arrive.
func (s *search) end(at state, all ends) {
	var outcomes []string
	for _, n := range at.at {
		if n == nil {
			outcomes = append(outcomes, Crashed)
		} else {
			outcomes = append(outcomes, n.outcome)
		}
	}
	key := strings.Join(outcomes, ", ")
	if id := fmt.Sprintf("%p %s", at.content, key); !s.ended[id] {
		s.ended[id] = true
		s.world.End(s.t, at.content.store(s.world.Now), outcomes)
		s.mustHold()
	}
	if all[key] == nil {
		all[key] = new(big.Int)
	}
	all[key].Add(all[key], big.NewInt(1))
}

func (s *search) written(before, after *content) {
	if pair := [2]*content{before, after}; s.world.Written != nil && !s.checked[pair] {
		s.checked[pair] = true
		s.world.Written(s.t, before.store(s.world.Now), after.store(s.world.Now))
		s.mustHold()
	}
	s.always(after)
}

func (s *search) always(c *content) {
	if pair := [2]*content{c, c}; s.world.Always != nil && !s.checked[pair] {
		s.checked[pair] = true
		s.world.Always(s.t, c.store(s.world.Now))
		s.mustHold()
	}
}

// mustHold ends the test if a check has failed.
func (s *search) mustHold() {
	s.t.Helper()
	if s.t.Failed() {
		s.t.Fatalf("after these steps:\n\t%s", strings.Join(s.steps, "\n\t"))
	}
}

// apply returns the answer to a call, and the content after it.
func (s *search) apply(c *content, to call) (answer, *content) {
	if known, ok := c.known[to.digest]; ok {
		return known.answer, known.after
	}
	got, after := c.apply(to, s.world.Now)
	if written := got.err == nil && (to.Op == faultblob.Create || to.Op == faultblob.Swap); written && s.world.Immutable(to.Key) {
		if _, held := c.objects[to.Key]; held || c.deleted[to.Key] {
			s.t.Errorf("%s: second write to an immutable object", to)
			s.mustHold()
		}
	}
	if after != c {
		after = s.intern(after)
	}
	c.known[to.digest] = applied{got, after}
	return got, after
}

// intern returns the one content with these bytes.
func (s *search) intern(c *content) *content {
	id := c.digest()
	if s.contents[id] == nil {
		c.known = map[string]applied{}
		s.contents[id] = c
	}
	return s.contents[id]
}
