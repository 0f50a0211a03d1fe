package edge_test

import (
	"bufio"
	"io"
	"net/netip"
	"strings"
	"testing"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/edge"
)

func TestClientAddress(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	golden.Table(t, "testdata/clients.txt", func(input string) string {
		peer, forwarded, _ := strings.Cut(input, " | ")
		return edge.Client(netip.MustParseAddr(peer), []byte(forwarded), proxies).String()
	})
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
