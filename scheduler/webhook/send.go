package webhook

import (
	"bytes"
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"gridcast/snapshots/blob/chain"
	"gridcast/snapshots/retry"
)

// SecretPrefix begins every secret, so that scanners can find one that leaks.
const SecretPrefix = "whsec_"

// MinMaster is the shortest allowed master, in bytes.
const MinMaster = 32

// attemptTime bounds an attempt, from the look-up of the name to the end of the answer's header.
// Standard Webhooks recommends 15 to 30 seconds.
const attemptTime = 15 * time.Second

// maxHeader is the number of bytes that are read of an answer's header. The body is not read.
const maxHeader = 16 << 10

// ErrForbidden means that a webhook must not send to an address.
var ErrForbidden = errors.New("forbidden address")

// ErrNoMaster means that there is no master to derive secrets from.
var ErrNoMaster = errors.New("there is no master for the secrets of webhooks; make one with " +
	"(umask 077; openssl rand -base64 32 >FILE), and say where it is with --webhook-master-file FILE, here and to every scheduler")

// Sender signs messages and sends them, only to addresses of the public internet. The check uses
// the dialled address, so neither a name that points inwards nor a name that changes
// between two look-ups gets past it. It follows no redirect and uses no proxy. It is safe for
// concurrent use.
type Sender struct {
	master   []byte // empty: the Sender cannot sign
	name     string // of the master
	loopback bool
	client   *http.Client
}

// SenderOptions configure a Sender; the zero value is for a service without webhooks.
type SenderOptions struct {
	// Master is the source of all secrets: at least MinMaster bytes that nobody can
	// guess. Empty: the Sender cannot sign.
	Master []byte

	// InsecureLoopback lets webhooks go to this machine itself, also without TLS and at any port.
	// It is for tests and demonstrations: an operator who adds a webhook can then reach every service
	// that trusts its own machine.
	InsecureLoopback bool

	// Resolver looks names up; nil: the machine's own.
	Resolver *net.Resolver
	// TLS is for receivers with a certificate authority of their own; nil: the authorities that
	// the machine trusts.
	TLS *tls.Config
	// Transport answers requests in place of the network, without the check of addresses; nil: the guarded dialler.
	// Only tests set it.
	Transport http.RoundTripper
}

// ReadMaster reads a master from a file; without a name it returns no master.
func ReadMaster(file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the master of webhooks: there is no %s; make one with (umask 077; openssl rand -base64 32 >%s)", file, file)
	}
	if err != nil {
		return nil, fmt.Errorf("read the master of webhooks: %w", err)
	}
	master := bytes.TrimSpace(data)
	if len(master) < MinMaster {
		return nil, fmt.Errorf("read the master of webhooks: %s holds %d bytes, want at least %d", file, len(master), MinMaster)
	}
	return master, nil
}

// NewSender returns a sender.
func NewSender(o SenderOptions) (*Sender, error) {
	if n := len(o.Master); n > 0 && n < MinMaster {
		return nil, fmt.Errorf("the master of webhooks has %d bytes, want at least %d", n, MinMaster)
	}
	s := &Sender{master: o.Master, loopback: o.InsecureLoopback}
	if len(s.master) > 0 {
		s.name = hex.EncodeToString(s.derive("name of the master")[:6])
	}
	// Go calls Control with each resolved address that it dials; after
	// that there is no further look-up.
	dialer := &net.Dialer{Resolver: o.Resolver, Control: func(network, address string, _ syscall.RawConn) error {
		return s.checkDial(network, address)
	}}
	if o.Transport == nil {
		o.Transport = &http.Transport{
			Proxy:                  nil, // also not the proxy of the environment, which would dial for us
			DialContext:            dialer.DialContext,
			TLSClientConfig:        o.TLS,
			DisableKeepAlives:      true, // so that each attempt dials, and is checked
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxHeader,
		}
	}
	s.client = &http.Client{
		Timeout:       attemptTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     o.Transport,
	}
	return s, nil
}

// outside refuses every address outside the public internet, by the special-purpose
// registries of IANA: loopback, private, shared (100.64/10), link-local, multicast, unspecified,
// documentation, benchmark, 6to4, Teredo; and all of IPv6 that is no global unicast, with IPv4 mapped
// into it and NAT64. Azure's machines reach the service with their credentials under 168.63.129.16, which no
// registry lists.
var outside = ssrf.New(ssrf.WithAnyPort(), ssrf.WithDeniedV4Prefixes(netip.MustParsePrefix("168.63.129.16/32")))

// checkDial refuses an address that is about to be dialled.
func (s *Sender) checkDial(network, address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s", ErrForbidden, address)
	}
	if s.loopback && at.Addr().Unmap().IsLoopback() {
		return nil
	}
	if !allowedPort(at.Port()) {
		return fmt.Errorf("%w: port %d, want 443 or one from 1024 on", ErrForbidden, at.Port())
	}
	if err := outside.Safe(network, address, nil); err != nil {
		return fmt.Errorf("%w: %s is not of the public internet", ErrForbidden, at.Addr())
	}
	return nil
}

// allowedPort: 443 for receivers behind a proxy, or a port that needs no
// rights. Below 1024 are mail, shells and name servers, and no receivers.
func allowedPort(port uint16) bool { return port == 443 || port >= 1024 }

// maxURL is the longest address, in bytes.
const maxURL = 500

// CheckURL returns the fault of a receiver's address without
// looking up its name; each dial checks the resolved address.
func (s *Sender) CheckURL(address string) error {
	if fault := s.fault(address); fault != "" {
		return fmt.Errorf("%w %q: %s", ErrForbidden, address, fault)
	}
	return nil
}

// fault is the text of CheckURL without the address, which may hold a token; empty: the address is allowed.
func (s *Sender) fault(address string) string {
	u, err := url.Parse(address)
	if err != nil || len(address) > maxURL {
		return fmt.Sprintf("must be a URL of at most %d bytes", maxURL)
	}
	if strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "may hold only printable ASCII characters"
	}
	host := u.Hostname()
	ip, ipErr := netip.ParseAddr(host)
	local := s.loopback && (host == "localhost" || ipErr == nil && ip.Unmap().IsLoopback())
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	number, portErr := strconv.ParseUint(port, 10, 16)
	switch {
	case u.Scheme != "https" && (!local || u.Scheme != "http"):
		return "must begin with https://"
	case u.User != nil:
		return "must not hold a name or a password: the signature says who sends"
	case u.Fragment != "" || strings.HasSuffix(address, "#"):
		return "must not have a fragment"
	case host == "":
		return "names no host"
	case local && portErr == nil:
		return ""
	case portErr != nil || !allowedPort(uint16(number)):
		return "the port must be 443 or one from 1024 on"
	case ipErr == nil && outside.SafeAddr(ip) != nil:
		return "is not of the public internet"
	}
	return ""
}

// derive derives a key from the master, for one purpose.
func (s *Sender) derive(purpose string) []byte {
	key, err := hkdf.Key(sha256.New, s.master, nil, "gridcast webhook "+purpose, sha256.Size)
	if err != nil {
		panic("BUG: derive a secret: " + err.Error())
	}
	return key
}

// Master names the master without revealing it; empty: there is none. A hook records the name of its
// master, so that a scheduler with another master does not sign wrongly.
func (s *Sender) Master() string { return s.name }

// secret returns the secret of a generation of a hook.
func (s *Sender) secret(id string, generation int) []byte {
	return s.derive(fmt.Sprintf("secret of %s, generation %d", id, generation))
}

// Secret returns the receiver's secret, in the spelling of Standard Webhooks.
func (s *Sender) Secret(h Hook) (string, error) {
	if len(s.master) == 0 {
		return "", ErrNoMaster
	}
	return SecretPrefix + base64.StdEncoding.EncodeToString(s.secret(h.ID, h.Generation)), nil
}

// signature returns the header of that name. During the grace of a rotation the previous secret signs too.
func (s *Sender) signature(h Hook, id string, at time.Time, body []byte) string {
	generations := []int{h.Generation}
	if at.Before(h.OldUntil) && h.Generation > 1 {
		generations = append(generations, h.Generation-1)
	}
	all := make([]string, 0, len(generations))
	for _, generation := range generations {
		mac := hmac.New(sha256.New, s.secret(h.ID, generation))
		mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
		mac.Write(body)
		all = append(all, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(all, " ")
}

// Outcome is the outcome of an attempt, for metrics and people.
type Outcome string

// The outcomes.
const (
	Delivered   Outcome = "delivered"   // answered with 2xx
	Refused     Outcome = "refused"     // answered with another status, redirects included
	Gone        Outcome = "gone"        // answered with 410: the receiver wants nothing any more
	TimedOut    Outcome = "timed_out"   // no answer within 15 seconds
	Unreachable Outcome = "unreachable" // no connection, no TLS, or no answer that is HTTP
	Forbidden   Outcome = "forbidden"   // its name points to a forbidden address
)

var outcomes = []Outcome{Delivered, Refused, Gone, TimedOut, Unreachable, Forbidden}

// maxDetail limits the error of an attempt in a hook's log, in bytes.
const maxDetail = 200

// answer is the receiver's answer to a message.
type answer struct {
	outcome    Outcome
	status     int           // of HTTP; 0: no answer
	retryAfter time.Duration // the receiver's wish; 0: none
	detail     string        // of a failure, for people: without secrets, and without the receiver's text
}

// send makes one attempt.
func (s *Sender) send(ctx context.Context, h Hook, id string, body []byte) answer {
	if fault := s.fault(h.URL); fault != "" {
		return answer{outcome: Forbidden, detail: ErrForbidden.Error() + ": " + fault}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return answer{outcome: Forbidden, detail: err.Error()}
	}
	now := time.Now()
	request.GetBody = nil // no second try within an attempt
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "gridcast-webhooks")
	request.Header.Set("Webhook-Id", id)
	request.Header.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
	request.Header.Set("Webhook-Signature", s.signature(h, id, now, body))
	response, err := s.client.Do(request)
	if err != nil {
		var timeout net.Error
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // without the address, which may hold a token
		}
		switch {
		case errors.Is(err, ErrForbidden):
			return answer{outcome: Forbidden, detail: err.Error()}
		case errors.As(err, &timeout) && timeout.Timeout():
			return answer{outcome: TimedOut, detail: fmt.Sprintf("no answer within %s", attemptTime)}
		}
		return answer{outcome: Unreachable, detail: chain.Printable(err.Error(), maxDetail)}
	}
	_ = response.Body.Close() // the body is not read, because the connection is for this one request
	a := answer{outcome: Refused, status: response.StatusCode, detail: "answered " + strconv.Itoa(response.StatusCode)}
	switch {
	case a.status >= 200 && a.status <= 299:
		a.outcome, a.detail = Delivered, ""
	case a.status >= 300 && a.status <= 399:
		a.detail += ": redirects are not followed; add the address that it leads to"
	case a.status == http.StatusGone:
		a.outcome = Gone
	}
	a.retryAfter = retry.After(response.Header, time.Now(), longestWait)
	return a
}
