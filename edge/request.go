package edge

import (
	"bytes"
	"crypto/subtle"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"gridcast/edge/keys"
	"gridcast/edge/negotiate"
)

// request is the gateway's view of a request. Its bytes are valid until the response has
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
	conn           net.Conn
	usage          *keys.Usage // of the accepted key
	memory         *memory     // of the connection; nil: it has none
}

// memory is a connection's memory of its last valid key.
type memory struct {
	table uint64 // number of the table that held it
	entry *keys.Key
	key   [keys.Length]byte
}

// field is a header field that must not be repeated.
type field struct {
	value []byte
	count int
}

// method is the gateway's distinction of methods.
type method byte

const (
	get method = iota // or HEAD: the server leaves the body out
	options
	otherMethod
)

// read fills r from ctx. Each field costs a walk through the header, so read leaves out fields that
// nothing uses later.
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
	r.peer, r.conn = peer(ctx), ctx.Conn()
}

// framing looks for forms that fasthttp accepts although another recipient might read them differently,
// and take the end of the request for the start of another one (RFC 9112, section 11.2): an
// HTTP version other than 1.0 and 1.1, a line that ends without CR, one that continues the line
// before, a second Origin, and any Transfer-Encoding, and with it trailers, since no path wants a body. Such a
// request is not valid, and its connection must be closed. Last says that the client closes it:
// fasthttp reads Connection as one word in lower case.
func framing(ctx *fasthttp.RequestCtx) (valid, last bool) {
	h := &ctx.Request.Header
	head := h.RawHeaders()
	if c, ok := ctx.Conn().(*recorded); ok {
		head = c.head(h)
	}
	if version := h.Protocol(); string(version) != "HTTP/1.1" && string(version) != "HTTP/1.0" {
		return false, true
	}
	origins := 0
	for rest := head; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		if end < 1 || rest[end-1] != '\r' || rest[0] == ' ' || rest[0] == '\t' {
			return false, true
		}
		line := rest[:end-1]
		rest = rest[end+1:]
		name, value, _ := bytes.Cut(line, []byte{':'})
		switch {
		case negotiate.EqualFold(name, "transfer-encoding"):
			return false, true
		case negotiate.EqualFold(name, "origin"):
			if origins++; origins > 1 {
				return false, true
			}
		case negotiate.EqualFold(name, "connection") && negotiate.Lists(value, "close"):
			last = true
		}
	}
	return true, last
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

// list returns a header field that is a list; repeated fields make one longer list.
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

var bearer = []byte("bearer")

// credential returns the key of a request. A Bearer decides, also when it is
// wrong; another scheme is ignored. Repeated credential fields are never a valid key, because an
// intermediary may have read another one of them. Present says that the request has a key.
func (r *request) credential() (key []byte, present bool) {
	if r.authorization.count > 1 || r.apiKey.count > 1 {
		return nil, true
	}
	if r.authorization.count == 1 {
		scheme, token, _ := bytes.Cut(r.authorization.value, []byte{' '})
		if bytes.EqualFold(scheme, bearer) {
			token = bytes.Trim(token, " \t")
			return token, len(token) > 0
		}
	}
	return r.apiKey.value, len(r.apiKey.value) > 0
}

// authenticate returns the entry of the key, nil unless it is valid at now. If the request's
// connection remembers a valid key, authenticate does not hash that key again.
func (r *request) authenticate(table *keys.Table, key []byte, now time.Time) *keys.Key {
	m := r.memory
	if m != nil && m.table == table.Number() && subtle.ConstantTimeCompare(m.key[:], key) == 1 {
		if !m.entry.Accepts(now) {
			return nil
		}
		return m.entry
	}
	hash, ok := keys.Sum(key)
	if !ok {
		return nil
	}
	entry := table.Lookup(hash, now)
	if entry != nil && m != nil {
		m.table, m.entry, m.key = table.Number(), entry, [keys.Length]byte(key)
	}
	return entry
}

// client returns the client's address: that of the connection, or, if that is a
// trusted proxy's, the last address of X-Forwarded-For that is not trusted. The client
// itself wrote everything before that address.
func client(peer netip.Addr, forwardedFor []byte, proxies []netip.Prefix) netip.Addr {
	for trusted(peer, proxies) && len(forwardedFor) > 0 {
		last := forwardedFor
		if comma := bytes.LastIndexByte(forwardedFor, ','); comma >= 0 {
			last, forwardedFor = forwardedFor[comma+1:], forwardedFor[:comma]
		} else {
			forwardedFor = nil
		}
		hop, err := netip.ParseAddr(string(bytes.Trim(last, " \t")))
		if err != nil {
			break // the last known proxy is the one before it
		}
		peer = hop.Unmap()
	}
	return peer
}

func trusted(addr netip.Addr, proxies []netip.Prefix) bool {
	return slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}
