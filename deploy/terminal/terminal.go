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
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

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
	Commit  string          // that this program was built from
	Unread  []string        // variables named GRIDCAST_… that no command reads; only servers and doctor have them

	out      io.Writer
	outError error
	bar      *bar // below Err
}

// New returns streams that print to out and err.
func New(out, err io.Writer) *Streams {
	b := &bar{to: err}
	if file, ok := err.(*os.File); ok {
		b.terminal = term.IsTerminal(int(file.Fd()))
	}
	return &Streams{Err: b, Log: slog.New(slog.DiscardHandler), out: out, bar: b}
}

// OutputError is the first error of the standard output.
func (s *Streams) OutputError() error { return s.outError }

// Write writes to the standard output.
func (s *Streams) Write(p []byte) (n int, err error) {
	if s.outError == nil {
		s.EndProgress()
		n, s.outError = s.out.Write(p)
	}
	return n, s.outError
}

// Lines is a text of several lines that this program has made.
type Lines string

// Printf prints to the standard output. It escapes control characters, because a server may have sent them, and line
// ends in arguments that are strings, so that no name of a server begins a line of its own. Lines keeps them.
func (s *Streams) Printf(format string, args ...any) {
	args = slices.Clone(args)
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = oneLine.Replace(text)
		}
	}
	_, _ = s.Write([]byte(printable(fmt.Sprintf(format, args...))))
}

var oneLine = strings.NewReplacer("\n", `\u000a`, "\t", `\u0009`)

// PrintJSON prints a value as one indented JSON document. A nil slice is an empty array.
func (s *Streams) PrintJSON(v any) {
	if list := reflect.ValueOf(v); list.Kind() == reflect.Slice && list.IsNil() {
		v = []any{}
	}
	var text strings.Builder
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil && s.outError == nil {
		s.outError = err
		return
	}
	s.Printf("%s", Lines(text.String()))
}

// PrintedJSON prints v and reports true if JSON is wanted.
func (s *Streams) PrintedJSON(v any) bool {
	if s.JSON {
		s.PrintJSON(v)
	}
	return s.JSON
}

// Print prints v if JSON is wanted, else the sentence.
func (s *Streams) Print(v any, format string, args ...any) {
	if !s.PrintedJSON(v) {
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

// PrintRows is PrintList of a list with a row for each element.
func PrintRows[T any](s *Streams, list []T, none string, header []any, row func(T) []any) {
	rows := make([][]any, len(list))
	for i, one := range list {
		rows[i] = row(one)
	}
	s.PrintList(list, none, header, rows)
}

// PrintTable prints aligned columns under a header. On a terminal it wraps the last column at the edge.
func (s *Streams) PrintTable(header []any, rows [][]any) {
	width := 0
	if out, ok := s.out.(*os.File); ok {
		width, _, _ = term.GetSize(int(out.Fd())) // 0 if it is no terminal
	}
	s.Printf("%s\n", Lines(Table(header, rows, width)))
}

// Table aligns columns under a header. It wraps the last column, so that no line is wider than width. 0 wraps nothing.
func Table(header []any, rows [][]any, width int) string {
	rowTexts := append(make([][]string, 0, 1+len(rows)), shown(header))
	numbers := slices.Repeat([]bool{len(rows) > 0}, len(header)) // columns of numbers are aligned to the right
	for _, row := range rows {
		rowTexts = append(rowTexts, shown(row))
		for i, cell := range row {
			numbers[i] = numbers[i] && isNumber(cell)
		}
	}
	last := len(header) - 1
	widths := make([]int, len(header))
	before := 0 // the columns before the last, with their margins
	for i := range header {
		for _, cells := range rowTexts {
			widths[i] = max(widths[i], utf8.RuneCountInString(cells[i]))
		}
		if i < last {
			before += widths[i] + 2
		}
	}
	if width > 0 {
		widths[last] = min(widths[last], max(width-before-2, minWrap))
	}
	column := func(i int, cell string) string {
		if numbers[i] {
			return fmt.Sprintf(" %*s ", widths[i], cell)
		}
		return fmt.Sprintf(" %-*s ", widths[i], cell)
	}
	var lines []string
	for _, cells := range rowTexts {
		columns := make([]string, last)
		for i := range columns {
			columns[i] = column(i, cells[i])
		}
		line := strings.Join(columns, "")
		for _, part := range wrap(cells[last], widths[last]) {
			lines = append(lines, strings.TrimRight(line+column(last, part), " "))
			line = strings.Repeat(" ", before)
		}
	}
	return strings.Join(lines, "\n")
}

func shown(row []any) []string {
	texts := make([]string, len(row))
	for i, cell := range row {
		texts[i] = printable(oneLine.Replace(fmt.Sprint(cell)))
	}
	return texts
}

func isNumber(cell any) bool {
	k := reflect.ValueOf(cell).Kind()
	return reflect.Int <= k && k <= reflect.Float64 && k != reflect.Uintptr
}

// minWrap is the least width at which a column is wrapped.
const minWrap = 30

// wrap breaks a text between words, so that its lines have at most width characters unless a word is longer.
func wrap(text string, width int) (lines []string) {
	for word := range strings.SplitSeq(text, " ") {
		n := len(lines) - 1
		if n >= 0 && utf8.RuneCountInString(lines[n])+1+utf8.RuneCountInString(word) <= width {
			lines[n] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

// printable escapes control characters as JSON does, so that no text of another side, such as a client's name, sends
// commands such as ESC to the terminal. An escaped JSON document means the same.
func printable(text string) string {
	var out strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) || r == '\n' || r == '\t' {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&out, `\u%04x`, unit)
		}
	}
	return out.String()
}

// Time is an instant in UTC, which its Z says; empty for the zero time.
func Time(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// Number is a number in a table; empty for 0.
func Number[N int | int64](n N) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(int64(n), 10)
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

// bar shows the progress of a long job on a terminal. Elsewhere it shows nothing, because a log
// needs only the outcome. It removes itself before it passes on a text for the terminal.
type bar struct {
	to       io.Writer
	terminal bool

	mu    sync.Mutex // guards the following
	drawn time.Time
	shown bool
}

// Write removes the bar and writes. It escapes control characters, because the text of an error may be a server's.
func (b *bar) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.remove()
	_, err := io.WriteString(b.to, printable(string(p)))
	return len(p), err
}

func (b *bar) remove() {
	if b.shown {
		_, _ = io.WriteString(b.to, "\r\x1b[K")
	}
	b.shown = false
}

// Progress shows the progress of a long job. It is a snapshots.Progress, and safe for concurrent use. It draws at
// most twenty times a second and ignores errors of drawing. The next print removes the bar.
func (s *Streams) Progress(phase string, done, total int) {
	const width = 30
	b := s.bar
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.terminal || total <= 0 || done < total && time.Since(b.drawn) < 50*time.Millisecond {
		return
	}
	b.drawn, b.shown = time.Now(), true
	full := strings.Repeat("█", width*min(done, total)/total)
	_, _ = fmt.Fprintf(b.to, "\r\x1b[K%s |%-*s| %d/%d", phase, width, full, done, total)
}

// EndProgress removes the bar.
func (s *Streams) EndProgress() {
	s.bar.mu.Lock()
	defer s.bar.mu.Unlock()
	s.bar.remove()
}
