package express_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"gridcast/edge/express"
)

// TestHellosTakeTurns: an address with many ClientHellos delays another one by one answer, and only so many
// of its own may wait.
func TestHellosTakeTurns(t *testing.T) {
	names := map[netip.Addr]string{}
	for name, address := range map[string]string{"a": "192.0.2.1", "b": "192.0.2.2", "c": "2001:db8:0:1::1", "C": "2001:db8:0:1:ffff::2", "d": "2001:db8:0:2::1"} {
		names[netip.MustParseAddr(address)] = name
	}
	for _, tt := range []struct{ sent, want string }{
		{"aaab", "abaa"},
		{"aaabb", "ababa"},
		{"cCCd", "cdCC"},
		{"aa.bb.aa..b", "aabbaab"},
		{"aaa...b", "aaab"},
	} {
		var h express.Hellos
		var got strings.Builder
		answer := func() {
			if address, ok := h.Next(); ok {
				got.WriteString(names[address])
			}
		}
		for _, c := range tt.sent {
			if c == '.' {
				answer()
				continue
			}
			for address, name := range names {
				if name == string(c) && !h.Add(address) {
					t.Errorf("%s: %c may not wait", tt.sent, c)
				}
			}
		}
		for range tt.sent {
			answer()
		}
		if got.String() != tt.want {
			t.Errorf("%s: answered %s, want %s", tt.sent, got.String(), tt.want)
		}
	}
	var h express.Hellos
	flood, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	admitted := 0
	for range 10_000 {
		if h.Add(flood) {
			admitted++
		}
	}
	if admitted != 4096 || !h.Add(other) {
		t.Errorf("%d of one address may wait, want 4096, and another address beside them", admitted)
	}
	h.Next()
	if address, _ := h.Next(); address != other {
		t.Errorf("the second answer is for %s, want %s", address, other)
	}
	h = express.Hellos{}
	h.Add(other)
	for i := range 100_000 {
		h.Add(netip.MustParseAddr(fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)))
		h.Next()
	}
	if n := h.Known(); n > 5000 {
		t.Errorf("%d addresses are known", n)
	}
}
