package usage

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"gridcast/edge"
	"gridcast/scheduler"
	"gridcast/snapshots/blob"
)

// Edge is an edge with counters that a Collector reads.
type Edge struct {
	Name  string // the same in every scheduler, over restarts
	Usage func(context.Context) (edge.UsageDocument, error)
}

// Collector reads edges and stores their usage. Several processes may have one on the same store.
type Collector struct {
	Store blob.Store
	Edges []Edge
	Log   *slog.Logger
	// Intervals calls Run each second; it may be nil.
	Intervals *scheduler.Intervals
	// Drained is closed after the last request to the first edge, which is in this process; nil: it is not.
	Drained <-chan struct{}

	mu      sync.Mutex        // guards pending, which only round sets; round alone has the rest
	pending []reading         // not stored yet, in order: the last of each edge, instance and day; its array never changes
	last    map[string]string // by edge: its instance; empty: it does not answer
	hour    time.Time         // of the latest write
	failing bool              // the latest write failed
}

// endWait bounds the last reading of a process.
const endWait = 10 * time.Second

// Run reads the edges at each whole minute of real time until ctx ends. It stores the readings at each whole hour, at its
// end, and as soon as an edge has restarted.
func (c *Collector) Run(ctx context.Context) {
	var minute time.Time
	err := c.Intervals.Every(ctx, time.Second, func(ctx context.Context) {
		if now := time.Now().Truncate(time.Minute); !now.Equal(minute) {
			minute = now
			c.round(ctx, false)
		}
	})
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWait)
	defer cancel()
	if c.Drained != nil {
		<-c.Drained
	}
	c.round(ending, true)
	if err != nil {
		c.Log.Error("edges are not read each minute", "err", err)
	}
}

// round reads all edges once, and stores the readings when it is time.
func (c *Collector) round(ctx context.Context, last bool) {
	at := time.Now()
	readings, faults := make([]reading, len(c.Edges)), make([]error, len(c.Edges))
	var asking sync.WaitGroup
	for i, e := range c.Edges {
		asking.Go(func() {
			readings[i] = reading{edge: e.Name, at: at, ended: last && c.Drained != nil && i == 0}
			var document edge.UsageDocument
			if document, faults[i] = e.Usage(ctx); faults[i] == nil {
				readings[i].usage, readings[i].took = &document, time.Since(at)
			}
		})
	}
	asking.Wait()
	hour := at.Truncate(time.Hour)
	due := last || !hour.Equal(c.hour)
	pending := c.pending
	for i, r := range readings {
		before, known := c.last[r.edge]
		if r.usage == nil && (!known || before != "") && ctx.Err() == nil {
			c.Log.Warn("edge not read; its requests are counted when it answers", "edge", r.edge, "err", faults[i])
		}
		due = due || !known || r.usage != nil && r.instance() != before
		if c.last == nil {
			c.last = map[string]string{}
		}
		c.last[r.edge] = r.instance()
		pending = append(slices.DeleteFunc(slices.Clone(pending), r.replaces), r)
	}
	c.setPending(pending)
	if !due || len(pending) == 0 {
		return
	}
	if err := c.write(ctx, at); err != nil {
		if !c.failing && ctx.Err() == nil {
			c.Log.Warn("usage not stored; it is tried again each minute", "err", err)
		}
		c.failing = true
		return
	}
	c.setPending(nil)
	c.hour, c.failing = hour, false
}

// setPending sets the readings for Report, which does not wait for a write.
func (c *Collector) setPending(pending []reading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = pending
}

func (r reading) instance() string {
	if r.usage == nil {
		return ""
	}
	return r.usage.Instance
}

// replaces reports whether a reading says nothing beside r, which came later.
func (r reading) replaces(other reading) bool {
	return other.edge == r.edge && other.instance() == r.instance() && other.day() == r.day()
}

// write adds the pending readings to the last object.
func (c *Collector) write(ctx context.Context, at time.Time) error {
	numbers, err := list(ctx, c.Store)
	if err != nil {
		return err
	}
	number := int64(1)
	if n := len(numbers); n > 0 {
		number = numbers[n-1]
	}
	var closed *sheet
	for {
		l, err := document(c.Store, number).Update(ctx, func(l *sheet) error {
			switch {
			case l.Closed:
				return nil
			case !l.Written.IsZero() && l.full(reading{at: at}.day()):
				l.Closed = true
				return nil
			case l.Written.IsZero() && closed != nil:
				l.follow(closed)
			}
			for _, r := range c.pending {
				l.take(r)
			}
			l.forget()
			return nil
		})
		if err != nil {
			return err
		}
		if !l.Closed {
			return prune(ctx, c.Store, numbers, at)
		}
		closed, number = &l, number+1
	}
}

func list(ctx context.Context, store blob.Store) (numbers []int64, err error) {
	of := objects(store)
	for info, err := range store.List(ctx, of.Prefix) {
		if err != nil {
			return nil, err
		}
		if n, ok := of.Number(info.Key); ok {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// prune deletes the objects of months that ended more than Months ago, and their copies.
func prune(ctx context.Context, store blob.Store, numbers []int64, at time.Time) error {
	for _, number := range numbers {
		l, _, err := document(store, number).Load(ctx)
		if err != nil || !l.Closed || time.Date(l.Written.Year(), l.Written.Month()+1+Months, 1, 0, 0, 0, 0, time.UTC).After(at) {
			return err
		}
		key := objects(store).Key(number)
		if err := store.Delete(ctx, blob.CopyOf(key)); err != nil {
			return err
		}
		if err := store.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// Report returns the usage of all days from one on, with the readings that are not stored yet.
func (c *Collector) Report(ctx context.Context, from Day) (Report, error) {
	c.mu.Lock()
	pending := c.pending
	c.mu.Unlock()
	return load(ctx, c.Store, from, pending)
}
