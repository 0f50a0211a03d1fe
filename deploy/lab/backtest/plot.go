package backtest

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
)

// gridFrequency is the baseline that the plot compares with.
const gridFrequency = "grid_frequency"

// The size of one of the two panels, and of the margins around its axes, in pixels.
const (
	panelWidth  = 640
	panelHeight = 560
	marginLeft  = 70
	marginRight = 30
	marginTop   = 60
	marginBelow = 60
)

// Plot writes an SVG with the reliability curve of the picked winners, and the log-loss that
// the model has saved race by race against the grid-slot baseline.
func (r *Report) Plot(w io.Writer) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img" `, 2*panelWidth, panelHeight)
	fmt.Fprintf(&out, `aria-label="How good the picks of %d to %d were" font-family="sans-serif" font-size="12" fill="none">`, r.From, r.To)
	out.WriteString(`<style>
text { fill: #333; text-anchor: middle }
.grid { stroke: #ddd }
.even { stroke: #888; stroke-width: 1.5 }
.interval { stroke: #9db8e0; stroke-width: 3 }
.model { stroke: #1f4e9c; stroke-width: 2 }
.podium { stroke: #b4541a; stroke-width: 2 }
.podium-text { fill: #b4541a }
circle { fill: #1f4e9c }
</style><rect width="100%" height="100%" fill="#fff"/>`)
	r.reliability(&out)
	r.saved(&out)
	out.WriteString("</svg>\n")
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("write plot: %w", err)
	}
	return nil
}

func (r *Report) reliability(out *bytes.Buffer) {
	p := begin(out, 0, fmt.Sprintf("Reliability, %d to %d, %d races", r.From, r.To, r.Races),
		"chance given to the picked winner, %", "picked winners that won, % (bars: 95 %)", ticks(0, 100), ticks(0, 100))
	p.line("even", point{0, 0}, point{100, 100})
	curve := make([]point, len(r.Reliability))
	for i, b := range r.Reliability {
		p.line("interval", point{100 * b.Said, 100 * b.Interval[0]}, point{100 * b.Said, 100 * b.Interval[1]})
		curve[i] = point{100 * b.Said, 100 * b.Won}
	}
	podiums := make([]point, len(r.Podiums))
	for i, b := range r.Podiums {
		podiums[i] = point{100 * b.Said, 100 * b.Won}
	}
	p.line("podium", podiums...)
	fmt.Fprintf(out, `<text x="%d" y="%d" class="podium-text">podium chances of all drivers</text>`, marginLeft+panelWidth/2, panelHeight-marginBelow-15)
	p.line("model", curve...)
	for _, at := range curve {
		x, y := p.pixels(at)
		fmt.Fprintf(out, `<circle cx="%.1f" cy="%.1f" r="4"/>`, x, y)
	}
}

func (r *Report) saved(out *bytes.Buffer) {
	base := r.BaseScores[gridFrequency]
	curve := make([]point, 1, 1+len(r.Scores)) // from 0 at no race
	least, most, sum := 0.0, 0.0, 0.0
	for i, s := range r.Scores {
		if i < len(base) {
			sum += base[i].LogLoss - s.LogLoss
		}
		least, most = min(least, sum), max(most, sum)
		curve = append(curve, point{float64(i + 1), sum})
	}
	p := begin(out, panelWidth, "Log-loss saved against the grid-slot table", fmt.Sprintf("races since the start of %d", r.From),
		"nats, cumulative", ticks(0, float64(len(r.Scores))), ticks(least, most))
	p.line("model", curve...)
}

// point is a point of a plot, in the units of its axes.
type point struct{ x, y float64 }

// panel is a plot with its axes drawn.
type panel struct {
	out       *bytes.Buffer
	left      int // in pixels from the left edge of the page
	low, high point
}

// begin draws the axes of a panel from the first tick of each to the last.
func begin(out *bytes.Buffer, left int, title, xAxis, yAxis string, xs, ys []float64) *panel {
	p := &panel{out, left, point{xs[0], ys[0]}, point{xs[len(xs)-1], ys[len(ys)-1]}}
	middle := left + (marginLeft+panelWidth-marginRight)/2
	fmt.Fprintf(out, `<text x="%d" y="30" font-size="16">%s</text>`, middle, title)
	fmt.Fprintf(out, `<text x="%d" y="%d">%s</text>`, middle, panelHeight-15, xAxis)
	fmt.Fprintf(out, `<text transform="translate(%d %d) rotate(-90)">%s</text>`, left+18, (marginTop+panelHeight-marginBelow)/2, yAxis)
	for _, v := range xs {
		p.line("grid", point{v, p.low.y}, point{v, p.high.y})
		x, y := p.pixels(point{v, p.low.y})
		fmt.Fprintf(out, `<text x="%.1f" y="%.1f">%g</text>`, x, y+18, v)
	}
	for _, v := range ys {
		p.line("grid", point{p.low.x, v}, point{p.high.x, v})
		x, y := p.pixels(point{p.low.x, v})
		fmt.Fprintf(out, `<text x="%.1f" y="%.1f" style="text-anchor:end">%g</text>`, x-8, y+4, v)
	}
	return p
}

func (p *panel) pixels(at point) (x, y float64) {
	const width, height = panelWidth - marginLeft - marginRight, panelHeight - marginTop - marginBelow
	return float64(p.left) + marginLeft + width*(at.x-p.low.x)/(p.high.x-p.low.x),
		marginTop + height*(p.high.y-at.y)/(p.high.y-p.low.y)
}

func (p *panel) line(class string, through ...point) {
	var points strings.Builder
	for _, at := range through {
		x, y := p.pixels(at)
		fmt.Fprintf(&points, "%.1f,%.1f ", x, y)
	}
	fmt.Fprintf(p.out, `<polyline class="%s" points="%s"/>`, class, strings.TrimSpace(points.String()))
}

// ticks are round numbers, about ten of them, that enclose the values from low to high.
func ticks(low, high float64) []float64 {
	if high == low {
		high = low + 1
	}
	step := math.Pow(10, math.Floor(math.Log10(max(high-low, 1)))) // of 1 to 10 steps
	if (high-low)/step < 4 {
		step /= 4
	}
	var all []float64
	for v := step * math.Floor(low/step); v < high+step; v += step {
		all = append(all, v)
	}
	return all
}
