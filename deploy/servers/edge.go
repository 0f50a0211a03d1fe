// Package servers runs the servers: edge, scheduler, both in one process, and the demo.
package servers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"gridcast/builder/bulk"
	"gridcast/deploy/flags"
	"gridcast/deploy/terminal"
	"gridcast/deploy/widget"
	"gridcast/edge"
	"gridcast/edge/adminport"
	"gridcast/snapshots/blob"
)

// Edge serves the published version from memory.
type Edge struct {
	flags.Storage
	flags.Clock
	flags.Edge
}

// Run serves until ctx ends.
func (c *Edge) Run(ctx context.Context, s *terminal.Streams) error {
	cfg, err := c.Config()
	if err != nil {
		return err
	}
	clock, err := c.Race()
	if err != nil {
		return err
	}
	c.Storage.Log = s.Log
	store, err := c.OpenToRead(ctx)
	if err != nil {
		if store, err = unmounted(ctx, s, &c.Edge, c.Storage, err); err != nil {
			return err
		}
	} else if lost := c.misnamed(ctx, store); lost != nil {
		store = serveCopy(s, store, lost)
	}
	limits, done, err := c.Limits(ctx, s.Log)
	if err != nil {
		return err
	}
	defer done()
	e, err := edge.New(cfg, edge.Deps{Store: store, Log: s.Log, Release: s.Version, RaceTime: clock.Race, Limits: limits, Registry: adminport.NewRegistry(s.Version, s.Commit), Downloads: bulk.Downloads{}, Widgets: widget.Releases()})
	if err != nil {
		return err
	}
	var beside sync.WaitGroup
	defer beside.Wait()
	running, ended := context.WithCancel(ctx)
	defer ended()
	beside.Go(func() {
		if err := returnMemory(running); err != nil {
			s.Log.Error("memory is not returned to the system", "err", err)
		}
	})
	beside.Go(func() { notifyStarted(running, e.Started(), s.Log) })
	return e.Run(ctx)
}

// misnamed returns a *flags.LostError if the store is empty and the copy is one of another store. Otherwise it does not
// ask the store, which may not answer.
func (c *Edge) misnamed(ctx context.Context, store blob.Store) error {
	if c.CacheDir == "" {
		return nil
	}
	if _, source, err := edge.Served(ctx, c.CacheDir); err != nil || source == store.String() {
		return nil //nolint:nilerr // there is no copy
	}
	return c.Lost(ctx, c.Storage)
}

// unmounted opens a store without its folder if the edge has a copy to serve. Otherwise it returns err, the error
// of the store.
func unmounted(ctx context.Context, s *terminal.Streams, e *flags.Edge, storage flags.Storage, err error) (blob.Store, error) {
	lost := e.Lost(ctx, storage)
	if lost == nil {
		return nil, err
	}
	store, err := storage.OpenUnmounted(ctx)
	if err != nil {
		return nil, err
	}
	return serveCopy(s, store, lost), nil
}

// startWait limits how long a server waits for its first version before it tells systemd that it is ready. It answers 503
// meanwhile. systemd would take it for a failed start after 90 seconds, and end it.
const startWait = 30 * time.Second

// notifyStarted is notifyReady once started is closed, or after startWait.
func notifyStarted(ctx context.Context, started <-chan struct{}, log *slog.Logger) {
	select {
	case <-started:
	case <-time.After(startWait):
		log.Warn("the server is not ready yet; systemd takes it for started")
	case <-ctx.Done():
		return
	}
	notifyReady(ctx, log)
}

// serveCopy logs the loss of the store and gives the store the name of the copy, so that the edge serves the copy.
func serveCopy(s *terminal.Streams, store blob.Store, loss error) blob.Store {
	s.Log.Error("the edge serves its own copy of the version", "err", loss)
	if lost, ok := errors.AsType[*flags.LostError](loss); ok && lost.Source != store.String() {
		return renamed{store, lost.Source}
	}
	return store
}

type renamed struct {
	blob.Store

	name string
}

func (r renamed) String() string { return r.name }

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
