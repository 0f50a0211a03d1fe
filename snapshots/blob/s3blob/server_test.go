package s3blob_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/s3blob"
	"gridcast/snapshots/blob/s3test"
)

// The check finds a server that ignores a condition, and names the condition.
func TestCheckConditions(t *testing.T) {
	server := s3test.Versity(t)
	for _, header := range []string{"If-None-Match", "If-Match"} {
		t.Run(header, func(t *testing.T) {
			config := server.Config(t)
			config.Endpoint = s3test.Forgetful(t, server, header)
			store := s3test.Store(t, config)
			err := store.CheckConditions(t.Context())
			if !errors.Is(err, blob.ErrUnconditional) || !strings.Contains(err.Error(), header+": ") && !strings.Contains(err.Error(), header+" ignored") {
				t.Errorf("got %v, want %v, naming %s", err, blob.ErrUnconditional, header)
			}
			for info := range store.List(t.Context(), "") {
				t.Errorf("the check left %s behind", info.Key)
			}
		})
	}
}

// TestRacyServerIsRefused: a server honours a condition only while no other write of the key runs. A slow look does not
// find that.
func TestRacyServerIsRefused(t *testing.T) {
	server := s3test.Versity(t)
	for _, header := range []string{"If-None-Match", "If-Match"} {
		t.Run(header, func(t *testing.T) {
			config := server.Config(t)
			config.Endpoint = s3test.Racy(t, server, header)
			store := s3test.Store(t, config)
			must.Succeed(t, "one after the other", blob.Probe(t.Context(), store, 0).Err())
			probed := blob.Probe(t.Context(), store, blob.Rounds)
			must.Fail(t, "at once", probed.Race, blob.ErrUnconditional)
			must.Show(t, "the fault", fmt.Sprint(probed.Race), "under load: "+header)
			must.Fail(t, "the first start", store.CheckConditions(t.Context()), blob.ErrUnconditional)
			for info := range store.List(t.Context(), "") {
				t.Errorf("the check left %s behind", info.Key)
			}
			must.Get(store.Create(t.Context(), "used", nil))(t)
			must.Succeed(t, "a later start, which has no time for rounds", store.CheckConditions(t.Context()))
		})
	}
}

func TestTLS(t *testing.T) {
	certificate, key := selfSigned(t)
	server := s3test.Versity(t, "--cert", certificate, "--key", key)
	config := server.Config(t)

	untrusting := must.Get(s3blob.New(config))(t)
	start := time.Now()
	_, err := untrusting.Get(t.Context(), "a", blob.MaxDocument)
	must.Hold(t, errors.As(err, new(x509.UnknownAuthorityError)), "a server of unknown authority: got %v", err)
	if took := time.Since(start); took > 15*time.Second { // other operations have 20 s
		t.Errorf("it took %v to refuse, as if that could change", took)
	}

	config.CA = certificate
	s := s3test.Store(t, config)
	must.Succeed(t, "with the authority given", must.Err(s.Create(t.Context(), "a", []byte("x"))))
}

func TestCAMustBeCertificates(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.pem")
	must.Do(t, os.WriteFile(file, []byte("none"), 0o600))
	for _, path := range []string{file, file + ".missing"} {
		must.Fail(t, fmt.Sprintf("certificates from %s: no error", path), must.Err(s3blob.New(s3blob.Config{Bucket: "data", CA: path})))
	}
}

// selfSigned writes a certificate for 127.0.0.1 and its key, and returns their files.
func selfSigned(t *testing.T) (certificate, key string) {
	t.Helper()
	private := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "gridcast test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	public := must.Get(x509.CreateCertificate(rand.Reader, template, template, private.Public(), private))(t)
	secret := must.Get(x509.MarshalECPrivateKey(private))(t)
	folder := t.TempDir()
	write := func(name, kind string, data []byte) string {
		path := filepath.Join(folder, name)
		must.Do(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600))
		return path
	}
	return write("cert.pem", "CERTIFICATE", public), write("key.pem", "EC PRIVATE KEY", secret)
}

// No test of this package asks a name server. A test could not set this for itself, because a dial of the
// transport may outlive the test and read the variable meanwhile.
func init() {
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("the tests ask no name server")
	}}
}

// With virtual-host addressing the bucket is a part of the host's name.
func TestHostAddressing(t *testing.T) {
	s := must.Get(s3blob.New(s3blob.Config{
		Bucket: "data", Prefix: "live", Endpoint: "http://storage.invalid", Region: "eu-1", Addressing: s3blob.Host,
		AccessKey: "key", SecretKey: "secret", Deadline: time.Second,
	}))(t)
	const want = "http://data.storage.invalid/live/current.json"
	_, err := s.Get(t.Context(), "current.json", blob.MaxDocument)
	must.Show(t, "the error of a host that does not exist", fmt.Sprint(err), want)
}

func TestCredentialsFromTheEnvironment(t *testing.T) {
	server := s3test.Versity(t)
	config := server.Config(t)
	s3test.Store(t, config)
	config.AccessKey, config.SecretKey = "", ""
	noCredentials(t)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	file := filepath.Join(t.TempDir(), "credentials")
	content := "[gridcast]\naws_access_key_id = " + s3test.AccessKey + "\naws_secret_access_key = " + s3test.SecretKey + "\n"
	must.Do(t, os.WriteFile(file, []byte(content), 0o600))
	for name, environment := range map[string]map[string]string{
		"variables": {"AWS_ACCESS_KEY_ID": s3test.AccessKey, "AWS_SECRET_ACCESS_KEY": s3test.SecretKey},
		"file":      {"AWS_SHARED_CREDENTIALS_FILE": file, "AWS_PROFILE": "gridcast"},
		"none":      {},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range environment {
				t.Setenv(variable, value)
			}
			s, err := s3blob.New(config)
			must.Do(t, err)
			_, err = s.Create(t.Context(), name, []byte("x"))
			must.Hold(t, (err == nil) == (len(environment) > 0), "create with these credentials: %v", err)
		})
	}
}

// noCredentials hides those of the caller from the test.
func noCredentials(t *testing.T) {
	t.Helper()
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	for _, variable := range []string{"AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY", "MINIO_ROOT_USER", "MINIO_ACCESS_KEY", "AWS_EC2_METADATA_DISABLED"} {
		t.Setenv(variable, "")
	}
}

func TestMissingBucket(t *testing.T) {
	server := s3test.Versity(t)
	s := must.Get(s3blob.New(server.Config(t)))(t)
	_, err := s.Get(t.Context(), "a", blob.MaxDocument)
	must.Hold(t, errors.Is(err, s3blob.ErrNoBucket) && !errors.Is(err, blob.ErrNotFound),
		"get: got %v, want that the bucket does not exist", err)
}

// Refused credentials are an error that says so: an unknown access key, to which
// this server answers 404, must not look like a missing object.
func TestRefusedCredentials(t *testing.T) {
	server := s3test.Versity(t)
	good := server.Config(t)
	s3test.Store(t, good)
	for name, spoil := range map[string]func(*s3blob.Config){
		"access key": func(c *s3blob.Config) { c.AccessKey = "nobody" },
		"secret":     func(c *s3blob.Config) { c.SecretKey = "wrong" },
	} {
		t.Run(name, func(t *testing.T) {
			config := good
			spoil(&config)
			s := must.Get(s3blob.New(config))(t)
			_, getErr := s.Get(t.Context(), "a", blob.MaxDocument)
			_, createErr := s.Create(t.Context(), "a", []byte("x"))
			_, swapErr := s.Swap(t.Context(), "a", "0123456789abcdef0123456789abcdef", []byte("x"))
			for operation, err := range map[string]error{
				"get": getErr, "create": createErr, "swap": swapErr,
				"delete": s.Delete(t.Context(), "a"), "check": s.CheckConditions(t.Context()),
			} {
				switch {
				case !errors.Is(err, s3blob.ErrCredentials):
					t.Errorf("%s: got %v, want that the credentials are refused", operation, err)
				case errors.Is(err, blob.ErrNotFound), errors.Is(err, blob.ErrConflict), errors.Is(err, blob.ErrUnknown):
					t.Errorf("%s: %v says something about the object", operation, err)
				case strings.Contains(err.Error(), "\n"):
					t.Errorf("%s: more than one line: %v", operation, err)
				}
			}
		})
	}
}

// A request for credentials that got through does not put a write in doubt that was never sent.
func TestCredentialsAreNoWrite(t *testing.T) {
	identity := httptest.NewServer(http.NotFoundHandler()) // it knows no identity
	t.Cleanup(identity.Close)
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", identity.URL)
	noCredentials(t)
	s := must.Get(s3blob.New(s3blob.Config{Bucket: "data", Endpoint: "http://127.0.0.1:1", Region: "eu-1", Deadline: 300 * time.Millisecond}))(t)
	_, err := s.Create(t.Context(), "a", []byte("x"))
	must.Hold(t, err != nil && !errors.Is(err, blob.ErrUnknown), "create without a server: got %v, want an error that leaves no doubt", err)
}

// A Watch after a recent read does not repeat the read, unless its caller knows another tag.
func TestWatchCountsTheReadBefore(t *testing.T) {
	tag, requests := `"one"`, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		w.Header().Set("ETag", tag)
		w.Header().Set("Last-Modified", "Sun, 22 Nov 2026 04:00:00 GMT")
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
		}
	}))
	t.Cleanup(server.Close)
	s := must.Get(s3blob.New(s3blob.Config{
		Bucket: "data", Endpoint: server.URL, Region: "eu-1", AccessKey: "key", SecretKey: "secret", Poll: time.Hour,
	}))(t)
	get := func(read func() (blob.Object, error)) {
		t.Helper()
		o, err := read()
		must.Require(t, err == nil && string(o.Tag) == strings.Trim(tag, `"`), "got tag %s, %v; want %s", o.Tag, err, tag)
	}
	quiet := func(seen blob.Tag) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		before := requests
		_, err := s.Watch(ctx, "a", seen, blob.MaxDocument)
		must.Hold(t, errors.Is(err, context.DeadlineExceeded) && requests <= before,
			"watch of %s: %d requests, %v; want none before the end", seen, requests-before, err)
	}
	get(func() (blob.Object, error) { return s.Watch(t.Context(), "a", "none", blob.MaxDocument) })
	quiet("one")
	tag = `"two"`
	get(func() (blob.Object, error) { return s.Get(t.Context(), "a", blob.MaxDocument) })
	quiet("two")
	get(func() (blob.Object, error) { return s.Watch(t.Context(), "a", "one", blob.MaxDocument) })
	must.Hold(t, requests == 3, "%d requests, want 3", requests)
}
