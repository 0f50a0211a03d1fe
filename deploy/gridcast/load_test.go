package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/edge/keys"
	"gridcast/snapshots/blob"
)

// manyKeys creates keys in the store, so that no limit is met.
func manyKeys(t testing.TB, store blob.Store, n int) []string {
	t.Helper()
	created := make([]string, n)
	must.Do(t, keys.Update(t.Context(), store, func(doc *keys.List) error {
		for i := range created {
			var err error
			if _, created[i], err = doc.Create(keys.Request{Name: "load", Tier: "pro"}, time.Now()); err != nil {
				return err
			}
		}
		return nil
	}))
	return created
}

// load is clients that ask several edges at a steady rate, as through a balancer.
type load struct {
	client http.Client
	keys   []string

	// edges are asked in turn. A request holds mu for reading, so that no request is open while mu is
	// locked.
	mu    sync.RWMutex
	edges []string

	counts sync.Mutex // guards the fields below
	sent   int
	failed int
	faults []error // the first few
	took   []time.Duration
}

// loadTargets are the paths that clients ask for.
var loadTargets = []string{"/standings", "/standings?year=2024", "/calendar", "/drivers", "/predictions", "/next-race", "/accuracy"}

func newLoad(keys []string, edges ...string) *load {
	return &load{keys: keys, edges: edges, client: http.Client{
		Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}, Timeout: time.Minute,
	}}
}

// run asks perSecond times a second, until ctx ends.
func (l *load) run(ctx context.Context, perSecond int) {
	const workers = 8
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	requests := make(chan int)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for n := range requests {
				l.request(n)
			}
		})
	}
	for n := 0; ctx.Err() == nil; n++ {
		<-tick.C
		requests <- n
	}
	close(requests)
	group.Wait()
}

// request sends the nth request and notes how it went.
func (l *load) request(n int) {
	l.mu.RLock()
	edge := l.edges[n%len(l.edges)]
	began := time.Now()
	err := l.ask(edge+"/api/v1"+loadTargets[n%len(loadTargets)], l.keys[n%len(l.keys)])
	took := time.Since(began)
	l.mu.RUnlock()

	l.counts.Lock()
	defer l.counts.Unlock()
	l.sent++
	l.took = append(l.took, took)
	if err == nil {
		return
	}
	if l.failed++; l.failed <= 10 {
		l.faults = append(l.faults, err)
	}
}

// ask returns an error unless the answer is a success with a body that matches its entity tag.
func (l *load) ask(url, key string) error {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	request.Header.Set("X-API-Key", key)
	response, err := l.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", url, err)
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: status %d: %s", url, response.StatusCode, body)
	case !strings.Contains(url, "/next-race") && response.Header.Get("ETag") != tagOf(body):
		return fmt.Errorf("%s: tag %s, that of the body is %s", url, response.Header.Get("ETag"), tagOf(body))
	}
	return nil
}

// tagOf is the entity tag that a body must have.
func tagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + hex.EncodeToString(sum[:])[:32] + `"`
}

// balance asks only these edges from now on. When it returns, no other edge has an open request.
func (l *load) balance(edges ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.edges = edges
}

// report logs the number of requests and their times, and fails the test if one failed.
func (l *load) report(t testing.TB) {
	t.Helper()
	l.counts.Lock()
	defer l.counts.Unlock()
	if l.sent == 0 {
		t.Fatal("nothing was asked")
	}
	for _, err := range l.faults {
		t.Errorf("failed: %v", err)
	}
	t.Logf("%d requests, %d failed, %s", l.sent, l.failed, quantiles(l.took))
}

// quantiles describes how long things took.
func quantiles(took []time.Duration) string {
	slices.Sort(took)
	at := func(share float64) time.Duration {
		return took[int(share*float64(len(took)-1)+0.5)].Round(10 * time.Microsecond)
	}
	return fmt.Sprintf("median %v, p99 %v, slowest %v of %d", at(0.5), at(0.99), at(1), len(took))
}
