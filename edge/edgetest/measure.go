package edgetest

import (
	"testing"
	"time"

	"gridcast/snapshots/blob"
	"gridcast/snapshots/uptime"
)

// Measure stores measurements of 90 days: of most days all minutes, of some none, and outages.
func Measure(t testing.TB, store blob.Store) {
	t.Helper()
	var l uptime.Log
	end := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for day := range 90 {
		midnight := end.Truncate(24*time.Hour).AddDate(0, 0, day-89)
		for m := range 1440 {
			at, minute := midnight.Add(time.Duration(m)*time.Minute), uptime.Answered(time.Duration(8+m%40)*time.Millisecond, false)
			if at.After(end) || day >= 20 && day < 24 || day == 50 && m > 700 {
				continue // nobody measured
			}
			if day == 70 && m < 30 || day == 71 && m == 9 {
				minute = uptime.Failed(uptime.Timeout)
			}
			l.Add(uptime.Public, at, minute, 3600)
			if day > 60 {
				l.Add("edge.internal:9100", at, minute, 3600)
			}
		}
		l.Merge(&uptime.Log{}, midnight.Add(12*time.Hour))
	}
	l.Day(uptime.Public, end).Served = 1.75
	if _, err := uptime.Document(store).Swap(t.Context(), "", l); err != nil {
		t.Fatal(err)
	}
}
