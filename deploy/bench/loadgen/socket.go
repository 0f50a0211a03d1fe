//go:build linux

package loadgen

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls of a request never block, so the Go runtime need not know of them.

func receive(fd int, p []byte) (int, error) { return call(unix.SYS_RECVFROM, fd, p) }

func send(fd int, p []byte) (int, error) { return call(unix.SYS_SENDTO, fd, p) }

func call(trap uintptr, fd int, p []byte) (int, error) {
	n, _, errno := unix.RawSyscall6(trap, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
