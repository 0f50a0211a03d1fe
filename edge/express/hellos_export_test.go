package express

import "net/netip"

// Hellos are waiting ClientHellos of connections without a socket.
type Hellos struct{ hellos }

func (h *Hellos) Add(address netip.Addr) bool { return h.add(&conn{peer: address}) }

func (h *Hellos) Next() (netip.Addr, bool) {
	c := h.next()
	if c == nil {
		return netip.Addr{}, false
	}
	return c.peer, true
}

// Known returns the number of addresses in memory.
func (h *Hellos) Known() int { return len(h.latest) }
