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

// Measure measures a minute by ask, such as Ask. If the first try fails, it tries once more. The minute is unknown, and the
// error ctx's cause, if ctx ends first.
func Measure(ctx context.Context, ask func(context.Context, string) (State, uptime.Fault), address string) (uptime.Minute, State, error) {
	var fault uptime.Fault
	for try := range 2 {
		if try > 0 && !retry.Sleep(ctx, again) {
			break
		}
		began := time.Now()
		var state State
		if state, fault = ask(ctx, address); fault == "" {
			return uptime.Answered(time.Since(began), state.Overdue || state.Stale), state, nil
		}
	}
	if ctx.Err() != nil {
		return 0, State{}, context.Cause(ctx)
	}
	return uptime.Failed(fault), State{}, nil
}

// Ask asks once for /status at an address such as https://api.example.com or 10.0.0.2:9100. An empty fault means that the
// service answers and is ready.
func Ask(ctx context.Context, address string) (State, uptime.Fault) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	var shaking atomic.Bool // a handshake has begun, and did not succeed
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeStart: func() { shaking.Store(true) },
		TLSHandshakeDone:  func(_ tls.ConnectionState, err error) { shaking.Store(err != nil) },
	})
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	status, body, err := get(ctx, strings.TrimSuffix(address, "/")+"/status")
	var network net.Error
	_, unnamed := errors.AsType[*net.DNSError](err)
	answer := struct{ Data State }{}
	switch {
	case shaking.Load():
		return State{}, uptime.TLS
	case unnamed:
		return State{}, uptime.DNS
	case errors.As(err, &network) && network.Timeout():
		return State{}, uptime.Timeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return State{}, uptime.Refused
	case err != nil:
		return State{}, uptime.Connection
	case status >= 500:
		return State{}, uptime.ServerError
	case status >= 400:
		return State{}, uptime.ClientError
	case status >= 300:
		return State{}, uptime.Redirect
	case status != http.StatusOK, json.Unmarshal(body, &answer) != nil, !strings.Contains(string(body), `"ready":`):
		return State{}, uptime.NotGridcast
	case !answer.Data.Ready:
		return answer.Data, uptime.NotReady
	}
	return answer.Data, ""
}

// Name returns an address without its user and password, which stay out of stores and logs.
func Name(address string) string { return address[strings.LastIndexByte(address, '@')+1:] }

// get returns the status and the body of an answer.
func get(ctx context.Context, address string) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	body, err := io.ReadAll(io.LimitReader(response.Body, 4<<20))
	return response.StatusCode, body, err
}
