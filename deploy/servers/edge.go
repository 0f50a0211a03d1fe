// Package servers runs the servers: edge, scheduler, both in one process, and the demo.
package servers

import (
	"context"

	"gridcast/builder"
	"gridcast/deploy/flags"
	"gridcast/deploy/terminal"
	"gridcast/deploy/widget"
	"gridcast/edge"
	"gridcast/snapshots/blob"
)

// Edge serves the published version from memory.
type Edge struct {
	flags.Storage `embed:""`
	flags.Clock   `embed:""`
	flags.Edge    `embed:""`
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
	store, err := c.OpenToRead(ctx)
	if err != nil {
		if store, err = unmounted(ctx, s, &c.Edge, c.Storage, err); err != nil {
			return err
		}
	}
	limits, done, err := c.Limits(ctx, s.Log)
	if err != nil {
		return err
	}
	defer done()
	e, err := edge.New(cfg, edge.Deps{Store: store, Log: s.Log, RaceTime: clock.Race, Limits: limits, Downloads: builder.Downloads{}, Widgets: widget.Releases()})
	if err != nil {
		return err
	}
	running, ended := context.WithCancel(ctx)
	defer ended()
	go returnMemory(running)
	go func() {
		select {
		case <-e.Started():
			notifyReady(ctx, s.Log)
		case <-running.Done():
		}
	}()
	return e.Run(ctx)
}

// unmounted opens a store without its folder if the edge has a copy to serve. Otherwise it returns err, the error
// of the store.
func unmounted(ctx context.Context, s *terminal.Streams, e *flags.Edge, storage flags.Storage, err error) (blob.Store, error) {
	lost := e.Lost(ctx, storage)
	if lost == nil {
		return nil, err
	}
	s.Log.Error("the edge serves its own copy of the version", "err", lost)
	return storage.OpenUnmounted(ctx)
}
