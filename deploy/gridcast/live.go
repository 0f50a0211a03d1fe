package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"gridcast/builder/ledger"
	"gridcast/builder/live"
	"gridcast/deploy/flags"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
	"gridcast/snapshots/retry"
)

type liveCmds struct {
	Set    actionCmd[flags.Rounds, operator.SetOrder, record] `cmd:"" help:"Enter the order or a phase of the running race by hand."`
	Push   livePushCmd                                        `cmd:"" help:"Store observations of the running race: lines of JSON from a file or from standard input."`
	Record liveRecordCmd                                      `cmd:"" help:"Write the observations of a race to a file, until it is over or its result is verified."`
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
