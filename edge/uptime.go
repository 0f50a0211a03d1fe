package edge

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gridcast/edge/resident"
	"gridcast/schemas/wire"
	"gridcast/snapshots/retry"
	"gridcast/snapshots/uptime"
)

// uptimePath is the report about the last 90 days, for programs.
const uptimePath = "/uptime.json"

// uptimeEvery is the time between two reads of the measurements, which schedulers write each hour.
const uptimeEvery = time.Minute

// measured is a report, ready to be served.
type measured struct {
	uptime.Report

	page *resident.Page
}

// followUptime reads the measurements of the store until ctx ends. After a fault the last good ones stay.
func (e *Edge) followUptime(ctx context.Context) {
	for wait := true; wait; wait = retry.Sleep(ctx, uptimeEvery) {
		log, tag, err := uptime.Document(e.deps.Store).Load(ctx)
		if err != nil || tag == "" {
			if err != nil && ctx.Err() == nil {
				e.log.Warn("the measurements of availability cannot be read; /status shows the earlier ones", "err", err)
			}
			continue
		}
		if e.uptime.Load().Updated != wire.Instant(log.Updated) {
			e.uptime.Store(newMeasured(&log))
		}
	}
}

// newMeasured makes the report of a log, which is made when the log was written, or now if it never was.
func newMeasured(log *uptime.Log) *measured {
	made, report := log.Updated, log.Report()
	if made.IsZero() {
		made = time.Now()
	}
	return &measured{report, document(resident.JSON, marshal(wire.Wrap(report, made)), "public, max-age=60")}
}

// bar is a day in the drawing of a target, 40 units high. The height is the measured share of the day. The lower part of
// it is the share that was down, never too small to be seen.
type bar struct {
	X                int
	Y, Height        float64
	DownY, Down      float64
	Unmeasured, Text string
}

// bars draws the days of a target.
func bars(days []uptime.DayReport) []bar {
	const high = 40
	all := make([]bar, 0, len(days))
	for i, d := range days {
		known := d.Up + d.Down
		b := bar{X: 8*i + 1, Height: max(4, high*float64(known)/float64(max(known+d.Unknown, 1))), Text: dayText(d)}
		if known == 0 {
			b.Unmeasured = "unmeasured"
		}
		if d.Down > 0 {
			b.Down = max(8, b.Height*float64(d.Down)/float64(known))
		}
		b.Y, b.DownY = high-b.Height, high-b.Down
		all = append(all, b)
	}
	return all
}

// share writes a share in percent.
func share(of *float64) string { return fmt.Sprintf("%.3f", *of) }

// dayText describes a day for people.
func dayText(d uptime.DayReport) string {
	text := d.Date + ": no outage"
	switch {
	case d.Up+d.Down == 0:
		return d.Date + ": not measured"
	case d.Down > 0 && d.Worst != nil:
		text = fmt.Sprintf("%s: %d min down, the longest outage from %s for %d min (%s)", d.Date, d.Down, d.Worst.From, d.Worst.Minutes, spaced(d.Worst.Fault))
	}
	if d.Unknown > 0 {
		text += fmt.Sprintf(", %d min not measured", d.Unknown)
	}
	return text
}

// notable describes the days with an outage, the latest first, at most ten.
func notable(days []uptime.DayReport) (found []string) {
	for _, d := range slices.Backward(days) {
		if d.Down > 0 && len(found) < 10 {
			found = append(found, dayText(d))
		}
	}
	return found
}
