package edge

import (
	"bytes"
	"net/netip"
)

// client returns the address that a request came from: that of the connection, or, if it is a
// trusted proxy's, the last address of X-Forwarded-For that is not. What stands before that
// was said by the client itself.
func client(peer netip.Addr, forwardedFor []byte, proxies []netip.Prefix) netip.Addr {
	for trusted(peer, proxies) && len(forwardedFor) > 0 {
		last := forwardedFor
		if comma := bytes.LastIndexByte(forwardedFor, ','); comma >= 0 {
			last, forwardedFor = forwardedFor[comma+1:], forwardedFor[:comma]
		} else {
			forwardedFor = nil
		}
		hop, err := netip.ParseAddr(string(bytes.Trim(last, " \t")))
		if err != nil {
			break // the proxy before which it stands is the last we know
		}
		peer = hop.Unmap()
	}
	return peer
}

func trusted(addr netip.Addr, proxies []netip.Prefix) bool {
	for _, p := range proxies {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
