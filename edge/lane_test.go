package edge_test

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"

	"gridcast/edge"
)

// expressLane says whether the edges of tests have an express lane.
var expressLane = true

// TestContractWithoutExpressLane runs again without the lane what the others ran with it.
func TestContractWithoutExpressLane(t *testing.T) {
	expressLane = false
	t.Cleanup(func() { expressLane = true })
	for _, contract := range []struct {
		name string
		test func(*testing.T)
	}{
		{"OrderOfChecks", TestOrderOfChecks},
		{"HeadersOfData", TestHeadersOfData},
		{"Encodings", TestEncodings},
		{"NotModified", TestNotModified},
		{"Preflight", TestPreflight},
		{"AbsoluteForm", TestAbsoluteForm},
		{"Credentials", TestCredentials},
		{"Origins", TestOrigins},
		{"Parameters", TestParameters},
		{"LimitOfEachTier", TestLimitOfEachTier},
		{"EveryRequestWithAKeyCounts", TestEveryRequestWithAKeyCounts},
		{"OverTheLimit", TestOverTheLimit},
		{"AnonymousWindow", TestAnonymousWindow},
		{"WindowsBehindAProxy", TestWindowsBehindAProxy},
		{"CountdownMovesByItself", TestCountdownMovesByItself},
		{"OutsideTheBasePath", TestOutsideTheBasePath},
		{"DocumentsAreCached", TestDocumentsAreCached},
		{"Readiness", TestReadiness},
		{"Status", TestStatus},
		{"StatusPage", TestStatusPage},
		{"KeysAreReloaded", TestKeysAreReloaded},
		{"UsageOfEachKey", TestUsageOfEachKey},
		{"HTTPLayer", TestHTTPLayer},
		{"BugIsAnError", TestBugIsAnError},
		{"PipelinedRequests", TestPipelinedRequests},
		{"SwapsUnderLoad", TestSwapsUnderLoad},
		{"Drain", TestDrain},
		{"DrainDelay", TestDrainDelay},
		{"OutOfDescriptors", TestOutOfDescriptors},
		{"Admin", TestAdmin},
	} {
		t.Run(contract.name, contract.test)
	}
}

// TestLaneDoesNotAllocate sends the same request again and again, over a socket for a loop and
// on a connection that has a goroutine.
func TestLaneDoesNotAllocate(t *testing.T) {
	handed := newHandedListener()
	for _, listener := range []net.Listener{nil, handed} {
		w := newWorld(t, func(c *edge.Config, d *edge.Deps, _ *setup) {
			c.Tiers["pro"] = 1e9
			d.Listener = listener
		})
		etag := w.get("/api/v1/calendar").Header.Get("ETag")
		for range 31 { // the tier trial has 30
			w.do("GET", "/api/v1/calendar", "X-API-Key: "+w.key["trial"])
		}
		for _, tt := range []struct {
			name, target, line, key string
			status                  int
		}{
			{"200", "/api/v1/standings?year=2023&type=constructors", "Accept-Encoding: gzip, deflate, br;q=0.9", "pro", 200},
			{"304", "/api/v1/calendar", "If-None-Match: W/\"other\", " + etag, "pro", 304},
			{"401 without a key", "/api/v1/calendar", "Accept: */*", "", 401},
			{"401 with an unknown key", "/api/v1/calendar", "Accept: */*", "revoked", 401},
			{"429", "/api/v1/calendar", "Accept: */*", "trial", 429},
			{"next race", "/api/v1/next-race", "Accept: */*", "pro", 200},
		} {
			t.Run(fmt.Sprintf("%s, socket %t", tt.name, listener == nil), func(t *testing.T) {
				r := newRepeater(request("GET", tt.target, tt.line, "Authorization: Bearer "+w.key[tt.key]))
				once := r.once
				if listener != nil {
					handed.conns <- r
				} else {
					once = r.over(t, w.dial())
				}
				defer r.Close()
				before := w.edge.OnLane()
				n := testing.AllocsPerRun(500, once)
				if got := string(r.response[len("HTTP/1.1 "):][:3]); got != strconv.Itoa(tt.status) {
					t.Fatalf("got status %s, want %d", got, tt.status)
				}
				if w.edge.OnLane() < before+500 {
					t.Error("it is not the lane that answers")
				}
				if n != 0 {
					t.Errorf("got %v allocations, want 0", n)
				}
			})
		}
	}
}

// BenchmarkLane measures a request over a loopback connection, the client's part included.
func BenchmarkLane(b *testing.B) {
	for _, lane := range []bool{true, false} {
		w := newWorld(b, func(c *edge.Config, _ *edge.Deps, _ *setup) {
			c.Tiers["pro"] = 1e9
			c.ExpressLane = lane
		})
		etag := w.get("/api/v1/calendar").Header.Get("ETag")
		for _, tt := range []struct{ name, target, line string }{
			{"200", "/api/v1/standings?year=2023", "Accept-Encoding: gzip, deflate, br, zstd"},
			{"304", "/api/v1/calendar", "If-None-Match: " + etag},
			{"next-race", "/api/v1/next-race", "Accept: */*"},
		} {
			b.Run(fmt.Sprintf("%s/lane=%t", tt.name, lane), func(b *testing.B) {
				r := newRepeater(request("GET", tt.target, tt.line, "X-API-Key: "+w.key["pro"]))
				once := r.over(b, w.dial())
				b.ReportAllocs()
				for b.Loop() {
					once()
				}
			})
		}
	}
}

// repeater is a connection on which a request arrives each time it is told to.
type repeater struct {
	trace
	request  []byte
	send     chan []byte
	done     chan struct{}
	response []byte
	end      sync.Once
}

func newRepeater(request string) *repeater {
	return &repeater{request: []byte(request), send: make(chan []byte), done: make(chan struct{})}
}

// over returns what once is over a socket. Responses fit in a buffer and come in one piece.
func (c *repeater) over(t testing.TB, socket net.Conn) func() {
	buffer := make([]byte, 64<<10)
	return func() {
		if _, err := socket.Write(c.request); err != nil {
			t.Error(err)
		}
		n, err := socket.Read(buffer)
		if err != nil {
			t.Error(err)
		}
		c.response = buffer[:n]
	}
}

// once sends the request and waits for the response.
func (c *repeater) once() {
	c.send <- c.request
	<-c.done
}

func (c *repeater) Read(p []byte) (int, error) {
	request, open := <-c.send
	if !open {
		return 0, os.ErrClosed
	}
	return copy(p, request), nil
}

func (c *repeater) Write(p []byte) (int, error) {
	c.response = append(c.response[:0], p...)
	c.done <- struct{}{}
	return len(p), nil
}

// Close ends the reading side; the server closes too, which is no news then.
func (c *repeater) Close() error {
	c.end.Do(func() { close(c.send) })
	return nil
}
