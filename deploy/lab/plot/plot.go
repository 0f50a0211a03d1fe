// Package plot draws panels with axes into an SVG. The styles of its classes are those of the caller.
package plot

import (
	"bytes"
	"fmt"
	"math"
	"strings"
)

// The margins around the axes of a panel, in pixels.
const (
	MarginLeft  = 70
	MarginRight = 30
	MarginTop   = 60
	MarginBelow = 60
)

// Point is a point of a plot, in the units of its axes.
type Point struct{ X, Y float64 }

// At returns the point (x, y).
func At(x, y float64) Point { return Point{x, y} }

// Axis is an axis from its first tick to its last.
type Axis struct {
	Title string
	Ticks []float64
	Log   bool // logarithmic: all ticks are above 0, and lower values are drawn at the first
}

// Area is the place of a panel with its margins, in pixels from the top left corner of the page.
type Area struct{ Left, Top, Width, Height int }

// Panel is a plot with its axes drawn.
type Panel struct {
	out  *bytes.Buffer
	area Area
	x, y Axis
}

// Begin draws the axes of a panel.
func Begin(out *bytes.Buffer, area Area, title string, x, y Axis) *Panel {
	p := &Panel{out, area, x, y}
	middle := area.Left + (MarginLeft+area.Width-MarginRight)/2
	fmt.Fprintf(out, `<text x="%d" y="%d" font-size="16">%s</text>`, middle, area.Top+30, title)
	fmt.Fprintf(out, `<text x="%d" y="%d">%s</text>`, middle, area.Top+area.Height-15, x.Title)
	fmt.Fprintf(out, `<text transform="translate(%d %d) rotate(-90)">%s</text>`, area.Left+18, area.Top+(MarginTop+area.Height-MarginBelow)/2, y.Title)
	low, high := Point{x.Ticks[0], y.Ticks[0]}, Point{x.Ticks[len(x.Ticks)-1], y.Ticks[len(y.Ticks)-1]}
	for _, v := range x.Ticks {
		p.Line("grid", Point{v, low.Y}, Point{v, high.Y})
		x, y := p.Pixels(Point{v, low.Y})
		fmt.Fprintf(out, `<text x="%.1f" y="%.1f">%g</text>`, x, y+18, v)
	}
	for _, v := range y.Ticks {
		p.Line("grid", Point{low.X, v}, Point{high.X, v})
		x, y := p.Pixels(Point{low.X, v})
		fmt.Fprintf(out, `<text x="%.1f" y="%.1f" style="text-anchor:end">%g</text>`, x-8, y+4, v)
	}
	return p
}

// Pixels returns the place of a point on the page.
func (p *Panel) Pixels(at Point) (x, y float64) {
	return float64(p.area.Left) + MarginLeft + float64(p.area.Width-MarginLeft-MarginRight)*p.x.share(at.X),
		float64(p.area.Top) + MarginTop + float64(p.area.Height-MarginTop-MarginBelow)*(1-p.y.share(at.Y))
}

// share returns the place of a value on the axis, from 0 to 1.
func (a *Axis) share(value float64) float64 {
	low, high := a.Ticks[0], a.Ticks[len(a.Ticks)-1]
	if a.Log {
		low, high, value = math.Log(low), math.Log(high), math.Log(max(value, low))
	}
	return (value - low) / (high - low)
}

// Line draws a line of a class.
func (p *Panel) Line(class string, through ...Point) {
	var points strings.Builder
	for _, at := range through {
		x, y := p.Pixels(at)
		fmt.Fprintf(&points, "%.1f,%.1f ", x, y)
	}
	fmt.Fprintf(p.out, `<polyline class="%s" points="%s"/>`, class, strings.TrimSpace(points.String()))
}

// Ticks returns about ten round numbers that enclose the values from low to high.
func Ticks(low, high float64) []float64 {
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
