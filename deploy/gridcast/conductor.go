package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"gridcast/builder"
	"gridcast/deploy/clock"
	"gridcast/scheduler"
	"gridcast/scheduler/cadence"
	"gridcast/snapshots"
)

// conductor keeps the published version true: it has the scheduler run the builder when
// something falls due, and whenever ledger or archive change.
type conductor struct {
	builder *builder.Builder
	clock   clock.Clock
	log     *slog.Logger
	facts   atomic.Pointer[builder.Facts] // as of the last build, for the schedule
	jobs    *scheduler.Scheduler          // from start on
	metrics *conductorMetrics

	building  sync.Mutex                     // jobs run side by side; their builds need not race each other
	published atomic.Pointer[snapshots.Base] // as of the last build
}

// The jobs, by name.
const (
	buildJob  = "build"
	freezeJob = "freeze"
	pollJob   = "poll"
	verifyJob = "verify"
)

// lookEvery is how often the ledger is looked at for what others appended, in real time.
const lookEvery = time.Second

// stopGrace is how long a build under way may go on when the process is told to stop.
const stopGrace = 20 * time.Second

func newConductor(b *builder.Builder, c clock.Clock, log *slog.Logger) *conductor {
	conductor := &conductor{builder: b, clock: c, log: log}
	conductor.metrics = newConductorMetrics(conductor)
	return conductor
}

// start publishes what is due now, so that there is something to serve, and makes the jobs.
func (c *conductor) start(ctx context.Context, progress func(phase string, done, total int)) error {
	err := c.build(ctx, "start", progress)
	if err != nil {
		return err
	}
	since := c.published.Load().Manifest.BuiltAt
	build := func(ctx context.Context, t scheduler.Trigger) error { return c.build(ctx, t.String(), nil) }
	c.jobs, err = scheduler.New(scheduler.DefaultConfig(), c.clock.Now, c.calendar, c.log,
		scheduler.Job{Name: buildJob, Work: cadence.Build, Run: build, Since: since},
		scheduler.Job{Name: freezeJob, Work: cadence.Freeze, Run: build, Since: since},
		scheduler.Job{Name: pollJob, Work: cadence.Poll, Run: c.poll, Since: since},
		scheduler.Job{Name: verifyJob, Work: cadence.Verify, Run: c.verify, Since: since},
	)
	return err
}

// run conducts until ctx ends, and waits for a build under way.
func (c *conductor) run(ctx context.Context) error {
	c.jobs.Start()
	c.follow(ctx)
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	return c.jobs.Stop(stopping)
}

// build is publish for the jobs: a held pointer is the operator's decision, no error.
func (c *conductor) build(ctx context.Context, reason string, progress func(phase string, done, total int)) error {
	_, err := c.publish(ctx, builder.Request{Reason: reason, Progress: progress})
	if errors.Is(err, snapshots.ErrHeld) {
		c.log.Warn("publishing is held; gridcast build --release ends it", "err", err)
		return nil
	}
	return err
}

// publish settles and publishes once, as of the moment its turn comes, and notes what came of
// it.
func (c *conductor) publish(ctx context.Context, request builder.Request) (builder.Outcome, error) {
	c.building.Lock()
	defer c.building.Unlock()
	request.At = c.clock.Now()
	phases := c.metrics.begin(request.Progress)
	request.Progress = phases.progress
	outcome, err := c.builder.Build(ctx, request)
	phases.end(err)
	if factsErr := c.loadFacts(ctx); factsErr != nil {
		return outcome, errors.Join(err, factsErr)
	}
	for _, e := range outcome.Events {
		c.log.Info("settled", "event", e.Type, "session_key", e.Session, "what", e.String(), "race_time", e.At)
	}
	if baseErr := c.notePublished(ctx); baseErr != nil {
		return outcome, errors.Join(err, baseErr)
	}
	if err == nil && !outcome.Unchanged {
		c.log.Info("published", "version", outcome.Version, "reason", request.Reason,
			"objects_written", outcome.ObjectsWritten, "objects_reused", outcome.ObjectsReused, "seconds", outcome.Seconds)
	}
	return outcome, err
}

// notePublished remembers what is published now.
func (c *conductor) notePublished(ctx context.Context) error {
	base, err := snapshots.LoadBase(ctx, c.builder.Store)
	if err != nil {
		return err
	}
	c.published.Store(base)
	return nil
}

// verify reads every object of the current version again: what is damaged in the store is
// found before an edge has to start from it.
func (c *conductor) verify(ctx context.Context, _ scheduler.Trigger) error {
	found, err := snapshots.Verify(ctx, c.builder.Store, 0, nil)
	if err != nil {
		return err
	}
	if len(found.Faults) > 0 {
		return fmt.Errorf("version %d: %d of %d objects are wrong: %w", found.Version, len(found.Faults), found.Objects, errors.Join(found.Faults...))
	}
	c.log.Info("verified", "version", found.Version, "objects", found.Objects, "bytes", found.Bytes)
	return nil
}

// poll settles what the archive now shows, and has a version built if that was anything.
func (c *conductor) poll(ctx context.Context, _ scheduler.Trigger) error {
	if err := c.loadFacts(ctx); err != nil {
		return err
	}
	events, err := c.builder.Policy.Settle(ctx, c.builder.Ledger, c.facts.Load().Archive, c.clock.Now())
	if err != nil || len(events) == 0 {
		return err
	}
	for _, e := range events {
		c.log.Info("settled", "event", e.Type, "session_key", e.Session, "what", e.String(), "race_time", e.At)
	}
	_, err = c.jobs.Trigger(buildJob, "settled")
	return err
}

// follow triggers a build when somebody else appended to the ledger or put another archive
// into the store, until ctx ends.
func (c *conductor) follow(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	head, facts := c.builder.Ledger.Head(), c.facts.Load().SHA256
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := errors.Join(c.builder.Ledger.Refresh(ctx), c.loadFacts(ctx)); err != nil {
			if ctx.Err() == nil {
				c.log.Warn("the store can not be read; builds wait", "err", err)
			}
			continue
		}
		reason := ""
		if newHead := c.builder.Ledger.Head(); newHead != head {
			head = newHead
			if head.Seq > c.published.Load().Manifest.Ledger.Seq {
				reason = "ledger changed"
			}
		}
		if newFacts := c.facts.Load().SHA256; newFacts != facts {
			facts, reason = newFacts, "archive changed"
		}
		if reason == "" {
			continue
		}
		if _, err := c.jobs.Trigger(buildJob, reason); err != nil {
			c.log.Error("build not triggered", "reason", reason, "err", err)
		}
	}
}

func (c *conductor) loadFacts(ctx context.Context) error {
	facts, err := c.builder.Facts(ctx)
	if err != nil {
		return err
	}
	c.facts.Store(&facts)
	return nil
}

// calendar is what the schedule goes by: the facts and the ledger as they are in memory.
func (c *conductor) calendar() cadence.Calendar {
	now := c.clock.Now()
	return calendarOf(c.facts.Load().Archive.AsOf(now), c.builder.Ledger.Current(now))
}
