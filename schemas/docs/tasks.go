package docs

import (
	"math"
	"slices"
	"strconv"
)

// Task is a page that begins with a program: a file for a browser, with a picture of its page.
type Task struct {
	Page, Title, Summary string
	Program              Sample
	Picture, Shows       string // address of the picture, and its content in words
	Width, Height        int    // of the picture as shown, in CSS pixels
}

// The size of each picture, in CSS pixels.
const (
	PictureWidth  = 560
	PictureHeight = 480
)

// Tasks lists the pages that begin with a task, in their order. The last two have programs for a shell, and no picture.
func Tasks() []Task {
	task := func(page, title, summary, shows string) Task {
		t := Task{Page: page, Title: title, Summary: summary, Shows: shows}
		if shows != "" {
			t.Program = program("HTML", page+".html")
			t.Picture, t.Width, t.Height = "/docs/"+page+".webp", PictureWidth, PictureHeight
		}
		return t
	}
	return []Task{
		task("site", "Standings and next race", "A countdown and the championship on your site.",
			"A page with the name of the next race, a countdown, and a table of drivers, teams and points"),
		task("race-day", "Race day, live", "By the state of the race: silence, red flag, correction.",
			"A page with a red flag after lap 31, and the order with gaps and chances"),
		task("who-wins", "Who will win", "Chances as bars, with their record beside them.",
			"A page with eight drivers, a bar for the chance of each, and the record of past picks"),
		task("downloads", "All of Formula 1 in DuckDB", "Every season since 1950 in a database, kept up to date.", ""),
		task("audit", "Settle and audit", "What each number means, and the proof of a pick.", ""),
	}
}

// Database returns the programs that keep all seasons in a database: they fetch, load and ask.
func Database() []Sample {
	return []Sample{Seasons(), program("Shell", "duckdb.sh"), program("SQL", "wins.sql")}
}

// Settle returns the program that settles each pick of a season.
func Settle() Sample { return program("Python", "settle.py") }

// Printed returns the output of a program that the pages show: "wins" or "settle".
func Printed(name string) string { return asset("samples/" + name + ".txt") }

func program(language, file string) Sample { return Sample{language, file, asset("samples/" + file)} }

// State is a state on the way of a round. The drawing and the table on the page of a race day show them, and
// deploy/states_test.go drives a round through each.
type State struct {
	Name, Test   string // for readers, and in the test
	Status, Live string // in /calendar, and in /live; no Live: /live shows another race
	Event        string // the step from the state above
	Show         string // the words for a page
	Side, Back   bool   // drawn beside the main way, and left for it again
	Row, Rows    int    // its place in the drawing
}

// States lists the states of a round in the order of the way.
func States() []State {
	return rowsOf("states.csv", func(r []string) State {
		return State{r[0], r[1], r[2], r[3], r[8], r[9], r[4] == "yes", r[7] == "yes", int(figure(r[5])), int(figure(r[6]))}
	})
}

// box is a state with the coordinates of the drawing.
type box struct {
	State

	X, Y, Height, Middle int
	Text                 [3]struct{ X, Y int } // the lines in the box
	Above, EventY        int                   // the arrow from the box above, and the base of the text beside it
}

// way lays the states out, and returns the height of the drawing.
func way() (boxes []box, height int) {
	const pitch, space = 84, 26 // of a row, and below its box
	for _, s := range States() {
		b := box{State: s, X: 2, Y: s.Row*pitch + 2, Height: s.Rows*pitch - space}
		if s.Side {
			b.X = 208
		}
		b.Middle, b.Above, b.EventY = b.Y+b.Height/2, b.Y-space, b.Y-9
		for i := range b.Text {
			b.Text[i].X, b.Text[i].Y = b.X+10, b.Y+20+15*i
		}
		boxes, height = append(boxes, b), max(height, b.Y+b.Height+2)
	}
	return boxes, height
}

// point is a point of the chart of calibration, with the coordinates of the drawing.
type point struct {
	Said, Won       string
	X, Y, Low, High int
}

// chart is the calibration of the picked winners.
type chart struct {
	Calibration      []point
	CalibrationRaces int
	Ticks            []point // lines of the grid
}

func calibration() (c chart) {
	across := func(percent float64) int { return 40 + int(math.Round(percent*3)) }
	up := func(percent float64) int { return 290 - int(math.Round(percent*2.8)) }
	for _, r := range rowsOf("calibration.csv", slices.Clone) {
		c.Calibration = append(c.Calibration, point{r[1], r[2], across(figure(r[1])), up(figure(r[2])), up(figure(r[3])), up(figure(r[4]))})
		c.CalibrationRaces += int(figure(r[0]))
	}
	for p := 0.0; p <= 100; p += 20 {
		c.Ticks = append(c.Ticks, point{Said: strconv.Itoa(int(p)), X: across(p), Y: up(p)})
	}
	return c
}

// figure returns a number of a table.
func figure(text string) float64 {
	f, err := strconv.ParseFloat(text, 64)
	check(err)
	return f
}
