//go:build linux

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
)

func TestMedianRank(t *testing.T) {
	// Conover, Practical Nonparametric Statistics: ranks of the 95 % interval of a median.
	for n, want := range map[int]int{1: 0, 5: 0, 6: 1, 8: 1, 9: 2, 11: 2, 12: 3, 15: 4, 20: 6, 25: 8} {
		if got := medianRank(n); got != want {
			t.Errorf("%d samples: got rank %d, want %d", n, got, want)
		}
	}
}

// TestShareComparesWithinARound has a machine that was twice as fast in one round.
func TestShareComparesWithinARound(t *testing.T) {
	rows := func(ours ...float64) (a, b row) {
		for i, micros := range ours {
			speed := 1.0
			if i == 1 {
				speed = 2
			}
			a.Rounds = append(a.Rounds, sample{CPUMicros: micros / speed})
			b.Rounds = append(b.Rounds, sample{CPUMicros: 10 / speed})
		}
		return a, b
	}
	for _, tt := range []struct {
		name   string
		ours   []float64
		median float64
		noise  bool
	}{
		{"cheaper in every round", []float64{8, 9, 8.5, 9, 9, 9}, 0.9, false},
		{"cheaper in most rounds", []float64{8, 9, 8.5, 11, 9, 9}, 0.9, true},
		{"too few rounds", []float64{8, 8, 8}, 0.8, true},
		{"dearer", []float64{12, 12, 13, 12, 12, 12}, 1.2, false},
	} {
		a, b := rows(tt.ours...)
		if s := shareOf(&a, &b); s.median != tt.median || s.withinNoise() != tt.noise {
			t.Errorf("%s: got %+v, within the noise %v, want %v and %v", tt.name, s, s.withinNoise(), tt.median, tt.noise)
		}
	}
}

// TestTables has a server whose shares are noise, one that is missing, and a load generator that was too busy.
func TestTables(t *testing.T) {
	var rows []row
	for _, server := range []struct {
		name   string
		micros float64
	}{{gridcast, 6}, {nginx, 10}, {fasthttp, 6}} {
		for _, percent := range percents {
			r := row{Server: server.name, Case: cases[0].name, Percent: percent, Capacity: 1000, CapacityBusy: 0.95, Rounds: make([]sample, 6)}
			for i := range r.Rounds {
				r.Rounds[i] = sample{CPUMicros: server.micros, PerSecond: 10 * float64(percent), LoadBusy: 0.0101 * float64(percent)}
			}
			if server.name == fasthttp {
				r.Rounds[0].CPUMicros, r.Rounds[1].CPUMicros = 5, 7
			}
			r.medians()
			rows = append(rows, r)
		}
	}
	rows = append(rows, row{Server: lighttpd, Case: cases[0].name, Missing: true})
	golden.File(t, "testdata/table.txt", summaryOf(rows, true)+"\n\n"+tableOf(rows, true)+"\n")
}

// TestSearchCapacity has servers of known capacities, and a guess beside each.
func TestSearchCapacity(t *testing.T) {
	for _, tt := range []struct{ capacity, guess float64 }{{50000, 50000}, {50000, 45000}, {50000, 80000}, {1234, 1100}} {
		probes := 0
		got := must.Get(searchCapacity(tt.guess, func(rate float64) (bool, error) {
			probes++
			return rate <= tt.capacity, nil
		}))(t)
		must.Hold(t, got <= tt.capacity && got >= tt.capacity-tt.guess/40 && probes <= 6, "guess %.0f: got %.0f with %d probes, want %.0f", tt.guess, got, probes, tt.capacity)
	}
}

func TestFillDocument(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	must.Do(t, os.WriteFile(file, []byte("a\n<!-- bench -->\nold\n<!-- end of bench -->\nb\n"), 0o600))
	for range 2 { // the second time changes nothing
		must.Do(t, fillDocument(file, "bench", "new"))
	}
	got := string(must.Get(os.ReadFile(file))(t))
	must.Hold(t, got == "a\n<!-- bench -->\n\nnew\n<!-- end of bench -->\nb\n", "got %q", got)
	golden.Sentence(t, "no marker", errors.New(strings.ReplaceAll(must.Err(0, fillDocument(file, "load", "new")).Error(), file, "FILE")))
}
