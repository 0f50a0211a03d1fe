package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/predict/score"
	"gridcast/deploy/operator"
	"gridcast/deploy/view"
	"gridcast/schemas/wire"
)

// recordSection is the accuracy of all picks in the ledger, compared with the drivers on pole.
type recordSection struct {
	scores
	From, To   int // seasons
	PoleHits   int
	Running    chart // hits and those of the pole, race by race
	Calibrated chart // predicted against observed frequency
	Bins       []score.Bin
}

// PolePct is how often the driver on pole won the same races.
func (r recordSection) PolePct() string { return share(r.PoleHits, r.Races) }

func newRecord(a *almanac.Almanac) recordSection {
	var record recordSection
	var forecasts []score.Score
	var hits, pole []int // cumulative
	for r := range a.All() {
		hit, _, scored := record.add(r)
		if !scored {
			continue
		}
		if len(r.Facts.Grid) > 0 && r.Facts.Grid[0].Driver == almanac.Podium(r.Result.Rows)[0] {
			record.PoleHits++
		}
		if record.Races == 1 {
			record.From = r.Year
		}
		record.To = r.Year
		hits, pole = append(hits, record.Hits), append(pole, record.PoleHits)
		forecasts = append(forecasts, score.Score{Confidence: r.Pick.WinProbability, Hit: hit})
	}
	if record.Races == 0 {
		return record
	}
	record.Bins = score.Reliability(forecasts)
	record.Running = runningChart(hits, pole)
	record.Calibrated = calibrationChart(record.Bins)
	return record
}

// chart is the geometry of a plot in a box of chartWidth by chartHeight, y downwards.
type chart struct {
	Width, Height int
	Left, Bottom  int // where the axes cross
	Right, Top    int
	XTicks        []tick
	YTicks        []tick
	Lines         []line
	Dots          []dot
}

type tick struct {
	At    int
	Label string
}

type line struct {
	Class  string
	Points string // of an SVG polyline
}

// dot is a point with its confidence interval.
type dot struct {
	X, Y      int
	High, Low int // the interval on the y axis
	Title     string
}

// The size of a plot.
const (
	chartWidth, chartHeight = 340, 240
	marginLeft, marginRight = 40, 12
	marginTop, marginBottom = 12, 30
)

func newChart() chart {
	return chart{
		Width: chartWidth, Height: chartHeight,
		Left: marginLeft, Right: chartWidth - marginRight, Top: marginTop, Bottom: chartHeight - marginBottom,
	}
}

// at places a point given by its shares of both axes.
func (c *chart) at(x, y float64) (int, int) {
	return c.Left + int(x*float64(c.Right-c.Left)+0.5), c.Bottom - int(y*float64(c.Bottom-c.Top)+0.5)
}

func (c *chart) ticks(xMax, yMax int) {
	for _, x := range round(xMax) {
		at, _ := c.at(float64(x)/float64(xMax), 0)
		c.XTicks = append(c.XTicks, tick{at, strconv.Itoa(x)})
	}
	for _, y := range round(yMax) {
		_, at := c.at(0, float64(y)/float64(yMax))
		c.YTicks = append(c.YTicks, tick{at, strconv.Itoa(y)})
	}
}

// round returns about four round numbers from 0 to most.
func round(most int) []int {
	step := 1
	for _, s := range []int{1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000} {
		if step = s; most/s <= 5 {
			break
		}
	}
	var numbers []int
	for n := 0; n <= most; n += step {
		numbers = append(numbers, n)
	}
	return numbers
}

// runningChart shows the hits of the picks and of pole position, race by race.
func runningChart(hits, pole []int) chart {
	c := newChart()
	races := len(hits)
	most := max(hits[races-1], pole[races-1], 1)
	c.ticks(races, most)
	for _, l := range []struct {
		class  string
		values []int
	}{{"pole", pole}, {"model", hits}} {
		var points strings.Builder
		x, y := c.at(0, 0)
		fmt.Fprintf(&points, "%d,%d", x, y)
		for i, n := range l.values {
			x, y := c.at(float64(i+1)/float64(races), float64(n)/float64(most))
			fmt.Fprintf(&points, " %d,%d", x, y)
		}
		c.Lines = append(c.Lines, line{l.class, points.String()})
	}
	return c
}

// calibrationChart shows the share of correct picks by confidence. Calibrated picks lie on the diagonal.
func calibrationChart(bins []score.Bin) chart {
	c := newChart()
	c.ticks(100, 100)
	x0, y0 := c.at(0, 0)
	x1, y1 := c.at(1, 1)
	c.Lines = append(c.Lines, line{"honest", fmt.Sprintf("%d,%d %d,%d", x0, y0, x1, y1)})
	for _, b := range bins {
		x, y := c.at(b.Said, b.Won)
		_, bottom := c.at(0, b.Interval[0])
		_, top := c.at(0, b.Interval[1])
		c.Dots = append(c.Dots, dot{x, y, top, bottom, fmt.Sprintf("%d races: %s said, %s won", b.Races, view.Percent(b.Said), view.Percent(b.Won))})
	}
	return c
}

// raceSection is the running race, for the form of an order by hand.
type raceSection struct {
	operator.RunningRace

	Stale   bool
	NextLap int
	Next    *wire.LiveCheckpoint // the next live pick; nil: there is none
	Chances chart                // of the likeliest winners, by lap
	Leaders []raceLine           // of the chart, the likeliest first
}

type raceLine struct {
	Class, Driver string
	Win           *wire.Percent
}

// Seen is the instant of the latest observation.
func (r *raceSection) Seen() time.Time { return time.Time(r.ObservedAt) }

func (c *Console) collectRace(ctx context.Context, p *page) {
	now, ok := c.Operator.Running(ctx)
	if !ok || now.State == wire.LiveNone {
		return
	}
	until := time.Time(now.ValidUntil)
	p.Race = &raceSection{RunningRace: now, NextLap: now.Lap + 1, Stale: !until.IsZero() && p.RaceTime.After(until)}
	for i := range p.Race.Checkpoints {
		if p.Race.Next == nil && p.Race.Checkpoints[i].Status == wire.CheckpointPending {
			p.Race.Next = &p.Race.Checkpoints[i]
		}
	}
	p.Race.plot()
}

// plot draws the chances to win of the five likeliest drivers, lap by lap.
func (r *raceSection) plot() {
	win := func(c wire.LiveCar) wire.Percent { return *cmp.Or(c.WinPct, new(wire.Percent)) }
	likeliest := slices.Clone(r.Order)
	slices.SortStableFunc(likeliest, func(a, b wire.LiveCar) int { return cmp.Compare(win(b), win(a)) })
	r.Chances = newChart()
	r.Chances.ticks(max(r.Laps, r.Lap, 1), 100)
	for i, driver := range likeliest[:min(5, len(likeliest))] {
		var points strings.Builder
		for _, lap := range r.Timeline {
			for _, c := range lap.Order {
				if c.Driver == driver.Driver && c.WinPct != nil {
					x, y := r.Chances.at(float64(lap.Lap)/float64(max(r.Laps, r.Lap)), float64(win(c))/1000)
					fmt.Fprintf(&points, "%d,%d ", x, y)
				}
			}
		}
		of := raceLine{fmt.Sprintf("car%d", i), driver.Driver, driver.WinPct}
		r.Leaders, r.Chances.Lines = append(r.Leaders, of), append(r.Chances.Lines, line{of.Class, points.String()})
	}
}
