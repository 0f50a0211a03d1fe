package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// output writes to w and keeps the first error, so that a command prints freely and run checks once.
// After an error it writes nothing.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(p []byte) (n int, err error) {
	if o.err == nil {
		n, o.err = o.w.Write(p)
	}
	return n, o.err
}

func (s *streams) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(s.out, format, args...)
}

// printJSON prints a value as one indented JSON document.
func (s *streams) printJSON(v any) {
	enc := json.NewEncoder(s.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil && s.out.err == nil {
		s.out.err = err
	}
}

// printTable prints aligned columns under a header.
func (s *streams) printTable(header []any, rows [][]any) {
	s.printf("%s\n", renderTable(header, rows))
}

func renderTable(header []any, rows [][]any) string {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(header)
	for _, row := range rows {
		shown := make([]any, len(row))
		for i, cell := range row {
			if text, ok := cell.(string); ok {
				cell = printable(text)
			}
			shown[i] = cell
		}
		t.AppendRow(shown)
	}
	return t.Render()
}

// printable escapes what a terminal would take for a command, such as ESC in a name that
// somebody once gave to a client.
func printable(text string) string {
	var out strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) || r == '\n' {
			out.WriteRune(r)
		} else {
			quoted := strconv.QuoteRune(r)
			out.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return out.String()
}

// shortTime is an instant in a table; empty if there is none.
func shortTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// bar shows the progress of a long job on a terminal, and otherwise nothing, since whoever reads a
// log wants the outcome.
type bar struct{ bar *progressbar.ProgressBar }

func newBar(w io.Writer) *bar {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return &bar{}
	}
	return &bar{bar: progressbar.NewOptions(0,
		progressbar.OptionSetWriter(w),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(50*time.Millisecond),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetWidth(30),
	)}
}

// show is a snapshots.Progress; it is safe for concurrent use. Errors of drawing are of no
// consequence.
func (b *bar) show(phase string, done, total int) {
	if b.bar == nil {
		return
	}
	b.bar.Describe(phase)
	b.bar.ChangeMax(total)
	_ = b.bar.Set(done)
}

func (b *bar) finish() {
	if b.bar != nil {
		_ = b.bar.Finish()
	}
}
