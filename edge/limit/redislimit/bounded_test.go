package redislimit_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/edge/limit/redislimit"
)

// answering is a Redis that sends the same answer to everything.
func answering(t *testing.T, answer string) *server {
	t.Helper()
	return listening(t, func(c net.Conn, _ *sync.WaitGroup) {
		for p := make([]byte, 4096); ; {
			if _, err := c.Read(p); err != nil {
				return
			}
			for _, piece := range []string{answer[:len(answer)/2], answer[len(answer)/2:]} {
				_, _ = io.WriteString(c, piece) // the reader also sees its end
			}
		}
	})
}

// falseAnswers returns the answers of testdata/lengths.txt, which begin with a length or a form that no answer to an edge has, and
// some that are too long for a line there.
func falseAnswers(t testing.TB) []string {
	t.Helper()
	return append(quoted(t, "testdata/lengths.txt"),
		"*11000\r\n"+strings.Repeat("$100\r\n"+strings.Repeat("a", 100)+"\r\n", 11000), "+"+strings.Repeat("a", redislimit.MaxReply)+"\r\n", strings.Repeat("*9999\r\n", 200),
		strings.Repeat("*1\r\n", redislimit.MaxValues+1), strings.Repeat("*2\r\n:1\r\n", redislimit.MaxValues))
}

// quoted reads a file with a quoted text a line.
func quoted(t testing.TB, path string) (texts []string) {
	t.Helper()
	for line := range strings.Lines(string(must.Get(os.ReadFile(path))(t))) {
		texts = append(texts, must.Get(strconv.Unquote(strings.TrimSuffix(line, "\n")))(t))
	}
	return texts
}

// TestFalseServers has servers, clusters and sentinels that answer everything with a false length or something else. The edge
// counts for itself, and allocates next to nothing.
func TestFalseServers(t *testing.T) {
	for _, answer := range append(quoted(t, "testdata/servers.txt"), falseAnswers(t)[:9]...) {
		redis := answering(t, answer)
		for _, query := range []string{"", "?addr=" + redis.Address, "?master_set=limits"} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			source := must.Get(redislimit.Open(t.Context(), redislimit.Config{
				URL: "redis://" + redis.Address + "/" + query, Mode: redislimit.Strict, Log: slog.New(slog.DiscardHandler),
			}))(t)
			d := source.Counter("key", 0).Take(time.Now(), 2)
			must.Hold(t, d.Allowed && d.Remaining == 1 && source.Fault() != "", "%q, %q: got %+v, %s, want the edge to count for itself", answer, query, d, source)
			source.Close()
			runtime.ReadMemStats(&after)
			got := after.TotalAlloc - before.TotalAlloc
			must.Hold(t, got <= 4<<20, "%q, %q: %d bytes were allocated", answer, query, got)
		}
	}
}

// TestShiftedAnswers: from some question on, a connection brings the answer to the one before. The edge notices that an
// answer is not its own, and counts on other connections.
func TestShiftedAnswers(t *testing.T) {
	for _, mode := range []redislimit.Mode{redislimit.Strict, redislimit.Lease} {
		redis := newServer(t)
		var shifts atomic.Bool
		between := listening(t, func(near net.Conn, group *sync.WaitGroup) {
			far, err := net.Dial("tcp", redis.Address)
			if err != nil {
				return
			}
			var last atomic.Value
			var shifted atomic.Bool
			group.Go(func() {
				defer near.Close()
				for p := make([]byte, 4096); ; {
					n, err := far.Read(p)
					if err != nil {
						return
					}
					last.Store(string(p[:n]))
					if !shifted.Load() {
						_, _ = near.Write(p[:n]) // the reader also sees its end
					}
				}
			})
			for p := make([]byte, 4096); ; {
				n, err := near.Read(p)
				if err != nil {
					far.Close()
					return
				}
				if before, ok := last.Load().(string); ok && (shifted.Load() || shifts.CompareAndSwap(true, false)) {
					shifted.Store(true)
					_, _ = io.WriteString(near, before)
				}
				_, _ = far.Write(p[:n])
			}
		})
		source := between.open(mode, 1)[0]
		const perMinute = 100
		spent, fresh := source.Counter("spent", windowStart()), source.Counter("fresh", windowStart())
		for spent.Take(time.Now(), perMinute).Allowed { // until nothing is left
		}
		shifts.Store(true)
		allowed := 0
		for i := range 10 {
			d := fresh.Take(time.Now(), perMinute)
			must.Hold(t, d.Allowed, "%s, request %d of another key: got %+v", mode, i, d)
			allowed++
		}
		must.Until(t, "the shift is noticed", func() bool { return metric(t, source, "gridcast_edge_limit_redis_asks_total", "failed") > 0 })
		must.Until(t, "Redis counts again", func() bool { return source.Fault() == "" })
		for range 2 * perMinute {
			if fresh.Take(time.Now(), perMinute).Allowed {
				allowed++
			}
		}
		if allowed > perMinute || allowed < perMinute-perMinute/8 { // a lost answer had a share
			t.Errorf("%s: allowed %d of %d", mode, allowed, perMinute)
		}
		source.Close()
	}
}

// TestAnswersInPieces splits good and false answers at every byte.
func TestAnswersInPieces(t *testing.T) {
	for _, tt := range []struct {
		answers []string
		false   bool
	}{
		{falseAnswers(t), true},
		{[]string{
			"*3\r\n:29683041\r\n:1\r\n:7\r\n", "+OK\r\n-ERR no\r\n:-1\r\n$-1\r\n*-1\r\n$0\r\n\r\n$5\r\n*9999\r\n*0\r\n",
			strings.Repeat("*100\r\n"+strings.Repeat("$3\r\nabc\r\n", 100), 100), "*2\r\n:1\r\n*1\r\n:1\r\n",
			"$13\r\n*2147483647\r\n\r\n", "*1\r\n*3\r\n:0\r\n:5460\r\n*3\r\n$9\r\n127.0.0.1\r\n:6379\r\n*-1\r\n",
		}, false},
	} {
		for _, answer := range tt.answers {
			step := max(1, len(answer)/12)
			for at := 0; at <= len(answer); at += step {
				err := redislimit.Scan(io.MultiReader(strings.NewReader(answer[:at]), strings.NewReader(answer[at:])))
				if (err != nil) != tt.false {
					t.Fatalf("%.40q, split after %d bytes: %v", answer, at, err)
				}
			}
		}
	}
}

// FuzzAnswers: the outcome does not depend on the pieces, and no answer of a stream that passes announces more than
// a few times the largest answer.
func FuzzAnswers(f *testing.F) {
	for _, answer := range falseAnswers(f) {
		f.Add([]byte(answer), 3)
	}
	f.Add([]byte("*3\r\n:29683041\r\n:1\r\n:7\r\n|1\r\n+ttl\r\n:1\r\n*1\r\n~1\r\n=7\r\ntxt:abc\r\n"), 5)
	f.Fuzz(func(t *testing.T, answer []byte, size int) {
		var pieces []io.Reader
		for rest := answer; len(rest) > 0; {
			n := min(max(1, size), len(rest))
			pieces, rest = append(pieces, bytes.NewReader(rest[:n])), rest[n:]
		}
		whole := redislimit.Scan(bytes.NewReader(answer))
		if pieced := redislimit.Scan(io.MultiReader(pieces...)); (whole == nil) != (pieced == nil) {
			t.Fatalf("%q: whole %v, in pieces %v", answer, whole, pieced)
		}
		if whole != nil {
			return
		}
		for reader := bufio.NewReader(bytes.NewReader(answer)); ; {
			announced, err := announcedBy(reader)
			if announced > 4*redislimit.MaxReply {
				t.Fatalf("%q announces %d bytes", answer, announced)
			}
			if err != nil {
				return
			}
		}
	})
}

// announcedBy reads one answer leniently, in RESP2 or RESP3, and returns the number of announced bytes
// and elements.
func announcedBy(r *bufio.Reader) (announced int, err error) {
	for open := 1; open > 0; open-- {
		kind, err := r.ReadByte()
		if err != nil {
			return announced, err
		}
		switch kind {
		case '+', '-', ':', ',', '(':
			line, err := r.ReadBytes('\n')
			if announced += len(line); err != nil {
				return announced, err
			}
			continue
		case '#':
			if _, err := r.Discard(3); err != nil {
				return announced, err
			}
			continue
		case '_', '.':
			if _, err := r.Discard(2); err != nil {
				return announced, err
			}
			continue
		}
		line, err := r.ReadBytes('\n')
		if err != nil || len(line) < 3 {
			return announced, errors.Join(io.ErrUnexpectedEOF, err)
		}
		n, err := strconv.Atoi(string(line[:len(line)-2]))
		switch {
		case err != nil && !errors.Is(err, strconv.ErrRange):
			return announced, err
		case n == -1 && (kind == '$' || kind == '*'):
			continue
		case n < 0:
			return 4*redislimit.MaxReply + 1, nil
		}
		announced += n
		if announced > 4*redislimit.MaxReply {
			return announced, nil
		}
		switch kind {
		case '$', '!', '=':
			if _, err := r.Discard(n + 2); err != nil {
				return announced, err
			}
		case '*', '~', '>':
			open += n
		case '%':
			open += 2 * n
		case '|':
			open += 2*n + 1
		default:
			return announced, errors.New("unknown kind")
		}
	}
	return announced, nil
}
