package simulate_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"iter"
	"runtime"
	"sync"
	"syscall"
	"time"

	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/lock"
	"gridcast/snapshots/retry"
)

// weather is the share of the calls of a process with each fault, in thousandths.
type weather struct {
	slow   uint64 // takes up to half a minute
	lost   uint64 // a write is applied, and its answer is lost
	failed uint64 // nothing is applied, and the caller does not know
	full   uint64 // a write meets a full disk
	torn   uint64 // a read gets damaged bytes once
}

// line is the connection of one process to the store. A dead line lets nothing through.
type line struct {
	w    *world
	name string

	mu     sync.Mutex // guards the following
	calls  map[string]uint64
	sky    weather
	dead   bool
	deadIn int // calls until the process is killed; 0: it is not
	killed chan struct{}
}

func (w *world) newLine(name string) *line {
	return &line{w: w, name: name, calls: map[string]uint64{}, killed: make(chan struct{})}
}

// store returns the store as the process sees it.
func (l *line) store() blob.Store {
	return lagging{faultblob.Wrap(witnessed{l.w.disk, l.w}, l.fate), l.w}
}

func (l *line) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.die()
}

func (l *line) die() {
	if !l.dead {
		l.dead = true
		close(l.killed)
	}
}

func (l *line) set(sky weather) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sky = sky
}

// killAfter kills the process at its nth call from now.
func (l *line) killAfter(calls int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deadIn = calls
}

var errStorage = errors.New("the storage answered 503")

// fate decides about a call by the seed, the process, the key, the functions that call, and how many such calls there were
// before, so that the order of goroutines decides nothing. Each call takes a time of its own, which orders the calls.
func (l *line) fate(ctx context.Context, call faultblob.Call) faultblob.Fate {
	kind := string(call.Op) + " " + call.Key
	caller := fmt.Sprint(kind, callers())
	l.mu.Lock()
	l.calls[caller]++
	random := l.w.chance(l.name, caller, l.calls[caller])
	sky, before := l.sky, l.dead
	if l.deadIn > 0 {
		if l.deadIn--; l.deadIn == 0 {
			l.die()
		}
	}
	dead := l.dead
	l.mu.Unlock()
	if before {
		return faultblob.Fate{Err: faultblob.ErrKilled}
	}
	wait, roll, extra := time.Millisecond+time.Duration(random%8_000_000), random>>24%1000, random>>40
	if roll < sky.slow {
		wait += time.Duration(extra%30_000) * time.Millisecond
	}
	select {
	case <-time.After(wait):
	case <-l.killed:
		if !dead {
			return faultblob.Fate{Err: faultblob.ErrKilled}
		}
	case <-ctx.Done():
		return faultblob.Fate{Err: fmt.Errorf("%s %s: %w", call.Op, call.Key, context.Cause(ctx))}
	}
	l.w.note("%s %s", l.name, kind)
	if dead { // the call of the crash is applied or not
		return faultblob.Fate{Err: faultblob.ErrKilled, Applied: extra&1 == 0}
	}
	roll, writes := extra>>8%1000, call.Op.Writes()
	switch {
	case writes && roll < sky.lost:
		return faultblob.Fate{Err: fmt.Errorf("%s %s: %w: the answer is lost", call.Op, call.Key, blob.ErrUnknown), Applied: true}
	case writes && roll < sky.lost+sky.failed:
		return faultblob.Fate{Err: fmt.Errorf("%s %s: %w: no answer", call.Op, call.Key, blob.ErrUnknown)}
	case writes && roll < sky.lost+sky.failed+sky.full:
		return faultblob.Fate{Err: fmt.Errorf("%s %s: %w", call.Op, call.Key, syscall.ENOSPC)}
	case !writes && roll < sky.failed:
		return faultblob.Fate{Err: fmt.Errorf("%s %s: %w", call.Op, call.Key, errStorage)}
	case !writes && roll < sky.failed+sky.torn:
		return faultblob.Fate{Mangle: func(data []byte) []byte {
			if extra&2 == 0 || len(data) == 0 {
				return data[:len(data)/2]
			}
			data[int(extra>>16)%len(data)] ^= 0x20
			return data
		}}
	}
	return faultblob.Fate{}
}

// The locks of the product that are held through calls of the store order the goroutines that come at one instant: each
// waits for some nanoseconds of its own.
func init() {
	lock.Before = func() { time.Sleep(time.Duration(1 + callers()%50_000)) }
}

// named holds the digests of the names of functions, by their program counter.
var named sync.Map

// callers returns a digest of the functions that have called, by their names.
func callers() uint64 {
	var pcs [40]uintptr
	sum := uint64(0)
	for _, pc := range pcs[:runtime.Callers(4, pcs[:])] {
		name, ok := named.Load(pc)
		if !ok {
			hash := fnv.New64a()
			_, _ = io.WriteString(hash, runtime.FuncForPC(pc-1).Name())
			name = hash.Sum64()
			named.Store(pc, name)
		}
		sum = sum*1_099_511_628_211 + name.(uint64) //nolint:forcetypeassert // as stored
	}
	return sum
}

// chance is a number that follows from the seed and a name for it.
func (w *world) chance(parts ...any) uint64 {
	sum := fnv.New64a()
	fmt.Fprintln(sum, append([]any{w.seed}, parts...)...)
	mixed := sum.Sum64() // fnv's low bits are weak
	mixed ^= mixed >> 29
	mixed *= 0xbf58476d1ce4e5b9
	return mixed ^ mixed>>32
}

// lagging is a store whose listings take a second, so that they lack the objects that are written meanwhile. Its clock is
// the world's.
type lagging struct {
	*faultblob.Store

	w *world
}

var _ blob.Clock = lagging{}

// StoreTime implements [blob.Clock].
func (s lagging) StoreTime(context.Context) (time.Time, time.Duration, error) {
	return s.w.now(), time.Second, nil
}

// String implements [blob.Store].
func (lagging) String() string { return "s3://simulated/world" }

// List implements [blob.Store].
func (s lagging) List(ctx context.Context, prefix string) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		var all []blob.Info
		for info, err := range s.Store.List(ctx, prefix) {
			if err != nil {
				yield(info, err)
				return
			}
			all = append(all, info)
		}
		if !s.w.calm.Load() && !retry.Sleep(ctx, time.Second) {
			yield(blob.Info{}, context.Cause(ctx))
			return
		}
		for _, info := range all {
			if !yield(info, nil) {
				return
			}
		}
	}
}

func (l *line) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// calm ends the faults of the connection.
func (l *line) calm() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sky, l.deadIn = weather{}, 0
}
