package s3test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7/pkg/signer"

	"gridcast/snapshots/blob/s3blob"
)

// VersityWithUsers is Versity with users besides the owner: see AddUser.
func VersityWithUsers(t testing.TB) *Server {
	t.Helper()
	return Versity(t, "--iam-dir", t.TempDir())
}

// AddUser makes a user without rights; the policy of a bucket gives them.
func (s *Server) AddUser(t testing.TB, access, secret string) {
	t.Helper()
	output, err := exec.Command(s.binary, "admin", "--access", AccessKey, "--secret", SecretKey, "--endpoint-url", "http://"+s.Address,
		"create-user", "--access", access, "--secret", secret, "--role", "user").CombinedOutput()
	if err != nil {
		t.Fatalf("make the user %s: %v\n%s", access, err, output)
	}
}

// SetPolicy sets the rights in a bucket: a document in the form of Amazon S3.
func SetPolicy(t testing.TB, c s3blob.Config, policy string) {
	t.Helper()
	if err := client(t, c).SetBucketPolicy(t.Context(), c.Bucket, policy); err != nil {
		t.Fatalf("set the policy of %s: %v", c.Bucket, err)
	}
}

// Forgetful stands in front of a server, drops a header of every write and signs the request again. It returns
// its endpoint.
func Forgetful(t testing.TB, server *Server, header string) string {
	t.Helper()
	return dropping(t, server, header, func(*http.Request) bool { return true })
}

// Racy stands in front of a server, and drops a header of each write that runs beside another write of the same key. So
// the server honours the condition only when it is asked slowly. Racy returns its endpoint.
func Racy(t testing.TB, server *Server, header string) string {
	t.Helper()
	var mu sync.Mutex
	running := map[string]int{}
	return dropping(t, server, header, func(r *http.Request) bool {
		mu.Lock()
		running[r.URL.Path]++
		mu.Unlock()
		time.Sleep(latency) // others arrive
		mu.Lock()
		defer mu.Unlock()
		beside := running[r.URL.Path] > 1
		context.AfterFunc(r.Context(), func() {
			mu.Lock()
			defer mu.Unlock()
			running[r.URL.Path]--
		})
		return beside
	})
}

// dropping is a proxy that drops a header of the writes that drop chooses, and signs them again.
func dropping(t testing.TB, server *Server, header string, drop func(*http.Request) bool) string {
	t.Helper()
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: server.Address})
		r.Out.Host = r.In.Host
		if r.In.Method == http.MethodPut && drop(r.In) {
			r.Out.Header.Del(header)
			r.Out.Header.Del("Authorization")
			signed := signer.SignV4(*r.Out, AccessKey, SecretKey, "", "us-east-1")
			r.Out.Header = signed.Header
		}
	}}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	return front.URL
}
