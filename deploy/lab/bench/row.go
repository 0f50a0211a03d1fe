//go:build linux

package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// sample is one load on one server.
type sample struct {
	PerSecond float64 `json:"requests_per_second"`
	P50       float64 `json:"p50_ms"`
	P99       float64 `json:"p99_ms"`
	CPUMicros float64 `json:"cpu_us_per_request"`
	LoadBusy  float64 `json:"load_busy"` // share of its core that the load generator used
}

// row holds the samples of a server in a case at a share of its capacity, and their medians.
type row struct {
	Server       string  `json:"server"`
	Case         string  `json:"case"`
	Missing      bool    `json:"missing,omitzero"` // the server is not installed, and the rest is zero
	Percent      int     `json:"percent_of_capacity"`
	Capacity     float64 `json:"capacity"`      // requests a second
	CapacityBusy float64 `json:"capacity_busy"` // LoadBusy at the capacity
	sample
	Rounds []sample `json:"rounds"`
}

// medians fills the row with the medians of its rounds.
func (r *row) medians() {
	of := func(value func(sample) float64) float64 {
		values := make([]float64, len(r.Rounds))
		for i, s := range r.Rounds {
			values[i] = value(s)
		}
		return median(values)
	}
	r.sample = sample{
		PerSecond: of(func(s sample) float64 { return s.PerSecond }),
		P50:       of(func(s sample) float64 { return s.P50 }),
		P99:       of(func(s sample) float64 { return s.P99 }),
		CPUMicros: of(func(s sample) float64 { return s.CPUMicros }),
		LoadBusy:  of(func(s sample) float64 { return s.LoadBusy }),
	}
}

// mostBusy is the share of its core above which the load generator, and not the server, may have set a figure.
const mostBusy = 0.9

// busyCell is the share of the load generator as a cell of a table.
func busyCell(share float64) string {
	if share > mostBusy {
		return fmt.Sprintf("%.0f %%: too busy", 100*share)
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}

// capacityCell is the capacity as a cell of a table. It is a lower bound if the load generator may have been the limit.
func (r *row) capacityCell() string {
	if r.CapacityBusy > mostBusy {
		return fmt.Sprintf("over %.0f", r.Capacity)
	}
	return fmt.Sprintf("%.0f", r.Capacity)
}

// find returns the summarised row of a server in a case, nil if it was not measured.
func find(rows []row, server, name string) *row {
	for i := range rows {
		if r := &rows[i]; r.Server == server && r.Case == name && r.Percent == summarised {
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

func newTable(header ...any) table.Writer {
	t := table.NewWriter()
	style := table.StyleLight
	style.Options.DrawBorder, style.Options.SeparateColumns = false, false
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	t.AppendHeader(header)
	return t
}

func render(t table.Writer, markdown bool) string {
	if markdown {
		return t.RenderMarkdown()
	}
	return t.Render()
}

// summaryOf renders one line for each case: gridcast's CPU time at a summarised load, and its shares of the other servers'.
func summaryOf(rows []row, markdown bool) string {
	header := table.Row{"request", "CPU µs", "of nginx", "goal", "of haproxy", "of lighttpd", "of fasthttp"}
	others := []string{nginx, haproxy, lighttpd, fasthttp}
	if find(rows, before, rows[0].Case) != nil {
		header, others = append(header, "of before"), append(others, before)
	}
	t := newTable(append(header, "p50 ms", "p99 ms", "generator")...)
	for _, c := range cases {
		r := find(rows, gridcast, c.name)
		if r == nil {
			continue
		}
		line := table.Row{c.name, fmt.Sprintf("%.2f", r.CPUMicros)}
		for _, server := range others {
			cell, goal := "", ""
			if other := find(rows, server, c.name); other != nil {
				s := shareOf(r, other)
				cell = s.String()
				if goal = ""; c.goal > 0 {
					goal = fmt.Sprintf("%.2f", c.goal)
					if s.median > c.goal {
						goal += ", missed"
					}
				}
			}
			if line = append(line, cell); server == nginx {
				line = append(line, goal)
			}
		}
		t.AppendRow(append(line, fmt.Sprintf("%.2f", r.P50), fmt.Sprintf("%.2f", r.P99), busyCell(r.LoadBusy)))
	}
	return render(t, markdown)
}

// tableOf renders one line for each server in each case and at each load.
func tableOf(rows []row, markdown bool) string {
	t := newTable("request", "server", "capacity, req/s", "load", "CPU µs", "p50 ms", "p99 ms", "generator")
	for i := range rows {
		r := &rows[i]
		if r.Missing {
			t.AppendRow(table.Row{r.Case, r.Server + " is not installed", "", "", "", "", "", ""})
			continue
		}
		t.AppendRow(table.Row{
			r.Case, r.Server, r.capacityCell(), fmt.Sprintf("%d %%", r.Percent), fmt.Sprintf("%.2f", r.CPUMicros),
			fmt.Sprintf("%.2f", r.P50), fmt.Sprintf("%.2f", r.P99), busyCell(r.LoadBusy),
		})
	}
	return render(t, markdown)
}

// String is the share as a cell of the table.
func (s share) String() string {
	switch {
	case !s.known:
		return fmt.Sprintf("%.2f, too few rounds", s.median)
	case s.withinNoise():
		return fmt.Sprintf("%.2f within noise", s.median)
	default:
		return fmt.Sprintf("%.2f [%.2f, %.2f]", s.median, s.low, s.high)
	}
}
