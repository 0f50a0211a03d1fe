package express

import (
	"bytes"
	"testing"
)

// TestParse has a row for each kind of request that the lane leaves to the server. It is in the package,
// because from outside nobody can tell the lane's answer from the server's.
func TestParse(t *testing.T) {
	const good = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
	for _, tt := range []struct {
		decision, head string
		recognised     bool
	}{
		{"the plain form", good, true},
		{"names in any case, values with space around them", "GET /a HTTP/1.1\r\nhOST:\tx:80 \r\nX-API-KEY:k\r\n\r\n", true},
		{"keep-alive", "GET /a HTTP/1.1\r\nHost: x\r\nConnection: Keep-Alive\r\n\r\n", true},
		{"fields that do not matter, repeated", "GET /a HTTP/1.1\r\nHost: x\r\nCookie: a\r\nCookie: b\r\n\r\n", true},
		{"not whole", good[:len(good)-1], false},
		{"another method", "HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n", false},
		{"an older version", "GET /a HTTP/1.0\r\nHost: x\r\n\r\n", false},
		{"two spaces", "GET /a  HTTP/1.1\r\nHost: x\r\n\r\n", false},
		{"lines that end without CR", "GET /a HTTP/1.1\nHost: x\n\n", false},
		{"no host", "GET /a HTTP/1.1\r\nX: y\r\n\r\n", false},
		{"an empty host", "GET /a HTTP/1.1\r\nHost:\r\n\r\n", false},
		{"two hosts", "GET /a HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", false},
		{"a host with a user", "GET /a HTTP/1.1\r\nHost: u@x\r\n\r\n", false},
		{"a host with two ports", "GET /a HTTP/1.1\r\nHost: x:1:2\r\n\r\n", false},
		{"an IPv6 host", "GET /a HTTP/1.1\r\nHost: [::1]\r\n\r\n", false},
		{"a body", "GET /a HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", false},
		{"a chunked body", "GET /a HTTP/1.1\r\nHost: x\r\ntransfer-encoding: chunked\r\n\r\n", false},
		{"trailers", "GET /a HTTP/1.1\r\nHost: x\r\nTrailer: y\r\n\r\n", false},
		{"an expectation", "GET /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n", false},
		{"the last request", "GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", true},
		{"another option of the connection", "GET /a HTTP/1.1\r\nHost: x\r\nConnection: close, TE\r\n\r\n", false},
		{"a repeated key", "GET /a HTTP/1.1\r\nHost: x\r\nX-API-Key: k\r\nx-api-key: k\r\n\r\n", false},
		{"a repeated list", "GET /a HTTP/1.1\r\nHost: x\r\nAccept-Encoding: br\r\nAccept-Encoding: gzip\r\n\r\n", false},
		{"a continued line", "GET /a HTTP/1.1\r\nHost: x\r\nX: y\r\n z\r\n\r\n", false},
		{"a space before the colon", "GET /a HTTP/1.1\r\nHost: x\r\nX : y\r\n\r\n", false},
		{"a line without a name", "GET /a HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n", false},
		{"a line without a colon", "GET /a HTTP/1.1\r\nHost: x\r\nX\r\n\r\n", false},
		{"a control byte in a value", "GET /a HTTP/1.1\r\nHost: x\r\nX: \x00\r\n\r\n", false},
		{"a byte beyond ASCII in a value", "GET /a HTTP/1.1\r\nHost: x\r\nX: \xe9\r\n\r\n", false},
		{"an empty line first", "\r\n" + good, false},
	} {
		var r Request
		want := 0
		if tt.recognised {
			want = len(tt.head)
		}
		if got := r.parse([]byte(tt.head + "GET")); got != want {
			t.Errorf("%s: %q: got length %d, want %d", tt.decision, tt.head, got, want)
		}
		if tt.recognised && string(r.Target) != "/a" {
			t.Errorf("%s: got target %q", tt.decision, r.Target)
		}
	}
}

func TestFieldsOfARequest(t *testing.T) {
	var r Request
	head := "GET /a?b HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer k \r\nX-Api-Key:\r\norigin: https://o\r\n" +
		"Accept-Encoding: br\r\nIf-None-Match: \"t\"\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n"
	if got := r.parse([]byte(head)); got != len(head) {
		t.Fatalf("got length %d, want %d", got, len(head))
	}
	for name, tt := range map[string]struct {
		got  []byte
		want string
	}{
		"target": {r.Target, "/a?b"}, "authorization": {r.Authorization, "Bearer k"}, "key": {r.APIKey, ""}, "origin": {r.Origin, "https://o"},
		"accept": {r.AcceptEncoding, "br"}, "match": {r.IfNoneMatch, `"t"`}, "forwarded": {r.ForwardedFor, "1.2.3.4"},
	} {
		if string(tt.got) != tt.want || tt.got == nil {
			t.Errorf("%s: got %q, want %q", name, tt.got, tt.want)
		}
	}
	if r.parse([]byte("GET /a HTTP/1.1\r\nHost: x\r\n\r\n")); r.APIKey != nil || r.Authorization != nil {
		t.Error("fields of the request before are kept")
	}
}

// TestPlainValue puts each byte at each place and compares with a check byte by byte.
func TestPlainValue(t *testing.T) {
	for length := range 20 {
		for at := range length {
			for c := range 256 {
				b := bytes.Repeat([]byte("a~ "), 7)[:length]
				b[at] = byte(c)
				want := length
				if c != '\t' && (c < ' ' || c > '~') {
					want = at
				}
				if got := plainValue(b); got != want {
					t.Fatalf("%q: got %d, want %d", b, got, want)
				}
			}
		}
	}
}

func BenchmarkParse(b *testing.B) {
	head := []byte("GET /api/v1/standings?year=2024 HTTP/1.1\r\nHost: api.example.org\r\nX-API-Key: gc_live_0123456789012345678901234567890123456789\r\n" +
		"User-Agent: curl/8.0\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate, br\r\n\r\n")
	var r Request
	b.SetBytes(int64(len(head)))
	for b.Loop() {
		if r.parse(head) == 0 {
			b.Fatal("not recognised")
		}
	}
}
