//go:build linux

package main

import (
	"slices"
	"testing"
)

// TestOrder looks at who is next to the first server, with which the others are compared.
func TestOrder(t *testing.T) {
	var comparison comparison
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		comparison.servers = append(comparison.servers, runningServer{server: server{name: name}})
	}
	for round, want := range [][]string{{"b", "c", "a", "d", "e"}, {"e", "d", "a", "c", "b"}, {"b", "c", "a", "d", "e"}} {
		var got []string
		for _, e := range comparison.order(round) {
			got = append(got, e.server.name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("round %d: got %v, want %v", round, got, want)
		}
	}
}
