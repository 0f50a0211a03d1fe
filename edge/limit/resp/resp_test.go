package resp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/edge/limit/resp"
)

// server answers every command on a loopback port by what reply returns for its words.
func server(t *testing.T, reply func(words []string) string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	t.Cleanup(func() { l.Close(); group.Wait() })
	group.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				defer c.Close()
				r := bufio.NewReader(c)
				for {
					words, err := readCommand(r)
					if err != nil {
						return
					}
					answer := reply(words)
					if answer == "" {
						return
					}
					if _, err := c.Write([]byte(answer)); err != nil {
						return
					}
				}
			})
		}
	})
	return "redis://" + l.Addr().String()
}

func readCommand(r *bufio.Reader) ([]string, error) {
	var n int
	if _, err := fmt.Fscanf(r, "*%d\r\n", &n); err != nil {
		return nil, err
	}
	words := make([]string, n)
	for i := range words {
		var size int
		if _, err := fmt.Fscanf(r, "$%d\r\n", &size); err != nil {
			return nil, err
		}
		b := make([]byte, size+2)
		for at := 0; at < len(b); {
			m, err := r.Read(b[at:])
			if err != nil {
				return nil, err
			}
			at += m
		}
		words[i] = string(b[:size])
	}
	return words, nil
}

func dial(t *testing.T, url string) (*resp.Client, error) {
	t.Helper()
	o, err := resp.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	c, err := resp.Dial(t.Context(), o)
	if err == nil {
		t.Cleanup(c.Close)
	}
	return c, err
}

func TestReplies(t *testing.T) {
	for _, c := range []struct {
		wire string
		want any
		err  string
	}{
		{":42\r\n", int64(42), ""},
		{":-7\r\n", int64(-7), ""},
		{"+OK\r\n", "OK", ""},
		{"$5\r\na\r\nbc\r\n", "a\r\nbc", ""},
		{"$-1\r\n", nil, ""},
		{"*3\r\n:1\r\n$1\r\nx\r\n*0\r\n", []any{int64(1), "x", []any{}}, ""},
		{"-ERR no such command\r\n", nil, "redis: ERR no such command"},
		{"?what\r\n", nil, "not the Redis protocol"},
		{":4x\r\n", nil, "not the Redis protocol"},
		{"$99999999\r\n", nil, "not the Redis protocol"},
		{"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", nil, "not the Redis protocol"},
	} {
		client, err := dial(t, server(t, func([]string) string { return c.wire }))
		if err != nil {
			t.Fatal(err)
		}
		got, err := client.Do(t.Context(), "ANY")
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%q: got error %v, want %q", c.wire, err, c.err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q (-want +got)\n%s", c.wire, diff)
		}
	}
}

// Commands of many goroutines share the connection, and each gets its own reply.
func TestEverybodyGetsHisOwnReply(t *testing.T) {
	client, err := dial(t, server(t, func(words []string) string {
		return fmt.Sprintf("$%d\r\n%s\r\n", len(words[1]), words[1])
	}))
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for i := range 64 {
		group.Go(func() {
			for j := range 50 {
				word := fmt.Sprintf("%d-%d", i, j)
				if got, err := client.Do(t.Context(), "ECHO", word); err != nil || got != word {
					t.Errorf("echo %s: got %v (%v)", word, got, err)
				}
			}
		})
	}
	group.Wait()
}

// Who stops waiting does not take the next one's reply away.
func TestAbandonedReply(t *testing.T) {
	slow := make(chan struct{})
	client, err := dial(t, server(t, func(words []string) string {
		if words[0] == "SLOW" {
			<-slow
		}
		return "+" + words[0] + "\r\n"
	}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client.Do(ctx, "SLOW"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the end of the context", err)
	}
	close(slow)
	if got, err := client.Do(t.Context(), "NEXT"); err != nil || got != "NEXT" {
		t.Errorf("got %v (%v), want NEXT", got, err)
	}
}

func TestBrokenConnection(t *testing.T) {
	client, err := dial(t, server(t, func([]string) string { return "" }))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Do(t.Context(), "ANY"); err == nil {
		t.Error("a command on a connection that was closed succeeded")
	}
	if client.Err() == nil {
		t.Error("the broken connection says that it is of use")
	}
	client.Close()
	if _, err := client.Do(t.Context(), "ANY"); err == nil {
		t.Error("a command on a closed client succeeded")
	}
}

func TestSignIn(t *testing.T) {
	var got []string
	url := server(t, func(words []string) string {
		got = append(got, strings.Join(words, " "))
		if words[len(words)-1] == "wrong" {
			return "-WRONGPASS invalid\r\n"
		}
		return "+OK\r\n"
	})
	host := strings.TrimPrefix(url, "redis://")
	if _, err := dial(t, "redis://ann:secret@"+host+"/3"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"AUTH ann secret", "SELECT 3"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, err := dial(t, "redis://:wrong@"+host); err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("got %v, want WRONGPASS", err)
	}
}

func TestScriptIsSentOnlyToWhoDoesNotKnowIt(t *testing.T) {
	known := false
	var names []string
	client, err := dial(t, server(t, func(words []string) string {
		names = append(names, words[0])
		if diff := cmp.Diff([]string{"1", "key", "-3"}, words[2:]); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if words[0] == "EVALSHA" && !known {
			return "-NOSCRIPT No matching script\r\n"
		}
		known = true
		return "*2\r\n:1\r\n:2\r\n"
	}))
	if err != nil {
		t.Fatal(err)
	}
	script := resp.NewScript("return {1,2}")
	var words resp.Words
	words.Add("key")
	words.AddInt(-3)
	for range 2 {
		got, err := script.Ints(t.Context(), client, 1, &words)
		if diff := cmp.Diff([]int64{1, 2}, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got)\n%s", err, diff)
		}
	}
	if diff := cmp.Diff([]string{"EVALSHA", "EVAL", "EVALSHA"}, names); diff != "" {
		t.Errorf("commands (-want +got)\n%s", diff)
	}
}

func TestParseURL(t *testing.T) {
	for _, url := range []string{"", "host:6379", "http://host", "redis://", "redis://user:secret@host/x", "redis://us er:secret@host"} {
		if o, err := resp.ParseURL(url); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got %+v and error %v, want an error without the password", url, o, err)
		}
	}
	o, err := resp.ParseURL("rediss://host")
	if err != nil || o.Address != "host:6379" || o.TLS == nil {
		t.Errorf("got %+v (%v), want the default port and TLS", o, err)
	}
}

// FuzzReply: whatever a server sends, the client neither panics nor hangs.
func FuzzReply(f *testing.F) {
	for _, seed := range []string{":1\r\n", "$3\r\nabc\r\n", "*2\r\n:1\r\n$-1\r\n", "-ERR\r\n", "\r\n", "*-1\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		ours, theirs := net.Pipe()
		client := resp.NewClient(ours)
		go func() {
			_, _ = bufio.NewReader(theirs).ReadString('\n')
			_, _ = theirs.Write(wire)
			_ = theirs.Close()
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := client.Do(ctx, "X"); errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%q: hangs", wire)
		}
		client.Close()
	})
}
