package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes gridcast a command of the scripts in testdata, run by this test binary.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"gridcast": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata"})
}

// built is the real binary.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "gridcast-test-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "gridcast")
	output, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build gridcast: %w\n%s", err, output)
	}
	return path, nil
})

// binary returns the path of the real binary, which is built once.
func binary(t testing.TB) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
