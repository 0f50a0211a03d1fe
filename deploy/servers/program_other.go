//go:build !linux

package servers

func unmapProgram() {}
