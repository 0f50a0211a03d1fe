package backtest

import (
	"bytes"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"io"
	"math"
	"slices"

	"github.com/wcharczuk/go-chart/v2"
	"github.com/wcharczuk/go-chart/v2/drawing"
)

// The colours of a plot: the model, what it is compared with, the lines behind both.
var (
	ink   = drawing.Color{R: 0x1f, G: 0x4e, B: 0x9c, A: 0xff}
	light = drawing.Color{R: 0x9d, G: 0xb8, B: 0xe0, A: 0xff}
	grey  = drawing.Color{R: 0x88, G: 0x88, B: 0x88, A: 0xff}
	faint = drawing.Color{R: 0xdd, G: 0xdd, B: 0xdd, A: 0xff}
)

// gridFrequency is the baseline that the plot compares with.
const gridFrequency = "grid_frequency"

// The size of one of the two panels, in pixels.
const (
	panelWidth  = 640
	panelHeight = 560
)

// Plot writes a PNG with the reliability curve of the picked winners, and the log-loss that
// the model has saved race by race against the grid-slot baseline.
func (r *Report) Plot(w io.Writer) error {
	page := image.NewRGBA(image.Rect(0, 0, 2*panelWidth, panelHeight))
	for i, panel := range []chart.Chart{r.reliabilityPanel(), r.savedPanel()} {
		var drawn bytes.Buffer
		if err := panel.Render(chart.PNG, &drawn); err != nil {
			return fmt.Errorf("plot %s: %w", panel.Title, err)
		}
		picture, err := png.Decode(&drawn)
		if err != nil {
			return fmt.Errorf("plot %s: %w", panel.Title, err)
		}
		place := image.Rect(i*panelWidth, 0, (i+1)*panelWidth, panelHeight)
		draw.Draw(page, place, picture, image.Point{}, draw.Src)
	}
	if err := png.Encode(w, page); err != nil {
		return fmt.Errorf("write plot: %w", err)
	}
	return nil
}

func (r *Report) reliabilityPanel() chart.Chart {
	said, won := make([]float64, len(r.Reliability)), make([]float64, len(r.Reliability))
	for i, b := range r.Reliability {
		said[i], won[i] = 100*b.Said, 100*b.Won
	}
	p := newPanel(fmt.Sprintf("Reliability, %d to %d, %d races", r.From, r.To, r.Races),
		"chance given to the picked winner, %", "picked winners that won, % (bars: 95 %)")
	p.XAxis.Ticks, p.YAxisSecondary.Ticks = ticks(0, 100), ticks(0, 100)
	p.Series = []chart.Series{
		line([]float64{0, 100}, []float64{0, 100}, chart.Style{StrokeColor: grey, StrokeWidth: 1.5}),
	}
	for _, b := range r.Reliability {
		p.Series = append(p.Series, line([]float64{100 * b.Said, 100 * b.Said}, []float64{100 * b.Interval[0], 100 * b.Interval[1]},
			chart.Style{StrokeColor: light, StrokeWidth: 3}))
	}
	p.Series = append(p.Series, line(said, won, chart.Style{StrokeColor: ink, StrokeWidth: 2, DotColor: ink, DotWidth: 4}))
	return p
}

func (r *Report) savedPanel() chart.Chart {
	races, saved := make([]float64, 1, 1+len(r.Scores)), make([]float64, 1, 1+len(r.Scores)) // from 0 at no race
	base := r.BaseScores[gridFrequency]
	sum := 0.0
	for i, s := range r.Scores {
		if i < len(base) {
			sum += base[i].LogLoss - s.LogLoss
		}
		races, saved = append(races, float64(i+1)), append(saved, sum)
	}
	p := newPanel("Log-loss saved against the grid-slot table",
		fmt.Sprintf("races since the start of %d", r.From), "nats, cumulative")
	p.XAxis.Ticks, p.YAxisSecondary.Ticks = ticks(0, float64(len(r.Scores))), ticks(slices.Min(saved), slices.Max(saved))
	p.Series = []chart.Series{line(races, saved, chart.Style{StrokeColor: ink, StrokeWidth: 2})}
	return p
}

func newPanel(title, x, y string) chart.Chart {
	grid := chart.Style{StrokeColor: faint, StrokeWidth: 1}
	return chart.Chart{
		Title:      title,
		TitleStyle: chart.Style{FontSize: 13},
		Width:      panelWidth,
		Height:     panelHeight,
		Background: chart.Style{Padding: chart.Box{Top: 50, Left: 20, Right: 30, Bottom: 20}},
		XAxis:      chart.XAxis{Name: x, GridMajorStyle: grid},
		// The library draws the first axis at the right and the second at the left, where people look for it.
		YAxis:          chart.YAxis{Style: chart.Hidden()},
		YAxisSecondary: chart.YAxis{Name: y, GridMajorStyle: grid},
	}
}

func line(x, y []float64, style chart.Style) chart.Series {
	return chart.ContinuousSeries{XValues: x, YValues: y, Style: style, YAxis: chart.YAxisSecondary}
}

// ticks are round numbers, about ten of them, that enclose the values from low to high.
func ticks(low, high float64) []chart.Tick {
	step := math.Pow(10, math.Floor(math.Log10(max(high-low, 1)))) // of 1 to 10 steps
	if (high-low)/step < 4 {
		step /= 4
	}
	var all []chart.Tick
	for v := step * math.Floor(low/step); v < high+step; v += step {
		all = append(all, chart.Tick{Value: v, Label: fmt.Sprintf("%g", v)})
	}
	return all
}
