package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gridcast/builder/predict"
	"gridcast/builder/predict/title"
	"gridcast/builder/source/f1db"
	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/lab/backtest"
	"gridcast/deploy/lab/laps"
	"gridcast/deploy/lab/score"
	"gridcast/deploy/lab/titles"
	"gridcast/deploy/must"
)

var update = flag.Bool("update", false, "write deploy/docs/predictions.json and the tables of predictions.md anew")

// The page, and the figures behind it.
const (
	page        = "../docs/predictions.md"
	pageFigures = "../docs/predictions.json"
)

// figures is the content of predictions.json: the answers of the commands that the page names, without the parts that
// the page leaves out.
type figures struct {
	Grid       backtest.Report     `json:"grid"`
	Qualifying backtest.Report     `json:"qualifying"`
	Practice   backtest.Report     `json:"practice"`
	Form       backtest.Report     `json:"form"`
	Known      backtest.Report     `json:"grid_to_2024"`
	Titles     titles.Record       `json:"titles"`
	Live       backtest.LiveReport `json:"live"`
	Frozen     []frozen            `json:"as_frozen"` // printed by make season
}

// frozen is a row of picks as a service froze them.
type frozen struct {
	Name         string  `json:"name"`
	Races        int     `json:"races"`
	WinnerHitPct float64 `json:"winner_hit_pct"`
	PodiumPct    float64 `json:"podium_pct"`
	LogLoss      float64 `json:"log_loss"`
}

func readFigures(t *testing.T) (f figures) {
	t.Helper()
	text, err := os.ReadFile(pageFigures)
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	must.Do(t, err)
	return f
}

// TestPredictionsPage holds every figure of the page to the committed answers of the commands: tables stand between
// marks, and the text around them has no figure with decimals.
func TestPredictionsPage(t *testing.T) {
	text := must.Get(os.ReadFile(page))(t)
	tables := tablesOf(readFigures(t))
	block := regexp.MustCompile(`(?s)<!-- figures: ([\w ]+) -->\n.*?<!-- end -->`)
	want := block.ReplaceAllStringFunc(string(text), func(found string) string {
		name := block.FindStringSubmatch(found)[1]
		table, ok := tables[name]
		must.Hold(t, ok, "the page has a table %q, which no figures fill", name)
		delete(tables, name)
		return "<!-- figures: " + name + " -->\n" + table + "<!-- end -->"
	})
	for name := range tables {
		t.Errorf("the page lacks the table %q", name)
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		if *update {
			must.Do(t, os.WriteFile(page, []byte(want), 0o600))
		} else {
			t.Errorf("%s differs from %s (-want +got); go -C deploy/lab test . -run TestPredictionsPage -update writes the tables\n%s", page, pageFigures, diff)
		}
	}
	for _, number := range regexp.MustCompile(`\b\d*\.\d+\b`).FindAllString(block.ReplaceAllString(string(text), ""), -1) {
		t.Errorf("the text has the figure %s: a table must show it", number)
	}
}

// TestPredictionsFigures runs the commands of the page again. The goals hold, and the committed figures are theirs.
func TestPredictionsFigures(t *testing.T) {
	if os.Getenv("GRIDCAST_SEASONS") == "" {
		t.Skip("backtests all seasons; make predictions does")
	}
	a, _, err := f1db.Import(sourcetest.Path(t, sourcetest.F1DB2026), f1db.Options{})
	must.Do(t, err)
	var got figures
	if old, err := os.ReadFile(pageFigures); err == nil {
		_ = json.Unmarshal(old, &got)
	} else if !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	got = figures{Frozen: got.Frozen}
	for _, run := range []struct {
		to    int
		basis predict.Order
		into  *backtest.Report
	}{{2026, predict.FromGrid, &got.Grid}, {2026, predict.FromQualifying, &got.Qualifying}, {2026, backtest.FromPractice, &got.Practice}, {2026, predict.FromForm, &got.Form}, {2024, predict.FromGrid, &got.Known}} {
		config := backtest.DefaultConfig(2010, run.to)
		config.Basis = run.basis
		report := must.Get(backtest.Run(t.Context(), a, config))(t)
		*run.into = *report
	}
	if got.Titles, err = titles.Score(t.Context(), a, 2010, 2025, predict.NewV2(predict.DefaultParams()), title.DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	races := must.Get(laps.Read(sourcetest.Path(t, "ergast-laps"), a))(t)
	live := must.Get(backtest.LiveRun(t.Context(), a, races, backtest.DefaultLiveConfig(2021, 2024)))(t)
	got.Live = *live
	text := got.text(t)
	if *update {
		must.Do(t, os.WriteFile(pageFigures, text, 0o600))
		return
	}
	var now figures
	must.Do(t, json.Unmarshal(text, &now))
	if diff := cmp.Diff(readFigures(t), now, cmpopts.EquateApprox(0, .0002), cmpopts.IgnoreUnexported(titles.Scores{})); diff != "" {
		t.Errorf("the committed figures are not those of the commands (-committed +now)\n%s", diff)
	}
}

// text returns the figures as JSON with four decimals, without the intervals of single seasons.
func (f figures) text(t *testing.T) []byte {
	t.Helper()
	for _, r := range []*backtest.Report{&f.Grid, &f.Qualifying, &f.Practice, &f.Form, &f.Known} {
		for i := range r.Subsets {
			r.Subsets[i].Model.Intervals, r.Subsets[i].Baselines = nil, nil
		}
		for i := range r.Seasons {
			s := &r.Seasons[i]
			s.Model.Intervals = nil
			slot := s.Baselines["grid_frequency"]
			slot.Intervals = nil
			s.Baselines = map[string]score.Metrics{"grid_frequency": slot}
		}
	}
	f.Known.Seasons = nil
	exact := must.Get(json.Marshal(f))(t)
	rounded := regexp.MustCompile(`-?\d+\.\d{5,}(e-\d+)?`).ReplaceAllFunc(exact, func(n []byte) []byte {
		var v float64
		_ = json.Unmarshal(n, &v)
		return fmt.Appendf(nil, "%g", math.Round(v*1e4)/1e4)
	})
	return append(rounded, '\n')
}

// tablesOf makes the tables of the page.
func tablesOf(f figures) map[string]string {
	tables := map[string]string{}
	row := func(name string, cells ...string) { tables[name] += "| " + strings.Join(cells, " | ") + " |\n" }
	head := func(name string, cells ...string) {
		row(name, cells...)
		tables[name] += strings.Repeat("|---", len(cells)) + "|\n"
	}
	pct := func(v float64) string { return fmt.Sprintf("%.1f", v) }
	num := func(v float64) string { return fmt.Sprintf("%.3f", v) }
	in := func(format string, v float64, i score.Interval) string {
		return fmt.Sprintf(format+" ["+format+", "+format+"]", v, i[0], i[1])
	}

	head("published", "picks", "races", "winner %", "podium %", "log-loss")
	for _, r := range f.Frozen {
		row("published", r.Name, strconv.Itoa(r.Races), pct(r.WinnerHitPct), pct(r.PodiumPct), num(r.LogLoss))
	}
	for _, s := range f.Qualifying.Seasons {
		if s.Year == 2025 {
			row("published", "backtest from qualifying, 2025", strconv.Itoa(s.Races), pct(s.Model.WinnerHitPct), pct(s.Model.PodiumPct), num(s.Model.LogLoss))
		}
	}
	for _, r := range []struct {
		name string
		of   backtest.Report
	}{{"backtest from qualifying, 2010 to 2026", f.Qualifying}, {"backtest from the grid, 2010 to 2026", f.Grid}, {"backtest from form, 2010 to 2026", f.Form}} {
		row("published", r.name, strconv.Itoa(r.of.Races), pct(r.of.Model.WinnerHitPct), pct(r.of.Model.PodiumPct), num(r.of.Model.LogLoss))
	}

	head("scores", "", "winner %", "podium %", "log-loss", "Brier", "podium Brier", "ECE %", "ECE of all drivers %")
	for _, r := range []struct {
		name string
		of   score.Metrics
	}{
		{"gridcast, qualifying", f.Qualifying.Model},
		{"gridcast, grid", f.Grid.Model},
		{"gridcast, practice", f.Practice.Model},
		{"gridcast, form", f.Form.Model},
		{"f0: the outcome of qualifying alone", f.Grid.Baselines["f0"]},
		{"frequency of the grid slot", f.Grid.Baselines["grid_frequency"]},
		{"the same, podiums by the slot's own frequency", f.Grid.Baselines["slot_podiums"]},
		{"pole wins", f.Grid.Baselines["pole"]},
		{"championship leader", f.Grid.Baselines["leader"]},
	} {
		i := r.of.Intervals
		row("scores", r.name, in("%.1f", r.of.WinnerHitPct, i.WinnerHitPct), in("%.1f", r.of.PodiumPct, i.PodiumPct), in("%.3f", r.of.LogLoss, i.LogLoss),
			num(r.of.Brier), in("%.3f", r.of.PodiumBrier, i.PodiumBrier), pct(r.of.ECEPct), fmt.Sprintf("%.2f", r.of.ECEDriversPct))
	}

	head("differences", "gridcast from the grid minus", "winner %", "podium %", "log-loss", "podium Brier")
	for _, name := range []string{"f0", "grid_frequency", "slot_podiums", "pole"} {
		d := f.Grid.Differences[name]
		cell := func(format string, p backtest.Paired) string { return in(format, p.Mean, p.Interval) }
		row("differences", "`"+name+"`", cell("%+.1f", d.WinnerHitPct), cell("%+.1f", d.PodiumPct), cell("%+.3f", d.LogLoss), cell("%+.3f", d.PodiumBrier))
	}

	head("orders", "whole orders", "Brier of the points", "ranked probability score", "log-loss of all places", "classified", "in a place of 0.00 %")
	for _, r := range []struct {
		name string
		of   score.Metrics
	}{{"2010 to 2024", f.Known.Model}, {"2010 to 2026", f.Grid.Model}} {
		row("orders", r.name, num(r.of.PointsBrier), fmt.Sprintf("%.4f", r.of.RPS), fmt.Sprintf("%.2f", r.of.PlacesLogScore), strconv.Itoa(r.of.Finishes), strconv.Itoa(r.of.FinishesOnZero))
	}

	bases := []backtest.Report{f.Grid, f.Qualifying, f.Practice, f.Form}
	head("reliability", "podium about", "grid: said %", "came % [95 %]", "qualifying: said %", "came %", "practice: said %", "came %", "form: said %", "came %")
	for tenth := range 11 {
		cells := []string{fmt.Sprintf("%d %%", 10*tenth)}
		for i, r := range bases {
			said, came := "", ""
			for _, b := range r.Podiums {
				if int(10*b.Said+.5) == tenth {
					said, came = pct(100*b.Said), pct(100*b.Won)+" of "+strconv.Itoa(b.Races)
					if i == 0 {
						came = in("%.1f", 100*b.Won, score.Interval{100 * b.Interval[0], 100 * b.Interval[1]}) + " of " + strconv.Itoa(b.Races)
					}
				}
			}
			cells = append(cells, said, came)
		}
		row("reliability", cells...)
	}

	head("slices", "", "races", "grid: winner %", "log-loss", "form: winner %", "log-loss")
	for i, s := range f.Grid.Subsets {
		form := f.Form.Subsets[i]
		row("slices", s.Name, strconv.Itoa(s.Races), pct(s.Model.WinnerHitPct), num(s.Model.LogLoss), pct(form.Model.WinnerHitPct), num(form.Model.LogLoss))
	}

	head("seasons", "", "races", "winner %", "pole's", "podium %", "grid's", "LL", "slot", "qualifying", "form")
	for i, s := range f.Grid.Seasons {
		slot := s.Baselines["grid_frequency"]
		row("seasons", strconv.Itoa(s.Year), strconv.Itoa(s.Races), pct(s.Model.WinnerHitPct), pct(slot.WinnerHitPct), pct(s.Model.PodiumPct), pct(slot.PodiumPct),
			num(s.Model.LogLoss), num(slot.LogLoss), num(f.Qualifying.Seasons[i].Model.LogLoss), num(f.Form.Seasons[i].Model.LogLoss))
	}

	head("titles", "", "odds", "rounds drawn again", "leader", "share of points", "likeliest won", "said %")
	for _, s := range f.Titles.Stages {
		for _, of := range []struct {
			name string
			titles.Scores
		}{{"drivers", s.Drivers}, {"constructors", s.Teams}} {
			row("titles", fmt.Sprintf("%s after %.0f %%", of.name, 100*s.Part), num(of.LogLoss), num(of.Replay), num(of.Leader), num(of.Share),
				fmt.Sprintf("%d of %d", of.Hits, of.Seasons), pct(100*of.Said))
		}
	}

	head("live", "distance %", "races", "winner %", "log-loss", "podium Brier", "order alone: winner %", "log-loss", "podium Brier", "before the race: winner %", "log-loss", "podium Brier", "positions: winner %", "log-loss", "podium Brier")
	for _, c := range f.Live.Checkpoints {
		cells := []string{strconv.Itoa(c.Percent), strconv.Itoa(c.Races)}
		for _, m := range []score.Metrics{c.Model, c.Baselines["order_only"], c.Baselines["before"], c.Baselines["leader"]} {
			cells = append(cells, pct(m.WinnerHitPct), num(m.LogLoss), num(m.PodiumBrier))
		}
		row("live", cells...)
	}

	head("last laps", "laps to go", "leaders", "said %", "came %", "more than 5 s ahead", "said %", "came %", "podiums", "said %", "came %", "from the order: said %")
	for _, l := range f.Live.LastLaps {
		cells := []string{strconv.Itoa(l.LapsToGo)}
		for _, o := range []backtest.Outcomes{l.Leaders, l.Clear, l.Podiums} {
			cells = append(cells, strconv.Itoa(o.Chances), pct(100*o.Said), pct(100*o.Came))
		}
		row("last laps", append(cells, pct(100*l.OrderPodiums.Said))...)
	}
	return tables
}
