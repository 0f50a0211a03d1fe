//go:build linux

package main

import (
	"cmp"
	"slices"
	"time"
)

// row is one line of .var/bench.json.
type row struct {
	Server      string   `json:"server"`
	Case        string   `json:"case"`
	Connections int      `json:"connections"`
	Load        string   `json:"load"` // what made it
	PerSecond   float64  `json:"requests_per_second"`
	P50         float64  `json:"p50_ms"`
	P99         float64  `json:"p99_ms"`
	CPUMicros   float64  `json:"cpu_us_per_request"`
	Idle        int      `json:"idle_connections,omitempty"` // beside those of the load
	IdleBytes   float64  `json:"resident_bytes_per_idle_connection,omitempty"`
	LoadBusy    float64  `json:"load_busy"`      // share of the time in which the load used its core
	Runs        []sample `json:"runs,omitempty"` // of which the figures are the medians, by round
}

// sample is what runs of the same round are compared by.
type sample struct {
	PerSecond float64 `json:"requests_per_second"`
	CPUMicros float64 `json:"cpu_us_per_request"`
	P99       float64 `json:"p99_ms"`
}

func (s sample) row() row { return row{PerSecond: s.PerSecond, CPUMicros: s.CPUMicros, P99: s.P99} }

// share returns what a figure of r is of another row's: the median over the rounds. A machine
// whose speed changes does so for all servers of a round.
func (r row) share(of row, f figure) float64 {
	if len(r.Runs) == 0 || len(r.Runs) != len(of.Runs) {
		return f(r) / f(of)
	}
	shares := make([]float64, 0, len(r.Runs))
	for i, one := range r.Runs {
		shares = append(shares, f(one.row())/f(of.Runs[i].row()))
	}
	return middle(shares)
}

// same reports whether both are of the same server under the same load.
func (r *row) same(other *row) bool {
	return r.Server == other.Server && r.Case == other.Case && r.Connections == other.Connections && r.Load == other.Load && r.Idle == other.Idle
}

// find returns the row of a server under a load.
func find(rows []row, like row) (row, bool) {
	i := slices.IndexFunc(rows, func(r row) bool { return r.same(&like) })
	if i < 0 {
		return row{}, false
	}
	return rows[i], true
}

// series collects the measurements of each server under each load.
type series struct {
	rows []row
	runs [][]measurement
}

// expect makes a place for a row, after those that there are.
func (s *series) expect(of row) (place int) {
	if i := slices.IndexFunc(s.rows, func(r row) bool { return r.same(&of) }); i >= 0 {
		return i
	}
	s.rows, s.runs = append(s.rows, of), append(s.runs, nil)
	return len(s.rows) - 1
}

func (s *series) add(of row, m measurement) {
	i := s.expect(of)
	s.runs[i] = append(s.runs[i], m)
}

// row returns the figures of a single run.
func (m measurement) row() row {
	return row{
		PerSecond: m.perSecond, P50: milliseconds(m.p50), P99: milliseconds(m.p99),
		CPUMicros: 1000 * milliseconds(m.cpu), IdleBytes: m.idleBytes, LoadBusy: m.busy,
	}
}

// medians returns the rows of which there are measurements.
func (s *series) medians() []row {
	rows := make([]row, 0, len(s.rows))
	for i, runs := range s.runs {
		if len(runs) == 0 {
			continue
		}
		r := s.rows[i]
		r.PerSecond = median(runs, func(one row) float64 { return one.PerSecond })
		r.P50 = median(runs, func(one row) float64 { return one.P50 })
		r.P99 = median(runs, func(one row) float64 { return one.P99 })
		r.CPUMicros = median(runs, func(one row) float64 { return one.CPUMicros })
		r.IdleBytes = median(runs, func(one row) float64 { return one.IdleBytes })
		r.LoadBusy = median(runs, func(one row) float64 { return one.LoadBusy })
		r.Runs = nil
		for _, m := range runs {
			one := m.row()
			r.Runs = append(r.Runs, sample{one.PerSecond, one.CPUMicros, one.P99})
		}
		rows = append(rows, r)
	}
	return rows
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func median(runs []measurement, value figure) float64 {
	values := make([]float64, 0, len(runs))
	for _, m := range runs {
		values = append(values, value(m.row()))
	}
	return middle(values)
}

// middle returns the median of some values, which it sorts.
func middle(values []float64) float64 {
	slices.SortFunc(values, cmp.Compare)
	half := len(values) / 2
	if len(values)%2 == 0 {
		return (values[half-1] + values[half]) / 2
	}
	return values[half]
}
