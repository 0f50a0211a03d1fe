//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"gridcast/deploy/lab/bench/loadgen"
	"gridcast/deploy/lab/plot"
	"gridcast/edge/keys"
	"gridcast/schemas/catalog"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/dirblob"
)

// loadCommand measures two edges under load.
const loadCommand = "load"

// loadPercents are the steps of the load, in percent of the capacity of both edges. The last shows the recovery.
var loadPercents = []int{50, 80, 100, 120, 50}

// clients are the keys of the load: the tier, the number of keys, and the percent of the requests that they send.
var clients = []struct {
	tier           string
	keys, requests int
}{{unlimited, 100, 70}, {"pro", 200, 10}, {"standard", 300, 10}, {"trial", 400, 10}}

// loadRun is a measurement of two edges under load.
type loadRun struct {
	Capacity     float64          `json:"capacity"` // answers a second of both edges
	CapacityBusy float64          `json:"capacity_busy"`
	Step         time.Duration    `json:"step"`
	Busy         float64          `json:"load_busy"`
	Seconds      []loadgen.Second `json:"seconds"`
	Events       []event          `json:"events"`
}

// event is an event of a run.
type event struct {
	At   time.Duration `json:"at"`
	What string        `json:"what"`
}

// The events of each step, after a quarter, a half and three quarters of it.
const (
	swapped   = "version"
	reloaded  = "keys"
	restarted = "restart"
)

// buildTimes are the race times of the versions that the edges serve one after the other, after that of the fixture.
var buildTimes = []string{"2024-07-29T12:00:00Z", "2024-08-26T12:00:00Z", "2024-09-02T12:00:00Z", "2024-09-16T12:00:00Z", "2024-09-23T12:00:00Z"}

func runLoad(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench load", flag.ContinueOnError)
	binary := flags.String("binary", ".var/bin/gridcast", "the gridcast to measure")
	step := flags.Duration("step", 12*time.Second, "length of each of the five steps, in whole seconds")
	out := flags.String("out", ".var/load.json", "file for the result")
	print := flags.Bool("print", false, "measure nothing: print the result in --out")
	document := flags.String("document", "", "write the table into this Markdown file, and the plot as load.svg beside it")
	err := flags.Parse(args)
	if err != nil {
		return err
	}
	if *step < 4*time.Second || *step%time.Second != 0 {
		return fmt.Errorf("--step %s: want whole seconds, at least 4s", *step)
	}
	run := &loadRun{}
	if *print {
		err = readJSON(*out, run)
	} else if run, err = measureLoad(ctx, *binary, *step); err == nil {
		err = writeJSON(*out, run)
	}
	if err != nil {
		return err
	}
	fmt.Print(run.report(false))
	if *document != "" {
		err = errors.Join(
			fillDocument(*document, "load", run.report(true)),
			os.WriteFile(filepath.Join(filepath.Dir(*document), "load.svg"), run.plot(), 0o644),
		)
	}
	return errors.Join(err, run.fault())
}

// measureLoad measures two edges of a binary in a folder of its own.
func measureLoad(ctx context.Context, binary string, step time.Duration) (run *loadRun, err error) {
	dir, err := os.MkdirTemp("", "gridcast-load-")
	if err != nil {
		return nil, fmt.Errorf("folder for the load: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	f, err := newFixture(ctx, dir, binary, "")
	if err != nil {
		return nil, err
	}
	return f.underLoad(ctx, step)
}

// underLoad runs the load on two edges that share the first core.
func (f *fixture) underLoad(ctx context.Context, step time.Duration) (*loadRun, error) {
	store, err := dirblob.Open(f.file("store"))
	if err != nil {
		return nil, err
	}
	pointers, err := f.buildVersions(ctx, store)
	if err != nil {
		return nil, err
	}
	requests, err := f.clientRequests(ctx, store)
	if err != nil {
		return nil, err
	}
	var edges [2]*process
	var servers []netip.AddrPort
	for i := range edges {
		address, err := freeAddress()
		if err != nil {
			return nil, err
		}
		if edges[i], err = f.startEdge(ctx, i, address); err != nil {
			return nil, err
		}
		defer func() { edges[i].stop() }()
		servers = append(servers, netip.MustParseAddrPort(address))
	}
	if err := errors.Join(edges[0].settle(), edges[1].settle()); err != nil {
		return nil, err
	}
	run := &loadRun{Step: step}
	work := loadgen.Config{Servers: servers, Connections: 256, Balance: true}
	if err := run.searchCapacity(ctx, work, f.request(cases[0])); err != nil {
		return nil, err
	}
	work.Requests = requests
	for _, percent := range loadPercents {
		work.Steps = append(work.Steps, loadgen.Step{Length: step, PerSecond: run.Capacity * float64(percent) / 100})
	}
	began := time.Now()
	happening, end := context.WithCancel(ctx)
	var changes sync.WaitGroup
	var changeErr error
	changes.Go(func() {
		for i := range loadPercents {
			for quarter, change := range []struct {
				what string
				do   func() error
			}{
				{swapped, func() error {
					_, err := blob.Put(ctx, store, snapshots.PointerKey, blob.MaxDocument, pointers[i])
					return err
				}},
				{reloaded, func() error {
					return keys.Update(ctx, store, func(list *keys.List) error {
						_, _, err := list.Create(keys.Request{Name: fmt.Sprintf("new client %d", i), Tier: "trial"}, time.Now())
						return err
					})
				}},
				{restarted, func() error {
					edges[1].stop()
					again, err := f.startEdge(ctx, 1, edges[1].address)
					if err == nil {
						edges[1] = again
					}
					return err
				}},
			} {
				at := step*time.Duration(i) + step*time.Duration(quarter+1)/4
				select {
				case <-time.After(at - time.Since(began)):
				case <-happening.Done():
					return
				}
				run.Events = append(run.Events, event{time.Since(began), change.what})
				if changeErr = change.do(); changeErr != nil {
					return
				}
			}
		}
	})
	fmt.Fprintf(os.Stderr, "capacity %.0f requests a second; load for %s\n", run.Capacity, step*time.Duration(len(loadPercents)))
	report, err := generate(ctx, generation{Config: work})
	end()
	changes.Wait()
	run.Seconds, run.Busy = report.Seconds, report.Busy
	return run, errors.Join(err, changeErr)
}

// buildVersions builds the versions, makes the first one current again, and returns the pointers to the others.
func (f *fixture) buildVersions(ctx context.Context, store blob.Store) (pointers [][]byte, err error) {
	first, err := store.Get(ctx, snapshots.PointerKey, blob.MaxDocument)
	if err != nil {
		return nil, err
	}
	last := first.Data
	for _, at := range buildTimes {
		if err := f.build(ctx, at); err != nil {
			return nil, err
		}
		o, err := store.Get(ctx, snapshots.PointerKey, blob.MaxDocument)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(o.Data, last) {
			return nil, fmt.Errorf("the data at %s make no new version", at)
		}
		last = o.Data
		pointers = append(pointers, last)
	}
	_, err = blob.Put(ctx, store, snapshots.PointerKey, blob.MaxDocument, first.Data)
	return pointers, err
}

// clientRequests creates the keys, and returns a sequence of requests that the generator repeats. The keys of a tier
// send its part of the requests in turn, for 32 documents in turn.
func (f *fixture) clientRequests(ctx context.Context, store blob.Store) ([][]byte, error) {
	texts := make([][]string, len(clients))
	if err := keys.Update(ctx, store, func(list *keys.List) error {
		for i, c := range clients {
			texts[i] = nil // Update may call again
			for n := range c.keys {
				_, key, err := list.Create(keys.Request{Name: fmt.Sprintf("%s client %d", c.tier, n), Tier: c.tier}, time.Now())
				if err != nil {
					return err
				}
				texts[i] = append(texts[i], key)
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	var targets []string
	for path, body := range f.version.All() {
		if variant, err := catalog.ParsePath(path); err == nil && body.Entry.ETag != "" {
			targets = append(targets, variant.Target())
		}
	}
	slices.Sort(targets)
	const documents, rounds = 32, 60
	var sequence [][]byte
	for i, c := range clients {
		for n := range c.requests * rounds {
			target := targets[n%documents*len(targets)/documents]
			sequence = append(sequence, fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nX-API-Key: %s\r\nAccept-Encoding: gzip\r\n\r\n",
				target, host, texts[i][n%c.keys]))
		}
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(sequence), func(i, j int) { sequence[i], sequence[j] = sequence[j], sequence[i] })
	return sequence, nil
}

// startEdge starts an edge with a copy of its own and waits until it is ready.
func (f *fixture) startEdge(ctx context.Context, i int, address string) (*process, error) {
	name := fmt.Sprintf("edge-%d", i+1)
	return startProcess(ctx, name, benchCase{}, address, []string{
		f.binary, "edge", "--store", "dir:" + f.file("store"), "--cache-dir", f.file(name), "--now", raceTime,
		"--tiers", unlimited + "=1000000000", "--log-format", "json", "--listen", address,
	})
}

// searchCapacity finds the answers a second of both edges to a request without a limit.
func (run *loadRun) searchCapacity(ctx context.Context, work loadgen.Config, request []byte) (err error) {
	const probe = time.Second
	work.Requests = [][]byte{request}
	load := func(perSecond float64) (float64, error) {
		work.Steps = []loadgen.Step{{Length: probe, PerSecond: perSecond}}
		r, err := generate(ctx, generation{Config: work})
		run.CapacityBusy = max(run.CapacityBusy, r.Busy)
		return float64(r.InTime) / probe.Seconds(), err
	}
	guess, err := load(0)
	if err == nil {
		run.Capacity, err = searchCapacity(guess, func(rate float64) (bool, error) {
			answered, err := load(rate)
			return answered+float64(work.Connections)/probe.Seconds() >= sustained*rate, err
		})
	}
	return err
}

// outcome is the outcome of a step. The percentiles are the medians of its seconds.
type outcome struct {
	loadgen.Second

	worst time.Duration // P99 of the slowest second
}

// step returns the outcome of the seconds of a step.
func (run *loadRun) step(i int) (o outcome) {
	length := int(run.Step / time.Second)
	seconds := run.Seconds[min(i*length, len(run.Seconds)):min((i+1)*length, len(run.Seconds))]
	var p50, p99, refusal []float64 //nolint:prealloc // a step is short
	for _, s := range seconds {
		o.Answered, o.Refused, o.Errors, o.GivenUp, o.Repeated = o.Answered+s.Answered, o.Refused+s.Refused, o.Errors+s.Errors, o.GivenUp+s.GivenUp, o.Repeated+s.Repeated
		o.worst = max(o.worst, s.P99)
		p50, p99, refusal = append(p50, float64(s.P50)), append(p99, float64(s.P99)), append(refusal, float64(s.Refusal))
	}
	if len(seconds) > 0 {
		o.P50, o.P99, o.Refusal = time.Duration(median(p50)), time.Duration(median(p99)), time.Duration(median(refusal))
	}
	return o
}

// recovery returns the seconds of the last step until the edges had recovered: a 99th percentile of at most twice that of
// the first step, no request given up and no error. It is false if they never had.
func (run *loadRun) recovery() (seconds int, ok bool) {
	first, last := run.step(0), (len(loadPercents)-1)*int(run.Step/time.Second)
	for i := last; i < len(run.Seconds); i++ {
		if s := &run.Seconds[i]; s.P99 <= 2*first.P99 && s.GivenUp == 0 && s.Errors == 0 {
			return i - last, true
		}
	}
	return 0, false
}

// statuses returns the number of errors by the status of the answer; 0 for those without an answer.
func (run *loadRun) statuses() map[int]int {
	all := map[int]int{}
	for _, s := range run.Seconds {
		all[0] += s.Errors
		for status, n := range s.Statuses {
			all[status] += n
			all[0] -= n
		}
	}
	maps.DeleteFunc(all, func(_, n int) bool { return n == 0 })
	return all
}

// fault returns an error if an edge failed a request, or if the edges did not recover.
func (run *loadRun) fault() error {
	var errs []error
	if failed := run.statuses(); len(failed) > 0 {
		errs = append(errs, fmt.Errorf("load: failed requests by status, 0 without an answer: %v", failed))
	}
	if _, ok := run.recovery(); !ok {
		errs = append(errs, errors.New("load: the edges did not recover: each second of the last step had a p99 above twice that of the first step, errors, or requests given up"))
	}
	return errors.Join(errs...)
}

// report describes the run.
func (run *loadRun) report(markdown bool) string {
	t := newTable("load", "answered a second", "p50 ms", "p99 ms", "p99 ms of the slowest second", "refused a second", "p99 ms of a refusal", "given up a second", "repeated", "errors")
	ms := func(d time.Duration) string { return fmt.Sprintf("%.2f", milliseconds(d)) }
	for i, percent := range loadPercents {
		o := run.step(i)
		rate := func(n int) string { return fmt.Sprintf("%.0f", float64(n)/run.Step.Seconds()) }
		t.AppendRow(table.Row{
			fmt.Sprintf("%d %%", percent), rate(o.Answered), ms(o.P50), ms(o.P99), ms(o.worst), rate(o.Refused), ms(o.Refusal), rate(o.GivenUp), o.Repeated, o.Errors,
		})
	}
	recovered := "The edges did not recover in the last step."
	if seconds, ok := run.recovery(); ok {
		recovered = fmt.Sprintf("After the overload, the edges had recovered in second %d: a p99 of at most twice that of the first step, and nothing given up.", seconds+1)
	}
	capacity := row{Capacity: run.Capacity, CapacityBusy: run.CapacityBusy}
	return fmt.Sprintf("%s. Two edges on one core answer %s requests a second. Each step takes %s. CPU share of the generator in its core: %s.\n\n%s\n\n%s\n",
		machine(), capacity.capacityCell(), run.Step, busyCell(run.Busy), render(t, markdown), recovered)
}

// plot draws latencies and outcomes second by second.
func (run *loadRun) plot() []byte {
	const width, height, legend = 640, 380, 24
	page := height*2 + legend
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img" aria-label="Two edges under load" font-family="sans-serif" font-size="14" fill="none"><style>
text { fill: #333; text-anchor: middle } .grid { stroke: #ddd } .step { stroke: #888; stroke-dasharray: 5 3 }
.version { stroke: #2f7d32; stroke-dasharray: 2 3 } .keys { stroke: #7b3fa0; stroke-dasharray: 2 3 } .restart { stroke: #b00020; stroke-dasharray: 2 3 }
.p50, .answered { stroke: #1f4e9c; stroke-width: 2 } .p99 { stroke: #b4541a; stroke-width: 2 } .refusal, .refused { stroke: #777; stroke-width: 2 }
.errors { stroke: #b00020; stroke-width: 2 } .given { stroke: #b4541a; stroke-width: 2 }
</style><rect width="100%%" height="100%%" fill="#fff"/>`, width, page)
	most, length := 0.0, float64(len(loadPercents))*run.Step.Seconds()
	for _, s := range run.Seconds {
		most = max(most, float64(s.Answered+s.Refused)/1000)
	}
	seconds := make([]float64, len(loadPercents)+1)
	for i := range seconds {
		seconds[i] = float64(i) * run.Step.Seconds()
	}
	x, thousands := plot.Axis{Ticks: seconds}, plot.Ticks(0, most)
	latency := plot.Begin(&out, plot.Area{Width: width, Height: height}, "Latency, second by second", x,
		plot.Axis{Title: "milliseconds", Ticks: []float64{.1, 1, 10, 100, 1000, 10000}, Log: true})
	requests := plot.Begin(&out, plot.Area{Top: height, Width: width, Height: height}, "Requests, second by second", x,
		plot.Axis{Title: "thousands a second", Ticks: thousands})
	for _, p := range []struct {
		panel    *plot.Panel
		low, top float64
	}{{latency, .1, 10000}, {requests, 0, thousands[len(thousands)-1]}} {
		for i, percent := range loadPercents {
			p.panel.Line("step", plot.At(seconds[i], p.low), plot.At(seconds[i], p.top))
			px, py := p.panel.Pixels(plot.At(seconds[i]+run.Step.Seconds()/2, p.top))
			fmt.Fprintf(&out, `<text x="%.1f" y="%.1f">%d %%</text>`, px, py-6, percent)
		}
		for _, e := range run.Events {
			if at := e.At.Seconds(); at < length {
				p.panel.Line(e.What, plot.At(at, p.low), plot.At(at, p.top))
			}
		}
	}
	curve := func(p *plot.Panel, class string, value func(*loadgen.Second) float64) {
		var points []plot.Point
		for i := range run.Seconds {
			if y := value(&run.Seconds[i]); y >= 0 {
				points = append(points, plot.At(float64(i)+.5, y))
			}
		}
		p.Line(class, points...)
	}
	curve(latency, "refusal", func(s *loadgen.Second) float64 {
		if s.Refused == 0 {
			return -1 // no point
		}
		return milliseconds(s.Refusal)
	})
	curve(latency, "p50", func(s *loadgen.Second) float64 { return milliseconds(s.P50) })
	curve(latency, "p99", func(s *loadgen.Second) float64 { return milliseconds(s.P99) })
	curve(requests, "answered", func(s *loadgen.Second) float64 { return float64(s.Answered) / 1000 })
	curve(requests, "refused", func(s *loadgen.Second) float64 { return float64(s.Refused) / 1000 })
	curve(requests, "given", func(s *loadgen.Second) float64 { return float64(s.GivenUp) / 1000 })
	curve(requests, "errors", func(s *loadgen.Second) float64 { return float64(s.Errors) / 1000 })
	key := func(y int, entries ...[2]string) { // class and words
		for i, e := range entries {
			left := plot.MarginLeft + i*(width-plot.MarginLeft)/len(entries)
			fmt.Fprintf(&out, `<path class="%s" d="M%d %dh18"/><text x="%d" y="%d" style="text-anchor:start">%s</text>`, e[0], left, y-4, left+22, y, e[1])
		}
	}
	key(height-14, [2]string{"p50", "p50 of answers"}, [2]string{"p99", "p99 of answers"}, [2]string{"refusal", "p99 of refusals"})
	key(2*height-14, [2]string{"answered", "answered"}, [2]string{"refused", "429"}, [2]string{"given", "given up"}, [2]string{"errors", "errors"})
	key(page-8, [2]string{"version", "new version"}, [2]string{"keys", "keys reload"}, [2]string{"restart", "edge 2 restarts"}, [2]string{"step", "next step"})
	out.WriteString("</svg>\n")
	return []byte(strings.ReplaceAll(out.String(), "><", ">\n<"))
}
