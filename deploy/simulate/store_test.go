package simulate_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"iter"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gridcast/deploy/must"
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
	caller := kind + " " + strconv.FormatUint(callers(), 36)
	l.mu.Lock()
	l.calls[caller]++
	random := l.w.chance(caller+" of "+l.name, l.calls[caller])
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

// The locks of the product that are held through calls of the store order the goroutines that come at one instant, and so do
// the runs of jobs: each waits for some nanoseconds of its own.
func init() {
	named.digests = map[uintptr]uint64{}
	lock.Before = func(name string) {
		digest := fnv.New64a()
		_, _ = io.WriteString(digest, name)
		time.Sleep(time.Duration(1 + (callers()+digest.Sum64())%50_000))
	}
}

// named holds the digests of the names of functions, by their program counter.
var named struct {
	sync.Mutex

	digests map[uintptr]uint64
}

// callers returns a digest of the functions of the product that have called, by their names.
func callers() uint64 {
	var pcs [64]uintptr
	n, sum := runtime.Callers(4, pcs[:]), uint64(0)
	named.Lock()
	defer named.Unlock()
	for i, pc := range pcs[:n] {
		name, ok := named.digests[pc]
		if !ok {
			frame, _ := runtime.CallersFrames(pcs[i : i+1]).Next()
			if strings.HasPrefix(frame.File, product) {
				hash := fnv.New64a()
				_, _ = io.WriteString(hash, short(frame.Function))
				name = hash.Sum64()
			}
			named.digests[pc] = name
		}
		if name != 0 {
			sum = sum*1_099_511_628_211 + name
		}
	}
	return sum
}

// product is the folder of the product's files, as the compiler names it.
var product = func() string {
	_, file, _, _ := runtime.Caller(0)
	return strings.TrimSuffix(file, "deploy/simulate/store_test.go")
}()

// generated matches the parts of a function's name that the compiler adds for a type, a closure or the body of a loop.
var generated = regexp.MustCompile(`\[\.\.\.\]|\.(func|gowrap|deferwrap)?[0-9]+|-range[0-9]+`)

// short returns the name of a function without its package and receiver. A closure has the name of the function around it,
// because its full name differs where the compiler inlines that function.
func short(function string) string {
	name := generated.ReplaceAllString(function, "")
	return name[strings.LastIndexByte(name, '.')+1:]
}

// TestShort: a function has one name in every build.
func TestShort(t *testing.T) {
	for function, want := range map[string]string{
		"gridcast/snapshots.(*Publisher).Publish":                                "Publish",
		"gridcast/deploy/service.(*Service).Start.func2":                         "Start",
		"gridcast/deploy/service.(*Service).Start.(*Service).Start.func2.func5":  "Start", // inlined
		"gridcast/deploy/service.(*Service).Start.func2.1":                       "Start",
		"gridcast/builder/archive.Encode.seasonParts.func3":                      "seasonParts", // inlined
		"gridcast/builder/archive.seasonParts.func1":                             "seasonParts",
		"gridcast/builder/predict/score.NewMetrics.Draws[...].func2":             "Draws",
		"gridcast/builder/predict/score.NewMetrics-range1":                       "NewMetrics",
		"gridcast/snapshots/blob.Document[...].Update.gowrap1":                   "Update",
		"gridcast/deploy/simulate_test.readRecord.(*Store).List.func2-range3.12": "List",
	} {
		must.Hold(t, short(function) == want, "%s is named %s, want %s", function, short(function), want)
	}
}

// chance is the nth number that follows from the seed and a name.
func (w *world) chance(name string, n uint64) uint64 {
	mixed := w.seed*0x9e3779b97f4a7c15 + n
	for i := range len(name) {
		mixed = (mixed ^ uint64(name[i])) * 1_099_511_628_211 // its low bits are weak
	}
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
