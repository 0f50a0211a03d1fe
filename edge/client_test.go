package edge_test

import (
	"bufio"
	"io"
	"net/netip"
	"testing"

	"gridcast/deploy/must"
	"gridcast/edge"
)

func TestClientAddress(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, tt := range []struct{ decision, peer, forwarded, want string }{
		{"a stranger's header is not believed", "203.0.113.9", "198.51.100.1", "203.0.113.9"},
		{"a trusted proxy's is", "10.0.0.1", "198.51.100.1", "198.51.100.1"},
		{"the last address before our proxies counts", "10.0.0.1", "192.0.2.66, 198.51.100.1", "198.51.100.1"},
		{"proxies in a row are passed", "10.0.0.1", "192.0.2.66, 198.51.100.1, 10.9.9.9", "198.51.100.1"},
		{"proxies only", "10.0.0.1", "10.0.0.3", "10.0.0.3"},
		{"no header", "10.0.0.1", "", "10.0.0.1"},
		{"nonsense ends the search", "10.0.0.1", "198.51.100.1, nonsense", "10.0.0.1"},
		{"a port", "10.0.0.1", "198.51.100.1:4711", "198.51.100.1"},
		{"a port of a proxy in a row", "10.0.0.1", "198.51.100.1:80, 10.9.9.9:4711", "198.51.100.1"},
		{"IPv6 with a port", "fd00::1", "[2001:db8::1]:443", "2001:db8::1"},
		{"IPv6 in brackets", "fd00::1", "[2001:db8::1]", "2001:db8::1"},
		{"IPv4 in IPv6 with a port", "fd00::1", "[::ffff:198.51.100.1]:443", "198.51.100.1"},
		{"a port that is none", "10.0.0.1", "198.51.100.1:x", "10.0.0.1"},
		{"a port without an address", "10.0.0.1", ":80", "10.0.0.1"},
		{"a bracket that does not end", "fd00::1", "[2001:db8::1", "fd00::1"},
		{"IPv6", "fd00::1", " 2001:db8::1 ", "2001:db8::1"},
		{"IPv4 in IPv6", "10.0.0.1", "::ffff:198.51.100.1", "198.51.100.1"},
	} {
		t.Run(tt.decision, func(t *testing.T) {
			if got := edge.Client(netip.MustParseAddr(tt.peer), []byte(tt.forwarded), proxies); got.String() != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// TestWindowsBehindAProxy shows that the header reaches the windows, if the proxy is trusted.
func TestWindowsBehindAProxy(t *testing.T) {
	for _, tt := range []struct {
		proxies string
		want    []int // remaining for two clients, one of them twice
	}{
		{"127.0.0.0/8", []int{29, 29, 28}},
		{"10.0.0.0/8", []int{29, 28, 27}},
	} {
		c := newWorld(t, func(c *edge.Config, _ *edge.Deps, _ *setup) {
			c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix(tt.proxies)}
		}).dial()
		reader := bufio.NewReader(c)
		for i, client := range []string{"198.51.100.1", "203.0.113.9", "203.0.113.9"} {
			must.Get(io.WriteString(c, request("GET", "/api/v1/calendar", "X-Forwarded-For: "+client)))(t)
			r := must.Get(read(reader, "GET"))(t)
			if _, remaining, _ := rate(t, r); remaining != tt.want[i] {
				t.Errorf("trusting %s, %s: got %d remaining, want %d", tt.proxies, client, remaining, tt.want[i])
			}
		}
	}
}
