package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/porttest"
	"gridcast/snapshots/blob/s3test"
)

// command runs a command line in this process and returns its exit status and what it printed.
func command(t testing.TB, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, complaint bytes.Buffer
	status = run(t.Context(), args, &out, &complaint)
	return status, out.String(), complaint.String()
}

// examine runs doctor and returns what it found by check; the exit status has to fit.
func examine(t testing.TB, args ...string) map[string]finding {
	t.Helper()
	status, out, complaint := command(t, append([]string{"doctor", "--json"}, args...)...)
	var findings []finding
	if err := json.Unmarshal([]byte(out), &findings); err != nil {
		t.Fatalf("gridcast doctor %s: %v\n%s%s", strings.Join(args, " "), err, out, complaint)
	}
	want := exitDone
	found := map[string]finding{}
	for _, f := range findings {
		if f.State == problem {
			want = exitFailed
		}
		if was, ok := found[f.Check]; !ok || was.State != problem {
			found[f.Check] = f
		}
	}
	if status != want {
		t.Errorf("gridcast doctor %s: exit status %d, want %d\n%s%s", strings.Join(args, " "), status, want, out, complaint)
	}
	return found
}

// shows holds a finding to its state, its text and what mends it.
func shows(t testing.TB, found map[string]finding, check string, state health, text, mend string) {
	t.Helper()
	f := found[check]
	if f.State != state || !strings.Contains(f.Text, text) || !strings.Contains(f.Mend, mend) {
		t.Errorf("%s: got %+v, want %s, %q, mended by %q", check, f, state, text, mend)
	}
}

// startRedis starts a Redis on a free port and returns its address.
func startRedis(t testing.TB, options ...string) string {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skipf("no redis-server here: %v", err)
	}
	address := porttest.Address(t)
	_, port, _ := strings.Cut(address, ":")
	cmd := exec.Command("redis-server", append([]string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir()}, options...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	eventually(t, "redis accepts", func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return address
}

// TestDoctor sets an installation up on a real S3 server and a real Redis, and breaks one thing
// after the other.
func TestDoctor(t *testing.T) {
	if testing.Short() {
		t.Skip("audits a store a dozen times")
	}
	server := s3test.VersityWithUsers(t)
	s := onServer(t, server)
	redis := startRedis(t)
	policy, err := os.ReadFile("../s3/policy.json")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	free := func(store ...string) []string {
		return []string{"--store", append(store, s.name)[0], "--redis", "redis://" + redis, "--listen", porttest.Address(t), "--admin-listen", porttest.Address(t), "--operator-listen", porttest.Address(t)}
	}
	found := examine(t, free()...)
	for check, state := range map[string]health{
		"configuration": good, "store": good, "rights": good, "create-once": good, "swap": good, "clock": good,
		"version": note, "ledger": note, "keys": problem, "redis": good, "certificate": note, "token": note,
		"port": good, "admin port": good, "operator port": good,
	} {
		if found[check].State != state {
			t.Errorf("a new store: %s: got %+v, want %s", check, found[check], state)
		}
	}
	shows(t, found, "keys", problem, "no key is active", "gridcast keys create")

	if status, out, complaint := command(t, "init", "--json", "--store", s.name, "--redis", "redis://"+redis, "--file", "etc/gridcast.env"); status != exitDone {
		t.Fatalf("init: %d\n%s%s", status, out, complaint)
	}
	if status, out, complaint := command(t, "build", "--model", "grid-frequency", "--store", s.name, "--archive", seasons(t, 2022, 2026)); status != exitDone {
		t.Fatalf("build: %d\n%s%s", status, out, complaint)
	}
	found = examine(t, free()...)
	for check, f := range found {
		if f.State == problem {
			t.Errorf("after init and build: %s: %+v", check, f)
		}
	}
	shows(t, found, "ledger", good, "real, audited", "")
	shows(t, found, "keys", good, "1 active", "")

	t.Run("rights", func(t *testing.T) {
		server.AddUser(t, "edge", "secret-of-edges")
		server.AddUser(t, "scheduler", "secret-of-schedulers")
		c := server.Config(t)
		c.Bucket = "bucket-1"
		s3test.SetPolicy(t, c, strings.ReplaceAll(string(policy), "BUCKET", c.Bucket))

		t.Setenv("AWS_ACCESS_KEY_ID", "edge")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "secret-of-edges")
		found := examine(t, append(free(), "edge")...)
		shows(t, found, "store", good, "can be read", "")
		shows(t, found, "rights", good, "reader", "")
		shows(t, found, "version", good, "version 1", "")
		shows(t, examine(t, append(free(), "scheduler")...), "rights", problem, "may read, but not write", "AWS_ACCESS_KEY_ID")

		t.Setenv("AWS_ACCESS_KEY_ID", "scheduler")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "secret-of-schedulers")
		found = examine(t, append(free(), "scheduler")...)
		for _, check := range []string{"rights", "create-once", "swap", "ledger"} {
			shows(t, found, check, good, "", "")
		}
		t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
		shows(t, examine(t, free()...), "store", problem, "credentials are refused", "AWS_ACCESS_KEY_ID")
	})
	t.Run("conditions", func(t *testing.T) {
		for header, check := range map[string]string{"If-None-Match": "create-once", "If-Match": "swap"} {
			lying := strings.Replace(s.name, "http://"+server.Address, s3test.Forgetful(t, server, header), 1)
			shows(t, examine(t, append(free(), "--store", lying)...), check, problem, header, "")
		}
		for info, err := range s.List(t.Context(), blob.ProbeFolder) {
			t.Errorf("left behind: %s, %v", info.Key, err)
		}
	})
	t.Run("store", func(t *testing.T) {
		shows(t, examine(t, "--store", strings.Replace(s.name, "s3://bucket-", "s3://nobody-made-", 1)), "store", problem, "bucket does not exist", "create-bucket --bucket nobody-made-1")
		if err := os.Symlink("/missing/disk", "link"); err != nil {
			t.Fatal(err)
		}
		shows(t, examine(t, "--store", "dir:link"), "store", problem, "disk mounted", "ls -ld link")
	})
	t.Run("redis", func(t *testing.T) {
		shows(t, examine(t, append(free("dir:new"), "--redis", "redis://127.0.0.1:1")...), "redis", problem, "refused", "redis-cli -h 127.0.0.1 -p 1 ping")
		shows(t, examine(t, append(free("dir:new"), "--redis", "redis://edge:wrong@"+redis)...), "redis", problem, "WRONGPASS", "redis-cli")
		shows(t, examine(t, append(free("dir:new"), "--redis", "http://x")...), "redis", problem, "want a URL", "")
	})
	t.Run("certificate", func(t *testing.T) {
		pair := func(name string, until time.Duration) []string {
			writeCertificate(t, name, until)
			return append(free("dir:new"), "--tls-cert", name+".crt", "--tls-key", name+".key")
		}
		shows(t, examine(t, pair("good.example", 90*24*time.Hour)...), "certificate", good, "good.example", "")
		shows(t, examine(t, pair("soon.example", 24*time.Hour)...), "certificate", note, "expires", "certbot renew")
		shows(t, examine(t, pair("old.example", -time.Minute)...), "certificate", problem, "expired", "certbot renew")
		shows(t, examine(t, append(free("dir:new"), "--tls-cert", "good.example.crt", "--tls-key", "old.example.key")...), "certificate", problem, "private key does not match", "openssl x509")
	})
	t.Run("machine", func(t *testing.T) {
		taken, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer taken.Close()
		go func() {
			for {
				c, err := taken.Accept()
				if err != nil {
					return
				}
				_ = c.Close()
			}
		}()
		shows(t, examine(t, append(free("dir:new"), "--listen", taken.Addr().String())...), "port", problem, "another program", "ss -ltnp")
		shows(t, examine(t, append(free("dir:new"), "--listen", "here")...), "configuration", problem, "want host:port", "--help")
		if err := os.WriteFile("token", []byte("0123456789abcdef0123456789abcdef\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		shows(t, examine(t, append(free("dir:new"), "--operator-token-file", "token")...), "token", problem, "others on this machine", "chmod 600")
		t.Setenv("GRIDCAST_RACE_CLOCK", "2024-07-01T12:00:00Z@2024-07-01T12:00:00Z*1")
		shows(t, examine(t, free()...), "ledger", problem, "only the other kind", "unset GRIDCAST_RACE_CLOCK")
	})
	t.Run("damage", func(t *testing.T) {
		object, err := s.Get(t.Context(), "ledger/00000001.json", blob.MaxDocument)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Swap(t.Context(), "ledger/00000001.json", object.Tag, bytes.Replace(object.Data, []byte("real"), []byte("rael"), 1)); err != nil {
			t.Fatal(err)
		}
		shows(t, examine(t, free()...), "ledger", problem, "", "gridcast ledger audit")
	})
}

// writeCertificate writes NAME.crt and NAME.key, valid from an hour ago for so long from now.
func writeCertificate(t testing.TB, name string, until time.Duration) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(until),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{name + ".crt": {Type: "CERTIFICATE", Bytes: certificate}, name + ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
