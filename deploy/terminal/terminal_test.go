package terminal_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/deploy/terminal"
)

func TestTableEscapesCommandsOfTheTerminal(t *testing.T) {
	golden.File(t, "testdata/table.txt", terminal.Table([]any{"name", "n"}, [][]any{{"Söhne & \x1b[2J\a\u202e", 3}}, 0))
}

// One long sentence makes no line of a table wider than the terminal, nor other lines longer.
func TestTableWrapsItsLastColumn(t *testing.T) {
	sentence := strings.TrimSpace(strings.Repeat("a fact is missing ", 20))
	rows := [][]any{{"MISSING", sentence}, {"ledger", "real"}}
	for _, line := range strings.Split(terminal.Table([]any{"", ""}, rows, 80), "\n") {
		if len([]rune(line)) > 80 || strings.HasSuffix(line, " ") {
			t.Errorf("a line of %d characters: %q", len([]rune(line)), line)
		}
	}
	must.Show(t, "the table without a width", terminal.Table([]any{"", ""}, rows, 0), sentence)
}

func TestAgo(t *testing.T) {
	now := time.Date(2026, 11, 23, 7, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		at   time.Time
		want string
	}{
		{time.Time{}, "never"}, {now.Add(-time.Minute), "1m0s ago"}, {now.Add(4 * time.Hour), "later, at 2026-11-23 11:00:00Z"},
	} {
		must.Equal(t, fmt.Sprint(test.at), test.want, terminal.Ago(now, test.at))
	}
}

// Programs read a list without elements as an array, not as null.
func TestEmptyListAsJSON(t *testing.T) {
	var out strings.Builder
	s := terminal.New(&out, io.Discard)
	s.JSON = true
	terminal.PrintRows[string](s, nil, "there are none", []any{"name"}, func(name string) []any { return []any{name} })
	must.Equal(t, "an empty table", "[]\n", out.String())
}
