package edge_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"gridcast/deploy/must"
	"gridcast/edge/edgetest"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/memblob"
)

// TestDrainOfBusyConnections stops an edge under a thousand connections that ask without a
// pause, over real sockets. A connection may end between two requests. A response that has
// begun must be whole, and a request that the edge has read gets its answer.
func TestDrainOfBusyConnections(t *testing.T) {
	const connections = 1000
	w := newWorld(t, perMinute("pro", 1e9))
	var answered, last atomic.Int64
	allBusy := make(chan struct{})
	var busy sync.WaitGroup
	target := request("GET", "/api/v1/standings?year=2023", "X-API-Key: "+w.key["pro"])
	open := make([]net.Conn, 0, connections)
	for range connections {
		open = append(open, w.dial())
	}
	for i, c := range open {
		busy.Go(func() {
			reader := bufio.NewReader(c)
			for {
				_, err := io.WriteString(c, target)
				if err == nil {
					var r response
					if r, err = whole(reader); err == nil {
						if answered.Add(1) == 5*connections {
							close(allBusy)
						}
						must.Hold(t, r.StatusCode == http.StatusOK, "connection %d: got %d", i, r.StatusCode)
						if r.Close {
							last.Add(1)
							return
						}
						continue
					}
				}
				// The connection ended before the first byte of the response.
				must.Hold(t, errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE), "connection %d: %v", i, err)
				return
			}
		})
	}
	<-allBusy
	must.Succeed(t, "Run", w.stop())
	busy.Wait()
	counted := w.edge.Usage().Keys[0].Requests
	got := answered.Load()
	must.Hold(t, uint64(got) == counted, "%d requests were counted and %d answered: %d responses were lost", counted, got, int64(counted)-got)
	t.Logf("%d responses on %d connections, %d of which were told that it was the last", answered.Load(), connections, last.Load())
}

// whole reads a response. The error is io.EOF only if no byte of it came.
func whole(reader *bufio.Reader) (response, error) {
	if _, err := reader.Peek(1); err != nil {
		return response{}, err
	}
	r, err := read(reader, "GET")
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		err = errors.New("the response was cut off")
	}
	return r, err
}

// TestManySwaps reads the standings on 64 connections during 250 swaps.
func TestManySwaps(t *testing.T) {
	const connections, swaps = 64, 250
	w := newWorld(t, perMinute("pro", 1e9))
	store := memblob.New()
	versions := make([]*snapshots.Version, 0, 4)
	for n := range int64(cap(versions)) {
		versions = append(versions, edgetest.Publish(t, store, n+10))
	}
	var done atomic.Bool
	var responses atomic.Int64
	progress := make(chan struct{}, 1)
	var reading sync.WaitGroup
	seen := make([]map[string]bool, connections)
	for i := range connections {
		seen[i] = map[string]bool{}
		c := w.dial()
		reading.Go(func() {
			for !done.Load() && !t.Failed() {
				readVersions(t, c, w.key["pro"], i, 4, seen[i])
				responses.Add(4)
				select {
				case progress <- struct{}{}:
				default:
				}
			}
		})
	}
	for i := range swaps {
		<-progress // so that responses come between any two swaps
		must.Do(t, w.edge.Accept(versions[i%len(versions)]))
	}
	done.Store(true)
	reading.Wait()
	bodies := map[string]bool{}
	for _, s := range seen {
		for tag := range s {
			bodies[tag] = true
		}
	}
	must.Hold(t, len(bodies) >= len(versions), "saw %d bodies of %d versions", len(bodies), len(versions))
	t.Logf("%d responses on %d connections during %d swaps", responses.Load(), connections, swaps)
}

// readVersions checks that the tag always belongs to the body, in every coding.
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
