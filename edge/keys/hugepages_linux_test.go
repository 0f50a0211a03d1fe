package keys

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// TestHugePages reads the kernel's record of the memory of a large index: "hg" is the advice to use
// huge pages.
func TestHugePages(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
		t.Skip("the kernel has no huge pages: ", err)
	}
	x := newIndex(100_000)
	middle := uintptr(unsafe.Pointer(&x.slots[len(x.slots)/2]))
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer maps.Close()
	within := false
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to uintptr
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x ", &from, &to); n == 2 {
			within = from <= middle && middle < to
		}
		if flags, found := strings.CutPrefix(lines.Text(), "VmFlags:"); found && within {
			if !slices.Contains(strings.Fields(flags), "hg") {
				t.Errorf("flags of the index's memory: %s; want hg among them", flags)
			}
			runtime.KeepAlive(x)
			return
		}
	}
	t.Fatal("the kernel does not say where the index lies")
}
