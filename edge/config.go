package edge

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"gridcast/edge/keys"
	"gridcast/snapshots/notes"
)

// Config holds an operator's settings of an edge. The zero value is not valid: begin with
// [DefaultConfig].
type Config struct {
	// Listen is the host:port of the API. It is unused if Deps.Listener is set.
	Listen string
	// AdminListen is the host:port of metrics and profiles; empty: none. The port needs no token,
	// so it belongs on a private address.
	AdminListen string
	// CacheDir is the folder of the edge's own copy of keys and version. The edge
	// starts from it when the storage is down; empty: none. No other process may use the folder.
	CacheDir string

	// Trust are the keys of publishers. The edge then serves only versions that one of them has signed, and
	// keeps the highest number of each key in CacheDir, so it needs one. Empty: any version.
	Trust notes.Trust
	// TrustKeys is the same for the list of API keys.
	TrustKeys notes.Trust
	// Pin is the only version that the edge serves; 0: the current one.
	Pin int64

	// TLSCert and TLSKey are PEM files; both or neither. The edge reads them again when they change.
	TLSCert, TLSKey string
	// TrustedProxies are the networks whose X-Forwarded-For the edge believes.
	TrustedProxies []netip.Prefix

	// StartPage are the endpoints, of Shown, whose data the start page shows to readers without a key.
	StartPage []string

	// Tiers are the requests per minute of the keys.
	Tiers keys.Tiers
	// AnonymousLimit is the limit in the rate headers of a client without a valid key, which is
	// always refused: requests per minute of its address.
	AnonymousLimit int
	// AnonymousSlots is the number of windows of addresses, 16 bytes each.
	AnonymousSlots int

	// ReadTimeout ends a connection if a request does not arrive whole in time.
	ReadTimeout time.Duration
	// WriteTimeout ends a connection that does not accept a response in time.
	WriteTimeout time.Duration
	// IdleTimeout ends a connection without a new request.
	IdleTimeout time.Duration
	// MaxHeaderBytes is the largest size of request line and header: beyond it, 431.
	MaxHeaderBytes int
	// MaxBodyBytes is the largest size of a request body, which no endpoint reads: beyond it, 413.
	MaxBodyBytes int
	// MaxConnections is the number of connections open at once; more wait in the kernel.
	MaxConnections int

	// DrainDelay is the time for which a stopping edge still accepts connections. /readyz
	// already answers 503, so that load balancers notice.
	DrainDelay time.Duration
	// DrainTimeout is the time it then waits for connections to end.
	DrainTimeout time.Duration
}

// DefaultConfig returns the values without configuration.
func DefaultConfig() Config {
	return Config{
		Listen:         "127.0.0.1:8080",
		Tiers:          keys.DefaultTiers(),
		AnonymousLimit: 30,
		AnonymousSlots: 1 << 14,
		ReadTimeout:    10 * time.Second,
		WriteTimeout:   10 * time.Second,
		IdleTimeout:    75 * time.Second,
		MaxHeaderBytes: 8 << 10,
		MaxBodyBytes:   16 << 10,
		MaxConnections: 50_000,
		DrainTimeout:   20 * time.Second,
	}
}

// Validate reports every fault at once.
func (c *Config) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		fault("listen %q: want host:port", c.Listen)
	}
	if _, _, err := net.SplitHostPort(c.AdminListen); err != nil && c.AdminListen != "" {
		fault("admin listen %q: want host:port", c.AdminListen)
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		fault("TLS wants a certificate and a key, got certificate %q and key %q", c.TLSCert, c.TLSKey)
	}
	if c.CacheDir == "" && (!c.Trust.Empty() || !c.TrustKeys.Empty()) {
		fault("trusted keys need a folder for the highest numbers that they have signed: --cache-dir DIR")
	}
	for _, name := range c.StartPage {
		if !slices.Contains(Shown, name) {
			fault("start page %q: want some of %s", name, strings.Join(Shown, ", "))
		}
	}
	if c.Pin < 0 {
		fault("pin %d: want the number of a version", c.Pin)
	}
	for _, p := range c.TrustedProxies {
		if !p.IsValid() {
			fault("trusted proxies: %v is not a network", p)
		}
	}
	if err := c.Tiers.Validate(); err != nil {
		fault("tiers: %w", err)
	}
	for _, bound := range []struct {
		name          string
		got, low, top int
	}{
		{"anonymous limit", c.AnonymousLimit, 1, 1e6},
		{"anonymous slots", c.AnonymousSlots, 1, 1 << 24},
		{"header bytes", c.MaxHeaderBytes, 1 << 10, 1 << 20},
		{"body bytes", c.MaxBodyBytes, 1, 1 << 20},
		{"connections", c.MaxConnections, 1, 1 << 20},
	} {
		if bound.got < bound.low || bound.got > bound.top {
			fault("%s: %d, want %d to %d", bound.name, bound.got, bound.low, bound.top)
		}
	}
	for _, bound := range []struct {
		name     string
		got, low time.Duration
	}{
		{"read timeout", c.ReadTimeout, time.Millisecond},
		{"write timeout", c.WriteTimeout, time.Millisecond},
		{"idle timeout", c.IdleTimeout, time.Millisecond},
		{"drain delay", c.DrainDelay, 0},
		{"drain timeout", c.DrainTimeout, time.Millisecond},
	} {
		if bound.got < bound.low {
			fault("%s: %v, want at least %v", bound.name, bound.got, bound.low)
		}
	}
	return errors.Join(errs...)
}
