//go:build !linux

package express

import "syscall"

// loop does not exist on this system: each connection has a goroutine.
type loop struct{}

func (*Lane) startLoops(syscall.Conn) error { return nil }

func (*loop) end()              {}
func (*loop) adopt(*conn) error { return nil }
func (*loop) watch(*conn)       {}
func (*loop) read(*conn)        {}
func (*loop) forget(*conn)      {}
func (*loop) tell(order)        {}

func (*loop) acquire(conns []*conn, _ func(*conn) bool) []*conn { return conns }

func closeSocket(int, bool) {}

func (*loop) suspend(*conn, *Request, []byte) {}

func receive(int, []byte) (int, bool, error) { panic("BUG: a connection without a loop") }

func arrived(int) bool { panic("BUG: a connection without a loop") }

type vector struct{}

func (vector) send(int, output, bool) (int, error) { panic("BUG: a connection without a loop") }
