package backtest

import (
	"bytes"
	"fmt"
	"io"

	"gridcast/deploy/lab/plot"
)

// gridFrequency is the baseline that the plot compares with.
const gridFrequency = "grid_frequency"

// The size of one of the two panels, in pixels.
const (
	panelWidth  = 640
	panelHeight = 560
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
	p := plot.Begin(out, plot.Area{Width: panelWidth, Height: panelHeight}, fmt.Sprintf("Reliability, %d to %d, %d races", r.From, r.To, r.Races),
		plot.Axis{Title: "chance given to the picked winner, %", Ticks: plot.Ticks(0, 100)},
		plot.Axis{Title: "picked winners that won, % (bars: 95 %)", Ticks: plot.Ticks(0, 100)})
	p.Line("even", plot.At(0, 0), plot.At(100, 100))
	curve := make([]plot.Point, len(r.Reliability))
	for i, b := range r.Reliability {
		p.Line("interval", plot.At(100*b.Said, 100*b.Interval[0]), plot.At(100*b.Said, 100*b.Interval[1]))
		curve[i] = plot.At(100*b.Said, 100*b.Won)
	}
	podiums := make([]plot.Point, len(r.Podiums))
	for i, b := range r.Podiums {
		podiums[i] = plot.At(100*b.Said, 100*b.Won)
	}
	p.Line("podium", podiums...)
	fmt.Fprintf(out, `<text x="%d" y="%d" class="podium-text">podium chances of all drivers</text>`, plot.MarginLeft+panelWidth/2, panelHeight-plot.MarginBelow-15)
	p.Line("model", curve...)
	for _, at := range curve {
		x, y := p.Pixels(at)
		fmt.Fprintf(out, `<circle cx="%.1f" cy="%.1f" r="4"/>`, x, y)
	}
}

func (r *Report) saved(out *bytes.Buffer) {
	base := r.BaseScores[gridFrequency]
	curve := make([]plot.Point, 1, 1+len(r.Scores)) // from 0 at no race
	least, most, sum := 0.0, 0.0, 0.0
	for i, s := range r.Scores {
		if i < len(base) {
			sum += base[i].LogLoss - s.LogLoss
		}
		least, most = min(least, sum), max(most, sum)
		curve = append(curve, plot.At(float64(i+1), sum))
	}
	p := plot.Begin(out, plot.Area{Left: panelWidth, Width: panelWidth, Height: panelHeight}, "Log-loss saved against the grid-slot table",
		plot.Axis{Title: fmt.Sprintf("races since the start of %d", r.From), Ticks: plot.Ticks(0, float64(len(r.Scores)))},
		plot.Axis{Title: "nats, cumulative", Ticks: plot.Ticks(least, most)})
	p.Line("model", curve...)
}
