package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/edge"
	"gridcast/snapshots/blob/porttest"
)

// TestDrain stops the real binary under a thousand busy connections.
func TestDrain(t *testing.T) {
	s := inDirectory(t)
	s.build(t, "2024-11-24T05:00:00Z", "--archive", seasons(t, 2024, 2024))
	key := manyKeys(t, s, 1)[0]
	admin := porttest.Address(t)
	drain(t, startServer(t, t.TempDir(), "edge", "--store", s.name, "--now", "2024-11-24T05:00:00Z",
		"--tiers", "pro=1000000000", "--admin-listen", admin), admin, key)
}

// drain checks the promises of a stopping edge. It answers every request that it counts in full, also
// one of which only half has arrived. A connection ends without an answer only before its next
// request is read. New connections are refused, and the process ends well and in time.
func drain(t *testing.T, p *process, admin, key string) {
	const connections, before = 1000, 5 // answers on a connection, on average, before the signal
	address := strings.TrimPrefix(p.url, "http://")
	request := []byte("GET /api/v1/standings HTTP/1.1\r\nHost: gridcast\r\nX-API-Key: " + key + "\r\n\r\n")
	standings := newClient(p.url, key).get(t, "/standings").body
	half := newAsker(t, address, request, standings)
	askers := make([]*asker, connections)
	for i := range askers {
		askers[i] = newAsker(t, address, request, standings)
	}
	var answered atomic.Int64
	answered.Store(2) // that above, and the first of half
	var asking sync.WaitGroup
	busy := make(chan struct{})
	ends := make([]error, connections)
	for i, a := range askers {
		asking.Go(func() {
			ends[i] = a.ask(func() {
				if answered.Add(1) == 2+before*connections {
					close(busy)
				}
			})
		})
	}
	select {
	case <-busy:
	case <-time.After(3 * time.Minute):
		t.Fatalf("only %d answers in three minutes", answered.Load())
	}
	// A request and half of another arrive together. When the first is answered the edge has read both,
	// and it does not end before the rest of the second arrives.
	half.request = append(slices.Clone(request), request[:20]...)
	must.Do(t, half.exchange())
	half.request = request[20:]
	began := time.Now()
	must.Do(t, p.cmd.Process.Signal(syscall.SIGTERM))
	asking.Wait()
	silent := 0
	for i, a := range askers {
		switch err := ends[i]; {
		case errors.Is(err, errSilent):
			silent++
		case err != nil:
			t.Errorf("connection %d, after %d answers: %v", i, a.answered, err)
		}
	}
	if counted := answersOf(t, admin, "standings"); counted != answered.Load() {
		t.Errorf("%d requests were counted and %d answered", counted, answered.Load())
	}
	p.refuses(t, address)
	if took := time.Since(began); took > edge.DefaultConfig().ReadTimeout {
		t.Fatalf("the connections ended only after %v", took)
	}
	must.Fail(t, "the request of which half had come", half.exchange(), errLast)
	select {
	case err := <-p.ended:
		p.ended <- err // for the end of the test
		must.Hold(t, err == nil, "the edge ended with %v, want exit status 0", err)
	case <-time.After(edge.DefaultConfig().DrainTimeout):
		t.Error("the edge does not end")
	}
	t.Logf("%d answers on %d connections, %d of which ended without another; ended %.2f s after the signal",
		answered.Load(), connections, silent, time.Since(began).Seconds())
}

var answersCounted = regexp.MustCompile(`(?m)^gridcast_edge_requests_total\{endpoint="(\w+)",.*\} (\S+)$`)

// answersOf returns how many answers of an endpoint the edge has counted.
func answersOf(t testing.TB, admin, endpoint string) int64 {
	t.Helper()
	total := int64(0)
	for _, m := range answersCounted.FindAllStringSubmatch(exposed(t, admin), -1) {
		if m[1] == endpoint {
			count := must.Get(strconv.ParseFloat(m[2], 64))(t)
			total += int64(count)
		}
	}
	return total
}

// refuses fails the test unless new connections are refused, while the process still runs.
func (p *process) refuses(t *testing.T, address string) {
	t.Helper()
	p.await(t, func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close() // it came before the edge stopped listening
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})
	select {
	case err := <-p.ended:
		p.ended <- err // for the end of the test
		t.Fatalf("the edge has ended with half a request read: %v", err)
	default:
	}
}

// asker repeats one request on one connection.
type asker struct {
	conn     net.Conn
	reader   *bufio.Reader
	request  []byte
	answered int
	want     []byte // body of every answer
}

// errSilent is the end of a connection without a byte of an answer: the edge closed it while it was
// idle, before the request arrived.
var errSilent = errors.New("ended without an answer")

// silent returns errSilent for the errors of such an end.
func silent(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return errSilent
	}
	return err
}

func newAsker(t testing.TB, address string, request, want []byte) *asker {
	t.Helper()
	conn := must.Get(net.Dial("tcp", address))(t)
	t.Cleanup(func() { _ = conn.Close() })
	must.Do(t, conn.SetDeadline(time.Now().Add(5*time.Minute)))
	return &asker{conn: conn, reader: bufio.NewReader(conn), request: request, want: want}
}

// ask exchanges until the connection ends.
func (a *asker) ask(answered func()) error {
	for {
		err := a.exchange()
		if errors.Is(err, errLast) {
			answered()
			return nil
		}
		if err != nil {
			return err
		}
		answered()
	}
}

// errLast comes with an answer that closes the connection.
var errLast = errors.New("the last answer")

// exchange sends the request and reads its answer, which must be complete and have the expected body.
func (a *asker) exchange() error {
	if _, err := a.conn.Write(a.request); err != nil {
		return silent(err)
	}
	if _, err := a.reader.Peek(1); err != nil {
		return silent(err)
	}
	response, err := http.ReadResponse(a.reader, nil)
	if err != nil {
		return fmt.Errorf("head of a response that has begun: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("body of a response that has begun: %w", err)
	}
	if response.StatusCode != http.StatusOK || !bytes.Equal(body, a.want) {
		return fmt.Errorf("answer %d: status %s, with %s", a.answered, response.Status, body)
	}
	a.answered++
	if response.Close {
		return errLast
	}
	return nil
}
