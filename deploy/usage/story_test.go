package usage_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gridcast/deploy/must"
	"gridcast/deploy/usage"
	"gridcast/edge/keys"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/blobtest"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

// desk is a scheduler that reads the edges "a" and "b", from noon of 1 January 2000 on.
type desk struct {
	t     *testing.T
	store blob.Store
	a, b  *counter
	*usage.Collector
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	time.Sleep(12 * time.Hour)
	d := &desk{t: t, store: memblob.New(), a: newCounter("a"), b: newCounter("b")}
	d.restart()
	d.minutes(1)
	return d
}

// restart kills the scheduler and starts another.
func (d *desk) restart() {
	d.Collector = &usage.Collector{Store: d.store, Edges: []usage.Edge{d.a.edge(), d.b.edge()}, Log: discard}
}

// minutes reads the edges at so many whole minutes.
func (d *desk) minutes(n int) {
	for range n {
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
		d.Round(d.t.Context(), false)
	}
}

// says compares the days, "key requests" by day, and the gaps.
func (d *desk) says(days string, gaps ...string) {
	d.t.Helper()
	d.Round(d.t.Context(), true)
	r := must.Get(usage.Load(d.t.Context(), d.store, ""))(d.t)
	var got, gotGaps []string
	for _, day := range slices.Sorted(maps.Keys(r.Days)) {
		for _, id := range slices.Sorted(maps.Keys(r.Days[day])) {
			got = append(got, fmt.Sprint(day[5:], " ", id, " ", r.Days[day][id].Requests))
		}
	}
	for _, g := range r.Gaps {
		gotGaps = append(gotGaps, strings.TrimSpace(fmt.Sprintf("%s %s to %s: %s %s", g.Edge, g.From.Format("01-02 15:04"), g.To.Format("01-02 15:04"), g.Why, g.Key)))
	}
	must.Equal(d.t, "days", days, strings.Join(got, ", "))
	must.Equal(d.t, "gaps", gaps, gotGaps)
}

// TestGapsAreNamed has a row for each way in which a count can be missing or late.
func TestGapsAreNamed(t *testing.T) {
	for _, tt := range []struct {
		name string
		run  func(d *desk)
		days string
		gaps []string
	}{
		{"nothing happens", func(d *desk) { d.minutes(3) }, "01-01 k 1", nil},
		{"a scheduler dies for ten minutes", func(d *desk) {
			d.a.serve("k", 200)
			time.Sleep(10 * time.Minute)
			d.a.serve("k", 200)
			d.restart()
		}, "01-01 k 3", nil},
		{"an edge restarts between two readings", func(d *desk) {
			d.minutes(1)
			d.a.serve("k", 200) // is lost
			time.Sleep(30 * time.Second)
			d.a.restart()
			d.a.serve("k", 200)
		}, "01-01 k 2", []string{"a 01-01 12:02 to 01-01 12:02: lost"}},
		{"an edge restarts just after a reading, and answers the next one slowly", func(d *desk) {
			time.Sleep(time.Second)
			d.a.restart()
			d.a.serve("k", 200)
			d.a.slow = 10 * time.Second
		}, "01-01 k 2", []string{"a 01-01 12:01 to 01-01 12:01: lost"}},
		{"a scheduler and an edge die", func(d *desk) {
			d.a.serve("k", 200) // is read, not stored, and lost
			d.minutes(5)
			d.restart()
			time.Sleep(10 * time.Minute)
			d.a.restart()
			d.a.serve("k", 200)
		}, "01-01 k 2", []string{"a 01-01 12:01 to 01-01 12:16: lost"}},
		{"an edge does not answer", func(d *desk) {
			d.a.serve("k", 200)
			d.b.silent = true
			d.minutes(5)
		}, "01-01 k 2", []string{"b 01-01 12:01 to 01-01 12:06: unread"}},
		{"an edge never answered", func(d *desk) {
			c := newCounter("c")
			c.silent = true
			d.Edges = append(d.Edges, c.edge())
			d.minutes(5)
		}, "01-01 k 1", []string{"c 01-01 12:02 to 01-01 12:06: unread"}},
		{"an edge leaves --edges", func(d *desk) {
			d.b.serve("k", 200)
			d.Edges = d.Edges[:1]
			d.minutes(5)
		}, "01-01 k 1", []string{"b 01-01 12:01 to 01-01 12:06: unread"}},
		{"an edge has left --edges", func(d *desk) {
			d.Edges = d.Edges[:1]
			d.minutes(25 * 60)
		}, "01-01 k 1", []string{"b 01-01 12:01 to 01-02 13:00: lost"}},
		{"nobody reads around midnight", func(d *desk) {
			d.a.serve("k", 200)
			time.Sleep(13 * time.Hour)
			d.a.serve("k", 200)
			d.minutes(1)
		}, "01-01 k 1, 01-02 k 2", []string{"a 01-01 12:01 to 01-02 01:02: late", "b 01-01 12:01 to 01-02 01:02: late"}},
		{"somebody reads at midnight", func(d *desk) {
			d.minutes(12*60 - 2)
			d.a.serve("k", 200)
			d.minutes(1) // 00:00
			d.a.serve("k", 200)
			d.minutes(1)
		}, "01-01 k 2, 01-02 k 1", nil},
		{"a counter falls", func(d *desk) {
			d.a.serve("l", 200)
			d.a.keys["k"] = new(keys.Usage)
			d.a.serve("l", 200)
			d.minutes(1)
			d.Round(d.t.Context(), true)
			d.a.serve("k", 200)
		}, "01-01 k 2, 01-01 l 2", []string{"a 01-01 12:01 to 01-01 12:02: wrong k"}},
		{"a counter is out of reach", func(d *desk) { d.a.keys["k"].Count(200, 1<<60) }, "01-01 k 1", []string{"a 01-01 12:01 to 01-01 12:01: wrong k"}},
		{"the edge's machine sleeps", func(d *desk) {
			d.a.began = d.a.began.Add(time.Hour) // its uptime stands still
			time.Sleep(time.Hour)
		}, "01-01 k 1", []string{"a 01-01 12:01 to 01-01 13:01: clock"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t)
				d.a.serve("k", 200)
				d.Round(t.Context(), true)
				tt.run(d)
				d.says(tt.days, tt.gaps...)
			})
		})
	}
}

// TestOwnEdgeEndsWithoutAGap stops the process of a scheduler and its edge, which has answered its last request, and starts both again.
func TestOwnEdgeEndsWithoutAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			ended, drained := make(chan struct{}), make(chan struct{})
			c := &usage.Collector{Store: d.store, Edges: []usage.Edge{d.a.edge()}, Log: discard, Drained: drained}
			go func() { c.Run(ctx); close(ended) }()
			time.Sleep(5*time.Minute + 10*time.Second)
			synctest.Wait()
			d.a.serve("k", 200)
			cancel()
			synctest.Wait()
			d.a.serve("k", 200) // while connections drain
			close(drained)
			<-ended
			time.Sleep(time.Hour)
			d.a.restart()
		}
		d.Edges = d.Edges[:1]
		r := must.Get(usage.Load(t.Context(), d.store, ""))(t)
		must.Equal(t, "days", map[string]keys.Counts{"k": {Requests: 6, Bytes: 60}}, total(r))
		for _, g := range r.Gaps {
			must.Hold(t, g.Edge == "b", "got %v", g)
		}
	})
}

// TestUsageIsKeptFor13Months counts a request each day for two years.
func TestUsageIsKeptFor13Months(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		for day := range 730 {
			d.a.serve("k", 200)
			d.Round(t.Context(), true)
			now := time.Now()
			time.Sleep(24 * time.Hour)
			if day%10 != 0 && now.Day() > 1 {
				continue
			}
			r := must.Get(usage.Load(t.Context(), d.store, ""))(t)
			first := slices.Min(slices.Collect(maps.Keys(r.Days)))
			month := usage.DayOf(now.AddDate(0, -usage.Months, 0))
			older := usage.DayOf(now.AddDate(0, -usage.Months-1, -1))
			must.Require(t, day < 400 && first == "2000-01-01" || first <= month && first >= older, "on %s the first day is %s", usage.DayOf(now), first)
			must.Require(t, len(r.Days) == 1+int(now.Sub(must.Get(time.Parse(time.DateOnly, string(first)))(t)).Hours())/24, "on %s there are %d days from %s on", usage.DayOf(now), len(r.Days), first)
		}
		objects := blobtest.Objects(t, d.store)
		must.Hold(t, len(objects) <= 2*15, "%d objects are left, want one for each kept month, and its copy: %v", len(objects), slices.Sorted(maps.Keys(objects)))
	})
}

// TestKilledAtEachWrite kills a scheduler at each of its writes around the end of a month, with and without the write's
// effect. Another goes on. Each request counts once.
func TestKilledAtEachWrite(t *testing.T) {
	for n := 1; n <= 8; n++ {
		for _, applied := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t)
				d.a.serve("k", 200)
				d.Round(t.Context(), true)
				time.Sleep(time.Until(time.Date(2000, 2, 1, 0, 0, 0, 0, time.UTC)))
				d.a.serve("k", 200)
				mortal, _ := faultblob.Mortal(d.store, n, applied)
				dying := &usage.Collector{Store: mortal, Edges: d.Edges, Log: discard}
				dying.Round(t.Context(), false)
				d.a.serve("k", 200)
				time.Sleep(time.Minute)
				dying.Round(t.Context(), true)
				d.restart()
				d.Round(t.Context(), true)
				d.a.serve("k", 200)
				d.Round(t.Context(), true)
				r := must.Get(usage.Load(t.Context(), d.store, ""))(t)
				must.Equal(t, fmt.Sprintf("killed at write %d, applied %t", n, applied), uint64(4), total(r)["k"].Requests)
			})
		}
	}
}

// TestDamagedUsageIsPutBack damages the object that is written next.
func TestDamagedUsageIsPutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.a.serve("k", 200)
		d.Round(t.Context(), true)
		for key, data := range blobtest.Objects(t, d.store) {
			if strings.HasPrefix(key, "usage/") {
				must.Get(blob.Put(t.Context(), d.store, key, 1<<20, data[:len(data)/2]))(t)
			}
		}
		must.Hold(t, must.Err(usage.Load(t.Context(), d.store, "")) != nil, "a damaged object is read")
		d.a.serve("k", 200)
		d.says("01-01 k 2")
	})
}
