package limit

import (
	"hash/maphash"
	"net/netip"
	"time"
)

// Anonymous counts requests by the client's address. Its size is fixed: addresses with the same slot share a window.
// That is good enough for requests without a valid key, which the counts never refuse, and for the public key of a
// sandbox.
type Anonymous struct {
	perMinute int
	seed      maphash.Seed // secret, so that nobody can choose the window to fill
	slots     []Window
}

// NewAnonymous returns a table of slots, 16 bytes each.
func NewAnonymous(perMinute, slots int) *Anonymous {
	a := &Anonymous{perMinute: perMinute, seed: maphash.MakeSeed(), slots: make([]Window, slots)}
	for i := range a.slots {
		a.slots[i].offset = Offset(uint64(i))
	}
	return a
}

// Take counts one request of the address. Allowed says whether it is within the limit.
func (a *Anonymous) Take(client netip.Addr, now time.Time) Verdict {
	return a.slot(client).Take(now, a.perMinute)
}

// Peek returns the window of the address without counting.
func (a *Anonymous) Peek(client netip.Addr, now time.Time) Verdict {
	return a.slot(client).Peek(now, a.perMinute)
}

// slot uses the first 64 bits of an IPv6 address, because the client can choose the rest.
func (a *Anonymous) slot(client netip.Addr) *Window {
	bytes := client.As16()
	if !client.Is4() && !client.Is4In6() {
		clear(bytes[8:])
	}
	return &a.slots[maphash.Bytes(a.seed, bytes[:])%uint64(len(a.slots))]
}
