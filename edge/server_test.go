package edge_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gridcast/edge"
	"gridcast/schemas/wire"
	"gridcast/snapshots/blob"
)

// TestHTTPLayer has a row for each refusal before the gateway sees a request.
func TestHTTPLayer(t *testing.T) {
	w := newWorld(t, func(c *edge.Config, _ *edge.Deps, _ *setup) {
		c.ReadTimeout = 50 * time.Millisecond
		c.MaxHeaderBytes = 2 << 10
		c.MaxBodyBytes = 100
	})
	for _, tt := range []struct {
		decision, bytes string
		status          int
		code            wire.Code
	}{
		{"no HTTP at all", "nonsense\r\n\r\n", 400, wire.BadRequest},
		{"a header without a colon", "GET / HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n", 400, wire.BadRequest},
		{"a request that never ends", "GET /api/v1/calendar HTTP/1.1\r\nHost: x\r\n", 408, wire.Timeout},
		{"a body too large", "POST /api/v1/calendar HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n" + strings.Repeat("x", 101), 413, wire.TooLarge},
		{"a header too large", "GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 2<<10) + "\r\n\r\n", 431, wire.TooLarge},
		{"a target too large", "GET /" + strings.Repeat("x", 2<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n", 431, wire.TooLarge},
	} {
		t.Run(tt.decision, func(t *testing.T) {
			r := w.raw("GET", tt.bytes)
			var body wire.Error
			if err := json.Unmarshal(r.body, &body); err != nil {
				t.Fatal(err)
			}
			if r.StatusCode != tt.status || body.Error != tt.code || !r.Close {
				t.Errorf("got %d %s, close %t, want %d %s and the connection closed", r.StatusCode, body.Error, r.Close, tt.status, tt.code)
			}
		})
	}
}

// TestBugIsAnError lets the clock of the countdown panic.
func TestBugIsAnError(t *testing.T) {
	var broken atomic.Bool
	w := newWorld(t, func(_ *edge.Config, d *edge.Deps, _ *setup) {
		race := d.RaceTime
		d.RaceTime = func() time.Time {
			if broken.Load() {
				panic("clock fell off the wall")
			}
			return race()
		}
	})
	broken.Store(true)
	c := w.dial()
	reader := bufio.NewReader(c)
	for _, tt := range []struct {
		target string
		status int
		body   string
	}{
		{"/api/v1/next-race", 500, `{"ok":false,"error":"internal_error","message":"something went wrong on our side"}`},
		{"/api/v1/nothing", 404, ""}, // on the same connection: the server goes on
	} {
		if _, err := io.WriteString(c, request("GET", tt.target, "X-API-Key: "+w.key["pro"])); err != nil {
			t.Fatal(err)
		}
		r, err := read(reader, "GET")
		if err != nil {
			t.Fatal(err)
		}
		check(t, r, tt.target)
		if r.StatusCode != tt.status || tt.body != "" && string(r.body) != tt.body {
			t.Errorf("%s: got %d %s, want %d %s", tt.target, r.StatusCode, r.body, tt.status, tt.body)
		}
	}
}

// TestPipelinedRequests shows that a GET with a body does not shift what follows it.
func TestPipelinedRequests(t *testing.T) {
	w := newWorld(t)
	c := w.dial()
	key := "X-API-Key: " + w.key["pro"]
	smuggled := request("GET", "/api/v1/nothing", key)
	sent := request("GET", "/api/v1/calendar", key) +
		request("POST", "/api/v1/drivers", key, fmt.Sprintf("Content-Length: %d", len(smuggled))) + smuggled +
		request("HEAD", "/api/v1/accuracy", key) +
		request("GET", "/api/v1/next-race", key)
	go io.WriteString(c, sent) // the pipe has no buffer
	reader := bufio.NewReader(c)
	for i, want := range []struct {
		method string
		status int
	}{{"GET", 200}, {"POST", 405}, {"HEAD", 200}, {"GET", 200}} {
		r, err := read(reader, want.method)
		if err != nil {
			t.Fatal(err)
		}
		if r.StatusCode != want.status {
			t.Errorf("response %d: got %d, want %d", i, r.StatusCode, want.status)
		}
	}
}

// TestDrain stops an edge while a connection is busy: it gets its response, then the end.
func TestDrain(t *testing.T) {
	w := newWorld(t)
	c := w.dial()
	reader := bufio.NewReader(c)
	half := request("GET", "/api/v1/calendar", "X-API-Key: "+w.key["pro"])
	if _, err := io.WriteString(c, half[:20]); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- w.stop() }()
	w.await("stopping", func() bool { return w.edge.Ready() != nil })
	if _, err := io.WriteString(c, half[20:]); err != nil {
		t.Fatal(err)
	}
	r, err := read(reader, "GET")
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("got %v, %v, want the response to the request under way", r.Response, err)
	}
	if _, err := reader.ReadByte(); err != io.EOF {
		t.Errorf("after the response: got %v, want the end of the connection", err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Run: %v", err)
	}
}

// TestStopBeforeStart ends edges that have hardly begun.
func TestStopBeforeStart(t *testing.T) {
	w := newWorld(t) // for its store
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		e, err := edge.New(edge.DefaultConfig(), edge.Deps{Store: w.store, Log: discard, Listener: listener})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Run(stopped); err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

// TestDrainDelay shows that /readyz is bad before connections are refused.
func TestDrainDelay(t *testing.T) {
	w := newWorld(t, func(c *edge.Config, _ *edge.Deps, _ *setup) { c.DrainDelay = 300 * time.Millisecond })
	stopped := make(chan error, 1)
	go func() { stopped <- w.stop() }()
	w.await("stopping", func() bool { return w.edge.Ready() != nil })
	if r := w.do("GET", "/readyz"); r.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(r.body), "stopping") {
		t.Errorf("readyz: got %d %s, want 503", r.StatusCode, r.body)
	}
	if r := w.get("/api/v1/calendar"); r.StatusCode != http.StatusOK {
		t.Errorf("data: got %d, want 200", r.StatusCode)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestAddressTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	w := newWorld(t) // for its store
	for _, admin := range []bool{false, true} {
		cfg := edge.DefaultConfig()
		cfg.Listen = taken.Addr().String()
		if admin {
			cfg.Listen, cfg.AdminListen = "127.0.0.1:0", taken.Addr().String()
		}
		e, err := edge.New(cfg, edge.Deps{Store: w.store, Log: discard})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "listen") {
			t.Errorf("admin %t: got %v, want an error that says what could not be listened for", admin, err)
		}
	}
}

// TestTLSReload replaces the certificate under a running edge.
func TestTLSReload(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, cert, key, 1)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	newWorld(t, func(c *edge.Config, d *edge.Deps, _ *setup) {
		c.TLSCert, c.TLSKey = cert, key
		d.Listener = listener
	})
	serial := func() int64 {
		c, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, request("GET", "/healthz")); err != nil {
			t.Fatal(err)
		}
		if r, err := read(bufio.NewReader(c), "GET"); err != nil || r.StatusCode != http.StatusOK {
			t.Fatalf("over TLS: got %v, %v", r.Response, err)
		}
		return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	if got := serial(); got != 1 {
		t.Errorf("got certificate %d, want 1", got)
	}
	if err := os.WriteFile(cert, []byte("half a certif"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := serial(); got != 1 {
		t.Errorf("with a broken file: got certificate %d, want the last good one", got)
	}
	writeCertificate(t, cert, key, 2)
	if got := serial(); got != 2 {
		t.Errorf("got certificate %d, want 2", got)
	}
}

func writeCertificate(t testing.TB, certFile, keyFile string, serial int64) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: pkcs8},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		// Files written within one tick of the clock must differ in time.
		at := time.Now().Add(time.Duration(serial) * time.Second)
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAdmin looks at what an operator sees.
func TestAdmin(t *testing.T) {
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := probe.Addr().String()
	probe.Close()
	w := newWorld(t, func(c *edge.Config, _ *edge.Deps, _ *setup) { c.AdminListen = address })
	w.get("/api/v1/calendar")
	w.do("GET", "/api/v1/calendar")
	body := fetch(t, "http://"+address+"/metrics")
	for _, want := range []string{
		`gridcast_edge_requests_total{endpoint="calendar",status="200",tier="pro"} 1`,
		`gridcast_edge_requests_total{endpoint="unrouted",status="401",tier="none"} 1`,
		`gridcast_edge_version 1`,
		`gridcast_edge_version_age_seconds 0`,
		`gridcast_edge_versions_loaded_total 1`,
		`gridcast_edge_versions_refused_total 0`,
		`gridcast_edge_ready 1`,
		`gridcast_edge_keys 6`,
		`go_goroutines `,
	} {
		if !strings.Contains(body, "\n"+want) {
			t.Errorf("metrics without %s", want)
		}
	}
	var status wire.Success[edge.Status]
	if err := json.Unmarshal([]byte(fetch(t, "http://"+address+"/status")), &status); err != nil || status.Data.Version != 1 {
		t.Errorf("status: got %+v, %v", status, err)
	}
	fetch(t, "http://"+address+"/debug/pprof/")
}

func fetch(t testing.TB, url string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: got %s, %v", url, response.Status, err)
	}
	return string(body)
}

// deadStore is a store that does not answer readers.
type deadStore struct{ blob.Store }

var errDead = errors.New("connection refused")

func (deadStore) Get(context.Context, string) (blob.Object, error) { return blob.Object{}, errDead }

func (deadStore) Watch(context.Context, string, blob.Tag) (blob.Object, error) {
	return blob.Object{}, errDead
}

// TestStartWithoutStorage starts an edge from what another left on disk.
func TestStartWithoutStorage(t *testing.T) {
	dir := t.TempDir()
	cached := func(c *edge.Config, _ *edge.Deps, _ *setup) { c.CacheDir = dir }
	first := newWorld(t, cached)
	want := first.get("/api/v1/calendar")
	first.await("copy on disk", func() bool {
		_, err := os.Stat(filepath.Join(dir, "version", "current.json"))
		return err == nil
	})
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	second := newWorld(t, cached, withoutKeys, withoutVersion, func(_ *edge.Config, d *edge.Deps, s *setup) {
		d.Store = deadStore{d.Store}
		s.copied = true
	})
	second.key = first.key
	if got := second.get("/api/v1/calendar"); string(got.body) != string(want.body) {
		t.Errorf("got %d %s, want %s", got.StatusCode, got.body, want.body)
	}
	second.await("problem told", func() bool {
		s := second.edge.Status()
		return s.StoreProblem != "" && s.Keys.Problem != ""
	})
	if body := second.do("GET", "/status").body; bytes.Contains(body, []byte(errDead.Error())) {
		t.Errorf("strangers are told about the storage: %s", body)
	}
	if s := second.edge.Status(); !s.Keys.FromCopy || !s.Ready {
		t.Errorf("got status %+v, want it ready from the copy", s)
	}
}
