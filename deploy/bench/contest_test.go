//go:build linux

package main

import (
	"slices"
	"testing"
)

// TestOrder looks at who is next to the first entrant, with which the others are compared.
func TestOrder(t *testing.T) {
	var contest contest
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		contest.entrants = append(contest.entrants, entrant{server: server{name: name}})
	}
	for round, want := range [][]string{{"b", "c", "a", "d", "e"}, {"e", "d", "a", "c", "b"}, {"b", "c", "a", "d", "e"}} {
		var got []string
		for _, e := range contest.order(round) {
			got = append(got, e.server.name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("round %d: got %v, want %v", round, got, want)
		}
	}
}
