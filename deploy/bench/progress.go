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
	rounds   int
	round    int // from 1; beyond the last one: what comes after the rounds
}

func newProgress(rounds int) *progress {
	return &progress{terminal: term.IsTerminal(int(os.Stderr.Fd())), rounds: rounds}
}

// begins says what is measured next.
func (p *progress) begins(run string) {
	if p.terminal {
		fmt.Fprintf(os.Stderr, "\r%-79s", p.prefix()+run)
	}
}

// ends says what was measured.
func (p *progress) ends(run string, r row) {
	if !p.terminal {
		fmt.Fprintf(os.Stderr, "%s%s: %.0f req/s, %.2f us of CPU each\n", p.prefix(), run, r.PerSecond, r.CPUMicros)
	}
}

// prefix is the round, while there is one.
func (p *progress) prefix() string {
	if p.round > p.rounds {
		return ""
	}
	return fmt.Sprintf("%d/%d ", p.round, p.rounds)
}

// finish clears the line.
func (p *progress) finish() {
	if p.terminal {
		fmt.Fprintf(os.Stderr, "\r%79s\r", "")
	}
}
