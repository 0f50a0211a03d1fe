package edge_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gridcast/edge"
)

// overTLS asks the edge for its health on a new connection, and returns the state of that connection.
func (w *world) overTLS(t *testing.T, client *tls.Config) tls.ConnectionState {
	t.Helper()
	c, err := tls.Dial("tcp", w.listener.Addr().String(), client)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request("GET", "/healthz")); err != nil {
		t.Fatal(err)
	}
	if r, err := read(bufio.NewReader(c), "GET"); err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("over TLS: got %v, %v", r.Response, err)
	}
	return c.ConnectionState()
}

// TestTLSReload replaces the certificate under a running edge.
func TestTLSReload(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, cert, key, 1)
	w := newWorld(t, func(c *edge.Config, _ *edge.Deps, _ *setup) { c.TLSCert, c.TLSKey = cert, key })
	serial := func() int64 {
		return w.overTLS(t, &tls.Config{InsecureSkipVerify: true}).PeerCertificates[0].SerialNumber.Int64()
	}
	if got := serial(); got != 1 {
		t.Errorf("got certificate %d, want 1", got)
	}
	if err := os.WriteFile(cert, []byte("half a certif"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := serial(); got != 1 {
		t.Errorf("with a broken file: got certificate %d, want the last good one", got)
	}
	if s := w.edge.Status(); s.Certificate == nil || !s.Certificate.Expiring || time.Until(time.Time(s.Certificate.Expires)) > time.Hour {
		t.Errorf("status: got %+v, want a certificate that ends within the hour", s.Certificate)
	}
	writeCertificate(t, cert, key, 2)
	if got := serial(); got != 2 {
		t.Errorf("got certificate %d, want 2", got)
	}
}

// TestTLSResumption resumes sessions with another edge that has the same certificate, as after a
// restart, with TLS 1.3 alone.
func TestTLSResumption(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, cert, key, 1)
	withTLS := func(c *edge.Config, _ *edge.Deps, _ *setup) { c.TLSCert, c.TLSKey = cert, key }
	first, second := newWorld(t, withTLS), newWorld(t, withTLS)
	for version, want := range map[uint16]bool{tls.VersionTLS13: true, tls.VersionTLS12: false} {
		client := &tls.Config{
			InsecureSkipVerify: true, ServerName: "x", MaxVersion: version, ClientSessionCache: tls.NewLRUClientSessionCache(1),
		}
		for i, w := range []*world{first, second, first} {
			if got := w.overTLS(t, client).DidResume; got != (want && i > 0) {
				t.Errorf("%s, connection %d: resumed %t", tls.VersionName(version), i, got)
			}
		}
	}
}

// TestSessionEndsWithItsCertificate: a client with a session of the old certificate sees the new one, also if
// both have the same private key.
func TestSessionEndsWithItsCertificate(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	private := writeCertificate(t, cert, key, 1)
	w := newWorld(t, func(c *edge.Config, _ *edge.Deps, _ *setup) { c.TLSCert, c.TLSKey = cert, key })
	client := &tls.Config{InsecureSkipVerify: true, ServerName: "x", ClientSessionCache: tls.NewLRUClientSessionCache(1)}
	connect := func() (serial int64, resumed bool) {
		state := w.overTLS(t, client)
		return state.PeerCertificates[0].SerialNumber.Int64(), state.DidResume
	}
	connect()
	if serial, resumed := connect(); serial != 1 || !resumed {
		t.Fatalf("got certificate %d, resumed: %t, want 1, true", serial, resumed)
	}
	writeCertificateOf(t, private, cert, key, 2)
	if serial, resumed := connect(); serial != 2 || resumed {
		t.Errorf("the same private key: got certificate %d, resumed: %t, want 2, false", serial, resumed)
	}
	writeCertificate(t, cert, key, 3)
	if serial, resumed := connect(); serial != 3 || resumed {
		t.Errorf("another private key: got certificate %d, resumed: %t, want 3, false", serial, resumed)
	}
}

func writeCertificate(t testing.TB, certFile, keyFile string, serial int64) *ecdsa.PrivateKey {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	writeCertificateOf(t, private, certFile, keyFile, serial)
	return private
}

func writeCertificateOf(t testing.TB, private *ecdsa.PrivateKey, certFile, keyFile string, serial int64) {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: pkcs8},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		// Files written within one tick of the clock must differ in time.
		at := time.Now().Add(time.Duration(serial) * time.Second)
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
}
