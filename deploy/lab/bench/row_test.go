//go:build linux

package main

import (
	"strings"
	"testing"

	"gridcast/deploy/golden"
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

func TestTableSaysWhatIsNoise(t *testing.T) {
	var rows []row
	for server, micros := range map[string]float64{gridcast: 6, nginx: 10, fasthttp: 6} {
		rounds := make([]sample, 6)
		for i := range rounds {
			rounds[i] = sample{CPUMicros: micros, PerSecond: 1000}
		}
		if server == fasthttp {
			rounds[0].CPUMicros, rounds[1].CPUMicros = 5, 7
		}
		rows = append(rows, newRow(server, cases[0], rounds))
	}
	table := tableOf(rows, true)
	golden.File(t, "testdata/table.txt", table)
	if strings.Count(string(plot(rows)), "<rect class=\"share\"") != 1 {
		t.Errorf("got the plot\n%s\nwant one bar", plot(rows))
	}
}
