package edge_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gridcast/edge"
	"gridcast/edge/edgetest"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/memblob"
)

// TestSwapsUnderLoad swaps versions while clients read: the tag must always belong to the
// body, in every coding, and no response may be lost. TestThousandSwaps has more of both.
func TestSwapsUnderLoad(t *testing.T) {
	const clients, requests = 8, 100
	w := newWorld(t, func(c *edge.Config, _ *edge.Deps, _ *setup) { c.Tiers["pro"] = 1e6 })
	store := memblob.New()
	versions := make([]*snapshots.Version, 0, 4)
	for n := range int64(cap(versions)) {
		versions = append(versions, edgetest.Publish(t, store, n+10))
	}
	var done atomic.Bool
	var swapping, reading sync.WaitGroup
	swaps := 0
	swapping.Go(func() {
		for ; !done.Load(); swaps++ {
			if err := w.edge.Accept(versions[swaps%len(versions)]); err != nil {
				t.Error(err)
				return
			}
		}
	})
	seen := make([]map[string]bool, clients)
	for i := range clients {
		seen[i] = map[string]bool{}
		c := w.dial()
		reading.Go(func() { readVersions(t, c, w.key["pro"], i, requests, seen[i]) })
	}
	reading.Wait()
	done.Store(true)
	swapping.Wait()
	all := map[string]bool{}
	for _, s := range seen {
		for tag := range s {
			all[tag] = true
		}
	}
	t.Logf("%d requests, %d swaps, %d different bodies", clients*requests, swaps, len(all))
	if len(all) < 2 {
		t.Errorf("all responses were of one version: the test shows nothing")
	}
}

func readVersions(t *testing.T, c io.ReadWriter, key string, client, requests int, seen map[string]bool) {
	reader := bufio.NewReader(c)
	for i := range requests {
		coding := []string{"identity", "gzip", "br", "zstd"}[(i+client)%4]
		if _, err := io.WriteString(c, request("GET", "/api/v1/standings", "X-API-Key: "+key, "Accept-Encoding: "+coding)); err != nil {
			t.Error(err)
			return
		}
		r, err := read(reader, "GET")
		if err != nil || r.StatusCode != http.StatusOK {
			t.Errorf("client %d, request %d: got %v, %v", client, i, r.Response, err)
			return
		}
		body := decode(t, r.Header.Get("Content-Encoding"), r.body)
		tag, _, _ := strings.Cut(strings.Trim(r.Header.Get("ETag"), `"`), "-")
		if want := snapshots.ETag(snapshots.Digest(body)); tag != want {
			t.Errorf("client %d, request %d: tag %s of a body that has %s", client, i, tag, want)
			return
		}
		seen[tag] = true
	}
}
