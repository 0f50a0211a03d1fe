package terminal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"gridcast/deploy/must"
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
		must.Hold(t, text != "" && !strings.ContainsAny(text, "\x1b\a\r\u202e\u009b"), "%s: %q", name, text)
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
