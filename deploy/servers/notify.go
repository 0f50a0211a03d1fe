package servers

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
)

// notifyReady tells systemd that the server listens, and that it stops when ctx ends, if the unit has
// Type=notify (sd_notify(3)). Elsewhere it does nothing.
func notifyReady(ctx context.Context, log *slog.Logger) {
	address := os.Getenv("NOTIFY_SOCKET") // a path, or @name for an abstract one
	if address == "" {
		return
	}
	tell := func(state string) error {
		c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: address, Net: "unixgram"})
		if err != nil {
			return fmt.Errorf("tell systemd %s: %w", state, err)
		}
		defer func() { _ = c.Close() }()
		_, err = c.Write([]byte(state))
		return err
	}
	if err := tell("READY=1"); err != nil {
		log.Warn("systemd does not know that this server is ready", "err", err)
	}
	context.AfterFunc(ctx, func() { _ = tell("STOPPING=1") }) // it finds out anyway
}
