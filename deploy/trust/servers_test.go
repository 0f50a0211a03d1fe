package trust_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/snapshots/blob/dirblob"
	"gridcast/snapshots/blob/s3blob"
	"gridcast/snapshots/blob/s3test"
)

// storage is an S3 server with a proxy in front that can change requests and answers.
type storage struct {
	server *s3test.Server
	front  *httptest.Server
	refuse atomic.Pointer[func(*http.Request) int]    // status of the refusal; 0: none
	change atomic.Pointer[func(*http.Response) error] // of an answer
}

// newStorage starts the server with the seed in a bucket, and makes it the store of the installation.
func newStorage(t *testing.T, w *world) *storage {
	t.Helper()
	s := &storage{server: s3test.Versity(t)}
	target := &url.URL{Scheme: "http", Host: s.server.Address}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = r.In.Host }, // the signature covers the host
		ModifyResponse: func(r *http.Response) error {
			if change := s.change.Load(); change != nil {
				return (*change)(r)
			}
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	s.front = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if refuse := s.refuse.Load(); refuse != nil {
			if status := (*refuse)(r); status > 0 {
				rw.WriteHeader(status)
				return
			}
		}
		proxy.ServeHTTP(rw, r)
	}))
	t.Cleanup(s.front.Close)
	config := s.server.Config(t)
	copySeed(t, filepath.Join(w.dir, "store"), config)
	w.store = fmt.Sprintf("s3://%s/%s?endpoint=%s&region=%s", config.Bucket, config.Prefix, s.front.URL, config.Region)
	w.environment = []string{"AWS_ACCESS_KEY_ID=" + config.AccessKey, "AWS_SECRET_ACCESS_KEY=" + config.SecretKey}
	return s
}

// copySeed puts the objects of a folder into a bucket.
func copySeed(t *testing.T, folder string, config s3blob.Config) {
	t.Helper()
	from := must.Get(dirblob.OpenReadOnly(folder))(t)
	to := s3test.Store(t, config)
	for info, err := range from.List(context.Background(), "") {
		must.Do(t, err)
		o, err := from.Get(context.Background(), info.Key, 1<<28)
		if err == nil {
			_, err = to.Create(context.Background(), info.Key, o.Data)
		}
		must.Do(t, err)
	}
}

// refused makes the proxy refuse requests for a time.
func refused(refuse func(*http.Request) int) func(w *world) func() {
	return func(w *world) func() {
		w.storage.refuse.Store(&refuse)
		return func() { w.storage.refuse.Store(nil) }
	}
}

// changed makes the proxy change answers for a time.
func changed(change func(*http.Response) error) func(w *world) func() {
	return func(w *world) func() {
		w.storage.change.Store(&change)
		return func() { w.storage.change.Store(nil) }
	}
}

func writes(r *http.Request) bool { return r.Method == http.MethodPut || r.Method == http.MethodDelete }

// tell sends inline commands to Redis.
func (w *world) tell(commands ...string) {
	w.t.Helper()
	conn := must.Get(net.Dial("tcp", w.redis.Address))(w.t)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	fmt.Fprint(conn, strings.Join(append(commands, "QUIT"), "\r\n")+"\r\n")
	_, _ = io.Copy(io.Discard, conn)
}

// told sends commands that make a fault, and those that end it.
func told(hurt, heal string) func(w *world) func() {
	return func(w *world) func() {
		w.tell(hurt)
		return func() { w.tell(heal) }
	}
}

// liar answers every request of Redis with something else.
func liar(w *world) func() {
	w.redis.Kill()
	l := must.Get(net.Listen("tcp", w.redis.Address))(w.t)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for buffer := make([]byte, 4096); ; {
					if _, err := conn.Read(buffer); err != nil {
						return
					}
					_, _ = conn.Write([]byte("*3\r\n:-1\r\n$-1\r\n*2000000000\r\n"))
				}
			}()
		}
	}()
	return func() { _ = l.Close(); w.redis.Start(w.t) }
}

// servers is the part of the matrix about servers beside gridcast.
func servers() []cell {
	cells := []cell{
		{fault: "killed", hurt: func(w *world) func() {
			w.storage.server.Stop()
			return func() { w.storage.server.Start(w.t) }
		}},
		{fault: "slow", hurt: refused(func(*http.Request) int { time.Sleep(400 * time.Millisecond); return 0 })},
		{fault: "stopped", hurt: func(w *world) func() {
			again := make(chan struct{}) // the server notices no client that leaves before its body is read
			end := refused(func(*http.Request) int { <-again; return http.StatusServiceUnavailable })(w)
			return func() { end(); close(again) }
		}},
		{fault: "answers 503", hurt: refused(func(*http.Request) int { return http.StatusServiceUnavailable })},
		{fault: "full disk", hurt: refused(func(r *http.Request) int {
			if r.Method == http.MethodPut {
				return http.StatusInsufficientStorage
			}
			return 0
		})},
		{fault: "read-only", hurt: refused(func(r *http.Request) int {
			if writes(r) {
				return http.StatusForbidden
			}
			return 0
		})},
		{fault: "no descriptors", hurt: refused(func(*http.Request) int { panic(http.ErrAbortHandler) })},
		{fault: "lying: a bit of every body", hurt: changed(func(r *http.Response) error {
			body, err := io.ReadAll(r.Body)
			if err == nil && len(body) > 0 && r.Request.Method == http.MethodGet {
				body[len(body)/2] ^= 4
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			return err
		})},
		{fault: "lying: writes fail that were done", hurt: changed(func(r *http.Response) error {
			if writes(r.Request) {
				r.StatusCode, r.Status = http.StatusInternalServerError, "500 Internal Server Error"
			}
			return nil
		})},
		{fault: "clock an hour ahead", hurt: changed(func(r *http.Response) error {
			r.Header.Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
			return nil
		})},
	}
	for i := range cells {
		cells[i].subject, cells[i].s3 = "S3", true
	}
	ofRedis := []cell{
		{fault: "killed", hurt: func(w *world) func() {
			w.redis.Kill()
			return func() { w.redis.Start(w.t) }
		}},
		{fault: "stopped", hurt: func(w *world) func() {
			w.redis.Signal(w.t, syscall.SIGSTOP)
			return func() { w.redis.Signal(w.t, syscall.SIGCONT) }
		}},
		{fault: "slow", hurt: told("CLIENT PAUSE 1500", "PING")},
		{fault: "lying", hurt: liar},
		{fault: "corrupt: counters of another type", hurt: func(w *world) func() {
			w.tell(`EVAL "for _,k in ipairs(redis.call('KEYS','*')) do redis.call('DEL',k) redis.call('SADD',k,'x') end" 0`)
			return func() { w.tell("FLUSHALL") }
		}},
		{fault: "full disk", hurt: told("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0")},
		{fault: "read-only", hurt: told("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE")},
		{fault: "no descriptors", hurt: func(w *world) func() {
			w.tell("CONFIG SET maxclients 1", "CLIENT KILL TYPE normal SKIPME yes")
			return func() { // a client that waits for its turn
				w.redis.Kill()
				w.redis.Start(w.t)
			}
		}},
	}
	for i := range ofRedis {
		ofRedis[i].subject, ofRedis[i].redis = "Redis", true
	}
	return append(cells, ofRedis...)
}
