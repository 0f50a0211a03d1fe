//go:build linux

package main

import (
	"fmt"
	"os"

	fast "github.com/valyala/fasthttp"
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
