package usage_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata" // for a machine without time zones

	"gridcast/deploy/must"
	"gridcast/deploy/usage"
	"gridcast/edge"
	"gridcast/edge/keys"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

// TestDays: a month of a machine whose clocks went forward has each day of UTC once.
func TestDays(t *testing.T) {
	berlin := must.Get(time.LoadLocation("Europe/Berlin"))(t)
	must.Equal(t, "the days", []usage.Day{"2026-03-27", "2026-03-28", "2026-03-29", "2026-03-30"}, usage.Days(time.Date(2026, 3, 31, 1, 30, 0, 0, berlin), 4))
}

var discard = slog.New(slog.DiscardHandler)

// counter is an edge that counts with the counters of a real one.
type counter struct {
	name     string
	instance string
	began    time.Time
	answer   int64
	keys     map[string]*keys.Usage
	silent   bool
	slow     time.Duration // before an answer
	requests []request     // of all instances
}

type request struct {
	at  time.Time
	key string
}

func newCounter(name string) *counter {
	c := &counter{name: name}
	c.restart()
	return c
}

func (c *counter) restart() {
	c.instance, c.began, c.answer, c.keys = rand.Text(), time.Now(), 0, map[string]*keys.Usage{}
}

func (c *counter) serve(key string, status int) {
	if c.keys[key] == nil {
		c.keys[key] = new(keys.Usage)
	}
	c.keys[key].Count(status, 10)
	c.requests = append(c.requests, request{time.Now(), key})
}

func (c *counter) edge() usage.Edge { return usage.Edge{Name: c.name, Usage: c.usage} }

func (c *counter) usage(context.Context) (edge.UsageDocument, error) {
	if c.silent {
		return edge.UsageDocument{}, errors.New("it does not answer")
	}
	time.Sleep(c.slow)
	c.answer++
	document := edge.UsageDocument{Instance: c.instance, Answer: c.answer, UptimeMS: time.Since(c.began).Milliseconds()}
	for id, u := range c.keys {
		document.Keys = append(document.Keys, keys.KeyUsage{ID: id, Counts: u.Counts()})
	}
	return document, nil
}

// total adds up all days, by key.
func total(r usage.Report) map[string]keys.Counts {
	sums := map[string]keys.Counts{}
	for id, s := range r.Sums("", "9999") {
		sums[id] = s.Counts
	}
	return sums
}

// TestEveryRequestCountsOnce has two schedulers read three edges for some days. Everything is killed and restarted at
// random, edges fall silent, and the store refuses writes or loses their answers. In the end the stored days
// have each request once, but for those in the named times.
func TestEveryRequestCountsOnce(t *testing.T) {
	for seed := range uint64(16) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { countOnce(t, mathrand.New(mathrand.NewPCG(seed, 7))) })
		})
	}
}

func countOnce(t *testing.T, random *mathrand.Rand) {
	inner := memblob.New()
	chance := func(n int) bool { return random.IntN(n) == 0 }
	faulty := 0
	store := faultblob.Wrap(inner, func(context.Context, faultblob.Call) faultblob.Fate {
		if faulty > 0 && chance(faulty) {
			return faultblob.Fate{Err: blob.ErrUnknown, Applied: chance(2)}
		}
		return faultblob.Fate{}
	})
	var edges []usage.Edge
	var counters []*counter
	for i := range 3 {
		c := newCounter(fmt.Sprint("edge", i))
		counters, edges = append(counters, c), append(edges, c.edge())
	}
	scheduler := func() *usage.Collector { return &usage.Collector{Store: store, Edges: edges, Log: discard} }
	schedulers := []*usage.Collector{scheduler(), scheduler()}
	time.Sleep(29*24*time.Hour + 17*time.Hour) // two days before the end of a month
	schedulers[0].Round(t.Context(), false)    // from here on the edges are known
	faulty = 4
	for range 3 * 24 * 6 { // ten minutes each
		for range random.IntN(4) {
			time.Sleep(time.Duration(random.IntN(120)) * time.Second)
			counters[random.IntN(3)].serve(fmt.Sprint("key", random.IntN(2)), []int{200, 304, 401, 429}[random.IntN(4)])
		}
		time.Sleep(time.Until(time.Now().Truncate(10 * time.Minute).Add(10 * time.Minute)))
		for _, c := range counters {
			if chance(30) {
				c.restart()
			}
			if chance(20) {
				c.silent = !c.silent
			}
		}
		for i := range schedulers {
			switch n := random.IntN(120); {
			case n < 3: // killed: nothing is stored
				schedulers[i] = scheduler()
			case n < 6:
				schedulers[i].Round(t.Context(), true)
				schedulers[i] = scheduler()
			case n < 40: // busy
			default:
				schedulers[i].Round(t.Context(), false)
			}
		}
	}
	faulty = 0
	for _, c := range counters {
		c.silent = false
	}
	time.Sleep(time.Minute)
	for _, s := range schedulers {
		s.Round(t.Context(), true)
	}
	r := must.Get(usage.Load(t.Context(), inner, ""))(t)
	want, sent, lost := map[string]keys.Counts{}, uint64(0), uint64(0)
	for _, c := range counters {
		for _, q := range c.requests {
			sent++
			named := false
			for _, g := range r.Gaps {
				named = named || g.Why == usage.Lost && g.Edge == c.name && !q.at.Before(g.From) && q.at.Before(g.To)
			}
			if named {
				lost++
				continue
			}
			n := want[q.key]
			n.Requests++
			want[q.key] = n
		}
	}
	got := map[string]keys.Counts{}
	for id, n := range total(r) {
		got[id] = keys.Counts{Requests: n.Requests}
		must.Hold(t, n.Bytes == 10*n.Requests, "%s: %d bytes in %d requests", id, n.Bytes, n.Requests)
	}
	must.Equal(t, "requests by key", want, got)
	for _, g := range r.Gaps {
		must.Hold(t, g.Why == usage.Lost || g.Why == usage.Late, "got %v", g)
	}
	must.Hold(t, sent > 300 && lost < sent/2, "%d of %d requests are lost", lost, sent)
}
