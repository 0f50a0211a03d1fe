package edge_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"gridcast/edge"
)

// TestLaneEqualsServerOverSockets is TestLaneEqualsServer for the loops that wait for sockets: a
// stream has a connection and arrives in one piece, after which the client sends no more.
// GRIDCAST_LANE_SOCKETS sets the number of streams.
func TestLaneEqualsServerOverSockets(t *testing.T) {
	n := network{pair: newPair(t, nil), random: rand.New(rand.NewPCG(1, 1)), inOnePiece: true}
	n.dial = func(bool) (halfCloser, error) { return n.dialTCP() }
	n.compare(t, setting(t, "GRIDCAST_LANE_SOCKETS", 3_000))
}

// TestLaneEqualsServerOverTLS is the same with TLS, in records that end anywhere. The server
// without a lane reads the content of each record. GRIDCAST_LANE_TLS sets the number of streams.
//
// Streams follow each other on a connection, and a record ends where one of them does, until the server
// without a lane closes it. Streams that it has not read by then begin the next connection, so
// both edges read each stream. One stream in 16 has its own connection, as over sockets.
// Of those handshakes some resume no session, and some take two packets. After one record in four
// the client waits for all of the server's answers before that point, and sends the others ahead.
func TestLaneEqualsServerOverTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, cert, key, 1)
	n := network{
		pair:   newPair(t, nil, func(c *edge.Config, _ *edge.Deps, _ *setup) { c.TLSCert, c.TLSKey = cert, key }),
		random: rand.New(rand.NewPCG(uint64(setting(t, "GRIDCAST_LANE_SEED", 1)), 2)),
	}
	began := time.Now()
	usual := &tls.Config{
		InsecureSkipVerify: true, ServerName: "x", ClientSessionCache: tls.NewLRUClientSessionCache(1), CurvePreferences: []tls.CurveID{tls.CurveP256},
		Time: func() time.Time { return began }, // the certificate is valid for an hour, and the streams may take longer
	}
	clients := []*tls.Config{usual, usual.Clone(), usual.Clone()}
	clients[1].CurvePreferences = nil // the first message takes two packets
	clients[2].ClientSessionCache = nil
	n.dial = func(alone bool) (halfCloser, error) {
		client := usual
		if alone {
			client = clients[max(0, n.random.IntN(8)-5)]
		}
		c, err := n.dialTCP()
		if err != nil {
			return nil, err
		}
		over := tls.Client(c, client)
		return over, over.Handshake()
	}
	first := []byte(request("GET", "/api/v1/calendar", "X-API-Key: "+n.words["pro"])) // as newPair has asked the other
	n.send(t, true, first, []record{{end: len(first)}})
	n.compare(t, setting(t, "GRIDCAST_LANE_TLS", 2_000))
}

// network is a pair of edges; the edge with the lane has an address.
type network struct {
	*pair
	random     *rand.Rand
	dial       func(alone bool) (halfCloser, error)
	inOnePiece bool // each stream arrives in one piece, on its own connection

	got                  []byte // on the latest connection
	connections, records int
}

// halfCloser is a connection whose sending side the client can close.
type halfCloser interface {
	net.Conn
	CloseWrite() error
}

// record is a piece of data that the client sends at once.
type record struct {
	end     int // its offset among the data of the connection
	answers int // the bytes of answers that the client has before it continues
}

// dialTCP is net.Dial without name resolution.
func (n *network) dialTCP() (*net.TCPConn, error) {
	return net.DialTCP("tcp", nil, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(n.address)))
}

// compare sends n streams to both edges.
func (n *network) compare(t *testing.T, inputs int) {
	const (
		onConnection = 16 // streams, at most
		aloneIn      = 6  // connections: so about one stream in 16 is alone
	)
	var (
		g                            generator
		waiting                      []stream
		done, alone, cutOff, minutes int
	)
	// A sleeping loop keeps its processor for some milliseconds, so the client needs one more.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1))
	began, before := time.Now(), n.edges[0].OnLane()
	tell := func() {
		t.Logf("%d streams, %d of them alone, on %d connections in %d records, %d responses by the lane, no difference, %d connections cut off, in %s",
			done, alone, n.connections, n.records, n.edges[0].OnLane()-before, cutOff, time.Since(began).Round(time.Second))
	}
	for part := 1; done < inputs; {
		if inputs >= 100_000 && done >= inputs/20*part {
			part++
			tell()
		}
		if done/200 >= minutes {
			minutes = done/200 + 1
			n.real.add(time.Minute)
		}
		for len(waiting) < min(onConnection, inputs-done) {
			s := g.stream(n.random, n.words)
			s.data = bytes.Clone(s.data)
			waiting = append(waiting, s)
		}
		together := waiting
		if n.inOnePiece || n.random.IntN(aloneIn) == 0 {
			together = waiting[:1]
			alone++
		}
		data, records, read := n.serve(together)
		reset := n.send(t, len(together) == 1, data, records)
		want := n.plainTrace.out
		hideDates(n.got)
		hideDates(want)
		switch {
		case bytes.Equal(n.got, want):
		case reset && bytes.HasPrefix(want, n.got):
			cutOff++
		default:
			t.Fatalf("from stream %d on: responses to %q in records %v (-server +lane):\n%s", done, data, records, apart(want, n.got))
		}
		done += read
		waiting = slices.Delete(waiting, 0, read)
	}
	n.compareMetrics(t)
	tell()
	if onLane := n.edges[0].OnLane() - before; int(onLane) < inputs/3 || cutOff > inputs/100 {
		t.Error("the test shows too little")
	}
}

// serve lets the edge without a lane answer consecutive streams. It returns the streams that the edge
// has read in part before it closed the connection, their number, and their records.
func (n *network) serve(streams []stream) (data []byte, records []record, read int) {
	s := stream{end: io.EOF}
	var ends []int // of streams
	for _, one := range streams {
		if !n.inOnePiece {
			for _, cut := range one.cuts {
				s.cuts = append(s.cuts, len(s.data)+cut)
			}
		}
		s.data = append(s.data, one.data...)
		s.cuts, ends = append(s.cuts, len(s.data)), append(ends, len(s.data))
	}
	server := &n.plainTrace
	server.reset(s)
	_ = n.serveConn(server) // its errors show in its output
	for read = 1; read < len(ends) && ends[read-1] < server.closed; {
		read++
	}
	for at, i := 0, 0; at < ends[read-1]; {
		for s.cuts[0] <= at {
			s.cuts = s.cuts[1:]
		}
		at = s.cuts[0]
		r := record{end: at}
		for i < len(server.reads) && server.reads[i] >= 0 && server.reads[i] < at {
			i++
		}
		if i+1 < len(server.written) && server.reads[i] == at && n.random.IntN(4) == 0 {
			r.answers = server.written[i+1]
		}
		records = append(records, r)
	}
	return s.data[:ends[read-1]], records, read
}

// send sends records of data to the edge with the lane, and reads its answers until the edge closes
// the connection. Reset says that the edge closed it with unread bytes of a stream: then the system may drop
// the answers that had not arrived, and also part of an answer larger than a socket's
// buffer.
func (n *network) send(t *testing.T, alone bool, data []byte, records []record) (reset bool) {
	c, err := n.dial(alone)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Minute)) // so that a forgotten connection does not block the test for ever
	n.got = n.got[:0]
	n.connections++
	read := func(least int) {
		for err == nil && len(n.got) < least {
			var k int
			n.got = slices.Grow(n.got, 16<<10)
			k, err = c.Read(n.got[len(n.got):cap(n.got)])
			n.got = n.got[:len(n.got)+k]
		}
	}
	at := 0
	for _, r := range records {
		// The edge may close before it has read everything; its answer arrives all the same.
		_, writeErr := c.Write(data[at:r.end])
		reset = reset || isReset(writeErr)
		at = r.end
		n.records++
		read(r.answers)
	}
	reset = isReset(c.CloseWrite()) || reset
	read(math.MaxInt)
	reset = reset || isReset(err)
	if !errors.Is(err, io.EOF) && !reset {
		t.Errorf("%q: %v", data[:at], err)
	}
	return reset
}

// isReset reports whether the other side has reset a connection. The system reports that once, to the
// first write or read, and afterwards the end of the stream.
func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
