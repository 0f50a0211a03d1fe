package keys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is the size of a huge page, in bytes, on most processors.
const hugePage = 2 << 20

// adviseHugePages asks the kernel for huge pages below the slots. No slot has been written yet. Requests
// look up slots all over a large index. With pages of 4 KB the processor cannot keep all page addresses, and
// finding the next address takes as long as fetching the entry. The call is advice: an index below the size
// of a huge page is unchanged, and so is every index on a kernel without huge pages.
func adviseHugePages(slots []Key) {
	first := unsafe.Pointer(unsafe.SliceData(slots))                             //nolint:gosec // of the same memory, as bytes
	memory := unsafe.Slice((*byte)(first), len(slots)*int(unsafe.Sizeof(Key{}))) //nolint:gosec // as above
	before := int(-uintptr(first) % hugePage)                                    // bytes to the first possible start of a huge page
	if whole := (len(memory) - before) / hugePage * hugePage; whole > 0 {
		_ = unix.Madvise(memory[before:before+whole], unix.MADV_HUGEPAGE)
	}
}
