package keys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is the size of one, in bytes, on most processors.
const hugePage = 2 << 20

// adviseHugePages asks the kernel for huge pages below the slots, which nobody has written to yet.
// The keys of requests lie all over a large index: where its pages are of 4 KB, the processor does not
// remember the addresses of them all, and to find that of the next one takes as long as to fetch the
// entry. It is advice: what is smaller than a huge page stays as it is, and so does everything where the
// kernel has none.
func adviseHugePages(slots []Key) {
	first := unsafe.Pointer(unsafe.SliceData(slots))                               //nolint:gosec // of the same memory, as bytes
	memory := unsafe.Slice((*byte)(first), len(slots)*int(unsafe.Sizeof(Key{}))) //nolint:gosec // as above
	before := int(-uintptr(first) % hugePage)                                      // to where a huge page may begin
	if whole := (len(memory) - before) / hugePage * hugePage; whole > 0 {
		_ = unix.Madvise(memory[before:before+whole], unix.MADV_HUGEPAGE)
	}
}
