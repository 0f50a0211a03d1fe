package edge

import (
	"context"
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

// followUptime reads the measurements of the store until ctx ends. After a fault the last good ones stay. It logs only new
// faults.
func (e *Edge) followUptime(ctx context.Context) {
	fault := ""
	for wait := true; wait; wait = retry.Sleep(ctx, uptimeEvery) {
		log, tag, err := uptime.Document(e.deps.Store).Load(ctx)
		if err != nil {
			if err.Error() != fault && ctx.Err() == nil {
				e.log.Warn("the measurements of availability cannot be read; /status shows the earlier ones", "err", err)
			}
			fault = err.Error()
			continue
		}
		fault = ""
		if tag != "" && e.uptime.Load().Updated != wire.Instant(log.Updated) {
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
