package edge_test

import (
	"net/netip"
	"strings"
	"testing"

	"gridcast/deploy/golden"
	"gridcast/edge"
)

func TestClientAddress(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	golden.Table(t, "testdata/clients.txt", func(input string) string {
		peer, forwarded, _ := strings.Cut(input, " | ")
		return edge.Client(netip.MustParseAddr(peer), []byte(forwarded), proxies).String()
	})
}
