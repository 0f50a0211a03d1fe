package edge_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/edge"
)

// overTLS asks the edge for its health on a new connection, and returns the state of that connection.
func (w *world) overTLS(t *testing.T, client *tls.Config) tls.ConnectionState {
	t.Helper()
	c := must.Get(tls.Dial("tcp", w.listener.Addr().String(), client))(t)
	defer c.Close()
	must.Get(io.WriteString(c, request("GET", "/healthz")))(t)
	r, err := read(bufio.NewReader(c), "GET")
	must.Require(t, err == nil && r.StatusCode == http.StatusOK, "over TLS: got %v, %v", r.Response, err)
	return c.ConnectionState()
}

// TestTLSReload replaces the certificate under a running edge.
func TestTLSReload(t *testing.T) {
	_, cert, key := newCertificate(t)
	var log must.Buffer
	w := newWorld(t, func(c *edge.Config, d *edge.Deps, _ *setup) {
		c.TLSCert, c.TLSKey, d.Log = cert, key, slog.New(slog.NewTextHandler(&log, nil))
	})
	w.awaitSerial(t, 1)
	must.Do(t, os.WriteFile(cert, []byte("half a certif"), 0o600))
	w.await("the broken file is refused", func() bool { return log.Says("certificate not reloaded") })
	w.awaitSerial(t, 1)
	if s := w.edge.Status(); s.Certificate == nil || !s.Certificate.Expiring || time.Until(time.Time(s.Certificate.Expires)) > time.Hour {
		t.Errorf("status: got %+v, want a certificate that ends within the hour", s.Certificate)
	}
	writeCertificate(t, cert, key, 2)
	w.awaitSerial(t, 2)
}

// TestTLSReloadInKubernetes replaces the certificate as Kubernetes does for a mounted secret: by a link to a folder.
func TestTLSReloadInKubernetes(t *testing.T) {
	dir := t.TempDir()
	put := func(serial int64) {
		t.Helper()
		folder := fmt.Sprintf("..%d", serial)
		must.Do(t, os.Mkdir(filepath.Join(dir, folder), 0o700))
		writeCertificate(t, filepath.Join(dir, folder, "tls.crt"), filepath.Join(dir, folder, "tls.key"), serial)
		data := filepath.Join(dir, "..data")
		must.Do(t, errors.Join(os.Symlink(folder, data+"_tmp"), os.Rename(data+"_tmp", data)))
	}
	put(1)
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	must.Do(t, errors.Join(os.Symlink("..data/tls.crt", cert), os.Symlink("..data/tls.key", key)))
	w := newWorld(t, overTLS(cert, key))
	for want := int64(1); want <= 3; want++ {
		w.awaitSerial(t, want)
		put(want + 1)
	}
}

// TestTLSResumption resumes sessions with another edge that has the same certificate, as after a
// restart, with TLS 1.3 alone.
func TestTLSResumption(t *testing.T) {
	_, cert, key := newCertificate(t)
	withTLS := overTLS(cert, key)
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
	private, cert, key := newCertificate(t)
	w := newWorld(t, overTLS(cert, key))
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
	w.awaitSerial(t, 2)
	serial, resumed := connect()
	must.Hold(t, serial == 2 && !resumed, "the same private key: got certificate %d, resumed: %t, want 2, false", serial, resumed)
	writeCertificate(t, cert, key, 3)
	w.awaitSerial(t, 3)
	serial, resumed = connect()
	must.Hold(t, serial == 3 && !resumed, "another private key: got certificate %d, resumed: %t, want 3, false", serial, resumed)
}

// TestTicketsLastADay: no edge accepts a ticket that is older than a day, even if its clock is one period late.
func TestTicketsLastADay(t *testing.T) {
	_, cert, key := newCertificate(t)
	pair := must.Get(tls.LoadX509KeyPair(cert, key))(t)
	keysAt := func(at time.Time) [][32]byte {
		return must.Get(edge.TicketKeys(&pair, at))(t)
	}
	made := keysAt(realNow)[0]
	for after, want := range map[time.Duration]bool{
		-time.Hour: true, time.Minute: true, time.Hour: true, 24 * time.Hour: false, 48 * time.Hour: false, 7 * 24 * time.Hour: false,
	} {
		must.Equal(t, fmt.Sprintf("accepted after %s", after), want, slices.Contains(keysAt(realNow.Add(after)), made))
	}
}

// TestSuites: of TLS 1.2 the edge accepts no suite with CBC or without forward secrecy.
func TestSuites(t *testing.T) {
	_, cert, key := newCertificate(t)
	w := newWorld(t, overTLS(cert, key))
	accepted, strong := 0, regexp.MustCompile(`_ECDHE_.*_(GCM|POLY1305)_`)
	for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		if !slices.Contains(suite.SupportedVersions, tls.VersionTLS12) {
			continue
		}
		c, err := tls.Dial("tcp", w.listener.Addr().String(), &tls.Config{
			InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite.ID},
		})
		if err != nil {
			continue
		}
		_ = c.Close()
		accepted++
		must.Hold(t, strong.MatchString(suite.Name), "the edge accepts %s", suite.Name)
	}
	must.Hold(t, accepted >= 3, "the edge accepts %d suites of TLS 1.2, want those with GCM and ChaCha20", accepted)
}

// newCertificate writes a first certificate into files of a new folder.
func newCertificate(t testing.TB) (private *ecdsa.PrivateKey, cert, key string) {
	t.Helper()
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	return writeCertificate(t, cert, key, 1), cert, key
}

func overTLS(cert, key string) option {
	return func(c *edge.Config, _ *edge.Deps, _ *setup) { c.TLSCert, c.TLSKey = cert, key }
}

// awaitSerial waits until new connections get the certificate with the serial number.
func (w *world) awaitSerial(t *testing.T, want int64) {
	t.Helper()
	w.await(fmt.Sprintf("certificate %d is served", want), func() bool {
		return w.overTLS(t, &tls.Config{InsecureSkipVerify: true}).PeerCertificates[0].SerialNumber.Int64() == want
	})
}

func writeCertificate(t testing.TB, certFile, keyFile string, serial int64) *ecdsa.PrivateKey {
	t.Helper()
	private := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	writeCertificateOf(t, private, certFile, keyFile, serial)
	return private
}

func writeCertificateOf(t testing.TB, private *ecdsa.PrivateKey, certFile, keyFile string, serial int64) {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour)}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, private.Public(), private))(t)
	pkcs8 := must.Get(x509.MarshalPKCS8PrivateKey(private))(t)
	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: pkcs8},
	} {
		must.Do(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
}
