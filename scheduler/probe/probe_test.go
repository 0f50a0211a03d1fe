package probe_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/scheduler/probe"
	"gridcast/snapshots/blob/porttest"
	"gridcast/snapshots/uptime"
)

const good = `{"ok":true,"data":{"ready":true,"version":7,"age_seconds":90,"overdue":false}}`

// answers returns a server that always gives one answer.
func answers(t *testing.T, status int, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/status" || r.Header.Get("Accept") != "application/json" {
			t.Errorf("asked for %s, Accept %q", r.URL.Path, r.Header.Get("Accept"))
		}
		w.Header().Set("Location", "http://127.0.0.1:1/")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// listens returns the address of a listener that hands each connection to f.
func listens(t *testing.T, f func(net.Conn)) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go f(c)
		}
	}()
	return l.Addr().String()
}

// TestEachFaultHasItsName asks servers that fail in every way, over real connections.
func TestEachFaultHasItsName(t *testing.T) {
	defer probe.Hasten(time.Minute, time.Millisecond)()
	secure := httptest.NewTLSServer(http.NotFoundHandler()) // by no authority that this machine knows
	t.Cleanup(secure.Close)
	cut := func(c net.Conn) { _, _ = c.Read(make([]byte, 10)); _ = c.Close() }
	silent := func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	half := func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4096))
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{")
		_ = c.Close()
	}
	stuck := func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4096))
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{")
	}
	for name, test := range map[string]struct {
		address string
		want    uptime.Fault
	}{
		"good":                     {answers(t, 200, good), ""},
		"a slash at the end":       {answers(t, 200, good) + "/", ""},
		"500":                      {answers(t, 500, good), uptime.ServerError},
		"503":                      {answers(t, 503, `{"ok":false}`), uptime.ServerError},
		"404":                      {answers(t, 404, good), uptime.ClientError},
		"401":                      {answers(t, 401, good), uptime.ClientError},
		"301":                      {answers(t, 301, good), uptime.Redirect},
		"308":                      {answers(t, 308, ""), uptime.Redirect},
		"202":                      {answers(t, 202, good), uptime.NotGridcast},
		"a page":                   {answers(t, 200, "<html>"), uptime.NotGridcast},
		"other JSON":               {answers(t, 200, `{"status":"ok"}`), uptime.NotGridcast},
		"null":                     {answers(t, 200, "null"), uptime.NotGridcast},
		"not ready":                {answers(t, 200, `{"ok":true,"data":{"ready":false,"not_ready":"no keys"}}`), uptime.NotReady},
		"nothing listens":          {porttest.Address(t), uptime.Refused},
		"no such name":             {"https://gridcast.invalid", uptime.DNS},
		"a foreign authority":      {secure.URL, uptime.TLS},
		"TLS that is cut":          {"https://" + listens(t, cut), uptime.TLS},
		"TLS at a plain port":      {"https" + answers(t, 200, good)[4:], uptime.TLS},
		"a cut connection":         {listens(t, cut), uptime.Connection},
		"half an answer":           {listens(t, half), uptime.Connection},
		"no answer":                {listens(t, silent), uptime.Timeout},
		"an answer without an end": {listens(t, stuck), uptime.Timeout},
	} {
		restore := func() {}
		if test.want == uptime.Timeout {
			restore = probe.Hasten(300*time.Millisecond, time.Millisecond)
		}
		if state, got := probe.Ask(t.Context(), test.address); got != test.want || got == "" && (state.Version != 7 || state.Age != 90) {
			t.Errorf("%s: got %q with %+v, want %q", name, got, state, test.want)
		}
		restore()
	}
	ctx, stop := context.WithCancel(t.Context())
	_, got := probe.Ask(ctx, "https://"+listens(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 10)); stop(); silent(c) }))
	must.Equal(t, "TLS that stays silent", uptime.TLS, got)
}

// No test of this package asks a name server.
func init() {
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("the tests ask no name server")
	}}
}

// TestTwoTriesOfAMinute: a minute is down if both tries fail, and its fault is that of the second.
func TestTwoTriesOfAMinute(t *testing.T) {
	defer probe.Hasten(time.Minute, time.Millisecond)()
	var asked atomic.Int64
	statuses := []int{503, 200, 502, 404}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(statuses[asked.Add(1)-1])
		_, _ = io.WriteString(w, `{"data":{"ready":true,"version":7,"overdue":true}}`)
	}))
	defer s.Close()
	m, state, err := probe.Measure(t.Context(), probe.Ask, s.URL)
	if behind := uptime.Answered(0, true); err != nil || m < behind || m >= uptime.Failed(uptime.DNS) || state.Version != 7 {
		t.Errorf("the second try answers: got %d, %+v, %v; want a late minute", m, state, err)
	}
	m, _, err = probe.Measure(t.Context(), probe.Ask, s.URL)
	must.Do(t, err)
	must.Equal(t, "two failures", uptime.Failed(uptime.ClientError), m)
	must.Equal(t, "tries", int64(4), asked.Load())
}

// TestStopMeasuresNothing: a minute during which the scheduler stops is unknown, in either try.
func TestStopMeasuresNothing(t *testing.T) {
	stop := errors.New("stop")
	for _, tries := range []int64{1, 2} {
		restore := probe.Hasten(time.Minute, time.Millisecond)
		ctx, cancel := context.WithCancelCause(t.Context())
		var asked atomic.Int64
		address := listens(t, func(c net.Conn) {
			if asked.Add(1) == tries {
				cancel(stop)
				_, _ = io.Copy(io.Discard, c)
			}
			_ = c.Close()
		})
		m, _, err := probe.Measure(ctx, probe.Ask, address)
		must.Hold(t, m == 0 && errors.Is(err, stop), "stopped in try %d: got minute %d, %v; want an unknown one", tries, m, err)
		restore()
	}
}
