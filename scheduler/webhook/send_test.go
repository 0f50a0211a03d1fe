package webhook_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"golang.org/x/net/dns/dnsmessage"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/scheduler/webhook"
	"gridcast/snapshots/blob/memblob"
)

var master = []byte("correct horse battery staple, again and again")

func newSender(t testing.TB, o webhook.SenderOptions) *webhook.Sender {
	t.Helper()
	if o.Master == nil {
		o.Master = master
	}
	return must.Get(webhook.NewSender(o))(t)
}

func TestCheckURL(t *testing.T) {
	strict, loose := newSender(t, webhook.SenderOptions{}), newSender(t, webhook.SenderOptions{InsecureLoopback: true})
	golden.Table(t, "testdata/urls.txt", func(address string) string {
		verdict := func(s *webhook.Sender) string {
			err := s.CheckURL(address)
			must.Hold(t, err == nil || errors.Is(err, webhook.ErrForbidden), "%q: got %v, want %v", address, err, webhook.ErrForbidden)
			if err == nil {
				return "allowed"
			}
			return err.Error()
		}
		return verdict(strict) + "\n" + verdict(loose)
	})
}

// inward holds the ranges that no webhook may reach, from the RFCs and not from the library that refuses them.
var inward = map[string]string{
	"this network": "0.0.0.0/8", "private 10": "10.0.0.0/8", "shared": "100.64.0.0/10", "loopback": "127.0.0.0/8",
	"link-local": "169.254.0.0/16", "private 172": "172.16.0.0/12", "protocol assignments": "192.0.0.0/24",
	"documentation 1": "192.0.2.0/24", "6to4 relay": "192.88.99.0/24", "private 192": "192.168.0.0/16", "benchmark": "198.18.0.0/15",
	"documentation 2": "198.51.100.0/24", "documentation 3": "203.0.113.0/24", "multicast": "224.0.0.0/4", "reserved, broadcast": "240.0.0.0/4",
	"unspecified 6": "::/128", "loopback 6": "::1/128", "IPv4-compatible": "::/96", "IPv4-mapped": "::ffff:0:0/96", "NAT64": "64:ff9b::/96",
	"NAT64, local": "64:ff9b:1::/48", "discard": "100::/64", "Teredo": "2001::/32", "benchmark 6": "2001:2::/48",
	"documentation 6": "2001:db8::/32", "6to4": "2002::/16", "documentation 6, new": "3fff::/20", "segment routing": "5f00::/16",
	"unique local": "fc00::/7", "host service of Azure": "168.63.129.16/32", "link-local 6": "fe80::/10", "site-local": "fec0::/10", "multicast 6": "ff00::/8",
}

// outward holds addresses of the public internet.
var outward = []string{
	"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255",
	"192.169.0.0", "198.17.255.255", "198.20.0.0", "168.63.129.15", "168.63.129.17", "223.255.255.255", "2606:4700:4700::1111", "2a00:1450:4001::1", "2400:cb00::1",
}

func TestAddressesThatAreNotPublicAreRefused(t *testing.T) {
	strict, loose := newSender(t, webhook.SenderOptions{}), newSender(t, webhook.SenderOptions{InsecureLoopback: true})
	refused := func(what string, a netip.Addr) {
		t.Helper()
		network := "tcp4"
		if a.Is6() {
			network = "tcp6"
		}
		address := netip.AddrPortFrom(a, 443).String()
		must.Fail(t, fmt.Sprintf("%s: %s", what, address), strict.CheckDial(network, address), webhook.ErrForbidden)
		err := loose.CheckDial(network, address)
		must.Hold(t, (err == nil) == a.Unmap().IsLoopback(), "%s, with loopback: %s: got %v", what, address, err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for what, text := range inward {
		prefix := netip.MustParsePrefix(text)
		for range 200 {
			raw := prefix.Addr().AsSlice()
			for bit := prefix.Bits(); bit < len(raw)*8; bit++ {
				if random.IntN(2) == 1 {
					raw[bit/8] |= 1 << (7 - bit%8)
				}
			}
			a, _ := netip.AddrFromSlice(raw)
			refused(what, a)
			if a.Is4() { // each of them has spellings in IPv6
				mapped := netip.AddrFrom16(a.As16())
				refused(what+", mapped", mapped)
				nat := [16]byte{0: 0, 1: 0x64, 2: 0xff, 3: 0x9b}
				six := [16]byte{0: 0x20, 1: 0x02}
				copy(nat[12:], raw)
				copy(six[2:], raw)
				refused(what+", NAT64", netip.AddrFrom16(nat))
				refused(what+", 6to4", netip.AddrFrom16(six))
			}
		}
		refused(what, prefix.Addr())
	}
	for _, text := range outward {
		a := netip.MustParseAddr(text)
		network := map[bool]string{true: "tcp6", false: "tcp4"}[a.Is6()]
		for port, want := range map[uint16]bool{443: true, 8443: true, 1024: true, 65535: true, 25: false, 22: false, 80: false, 0: false, 1023: false} {
			err := strict.CheckDial(network, netip.AddrPortFrom(a, port).String())
			must.Hold(t, (err == nil) == want, "%s port %d: got %v, want it allowed: %v", a, port, err, want)
		}
		must.Fail(t, fmt.Sprintf("%s over UDP is allowed", a), strict.CheckDial("udp4", netip.AddrPortFrom(a, 443).String()))
	}
	for _, text := range []string{"", "127.0.0.1", "example.org:443", "[fe80::1%eth0]:443", "127.1:443", "0x7f000001:443"} {
		must.Fail(t, fmt.Sprintf("%q is allowed", text), strict.CheckDial("tcp", text))
	}
}

// FuzzCheckDial compares every address with the classification of net/netip.
func FuzzCheckDial(f *testing.F) {
	f.Add([]byte{127, 0, 0, 1}, uint16(443))
	f.Add(netip.MustParseAddr("::ffff:10.0.0.1").AsSlice(), uint16(443))
	f.Add(netip.MustParseAddr("2002:7f00:1::").AsSlice(), uint16(8443))
	f.Add([]byte{8, 8, 8, 8}, uint16(443))
	strict := newSender(f, webhook.SenderOptions{})
	f.Fuzz(func(t *testing.T, raw []byte, port uint16) {
		a, ok := netip.AddrFromSlice(raw)
		if !ok {
			return
		}
		network := map[bool]string{true: "tcp6", false: "tcp4"}[a.Is6()]
		if err := strict.CheckDial(network, netip.AddrPortFrom(a, port).String()); err != nil {
			return
		}
		plain := a.Unmap()
		if port != 443 && port < 1024 || a.Is4In6() || plain.IsLoopback() || plain.IsPrivate() || plain.IsLinkLocalUnicast() || plain.IsMulticast() || plain.IsUnspecified() || !plain.IsGlobalUnicast() {
			t.Errorf("%s port %d is allowed", a, port)
		}
		for what, text := range inward {
			must.Hold(t, !netip.MustParsePrefix(text).Contains(a), "%s is allowed: %s", a, what)
		}
	})
}

// receiver is a server with a certificate of its own authority, which records the messages.
type receiver struct {
	*httptest.Server
	got    chan delivery
	answer atomic.Pointer[http.HandlerFunc] // nil: 204
}

type delivery struct {
	header http.Header
	body   []byte
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{got: make(chan delivery, 100)}
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.got <- delivery{q.Header.Clone(), body}
		if answer := r.answer.Load(); answer != nil {
			(*answer)(w, q)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answers(f http.HandlerFunc) { r.answer.Store(&f) }

// verify checks a delivery like a receiver, with an independent library.
func (d delivery) verify(secret string) error {
	wh, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return err
	}
	return wh.Verify(d.body, d.header)
}

// trusting is a sender for a receiver at a name, which the resolver points to this machine.
func (r *receiver) trusting(t *testing.T, dns func(name string) []string) *webhook.Sender {
	t.Helper()
	authority := x509.NewCertPool()
	authority.AddCert(r.Certificate())
	config := r.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.RootCAs = authority
	return newSender(t, webhook.SenderOptions{InsecureLoopback: true, TLS: config, Resolver: resolver(t, dns)})
}

// at returns the receiver's address by a name in its certificate.
func (r *receiver) at(path string) string {
	u, _ := url.Parse(r.URL)
	return "https://example.com:" + u.Port() + path
}

// resolver asks a name server in this process.
func resolver(t *testing.T, answer func(name string) []string) *net.Resolver {
	t.Helper()
	server := must.Get(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		packet := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(packet)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(packet[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			q := m.Questions[0]
			m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
			if q.Type == dnsmessage.TypeA {
				for _, text := range answer(strings.TrimSuffix(q.Name.String(), ".")) {
					m.Answers = append(m.Answers, dnsmessage.Resource{
						Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
						Body:   &dnsmessage.AResource{A: netip.MustParseAddr(text).As4()},
					})
				}
			}
			if reply, err := m.Pack(); err == nil {
				_, _ = server.WriteTo(reply, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

func loopback(string) []string { return []string{"127.0.0.1"} }

func newHook(t testing.TB, s *webhook.Sender, address string, endpoints ...string) webhook.Hook {
	t.Helper()
	return must.Get(webhook.New(s, address, endpoints, 0))(t)
}

func secret(t testing.TB, s *webhook.Sender, h webhook.Hook) string {
	t.Helper()
	return must.Get(s.Secret(h))(t)
}

// A name that points elsewhere at the second look-up does not reach the
// inside, because each attempt looks it up again.
func TestRebinding(t *testing.T) {
	r := newReceiver(t)
	var answers atomic.Pointer[[]string]
	answers.Store(&[]string{"127.0.0.1"})
	s := r.trusting(t, func(string) []string { return *answers.Load() })
	h, store := newHook(t, s, r.at("/hook")), memblob.New()
	attempt := func() webhook.Attempt {
		t.Helper()
		return must.Get(webhook.Test(t.Context(), store, s, h))(t)
	}
	if a := attempt(); a.Outcome != webhook.Delivered {
		t.Fatalf("the first time: got %+v", a)
	}
	for _, inside := range [][]string{{"169.254.169.254"}, {"10.0.0.1", "192.168.1.1"}, {"0.0.0.0"}, {"100.64.0.1"}} {
		answers.Store(&inside)
		a := attempt()
		must.Equal(t, "the outcome", webhook.Forbidden, a.Outcome)
		hidden := []string{strings.TrimPrefix(r.URL, "https://127.0.0.1"), ""} // the port
		for _, address := range inside {
			hidden = append(hidden, address, "ADDRESS")
		}
		golden.Sentence(t, "a name that now leads inside", a.Detail, hidden...)
	}
	// In real use this machine is forbidden too, by name and by number.
	real := newSender(t, webhook.SenderOptions{Resolver: resolver(t, loopback)})
	u, _ := url.Parse(r.URL)
	h = newHook(t, real, "https://receiver.example:"+u.Port())
	before := len(r.got)
	a, err := webhook.Test(t.Context(), store, real, h)
	must.Hold(t, err == nil && a.Outcome == webhook.Forbidden, "a name that leads to loopback: got %+v, %v", a, err)
	must.Hold(t, len(r.got) == before, "loopback was reached")
	state, err := webhook.LoadDelivery(t.Context(), store, h)
	must.Hold(t, err == nil && len(state.Attempts) == 1, "the log has %+v, %v; want the one attempt of this hook", state.Attempts, err)
}

func TestWhatReceiversAnswer(t *testing.T) {
	r := newReceiver(t)
	other := newReceiver(t)
	t.Setenv("HTTPS_PROXY", other.URL)
	t.Setenv("ALL_PROXY", other.URL)
	s := r.trusting(t, loopback)
	h, store := newHook(t, s, r.at("/hook?team=1")), memblob.New()
	stopped := make(chan struct{})
	t.Cleanup(func() { close(stopped) })
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		want   webhook.Outcome
		status int
	}{
		{"200", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }, webhook.Delivered, 200},
		{"redirect", func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, other.URL, http.StatusTemporaryRedirect)
		}, webhook.Refused, 307},
		{"404", http.NotFound, webhook.Refused, 404},
		{"gone", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }, webhook.Gone, 410},
		{"a body without an end", func(w http.ResponseWriter, q *http.Request) {
			for q.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 32<<10)); err != nil {
					return
				}
			}
		}, webhook.Delivered, 200},
		{"a header without an end", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("a", 1<<20))
		}, webhook.Unreachable, 0},
		{"no answer that is HTTP", func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = conn.Write([]byte("220 mail\r\n"))
				_ = conn.Close()
			}
		}, webhook.Unreachable, 0},
	} {
		r.answers(tt.answer)
		a, err := webhook.Test(t.Context(), store, s, h)
		must.Hold(t, err == nil && a.Outcome == tt.want && a.Status == tt.status, "%s: got %+v, %v; want %s", tt.name, a, err, tt.want)
		d := <-r.got
		must.Succeed(t, tt.name, d.verify(secret(t, s, h)))
		must.Hide(t, "the detail of "+tt.name, a.Detail, "team")
	}
	must.Hold(t, len(other.got) == 0, "a redirect was followed, or a proxy of the environment asked")
	loose := newSender(t, webhook.SenderOptions{InsecureLoopback: true})
	a, err := webhook.Test(t.Context(), memblob.New(), newSender(t, webhook.SenderOptions{}), newHook(t, loose, "http://localhost/hook?team=1"))
	must.Hold(t, err == nil && a.Outcome == webhook.Forbidden, "an address that is no longer allowed: got %+v, %v", a, err)
	must.Equal(t, "its detail", "forbidden address: must begin with https://", a.Detail)
	state, err := webhook.LoadDelivery(t.Context(), store, h)
	must.Hold(t, err == nil && len(state.Attempts) == 7 && state.Told == 0 && state.Failures == 0,
		"after tests the state is %+v, %v", state, err)
}

// During the grace of a rotation the old signature is sent beside the new one; secrets of other
// hooks, generations and masters verify nothing.
func TestSecrets(t *testing.T) {
	r := newReceiver(t)
	s := r.trusting(t, loopback)
	store := memblob.New()
	h := newHook(t, s, r.at("/"))
	got := func(h webhook.Hook) delivery {
		t.Helper()
		a, err := webhook.Test(t.Context(), store, s, h)
		must.Require(t, err == nil && a.Outcome == webhook.Delivered, "got %+v, %v", a, err)
		return <-r.got
	}
	old := secret(t, s, h)
	raw, ok := strings.CutPrefix(old, "whsec_")
	must.Hold(t, ok && len(raw) == 44, "the secret is %q", old)
	rotated := h
	rotated.Rotate(s, time.Hour)
	fresh := secret(t, s, rotated)
	must.Require(t, fresh != old, "rotated to the same secret")
	d := got(rotated)
	must.Succeed(t, "in the grace", errors.Join(d.verify(old), d.verify(fresh)))
	rotated.OldUntil = time.Now().Add(-time.Second)
	d = got(rotated)
	must.Hold(t, d.verify(old) != nil && d.verify(fresh) == nil, "after the grace the old secret verifies, or the new one does not")
	other := newSender(t, webhook.SenderOptions{Master: bytes.Repeat([]byte("x"), 32)})
	for what, wrong := range map[string]string{"another hook": secret(t, s, newHook(t, s, r.at("/"))), "another master": secret(t, other, rotated)} {
		must.Hold(t, got(rotated).verify(wrong) != nil, "the secret of %s verifies", what)
	}
	spoiled := got(rotated)
	spoiled.body = append(spoiled.body, ' ')
	must.Hold(t, spoiled.verify(fresh) != nil, "another body verifies")

	// A scheduler with another master, or none, signs nothing.
	for _, wrong := range []*webhook.Sender{other, mustSender(t)} {
		must.Fail(t, "signed with another master", must.Err(webhook.Test(t.Context(), store, wrong, h)))
	}
	must.Fail(t, "without a master", must.Err(webhook.New(mustSender(t), "https://example.org", nil, 0)), webhook.ErrNoMaster)
	must.Fail(t, "a master of five bytes is taken", must.Err(webhook.NewSender(webhook.SenderOptions{Master: []byte("short")})))
	moved := h
	moved.Rotate(other, time.Hour)
	if moved.Master != other.Master() || !moved.OldUntil.IsZero() {
		t.Errorf("rotated to another master: %+v, want no grace, since the old secret cannot be made any more", moved)
	}
}

func mustSender(t *testing.T) *webhook.Sender {
	t.Helper()
	return must.Get(webhook.NewSender(webhook.SenderOptions{}))(t)
}

// goldenSecret comes from another implementation of HKDF (RFC 5869).
const goldenSecret = "e0a5d4a0bc48 whsec_UArrGFroyeyBrNu2/K+7atsdoo8WFuSoXLF+PS+ObNE="

// The derivation of a secret never changes, because receivers have theirs.
func TestSecretIsForEver(t *testing.T) {
	s := newSender(t, webhook.SenderOptions{})
	h := webhook.Hook{ID: "whexample", URL: "https://example.org", Generation: 2, Master: s.Master()}
	must.Equal(t, "master and secret", goldenSecret, s.Master()+" "+secret(t, s, h))
}

func TestReadMaster(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	got, err := webhook.ReadMaster(write("good", string(master)+"\n"))
	must.Hold(t, err == nil && slices.Equal(got, master), "got %q, %v", got, err)
	got, err = webhook.ReadMaster("")
	must.Hold(t, got == nil && err == nil, "no file: got %q, %v", got, err)
	for _, path := range []string{write("short", "too short\n"), filepath.Join(dir, "none")} {
		must.Fail(t, fmt.Sprintf("%s is read", path), must.Err(webhook.ReadMaster(path)))
	}
}
