package express_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"gridcast/edge/edgetest"
	"gridcast/edge/express"
)

// answers is a handler that knows /lane, with a body of size bytes, /large, which no socket holds,
// and /slow, which reports that it waits, and then waits for the channel.
type answers struct {
	size  int
	waits atomic.Int32
	slow  chan struct{}

	forgets   bool         // after it has answered /large, it knows no target any more
	forgotten atomic.Bool  // it knows no target any more
	refused   atomic.Int32 // requests for a forgotten target
}

// large is more than two sockets hold by default.
const large = 32 << 20

func (a *answers) Knows(r *express.Request) bool {
	if a.forgotten.Load() {
		a.refused.Add(1)
		return false
	}
	return slices.Contains([]string{"/lane", "/large", "/slow"}, string(r.Target))
}

func (a *answers) Append(dst []byte, r *express.Request, mayWait bool) (head, body []byte, ok bool) {
	if string(r.Target) == "/slow" && r.Decided == nil {
		if !mayWait {
			return dst, nil, false
		}
		a.waits.Add(1)
		<-a.slow
	}
	size := a.size
	if string(r.Target) == "/large" {
		size = large
		a.forgotten.Store(a.forgets)
	}
	dst = fmt.Appendf(dst, "HTTP/1.1 200 OK\r\nServer: lane\r\nContent-Length: %d\r\n\r\n", size)
	return dst, bytes.Repeat([]byte("x"), size), true
}

func (a *answers) Ask(_ *express.Request, then func(any)) {
	a.waits.Add(1)
	go func() {
		<-a.slow
		then(true)
	}()
}

// system is a server with a lane.
type system struct {
	t       *testing.T
	lane    *express.Lane
	address string
	stop    func() error
}

func start(t *testing.T, handler *answers, change func(*express.Config)) *system {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, inner, handler, change)
}

func startOn(t *testing.T, inner net.Listener, handler *answers, change func(*express.Config)) *system {
	cfg := express.Config{
		Handler: handler, ReadTimeout: time.Minute, WriteTimeout: time.Minute, IdleTimeout: time.Minute,
		ReadBufferSize: 4 << 10, MaxConnections: 1000,
	}
	if overTLS {
		cfg.TLS = serverTLS(t)
	}
	if change != nil {
		change(&cfg)
	}
	lane := express.New(cfg)
	server := &fasthttp.Server{
		Name: "server", ConnState: lane.ConnState, ReadBufferSize: cfg.ReadBufferSize,
		ReadTimeout: cfg.ReadTimeout, WriteTimeout: cfg.WriteTimeout, IdleTimeout: cfg.IdleTimeout,
		Handler: func(ctx *fasthttp.RequestCtx) {
			if string(ctx.Path()) == "/lane" {
				ctx.SetBody(make([]byte, handler.size))
			} else {
				ctx.SetBodyString(string(ctx.Path()))
			}
		},
		Logger: quiet{},
	}
	listener, err := lane.Listen(inner)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	s := &system{t: t, lane: lane, address: inner.Addr().String()}
	s.stop = sync.OnceValue(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return errors.Join(lane.Drain(ctx), server.ShutdownWithContext(ctx), <-served)
	})
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

func (s *system) dial() net.Conn {
	s.t.Helper()
	c, err := dial(s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	_ = c.SetReadDeadline(time.Now().Add(time.Minute)) // a lost response ends the test
	return c
}

func get(target string) string { return "GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n" }

// expect reads the next response and checks that it comes from the lane, from the server, or from either.
func expect(t *testing.T, r *bufio.Reader, from string, length int) {
	t.Helper()
	response, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, response.Body)
	if got := response.Header.Get("Server"); err != nil || from != "" && got != from || int(n) != length {
		t.Fatalf("got %d bytes from %q, %v; want %d from %q", n, got, err, length, from)
	}
}

// TestHandedOffAndReturned alternates requests for the lane and for the server on one connection.
func TestHandedOffAndReturned(t *testing.T) {
	s := start(t, &answers{size: 100}, nil)
	c := s.dial()
	r := bufio.NewReader(c)
	for range 100 {
		fmt.Fprint(c, get("/lane"))
		expect(t, r, "lane", 100)
		fmt.Fprint(c, get("/server"))
		expect(t, r, "server", len("/server"))
	}
	if got := s.lane.Answered(); got != 100 {
		t.Errorf("the lane answered %d requests, want 100", got)
	}
}

// TestSlowReader reads the part that the sockets do not hold only after it has asked for more.
func TestSlowReader(t *testing.T) {
	s := start(t, &answers{size: 10}, nil)
	c := s.dialAnd(get("/large"))
	s.await("the request is answered", func() bool { return s.lane.Answered() == 1 })
	for range 3 {
		fmt.Fprint(c, get("/lane"))
	}
	other := s.dial() // is served meanwhile
	reader := bufio.NewReader(other)
	for range 10 {
		fmt.Fprint(other, get("/lane"))
		expect(t, reader, "lane", 10)
	}
	r := bufio.NewReader(c)
	expect(t, r, "lane", large)
	for range 3 {
		expect(t, r, "lane", 10)
	}
}

// TestPipelinedLarge asks for two large bodies and a small one at once.
func TestPipelinedLarge(t *testing.T) {
	s := start(t, &answers{size: 10}, nil)
	r := bufio.NewReader(s.dialAnd(get("/large") + get("/large") + get("/lane")))
	expect(t, r, "lane", large)
	expect(t, r, "lane", large)
	expect(t, r, "lane", 10)
}

// TestSlowReaderAfterASwap forgets a target while a slow reader waits for its response: the
// server answers the requests that the lane no longer can.
func TestSlowReaderAfterASwap(t *testing.T) {
	handler := &answers{size: 10, forgets: true}
	s := start(t, handler, nil)
	c := s.dialAnd(get("/large") + get("/lane") + get("/lane"))
	s.await("the socket is full, and the lane has asked again", func() bool { return handler.refused.Load() > 0 })
	r := bufio.NewReader(c)
	expect(t, r, "lane", large)
	expect(t, r, "server", 10)
	expect(t, r, "server", 10)
	handler.forgotten.Store(false)
	fmt.Fprint(c, get("/lane"))
	expect(t, r, "lane", 10)
}

// TestBusyConnectionLives keeps connections busy for three times every limit, with answers of lane and server,
// and then leaves them idle until they are closed.
func TestBusyConnectionLives(t *testing.T) {
	// The server starts an endless goroutine at its first connection: outside the bubble.
	warm := fasthttp.Server{Handler: func(*fasthttp.RequestCtx) {}, Logger: quiet{}}
	client, served := net.Pipe()
	go func() { _ = warm.ServeConn(served) }()
	fmt.Fprint(client, get("/"))
	if _, err := http.ReadResponse(bufio.NewReader(client), nil); err != nil {
		t.Fatal(err)
	}
	client.Close()

	for name, mix := range map[string][]string{
		"the lane alone":   {"/lane"},
		"the server alone": {"/server"},
		"in turn":          {"/lane", "/server"},
		"the lane first":   {"/lane", "/server", "/server", "/server", "/server", "/server", "/server", "/server"},
		"the server first": {"/server", "/lane", "/lane", "/lane", "/lane", "/lane", "/lane", "/lane"},
		"decided later":    {"/slow", "/server", "/slow"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := make(chan struct{})
				close(slow)
				handed := edgetest.NewListener()
				s := startOn(t, handed, &answers{size: 10, slow: slow}, func(c *express.Config) {
					c.ReadTimeout, c.WriteTimeout, c.IdleTimeout = 10*time.Second, 10*time.Second, 30*time.Second
				})
				c := handed.Dial()
				r := bufio.NewReader(c)
				began := time.Now()
				for i := 0; time.Since(began) < 3*30*time.Second; i++ {
					target := mix[i%len(mix)]
					go fmt.Fprint(c, get(target))
					from, length := "lane", 10
					if target == "/server" {
						from, length = "server", len("/server")
					}
					expect(t, r, from, length)
					time.Sleep(7 * time.Second)
				}
				idle := time.Now()
				if _, err := r.ReadByte(); err != io.EOF {
					t.Errorf("left idle: got %v, want the end of the connection", err)
				}
				if d := time.Since(idle); d < 20*time.Second || d > 35*time.Second {
					t.Errorf("closed %s after the last look, want about 30 s after the last request", d)
				}
				if err := s.stop(); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Minute) // the server's workers check once in a while whether to end
			})
		})
	}
}

// TestReaderThatStops lets clients ask for more than the sockets hold and read nothing: the
// write timeout ends their connections.
func TestReaderThatStops(t *testing.T) {
	s := start(t, &answers{size: 10}, func(c *express.Config) { c.WriteTimeout = 50 * time.Millisecond })
	for range 3 {
		s.dialAnd(get("/large"))
	}
	s.await("the connections are closed", func() bool { return s.lane.Open() == 0 && s.lane.Answered() == 3 })
}

// TestWaiting shows that a waiting request delays only its own connection,
// on which the responses keep their order.
func TestWaiting(t *testing.T) {
	slow := make(chan struct{})
	s := start(t, &answers{size: 10, slow: slow}, nil)
	waiting := s.dial()
	fmt.Fprint(waiting, get("/lane")+get("/slow")+get("/lane"))
	r := bufio.NewReader(waiting)
	expect(t, r, "lane", 10)
	others := bufio.NewReader(s.dialAnd(get("/lane")))
	expect(t, others, "lane", 10)
	close(slow)
	expect(t, r, "lane", 10)
	expect(t, r, "lane", 10)
	fmt.Fprint(waiting, get("/lane"))
	expect(t, r, "lane", 10)
}

// TestTimeouts has a connection that never asks, which the server answers, one that asks once
// and one that sends half a request.
func TestTimeouts(t *testing.T) {
	const patience = 200 * time.Millisecond
	s := start(t, &answers{size: 10}, func(c *express.Config) { c.ReadTimeout, c.IdleTimeout = patience, patience })
	for _, tt := range []struct {
		name, sent string
		want       []string
	}{
		{"never", "", []string{"400"}},
		{"once", get("/lane"), []string{"200"}},
		{"by the server", get("/server"), []string{"200"}},
		{"by halves", get("/lane") + get("/lane")[:10], []string{"200", "400"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inTime(t, patience, func() (took time.Duration, err error) {
				began := time.Now()
				c := s.dial()
				defer c.Close()
				// The server answers everything of one read if a part is unknown, so the half comes alone.
				r := bufio.NewReader(c)
				first, second, _ := strings.Cut(tt.sent, "\r\n\r\n")
				if first != "" {
					fmt.Fprint(c, first+"\r\n\r\n")
					took = time.Since(began)
				}
				for i, want := range tt.want {
					response, err := http.ReadResponse(r, nil)
					if err != nil {
						return took, err
					}
					if _, err := io.Copy(io.Discard, response.Body); err != nil {
						return took, err
					}
					if got := response.Status[:3]; got != want {
						return took, fmt.Errorf("response %d: got %s, want %s", i, got, want)
					}
					if i == 0 && second != "" {
						fmt.Fprint(c, second)
						took = time.Since(began)
					}
				}
				if _, err := r.ReadByte(); err != io.EOF && !errors.Is(err, syscall.ECONNRESET) {
					return took, fmt.Errorf("got %w, want the end of the connection", err)
				}
				return took, nil
			})
		})
	}
	s.await("all are closed", func() bool { return s.lane.Open() == 0 })
}

// inTime makes an attempt, and repeats it if it fails after the client took longer to send than the
// server waits, because that is the machine's fault and not the server's.
func inTime(t *testing.T, patience time.Duration, attempt func() (took time.Duration, err error)) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		took, err := attempt()
		if err == nil {
			return
		}
		if took < patience/2 || time.Now().After(deadline) {
			t.Fatalf("%v, to a client that took %s", err, took)
		}
	}
}

// TestHangUp closes the sending side together with a request, which is still answered.
func TestHangUp(t *testing.T) {
	s := start(t, &answers{size: 10}, nil)
	for _, target := range []string{"/lane", "/server"} {
		c := s.dialAnd(get(target))
		if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(c)
		if err != nil || !bytes.HasPrefix(all, []byte("HTTP/1.1 200 OK\r\n")) {
			t.Errorf("%s: got %q, %v", target, all, err)
		}
	}
	s.await("both are closed", func() bool { return s.lane.Open() == 0 })
}

// TestMaxConnections has one connection more than allowed: it is served when another ends.
func TestMaxConnections(t *testing.T) {
	s := start(t, &answers{size: 10}, func(c *express.Config) { c.MaxConnections = 3 })
	open := make([]net.Conn, 3)
	for i := range open {
		open[i] = s.dialAnd(get("/lane"))
		expect(t, bufio.NewReader(open[i]), "lane", 10)
	}
	late := s.dialAnd(get("/lane"))
	if n := s.lane.Open(); n != 3 {
		t.Errorf("%d connections are open, want 3", n)
	}
	open[1].Close()
	expect(t, bufio.NewReader(late), "lane", 10)
}

// TestOthersHaveTheirTurn keeps a lane busy without a pause and asks the server. The runtime
// watches the server's connections only when the lane lets it.
func TestOthersHaveTheirTurn(t *testing.T) {
	s := start(t, &answers{size: 10}, nil)
	stop := make(chan struct{})
	var busy sync.WaitGroup
	for range 16 {
		c := s.dial()
		busy.Go(func() {
			r := bufio.NewReader(c)
			for {
				fmt.Fprint(c, strings.Repeat(get("/lane"), 20))
				for range 20 {
					expect(t, r, "lane", 10)
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	c := s.dial()
	r := bufio.NewReader(c)
	for range 50 {
		fmt.Fprint(c, get("/server"))
		expect(t, r, "server", len("/server"))
	}
	close(stop)
	busy.Wait()
}

// TestDrainTellsTheServer drains a lane under requests: the server answers later requests.
func TestDrainTellsTheServer(t *testing.T) {
	s := start(t, &answers{size: 10}, nil)
	idle := s.dialAnd(get("/lane"))
	r := bufio.NewReader(idle)
	expect(t, r, "lane", 10)
	half := s.dialAnd(get("/lane")[:10])
	stopped := make(chan error, 1)
	go func() { stopped <- s.stop() }()
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("the idle connection: got %v, want its end", err)
	}
	fmt.Fprint(half, get("/lane")[10:])
	expect(t, bufio.NewReader(half), "server", 10)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", s.address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after the end: got %v, want a refused connection", err)
	}
}

// TestDrainGivesUp drains while a request waits for ever.
func TestDrainGivesUp(t *testing.T) {
	slow := make(chan struct{})
	handler := &answers{size: 10, slow: slow}
	s := start(t, handler, nil)
	c := s.dialAnd(get("/slow"))
	s.await("the request waits", func() bool { return handler.waits.Load() == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := s.lane.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want that the time is over", err)
	}
	close(slow)
	expect(t, bufio.NewReader(c), "lane", 10)
}

// dialAnd opens a connection and sends data.
func (s *system) dialAnd(sent string) net.Conn {
	s.t.Helper()
	c := s.dial()
	if _, err := io.WriteString(c, sent); err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (s *system) await(what string, happened func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); !happened(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("not after a minute: %s", what)
		}
	}
}
