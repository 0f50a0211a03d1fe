package servers

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestUnmapProgram: the pages of the program's file leave the process, and it goes on.
func TestUnmapProgram(t *testing.T) {
	resident := func() int {
		t.Helper()
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, found := strings.Cut(string(status), "RssFile:")
		if !found {
			t.Skip("this kernel does not count the pages of files")
		}
		kib, err := strconv.Atoi(strings.Fields(rest)[0])
		if err != nil {
			t.Fatal(err)
		}
		return kib
	}
	before := resident()
	unmapProgram()
	if after := resident(); after >= before {
		t.Errorf("%d KiB of files are resident, %d before: no page left the process", after, before)
	}
}
