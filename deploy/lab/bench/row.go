//go:build linux

package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
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

// tableOf renders one line for each case: gridcast's CPU time first, then its shares of the other servers'.
func tableOf(rows []row, markdown bool) string {
	t := table.NewWriter()
	style := table.StyleLight
	style.Options.DrawBorder, style.Options.SeparateColumns = false, false
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	header := table.Row{"request", "connections", "CPU µs", "of nginx", "of haproxy", "of fasthttp"}
	others := []string{nginx, haproxy, fasthttp}
	if find(rows, before, rows[0].Case, rows[0].Connections) != nil {
		header, others = append(header, "of before"), append(others, before)
	}
	t.AppendHeader(append(header, "req/s", "p50 ms", "p99 ms", "load busy"))
	for i := range rows {
		r := &rows[i]
		if r.Server != gridcast {
			continue
		}
		line := append(make(table.Row, 0, len(header)+4), r.Case, r.Connections, fmt.Sprintf("%.2f", r.CPUMicros))
		for _, server := range others {
			cell := ""
			if other := find(rows, server, r.Case, r.Connections); other != nil {
				cell = shareOf(r, other).String()
			}
			line = append(line, cell)
		}
		t.AppendRow(append(line, fmt.Sprintf("%.0f", r.PerSecond), fmt.Sprintf("%.2f", r.P50), fmt.Sprintf("%.2f", r.P99), fmt.Sprintf("%.0f %%", 100*r.LoadBusy)))
	}
	if markdown {
		return t.RenderMarkdown()
	}
	return t.Render()
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

// plot draws gridcast's share of nginx's CPU time as a bar for each case, with its interval.
func plot(rows []row) []byte {
	const left, width, line = 270, 480, 26
	longest := 1.0
	for i := range rows {
		if other := find(rows, nginx, rows[i].Case, rows[i].Connections); other != nil && rows[i].Server == gridcast {
			s := shareOf(&rows[i], other)
			longest = max(longest, s.median, s.high)
		}
	}
	scale := width / longest
	var b strings.Builder
	y := 60
	for i := range rows {
		r := &rows[i]
		other := find(rows, nginx, r.Case, r.Connections)
		if r.Server != gridcast || other == nil {
			continue
		}
		s := shareOf(r, other)
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s, %d</text>", left-8, y+13, r.Case, r.Connections)
		fmt.Fprintf(&b, "<rect class=\"share\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"18\"/>", left, y, scale*s.median)
		if s.known {
			fmt.Fprintf(&b, "<path class=\"interval\" d=\"M%.1f %dH%.1f\"/>", left+scale*s.low, y+9, left+scale*s.high)
		}
		fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%d\">%.2f</text>\n", left+scale*max(s.median, s.high)+6, y+13, s.median)
		y += line
	}
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 %[1]d" width="800" height="%[1]d" role="img" aria-label="CPU time of a request as a share of nginx's" font-family="sans-serif" font-size="12"><style>
text { fill: #333 } .share { fill: #9db8e0 } .interval { stroke: #1f4e9c; stroke-width: 3 } .even { stroke: #888; stroke-dasharray: 4 3 }
</style><rect width="100%%" height="100%%" fill="#fff"/><text x="20" y="24" font-size="16">CPU time of a request as a share of nginx's</text><text x="20" y="44">request, connections; dark: 95 %% interval; dashed: as much as nginx</text>
%[2]s<path class="even" d="M%.0[3]f 52V%[4]d"/></svg>
`, y+16, b.String(), left+scale, y)
}
