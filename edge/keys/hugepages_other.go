//go:build !linux

package keys

func adviseHugePages([]Key) {}
