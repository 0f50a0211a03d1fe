package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/molecule-man/go-brrr"

	"gridcast/deploy/must"
	"gridcast/schemas"
	"gridcast/schemas/wire"
)

// want lists the required parts of an answer.
type want struct {
	status int
	code   wire.Code         // of an error; empty: a success
	header map[string]string // exact values; "-": absent
	data   func(t *testing.T, a answer)
}

// holds checks an answer against want and against the rules for every answer.
func (a answer) holds(t *testing.T, w want) {
	t.Helper()
	must.Hold(t, a.status == w.status, "got status %d, want %d: %s", a.status, w.status, a.body)
	for name, value := range w.header {
		got := a.header.Get(name)
		if value == "-" {
			value = ""
		}
		must.Equal(t, name, value, got)
	}
	for _, name := range []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"} {
		if _, err := strconv.Atoi(a.header.Get(name)); err != nil {
			t.Errorf("%s: got %q, want a number on every response", name, a.header.Get(name))
		}
	}
	must.Equal(t, "Access-Control-Allow-Origin", "*", a.header.Get("Access-Control-Allow-Origin"))
	if w.code != "" {
		if err := schemas.ValidateBody(schemas.ErrorKind, a.body); err != nil || !bytes.Contains(a.body, []byte(`"error":"`+string(w.code)+`"`)) {
			t.Errorf("want the error %s, got %s (%v)", w.code, a.body, err)
		}
		if a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("an error has Cache-Control %q, want no-store", a.header.Get("Cache-Control"))
		}
	}
	if w.data != nil {
		w.data(t, a)
	}
}

// same wants the bytes of another target.
func same(c *client, path string) func(*testing.T, answer) {
	return func(t *testing.T, a answer) {
		if other := c.get(t, path); !bytes.Equal(a.body, other.body) {
			t.Errorf("got other bytes than %s:\n%s\n%s", path, a.body, other.body)
		}
	}
}

// first wants something of the first row.
func first[T any](pick func(T) any, want any) func(*testing.T, answer) {
	return func(t *testing.T, a answer) {
		rows := data[[]T](t, a)
		must.Hold(t, len(rows) != 0 && fmt.Sprint(pick(rows[0])) == fmt.Sprint(want), "first row: got %s, want %v", a.body, want)
	}
}

func count[T any](want int) func(*testing.T, answer) {
	return func(t *testing.T, a answer) {
		if got := len(data[[]T](t, a)); got != want {
			t.Errorf("got %d rows, want %d", got, want)
		}
	}
}

// says wants a message that has all the parts.
func says(parts ...string) func(*testing.T, answer) {
	return func(t *testing.T, a answer) {
		for _, part := range parts {
			must.Hold(t, bytes.Contains(a.body, []byte(part)), "the message does not say %q: %s", part, a.body)
		}
	}
}

// decodesTo wants a content coding of the bytes of a target.
func decodesTo(c *client, path string) func(*testing.T, answer) {
	return func(t *testing.T, a answer) {
		var plain []byte
		var err error
		switch coding := a.header.Get("Content-Encoding"); coding {
		case "gzip":
			var r *gzip.Reader
			if r, err = gzip.NewReader(bytes.NewReader(a.body)); err == nil {
				plain, err = io.ReadAll(r)
			}
		case "br":
			plain, err = brrr.Decompress(a.body)
		case "zstd":
			var r *zstd.Decoder
			if r, err = zstd.NewReader(nil); err == nil {
				defer r.Close()
				plain, err = r.DecodeAll(a.body, nil)
			}
		default:
			t.Fatalf("unexpected coding %q", coding)
		}
		if identity := c.get(t, path); err != nil || !bytes.Equal(plain, identity.body) {
			t.Errorf("decodes to other bytes than the identity: %v", err)
		}
	}
}

// countsDown wants the countdown to fit the instant of the answer exactly.
func countsDown(t *testing.T, a answer) {
	next := data[wire.NextRace](t, a)
	var envelope wire.Success[wire.NextRace]
	envelope.Data = next
	at := generatedAt(t, a)
	if got := time.Time(next.DateStart).Sub(at); got != time.Duration(next.SecondsToLights)*time.Second || next.SecondsToLights < 1 {
		t.Errorf("%d seconds to lights, date_start - generated_at is %s", next.SecondsToLights, got)
	}
}

var generated = regexp.MustCompile(`"generated_at":"([^"]+)"`)

func generatedAt(t testing.TB, a answer) time.Time {
	t.Helper()
	m := generated.FindSubmatch(a.body)
	if m == nil {
		t.Fatalf("no generated_at: %s", a.body)
	}
	at := must.Get(time.Parse(wire.InstantLayout, string(m[1])))(t)
	return at
}
