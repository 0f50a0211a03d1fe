package edge_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/cryptotest"
	"time"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/edge"
	"gridcast/edge/edgetest"
	"gridcast/schemas/wire"
	"gridcast/snapshots/blob/memblob"
)

// TestAnswersAsRecorded sends generated streams of requests, most of them right or nearly so, and compares the
// answers with the record in testdata/answers.txt. The record begins with a numbered list of the different answers:
// status, fields and error code, without values that change with data and time. A line for each stream follows: the
// answers by their number, each with the remaining requests of its window, and "end" where the server ended the
// connection before the client did. The flag -update writes the record anew.
func TestAnswersAsRecorded(t *testing.T) {
	const streams = 6_000
	cryptotest.SetGlobalRandom(t, 1) // the keys are parts of the streams
	w := newWorld(t, func(c *edge.Config, _ *edge.Deps, _ *setup) {
		c.MaxHeaderBytes, c.MaxBodyBytes = 1<<10, 64  // so that streams often reach them
		c.AnonymousSlots = 1                          // otherwise the windows would be in secret places
		c.Tiers["pro"], c.AnonymousLimit = 1000, 1000 // the tier trial keeps its 30
	})
	serve := w.edge.ConnServer()
	w.key["etag"] = w.get("/api/v1/calendar").Header.Get("ETag")
	random, other := rand.New(rand.NewPCG(1, 0)), edgetest.Publish(t, memblob.New(), 11)
	var (
		g            generator
		heads, lines []string
	)
	for i := range streams {
		if i%200 == 0 { // a new window, another round of the countdown
			w.real.add(time.Minute)
			w.race.set([]time.Time{
				edgetest.AbuDhabi.Add(-time.Hour), edgetest.AbuDhabi.Add(-time.Nanosecond), edgetest.AbuDhabi, edgetest.Melbourne,
			}[i/200%4])
		}
		if i == streams/2 {
			must.Do(t, w.edge.Accept(other))
		}
		c := trace{stream: g.stream(random, w.key)}
		_ = serve(&c) // its error shows in the answers
		var line strings.Builder
		for sent := bufio.NewReader(bytes.NewReader(c.out)); ; {
			head, remaining, err := nextAnswer(sent)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("stream %d, %q: %v, in the answers %q", i, c.data, err, c.out)
			}
			n := slices.Index(heads, head)
			if n < 0 {
				n, heads = len(heads), append(heads, head)
			}
			fmt.Fprintf(&line, "%d%s ", n, remaining)
		}
		if !c.ended {
			line.WriteString("end")
		}
		lines = append(lines, strings.TrimSpace(line.String()))
	}
	var got strings.Builder
	for i, head := range heads {
		fmt.Fprintf(&got, "%d: %s\n", i, head)
	}
	got.WriteString("\n" + strings.Join(lines, "\n") + "\n")
	golden.File(t, "testdata/answers.txt", got.String())
}

// nextAnswer reads an answer. It returns the parts that do not change with data and time, and the remaining requests.
// Anything but an answer with a body of the announced length, or without one, is an error.
func nextAnswer(r *bufio.Reader) (head, remaining string, err error) {
	var parts []string
	length, code := 0, ""
	for {
		line, err := r.ReadString('\n')
		if line == "" && len(parts) == 0 {
			return "", "", io.EOF
		}
		if line, _ = strings.CutSuffix(line, "\r\n"); err != nil || line == "" {
			break
		}
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "Content-Length":
			length, err = strconv.Atoi(value)
			line = name
		case "X-RateLimit-Remaining":
			line, remaining = name, "/"+value
		case "Date", "ETag", "X-RateLimit-Limit", "X-RateLimit-Reset", "Retry-After":
			line = name
		}
		if err != nil {
			return "", "", err
		}
		parts = append(parts, line)
	}
	if next, _ := r.Peek(len("HTTP/1.1 ")); length > 0 && len(next) > 0 && string(next) != "HTTP/1.1 " {
		body := make([]byte, length)
		if _, err := io.ReadFull(r, body); err != nil {
			return "", "", fmt.Errorf("body of %q: %w", parts, err)
		}
		var fault wire.Error
		if json.Unmarshal(body, &fault) == nil {
			code = string(fault.Error)
		}
	} else if length > 0 {
		code = "no body" // of HEAD
	}
	return strings.Join(append(parts, code), " | "), remaining, nil
}

// stream is the data of a client, and their arrival.
type stream struct {
	data []byte
	cuts []int // ascending: the latest end of each read
	end  error // the result of every read after all data
}

// trace is a connection that delivers a stream and keeps the answers.
type trace struct {
	stream
	at    int
	out   []byte
	ended bool // the server has read the end of the stream
}

func (c *trace) Read(p []byte) (int, error) {
	if c.at == len(c.data) {
		c.ended = true
		return 0, c.end
	}
	for len(c.cuts) > 0 && c.cuts[0] <= c.at {
		c.cuts = c.cuts[1:]
	}
	until := len(c.data)
	if len(c.cuts) > 0 {
		until = c.cuts[0]
	}
	n := copy(p, c.data[c.at:until])
	c.at += n
	return n, nil
}

func (c *trace) Write(p []byte) (int, error) {
	c.out = append(c.out, p...)
	return len(p), nil
}

func (*trace) Close() error                     { return nil }
func (*trace) LocalAddr() net.Addr              { return here }
func (*trace) RemoteAddr() net.Addr             { return here }
func (*trace) SetDeadline(time.Time) error      { return nil }
func (*trace) SetReadDeadline(time.Time) error  { return nil }
func (*trace) SetWriteDeadline(time.Time) error { return nil }
