package redislimit

import "sync/atomic"

// tally is a number that belongs to one window: the window is in the upper 32 bits and the
// number in the lower ones, so that both change in one step. It begins as 0 of a window long
// ago.
type tally struct{ state atomic.Uint64 }

func (t *tally) load() (window int64, n int) { return unpack(t.state.Load()) }

// add adds n of the window, and forgets what there was of an earlier one. What comes after the
// window's end is ignored.
func (t *tally) add(window int64, n int) {
	t.change(window, func(had int) int { return had + n })
}

// raise makes it n of the window at least.
func (t *tally) raise(window int64, n int) {
	t.change(window, func(had int) int { return max(had, n) })
}

func (t *tally) change(window int64, to func(had int) int) {
	for {
		state := t.state.Load()
		last, had := unpack(state)
		if last > window {
			return
		}
		if last < window {
			had = 0
		}
		if t.state.CompareAndSwap(state, pack(window, to(had))) {
			return
		}
	}
}

// take takes one, if there is one of the window or of a later one, and returns how many it
// leaves there.
func (t *tally) take(earliest int64) (window int64, left int, ok bool) {
	for {
		state := t.state.Load()
		window, n := unpack(state)
		if window < earliest || n == 0 {
			return window, n, false
		}
		if t.state.CompareAndSwap(state, pack(window, n-1)) {
			return window, n - 1, true
		}
	}
}

// drain takes everything.
func (t *tally) drain() (window int64, n int) { return unpack(t.state.Swap(0)) }

func pack(window int64, n int) uint64 { return uint64(window)<<32 | uint64(n) }

func unpack(state uint64) (window int64, n int) { return int64(state >> 32), int(uint32(state)) }
