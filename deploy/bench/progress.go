//go:build linux

package main

import (
	"fmt"
	"os"

	"golang.org/x/term"
)

// progress says what is being measured: on a terminal in one line that is written again and
// again, elsewhere in a line for each run.
type progress struct {
	terminal bool
	stage    string // how far the series is
}

func newProgress() *progress {
	return &progress{terminal: term.IsTerminal(int(os.Stderr.Fd()))}
}

// begins says what is measured next.
func (p *progress) begins(run string) {
	if p.terminal {
		fmt.Fprintf(os.Stderr, "\r%-99s", p.stage+": "+run)
	}
}

// ends says what was measured.
func (p *progress) ends(run string, r row) {
	if !p.terminal {
		fmt.Fprintf(os.Stderr, "%s: %s: %.0f req/s, %.2f us of CPU each\n", p.stage, run, r.PerSecond, r.CPUMicros)
	}
}

// finish clears the line.
func (p *progress) finish() {
	if p.terminal {
		fmt.Fprintf(os.Stderr, "\r%99s\r", "")
	}
}
