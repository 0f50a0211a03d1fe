// Package probe asks a gridcast service from outside whether it answers.
package probe

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"gridcast/snapshots/retry"
	"gridcast/snapshots/uptime"
)

var (
	patience = 5 * time.Second  // for a whole answer
	again    = 10 * time.Second // before the second try of a minute
)

// maxAnswer limits an answer, in bytes.
const maxAnswer = 4 << 20

// State is the part of /status that is measured.
type State struct {
	Ready   bool  `json:"ready"`
	Version int64 `json:"version"`
	Age     int64 `json:"age_seconds"`
	Overdue bool  `json:"overdue"`
	Stale   bool  `json:"stale"`
}

// client opens a connection for each request, so that name, handshake and certificate are measured too.
var client = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Measure measures a minute: it asks for /status at an address such as https://api.example.com or 10.0.0.2:9100. If the
// first try fails, it tries once more. The minute is unknown, with ctx's cause as error, if ctx ends first.
func Measure(ctx context.Context, address string) (uptime.Minute, State, error) {
	var fault uptime.Fault
	for try := range 2 {
		if try > 0 && !retry.Sleep(ctx, again) {
			break
		}
		began := time.Now()
		var state State
		if state, fault = Ask(ctx, address); fault == "" {
			return uptime.Answered(time.Since(began), state.Overdue || state.Stale), state, nil
		}
	}
	if ctx.Err() != nil {
		return 0, State{}, context.Cause(ctx)
	}
	return uptime.Failed(fault), State{}, nil
}

// Ask asks once. An empty fault means that the service answers and is ready.
func Ask(ctx context.Context, address string) (State, uptime.Fault) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var cut atomic.Bool // the handshake did not succeed
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeStart: func() { cut.Store(true) },
		TLSHandshakeDone:  func(_ tls.ConnectionState, err error) { cut.Store(err != nil) },
	})
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/")+"/status", nil)
	if err != nil {
		return State{}, uptime.DNS
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		if cut.Load() {
			return State{}, uptime.TLS
		}
		return State{}, faultOf(err)
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return State{}, faultOf(err)
	}
	var answer struct{ Data *State }
	switch status := response.StatusCode; {
	case status >= 500:
		return State{}, uptime.ServerError
	case status >= 400:
		return State{}, uptime.ClientError
	case status >= 300:
		return State{}, uptime.Redirect
	case status != http.StatusOK, json.Unmarshal(body, &answer) != nil, answer.Data == nil:
		return State{}, uptime.NotGridcast
	case !answer.Data.Ready:
		return *answer.Data, uptime.NotReady
	}
	return *answer.Data, ""
}

// faultOf names a fault of the connection.
func faultOf(err error) uptime.Fault {
	var network net.Error
	if _, dns := errors.AsType[*net.DNSError](err); dns {
		return uptime.DNS
	}
	switch {
	case errors.As(err, &network) && network.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return uptime.Timeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return uptime.Refused
	}
	return uptime.Connection
}
