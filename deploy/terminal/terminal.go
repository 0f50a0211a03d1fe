// Package terminal is where commands print: tables, JSON, progress, and questions to a person.
package terminal

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
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

// Streams is where a command prints: results to standard output, progress and questions to Err.
// Printing returns no error. Streams keeps the first one and prints nothing after it; the caller
// of the command checks OutputError once. Use it from one goroutine at a time.
type Streams struct {
	Err     io.Writer
	JSON    bool // results are machine-readable
	Log     *slog.Logger
	Given   map[string]bool // names of the flags on the command line; the environment does not count
	Version string          // of this program

	out      io.Writer
	outError error
}

// New returns streams that print to out and err.
func New(out, err io.Writer) *Streams {
	return &Streams{Err: err, Log: slog.New(slog.DiscardHandler), out: out}
}

// OutputError is the first error of the standard output.
func (s *Streams) OutputError() error { return s.outError }

// Write writes to the standard output.
func (s *Streams) Write(p []byte) (n int, err error) {
	if s.outError == nil {
		n, s.outError = s.out.Write(p)
	}
	return n, s.outError
}

// Printf prints to the standard output.
func (s *Streams) Printf(format string, args ...any) { _, _ = fmt.Fprintf(s, format, args...) }

// PrintJSON prints a value as one indented JSON document.
func (s *Streams) PrintJSON(v any) {
	enc := json.NewEncoder(s)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil && s.outError == nil {
		s.outError = err
	}
}

// Print prints v if JSON is wanted, else the sentence.
func (s *Streams) Print(v any, format string, args ...any) {
	if s.JSON {
		s.PrintJSON(v)
	} else {
		s.Printf(format, args...)
	}
}

// PrintList prints v if JSON is wanted, else the rows under a header; without rows it prints the
// sentence none.
func (s *Streams) PrintList(v any, none string, header []any, rows [][]any) {
	switch {
	case s.JSON:
		s.PrintJSON(v)
	case len(rows) == 0 && none != "":
		s.Printf("%s\n", none)
	default:
		s.PrintTable(header, rows)
	}
}

// PrintTable prints aligned columns under a header. On a terminal it wraps the last column at the edge.
func (s *Streams) PrintTable(header []any, rows [][]any) {
	width := 0
	if out, ok := s.out.(*os.File); ok {
		width, _, _ = term.GetSize(int(out.Fd())) // 0 if it is no terminal
	}
	s.Printf("%s\n", WrappedTable(header, rows, width))
}

// Table aligns columns under a header.
func Table(header []any, rows [][]any) string { return WrappedTable(header, rows, 0) }

// WrappedTable is Table with the last column wrapped, so that no line is wider than width. 0 wraps nothing.
func WrappedTable(header []any, rows [][]any, width int) string {
	t := table.NewWriter()
	t.SuppressTrailingSpaces()
	if first := widest(header, rows); width > 0 {
		t.SetColumnConfigs([]table.ColumnConfig{{Number: len(header), WidthMax: max(width-first, minWrap), WidthMaxEnforcer: text.WrapSoft}})
	}
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

// minWrap is the least width at which a column is wrapped.
const minWrap = 30

// widest returns the width of all columns but the last.
func widest(header []any, rows [][]any) int {
	width := 0
	for i := range len(header) - 1 {
		column := 0
		for _, row := range append([][]any{header}, rows...) {
			column = max(column, text.StringWidth(fmt.Sprint(row[i])))
		}
		width += column + len("   ")
	}
	return width + len("  ")
}

// printable escapes control characters, so that a client's name cannot send commands such as ESC to
// the terminal.
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

// Quoted is the text, in quotes if it has characters that cannot be printed.
func Quoted(text string) string {
	for _, r := range text {
		if !strconv.IsPrint(r) {
			return strconv.Quote(text)
		}
	}
	return text
}

// Time is an instant in a table; empty for the zero time.
func Time(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// Ago is how long before now an instant was.
func Ago(now, at time.Time) string {
	switch {
	case at.IsZero():
		return "never"
	case at.After(now): // with --now before the instant
		return "later, at " + Time(at)
	}
	return now.Sub(at).Round(time.Second).String() + " ago"
}

// Interactive reports whether a person can answer questions.
func Interactive() bool { return term.IsTerminal(int(os.Stdin.Fd())) }

// Confirm asks a question that the person answers with yes or no. It fails unless the answer is yes.
func (s *Streams) Confirm(question string) error {
	if !Interactive() {
		return Usagef("%s Nobody can answer here: confirm with --yes", question)
	}
	if _, err := fmt.Fprintf(s.Err, "%s [y/N] ", question); err != nil {
		return err
	}
	answer, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	default:
		return errors.New("not confirmed: nothing was written")
	}
}

// UsageError is a fault in the command line that the parser cannot see.
type UsageError struct{ error }

// Unwrap returns the fault.
func (e UsageError) Unwrap() error { return e.error }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Bar shows the progress of a long job on a terminal. Elsewhere it shows nothing, because a log
// needs only the outcome.
type Bar struct{ bar *progressbar.ProgressBar }

// NewBar returns a bar on Err.
func (s *Streams) NewBar() *Bar {
	file, ok := s.Err.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return &Bar{}
	}
	return &Bar{bar: progressbar.NewOptions(0,
		progressbar.OptionSetWriter(s.Err),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(50*time.Millisecond),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetWidth(30),
	)}
}

// Show is a snapshots.Progress; it is safe for concurrent use. It ignores errors of drawing.
func (b *Bar) Show(phase string, done, total int) {
	if b.bar == nil {
		return
	}
	b.bar.Describe(phase)
	b.bar.ChangeMax(total)
	_ = b.bar.Set(done)
}

// Finish removes the bar.
func (b *Bar) Finish() {
	if b.bar != nil {
		_ = b.bar.Finish()
	}
}
