//go:build linux

package main

import (
	"fmt"
	"os"

	"github.com/valyala/fasthttp"
)

// constantCommand makes this program one of the servers that write a constant.
const constantCommand = "constant"

// These servers: fasthttp, which is given a body and adds a short header, and an epoll loop,
// which is given all that gridcast answers.
const (
	fasthttpConstant = "fasthttp"
	epollConstant    = "epoll"
)

// serveConstant serves the content of a file whatever is asked, without looking at keys,
// limits or validators: what is left is the cost of the server itself.
func serveConstant(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("%s: want %s or %s, a file and an address", constantCommand, fasthttpConstant, epollConstant)
	}
	body, err := os.ReadFile(args[1])
	if err != nil {
		return fmt.Errorf("constant to serve: %w", err)
	}
	if args[0] == epollConstant {
		return serveEpoll(args[2], body)
	}
	server := &fasthttp.Server{
		Name: "constant",
		Handler: func(ctx *fasthttp.RequestCtx) {
			ctx.SetContentType("application/json; charset=utf-8")
			ctx.Response.SetBodyRaw(body)
		},
	}
	return server.ListenAndServe(args[2])
}
