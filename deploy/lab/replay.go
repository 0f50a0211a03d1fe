package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"gridcast/builder"
	"gridcast/builder/ledger"
	"gridcast/builder/live"
	"gridcast/builder/running"
	"gridcast/deploy/flags"
	"gridcast/deploy/terminal"
	"gridcast/edge/resident"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/retry"
)

type replayCmd struct {
	flags.Storage
	File    string  `arg:"" help:"A recording." type:"existingfile"`
	Speed   float64 `help:"Race seconds in a real second; 0: as fast as possible." default:"60"`
	Archive string  `help:"An archive file with the race. Default: the embedded seasons." placeholder:"PATH" type:"path"`
	Model   string  `help:"The model that makes the pick before the race: ${enum}." enum:"v2,r2,grid-frequency" default:"v2"`
}

// replayed is the outcome of replay --json.
type replayed struct {
	Laps        int                   `json:"laps"`
	Versions    int                   `json:"versions"`
	Bytes       int64                 `json:"bytes"`
	Checkpoints []wire.LiveCheckpoint `json:"checkpoints"`
	Served      struct {
		P50 float64 `json:"p50"`
		P99 float64 `json:"p99"`
	} `json:"observed_to_served_ms"`
}

func (c *replayCmd) Run(ctx context.Context, s *terminal.Streams) error {
	recording, err := readRecording(c.File)
	if err != nil {
		return err
	}
	store, err := c.Open(ctx)
	if err != nil {
		return err
	}
	if _, _, err := snapshots.LoadPointer(ctx, store); !errors.Is(err, snapshots.ErrNone) {
		return terminal.Usagef("--store %s: something is published there; a replay needs an empty store", c.Store)
	}
	start := recording[0].Received
	rules := flags.Builder{Archive: c.Archive, Model: c.Model}
	b, err := rules.WithoutSettings(ctx, s, store, ledger.Simulated, start.Add(-7*24*time.Hour))
	if err != nil {
		return err
	}
	for _, at := range []time.Duration{-6 * 24 * time.Hour, -running.WatchedBefore} { // keys, then the pick
		if _, err := b.Build(ctx, builder.Request{At: start.Add(at)}); err != nil {
			return err
		}
	}
	out, err := c.play(ctx, b, recording)
	if err != nil {
		return err
	}
	s.Print(out, "%d laps, %d versions, %d bytes; an observation was served after %.0f ms (median), %.0f ms (p99)\n",
		out.Laps, out.Versions, out.Bytes, out.Served.P50, out.Served.P99)
	return nil
}

// readRecording reads the observations of a recording. Each is received as the recording says, else at its own instant.
func readRecording(file string) ([]live.Observation, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }() // it was only read
	var all []live.Observation
	err = live.Lines(in, func(n int, o live.Observation, err error) error {
		if err != nil {
			return fmt.Errorf("%s, line %d: %w", file, n, err)
		}
		if o.Received.IsZero() {
			o.Received = o.At
		}
		all = append(all, o)
		return nil
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s has no observation", file)
	}
	slices.SortStableFunc(all, func(a, b live.Observation) int { return a.Received.Compare(b.Received) })
	return all, err
}

// play stores each observation at its instant, builds, and waits until a follower, as an edge has one, serves the version.
func (c *replayCmd) play(ctx context.Context, b *builder.Builder, recording []live.Observation) (*replayed, error) {
	o, err := flags.NewOperator(ctx, b.Store)
	if err != nil {
		return nil, err
	}
	at := recording[0].Received
	o.Ledger, o.Facts, o.Observed, o.Now = b.Ledger, b.Facts, b.Observed(), func() time.Time { return at }
	before, err := storedBytes(ctx, b.Store)
	if err != nil {
		return nil, err
	}
	wake, served, stop := followStore(ctx, b.Store)
	defer stop()
	var set *resident.Set
	await := func(version int64) error { // until the follower serves it
		for set == nil || set.Version().Manifest.Version < version {
			select {
			case set = <-served:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}
	if err := await(1); err != nil {
		return nil, err
	}
	out, first := replayed{}, set.Version().Manifest.Version
	var waits []float64
	for _, seen := range recording {
		if c.Speed > 0 && !retry.Sleep(ctx, time.Duration(float64(seen.Received.Sub(at))/c.Speed)) {
			return nil, ctx.Err()
		}
		at = seen.Received
		began := time.Now()
		news, err := o.Observe(ctx, seen, "")
		if err != nil && !errors.Is(err, live.ErrHeld) {
			return nil, err
		}
		if !news {
			continue
		}
		if seen.Lap > 0 {
			out.Laps++
		}
		outcome, err := b.Build(ctx, builder.Request{At: at, Reason: "the race goes on"})
		if err != nil {
			return nil, err
		}
		if outcome.Unchanged {
			continue
		}
		wake <- struct{}{}
		if err := await(outcome.Version); err != nil {
			return nil, err
		}
		waits = append(waits, float64(time.Since(began).Microseconds())/1000)
	}
	out.Versions = int(set.Version().Manifest.Version - first)
	after, err := storedBytes(ctx, b.Store)
	if err != nil {
		return nil, err
	}
	out.Bytes = after - before
	slices.Sort(waits)
	if n := len(waits); n > 0 {
		out.Served.P50, out.Served.P99 = waits[n/2], waits[min(n-1, n*99/100)]
	}
	body, ok := set.Version().Body(catalog.Variant{Endpoint: catalog.Live}.Path())
	if !ok {
		return nil, errors.New("the last version has no /live")
	}
	var now wire.Success[wire.LiveRace]
	err = json.Unmarshal(body.Identity, &now)
	out.Checkpoints = now.Data.Checkpoints
	return &out, err
}

// followStore loads each version of a store into memory as an edge does, after each wake, and hands it over. stop ends it.
func followStore(ctx context.Context, store blob.Store) (wake chan<- struct{}, served <-chan *resident.Set, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	woken, loaded := make(chan struct{}, 1), make(chan *resident.Set)
	var following sync.WaitGroup
	following.Go(func() {
		var set *resident.Set
		_ = snapshots.Follow(ctx, snapshots.FollowConfig{Store: store, Wake: woken, Deliver: func(v *snapshots.Version) (err error) {
			if set, err = resident.Load(v, set); err == nil {
				select {
				case loaded <- set:
				case <-ctx.Done():
				}
			}
			return err
		}})
	})
	return woken, loaded, func() { cancel(); following.Wait() }
}

// storedBytes is the size of everything in a store.
func storedBytes(ctx context.Context, store blob.Store) (total int64, err error) {
	for info, err := range store.List(ctx, "") {
		if err != nil {
			return 0, err
		}
		total += info.Size
	}
	return total, nil
}
