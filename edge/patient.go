package edge

import (
	"errors"
	"log/slog"
	"net"
	"syscall"
	"time"
)

// patient is a listener that goes on after what passes: a client that has left before it was
// accepted, and a system that has run out of descriptors or memory for another connection. To
// the server each of them would be the end.
type patient struct {
	net.Listener
	log *slog.Logger
}

// The pauses after a failure: longer with each in a row.
const (
	firstPause   = 5 * time.Millisecond
	longestPause = time.Second
)

func (p patient) Accept() (net.Conn, error) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		c, err := p.Listener.Accept()
		if err == nil || !passes(err) {
			return c, err
		}
		p.log.Warn("connection not accepted", "err", err, "again_in", pause)
		time.Sleep(pause)
	}
}

func passes(err error) bool {
	for _, errno := range []syscall.Errno{syscall.ECONNABORTED, syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}
