// Package nginx_test runs the shipped configurations in nginx.
package nginx_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gridcast/deploy/must"
	"gridcast/deploy/nginx/nginxtest"
	"gridcast/snapshots/blob/porttest"
)

// TestBalancers sends the balancer of two edges, of the kit and of compose, each request that it could answer wrongly.
func TestBalancers(t *testing.T) {
	for _, file := range []string{"gridcast.conf", "../compose/nginx.conf"} {
		t.Run(filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file), func(t *testing.T) {
			shipped := must.Get(os.ReadFile(file))(t)
			edges, address := nginxtest.StartEdges(t), porttest.Address(t)
			nginxtest.Start(t, strings.NewReplacer(
				"listen 127.0.0.1:8080;", "listen "+address+";", "listen 8080;", "listen "+address+";",
				"127.0.0.1:8081", edges.Addresses[0], "127.0.0.1:8082", edges.Addresses[1],
				"edge-1:8080", edges.Addresses[0], "edge-2:8080", edges.Addresses[1],
			).Replace(string(shipped)))
			nginxtest.CheckWorlds(t, "http://"+address, edges)
			nginxtest.CheckProxy(t, "http://"+address, edges)
		})
	}
}

// TestTLS checks that plain HTTP answers nothing but ACME challenges and redirects, and that HTTPS passes the
// request on over HTTP/2 with the address of the client.
func TestTLS(t *testing.T) {
	edge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("X-Forwarded-For"))
	}))
	t.Cleanup(edge.Close)
	certified := httptest.NewUnstartedServer(nil) // for its certificate
	certified.StartTLS()
	t.Cleanup(certified.Close)

	files, plain, secure := t.TempDir(), porttest.Address(t), porttest.Address(t)
	for _, parent := range []string{files, filepath.Dir(files)} { // nginx works as another user
		must.Do(t, os.Chmod(parent, 0o755))
	}
	write := func(name string, data []byte) {
		path := filepath.Join(files, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, data, 0o644))
	}
	pair := certified.TLS.Certificates[0]
	key := must.Get(x509.MarshalPKCS8PrivateKey(pair.PrivateKey))(t)
	write("fullchain.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}))
	write("privkey.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	write("acme/.well-known/acme-challenge/token", []byte("proof"))
	shipped := must.Get(os.ReadFile("gridcast-tls.conf"))(t)
	nginxtest.Start(t, strings.NewReplacer(
		"listen 80;", "listen "+plain+";", "listen 443", "listen "+secure, "127.0.0.1:8080", edge.Listener.Addr().String(),
		"/etc/letsencrypt/live/api.example.com", files, "/var/www/acme", filepath.Join(files, "acme"),
	).Replace(string(shipped)))
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	client := &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "example.com"}},
	}
	get := func(url string) (*http.Response, string, error) {
		request := must.Get(http.NewRequest(http.MethodGet, url, nil))(t)
		request.Host = "api.example.com"
		request.Header.Set("X-Forwarded-For", "192.0.2.1") // a client that chooses its address
		response, err := client.Do(request)
		if err != nil {
			return nil, "", err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return response, string(body), err
	}
	must.Until(t, "nginx answers", func() bool { _, _, err := get("https://" + secure + "/"); return err == nil })
	if response, body, err := get("https://" + secure + "/api/v1/standings"); err != nil || response.StatusCode != http.StatusOK || response.ProtoMajor != 2 ||
		response.Header.Get("Strict-Transport-Security") != "max-age=31536000" || body != "127.0.0.1" {
		t.Errorf("HTTPS: got %+v %q, %v; want 200 over HTTP/2 with HSTS, and the address of the client", response, body, err)
	}
	if response, _, err := get("http://" + plain + "/api/v1/standings?year=2024"); err != nil || response.StatusCode != http.StatusMovedPermanently ||
		response.Header.Get("Location") != "https://api.example.com/api/v1/standings?year=2024" {
		t.Errorf("HTTP: got %+v, %v; want a redirect to HTTPS", response, err)
	}
	if response, _, err := get("http://" + plain + "/.well-known/security.txt"); err != nil || response.Header.Get("Location") != "https://api.example.com/.well-known/security.txt" {
		t.Errorf("security.txt: got %+v, %v; want a redirect to HTTPS", response, err)
	}
	if _, body, err := get("http://" + plain + "/.well-known/acme-challenge/token"); err != nil || body != "proof" {
		t.Errorf("ACME: got %q, %v; want the challenge", body, err)
	}
}
