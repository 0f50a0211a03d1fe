package express

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls of a request. They never block, so the Go runtime need not know of them:
// telling it would cost a tenth of a microsecond each time. The general calls read and write
// take a longer way through the kernel to the same place.

// inherit sets the options of every connection of a listener: no delay for the end of a response,
// and keep-alive probes for idle clients, as in the net package.
func inherit(listener int) error {
	for _, option := range [][3]int{
		{unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 15},
		{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 15},
		{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 9},
	} {
		if err := unix.SetsockoptInt(listener, option[0], option[1], option[2]); err != nil {
			return fmt.Errorf("set an option of the listener: %w", err)
		}
	}
	return nil
}

// acceptSocket accepts a non-blocking connection, and returns the client's address.
func acceptSocket(listener int) (fd int, peer netip.Addr, err error) {
	var (
		address unix.RawSockaddrAny
		size    = uint32(unix.SizeofSockaddrAny)
	)
	r, _, errno := unix.RawSyscall6(unix.SYS_ACCEPT4, uintptr(listener), uintptr(unsafe.Pointer(&address)), uintptr(unsafe.Pointer(&size)), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0) //nolint:gosec // both outlive the call
	switch errno {
	case 0:
	case unix.EAGAIN:
		return -1, peer, errno
	default:
		return -1, peer, socketError("accept", errno)
	}
	switch address.Addr.Family {
	case unix.AF_INET:
		peer = netip.AddrFrom4((*unix.RawSockaddrInet4)(unsafe.Pointer(&address)).Addr) //nolint:gosec // as the family says
	case unix.AF_INET6:
		peer = netip.AddrFrom16((*unix.RawSockaddrInet6)(unsafe.Pointer(&address)).Addr).Unmap() //nolint:gosec // as the family says
	}
	return int(r), peer, nil
}

// closeSocket closes a connection, and sends the data that the kernel has kept together with the end of
// the stream. A plain close would drop them if unread data have arrived.
func closeSocket(fd int, kept bool) {
	if kept {
		_, _, _ = unix.RawSyscall(unix.SYS_SHUTDOWN, uintptr(fd), unix.SHUT_WR, 0)
	}
	_, _, _ = unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0)
}

// receive reads from a socket; ready says that data had arrived. The end of the stream is io.EOF.
func receive(fd int, p []byte) (n int, ready bool, err error) {
	r, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_DONTWAIT, 0, 0) //nolint:gosec // p outlives the call
	switch {
	case errno == unix.EAGAIN:
		return 0, false, nil
	case errno != 0:
		return 0, true, socketError("receive", errno)
	case r == 0:
		return 0, true, io.EOF
	}
	return int(r), true, nil
}

// arrived reports whether receive would find data.
func arrived(fd int) bool {
	var p [1]byte
	_, _, err := unix.Recvfrom(fd, p[:], unix.MSG_DONTWAIT|unix.MSG_PEEK)
	return !errors.Is(err, unix.EAGAIN)
}

// vector is the kernel's description of data in two places.
type vector struct {
	header unix.Msghdr
	parts  [2]unix.Iovec
}

// send writes as much to a socket as it accepts without waiting. If more data, or the end of the stream,
// follow at once, the kernel keeps the rest of a packet until then: one
// packet less to send and to receive, and one wake-up less.
func (v *vector) send(fd int, out output, more bool) (n int, err error) {
	var (
		flags = uintptr(unix.MSG_DONTWAIT | unix.MSG_NOSIGNAL)
		r     uintptr
		errno syscall.Errno
	)
	if more {
		flags |= unix.MSG_MORE
	}
	switch {
	case out.len() == 0:
		return 0, nil
	case len(out.body) == 0:
		p := unsafe.Pointer(unsafe.SliceData(out.buffer)) //nolint:gosec // it outlives the call
		r, _, errno = unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(p), uintptr(len(out.buffer)), flags, 0, 0)
	default:
		v.parts[0].Base = unsafe.SliceData(out.buffer) //nolint:gosec // as above
		v.parts[1].Base = unsafe.SliceData(out.body)   //nolint:gosec // as above
		v.parts[0].SetLen(len(out.buffer))
		v.parts[1].SetLen(len(out.body))
		v.header.Iov = &v.parts[0]
		v.header.SetIovlen(len(v.parts))
		r, _, errno = unix.RawSyscall6(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&v.header)), flags, 0, 0, 0) //nolint:gosec // as above
	}
	switch errno {
	case 0:
		return int(r), nil
	case unix.EAGAIN:
		return 0, nil
	}
	return 0, socketError("send", errno)
}

func socketError(call string, errno syscall.Errno) error { return fmt.Errorf("%s: %w", call, errno) }
