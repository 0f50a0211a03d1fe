package source_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gridcast/builder/source"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
)

var noon = time.Date(2026, 5, 3, 12, 0, 0, 0, time.UTC)

func config() source.ClientConfig {
	return source.ClientConfig{
		Hosts: []string{"127.0.0.1"}, UserAgent: "gridcast-test (operator@example.org)",
		PerSecond: 100, PerHour: 1000, MaxBytes: 1000, ContentTypes: []string{"application/x-gzip"},
	}
}

// ask sends one request to a server that answers as told.
func ask(t *testing.T, c source.ClientConfig, answer http.HandlerFunc) (source.Answer, error) {
	t.Helper()
	server := httptest.NewServer(answer)
	defer server.Close()
	client := source.NewClient(c)
	defer client.Close()
	return client.Get(t.Context(), noon, server.URL+"/branch", source.Validators{})
}

func good(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/x-gzip")
	_, _ = io.WriteString(w, "bytes")
}

// TestOutages: each real outage has a kind of fault. The names say when it happened.
func TestOutages(t *testing.T) {
	page := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<html>"+http.StatusText(status)+"</html>")
		}
	}
	said, port := map[string]string{}, regexp.MustCompile(`127\.0\.0\.1:\d+`)
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		kind   source.FaultKind
		wait   time.Duration
	}{
		"504 of nginx, race day of Sao Paulo 2025": {page(504), source.Unreachable, 0},
		"502 while it is said to be fixed":         {page(502), source.Unreachable, 0},
		"521 of a proxy":                           {page(521), source.Unreachable, 0},
		"403 under the load of Monaco 2026":        {page(403), source.Refused, 0},
		"401 during a session":                     {page(401), source.Refused, 0},
		"404":                                      {page(404), source.Refused, 0},
		"429 far below the limit, April 2025":      {page(429), source.Throttled, 0},
		"429 that names a time": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "90")
			page(429)(w, r)
		}, source.Throttled, 90 * time.Second},
		"503 that names a date": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", noon.Add(5*time.Minute).Format(http.TimeFormat))
			page(503)(w, r)
		}, source.Unreachable, 5 * time.Minute},
		"Retry-After of a year": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "31536000")
			page(429)(w, r)
		}, source.Throttled, time.Hour},
		"a page with 200":  {page(200), source.Malformed, 0},
		"no content type":  {func(w http.ResponseWriter, _ *http.Request) { w.Header()["Content-Type"] = nil }, source.Malformed, 0},
		"304 without need": {page(304), source.Refused, 0},
		"too many bytes": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-gzip")
			_, _ = io.WriteString(w, strings.Repeat("x", 1001))
		}, source.Malformed, 0},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-gzip")
			w.Header().Set("Content-Length", "500")
			_, _ = io.WriteString(w, "half")
		}, source.Unreachable, 0},
		"hangs up": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, source.Unreachable, 0},
		"to another host": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://evil.example/branch", http.StatusFound)
		}, source.Refused, 0},
		"in a circle": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
		}, source.Refused, 0},
		"to a file": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusFound)
		}, source.Refused, 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ask(t, config(), test.answer)
			var fault *source.Fault
			must.Require(t, errors.As(err, &fault), "got %v, want a fault", err)
			must.Hold(t, fault.Kind == test.kind && fault.RetryAfter == test.wait, "got %s, again after %s: %v; want %s, %s", fault.Kind, fault.RetryAfter, err, test.kind, test.wait)
			said[name] = port.ReplaceAllString(err.Error(), "127.0.0.1")
		})
	}
	golden.Inputs(t, "testdata/outages.txt", said)
}

// TestRetriesOnce: the client retries once after a broken connection or an error of the server, never after
// a 429.
func TestRetriesOnce(t *testing.T) {
	for status, want := range map[int]int32{502: 2, 503: 2, 504: 2, 500: 2, 501: 1, 429: 1, 403: 1} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			var asked atomic.Int32
			must.Fail(t, "no fault", must.Err(ask(t, config(), func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				w.WriteHeader(status)
			})))
			got := asked.Load()
			must.Hold(t, got == want, "asked %d times, want %d", got, want)
		})
	}
	var asked atomic.Int32
	answer, err := ask(t, config(), func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		good(w, r)
	})
	must.Hold(t, err == nil && string(answer.Body) == "bytes", "after one 502: got %q, %v", answer.Body, err)
}

// TestConditional: the next request has the validators of the last answer, and names the program and
// its operator.
func TestConditional(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := r.Header.Get("User-Agent")
		must.Hold(t, got == "gridcast-test (operator@example.org)", "User-Agent %q", got)
		w.Header().Set("ETag", `"abc"`)
		w.Header().Set("Last-Modified", noon.Format(http.TimeFormat))
		if r.Header.Get("If-None-Match") == `"abc"` && r.Header.Get("If-Modified-Since") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		good(w, r)
	}))
	defer server.Close()
	client := source.NewClient(config())
	defer client.Close()
	first, err := client.Get(t.Context(), noon, server.URL, source.Validators{})
	must.Require(t, err == nil && !first.NotModified, "first: %+v, %v", first, err)
	again, err := client.Get(t.Context(), noon, server.URL, first.Validators)
	must.Hold(t, err == nil && again.NotModified && again.Validators == first.Validators, "again: %+v, %v; want that nothing changed", again, err)
}

// TestHosts: the client talks to allowed hosts alone, over TLS or on loopback.
func TestHosts(t *testing.T) {
	c := config()
	c.Hosts = append(c.Hosts, "f1db.example")
	client := source.NewClient(c)
	for _, target := range []string{"http://f1db.example/x", "https://other.example/x", "ftp://127.0.0.1/x", "file:///etc/passwd", "://", ""} {
		_, err := client.Get(t.Context(), noon, target, source.Validators{})
		var fault *source.Fault
		if !errors.As(err, &fault) || fault.Status != 0 || fault.Kind == source.Unreachable {
			t.Errorf("%q: got %v, want that it is not asked", target, err)
		}
	}
}

// TestCredentialsStay: a redirect never gets the credentials of the first address.
func TestCredentialsStay(t *testing.T) {
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.URL.Path+" "+r.Header.Get("Authorization"))
		if r.URL.Path == "/branch" {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
			return
		}
		good(w, r)
	}))
	defer server.Close()
	client := source.NewClient(config())
	defer client.Close()
	target := strings.Replace(server.URL, "http://", "http://anna:secret@", 1) + "/branch"
	must.Get(client.Get(t.Context(), noon, target, source.Validators{}))(t)
	if len(seen) != 2 || !strings.HasPrefix(seen[0], "/branch Basic ") || seen[1] != "/elsewhere " {
		t.Errorf("asked for %q, want credentials with the first request alone", seen)
	}
	elsewhere := strings.Replace(target, server.URL[len("http://"):], "other.example", 1)
	golden.Sentence(t, "a password for another host", must.Err(client.Get(t.Context(), noon, elsewhere, source.Validators{})))
}

// TestBudget: two buckets in series fill in race time. A request beyond them is not sent, takes nothing out of either, and
// its fault names both limits. A paced upstream waits for the bucket per second.
func TestBudget(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		good(w, r)
	}))
	defer server.Close()
	c := config()
	c.PerSecond, c.PerHour = 2, 5
	client := source.NewClient(c)
	defer client.Close()
	try := func(at time.Time) error {
		_, err := client.Get(t.Context(), at, server.URL, source.Validators{})
		return err
	}
	for i := range 2 {
		if err := try(noon); err != nil {
			t.Fatalf("request %d: %v", i+1, err)
		}
	}
	var fault *source.Fault
	if err := try(noon); !errors.As(err, &fault) || fault.Kind != source.Throttled || fault.RetryAfter <= 0 {
		t.Errorf("third in the same second: got %v, want that it is throttled", err)
	}
	for i := range 3 {
		must.Succeed(t, fmt.Sprintf("request %d a second later", i+3), try(noon.Add(time.Duration(i+1)*time.Second)))
	}
	if err := try(noon.Add(10 * time.Second)); !errors.As(err, &fault) || fault.RetryAfter < 10*time.Minute {
		t.Errorf("sixth in the hour: got %v, again after %s; want that it is throttled for minutes", err, fault.RetryAfter)
	}
	golden.Sentence(t, "a budget that is spent", try(noon.Add(10*time.Second)), server.URL, "URL")
	for i := range 5 { // the refused requests have taken nothing out of the hour
		must.Succeed(t, fmt.Sprintf("request %d an hour later", i+1), try(noon.Add(time.Hour+time.Duration(i)*time.Second)))
	}
	got := asked.Load()
	must.Hold(t, got == 10, "%d requests were sent, want 10", got)
	c.PerSecond, c.PerHour, c.Paced = 20, 100, true
	paced := source.NewClient(c)
	defer paced.Close()
	for i := range 22 { // two of them more than a second allows
		must.Succeed(t, fmt.Sprintf("paced request %d", i+1), must.Err(paced.Get(t.Context(), noon, server.URL, source.Validators{})))
	}
}

// TestGivesUp: the end of the context ends a hanging request.
func TestGivesUp(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-gzip")
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		<-hang
	}))
	defer server.CloseClientConnections()
	client := source.NewClient(config())
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	must.Fail(t, "Get", must.Err(client.Get(ctx, noon, server.URL, source.Validators{})), context.Canceled)
}

// No test of this package asks a name server.
func init() {
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("the tests ask no name server")
	}}
}

// TestUnreachableInWords: the fault says in words why a host did not answer.
func TestUnreachableInWords(t *testing.T) {
	c := config()
	c.Hosts = append(c.Hosts, "nobody.invalid")
	client := source.NewClient(c)
	for target, want := range map[string]string{
		"https://nobody.invalid/a": "get https://nobody.invalid/a: nobody.invalid cannot be resolved",
		"http://127.0.0.1:1/a":     "get http://127.0.0.1:1/a: the host refuses the connection",
	} {
		_, err := client.Get(t.Context(), noon, target, source.Validators{})
		must.Hold(t, err != nil && err.Error() == want, "got %v, want %s", err, want)
	}
}

// TestPayload: a payload is recognised by its sum and named after it.
func TestPayload(t *testing.T) {
	golden.Sentence(t, "a line that is wrong", must.Err(source.ReadEquivalents("names.txt", "driver")))
	packed := must.Get(source.Encode("races"))(t)
	first := source.NewPayload(packed, source.RevisionOf(packed), source.Validators{}, source.Known{})
	if first.NotModified || len(first.Revision) != 12 || !strings.HasPrefix(source.Sum(packed), first.Revision) {
		t.Errorf("packed: revision %q", first.Revision)
	}
	again := source.NewPayload(packed, first.Revision, source.Validators{}, source.Known{SHA256: source.Sum(packed)})
	must.Hold(t, again.NotModified, "packed again: want that it is not modified")
}
