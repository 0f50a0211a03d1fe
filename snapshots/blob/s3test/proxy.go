package s3test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Fault is a fault between client and server.
type Fault string

// The faults.
const (
	None       Fault = "none"
	Latency    Fault = "latency"     // the request arrives late
	Cut        Fault = "cut"         // the connection ends before the server sees the request
	LostAnswer Fault = "lost answer" // the server applies the request, then the connection ends
	Stalled    Fault = "stalled"     // the server applies the request, and no answer ever comes
	Status500  Fault = "500"         // InternalError, and the server did not see the request
	Status503  Fault = "503"         // ServiceUnavailable, the same
	SlowDown   Fault = "SlowDown"    // 503 SlowDown, the same
	Late500    Fault = "500 applied" // the server applies the request, and the proxy answers 500
	Truncated  Fault = "truncated"   // the answer's body ends early
)

// Faults are all faults but None.
var Faults = []Fault{Latency, Cut, LostAnswer, Stalled, Status500, Status503, SlowDown, Late500, Truncated}

// Proxy stands in front of a server and makes faults.
type Proxy struct {
	server *Server
	front  *httptest.Server
	done   chan struct{} // closed at the end: releases stalled answers

	mu   sync.Mutex // guards all below
	next func(*http.Request) Fault
	made map[Fault]int
}

// latency is short against the deadline of one request, and long against the network.
const latency = 20 * time.Millisecond

// Front puts a proxy without faults before the server. It ends with the test.
func Front(t testing.TB, s *Server) *Proxy {
	t.Helper()
	p := &Proxy{server: s, done: make(chan struct{}), made: map[Fault]int{}, next: func(*http.Request) Fault { return None }}
	p.front = httptest.NewServer(p)
	t.Cleanup(func() {
		close(p.done)
		p.front.CloseClientConnections()
		p.front.Close()
	})
	return p
}

// URL is the endpoint of the proxy.
func (p *Proxy) URL() string { return p.front.URL }

// Choose lets choose decide the fate of each later request.
func (p *Proxy) Choose(choose func(*http.Request) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = choose
}

// First makes the fault on the first n requests, and none after them.
func (p *Proxy) First(n int, fault Fault) {
	p.Choose(func(*http.Request) Fault {
		if n--; n >= 0 {
			return fault
		}
		return None
	})
}

// Seeded makes a fault, chosen at random from faults, on the given share of the requests. The
// same seed gives the same sequence.
func (p *Proxy) Seeded(seed uint64, share float64, faults []Fault) {
	random := rand.New(rand.NewPCG(seed, seed))
	p.Choose(func(*http.Request) Fault {
		if random.Float64() >= share {
			return None
		}
		return faults[random.IntN(len(faults))]
	})
}

// Made returns the number of faults of each kind.
func (p *Proxy) Made() map[Fault]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	made := map[Fault]int{}
	for fault, n := range p.made {
		made[fault] = n
	}
	return made
}

func (p *Proxy) choose(r *http.Request) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	fault := p.next(r)
	p.made[fault]++
	return fault
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault := p.choose(r)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		cut()
	}
	switch fault {
	case Latency:
		if !p.sleep(r, latency) {
			return
		}
	case Cut:
		cut()
	case Status500:
		refuse(w, http.StatusInternalServerError, "InternalError")
		return
	case Status503:
		refuse(w, http.StatusServiceUnavailable, "ServiceUnavailable")
		return
	case SlowDown:
		refuse(w, http.StatusServiceUnavailable, "SlowDown")
		return
	}
	answer, err := p.forward(r, body)
	if err != nil {
		cut()
	}
	switch fault {
	case LostAnswer:
		cut()
	case Stalled:
		p.sleep(r, time.Hour)
		cut()
	case Late500:
		refuse(w, http.StatusInternalServerError, "InternalError")
		return
	case Truncated:
		answer.truncate(w)
	}
	answer.write(w, answer.data)
}

// answer is an answer of the server.
type answer struct {
	status int
	header http.Header
	data   []byte
}

// forward sends the request unchanged, because its signature covers the original host.
func (p *Proxy) forward(r *http.Request, body []byte) (*answer, error) {
	target := url.URL{Scheme: "http", Host: p.server.Address, Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}
	// The server may still apply a request after its client has given up.
	request, err := http.NewRequest(r.Method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header, request.Host = r.Header, r.Host
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	return &answer{response.StatusCode, response.Header, data}, err
}

// sleep returns false if the client or the test ends first.
func (p *Proxy) sleep(r *http.Request, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
	case <-p.done:
	}
	return false
}

// cut ends the connection without an answer.
func cut() { panic(http.ErrAbortHandler) }

// truncate promises the whole body, sends half of it and ends the connection.
func (a *answer) truncate(w http.ResponseWriter) {
	a.header.Set("Content-Length", strconv.Itoa(len(a.data)+1))
	a.write(w, a.data[:len(a.data)/2])
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
	cut()
}

func (a *answer) write(w http.ResponseWriter, data []byte) {
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.status)
	_, _ = w.Write(data)
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>injected</Message></Error>", code)
}
