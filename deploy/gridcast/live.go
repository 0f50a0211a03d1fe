package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"gridcast/builder"
	"gridcast/builder/ledger"
	"gridcast/builder/live"
	"gridcast/deploy/flags"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
	"gridcast/edge/resident"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/retry"
)

type liveCmds struct {
	Set    actionCmd[flags.Rounds, flags.OptionalReason, operator.SetOrder] `cmd:"" help:"Enter the order or a phase of the running race by hand."`
	Push   livePushCmd                                                      `cmd:"" help:"Store observations of the running race: lines of JSON from a file or from standard input."`
	Record liveRecordCmd                                                    `cmd:"" help:"Write the observations of a race to a file, until it is over or its result is verified."`
	Replay liveReplayCmd                                                    `cmd:"" help:"Replay a recording into a new store, and measure it."`
}

type livePushCmd struct {
	flags.Rounds
	File string `arg:"" help:"A file of observations, one a line; - reads standard input."`
	Name string `help:"The name of the source, for observations that do not name one." default:"push"`
}

type pushed struct {
	Lines   int `json:"lines"`
	New     int `json:"new"`
	Held    int `json:"held"` // stored, but they do not count, or not fully
	Refused int `json:"refused"`
}

func (c *livePushCmd) Run(ctx context.Context, s *terminal.Streams) error {
	o, err := c.Operator(ctx, s)
	for told := false; c.File == "-" && errors.Is(err, ledger.ErrNotOpened); o, err = c.Operator(ctx, s) {
		if !told {
			_, _ = fmt.Fprintf(s.Err, "waiting until the store has a ledger: %v\n", err) // the lines wait in the pipe
		}
		if told = true; !retry.Sleep(ctx, time.Second) {
			return err
		}
	}
	if err != nil {
		return err
	}
	in, err := openFeed(c.File)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was only read
	var count pushed
	count.Lines, count.New, err = o.ObserveLines(ctx, in, c.Name, func(line int, err error) {
		if errors.Is(err, live.ErrHeld) {
			count.Held++
		} else {
			count.Refused++
		}
		_, _ = fmt.Fprintf(s.Err, "line %d: %v\n", line, err) // the summary counts it too
	})
	s.Print(count, "%d lines, %d of them new, %d held, %d refused\n", count.Lines, count.New, count.Held, count.Refused)
	if err == nil && count.Refused > 0 {
		err = fmt.Errorf("%d of %d lines were refused", count.Refused, count.Lines)
	}
	return err
}

func openFeed(file string) (io.ReadCloser, error) {
	if file == "-" {
		return os.Stdin, nil
	}
	return os.Open(file)
}

type liveRecordCmd struct {
	flags.Rounds
	File    string `arg:"" help:"The file to write; it must not exist." type:"path"`
	Session int64  `help:"Session key of the round; default: the race of /live." placeholder:"KEY" env:"-"`
}

func (c *liveRecordCmd) Run(ctx context.Context, s *terminal.Streams) (err error) {
	o, err := c.Reader(ctx)
	if err != nil {
		return err
	}
	if c.Session == 0 {
		if c.Session, err = o.LiveSession(ctx); err != nil {
			return err
		}
	}
	file, err := os.OpenFile(c.File, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) //nolint:gosec // a recording is no secret
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	written, lines := 0, json.NewEncoder(file)
	o.Observed = &live.Log{Store: o.Store}
	for {
		tape, over, err := o.Recording(ctx, c.Session)
		if err != nil {
			return err
		}
		for _, seen := range tape.Observations[written:] {
			if err := lines.Encode(seen.Observation); err != nil {
				return err
			}
		}
		written = len(tape.Observations)
		if over {
			s.Printf("%d observations of %d are in %s\n", written, c.Session, c.File)
			return nil
		}
		if !retry.Sleep(ctx, time.Second) {
			s.Printf("%d observations of %d are in %s; the race is not over\n", written, c.Session, c.File)
			return nil
		}
	}
}

type liveReplayCmd struct {
	flags.Storage
	File    string  `arg:"" help:"A recording." type:"existingfile"`
	Speed   float64 `help:"Race seconds in a real second; 0: as fast as possible." default:"60"`
	Archive string  `help:"An archive file with the race. Default: the embedded seasons." placeholder:"PATH" type:"path"`
	Model   string  `help:"The model that makes the pick before the race: ${enum}." enum:"v2,r2,grid-frequency" default:"v2"`
}

// replayed is the outcome of live replay --json.
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

func (c *liveReplayCmd) Run(ctx context.Context, s *terminal.Streams) error {
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
	for _, at := range []time.Duration{-6 * 24 * time.Hour, -builder.WatchedBefore} { // keys, then the pick
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
	in, err := openFeed(file)
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
func (c *liveReplayCmd) play(ctx context.Context, b *builder.Builder, recording []live.Observation) (*replayed, error) {
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
