// Command lab measures gridcast: its models on past seasons, and the time from an observation of a race to its answer.
// The packages below it measure requests (bench), memory and starts (cost). They are a module of their own, because no
// reader and no operator needs them. The Makefile runs each.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"gridcast/deploy/terminal"
)

// cli is the command line.
type cli struct {
	JSON bool `help:"Print machine-readable JSON instead of tables."`

	Backtest backtestCmd `cmd:"" help:"Score a model on past seasons, race by race, with only the facts known before each race."`
	Replay   replayCmd   `cmd:"" help:"Replay a recording of a race into a new store, and measure the time until an edge serves each lap."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills the process
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// run executes one command line and returns the exit status: 2 if the command line is wrong, 1 after another error.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var c cli
	exited := -1
	parser := kong.Must(&c,
		kong.Name("lab"), kong.Description("Measure gridcast."), kong.DefaultEnvars("GRIDCAST"), kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exited = code }), kong.BindTo(ctx, (*context.Context)(nil)),
	)
	command, err := parser.Parse(args)
	if exited >= 0 { // help was printed
		return exited
	}
	s := terminal.New(stdout, stderr)
	s.JSON = c.JSON
	if err == nil {
		err = command.Run(s)
		s.EndProgress()
		err = errors.Join(err, s.OutputError())
	} else {
		err = terminal.Usagef("%w", err)
	}
	if err == nil {
		return 0
	}
	_, _ = fmt.Fprintf(s.Err, "lab: %v\n", err)
	if errors.As(err, new(terminal.UsageError)) {
		return 2
	}
	return 1
}
