package operator_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/sentences.txt anew")

// sentences are the texts for people that tests compare, by name. They stand in testdata/sentences.txt alone.
var sentences struct {
	sync.Mutex

	want, got map[string]string
}

func TestMain(m *testing.M) {
	file, err := os.ReadFile("testdata/sentences.txt")
	if err != nil {
		panic(err)
	}
	sentences.want, sentences.got = map[string]string{}, map[string]string{}
	for line := range strings.Lines(string(file)) {
		name, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		sentences.want[name] = text
	}
	status := m.Run()
	if *update {
		maps.Copy(sentences.want, sentences.got)
		var b strings.Builder
		for _, name := range slices.Sorted(maps.Keys(sentences.want)) {
			fmt.Fprintf(&b, "%s\t%s\n", name, sentences.want[name])
		}
		if err := os.WriteFile("testdata/sentences.txt", []byte(b.String()), 0o600); err != nil {
			panic(err)
		}
	}
	os.Exit(status)
}

// says compares a text for people, an error or a list of sentences with testdata/sentences.txt. Every pair of
// replaced is a text that differs by run, and its name there.
func says(t *testing.T, name string, got any, replaced ...string) {
	t.Helper()
	text := fmt.Sprint(got)
	if list, ok := got.([]string); ok {
		text = strings.Join(list, " | ")
	}
	text = strings.NewReplacer(replaced...).Replace(strings.ReplaceAll(text, "\n", " / "))
	sentences.Lock()
	defer sentences.Unlock()
	sentences.got[name] = text
	if want := sentences.want[name]; text != want && !*update {
		t.Errorf("%s:\ngot  %s\nwant %s", name, text, want)
	}
}
