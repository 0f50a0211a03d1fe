//go:build linux

package main

import (
	"strings"
	"testing"
	"time"

	"gridcast/deploy/golden"
	"gridcast/deploy/lab/bench/loadgen"
	"gridcast/deploy/must"
)

// overloaded returns a run with steps of four seconds. The edges are overloaded in the fourth step, and for two seconds more.
func overloaded() *loadRun {
	run := &loadRun{Capacity: 1000, CapacityBusy: 0.5, Busy: 0.95, Step: 4 * time.Second, Events: []event{{time.Second, swapped}, {3 * time.Second, restarted}}}
	for i := range len(loadPercents) * 4 {
		s := loadgen.Second{Answered: 9 * loadPercents[i/4], Refused: loadPercents[i/4], P50: time.Millisecond, P99: 2 * time.Millisecond, Refusal: time.Millisecond}
		if i == 3 {
			s.P99, s.Repeated = 4*time.Millisecond, 7
		}
		if i >= 12 && i < 18 {
			s.P50, s.P99, s.GivenUp, s.Answered = 900*time.Millisecond, time.Second, 200, 900
		}
		run.Seconds = append(run.Seconds, s)
	}
	return run
}

func TestLoadReport(t *testing.T) {
	run := overloaded()
	report := strings.TrimPrefix(run.report(true), machine())
	golden.File(t, "testdata/load.txt", report)
	must.Do(t, run.fault())
	if seconds, ok := run.recovery(); !ok || seconds != 2 {
		t.Errorf("got a recovery after %d seconds, %v, want 2", seconds, ok)
	}
	drawn := string(run.plot())
	for class, want := range map[string]int{"p99": 1, "errors": 1, "version": 2, "restart": 2, "keys": 0, "step": 10} {
		must.Hold(t, strings.Count(drawn, `<polyline class="`+class+`"`) == want, "%s: want %d lines in\n%s", class, want, drawn)
	}
}

func TestLoadFaults(t *testing.T) {
	run := overloaded()
	run.Seconds[5].Errors, run.Seconds[5].Statuses = 3, map[int]int{503: 2}
	golden.Sentence(t, "requests failed", run.fault())
	run = overloaded()
	for i := range run.Seconds[16:] {
		run.Seconds[16+i].P99 = 5 * time.Millisecond
	}
	golden.Sentence(t, "no recovery", run.fault())
}
