package terminal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
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
		must.Hold(t, text != "", "%s: nothing is printed", name)
		must.Hide(t, name, text, "\x1b", "\a", "\r", "\u202e", "\u009b")
	}
}

// TestEscapedJSONMeansTheSame prints a lie in JSON, as a result and as a line of a log. Both stay JSON with the same text.
func TestEscapedJSONMeansTheSame(t *testing.T) {
	const lie = "\x1b[2J\u009b31m\u202e\x7f\U000e0001\nok"
	var out, errs bytes.Buffer
	s := terminal.New(&out, &errs)
	s.PrintJSON(map[string]string{"msg": lie})
	slog.New(slog.NewJSONHandler(s.Err, nil)).Info(lie)
	for name, text := range map[string]string{"result": out.String(), "log": errs.String()} {
		var got struct{ Msg string }
		if err := json.Unmarshal([]byte(text), &got); err != nil || got.Msg != lie || strings.ContainsAny(text, "\x1b\u009b\u202e\x7f\U000e0001") {
			t.Errorf("%s: got %q, %v in %q", name, got.Msg, err, text)
		}
	}
}
