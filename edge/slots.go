package edge

import (
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"gridcast/edge/keys"
)

// slots bounds the simultaneous downloads, so that the rest of the process has descriptors too. A key, and an
// address, can hold only a share of them. When all are in use, the slowest transfer loses its slot to the
// next one, because a client that does not read must not keep others waiting.
type slots struct {
	most    int           // downloads at once
	slowest int64         // rate, in bytes a second, of the slowest client that gets a whole file
	patient time.Duration // a client may be so far behind that rate

	mu      sync.Mutex // guards sending
	sending []*openFile
}

const (
	mostSending   = 64
	slowestClient = 8 << 10
	// A key can hold one slot in eight, and an address twice that number, because several clients may share it.
	keysAtLeast      = 8
	addressesAtLeast = 4
	// settled is the age at which the rate of a transfer tells something about its client.
	settled = time.Second
)

// recipient is the client of a download.
type recipient struct {
	key     *keys.Usage // outlives a change of the key
	address netip.Addr
	conn    *connection
}

// openFile is a file that the goroutine of its request is sending.
type openFile struct {
	file  *os.File
	size  int
	to    recipient
	slots *slots
	began time.Time

	// The mutex of slots guards the following fields.
	read    int64 // bytes
	taken   int64 // bytes that the connection has accepted
	evicted bool
}

// take gives the file a slot, or returns false.
func (s *slots) take(f *openFile) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ofKey, ofAddress int
	var slowest *openFile
	for _, other := range s.sending {
		if other.to.key == f.to.key {
			ofKey++
		}
		if other.to.address == f.to.address {
			ofAddress++
		}
		if f.began.Sub(other.began) >= settled && (slowest == nil || other.rate(f.began) < slowest.rate(f.began)) {
			slowest = other
		}
	}
	if ofKey >= max(1, s.most/keysAtLeast) || ofAddress >= max(1, s.most/addressesAtLeast) {
		return false
	}
	if len(s.sending) >= s.most {
		if slowest == nil {
			return false
		}
		slowest.evicted = true
		_ = slowest.to.conn.Conn.SetWriteDeadline(f.began) // fails only if the connection is closed
		s.remove(slowest)
	}
	s.sending = append(s.sending, f)
	return true
}

// rate returns the mean rate of the transfer until now, in bytes a second.
func (f *openFile) rate(now time.Time) float64 { return float64(f.taken) / now.Sub(f.began).Seconds() }

func (s *slots) remove(f *openFile) {
	s.sending = slices.DeleteFunc(s.sending, func(other *openFile) bool { return other == f })
}

// release gives back the slot of a file, unless the file was evicted.
func (s *slots) release(f *openFile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(f)
}

// Read implements io.Reader. By then the connection has accepted all earlier bytes.
func (f *openFile) Read(p []byte) (int, error) {
	n, err := f.file.Read(p)
	if extendErr := f.slots.extend(f, n); extendErr != nil {
		return 0, extendErr
	}
	return n, err
}

// extend sets the deadline of the connection in proportion to the bytes that it has accepted, and to the next
// ones. The server's own deadline is for short answers.
func (s *slots) extend(f *openFile, next int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.evicted {
		return errBusy
	}
	f.taken, f.read = f.read, f.read+int64(next)
	return f.to.conn.setWriteDeadline(f.began.Add(s.patient + time.Duration(f.read)*time.Second/time.Duration(s.slowest)))
}

// Close implements io.Closer.
func (f *openFile) Close() error {
	f.slots.release(f)
	if f.to.key != nil {
		f.to.key.Sent(f.read)
	}
	return f.file.Close()
}
