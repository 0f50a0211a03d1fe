// Package s3test starts a real S3 server for tests, built from its own Go module, and puts a
// proxy with seeded faults in front of it.
package s3test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"gridcast/snapshots/blob/porttest"
	"gridcast/snapshots/blob/s3blob"
)

// The credentials of every server in a test.
const (
	AccessKey = "gridcast-test"
	SecretKey = "gridcast-test-secret"
)

// startTime bounds the start of a server.
const startTime = 4 * time.Minute

// Server is an S3 server on a free port of this machine, with an empty folder of its own. It
// ends with the test.
type Server struct {
	Kind    string // "versitygw" or "minio"
	Address string // host:port
	Folder  string // the folder in which versitygw keeps each object as a file; "" for other servers

	binary  string // of versitygw
	tls     bool
	command func() *exec.Cmd
	process *exec.Cmd
	health  string
	buckets atomic.Int64
}

// Versity starts versitygw, and builds it first if necessary. In short mode it
// skips the test instead of building.
func Versity(t testing.TB, arguments ...string) *Server {
	t.Helper()
	binary := versityBinary(t)
	folder := t.TempDir()
	s := &Server{Kind: "versitygw", Address: porttest.Address(t), Folder: folder, binary: binary, health: "/health"}
	for _, argument := range arguments {
		s.tls = s.tls || argument == "--cert"
	}
	s.command = func() *exec.Cmd {
		arguments := append([]string{"--port", s.Address, "--health", s.health, "--quiet", "--keep-alive"}, arguments...)
		cmd := exec.Command(binary, append(arguments, "posix", folder)...)
		cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+AccessKey, "ROOT_SECRET_KEY="+SecretKey)
		return cmd
	}
	s.run(t)
	return s
}

// MinIO starts MinIO, or skips the test if it is not built: see minioBinary.
func MinIO(t testing.TB) *Server {
	t.Helper()
	binary := minioBinary(t)
	folder := t.TempDir()
	s := &Server{Kind: "minio", Address: porttest.Address(t), health: "/minio/health/live"}
	s.command = func() *exec.Cmd {
		cmd := exec.Command(binary, "server", folder, "--address", s.Address)
		cmd.Env = append(os.Environ(), "MINIO_ROOT_USER="+AccessKey, "MINIO_ROOT_PASSWORD="+SecretKey, "MINIO_BROWSER=off")
		return cmd
	}
	s.run(t)
	return s
}

func (s *Server) run(t testing.TB) {
	t.Helper()
	s.Start(t)
	t.Cleanup(func() { s.Stop() })
}

// Start starts the server, with its earlier objects, and waits until it answers.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	var output strings.Builder
	s.process = s.command()
	s.process.Stdout, s.process.Stderr = &output, &output
	// The server must not survive a killed test binary.
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.process.Start(); err != nil {
		t.Fatalf("start %s: %v", s.Kind, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !s.answers(ctx) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.Stop()
			t.Fatalf("%s does not answer after %v: %s", s.Kind, startTime, output.String())
		}
	}
}

// Stop kills the server at once.
func (s *Server) Stop() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Kill()
	_ = s.process.Wait() // the error reports the kill
	s.process = nil
}

// Process returns the process of the server.
func (s *Server) Process() *os.Process { return s.process.Process }

func (s *Server) answers(ctx context.Context) bool {
	if s.tls {
		connection, err := net.Dial("tcp", s.Address)
		if err == nil {
			_ = connection.Close()
		}
		return err == nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Address+s.health, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err == nil {
		_ = response.Body.Close()
	}
	return err == nil && response.StatusCode == http.StatusOK
}

// Config describes a new, empty bucket on the server.
func (s *Server) Config(t testing.TB) s3blob.Config {
	t.Helper()
	scheme := "http://"
	if s.tls {
		scheme = "https://"
	}
	return s3blob.Config{
		Bucket: fmt.Sprintf("bucket-%d", s.buckets.Add(1)), Prefix: "test/gridcast",
		Endpoint: scheme + s.Address, Region: "us-east-1", AccessKey: AccessKey, SecretKey: SecretKey,
	}
}

// Store opens a store, and makes its bucket.
func Store(t testing.TB, c s3blob.Config) *s3blob.Store {
	t.Helper()
	store, err := s3blob.New(c)
	if err != nil {
		t.Fatal(err)
	}
	makeBucket(t, c)
	return store
}

// makeBucket makes the bucket, unless it exists.
func makeBucket(t testing.TB, c s3blob.Config) {
	t.Helper()
	err := client(t, c).MakeBucket(t.Context(), c.Bucket, minio.MakeBucketOptions{Region: c.Region})
	if err != nil && minio.ToErrorResponse(err).Code != minio.BucketAlreadyOwnedByYou {
		t.Fatalf("make bucket %s: %v", c.Bucket, err)
	}
}

// client returns a client for the owner of the server.
func client(t testing.TB, c s3blob.Config) *minio.Client {
	t.Helper()
	options := &minio.Options{Creds: credentials.NewStaticV4(c.AccessKey, c.SecretKey, ""), Region: c.Region}
	if c.CA != "" {
		pem, err := os.ReadFile(c.CA)
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		options.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	}
	host, secure := strings.CutPrefix(c.Endpoint, "https://")
	options.Secure = secure
	client, err := minio.New(strings.TrimPrefix(host, "http://"), options)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// checkout returns the root of the source tree: the folder of the product's go.mod above the test.
func checkout(t testing.TB) string {
	t.Helper()
	folder, err := os.Getwd()
	for err == nil {
		if text, err := os.ReadFile(filepath.Join(folder, "go.mod")); err == nil && strings.HasPrefix(string(text), "module gridcast\n") {
			return folder
		}
		if parent := filepath.Dir(folder); parent != folder {
			folder = parent
			continue
		}
		break
	}
	t.Fatalf("no go.mod above the test: %v", err)
	return ""
}
