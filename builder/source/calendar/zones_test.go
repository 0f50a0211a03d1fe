package calendar_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestWithoutZonesOfTheMachine runs TestEvents without any other file, as in an image from scratch.
func TestWithoutZonesOfTheMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("short: under the race detector a test needs files of the machine")
	}
	if os.Geteuid() != 0 {
		t.Skip("only root may run a program in an empty folder as its root")
	}
	root := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{self: "test"}
	// The test binary may be linked with shared libraries: copy them too.
	if libraries, err := exec.CommandContext(t.Context(), "ldd", self).Output(); err == nil {
		for _, word := range strings.Fields(string(libraries)) {
			if filepath.IsAbs(word) {
				files[word] = word
			}
		}
	}
	for from, to := range files {
		data, err := os.ReadFile(from)
		if err != nil {
			continue // the name of a library that the kernel brings
		}
		to = filepath.Join(root, to)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "/test", "-test.run=^TestEvents$", "-test.v")
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", []string{}, &syscall.SysProcAttr{Chroot: root}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestEvents") {
		t.Errorf("without time zones of the machine: %v\n%s", err, out)
	}
}
