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
// that only the cost of fasthttp itself is left.
func serveConstant(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("%s: want a file and an address", constantCommand)
	}
	content, err := os.ReadFile(args[0])
	if err != nil {
		return fmt.Errorf("constant to serve: %w", err)
	}
	server := &fast.Server{
		Name: "constant",
		Handler: func(ctx *fast.RequestCtx) {
			ctx.SetContentType("application/json; charset=utf-8")
			ctx.Response.SetBodyRaw(content)
		},
	}
	return server.ListenAndServe(args[1])
}
