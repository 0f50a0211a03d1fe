package golden_test

import (
	"fmt"
	"os"
	"testing"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
)

// recorder is a test that only notes that it failed.
type recorder struct {
	testing.TB

	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) Fatal(...any)          { panic(r) }
func (r *recorder) Fatalf(string, ...any) { panic(r) }

func fails(t *testing.T, check func(t testing.TB)) (failed bool) {
	t.Helper()
	r := &recorder{TB: t}
	defer func() { failed = r.failed || recover() != nil }()
	check(r)
	return r.failed
}

// TestGolden checks that another text, another name and an absent file fail, and that the recorded ones do not.
func TestGolden(t *testing.T) {
	t.Chdir(t.TempDir())
	must.Do(t, os.Mkdir("testdata", 0o700))
	for path, text := range map[string]string{"sentences.txt": "refused\torder of ROUND / HAM twice\n", "inputs.txt": "\"HAM\"\n\ttwice\n\tor more\n", "table.txt": "Where to.\n\n\"HAM\"\n\tto HAM\n", "value.json": "{\n  \"a\": 1\n}\n"} {
		must.Do(t, os.WriteFile("testdata/"+path, []byte(text), 0o600))
	}
	for _, test := range []struct {
		name  string
		check func(t testing.TB)
		fails bool
	}{
		{"value", func(t testing.TB) { golden.File(t, "testdata/value.json", map[string]int{"a": 1}) }, false},
		{"another value", func(t testing.TB) { golden.File(t, "testdata/value.json", map[string]int{"a": 2}) }, true},
		{"no file", func(t testing.TB) { golden.File(t, "testdata/none.json", "text") }, true},
		{"inputs", func(t testing.TB) {
			golden.Inputs(t, "testdata/inputs.txt", map[string]string{"HAM": "twice\nor more"})
		}, false},
		{"another input", func(t testing.TB) {
			golden.Inputs(t, "testdata/inputs.txt", map[string]string{"VER": "twice\nor more"})
		}, true},
		{"table", func(t testing.TB) {
			golden.Table(t, "testdata/table.txt", func(input string) string { return "to " + input })
		}, false},
		{"another result", func(t testing.TB) {
			golden.Table(t, "testdata/table.txt", func(input string) string { return input })
		}, true},
		{"table without inputs", func(t testing.TB) {
			golden.Table(t, "testdata/sentences.txt", func(input string) string { return input })
		}, true},
		{"sentence", func(t testing.TB) {
			golden.Sentence(t, "refused", fmt.Errorf("order of %d\nHAM twice", 2024001), "2024001", "ROUND")
		}, false},
		{"another sentence", func(t testing.TB) { golden.Sentence(t, "refused", "order of ROUND") }, true},
		{"another name", func(t testing.TB) { golden.Sentence(t, "accepted", "") }, true},
	} {
		if got := fails(t, test.check); got != test.fails {
			t.Errorf("%s: fails is %v, want %v", test.name, got, test.fails)
		}
	}
}
