package backtest

import (
	"fmt"
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// The colours of a plot: the model, what it is compared with.
var (
	ink  = color.RGBA{R: 0x1f, G: 0x4e, B: 0x9c, A: 0xff}
	grey = color.RGBA{R: 0x88, G: 0x88, B: 0x88, A: 0xff}
)

// gridFrequency is the baseline that the plot compares with.
const gridFrequency = "grid_frequency"

// Plot writes a PNG with the reliability curve of the picked winners, and the log-loss that
// the model has saved race by race against the grid-slot baseline.
func (r *Report) Plot(w io.Writer) error {
	reliability, err := r.reliabilityPlot()
	if err != nil {
		return fmt.Errorf("plot reliability: %w", err)
	}
	saved, err := r.savedPlot()
	if err != nil {
		return fmt.Errorf("plot log-loss: %w", err)
	}
	canvas := vgimg.New(28*vg.Centimeter, 13*vg.Centimeter)
	page := draw.New(canvas)
	tiles := draw.Tiles{Rows: 1, Cols: 2, PadX: vg.Centimeter, PadTop: 5, PadBottom: 5, PadLeft: 5, PadRight: 15}
	reliability.Draw(tiles.At(page, 0, 0))
	saved.Draw(tiles.At(page, 1, 0))
	if _, err := (vgimg.PngCanvas{Canvas: canvas}).WriteTo(w); err != nil {
		return fmt.Errorf("write plot: %w", err)
	}
	return nil
}

func (r *Report) reliabilityPlot() (*plot.Plot, error) {
	points := make(plotter.XYs, len(r.Reliability))
	for i, b := range r.Reliability {
		points[i] = plotter.XY{X: 100 * b.Said, Y: 100 * b.Won}
	}
	line, dots, err := plotter.NewLinePoints(points)
	if err != nil {
		return nil, err
	}
	perfect, err := plotter.NewLine(plotter.XYs{{X: 0, Y: 0}, {X: 100, Y: 100}})
	if err != nil {
		return nil, err
	}
	line.Color, dots.Color, perfect.Color = ink, ink, grey
	dots.Shape = draw.CircleGlyph{}
	p := plot.New()
	p.Title.Text = fmt.Sprintf("Reliability, %d to %d, %d races", r.From, r.To, r.Races)
	p.X.Label.Text = "chance given to the picked winner, %"
	p.Y.Label.Text = "picked winners that won, %"
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 100, 0, 100
	p.Add(plotter.NewGrid(), perfect, line, dots)
	return p, nil
}

func (r *Report) savedPlot() (*plot.Plot, error) {
	points := make(plotter.XYs, 1, 1+len(r.Scores)) // from 0 at no race
	sum := 0.0
	base := r.BaseScores[gridFrequency]
	for i, s := range r.Scores {
		if i < len(base) {
			sum += base[i].LogLoss - s.LogLoss
		}
		points = append(points, plotter.XY{X: float64(i + 1), Y: sum})
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return nil, err
	}
	line.Color = ink
	p := plot.New()
	p.Title.Text = "Log-loss saved against the grid-slot table"
	p.X.Label.Text = fmt.Sprintf("races since the start of %d", r.From)
	p.Y.Label.Text = "nats, cumulative"
	p.Add(plotter.NewGrid(), line)
	return p, nil
}
