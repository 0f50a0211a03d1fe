package express

import (
	"maps"
	"net/netip"
	"slices"
)

// hellos are the connections of a loop that wait for the answer to their ClientHello. The loop answers them in
// rounds, in each round one of every address, so that an address with thousands of them delays only itself.
type hellos struct {
	waiting []*conn // busy, oldest first
	round   uint64  // of the latest answer
	latest  map[netip.Addr]uint64
}

// maxHellos is the number of ClientHellos of one address that may wait: about as many as the kernel lets wait
// to be accepted, so that a crowd behind one address gets in.
const maxHellos = 4096

// add puts a connection into the first round without one of its address. It reports false if too many of
// them wait.
func (h *hellos) add(c *conn) bool {
	switch {
	case h.latest == nil:
		h.latest = map[netip.Addr]uint64{}
	case len(h.waiting) == 0:
		clear(h.latest)
	}
	address := c.peer
	if address.Is6() && !address.Is4In6() {
		prefix, _ := address.Prefix(64) // the client can choose the rest
		address = prefix.Addr()
	}
	round := max(h.latest[address], h.round) + 1
	if round > h.round+maxHellos {
		return false
	}
	if len(h.latest) > 2*len(h.waiting)+maxHellos {
		maps.DeleteFunc(h.latest, func(_ netip.Addr, round uint64) bool { return round <= h.round })
	}
	c.round, h.latest[address] = round, round
	h.waiting = append(h.waiting, c)
	return true
}

// next removes the oldest connection of the first round, and returns nil if none waits.
func (h *hellos) next() *conn {
	if len(h.waiting) == 0 {
		return nil
	}
	first := 0
	for i, c := range h.waiting {
		if c.round < h.waiting[first].round {
			first = i
		}
	}
	c := h.waiting[first]
	h.waiting = slices.Delete(h.waiting, first, first+1)
	h.round = c.round
	return c
}
