package terminal_test

import (
	"strings"
	"testing"

	"gridcast/deploy/terminal"
)

func TestTableEscapesCommandsOfTheTerminal(t *testing.T) {
	got := terminal.Table([]any{"name", "n"}, [][]any{{"Söhne & \x1b[2J\a\u202e", 3}})
	for _, want := range []string{`Söhne & \x1b[2J\a\u202e`, "3"} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
	if strings.ContainsAny(got, "\x1b\a\u202e") {
		t.Errorf("got a command of the terminal in %q", got)
	}
}
