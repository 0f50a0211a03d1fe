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

// One long sentence makes no line of a table wider than the terminal, nor other lines longer.
func TestTableWrapsItsLastColumn(t *testing.T) {
	sentence := strings.TrimSpace(strings.Repeat("a fact is missing ", 20))
	rows := [][]any{{"MISSING", sentence}, {"ledger", "real"}}
	for _, line := range strings.Split(terminal.WrappedTable([]any{"", ""}, rows, 80), "\n") {
		if len([]rune(line)) > 80 || strings.HasSuffix(line, " ") {
			t.Errorf("a line of %d characters: %q", len([]rune(line)), line)
		}
	}
	if !strings.Contains(terminal.Table([]any{"", ""}, rows), sentence) {
		t.Error("without a width the sentence is wrapped")
	}
}
