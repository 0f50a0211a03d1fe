package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"maps"
	"slices"
	"time"

	"gridcast/deploy/flags"
	"gridcast/deploy/terminal"
	"gridcast/deploy/usage"
	"gridcast/deploy/view"
	"gridcast/edge/keys"
	"gridcast/schemas/frame"
	"gridcast/snapshots/blob"
)

type keysUsageCmd struct {
	flags.Storage
	ID    string `arg:"" optional:"" help:"Show this key by day; default: every key of the month."`
	Month string `help:"The month, UTC; default: the current one." placeholder:"YYYY-MM" env:"-"`
	CSV   bool   `name:"csv" help:"Print CSV." env:"-"`
}

// usageRow is the usage of a key in a month or on a day.
type usageRow struct {
	Day  usage.Day `json:"day,omitzero"` // absent: the month
	ID   string    `json:"id"`
	Name string    `json:"name,omitzero"` // of the client; absent: the key is removed
	Tier string    `json:"tier,omitzero"`
	usage.Sum
}

// usageAnswer is the answer of keys usage --json.
type usageAnswer struct {
	Month string      `json:"month"`
	Until time.Time   `json:"until,omitzero"` // requests up to here are counted, real time
	Usage []usageRow  `json:"usage"`
	Gaps  []usage.Gap `json:"gaps"`
}

// stored limits the time since the last write of a running scheduler.
const stored = 2 * time.Hour

func (c *keysUsageCmd) Run(ctx context.Context, s *terminal.Streams, store blob.Store) error {
	now := time.Now().UTC()
	month, err := time.Parse("2006-01", cmp.Or(c.Month, now.Format("2006-01")))
	if err != nil {
		return terminal.Usagef("--month %q: must be a month such as 2026-11", c.Month)
	}
	list, _, err := keys.Load(ctx, store)
	if err != nil {
		return err
	}
	from, to := usage.DayOf(month), usage.DayOf(month.AddDate(0, 1, -1))
	report, err := usage.Load(ctx, store, from)
	if err != nil {
		return err
	}
	answer := usageAnswer{Month: month.Format("2006-01"), Until: report.Until, Usage: c.rows(list, &report, from, to), Gaps: []usage.Gap{}}
	for _, g := range report.Gaps {
		if usage.DayOf(g.From) <= to {
			answer.Gaps = append(answer.Gaps, g)
		}
	}
	if _, err := list.Find(c.ID); c.ID != "" && len(answer.Usage) == 0 && err != nil {
		return fmt.Errorf("%w; nor has it any usage in %s", err, answer.Month)
	}
	header := []any{"time", "id", "name", "tier", "requests", "401", "403", "429", "days with 429", "bytes"}
	table := make([][]any, len(answer.Usage))
	for i, r := range answer.Usage {
		table[i] = []any{cmp.Or(string(r.Day), answer.Month), r.ID, r.Name, r.Tier, r.Requests, r.Unauthorized, r.Forbidden, r.Limited, r.LimitedDays, r.Bytes}
	}
	if c.CSV {
		return printCSV(s, append([][]any{header}, table...))
	}
	s.PrintList(answer, fmt.Sprintf("no request of a key is counted in %s; the scheduler counts those of the edges in its --edges, and usage is kept for %d months", answer.Month, usage.Months), header, table)
	if s.JSON || report.Until.IsZero() {
		return nil
	}
	s.Printf("counted until %s\n", terminal.Time(report.Until))
	if now.Sub(report.Until) > stored {
		_, _ = fmt.Fprintf(s.Err, "  ! Nothing was counted for %s: does a scheduler with --edges run?\n", frame.LongTime(now.Sub(report.Until)))
	}
	for _, g := range answer.Gaps {
		_, _ = fmt.Fprintf(s.Err, "  ! %s\n", g)
	}
	return nil
}

// rows lists the keys of the month, the busiest first; or the days of one key.
func (c *keysUsageCmd) rows(list keys.List, report *usage.Report, from, to usage.Day) []usageRow {
	rows := []usageRow{}
	add := func(day usage.Day, sums map[string]usage.Sum) {
		for id, sum := range sums {
			row := usageRow{Day: day, ID: id, Sum: sum}
			if k, err := list.Find(id); err == nil {
				row.Name, row.Tier = k.Name, k.Tier
			}
			if c.ID == "" || c.ID == id {
				rows = append(rows, row)
			}
		}
	}
	if c.ID == "" {
		add("", report.Sums(from, to))
	} else {
		for _, day := range slices.Sorted(maps.Keys(report.Days)) {
			add(day, report.Sums(max(day, from), min(day, to)))
		}
	}
	slices.SortFunc(rows, func(a, b usageRow) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.ID, b.ID))
	})
	return rows
}

func printCSV(s *terminal.Streams, rows [][]any) error {
	out := csv.NewWriter(s)
	for _, row := range rows {
		if err := out.Write(view.Each(row, func(cell any) string { return fmt.Sprint(cell) })); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
