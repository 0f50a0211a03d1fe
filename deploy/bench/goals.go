//go:build linux

package main

import (
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
)

// goal is what gridcast has to reach under the usual load: a share of what another server, or
// it itself in another case, reaches. By CPU a share is the better the smaller it is.
type goal struct {
	server, name string // under which name gridcast runs, and the case
	by           string
	of, ofCase   string
	share        float64
}

const (
	byCPU  = "CPU"
	byRate = "req/s"
)

var goals = []goal{
	{gridcastName, smallCase, byCPU, fasthttpName, smallCase, 0.95},
	{gridcastName, largeCase, byCPU, fasthttpName, largeCase, 0.85},
	{gridcastName, smallCase, byRate, nginxName, smallCase, 1.3},
	{gridcastName, largeCase, byRate, nginxName, largeCase, 1.1},
	{gridcastName, smallCase + " gzip", byRate, nginxName, smallCase + " gzip", 1.25},
	{gridcastName, largeCase + " gzip", byRate, nginxName, largeCase + " gzip", 1.25},
	{gridcastName, nextRaceCase, byRate, gridcastName, nextRaceSized, 0.97},
	{gridcastName, notModifiedCase, byRate, gridcastName, notModifiedSized, 0.97},
	{gridcastName, smallCase, byCPU, epollName, smallCase, 1.15},
	{gridcastName, largeCase, byCPU, epollName, largeCase, 1.15},
	{gridcastName, manyKeysCase, byRate, gridcastName, oneKeyCase, 0.95},
	{leaseName, smallCase, byRate, gridcastName, smallCase, 0.97},
	{strictName, smallCase, byRate, gridcastName, smallCase, 0.55},
}

// reached returns the share, if both were measured.
func (g *goal) reached(rows []row) (share float64, ok bool) {
	ours, ok := find(rows, row{Server: g.server, Case: g.name, Connections: usual})
	theirs, too := find(rows, row{Server: g.of, Case: g.ofCase, Connections: usual})
	if !ok || !too {
		return 0, false
	}
	if g.by == byCPU {
		return ours.share(theirs, cpu), true
	}
	return ours.share(theirs, rate), true
}

// String says what is compared with what.
func (g *goal) String() string {
	text := fmt.Sprintf("%s: %s of ", g.name, g.by)
	if g.server != gridcastName {
		text = fmt.Sprintf("%s, %s: %s of ", g.name, g.server, g.by)
	}
	if g.of != gridcastName {
		return text + g.of
	}
	if g.ofCase == g.name {
		return text + g.of + " in memory"
	}
	return text + g.ofCase
}

// verdict says whether a share reaches the goal, and by how much not.
func (g *goal) verdict(share float64) (bound, verdict string) {
	missing := g.share - share
	bound = fmt.Sprintf("at least %.2f", g.share)
	if g.by == byCPU {
		missing = -missing
		bound = fmt.Sprintf("at most %.2f", g.share)
	}
	if missing > 0 {
		return bound, fmt.Sprintf("missed by %.3f", missing)
	}
	return bound, fmt.Sprintf("met by %.3f", max(0, -missing))
}

// goalTable says which goals are met, by the medians.
func goalTable(rows []row) table.Writer {
	t := newTable(table.Row{"goal", "measured", "wanted", "verdict"}, 2, 3)
	for _, g := range goals {
		if share, ok := g.reached(rows); ok {
			bound, verdict := g.verdict(share)
			t.AppendRow(table.Row{&g, fmt.Sprintf("%.3f", share), bound, verdict})
		}
	}
	return t
}
