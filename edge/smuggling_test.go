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

	"gridcast/deploy/golden"
	"gridcast/schemas/wire"
)

// TestStrictFraming sends each request of testdata/framing.txt, and another one behind it.
func TestStrictFraming(t *testing.T) {
	w := newWorld(t)
	behind := request("GET", "/api/v1/nothing", "X-API-Key: "+w.key["pro"])
	golden.Table(t, "testdata/framing.txt", func(sent string) string {
		return fmt.Sprint(w.statuses(t, strings.ReplaceAll(sent, "{pro}", w.key["pro"])+behind))
	})
}

// TestRefusalNamesItsReason: a well-formed request that the edge refuses for its framing is not called malformed.
func TestRefusalNamesItsReason(t *testing.T) {
	w := newWorld(t)
	golden.Table(t, "testdata/refusals.txt", func(sent string) string {
		r := w.raw("GET", sent)
		return fmt.Sprint(r.StatusCode, " ", string(r.body))
	})
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
