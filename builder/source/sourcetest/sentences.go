package sourcetest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Sentences compares sentences for people, each under the input that causes it, with a golden file
// below testdata. GRIDCAST_UPDATE_GOLDEN=1 in the environment writes the file instead.
func Sentences(t testing.TB, name string, got map[string]string) {
	t.Helper()
	var text strings.Builder
	for _, input := range slices.Sorted(maps.Keys(got)) {
		fmt.Fprintf(&text, "%q\n\t%s\n", input, strings.ReplaceAll(got[input], "\n", "\n\t"))
	}
	file := filepath.Join("testdata", name)
	if os.Getenv("GRIDCAST_UPDATE_GOLDEN") != "" {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text.String()); diff != "" {
		t.Errorf("%s; GRIDCAST_UPDATE_GOLDEN=1 go test writes it (-want +got):\n%s", file, diff)
	}
}
