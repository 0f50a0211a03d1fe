//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"

	fast "github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"
)

// constantCommand makes this program a server that writes a constant.
const constantCommand = "constant"

// serveConstant serves the content of a file for every request. It looks at no key, limit or validator, so
// that only the cost of the server itself is left. fasthttp gets the body and adds a short header; the epoll
// loop gets the whole response of gridcast.
func serveConstant(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("%s: want %s or %s, a file and an address", constantCommand, fasthttp, epoll)
	}
	content, err := os.ReadFile(args[1])
	if err != nil {
		return fmt.Errorf("constant to serve: %w", err)
	}
	if args[0] == epoll {
		return serveEpoll(args[2], content)
	}
	server := &fast.Server{
		Name: "constant",
		Handler: func(ctx *fast.RequestCtx) {
			ctx.SetContentType("application/json; charset=utf-8")
			ctx.Response.SetBodyRaw(content)
		},
	}
	return server.ListenAndServe(args[2])
}

// serveEpoll answers every request with the same bytes from one loop over the system calls: the practical limit of
// a server that reads and writes.
func serveEpoll(address string, response []byte) error {
	listener, err := listenEpoll(address)
	if err != nil {
		return err
	}
	poll, err := syscall.EpollCreate1(0)
	if err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	watch := func(fd int) error {
		return syscall.EpollCtl(poll, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)})
	}
	if err := watch(listener); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	events, buffer := make([]syscall.EpollEvent, 256), make([]byte, 8<<10)
	for {
		n, err := syscall.EpollWait(poll, events, -1)
		if err != nil && err != syscall.EINTR {
			return fmt.Errorf("epoll: %w", err)
		}
		for _, event := range events[:max(n, 0)] {
			fd := int(event.Fd)
			if fd != listener {
				if !answerEpoll(fd, buffer, response) {
					_ = syscall.Close(fd) // the client closed the connection
				}
				continue
			}
			client, _, err := syscall.Accept4(listener, syscall.SOCK_NONBLOCK)
			if err != nil {
				continue // the client closed the connection before accept
			}
			_ = syscall.SetsockoptInt(client, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
			if err := watch(client); err != nil {
				return fmt.Errorf("epoll: %w", err)
			}
		}
	}
}

// answerEpoll answers the requests on a connection. It assumes that a read returns whole requests, and reports
// false when the connection is closed.
func answerEpoll(fd int, buffer, response []byte) bool {
	n, err := syscall.Read(fd, buffer)
	if err != nil || n <= 0 {
		return err == syscall.EAGAIN
	}
	for range bytes.Count(buffer[:n], []byte("\r\n\r\n")) {
		if !writeWhole(fd, response) {
			return false
		}
	}
	return true
}

// writeWhole writes p, and waits while the socket is full; the load generator reads at once.
func writeWhole(fd int, p []byte) bool {
	for len(p) > 0 {
		n, err := syscall.Write(fd, p)
		switch {
		case err == syscall.EAGAIN:
			if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, 1000); err != nil && !errors.Is(err, syscall.EINTR) {
				return false
			}
		case err != nil:
			return false
		default:
			p = p[n:]
		}
	}
	return true
}

func listenEpoll(address string) (int, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return 0, fmt.Errorf("listen: %w", err)
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return 0, fmt.Errorf("listen: %w", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}); err != nil {
		return 0, fmt.Errorf("listen on %s: %w", address, err)
	}
	if err := syscall.Listen(fd, 1024); err != nil {
		return 0, fmt.Errorf("listen on %s: %w", address, err)
	}
	return fd, nil
}
