package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gridcast/deploy/must"
	"gridcast/deploy/operator"
)

// TestFileOfAResult reads an order or a document, and refuses a file with neither: a correction without both takes the
// classification of the source.
func TestFileOfAResult(t *testing.T) {
	for content, want := range map[string]operator.Codes{
		"VER +1.2s\nNOR  # late\n": {"VER", "NOR"}, `{"rows": []}`: nil, "": nil, " \n": nil, "# VER\n": nil,
	} {
		file := filepath.Join(t.TempDir(), "result")
		must.Do(t, os.WriteFile(file, []byte(content), 0o600))
		var order operator.Codes
		var document []byte
		err := (&resultFlags{File: file}).readFile(&order, &document)
		must.Hold(t, slices.Equal(order, want) && (err == nil) == (len(order) > 0 || len(document) > 0), "%q: got %q, %q, %v; want %q, a document or an error", content, order, document, err, want)
	}
}
