//go:build linux

package main

import (
	"cmp"
	"math"
	"slices"
)

// sample is one second of load on one server.
type sample struct {
	PerSecond float64 `json:"requests_per_second"`
	P50       float64 `json:"p50_ms"`
	P99       float64 `json:"p99_ms"`
	CPUMicros float64 `json:"cpu_us_per_request"`
	LoadBusy  float64 `json:"load_busy"` // share of its core that the load generator used
}

// row holds the samples of a server in a case, and their medians.
type row struct {
	Server      string `json:"server"`
	Case        string `json:"case"`
	Connections int    `json:"connections"`
	sample
	Rounds []sample `json:"rounds"`
}

func newRow(server string, c benchCase, rounds []sample) row {
	of := func(value func(sample) float64) float64 {
		values := make([]float64, len(rounds))
		for i, s := range rounds {
			values[i] = value(s)
		}
		return median(values)
	}
	return row{Server: server, Case: c.name, Connections: c.connections, Rounds: rounds, sample: sample{
		PerSecond: of(func(s sample) float64 { return s.PerSecond }),
		P50:       of(func(s sample) float64 { return s.P50 }),
		P99:       of(func(s sample) float64 { return s.P99 }),
		CPUMicros: of(func(s sample) float64 { return s.CPUMicros }),
		LoadBusy:  of(func(s sample) float64 { return s.LoadBusy }),
	}}
}

// find returns the row of a server in a case, nil if it was not measured.
func find(rows []row, server, name string, connections int) *row {
	for i := range rows {
		if r := &rows[i]; r.Server == server && r.Case == name && r.Connections == connections {
			return r
		}
	}
	return nil
}

// share is the CPU time of one server as a part of another's: the median over the rounds, and its interval.
type share struct {
	median, low, high float64
	known             bool // there are enough rounds for an interval
}

// shareOf compares the CPU time of two rows round by round, because the speed of a shared machine changes
// from round to round and is alike within one.
func shareOf(ours, theirs *row) share {
	n := min(len(ours.Rounds), len(theirs.Rounds))
	shares := make([]float64, n)
	for i := range shares {
		shares[i] = ours.Rounds[i].CPUMicros / theirs.Rounds[i].CPUMicros
	}
	s := share{median: median(shares)}
	if rank := medianRank(n); rank > 0 {
		s.low, s.high, s.known = shares[rank-1], shares[n-rank], true
	}
	return s
}

// withinNoise reports whether the rounds do not tell the two servers apart.
func (s share) withinNoise() bool { return !s.known || s.low <= 1 && s.high >= 1 }

// medianRank returns the largest rank r such that the r-th smallest and the r-th largest of n independent
// samples enclose the median of their distribution with a probability of at least 95 %: the sign test. It is
// 0 for fewer than 6 samples.
func medianRank(n int) (rank int) {
	probability, tail := math.Pow(0.5, float64(n)), 0.0 // of exactly, and of at most, rank samples below the median
	for tail+probability <= 0.025 {
		tail += probability
		probability *= float64(n-rank) / float64(rank+1)
		rank++
	}
	return rank
}

// median returns the median of the values, which it sorts.
func median(values []float64) float64 {
	slices.SortFunc(values, cmp.Compare)
	half := len(values) / 2
	if len(values)%2 == 0 {
		return (values[half-1] + values[half]) / 2
	}
	return values[half]
}
