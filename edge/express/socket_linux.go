package express

import (
	"fmt"
	"io"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls of a request. They never block, so that the runtime need not know of them:
// telling it would cost a tenth of a microsecond each time. The general calls read and write
// take a longer way through the kernel to the same place.

// receive reads from a socket; ready says that there was something to read. The end of the
// stream is io.EOF.
func receive(fd int, p []byte) (n int, ready bool, err error) {
	r, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), unix.MSG_DONTWAIT, 0, 0) //nolint:gosec // p is not empty, and outlives the call
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

// send writes as much to a socket as it takes without waiting.
func send(fd int, p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	r, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0) //nolint:gosec // as above
	switch errno {
	case 0:
		return int(r), nil
	case unix.EAGAIN:
		return 0, nil
	}
	return 0, socketError("send", errno)
}

func socketError(call string, errno syscall.Errno) error { return fmt.Errorf("%s: %w", call, errno) }
