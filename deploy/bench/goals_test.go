//go:build linux

package main

import "testing"

func TestGoals(t *testing.T) {
	var rows []row
	for _, r := range []row{
		{Server: gridcastName, Case: smallCase, Connections: usual, PerSecond: 150, CPUMicros: 4},
		{Server: gridcastName, Case: smallCase, Connections: crowd, PerSecond: 1, CPUMicros: 400},
		{Server: fasthttpName, Case: smallCase, Connections: usual, PerSecond: 100, CPUMicros: 5},
		{Server: epollName, Case: smallCase, Connections: usual, PerSecond: 160, CPUMicros: 3.2},
		{Server: nginxName, Case: smallCase, Connections: usual, PerSecond: 120, CPUMicros: 6},
		{Server: strictName, Case: smallCase, Connections: usual, PerSecond: 90, CPUMicros: 9},
		{Server: gridcastName, Case: notModifiedCase, Connections: usual, PerSecond: 97, CPUMicros: 4},
		{Server: gridcastName, Case: notModifiedSized, Connections: usual, PerSecond: 100, CPUMicros: 4},
	} {
		wrk, loadgen := r, r
		wrk.Load, loadgen.Load = wrkLoad, loadgenLoad
		if r.Server == nginxName {
			loadgen.PerSecond = 100
		}
		if r.Server == strictName {
			loadgen.PerSecond = 75
		}
		rows = append(rows, wrk, loadgen)
	}
	want := map[string]string{
		"2 KB: CPU of fasthttp constant":                            "met by 0.150",
		"2 KB: req/s of nginx":                                      "met under loadgen, missed by 0.050 under wrk",
		"2 KB: CPU of epoll constant":                               "missed by 0.100",
		"2 KB, gridcast, redis strict: req/s of gridcast in memory": "met under wrk, missed by 0.050 under loadgen",
		"304: req/s of 304-sized":                                   "met by 0.000",
	}
	for _, g := range goals {
		wrk, measured := g.reached(rows, wrkLoad)
		loadgen, too := g.reached(rows, loadgenLoad)
		wanted, expected := want[g.String()]
		if measured != expected || too != expected {
			t.Errorf("%s: measured %v and %v, want %v", &g, measured, too, expected)
		}
		if got := g.verdict(wrk, loadgen); measured && got != wanted {
			t.Errorf("%s: got %q of %v and %v, want %q", &g, got, wrk, loadgen, wanted)
		}
		delete(want, g.String())
	}
	for name := range want {
		t.Errorf("no goal %s", name)
	}
}

// TestShareIsThatOfARound compares on a machine that was twice as fast for one of three rounds,
// which fell on different runs' medians.
func TestShareIsThatOfARound(t *testing.T) {
	ours := row{CPUMicros: 9, Runs: []sample{{CPUMicros: 9}, {CPUMicros: 4.5}, {CPUMicros: 9.1}}}
	theirs := row{CPUMicros: 10, Runs: []sample{{CPUMicros: 10}, {CPUMicros: 5}, {CPUMicros: 10}}}
	if got := ours.share(theirs, cpu); got != 0.9 {
		t.Errorf("got %v, want 0.9", got)
	}
	if got := ours.share(row{CPUMicros: 18}, cpu); got != 0.5 {
		t.Errorf("without runs: got %v, want 0.5", got)
	}
}
