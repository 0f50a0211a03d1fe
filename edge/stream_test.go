package edge_test

import (
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
)

// generator writes streams of requests, most of them right or nearly so.
type generator struct {
	out []byte
	odd int // one choice in odd is an unusual one
}

// stream returns the next stream, which is valid until the one after it.
func (g *generator) stream(r *rand.Rand, words map[string]string) stream {
	g.out, g.odd = g.out[:0], []int{10, 100, 1000, 1000}[r.IntN(4)]
	for range 1 + r.IntN(4) {
		g.request(r, words)
	}
	if r.IntN(5) == 0 {
		for range 1 + r.IntN(3) {
			g.damage(r)
		}
	}
	s := stream{data: g.out, end: io.EOF}
	if r.IntN(4) == 0 {
		s.end = os.ErrDeadlineExceeded
	}
	if r.IntN(3) == 0 {
		for range 1 + r.IntN(5) {
			s.cuts = append(s.cuts, r.IntN(len(g.out)+1))
		}
		slices.Sort(s.cuts)
	}
	return s
}

func pick(r *rand.Rand, from ...string) string { return from[r.IntN(len(from))] }

// mostly returns the usual value, or one of the others.
func (g *generator) mostly(r *rand.Rand, usual string, others ...string) string {
	if r.IntN(g.odd) > 0 {
		return usual
	}
	return pick(r, others...)
}

func (g *generator) request(r *rand.Rand, words map[string]string) {
	method := g.mostly(r, "GET", "HEAD", "POST", "OPTIONS", "get", "GET\t", " GET", "\r\nGET", "PUT", "G", "CONNECT", "GE(T")
	target := g.mostly(r, "/api/v1"+pick(r,
		"/standings", "/standings/", "/standings?type=constructors&year=2023", "/standings?year=1950", "/calendar", "/calendar?year=2024",
		"/drivers", "/next-race", "/next-race/", "/accuracy", "/predictions?session_key=2023005&year=2023", "/predictions",
	), "/", "*", "/healthz", "/docs", "/api/v1", "/api/v1/calendar?year=1", "/api/v1/calendar?_=1", "/api/v1/nothing", "http://x/api/v1/drivers",
		"//api/v1/drivers", "/api/v1/drivers#a", "/api/v1/drivers?", "/api/v1/driver%73", "/api/v1/drivers ", "/api/v1/\x01", "/api/v1/drivers\x80", "", "x:y")
	version := g.mostly(r, "HTTP/1.1", "HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "http/1.1", "HTTP/1.1 ", "HTTP/11", "")
	g.out = append(g.out, method+" "+target+" "+version+g.newline(r)...)
	g.field(r, "Host", g.mostly(r, pick(r, "api.example.org", "localhost:8080", "127.0.0.1"),
		"", "a b", "x:y", "x:1:2", "[::1]:80", "u@x", "x%41", "x%zz", "x:", ":80", "x,y", "\xff", "x/y", "x[1]", "[", "a_b", "x\t"))
	if r.IntN(2*g.odd) == 0 {
		g.field(r, "Host", "again")
	}
	for range r.IntN(5) {
		g.optional(r, words)
	}
	length := 0
	if r.IntN(g.odd) == 0 {
		length = r.IntN(80)
		g.field(r, "Content-Length", g.mostly(r, []string{"0", "3", "70"}[length%3], "+1", "-1", "1x", "", "99999999999999999999"))
	} else if r.IntN(2*g.odd) == 0 {
		g.field(r, "Transfer-Encoding", g.mostly(r, "chunked", "identity", "gzip", "chunked, chunked"))
		g.out = append(g.out, "\r\n"+pick(r, "0\r\n\r\n", "3\r\nabc\r\n0\r\n\r\n", "3\r\nabc", "zz\r\n", "1\r\na\r\n0\r\nX: y\r\n\r\n")...)
		return
	}
	g.out = append(g.out, g.newline(r)...)
	if length > 0 {
		g.out = append(g.out, strings.Repeat("a", []int{0, 3, 70}[length%3])...)
	}
}

// optional writes an optional field of a request.
func (g *generator) optional(r *rand.Rand, words map[string]string) {
	key := g.mostly(r, words["pro"], words["trial"], words["revoked"], words["expired"], words["widget"], "wrong", "")
	kind := r.IntN(14)
	if r.IntN(g.odd) == 0 {
		kind = 14 + r.IntN(4)
	}
	switch kind {
	case 0, 1, 2:
		g.field(r, "X-API-Key", key)
	case 3, 4, 5:
		g.field(r, "Authorization", g.mostly(r, "Bearer ", "bearer  ", "Basic ", "Bearer\t", "Bearer")+key)
	case 6, 7:
		g.field(r, "Accept-Encoding", pick(r, "gzip", "gzip, deflate, br, zstd", "br;q=0.1, gzip;q=0.5", "identity", "*;q=0", "", "GZIP", "zstd , br"))
	case 8, 9:
		g.field(r, "If-None-Match", pick(r, words["etag"], "*", `"x", W/`+words["etag"], `"`, "", strings.TrimSuffix(words["etag"], `"`)+`-br"`))
	case 10:
		g.field(r, "Origin", pick(r, "https://example.org", "https://evil.example", "null", ""))
	case 11:
		g.field(r, "User-Agent", strings.Repeat("x", []int{1, 30, 300}[r.IntN(3)]))
	case 12:
		g.field(r, "Connection", pick(r, "keep-alive", "Keep-Alive"))
	case 13:
		g.field(r, "X-Forwarded-For", pick(r, "192.0.2.1", "nonsense"))
	case 14:
		g.field(r, "Connection", pick(r, "close", "Close", "keep-alive, close", "upgrade", ""))
	case 15:
		g.field(r, pick(r, "Expect", "Trailer", "Upgrade", "TE", "Content-Type", "Cookie", "Range", "Proxy-Connection", "If-Modified-Since"),
			pick(r, "100-continue", "X", "trailers", "a=b; c=d", "", "multipart/form-data; boundary=a"))
	case 16:
		g.field(r, pick(r, "A B", "Ä", "a(b", "", "X_API_Key", "X-API-Key\x00", "\tX", " X", "Content-Length "), key)
	default:
		g.field(r, "User-Agent", strings.Repeat("x", []int{800, 900, 1000, 1200}[r.IntN(4)]))
	}
}

// field writes a header line, sometimes an odd one.
func (g *generator) field(r *rand.Rand, name, value string) {
	if r.IntN(3) == 0 {
		name = pick(r, strings.ToLower(name), strings.ToUpper(name))
	}
	colon := g.mostly(r, ": ", ":", ":\t ", " : ", "", "::", ":\r\n ", ":\n ")
	end := g.mostly(r, "", " ", "\t", "\x00", "\r", "\x7f", "\xe9", "\r\n more")
	g.out = append(g.out, name+colon+value+end+g.newline(r)...)
}

func (g *generator) newline(r *rand.Rand) string {
	if r.IntN(6*g.odd) == 0 {
		return pick(r, "\n", "\r", "\r\r\n", "", "\r\n\r\n", " \r\n", "\n\r\n")
	}
	return "\r\n"
}

// damage changes some bytes anywhere.
func (g *generator) damage(r *rand.Rand) {
	if len(g.out) < 2 {
		return
	}
	i := r.IntN(len(g.out))
	j := min(len(g.out), i+1+r.IntN(12))
	switch r.IntN(5) {
	case 0:
		g.out[i] ^= 1 << r.IntN(8)
	case 1:
		const odd = "\r\n :\t\x00/?&%,\x7f\xffaZ"
		g.out[i] = odd[r.IntN(len(odd))]
	case 2:
		g.out = slices.Delete(g.out, i, j)
	case 3:
		g.out = slices.Insert(g.out, i, slices.Clone(g.out[i:j])...)
	default:
		g.out = g.out[:max(1, i)]
	}
}
