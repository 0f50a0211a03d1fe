//go:build !linux

package keys

func adviseHugePages([]Entry) {}
