package edge

import (
	"bytes"
	"net"
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"

	"gridcast/edge/keys"
	"gridcast/edge/limit"
	"gridcast/edge/resident"
)

// request is what the gateway reads of a request. Its bytes are valid until the response has
// been written.
type request struct {
	method         method
	target         []byte // raw, as in the request line
	authorization  field
	apiKey         field
	origin         []byte
	accept         []byte // read outside the base path only
	acceptEncoding []byte
	ifNoneMatch    []byte
	forwardedFor   []byte     // believed only from a trusted proxy
	peer           netip.Addr // of the connection; zero if it has none

	page   *resident.Page // found already; nil: not looked for
	memory *memory        // of the connection; nil: it has none

	decided *limit.Decision // counted already; nil: not yet
	// take counts the request, or reports false if that would have to wait; nil: the counter's
	// own Take, which may wait.
	take func(c limit.Counter, now time.Time, perMinute int) (limit.Decision, bool)
}

// field is a header field that must not be repeated.
type field struct {
	value []byte
	count int
}

// method is what the gateway tells apart.
type method byte

const (
	get method = iota // or HEAD: the server leaves the body out
	options
	otherMethod
)

// read fills r from ctx. Each field costs a walk through the header, so that what nobody will
// ask for is left out.
func (r *request) read(ctx *fasthttp.RequestCtx, behindProxy bool) {
	h := &ctx.Request.Header
	switch m := h.Method(); {
	case string(m) == fasthttp.MethodGet || string(m) == fasthttp.MethodHead:
		r.method = get
	case string(m) == fasthttp.MethodOptions:
		r.method = options
	default:
		r.method = otherMethod
	}
	// Not ctx.Path: it decodes, and folds "//" and "..".
	r.target = originForm(h.RequestURI())
	r.authorization = single(h, fasthttp.HeaderAuthorization)
	r.apiKey = single(h, "X-Api-Key")
	r.origin = h.Peek(fasthttp.HeaderOrigin)
	if !underBase(r.target) {
		r.accept = list(h, fasthttp.HeaderAccept)
	}
	r.acceptEncoding = list(h, fasthttp.HeaderAcceptEncoding)
	r.ifNoneMatch = list(h, fasthttp.HeaderIfNoneMatch)
	if behindProxy {
		r.forwardedFor = list(h, fasthttp.HeaderXForwardedFor)
	}
	if tcp, ok := ctx.RemoteAddr().(*net.TCPAddr); ok {
		r.peer = tcp.AddrPort().Addr().Unmap()
	}
}

// rate counts the request for its key, once. It returns false if r.take could not decide.
func (r *request) rate(entry *keys.Entry, now time.Time) (limit.Decision, bool) {
	switch {
	case r.decided != nil:
		return *r.decided, true
	case r.take != nil:
		return r.take(entry.Counter, now, entry.PerMinute)
	default:
		return entry.Counter.Take(now, entry.PerMinute), true
	}
}

// originForm turns "http://host/path", which every server must understand, into "/path".
func originForm(target []byte) []byte {
	if len(target) == 0 || target[0] == '/' {
		return target
	}
	_, rest, found := bytes.Cut(target, []byte("://"))
	if !found {
		return target
	}
	if slash := bytes.IndexByte(rest, '/'); slash >= 0 {
		return rest[slash:]
	}
	return []byte("/")
}

func single(h *fasthttp.RequestHeader, name string) field {
	values := h.PeekAll(name)
	if len(values) == 0 {
		return field{}
	}
	return field{value: values[0], count: len(values)}
}

// list returns a header field that is a list, whose repetitions mean one longer list.
func list(h *fasthttp.RequestHeader, name string) []byte {
	switch values := h.PeekAll(name); len(values) {
	case 0:
		return nil
	case 1:
		return values[0]
	default:
		return bytes.Join(values, []byte(", "))
	}
}
