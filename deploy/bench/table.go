//go:build linux

package main

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// tableOf renders one line for each case: gridcast's CPU time first, then its shares of the other servers'.
func tableOf(rows []row, markdown bool) string {
	t := table.NewWriter()
	style := table.StyleLight
	style.Options.DrawBorder, style.Options.SeparateColumns = false, false
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	header := table.Row{"request", "connections", "CPU µs", "of nginx", "of fasthttp", "of epoll"}
	others := []string{nginx, fasthttp, epoll}
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
	const left, scale, line = 270, 420.0, 26
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
