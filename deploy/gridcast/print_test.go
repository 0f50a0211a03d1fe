package main

import (
	"errors"
	"strings"
	"testing"
)

// full is a disk without room: it takes one write.
type full struct{ writes int }

func (f *full) Write(p []byte) (int, error) {
	if f.writes++; f.writes > 1 {
		return 0, errors.New("no space left on device")
	}
	return len(p), nil
}

// TestLostOutputFails checks that a command with lost output fails, with one message.
func TestLostOutput(t *testing.T) {
	var complaint strings.Builder
	out := &full{writes: 1}
	if status := run(t.Context(), []string{"archive", "show"}, out, &complaint); status != exitFailed {
		t.Errorf("got status %d, want %d", status, exitFailed)
	}
	if got := complaint.String(); strings.Count(got, "no space left on device") != 1 || out.writes != 2 {
		t.Errorf("got %q after %d writes", got, out.writes)
	}
}
