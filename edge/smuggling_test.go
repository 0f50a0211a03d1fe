package edge_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridcast/schemas/wire"
)

// TestStrictFraming has a row for each form of a request that the
// server and a proxy in front could read differently. A second request follows each: it is answered only if the
// first one ends beyond doubt.
func TestStrictFraming(t *testing.T) {
	w := newWorld(t)
	key := "X-API-Key: " + w.key["pro"] + "\r\n"
	const host = "Host: api.example.org\r\n"
	for _, tt := range []struct {
		decision, sent string
		want           []int // the statuses before the connection is closed
	}{
		{"the plain form", "GET /api/v1/calendar HTTP/1.1\r\n" + host + key + "\r\n", []int{200, 404}},
		{"a body of a known length", "POST /api/v1/calendar HTTP/1.1\r\n" + host + key + "Content-Length: 5\r\n\r\nabcde", []int{405, 404}},
		{"a body with lone LFs", "POST /api/v1/calendar HTTP/1.1\r\n" + host + key + "Content-Length: 4\r\n\r\n{\n}\n", []int{405, 404}},
		{"a GET with a body", "GET /api/v1/calendar HTTP/1.1\r\n" + host + key + "Content-Length: 5\r\n\r\nabcde", []int{200, 404}},

		{"chunked", "POST /api/v1/calendar HTTP/1.1\r\n" + host + key + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", []int{400}},
		{"chunked GET", "GET /api/v1/calendar HTTP/1.1\r\n" + host + key + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", []int{400}},
		{"identity", "GET /api/v1/calendar HTTP/1.1\r\n" + host + key + "Transfer-Encoding: identity\r\n\r\n", []int{400}},
		{"identity in capitals", "GET /api/v1/calendar HTTP/1.1\r\n" + host + key + "TRANSFER-ENCODING: IDENTITY\r\n\r\n", []int{400}},
		{"length, then chunked", "POST /api/v1/calendar HTTP/1.1\r\n" + host + key + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n", []int{400}},
		{"chunked, then length", "POST /api/v1/calendar HTTP/1.1\r\n" + host + key + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n5\r\nabcde\r\n0\r\n\r\n", []int{400}},
		{"length and identity", "POST /api/v1/calendar HTTP/1.1\r\n" + host + key + "Content-Length: 5\r\nTransfer-Encoding: identity\r\n\r\nabcde", []int{400}},
		{"a trailer with the key", "GET /api/v1/calendar HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\nTrailer: X-API-Key\r\n\r\n0\r\n" + key + "\r\n", []int{400}},
		{"two lengths", "POST /api/v1/calendar HTTP/1.1\r\n" + host + key + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nabcde", []int{400}},
		{"a signed length", "POST /api/v1/calendar HTTP/1.1\r\n" + host + key + "Content-Length: +5\r\n\r\nabcde", []int{400}},

		{"a lone LF after a field", "GET /api/v1/calendar HTTP/1.1\r\n" + host + key + "X: y\n\r\n", []int{400}},
		{"a coding behind a lone LF", "POST /api/v1/calendar HTTP/1.1\r\n" + host + key + "X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", []int{400}},
		{"a length behind a lone LF", "POST /api/v1/calendar HTTP/1.1\r\n" + host + key + "X: y\nContent-Length: 5\r\n\r\nabcde", []int{400}},
		{"a lone LF at the end of the header", "GET /api/v1/calendar HTTP/1.1\r\n" + host + key + "\n\r\n\r\n", []int{400}},
		{"a lone LF after the request line", "GET /api/v1/calendar HTTP/1.1\n" + host + key + "\r\n", []int{400}},
		{"lone LFs alone", "GET /api/v1/calendar HTTP/1.1\nHost: x\n" + strings.TrimSuffix(key, "\r\n") + "\n\n", []int{400}},
		{"a request line alone, and a lone LF", "GET /api/v1/calendar HTTP/1.0\r\n\n", []int{400}},
		{"a lone LF before the request line", "\nGET /api/v1/calendar HTTP/1.1\r\n" + host + key + "\r\n", []int{400}},
		{"an empty line before the request line", "\r\nGET /api/v1/calendar HTTP/1.1\r\n" + host + key + "\r\n", []int{200, 404}},
		{"a lone LF after the second request line", "GET /api/v1/calendar HTTP/1.1\r\n" + host + key + "\r\nGET /api/v1/calendar HTTP/1.1\n" + host + key + "\r\n", []int{200, 400}},
		{"the same behind a body", "POST /api/v1/calendar HTTP/1.1\r\n" + host + key + "Content-Length: 3\r\n\r\n\n\n\nGET /api/v1/calendar HTTP/1.1\n" + host + key + "\r\n", []int{405, 400}},
		{"the same behind a request without fields", "GET /healthz HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\nGET /api/v1/calendar HTTP/1.1\n" + host + key + "\r\n", []int{200, 400}},
		{"two origins", "GET /api/v1/calendar HTTP/1.1\r\n" + host + key + "Origin: https://example.org\r\norigin: https://evil.example\r\n\r\n", []int{400}},
		{"the same origin twice", "GET /api/v1/calendar HTTP/1.1\r\n" + host + key + "Origin: null\r\nX: y\r\nOrigin: null\r\n\r\n", []int{400}},
		{"two origins of a preflight", "OPTIONS /api/v1/calendar HTTP/1.1\r\n" + host + "Origin: null\r\nOrigin: https://example.org\r\n\r\n", []int{400}},
		{"a folded value", "GET /api/v1/calendar HTTP/1.1\r\n" + host + key + "X: y\r\n z\r\n\r\n", []int{400}},
		{"a folded value, by a tab", "GET /api/v1/calendar HTTP/1.1\r\n" + host + key + "X: y\r\n\tTransfer-Encoding: chunked\r\n\r\n", []int{400}},
		{"a fold of spaces alone", "GET /api/v1/calendar HTTP/1.1\r\n" + host + key + "X: y\r\n \r\n\r\n", []int{400}},
		{"a space before the colon", "GET /api/v1/calendar HTTP/1.1\r\n" + host + key + "Content-Length : 5\r\n\r\nabcde", []int{400}},

		{"HTTP/0.9", "GET /api/v1/calendar HTTP/0.9\r\n" + host + key + "\r\n", []int{400}},
		{"HTTP/1.2", "GET /api/v1/calendar HTTP/1.2\r\n" + host + key + "\r\n", []int{400}},
		{"HTTP/2.0", "GET /api/v1/calendar HTTP/2.0\r\n" + host + key + "\r\n", []int{400}},
		{"the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []int{400}},
		{"no version", "GET /api/v1/calendar\r\n" + host + key + "\r\n", []int{400}},

		{"HTTP/1.0", "GET /api/v1/calendar HTTP/1.0\r\n" + host + key + "\r\n", []int{200}},
		{"HTTP/1.0 kept alive", "GET /api/v1/calendar HTTP/1.0\r\n" + host + key + "Connection: Keep-Alive\r\n\r\n", []int{200, 404}},
		{"close", "GET /api/v1/calendar HTTP/1.1\r\n" + host + key + "Connection: close\r\n\r\n", []int{200}},
		{"Close", "GET /api/v1/calendar HTTP/1.1\r\n" + host + key + "Connection: Close\r\n\r\n", []int{200}},
		{"CLOSE", "GET /api/v1/calendar HTTP/1.1\r\n" + host + key + "CONNECTION: CLOSE\r\n\r\n", []int{200}},
		{"TE, close", "GET /api/v1/calendar HTTP/1.1\r\n" + host + key + "Connection: TE, close\r\n\r\n", []int{200}},
		{"close, TE", "GET /api/v1/calendar HTTP/1.1\r\n" + host + key + "Connection: close, TE\r\n\r\n", []int{200}},
		{"close, then keep-alive", "GET /api/v1/calendar HTTP/1.1\r\n" + host + key + "Connection: close\r\nConnection: keep-alive\r\n\r\n", []int{200}},
		{"keep-alive", "GET /api/v1/calendar HTTP/1.1\r\n" + host + key + "Connection: keep-alive\r\n\r\n", []int{200, 404}},
		{"another option", "GET /api/v1/calendar HTTP/1.1\r\n" + host + key + "Connection: TE\r\n\r\n", []int{200, 404}},
	} {
		t.Run(tt.decision, func(t *testing.T) {
			got := w.statuses(t, tt.sent+"GET /api/v1/nothing HTTP/1.1\r\n"+host+key+"\r\n")
			if !slices.Equal(got, tt.want) {
				t.Errorf("%q: got %v, want %v", tt.sent, got, tt.want)
			}
		})
	}
}

// TestRefusalNamesItsReason: a well-formed request that the edge refuses for its framing is not called malformed.
func TestRefusalNamesItsReason(t *testing.T) {
	w := newWorld(t)
	for sent, want := range map[string]string{
		request("POST", "/api/v1/calendar", "Transfer-Encoding: chunked") + "3\r\nabc\r\n0\r\n\r\n":  "no path accepts Transfer-Encoding",
		request("GET", "/api/v1/calendar", "Transfer-Encoding: chunked") + "0\r\n\r\n":               "no path accepts Transfer-Encoding",
		request("GET", "/api/v1/calendar", "Origin: https://a.example", "Origin: https://b.example"): "more than one Origin",
		"GET /api/v1/calendar HTTP/1.1\nHost: x\r\n\r\n":                                             "not valid HTTP",
	} {
		if r := w.raw("GET", sent); r.StatusCode != http.StatusBadRequest || !strings.Contains(string(r.body), want) {
			t.Errorf("%q: got %d %s, want 400 with %q", sent, r.StatusCode, r.body, want)
		}
	}
}

// TestSmuggledRequest hides a request in bodies of all kinds behind all kinds of framing. The edge may
// answer it only if no recipient can take it for a part of the body.
func TestSmuggledRequest(t *testing.T) {
	w := newWorld(t)
	key := "X-API-Key: " + w.key["pro"]
	hidden := request("GET", "/api/v1/smuggled", key)
	length := strconv.Itoa(len(hidden))
	bodies := []string{"", hidden, "0\r\n\r\n" + hidden, "5\r\nabcde\r\n0\r\n\r\n" + hidden, fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(hidden), hidden), "\r\n" + hidden}
	framings := []string{
		"X: y", "Content-Length: 0", "Content-Length: " + length, "Content-Length: 5",
		"Content-Length: +" + length, "Content-Length: -1", "Content-Length: 0x5", "Content-Length: 5, 5", "Content-Length: 5 5", "Content-Length:",
		"Content-Length: 99999999999999999999", "Content-Length: 0\r\nContent-Length: " + length, "Content-Length: " + length + "\r\nContent-Length: 0",
		"Content-Length : " + length, " Content-Length: " + length, "X: y\r\n Content-Length: " + length, "X: y\nContent-Length: " + length,
		"Content-Length: " + length + "\nX: y", "Content_Length: " + length, "Content-Length\x00: " + length, "Content-Length: " + length + "\x00",
		"Content-Length: " + length + "\r", "\tContent-Length: " + length, "Content-Length\t: " + length,
		"Transfer-Encoding: chunked", "Transfer-Encoding: Chunked", "transfer-encoding:chunked", "Transfer-Encoding: identity", "Transfer-Encoding: gzip, chunked",
		"Transfer-Encoding: chunked, chunked", "Transfer-Encoding: xchunked", "Transfer-Encoding: chunked;q=1", "Transfer-Encoding:\tchunked", "Transfer-Encoding: \"chunked\"",
		"Transfer-Encoding:", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
		"Transfer-Encoding : chunked", " Transfer-Encoding: chunked", "X: y\r\n Transfer-Encoding: chunked", "X: y\nTransfer-Encoding: chunked", "X: y\rTransfer-Encoding: chunked",
		"Transfer-Encoding: chunked\r\nContent-Length: " + length, "Content-Length: " + length + "\r\nTransfer-Encoding: chunked",
		"Content-Length: 0\r\nTransfer-Encoding: chunked", "Content-Length: " + length + "\r\nTransfer-Encoding: identity",
		"Transfer_Encoding: chunked", "Transfer-Encoding: chunked\nX: y", "Expect: 100-continue\r\nTransfer-Encoding: chunked",
	}
	// For these all recipients agree on the end of the request.
	agreed := map[string]int{
		"X: y": 0, "Content-Length: 0": 0, "Content-Length: " + length: len(hidden), "Content-Length: 5": 5,
		"Content_Length: " + length: 0, "Transfer_Encoding: chunked": 0,
	}
	n := 0
	for _, method := range []string{"GET", "POST"} {
		for _, framing := range framings {
			for _, body := range bodies {
				n++
				got := w.statuses(t, method+" /api/v1/calendar HTTP/1.1\r\nHost: x\r\n"+key+"\r\n"+framing+"\r\n\r\n"+body)
				end, agree := agreed[framing]
				switch {
				case !agree && body == "" && len(got) == 0: // the promised body has not come
				case !agree && !slices.Equal(got, []int{400}):
					t.Errorf("%s with %q and %q: got %v, want 400 and the end", method, framing, body, got)
				case agree && end == 0 && strings.HasPrefix(body, "GET") && len(got) != 2:
					t.Errorf("%s with %q and %q: got %v, want two answers", method, framing, body, got)
				case agree && end == len(hidden) && body == hidden && len(got) != 1:
					t.Errorf("%s with %q and %q: got %v, want one answer: the rest is its body", method, framing, body, got)
				}
			}
		}
	}
	t.Logf("%d streams", n)
}

// statuses sends bytes on their own connection, then its end, and returns the statuses of
// the answers until the connection is closed. Every answer must follow the contract.
func (w *world) statuses(t *testing.T, sent string) (statuses []int) {
	t.Helper()
	c := w.dial()
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	// The edge may close before it has read everything; its answers count.
	_, _ = io.WriteString(c, sent)
	_ = c.(*net.TCPConn).CloseWrite()
	all, err := io.ReadAll(c)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%q: %v", sent, err)
	}
	all = bytes.TrimPrefix(all, []byte("HTTP/1.1 100 Continue\r\n\r\n"))
	for r := bufio.NewReader(bytes.NewReader(all)); ; {
		if _, err := r.Peek(1); err != nil {
			return statuses
		}
		answer, err := read(r, "GET")
		if err != nil {
			t.Fatalf("%q: %v in %q", sent, err, all)
		}
		check(t, answer, sent)
		if answer.StatusCode == http.StatusBadRequest {
			var body wire.Error
			if err := json.Unmarshal(answer.body, &body); err != nil || body.Error != wire.BadRequest || !answer.Close {
				t.Errorf("%q: got %s, close %t, want %s and the connection closed", sent, answer.body, answer.Close, wire.BadRequest)
			}
		}
		statuses = append(statuses, answer.StatusCode)
	}
}
