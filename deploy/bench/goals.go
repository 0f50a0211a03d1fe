//go:build linux

package main

import (
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
)

// goal is what gridcast has to reach with the usual connections: a share of what another
// server, or it itself in another case, reaches. By CPU and p99 a share is the better the smaller it is.
type goal struct {
	server, name string // under which name gridcast runs, and the case
	by           string
	of, ofCase   string
	share        float64
	load         string // the only one under which it is measured; empty: wrk and loadgen
}

const (
	byCPU  = "CPU"
	byRate = "req/s"
	byP99  = "p99"
)

// figures are what shares are made of, and whether less is better.
var figures = map[string]struct {
	of   figure
	less bool
}{byCPU: {cpu, true}, byRate: {rate, false}, byP99: {p99, true}}

var goals = []goal{
	{gridcastName, smallCase, byCPU, fasthttpName, smallCase, 0.95, ""},
	{gridcastName, largeCase, byCPU, fasthttpName, largeCase, 0.85, ""},
	{gridcastName, smallCase, byRate, nginxName, smallCase, 1.3, ""},
	{gridcastName, largeCase, byRate, nginxName, largeCase, 1.1, ""},
	{gridcastName, smallCase + " gzip", byRate, nginxName, smallCase + " gzip", 1.25, ""},
	{gridcastName, largeCase + " gzip", byRate, nginxName, largeCase + " gzip", 1.25, ""},
	{gridcastName, nextRaceCase, byRate, gridcastName, nextRaceSized, 0.97, ""},
	{gridcastName, notModifiedCase, byRate, gridcastName, notModifiedSized, 0.97, ""},
	{gridcastName, smallCase, byCPU, epollName, smallCase, 1.15, ""},
	{gridcastName, largeCase, byCPU, epollName, largeCase, 1.15, ""},
	{gridcastName, manyKeysCase, byRate, gridcastName, oneKeyCase, 0.97, ""},
	{leaseName, smallCase, byRate, gridcastName, smallCase, 0.97, ""},
	{strictName, smallCase, byRate, gridcastName, smallCase, 0.55, ""},
	{gridcastName, shortCase, byCPU, nginxName, shortCase, 1, wrkLoad},
	{gridcastName, smallCase + openSuffix, byCPU, nginxName, smallCase + openSuffix, 1.05, openLoad},
	{gridcastName, smallTLSCase, byRate, nginxName, smallTLSCase, 1.2, ""},
	{gridcastName, smallTLSCase + gzipSuffix, byRate, nginxName, smallTLSCase + gzipSuffix, 1.2, ""},
	{gridcastName, middleTLSCase, byRate, nginxName, middleTLSCase, 1.2, ""},
	{gridcastName, middleTLSCase + gzipSuffix, byRate, nginxName, middleTLSCase + gzipSuffix, 1.2, ""},
	{gridcastName, shortTLSCase, byRate, nginxName, shortTLSCase, 1.15, wrkLoad},
	{gridcastName, shortTLSCase, byP99, nginxName, shortTLSCase, 1, wrkLoad},
	{gridcastName, fullTLSCase, byRate, nginxName, fullTLSCase, 1.15, loadgenLoad},
	{gridcastName, fullTLSCase, byP99, nginxName, fullTLSCase, 1, loadgenLoad},
}

// reached returns the share under a load, if both were measured.
func (g *goal) reached(rows []row, load string) (share float64, ok bool) {
	ours, ok := find(rows, row{Server: g.server, Case: g.name, Connections: usual, Load: load})
	theirs, too := find(rows, row{Server: g.of, Case: g.ofCase, Connections: usual, Load: load})
	if !ok || !too {
		return 0, false
	}
	return ours.share(theirs, figures[g.by].of), true
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

// bound says what a share has to be.
func (g *goal) bound() string {
	if figures[g.by].less {
		return fmt.Sprintf("at most %.2f", g.share)
	}
	return fmt.Sprintf("at least %.2f", g.share)
}

// spare is by how much a share is better than it has to be: below zero, it misses the goal.
func (g *goal) spare(share float64) float64 {
	if figures[g.by].less {
		return g.share - share
	}
	return share - g.share
}

// verdict says under which loads shares reach the goal, and by how much they do not.
func (g *goal) verdict(byWrk, byLoadgen float64) string {
	wrk, loadgen := g.spare(byWrk), g.spare(byLoadgen)
	switch {
	case wrk >= 0 && loadgen >= 0:
		return fmt.Sprintf("met by %.3f", min(wrk, loadgen))
	case wrk >= 0:
		return fmt.Sprintf("met under %s, missed by %.3f under %s", wrkLoad, -loadgen, loadgenLoad)
	case loadgen >= 0:
		return fmt.Sprintf("met under %s, missed by %.3f under %s", loadgenLoad, -wrk, wrkLoad)
	}
	return fmt.Sprintf("missed by %.3f", -max(wrk, loadgen))
}

// goalTable says which goals are met, by the medians.
func goalTable(rows []row) table.Writer {
	t := newTable(table.Row{"goal", wrkLoad, loadgenLoad, "wanted", "verdict"}, 2, 4)
	for _, g := range goals {
		if g.load != "" {
			if one, measured := g.reached(rows, g.load); measured {
				t.AppendRow(table.Row{&g, fmt.Sprintf("%.3f", one), "", g.bound(), g.verdict(one, one)})
			}
			continue
		}
		wrk, measured := g.reached(rows, wrkLoad)
		loadgen, too := g.reached(rows, loadgenLoad)
		if measured && too {
			t.AppendRow(table.Row{&g, fmt.Sprintf("%.3f", wrk), fmt.Sprintf("%.3f", loadgen), g.bound(), g.verdict(wrk, loadgen)})
		}
	}
	t.SetCaption("the shares under either load; where wrk is busy all the time, it is the limit and not the server; at half: by the open loop")
	return t
}
