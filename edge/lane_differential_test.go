package edge_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"gridcast/edge"
	"gridcast/edge/edgetest"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/memblob"
)

// TestLaneEqualsServer sends streams of bytes to an edge with the express lane and to one
// without. Responses, except for their date, reads and the end of the connection must be
// equal. GRIDCAST_LANE_INPUTS sets the number of streams, GRIDCAST_LANE_SEED their seed.
func TestLaneEqualsServer(t *testing.T) {
	inputs := setting(t, "GRIDCAST_LANE_INPUTS", 30_000)
	seed := setting(t, "GRIDCAST_LANE_SEED", 1)
	p := newPair(t, edgetest.NewListener())
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	versions := []*snapshots.Version{edgetest.Publish(t, memblob.New(), 11), edgetest.Publish(t, memblob.New(), 12)}
	var g generator
	began, sent, received, before := time.Now(), 0, 0, p.edges[0].OnLane()
	for i := range inputs {
		if i%200 == 0 { // a new window, another round of the countdown
			p.real.add(time.Minute)
			p.race.set([]time.Time{
				edgetest.AbuDhabi.Add(-time.Hour), edgetest.AbuDhabi.Add(-time.Nanosecond), edgetest.AbuDhabi, edgetest.Melbourne,
			}[i/200%4])
		}
		if i%5000 == 0 {
			p.accept(t, versions[i/5000%2])
		}
		s := g.stream(random, p.words)
		n := p.compare(t, s)
		if t.Failed() {
			t.Fatalf("stream %d of seed %d", i, seed)
		}
		sent, received = sent+len(s.data), received+n
	}
	p.compareMetrics(t)
	onLane := p.edges[0].OnLane() - before
	if int(onLane) < inputs/3 {
		t.Errorf("the lane answered %d requests of %d streams: the test shows too little", onLane, inputs)
	}
	t.Logf("%d streams, %d MB sent, %d MB received, %d responses by the lane, no difference, in %s",
		inputs, sent/1e6, received/1e6, onLane, time.Since(began).Round(time.Second))
}

// FuzzLane is TestLaneEqualsServer with the streams of Go's fuzzer. The keys of the edges are
// {pro}, {trial} and so on in them, a tag is {etag}.
func FuzzLane(f *testing.F) {
	p := newPair(f, edgetest.NewListener())
	for _, seed := range []string{
		"GET /api/v1/calendar HTTP/1.1\r\nHost: x\r\nX-API-Key: {pro}\r\n\r\n",
		"GET /api/v1/standings?year=2023 HTTP/1.1\r\nHost: x:80\r\nAuthorization: Bearer {pro}\r\nAccept-Encoding: gzip, br\r\nIf-None-Match: {etag}\r\n\r\n",
		"GET /api/v1/next-race HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\nGET /api/v1/drivers HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabcHEAD / HTTP/1.0\r\n\r\n",
	} {
		f.Add([]byte(seed), uint8(0), false)
		f.Add([]byte(seed), uint8(7), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, chunk uint8, times bool) {
		p.real.add(time.Minute)
		for name, word := range p.words {
			data = bytes.ReplaceAll(data, []byte("{"+name+"}"), []byte(word))
		}
		s := stream{data: data, end: io.EOF}
		if times {
			s.end = os.ErrDeadlineExceeded
		}
		for n := int(chunk); n > 0 && n < len(data); n += int(chunk) {
			s.cuts = append(s.cuts, n)
		}
		p.compare(t, s)
	})
}

// pair is two edges with the same keys, versions and clocks.
type pair struct {
	edges                 [2]*edge.Edge        // with the lane, without
	serveConn             func(net.Conn) error // of the edge without the lane
	handed                *edgetest.Listener   // the lane's listener; nil: at address
	address               string
	registries            [2]*prometheus.Registry
	real, race            *clock
	words                 map[string]string // keys by their names, and a tag
	laneTrace, plainTrace trace
}

func newPair(t testing.TB, handed *edgetest.Listener, onLane ...option) *pair {
	p := &pair{
		registries: [2]*prometheus.Registry{prometheus.NewRegistry(), prometheus.NewRegistry()},
		handed:     handed,
	}
	p.laneTrace.ended = make(chan struct{})
	same := func(i int, lane bool) option {
		return func(c *edge.Config, d *edge.Deps, _ *setup) {
			c.ExpressLane = lane
			c.MaxHeaderBytes = 1 << 10                          // so that streams often reach the end of the buffer
			c.ReadTimeout, c.IdleTimeout = time.Hour, time.Hour // a slow machine must not end connections
			c.MaxBodyBytes = 64
			c.AnonymousSlots = 1 // otherwise the windows would be in secret places
			d.Registry = p.registries[i]
		}
	}
	lane := newWorld(t, append(onLane, same(0, true), func(_ *edge.Config, d *edge.Deps, _ *setup) {
		if handed != nil {
			d.Listener = handed
		}
	})...)
	p.address = lane.listener.Addr().String()
	plain := newWorld(t, same(1, false), withoutKeys, withoutVersion, func(_ *edge.Config, d *edge.Deps, s *setup) {
		d.Store, d.Clock, d.RaceTime = lane.store, lane.real.now, lane.race.instead
		s.copied = true
	})
	p.edges, p.serveConn = [2]*edge.Edge{lane.edge, plain.edge}, plain.edge.ConnServer()
	p.real, p.race, p.words = lane.real, lane.race, lane.key
	plain.key = lane.key
	p.words["etag"] = plain.get("/api/v1/calendar").Header.Get("ETag")
	if len(onLane) == 0 {
		lane.get("/api/v1/calendar") // counts too
	}
	return p
}

func (p *pair) accept(t *testing.T, v *snapshots.Version) {
	for _, e := range p.edges {
		if err := e.Accept(v); err != nil {
			t.Fatal(err)
		}
	}
}

// compare sends a stream to both edges and returns the length of the answer without a lane.
func (p *pair) compare(t testing.TB, s stream) int {
	p.laneTrace.reset(s)
	p.plainTrace.reset(s)
	p.handed.Hand(&p.laneTrace)
	err := p.serveConn(&p.plainTrace)
	<-p.laneTrace.ended
	hideDates(p.laneTrace.out)
	hideDates(p.plainTrace.out)
	got, want := &p.laneTrace, &p.plainTrace
	if !bytes.Equal(got.out, want.out) {
		t.Errorf("responses to %q cut at %d, then %v (-server +lane):\n%s", s.data, s.cuts, s.end, apart(want.out, got.out))
	}
	if !slices.Equal(got.reads, want.reads) || got.closed != want.closed {
		t.Errorf("%q cut at %d, then %v: the lane reads up to %d and closes at %d, the server %d and %d with %v",
			s.data, s.cuts, s.end, got.reads, got.closed, want.reads, want.closed, err)
	}
	for i := range min(len(got.written), len(want.written)) {
		if got.written[i] < want.written[i] {
			t.Errorf("%q cut at %d: before read %d the lane has sent %d bytes, the server %d: it waits with an answer", s.data, s.cuts, i, got.written[i], want.written[i])
		}
	}
	return len(want.out)
}

// apart shows the output of both edges from shortly before the first difference.
func apart(server, lane []byte) string {
	const before, after = 200, 400
	at := 0
	for at < min(len(server), len(lane)) && server[at] == lane[at] {
		at++
	}
	from := max(0, at-before)
	return fmt.Sprintf("after %d bytes, of which the last are %q:\n-%q\n+%q",
		at, server[from:at], server[at:min(len(server), at+after)], lane[at:min(len(lane), at+after)])
}

// compareMetrics checks that both edges have equal counts.
func (p *pair) compareMetrics(t *testing.T) {
	var counts [2]map[string]float64
	for i, registry := range p.registries {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		counts[i] = map[string]float64{}
		for _, family := range families {
			if family.GetName() != "gridcast_edge_requests_total" {
				continue
			}
			for _, m := range family.GetMetric() {
				if n := m.GetCounter().GetValue(); n > 0 {
					counts[i][fmt.Sprint(m.GetLabel())] = n
				}
			}
		}
	}
	if diff := cmp.Diff(counts[1], counts[0]); diff != "" || len(counts[0]) == 0 {
		t.Errorf("counted (-server +lane):\n%s", diff)
	}
}

// stream is the data of a client, and their arrival.
type stream struct {
	data []byte
	cuts []int // ascending: the latest end of each read
	end  error // the result of every read after all data
}

// trace is a connection that delivers a stream and records the other side's calls.
type trace struct {
	stream
	at      int
	out     []byte
	reads   []int         // the end of each read; -1: it got the end of the stream
	written []int         // the bytes sent before each read
	closed  int           // the bytes read when the connection was closed; -1: it is open
	ended   chan struct{} // takes a value when the connection is closed; may be nil
}

func (c *trace) reset(s stream) {
	*c = trace{stream: s, out: c.out[:0], reads: c.reads[:0], written: c.written[:0], closed: -1, ended: c.ended}
}

func (c *trace) Read(p []byte) (int, error) {
	c.written = append(c.written, len(c.out))
	if c.closed >= 0 {
		return 0, net.ErrClosed
	}
	if c.at == len(c.data) {
		c.reads = append(c.reads, -1)
		return 0, c.end
	}
	for len(c.cuts) > 0 && c.cuts[0] <= c.at {
		c.cuts = c.cuts[1:]
	}
	until := len(c.data)
	if len(c.cuts) > 0 {
		until = c.cuts[0]
	}
	n := copy(p, c.data[c.at:until])
	c.at += n
	c.reads = append(c.reads, c.at)
	return n, nil
}

func (c *trace) Write(p []byte) (int, error) {
	c.out = append(c.out, p...)
	return len(p), nil
}

func (c *trace) Close() error {
	if c.closed < 0 {
		c.closed = c.at
		if c.ended != nil {
			c.ended <- struct{}{}
		}
	}
	return nil
}

func (*trace) LocalAddr() net.Addr              { return here }
func (*trace) RemoteAddr() net.Addr             { return here }
func (*trace) SetDeadline(time.Time) error      { return nil }
func (*trace) SetReadDeadline(time.Time) error  { return nil }
func (*trace) SetWriteDeadline(time.Time) error { return nil }

// hideDates overwrites the values of Date fields.
func hideDates(responses []byte) {
	name := []byte("\r\nDate: ")
	for {
		i := bytes.Index(responses, name)
		if i < 0 {
			return
		}
		responses = responses[i+len(name):]
		for j := 0; j < len(responses) && responses[j] != '\r'; j++ {
			responses[j] = '.'
		}
	}
}

// setting reads a number from the environment.
func setting(t *testing.T, name string, otherwise int) int {
	text := os.Getenv(name)
	switch {
	case text == "" && testing.Short():
		return otherwise / 4 // under the race detector fewer are enough
	case text == "":
		return otherwise
	}
	n, err := strconv.Atoi(strings.ReplaceAll(text, "_", ""))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
