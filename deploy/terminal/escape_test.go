package terminal_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"gridcast/deploy/terminal"
)

// TestNoServerCommandsTheTerminal prints what a lying server may have sent. Nothing of it reaches the terminal as a command.
func TestNoServerCommandsTheTerminal(t *testing.T) {
	const lie = "500 \x1b]0;title\a\x1b[2J\r\u202egnimaerts\u009b31m"
	var out, errs bytes.Buffer
	s := terminal.New(&out, &errs)
	s.Printf("the answer:\t%s\n", lie)
	s.Print(nil, "%s\n", lie)
	s.PrintTable([]any{"text"}, [][]any{{lie}})
	_, _ = fmt.Fprintf(s.Err, "gridcast: %s\n", lie)
	for name, text := range map[string]string{"output": out.String(), "errors": errs.String()} {
		if text == "" || strings.ContainsAny(text, "\x1b\a\r\u202e\u009b") {
			t.Errorf("%s: %q", name, text)
		}
	}
}
