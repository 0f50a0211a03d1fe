package edge

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/net/netutil"

	"gridcast/edge/resident"
)

// server is something that Run runs and stops.
type server struct {
	serve    func() error // returns nil once it is shut down
	shutdown func(context.Context) error
}

// listen opens the listeners, so that Run fails at once if an address is taken.
func (e *Edge) listen() ([]server, error) {
	listener := e.deps.Listener
	if listener == nil {
		opened, err := net.Listen("tcp", e.cfg.Listen)
		if err != nil {
			return nil, fmt.Errorf("listen for the API: %w", err)
		}
		listener = opened
	}
	api, err := e.apiServer(listener)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	e.log.Info("edge listens", "address", listener.Addr().String(), "tls", e.cfg.TLSCert != "")
	if e.cfg.AdminListen == "" {
		return []server{api}, nil
	}
	admin, err := e.adminServer()
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return []server{api, admin}, nil
}

// apiServer serves the API on the listener.
func (e *Edge) apiServer(listener net.Listener) (server, error) {
	s := e.httpServer()
	onLane := e.cfg.ExpressLane && e.cfg.TLSCert == ""
	listener, err := e.accepting(patient{listener, e.log}, s, onLane)
	if err != nil {
		return server{}, err
	}
	return server{
		serve: func() error {
			if err := s.Serve(listener); err != nil && !e.stopping.Load() {
				return fmt.Errorf("serve the API: %w", err)
			}
			return nil
		},
		shutdown: func(ctx context.Context) error {
			e.gateway.closing.Store(true)
			var err error
			if onLane {
				err = e.lane.Drain(ctx)
			}
			if err == nil {
				err = s.ShutdownWithContext(ctx)
			}
			// Serve may not have begun when Shutdown came: this ends it as soon as it does.
			_ = listener.Close()
			if err != nil && !errors.Is(err, net.ErrClosed) {
				return fmt.Errorf("drain the API: %d connections still open: %w", max(s.GetOpenConnectionsCount(), int32(e.lane.Open())), err)
			}
			return nil
		},
	}, nil
}

// accepting returns what the server accepts from: the listener with TLS, with the express lane
// before the server, or as it is.
func (e *Edge) accepting(listener net.Listener, s *fasthttp.Server, onLane bool) (net.Listener, error) {
	if onLane {
		s.ConnState = e.lane.ConnState
		return e.lane.Listen(listener)
	}
	// Beyond Concurrency fasthttp answers in plain text, so connections wait before it.
	listener = netutil.LimitListener(listener, e.cfg.MaxConnections)
	if e.cfg.TLSCert == "" {
		return listener, nil
	}
	certificate, err := newCertificate(e.cfg.TLSCert, e.cfg.TLSKey, e.log)
	if err != nil {
		return nil, err
	}
	return tls.NewListener(listener, &tls.Config{
		GetCertificate: certificate.get,
		NextProtos:     []string{"http/1.1"},
		MinVersion:     tls.VersionTLS12,
	}), nil
}

// httpServer is the configuration of fasthttp.
func (e *Edge) httpServer() *fasthttp.Server {
	return &fasthttp.Server{
		Name:         "gridcast",
		Handler:      e.gateway.handle,
		ErrorHandler: e.gateway.handleHTTPError,
		Concurrency:  e.cfg.MaxConnections + 1,

		ReadTimeout:  e.cfg.ReadTimeout,
		WriteTimeout: e.cfg.WriteTimeout,
		IdleTimeout:  e.cfg.IdleTimeout,

		ReadBufferSize:     e.cfg.MaxHeaderBytes,
		WriteBufferSize:    32 << 10, // a response in one write: the largest bodies are compressed
		MaxRequestBodySize: e.cfg.MaxBodyBytes,

		DisablePreParseMultipartForm: true,
		NoDefaultContentType:         true,
		SecureErrorLogMessage:        true, // requests carry keys
		Logger:                       debugLog{e.log},
	}
}

// debugLog takes what fasthttp says about connections that end badly, which clients do.
type debugLog struct{ log *slog.Logger }

func (d debugLog) Printf(format string, args ...any) {
	d.log.Debug("http server", "message", fmt.Sprintf(format, args...))
}

// handle is the handler of fasthttp.
func (g *gateway) handle(ctx *fasthttp.RequestCtx) {
	var (
		r request
		a answer
	)
	defer func() {
		if p := recover(); p != nil {
			g.reportBug(p)
			g.failed(ctx, &r, panicked, unrouted)
		}
	}()
	if g.closing.Load() {
		ctx.SetConnectionClose()
	}
	r.read(ctx, len(g.proxies) > 0)
	a = g.serve(&r)
	a.write(&ctx.Response)
	g.metrics.count(&a)
}

// handleHTTPError answers what fasthttp refuses to hand to handle.
func (g *gateway) handleHTTPError(ctx *fasthttp.RequestCtx, err error) {
	var (
		small *fasthttp.ErrSmallBuffer
		timed interface{ Timeout() bool }
	)
	response := malformedRequest
	switch {
	case errors.As(err, &small):
		response = largeHeader
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		response = largeBody
	case errors.As(err, &timed) && timed.Timeout():
		response = slowRequest
	}
	r := request{}
	if tcp, ok := ctx.RemoteAddr().(*net.TCPAddr); ok {
		r.peer = tcp.AddrPort().Addr().Unmap()
	}
	g.failed(ctx, &r, response, httpOnly)
}

// failed replaces whatever the response was by a refusal.
func (g *gateway) failed(ctx *fasthttp.RequestCtx, r *request, response *resident.Response, endpoint int) {
	ctx.Response.Reset()
	a := g.refuse(r, response, endpoint)
	a.write(&ctx.Response)
}

// reportBug notes that a request ran into a panic.
func (g *gateway) reportBug(p any) {
	g.metrics.panics.Inc()
	g.log.Error("request ran into a bug", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
}

// refuse makes and counts an answer that does not depend on the request, which is not charged
// to anybody. It reads the wall clock: the injected one may be what failed.
func (g *gateway) refuse(r *request, response *resident.Response, endpoint int) answer {
	a := answer{response: response, rate: g.anonymous.Peek(g.client(r), time.Now()), endpoint: endpoint, tier: noTier}
	g.metrics.count(&a)
	return a
}
