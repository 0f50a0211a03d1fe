//go:build linux

package main

import (
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// figure is what rows are compared by.
type figure func(row) float64

func cpu(r row) float64  { return r.CPUMicros }
func rate(r row) float64 { return r.PerSecond }
func p99(r row) float64  { return r.P99 }

// than returns the figure of a row as a share of that of another server or case under the same
// load, and nothing where that was not measured.
func (r row) than(rows []row, server, benchCase string, f figure) string {
	other, ok := find(rows, row{Server: server, Case: benchCase, Connections: r.Connections, Load: r.Load, Idle: r.Idle})
	if !ok {
		return ""
	}
	return fmt.Sprintf("%.2f", r.share(other, f))
}

// figures are the columns that are the same in every table.
func (r row) figures() table.Row {
	busy := ""
	if r.LoadBusy > 0 {
		busy = fmt.Sprintf("%.0f %%", 100*r.LoadBusy)
	}
	return table.Row{r.Load, busy, fmt.Sprintf("%.0f", r.PerSecond), fmt.Sprintf("%.3f", r.P50), fmt.Sprintf("%.3f", r.P99), fmt.Sprintf("%.2f", r.CPUMicros)}
}

// newTable returns a table. The columns of its header that are in a range, counted from 1, hold
// numbers.
func newTable(header table.Row, first, last int) table.Writer {
	t := table.NewWriter()
	style := table.StyleLight
	style.Options.DrawBorder, style.Options.SeparateColumns = false, false
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	t.AppendHeader(header)
	columns := make([]table.ColumnConfig, 0, len(header))
	for n := first; n <= last; n++ {
		columns = append(columns, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	return t
}

// show prints a table that is not empty.
func show(t table.Writer, markdown bool) {
	switch {
	case t.Length() == 0:
	case markdown:
		fmt.Printf("%s\n\n", t.RenderMarkdown())
	default:
		fmt.Printf("%s\n\n", t.Render())
	}
}

// fullTable holds all rows and what they are of others.
func fullTable(rows []row) table.Writer {
	t := newTable(table.Row{
		"case", "conns", "server", "load", "busy", "req/s", "p50 ms", "p99 ms", "CPU us",
		"CPU of\nfasthttp", "CPU of\nepoll", "CPU of\nnginx", "req/s of\nepoll", "req/s of\nnginx", "req/s of\nreference",
	}, 5, 15)
	var last row
	for _, r := range rows {
		if r.Case == idleCase {
			continue
		}
		if last.Case != "" && (last.Case != r.Case || last.Connections != r.Connections || last.Load != r.Load) {
			t.AppendSeparator()
		}
		last = r
		t.AppendRow(append(append(table.Row{r.Case, r.Connections, r.Server}, r.figures()...),
			r.than(rows, fasthttpName, r.Case, cpu), r.than(rows, epollName, r.Case, cpu), r.than(rows, nginxName, r.Case, cpu),
			r.than(rows, epollName, r.Case, rate), r.than(rows, nginxName, r.Case, rate),
			r.than(rows, r.Server, compared[r.Case], rate)))
	}
	t.SetCaption("busy: for which share of the time the load used its core; reference: the case with -sized after its name, or with one key")
	return t
}

// briefTable holds what gridcast does, and what that is of others.
func briefTable(rows []row) table.Writer {
	t := newTable(table.Row{
		"case", "connections", "load", "busy", "req/s", "p50 ms", "p99 ms", "CPU µs per request", "CPU of fasthttp", "CPU of epoll", "CPU of nginx", "req/s of epoll", "req/s of nginx",
	}, 4, 13)
	for _, r := range rows {
		if r.Server == gridcastName && r.Case != idleCase {
			t.AppendRow(append(append(table.Row{r.Case, r.Connections}, r.figures()...),
				r.than(rows, fasthttpName, r.Case, cpu), r.than(rows, epollName, r.Case, cpu), r.than(rows, nginxName, r.Case, cpu),
				r.than(rows, epollName, r.Case, rate), r.than(rows, nginxName, r.Case, rate)))
		}
	}
	return t
}

// idleTable holds the load beside idle connections, and what it is of the load without.
func idleTable(rows []row) table.Writer {
	t := newTable(table.Row{"server", "idle connections", "req/s", "CPU µs per request", "req/s of none idle", "CPU of none idle", "KB each"}, 2, 7)
	for _, r := range rows {
		without, ok := find(rows, row{Server: r.Server, Case: idleCase, Connections: r.Connections, Load: r.Load})
		if r.Case != idleCase || r.Idle == 0 || !ok {
			continue
		}
		t.AppendRow(table.Row{
			r.Server, r.Idle, fmt.Sprintf("%.0f", r.PerSecond), fmt.Sprintf("%.2f", r.CPUMicros),
			fmt.Sprintf("%.2f", r.share(without, rate)), fmt.Sprintf("%.2f", r.share(without, cpu)), fmt.Sprintf("%.1f", r.IdleBytes/1024),
		})
	}
	t.SetCaption("%s beside connections that are idle, after one response each; KB are resident in the process", smallCase)
	return t
}

// beforeTable holds what gridcast does as shares of what the earlier one does.
func beforeTable(rows []row) table.Writer {
	t := newTable(table.Row{"case", "connections", "load", "req/s of before", "CPU of before", "p99 of before"}, 4, 6)
	for _, r := range rows {
		earlier := r
		earlier.Server = beforeName
		if before, ok := find(rows, earlier); ok && r.Server == gridcastName {
			t.AppendRow(table.Row{
				r.Case, r.Connections, r.Load, fmt.Sprintf("%.2f", r.share(before, rate)), fmt.Sprintf("%.2f", r.share(before, cpu)), fmt.Sprintf("%.2f", r.share(before, p99)),
			})
		}
	}
	return t
}
