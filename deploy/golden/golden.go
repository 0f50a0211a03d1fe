// Package golden compares text that a test got with a file of its package. go test -update writes the files anew.
package golden

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Updates reports whether the files are written anew. A test whose file is no text asks for it.
func Updates() bool { return *update }

// File compares a text with a file: a string or bytes as they are, any other value as indented JSON.
func File(t testing.TB, path string, got any) {
	t.Helper()
	text := textOf(t, got)
	if *update {
		write(t, path, text)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; -update writes it", err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(text, "\n")); diff != "" {
		t.Errorf("%s differs (-want +got); -update writes it anew\n%s", path, diff)
	}
}

// Inputs compares texts for people with a file. Each stands there under the input that causes it.
func Inputs(t testing.TB, path string, got map[string]string) {
	t.Helper()
	var text strings.Builder
	for _, input := range slices.Sorted(maps.Keys(got)) {
		fmt.Fprintf(&text, "%q\n\t%s\n", input, strings.ReplaceAll(got[input], "\n", "\n\t"))
	}
	File(t, path, text.String())
}

// Table gives each input of a file to f, and compares the results with those that stand below. An input is a quoted line,
// its result is indented, and any other line is for people.
func Table(t testing.TB, path string, f func(input string) string) {
	t.Helper()
	stored, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	rows := 0
	for line := range strings.Lines(string(stored)) {
		if strings.HasPrefix(line, "\t") {
			continue
		}
		text.WriteString(line)
		if input, err := strconv.Unquote(strings.TrimSuffix(line, "\n")); err == nil {
			rows++
			fmt.Fprintf(&text, "\t%s\n", strings.ReplaceAll(f(input), "\n", "\n\t"))
		}
	}
	if rows == 0 {
		t.Fatalf("%s has no inputs", path)
	}
	File(t, path, text.String())
}

// Story takes the steps of a file of [Table], several on a line after "; ", and compares the results that they show. A step has
// the form of a command. The texts that the expression matches differ by run, and stand there as hidden.
func Story(t testing.TB, path string, steps map[string]func(words []string) string, differs *regexp.Regexp, hidden string) {
	t.Helper()
	Table(t, path, func(line string) string {
		var shown []string
		for step := range strings.SplitSeq(line, "; ") {
			words := strings.Fields(step)
			do := steps[words[0]]
			if do == nil {
				t.Fatalf("%s: there is no step %q", path, words[0])
			}
			if text := do(words[1:]); text != "" {
				shown = append(shown, differs.ReplaceAllString(text, hidden))
			}
		}
		return strings.Join(shown, "\n")
	})
}

// sentences guards testdata/sentences.txt of the package, a name, a tab and a text a line.
var sentences sync.Mutex

// Sentence compares a text for people, an error or a list of texts with the line of that name in
// testdata/sentences.txt. Every pair of replaced is a text that differs by run, and its name there.
// To drop the lines that no test compares, empty the file and run all tests of the package with -update.
func Sentence(t testing.TB, name string, got any, replaced ...string) {
	t.Helper()
	text := fmt.Sprint(got)
	if list, ok := got.([]string); ok {
		text = strings.Join(list, " | ")
	}
	text = strings.ReplaceAll(strings.TrimSpace(strings.NewReplacer(replaced...).Replace(text)), "\n", " / ")
	const path = "testdata/sentences.txt"
	sentences.Lock()
	defer sentences.Unlock()
	stored, err := os.ReadFile(path)
	if err != nil && !*update {
		t.Fatal(err)
	}
	lines := map[string]string{}
	for line := range strings.Lines(string(stored)) {
		of, sentence, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		lines[of] = sentence
	}
	if want, ok := lines[name]; text != want || !ok {
		if !*update {
			t.Errorf("%s differs from its line in %s; -update writes it anew\ngot  %s\nwant %s", name, path, text, want)
			return
		}
		lines[name] = text
		var all strings.Builder
		for _, name := range slices.Sorted(maps.Keys(lines)) {
			fmt.Fprintf(&all, "%s\t%s\n", name, lines[name])
		}
		write(t, path, all.String())
	}
}

func textOf(t testing.TB, got any) string {
	t.Helper()
	switch got := got.(type) {
	case string:
		return got
	case []byte:
		return string(got)
	}
	text, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // a folder of the repository
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // a file of the repository
		t.Fatal(err)
	}
}
