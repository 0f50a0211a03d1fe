package edge

import (
	"bytes"
	"crypto/subtle"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"gridcast/edge/keys"
	"gridcast/edge/negotiate"
	"gridcast/edge/resident"
)

// request is the gateway's view of a request. Its bytes are valid until the response has
// been written.
type request struct {
	method         method
	head           bool   // the server leaves the body out
	target         []byte // raw, as in the request line
	authorization  field
	apiKey         field
	origin         []byte
	accept         []byte
	acceptEncoding []byte
	ifNoneMatch    []byte
	forwardedFor   []byte      // believed only from a trusted proxy
	remote         net.Addr    // of the connection
	conn           *connection // nil: the request came another way
	memory         *memory     // of the connection; nil: it has none
	usage          *keys.Usage // of the key; nil: it is unknown
}

// memory is a connection's memory of its last known key.
//
// Cache, by the key and the number of the table: hashing a key and finding it among 100,000 takes 1 µs.
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
	get method = iota // or HEAD
	options
	otherMethod
)

// read fills r from ctx. It returns the refusal of a request that is not valid, see framing, and whether the request
// is the connection's last.
func (r *request) read(ctx *fasthttp.RequestCtx, behindProxy bool) (fault *resident.Response, last bool) {
	h := &ctx.Request.Header
	r.remote = ctx.RemoteAddr()
	switch m := h.Method(); {
	case string(m) == fasthttp.MethodGet || string(m) == fasthttp.MethodHead:
		r.method, r.head = get, string(m) == fasthttp.MethodHead
	case string(m) == fasthttp.MethodOptions:
		r.method = options
	default:
		r.method = otherMethod
	}
	// Not ctx.Path: it decodes, and folds "//" and "..".
	r.target = originForm(h.RequestURI())
	// One walk over all fields costs less than a look-up of each.
	for name, value := range h.All() {
		switch string(name) {
		case "Authorization":
			r.authorization.add(value)
		case "X-Api-Key":
			r.apiKey.add(value)
		case "Origin":
			r.origin = value
		case "Accept":
			r.accept = join(r.accept, value)
		case "Accept-Encoding":
			r.acceptEncoding = join(r.acceptEncoding, value)
		case "If-None-Match":
			r.ifNoneMatch = join(r.ifNoneMatch, value)
		case "X-Forwarded-For":
			if behindProxy {
				r.forwardedFor = join(r.forwardedFor, value)
			}
		}
	}
	head := h.RawHeaders()
	if c, ok := ctx.Conn().(*connection); ok {
		r.conn, r.memory = c, &c.memory
		head = c.head(h)
	}
	if version := h.Protocol(); string(version) != "HTTP/1.1" && string(version) != "HTTP/1.0" {
		return malformedRequest, true
	}
	return framing(head)
}

// framing looks in a head for forms that fasthttp accepts although another recipient might read them differently,
// and take the end of the request for the start of another one (RFC 9112, section 11.2): a line that ends without
// CR, one that continues the line before, a second Origin, and any Transfer-Encoding, and with it trailers, since no
// path wants a body. It returns the refusal of such a request, nil for another one. The connection must then be closed. Last says that the client closes
// it: fasthttp reads Connection as one word in lower case.
func framing(head []byte) (fault *resident.Response, last bool) {
	origins := 0
	for rest := head; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		if end < 1 || rest[end-1] != '\r' || rest[0] == ' ' || rest[0] == '\t' {
			return malformedRequest, true
		}
		line := rest[:end-1]
		rest = rest[end+1:]
		if len(line) == 0 {
			continue
		}
		switch line[0] | 0x20 {
		case 't', 'o', 'c': // the rest of the line is read for these names alone
		default:
			continue
		}
		name, value, _ := bytes.Cut(line, []byte{':'})
		switch {
		case negotiate.EqualFold(name, "transfer-encoding"):
			return codedRequest, true
		case negotiate.EqualFold(name, "origin"):
			if origins++; origins > 1 {
				return twoOrigins, true
			}
		case negotiate.EqualFold(name, "connection") && negotiate.Lists(value, "close"):
			last = true
		}
	}
	return nil, last
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

func (f *field) add(value []byte) {
	if f.count++; f.count == 1 {
		f.value = value
	}
}

// join adds a field to a header field that is a list; repeated fields make one longer list.
func join(list, value []byte) []byte {
	if list == nil {
		return value
	}
	return slices.Concat(list, []byte(", "), value)
}

var bearer = []byte("bearer")

// credential returns the key of a request. A Bearer with a key decides, also when it is
// wrong; an empty one and another scheme are ignored. Repeated credential fields are never a valid key, because an
// intermediary may have read another one of them. Present says that the request has a key.
func (r *request) credential() (key []byte, present bool) {
	if r.authorization.count > 1 || r.apiKey.count > 1 {
		return nil, true
	}
	if r.authorization.count == 1 {
		scheme, token, _ := bytes.Cut(r.authorization.value, []byte{' '})
		if bytes.EqualFold(scheme, bearer) {
			if token = bytes.Trim(token, " \t"); len(token) > 0 {
				return token, true
			}
		}
	}
	return r.apiKey.value, len(r.apiKey.value) > 0
}

// authenticate returns the entry of the key, which may be refused; nil: the key is unknown. If the request's
// connection remembers the key, authenticate does not hash it again.
func (r *request) authenticate(table *keys.Table, key []byte) *keys.Key {
	m := r.memory
	if m != nil && m.table == table.Number() && subtle.ConstantTimeCompare(m.key[:], key) == 1 {
		return m.entry
	}
	hash, ok := keys.Sum(key)
	if !ok {
		return nil
	}
	entry := table.Find(&hash)
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
		hop, ok := address(string(bytes.Trim(last, " \t")))
		if !ok {
			break // the last known proxy is the one before it
		}
		peer = hop.Unmap()
	}
	return peer
}

// address parses an address of X-Forwarded-For. Some proxies add the port, and brackets around IPv6.
func address(text string) (netip.Addr, bool) {
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return withPort.Addr(), true
	}
	if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		text = text[1 : len(text)-1]
	}
	addr, err := netip.ParseAddr(text)
	return addr, err == nil
}

func trusted(addr netip.Addr, proxies []netip.Prefix) bool {
	return slices.ContainsFunc(proxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}
