package servers

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// unmapProgram takes the pages of the program's file out of the memory of this process, because most of them serve the
// start alone. A page that is used again comes back from the cache of the system in a microsecond, with its
// neighbours. Mappings that the process may write or has written stay.
func unmapProgram() {
	program, err := os.Executable()
	if err != nil {
		return
	}
	mappings, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer func() { _ = mappings.Close() }()
	var begin, end uintptr // of the last mapping of the program that only readers have
	for lines := bufio.NewScanner(mappings); lines.Scan(); {
		switch fields := strings.Fields(lines.Text()); {
		case !strings.HasSuffix(fields[0], ":"):
			begin, end = 0, 0
			if strings.HasSuffix(lines.Text(), " "+program) && !strings.Contains(fields[1], "w") {
				_, _ = fmt.Sscanf(fields[0], "%x-%x", &begin, &end)
			}
		case fields[0] == "Anonymous:" && fields[1] == "0" && begin < end:
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, begin, end-begin, unix.MADV_DONTNEED)
		}
	}
}
