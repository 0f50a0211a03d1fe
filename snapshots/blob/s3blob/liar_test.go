package s3blob_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/s3blob"
	"gridcast/snapshots/blob/s3test"
)

// liar is a server that answers every request with this head and sends bytes until its client
// goes away.
func liar(t *testing.T, head string, length int, deadline time.Duration) *s3blob.Store {
	t.Helper()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				if _, err := c.Read(make([]byte, 64<<10)); err != nil {
					return
				}
				_, err = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nLast-Modified: Sun, 22 Nov 2026 04:00:00 GMT\r\n%s\r\n", head)
				left := length
				for piece := make([]byte, 32<<10); err == nil && left > 0; left -= len(piece) {
					_, err = c.Write(piece[:min(left, len(piece))])
				}
			}()
		}
	}()
	return must.Get(s3blob.New(s3blob.Config{
		Bucket: "data", Endpoint: "http://" + listener.Addr().String(), Region: "eu-1", AccessKey: "key", SecretKey: "secret",
		Deadline: deadline, Attempt: deadline / 2,
	}))(t)
}

// A read ends within its limit, for every stated length and every amount of data.
func TestLyingLengths(t *testing.T) {
	const endless = 1 << 40
	for _, test := range []struct {
		name, head string
		length     int
		want       error // nil: any
	}{
		{"largest number", "Content-Length: 9223372036854775807\r\n", 100, nil},
		{"1 TiB, short", "Content-Length: 1099511627776\r\n", 100, nil},
		{"1 TiB, endless", "Content-Length: 1099511627776\r\n", endless, blob.ErrTooLarge},
		{"no length, endless", "Connection: close\r\n", endless, blob.ErrTooLarge},
		{"negative", "Content-Length: -5\r\n", 100, nil},
		{"no number", "Content-Length: many\r\n", 100, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			deadline := time.Minute
			if test.want == nil { // the store asks again and again
				deadline = 250 * time.Millisecond
			}
			s := liar(t, test.head, test.length, deadline)
			for operation, read := range map[string]func() (blob.Object, error){
				"get":   func() (blob.Object, error) { return s.Get(t.Context(), "a", 1<<20) },
				"watch": func() (blob.Object, error) { return s.Watch(t.Context(), "a", "", 1<<20) },
			} {
				if o, err := read(); err == nil || test.want != nil && !errors.Is(err, test.want) {
					t.Errorf("%s: got %d bytes, %v; want an error, %v", operation, len(o.Data), err, test.want)
				}
			}
		})
	}
}

// TestLyingListings checks that a listing with keys that were not asked for ends with an error, and so does one that
// repeats a page.
func TestLyingListings(t *testing.T) {
	page := func(first string, keys int) string {
		var list strings.Builder
		for i := range keys {
			fmt.Fprintf(&list, "<Contents><Key>%s%04d</Key><Size>1</Size><LastModified>2026-11-22T04:00:00Z</LastModified></Contents>", first, i)
		}
		return "<ListBucketResult>" + list.String() + "</ListBucketResult>"
	}
	for name, answer := range map[string]string{
		"a key outside the store":  page("x", 1),
		"a key outside the prefix": page("store/b", 1),
		"the same page for ever":   page("store/a/", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) }))
			t.Cleanup(server.Close)
			s, err := s3blob.New(s3blob.Config{
				Bucket: "data", Prefix: "store", Endpoint: server.URL, Region: "eu-1", AccessKey: "key", SecretKey: "secret",
			})
			must.Do(t, err)
			found := 0
			for _, err = range s.List(t.Context(), "a/") {
				if found++; err != nil || found > 5000 {
					break
				}
			}
			must.Hold(t, err != nil, "got %d keys, want an error", found)
		})
	}
}

// The store learns the server's clock from its answers.
func TestStoreTime(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"right": 0, "behind": -48 * time.Hour, "ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			requests := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				requests++
				w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
				w.WriteHeader(http.StatusForbidden) // a refusal has a date too
			}))
			t.Cleanup(server.Close)
			s := must.Get(s3blob.New(s3blob.Config{Bucket: "data", Endpoint: server.URL, Region: "eu-1", AccessKey: "key", SecretKey: "secret"}))(t)
			began := time.Now()
			for range 3 {
				before := time.Now().Add(ahead)
				at, within := must.Get2(s.StoreTime(t.Context()))(t)
				after := time.Now().Add(ahead)
				if at.Before(before.Add(-within)) || at.After(after.Add(within)) || within > 2*time.Second+after.Sub(before) {
					t.Errorf("between %s and %s it says %s, and claims to be within %v", before, after, at, within)
				}
			}
			if requests != 1 && time.Since(began) < time.Second { // a slow reading is asked for again
				t.Errorf("%d requests for three readings, want 1", requests)
			}
		})
	}
}

func TestStoreTimeOfARealServer(t *testing.T) {
	s := s3test.Store(t, s3test.Versity(t).Config(t))
	before := time.Now()
	at, within, err := s.StoreTime(t.Context())
	const slack = 5 * time.Second // servers write the date once a second, and later on a busy machine
	must.Hold(t, err == nil && !at.Before(before.Add(-within-slack)) && !at.After(time.Now().Add(within+slack)),
		"got %v within %v, %v; want about now", at, within, err)
}

// TestAnswersToConditions has a server that gives each write under a condition one answer.
func TestAnswersToConditions(t *testing.T) {
	golden.Table(t, "testdata/conditions.txt", func(answer string) string {
		status, code, _ := strings.Cut(answer, " ")
		var asked atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			w.WriteHeader(must.Get(strconv.Atoi(status))(t))
			if code != "" {
				fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, code)
			}
		}))
		defer server.Close()
		s := must.Get(s3blob.New(s3blob.Config{
			Bucket: "data", Endpoint: server.URL, Region: "eu-1", AccessKey: "key", SecretKey: "secret", Deadline: time.Minute,
		}))(t)
		_, created := s.Create(t.Context(), "a", []byte("x"))
		_, swapped := s.Swap(t.Context(), "a", "tag", []byte("x"))
		kind := func(err error) string {
			for name, is := range map[string]error{
				"conflict": blob.ErrConflict, "unconditional": blob.ErrUnconditional, "credentials": s3blob.ErrCredentials, "no bucket": s3blob.ErrNoBucket, "unknown": blob.ErrUnknown,
			} {
				if errors.Is(err, is) {
					return name + ": " + strings.ReplaceAll(err.Error(), server.URL, "SERVER")
				}
			}
			return strings.ReplaceAll(fmt.Sprint(err), server.URL, "SERVER")
		}
		return fmt.Sprintf("%d\n%s\n%s", asked.Load(), kind(created), kind(swapped))
	})
}
