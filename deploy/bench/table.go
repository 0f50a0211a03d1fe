//go:build linux

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
)

// row is one line of .var/bench.json.
type row struct {
	Server      string  `json:"server"`
	Case        string  `json:"case"`
	Connections int     `json:"connections"`
	PerSecond   float64 `json:"requests_per_second"`
	P50         float64 `json:"p50_ms"`
	P99         float64 `json:"p99_ms"`
	CPUMicros   float64 `json:"cpu_us_per_request"`
}

// series collects the measurements of each server in each case, in order of the first ones.
type series struct {
	rows []row
	runs [][]measurement
}

func (s *series) add(server, benchCase string, connections int, m measurement) {
	i := slices.IndexFunc(s.rows, func(r row) bool {
		return r.Server == server && r.Case == benchCase && r.Connections == connections
	})
	if i < 0 {
		i = len(s.rows)
		s.rows = append(s.rows, row{Server: server, Case: benchCase, Connections: connections})
		s.runs = append(s.runs, nil)
	}
	s.runs[i] = append(s.runs[i], m)
}

// medians fills in the rows.
func (s *series) medians() []row {
	for i, runs := range s.runs {
		r := &s.rows[i]
		r.PerSecond = median(runs, func(m measurement) float64 { return m.perSecond })
		r.P50 = median(runs, func(m measurement) float64 { return milliseconds(m.p50) })
		r.P99 = median(runs, func(m measurement) float64 { return milliseconds(m.p99) })
		r.CPUMicros = median(runs, func(m measurement) float64 { return 1000 * milliseconds(m.cpu) })
	}
	return s.rows
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func median(runs []measurement, value func(measurement) float64) float64 {
	values := make([]float64, 0, len(runs))
	for _, m := range runs {
		values = append(values, value(m))
	}
	slices.SortFunc(values, cmp.Compare)
	middle := len(values) / 2
	if len(values)%2 == 0 {
		return (values[middle-1] + values[middle]) / 2
	}
	return values[middle]
}

// compared says which other case of the same server a case is held against, where it is not
// other servers in the same case.
var compared = map[string]string{"next-race": "small", "304": "small", "2 KB, 100000 keys": "2 KB, 1 key of a list"}

// printTable prints the rows with what they are of others.
func printTable(out io.Writer, rows []row) {
	t := table.NewWriter()
	t.SetOutputMirror(out)
	t.AppendHeader(table.Row{
		"case", "conns", "server", "req/s", "p50 ms", "p99 ms", "CPU us/req",
		"CPU of fasthttp", "CPU of epoll", "req/s of nginx", "req/s of gridcast", "req/s of its static case",
	})
	for i, r := range rows {
		if i > 0 && (rows[i-1].Case != r.Case || rows[i-1].Connections != r.Connections) {
			t.AppendSeparator()
		}
		cpu := func(other row) float64 { return r.CPUMicros / other.CPUMicros }
		speed := func(other row) float64 { return r.PerSecond / other.PerSecond }
		t.AppendRow(table.Row{
			r.Case, r.Connections, r.Server, fmt.Sprintf("%.0f", r.PerSecond), fmt.Sprintf("%.3f", r.P50), fmt.Sprintf("%.3f", r.P99),
			fmt.Sprintf("%.2f", r.CPUMicros),
			ratio(rows, fasthttpName, r.Case, r.Connections, cpu), ratio(rows, epollName, r.Case, r.Connections, cpu),
			ratio(rows, nginxName, r.Case, r.Connections, speed), ratio(rows, gridcastName, r.Case, r.Connections, speed),
			ratio(rows, r.Server, compared[r.Case], r.Connections, speed),
		})
	}
	t.SetStyle(table.StyleLight)
	t.Render()
}

// ratio compares with the row of a server in a case, and is empty where there is none.
func ratio(rows []row, server, benchCase string, connections int, of func(row) float64) string {
	i := slices.IndexFunc(rows, func(r row) bool {
		return r.Server == server && r.Case == benchCase && r.Connections == connections
	})
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", of(rows[i]))
}
