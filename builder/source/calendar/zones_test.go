package calendar_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"gridcast/builder/season"
	"gridcast/builder/source/calendar"
)

var update = flag.Bool("update", false, "make zoneinfo.zip.zst from the Go distribution")

// TestZones: the packed zones tell the same time as those of the machine.
func TestZones(t *testing.T) {
	if *update {
		root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
		if err != nil {
			t.Fatal(err)
		}
		plain, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "lib/time/zoneinfo.zip"))
		if err != nil {
			t.Fatal(err)
		}
		writer, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("zoneinfo.zip.zst", writer.EncodeAll(plain, nil), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// Of the day on which this year's clocks change there may be news; of a past year there is none.
	for _, name := range []string{"Europe/London", "Australia/Melbourne", "America/Sao_Paulo", "Asia/Riyadh", "America/New_York"} {
		packed, err := calendar.PackedZone(name)
		if err != nil {
			t.Error(err)
			continue
		}
		known, err := time.LoadLocation(name)
		if err != nil {
			t.Skipf("this machine has no time zones to compare with: %v", err)
		}
		for at := time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() < 2026; at = at.AddDate(0, 0, 7) {
			if got, want := at.In(packed).Format(time.RFC3339), at.In(known).Format(time.RFC3339); got != want {
				t.Errorf("%s: got %s, want %s", name, got, want)
				break
			}
		}
	}
	for _, circuit := range []season.CircuitID{"melbourne", "las-vegas", "monaco", "suzuka", "lusail"} {
		if _, err := calendar.PackedZone(season.TimeZone(circuit)); err != nil {
			t.Errorf("%s: %v", circuit, err)
		}
	}
}

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
