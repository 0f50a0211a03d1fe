package edge_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gridcast/edge"
	"gridcast/edge/edgetest"
	"gridcast/edge/limit"
	"gridcast/edge/resident"
)

func init() { answeredOnLane = (*edge.Edge).OnLane }

// contract is the tests that hold with the lane and without, each named as its function.
var contract = []struct {
	name string
	run  func(*testing.T)
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
	{"StatusSaysWhatIsMissing", TestStatusSaysWhatIsMissing},
	{"StatusPage", TestStatusPage},
	{"KeysAreReloaded", TestKeysAreReloaded},
	{"UsageOfEachKey", TestUsageOfEachKey},
	{"HTTPLayer", TestHTTPLayer},
	{"StrictFraming", TestStrictFraming},
	{"SmuggledRequest", TestSmuggledRequest},
	{"BugIsAnError", TestBugIsAnError},
	{"PipelinedRequests", TestPipelinedRequests},
	{"SwapsUnderLoad", TestSwapsUnderLoad},
	{"Drain", TestDrain},
	{"DrainCutsConnections", TestDrainCutsConnections},
	{"DrainDelay", TestDrainDelay},
	{"OutOfDescriptors", TestOutOfDescriptors},
	{"Admin", TestAdmin},
}

// TestContractWithoutExpressLane runs the contract again without the lane.
func TestContractWithoutExpressLane(t *testing.T) {
	if testing.Short() {
		t.Skip("short: the contract is checked with the lane")
	}
	expressLane = false
	t.Cleanup(func() { expressLane = true })
	for _, test := range contract {
		t.Run(test.name, test.run)
	}
}

// TestEdgeWithoutLane compiles the edge without the express lane and runs those tests of the contract that depend
// on connections: deleting the package express and the files lane*.go removes the lane. The code that is left is
// the code that runs with a disabled lane, so TestContractWithoutExpressLane runs the rest of the contract.
func TestEdgeWithoutLane(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the edge and its tests once more")
	}
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	removed := map[string]string{} // by path; an empty replacement removes the file
	for _, pattern := range []string{"lane*.go", "express/*.go"} {
		files, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			removed[file] = ""
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": removed})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"TestOrderOfChecks", "TestHTTPLayer", "TestStrictFraming", "TestSmuggledRequest", "TestPipelinedRequests", "TestDrain", "TestDrainDelay", "TestOutOfDescriptors", "TestAdmin"}
	file := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-ldflags=-s -w", "-short", "-count=1", "-v", "-overlay", file, "-run", "^("+strings.Join(names, "|")+")$", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, test := range names {
		if !bytes.Contains(out, []byte("--- PASS: "+test+" (")) {
			t.Errorf("%s has not passed", test)
		}
	}
}

// TestLaneDoesNotAllocate sends the same request again and again, over a socket for a loop and
// on a connection with a goroutine.
func TestLaneDoesNotAllocate(t *testing.T) {
	handed := edgetest.NewListener()
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
					handed.Hand(r)
				} else {
					once = r.over(t, w.dial())
				}
				defer r.Close()
				before := w.edge.OnLane()
				n := allocations(500, once)
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

// allocations is testing.AllocsPerRun that leaves the client a processor, because a sleeping loop
// would keep the only one. Other goroutines hardly ever allocate once for each run.
func allocations(runs uint64, f func()) uint64 {
	f()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		f()
	}
	runtime.ReadMemStats(&after)
	return (after.Mallocs - before.Mallocs) / runs
}

// TestLaneHead spells out a whole response without its body.
func TestLaneHead(t *testing.T) {
	r := resident.New(429, []byte(`"tag"`), []resident.Field{
		resident.NewField("Vary", "Accept-Encoding"), resident.NewField("Content-Encoding", "br"), resident.JSON,
	}, []byte("{}"))
	rate, date := limit.Verdict{Limit: 30, Remaining: 7, Reset: 1795176060}, []byte("Fri, 20 Nov 2026 12:00:30 GMT")
	want := strings.ReplaceAll(`HTTP/1.1 429 Too Many Requests
Server: gridcast
Date: Fri, 20 Nov 2026 12:00:30 GMT
Content-Type: application/json; charset=utf-8
Content-Encoding: br
Content-Length: 2
ETag: "tag"
Vary: Accept-Encoding
X-RateLimit-Limit: 30
X-RateLimit-Remaining: 7
X-RateLimit-Reset: 1795176060
Retry-After: 3

`, "\n", "\r\n")
	for _, dst := range []string{"", "what was there"} {
		if diff := cmp.Diff(dst+want, string(edge.AppendHead([]byte(dst), r, rate, 3, date))); diff != "" {
			t.Errorf("after %q (-want +got):\n%s", dst, diff)
		}
	}
	into := make([]byte, 0, 1<<10)
	if n := testing.AllocsPerRun(100, func() { edge.AppendHead(into, r, rate, 3, date) }); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
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

// repeater is a connection on which the test lets a request arrive.
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

// over returns once over a socket. Responses fit in a buffer and come in one piece.
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

// Close ends the reading side; the server closes too.
func (c *repeater) Close() error {
	c.end.Do(func() { close(c.send) })
	return nil
}
