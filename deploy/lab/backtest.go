package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"gridcast/builder/predict"
	"gridcast/builder/predict/title"
	"gridcast/builder/season"
	"gridcast/deploy/flags"
	"gridcast/deploy/lab/backtest"
	"gridcast/deploy/lab/laps"
	"gridcast/deploy/lab/score"
	"gridcast/deploy/lab/titles"
	"gridcast/deploy/terminal"
	"gridcast/deploy/view"
)

type backtestCmd struct {
	From    int    `required:"" help:"First season to score." placeholder:"YEAR" env:"-"`
	To      int    `required:"" help:"Last season to score." placeholder:"YEAR" env:"-"`
	Archive string `help:"An archive file; default: the embedded seasons." placeholder:"FILE" type:"path"`
	Model   string `help:"The model that makes the picks: ${enum}." enum:"v2,r2,grid-frequency" default:"v2"`
	Basis   string `help:"The known facts of the weekend: ${enum}; form means only the entry list." enum:"grid,qualifying,practice,form" default:"grid"`
	Plot    string `help:"Write an SVG: reliability, and the log-loss saved against the grid-slot table." placeholder:"FILE.svg" type:"path"`
	Live    bool   `help:"Score the picks made during the races, by checkpoint; needs --laps."`
	Titles  bool   `help:"Score the title odds after a quarter, half and three quarters of each season that is over."`
	Laps    string `help:"A folder with lap times as in the Ergast dump." placeholder:"DIR" type:"path"`
}

func (c *backtestCmd) Run(ctx context.Context, s *terminal.Streams) error {
	switch {
	case c.From > c.To:
		return terminal.Usagef("--from %d: must not be after --to %d", c.From, c.To)
	case c.Live && c.Laps == "":
		return terminal.Usagef("--live: needs lap times, --laps DIR")
	case c.Live && c.Basis != string(predict.FromGrid):
		return terminal.Usagef("--basis %s: live picks start from the forecast on the grid", c.Basis)
	case c.Live && c.Plot != "":
		return terminal.Usagef("--plot: there is no plot of live picks")
	case c.Titles && (c.Live || c.Plot != "" || c.Basis != string(predict.FromGrid)):
		return terminal.Usagef("--titles: goes with neither --live, --plot nor --basis")
	case !c.Live && c.Laps != "":
		return terminal.Usagef("--laps: only --live reads lap times")
	}
	stored, err := flags.ReadArchive(c.Archive)
	if err != nil {
		return err
	}
	a := stored.Archive
	if first := a.Facts().Seasons[0].Year; c.From < first {
		return fmt.Errorf("backtest from %d: the archive begins in %d; give another one with --archive", c.From, first)
	}
	switch {
	case c.Live:
		return c.live(ctx, s, a)
	case c.Titles:
		return c.titles(ctx, s, a)
	}
	config := backtest.DefaultConfig(c.From, c.To)
	if config.Model, err = predict.ByName(c.Model); err != nil {
		return err
	}
	config.Basis = predict.Order(c.Basis)
	if config.Basis == predict.FromForm || config.Basis == backtest.FromPractice {
		config.Baselines = slices.DeleteFunc(config.Baselines, func(b backtest.Baseline) bool { return b.Name == "f0" }) // needs qualifying
	}
	config.Progress = s.Progress
	report, err := backtest.Run(ctx, a, config)
	if err != nil {
		return err
	}
	if c.Plot != "" {
		file, err := os.Create(c.Plot)
		if err != nil {
			return fmt.Errorf("write plot: %w", err)
		}
		if err := errors.Join(report.Plot(file), file.Close()); err != nil {
			return fmt.Errorf("write plot %s: %w", c.Plot, err)
		}
	}
	if !s.PrintedJSON(report) {
		printBacktest(s, report)
	}
	return nil
}

func (c *backtestCmd) live(ctx context.Context, s *terminal.Streams, a *season.Archive) error {
	races, err := laps.Read(c.Laps, a)
	if err != nil {
		return err
	}
	config := backtest.DefaultLiveConfig(c.From, c.To)
	if config.Model, err = predict.ByName(c.Model); err != nil {
		return err
	}
	config.Progress = s.Progress
	report, err := backtest.LiveRun(ctx, a, races, config)
	if err != nil {
		return err
	}
	if !s.PrintedJSON(report) {
		printLive(s, report)
	}
	return nil
}

func (c *backtestCmd) titles(ctx context.Context, s *terminal.Streams, a *season.Archive) error {
	model, err := predict.ByName(c.Model)
	if err != nil {
		return err
	}
	ranked, ok := model.(*predict.Ranked)
	if !ok {
		return terminal.Usagef("--model %s: has no title odds", c.Model)
	}
	record, err := titles.Score(ctx, a, c.From, c.To, ranked, title.DefaultConfig())
	if err != nil {
		return err
	}
	if s.PrintedJSON(record) {
		return nil
	}
	var rows [][]any
	for _, stage := range record.Stages {
		for _, of := range []struct {
			title string
			titles.Scores
		}{{"drivers", stage.Drivers}, {"constructors", stage.Teams}} {
			rows = append(rows, []any{
				fmt.Sprintf("%s after %.0f %%", of.title, 100*stage.Part), of.Seasons, decimals(of.LogLoss), decimals(of.Replay), decimals(of.Leader), decimals(of.Share),
				of.Hits, percent(100 * of.Said),
			})
		}
	}
	s.Printf("%s, title odds, %d to %d, log-loss of the champion\n\n", model.Name(), record.From, record.To)
	s.PrintTable([]any{"", "seasons", "odds", "rounds drawn again", "leader", "share of points", "likeliest won", "said %"}, rows)
	return nil
}

// gridSlots is the baseline of tables that have room for one.
const gridSlots = "grid_frequency"

// printBacktest prints the tables of a report. In square brackets are 95 % bootstrap intervals.
func printBacktest(s *terminal.Streams, r *backtest.Report) {
	s.Printf("%s from %s, %d to %d, %d races, walk-forward\n\n", r.ModelName, r.Basis, r.From, r.To, r.Races)
	printMetrics(s, "total", r.ModelName, r.Model, r.Baselines)
	if r.Model.RPS > 0 {
		s.Printf("\nWhole orders: Brier score of the points %.3f, ranked probability score %.4f.\n", r.Model.PointsBrier, r.Model.RPS)
	}
	s.Printf("\nOver as many races even a perfectly calibrated model shows an ECE of %.1f %% [%.1f, %.1f].\n\n",
		r.Calibrated.Mean, r.Calibrated.Interval[0], r.Calibrated.Interval[1])
	printDifferences(s, r.ModelName, r.Differences)
	header := []any{"", "races", "winner %", "pole", "podium %", "pole", "log-loss", gridSlots, "brier", gridSlots}
	s.Printf("\n")
	s.PrintTable(header, view.Each(r.Subsets, func(part backtest.Subset) []any { return partRow(part.Name, part.Part) }))
	s.Printf("\n")
	s.PrintTable(header, view.Each(r.Seasons, func(part backtest.Season) []any { return partRow(part.Year, part.Part) }))
	s.Printf("\n")
	s.PrintTable([]any{"races", "said %", "won % [95 %]"}, view.Each(r.Reliability, binRow))
	s.Printf("\n")
	s.PrintTable([]any{"drivers", "podium said %", "came % [95 %]"}, view.Each(r.Podiums, binRow))
	s.Printf("\nThe podium chances of all drivers are off by %.2f points on average.\n", r.Model.ECEDriversPct)
}

// binRow is a bin of chances with the share that came true.
func binRow(bin score.Bin) []any {
	return []any{bin.Races, percent(100 * bin.Said), withInterval("%.1f", 100*bin.Won, score.Interval{100 * bin.Interval[0], 100 * bin.Interval[1]})}
}

// printDifferences prints the differences between a model and the baselines on the same races.
func printDifferences(s *terminal.Streams, model string, differences map[string]backtest.Difference) {
	header := []any{model + " minus", "winner %", "podium %", "log-loss", "brier", "podium brier"}
	s.PrintTable(header, view.Each(slices.Sorted(maps.Keys(differences)), func(name string) []any {
		d := differences[name]
		return []any{
			name, paired("%+.1f", d.WinnerHitPct), paired("%+.1f", d.PodiumPct), paired("%+.3f", d.LogLoss), paired("%+.3f", d.Brier), paired("%+.3f", d.PodiumBrier),
		}
	}))
}

// paired is a difference for a table, with a star if its interval excludes zero.
func paired(format string, p backtest.Paired) string {
	text := withInterval(format, p.Mean, p.Interval)
	if p.Interval[0] > 0 || p.Interval[1] < 0 {
		return text + " *"
	}
	return text
}

func withInterval(format string, value float64, interval score.Interval) string {
	return fmt.Sprintf(format+" ["+format+", "+format+"]", value, interval[0], interval[1])
}

func printLive(s *terminal.Streams, r *backtest.LiveReport) {
	s.Printf("%s, live, %d to %d, walk-forward\n", r.ModelName, r.From, r.To)
	for _, c := range r.Checkpoints {
		s.Printf("\n")
		printMetrics(s, fmt.Sprintf("at %d %%, %d races", c.Percent, c.Races), "live", c.Model, c.Baselines)
		s.Printf("\n")
		printDifferences(s, "live", c.Differences)
	}
}

// printMetrics prints the scores of a model, and below it those of the baselines, the best first.
func printMetrics(s *terminal.Streams, title, model string, of score.Metrics, baselines map[string]score.Metrics) {
	names := slices.SortedFunc(maps.Keys(baselines), func(a, b string) int {
		return cmp.Or(cmp.Compare(baselines[a].LogLoss, baselines[b].LogLoss), cmp.Compare(a, b))
	})
	rows := view.Each(names, func(name string) []any { return metricsRow(name, baselines[name]) })
	rows = slices.Insert(rows, 0, metricsRow(model, of))
	s.PrintTable([]any{title, "winner %", "podium %", "exact podium %", "log-loss", "brier", "podium brier", "ece %"}, rows)
}

func metricsRow(name string, m score.Metrics) []any {
	var i score.Intervals
	if m.Intervals != nil {
		i = *m.Intervals
	}
	return []any{
		name, withInterval("%.1f", m.WinnerHitPct, i.WinnerHitPct), withInterval("%.1f", m.PodiumPct, i.PodiumPct),
		withInterval("%.1f", m.ExactPodiumPct, i.ExactPodiumPct), withInterval("%.3f", m.LogLoss, i.LogLoss),
		withInterval("%.3f", m.Brier, i.Brier), withInterval("%.3f", m.PodiumBrier, i.PodiumBrier), withInterval("%.1f", m.ECEPct, i.ECEPct),
	}
}

func partRow(name any, p backtest.Part) []any {
	pole, grid := p.Baselines["pole"], p.Baselines[gridSlots]
	return []any{
		name, p.Races, percent(p.Model.WinnerHitPct), percent(pole.WinnerHitPct), percent(p.Model.PodiumPct), percent(pole.PodiumPct),
		decimals(p.Model.LogLoss), decimals(grid.LogLoss), decimals(p.Model.Brier), decimals(grid.Brier),
	}
}

func percent(v float64) string { return fmt.Sprintf("%.1f", v) }

func decimals(v float64) string { return fmt.Sprintf("%.3f", v) }
