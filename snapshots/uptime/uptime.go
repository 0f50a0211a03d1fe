// Package uptime keeps measurements of the service: for each address and minute, whether it answered, and how fast.
// Schedulers merge their measurements into one document of the store. Edges show its report.
//
// A day is open until the next day has ended. Then its minutes become a summary. All instants are real time, UTC.
package uptime

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"gridcast/schemas/wire"
	"gridcast/snapshots/blob"
)

const (
	// Key is the store key of the document.
	Key = "uptime.json"
	// Public is the name of the public address among the targets. The others have their own address as name.
	Public = "public"
	// Days is the number of days that the document keeps and the report shows.
	Days = 90
	// Slow is the time from which an answer is slow.
	Slow = time.Second

	minutesOfDay = 24 * 60
	dateForm     = time.DateOnly
)

// Fault is the reason why a minute is down.
type Fault string

// faults are all of them. The document stores positions of this list, so it only grows at its end.
var faults = []Fault{DNS, TLS, Refused, Timeout, Connection, Redirect, ClientError, ServerError, NotReady, NotGridcast}

// The reasons why a minute is down.
const (
	DNS         Fault = "dns"          // the name has no address, or no name server answers
	TLS         Fault = "tls"          // the handshake fails or is cut, or the certificate is not valid
	Refused     Fault = "refused"      // nothing listens
	Timeout     Fault = "timeout"      // no whole answer in time
	Connection  Fault = "connection"   // any other fault of the connection
	Redirect    Fault = "redirect"     // the answer names another address
	ClientError Fault = "client_error" // 4xx
	ServerError Fault = "server_error" // 5xx
	NotReady    Fault = "not_ready"    // the edge answers and has no version or no keys
	NotGridcast Fault = "not_gridcast" // another status, or another body than that of /status
)

// Minute is a measurement of a minute: 0 if it is unknown, else milliseconds plus a part for a late version, else a
// fault. Of two measurements the larger one is the worse one, and it counts.
type Minute int

const (
	late   Minute = 1e5
	failed Minute = 1e6
)

// Answered is a minute with an answer. behind says that a newer version was overdue, or not confirmed.
func Answered(took time.Duration, behind bool) Minute {
	m := Minute(min(max(took.Milliseconds(), 1), int64(late)-1))
	if behind {
		m += late
	}
	return m
}

// Failed is a minute without a good answer.
func Failed(f Fault) Minute { return failed + Minute(slices.Index(faults, f)) }

// fault is the reason of a minute that is down.
func (m Minute) fault() Fault {
	if i := int(m - failed); i < len(faults) {
		return faults[i]
	}
	return NotGridcast // stored by a later release
}

// Log is the content of the document. The zero value is empty. It is not safe for concurrent use.
type Log struct {
	Updated time.Time                  `json:"updated"` // of the last merge
	Targets map[string]map[string]*Day `json:"targets"` // by name and date
}

// Day is a day of a target.
type Day struct {
	Minutes []Minute `json:"minutes,omitempty"` // all of the day; nil once it is closed
	Served  []Served `json:"served,omitempty"`  // by ascending instant
	// Oldest is the age of the oldest version that was served, in seconds.
	Oldest int64   `json:"oldest_version_seconds,omitzero"`
	Closed Summary `json:"closed,omitzero"` // of a closed day
}

// Served is how long the target took to serve a result.
type Served struct {
	Verified time.Time `json:"verified"` // the instant of the event in the ledger
	Seconds  float64   `json:"seconds"`
}

// Summary counts the minutes of a day. Up, down and unknown are 1440 together once the day is closed.
type Summary struct {
	Up      int           `json:"up"`
	Down    int           `json:"down"`
	Unknown int           `json:"unknown"`
	Slow    int           `json:"slow"` // of up: the answer took a second or more
	Late    int           `json:"late"` // of up: a newer version was overdue, or not confirmed
	P50     int           `json:"p50_ms,omitzero"`
	P99     int           `json:"p99_ms,omitzero"`
	Faults  map[Fault]int `json:"faults,omitempty"` // down minutes
	Worst   *Outage       `json:"worst_outage,omitempty"`
}

// Outage is a run of minutes that are down, within a day.
type Outage struct {
	From    string `json:"from"` // 15:04
	Minutes int    `json:"minutes"`
	Fault   Fault  `json:"fault"` // of its first minute
}

// Document is the document of a store. Its content is not damaged if Load succeeds.
func Document(store blob.Store) blob.Document[Log] {
	return blob.Document[Log]{Store: store, Key: Key, Copied: true, Decode: func(data []byte) (l Log, err error) {
		if err := blob.DecodeJSON(data, &l); err != nil {
			return l, err
		}
		for name, days := range l.Targets {
			for date, d := range days {
				if _, err := time.Parse(dateForm, date); err != nil || d == nil || len(d.Minutes) != minutesOfDay && len(d.Minutes) != 0 {
					return l, fmt.Errorf("%s %q: want a date with 1440 minutes or none", name, date)
				}
			}
		}
		return l, nil
	}}
}

// day returns the day of an instant, and makes it.
func (l *Log) day(target, date string) *Day {
	if l.Targets == nil {
		l.Targets = map[string]map[string]*Day{}
	}
	if l.Targets[target] == nil {
		l.Targets[target] = map[string]*Day{}
	}
	if l.Targets[target][date] == nil {
		l.Targets[target][date] = &Day{Minutes: make([]Minute, minutesOfDay)}
	}
	return l.Targets[target][date]
}

// Add enters the measurement of a minute, and the age of the served version.
func (l *Log) Add(target string, at time.Time, m Minute, age time.Duration) {
	at = at.UTC()
	l.day(target, at.Format(dateForm)).add(at.Hour()*60+at.Minute(), m, int64(age.Seconds()))
}

func (d *Day) add(minute int, m Minute, oldest int64) {
	if d.Minutes != nil { // an open day
		d.Minutes[minute], d.Oldest = max(d.Minutes[minute], m), max(d.Oldest, oldest)
	}
}

// AddServed enters how long the target took to serve a result. Of two measurements of a result the longer one counts.
func (l *Log) AddServed(target string, s Served) {
	d := l.day(target, s.Verified.UTC().Format(dateForm))
	i, known := slices.BinarySearchFunc(d.Served, s, func(a, b Served) int { return a.Verified.Compare(b.Verified) })
	if !known {
		d.Served = slices.Insert(d.Served, i, s)
	}
	d.Served[i].Seconds = max(d.Served[i].Seconds, s.Seconds)
}

// Merge adds the measurements of another log at an instant, closes the days before the last one, and removes the days
// beyond Days. To merge a log twice changes nothing, and so does the order of two logs.
func (l *Log) Merge(from *Log, now time.Time) {
	l.Updated = now.UTC().Truncate(time.Second)
	today, open := l.Updated.Format(dateForm), l.Updated.AddDate(0, 0, -1).Format(dateForm)
	for target, days := range from.Targets {
		for date, d := range days {
			if date < open || date > today {
				continue // closed, or written by a clock that was ahead
			}
			own := l.day(target, date)
			for minute, m := range d.Minutes {
				own.add(minute, m, d.Oldest)
			}
			for _, s := range d.Served {
				l.AddServed(target, s)
			}
		}
	}
	for target, days := range l.Targets {
		dates := slices.Sorted(maps.Keys(days))
		for i, date := range dates {
			switch d := days[date]; {
			case date > today, i < len(dates)-Days:
				delete(days, date)
			case date < open && d.Minutes != nil:
				d.Closed, d.Minutes = summary(d.Minutes), nil
			}
		}
		if len(days) == 0 {
			delete(l.Targets, target)
		}
	}
}

// summary counts minutes.
func summary(minutes []Minute) (s Summary) {
	var took []int
	run := Outage{}
	for i, m := range minutes {
		switch {
		case m == 0:
			s.Unknown++
		case m < failed:
			s.Up++
			if m >= late {
				s.Late++
			}
			took = append(took, int(m%late))
			if time.Duration(m%late)*time.Millisecond >= Slow {
				s.Slow++
			}
		default:
			if s.Faults == nil {
				s.Faults = map[Fault]int{}
			}
			s.Down++
			s.Faults[m.fault()]++
			if run.Minutes == 0 {
				run = Outage{From: fmt.Sprintf("%02d:%02d", i/60, i%60), Fault: m.fault()}
			}
			if run.Minutes++; s.Worst == nil || run.Minutes > s.Worst.Minutes {
				worst := run
				s.Worst = &worst
			}
			continue
		}
		run = Outage{}
	}
	if len(took) > 0 {
		slices.Sort(took)
		rank := func(share float64) int { return took[int(math.Ceil(share*float64(len(took))))-1] }
		s.P50, s.P99 = rank(.5), rank(.99)
	}
	return s
}

// Report is the public form of a log.
type Report struct {
	Updated wire.Instant   `json:"updated,omitzero"` // absent: nothing is measured
	Targets []TargetReport `json:"targets"`          // the public address first
}

// TargetReport is the report about a target.
type TargetReport struct {
	Name string `json:"name"` // "public", or "edge 1": addresses of edges are not public
	// Availability is the share of the known minutes that are up, rounded down; nil: no minute is known.
	Availability *float64    `json:"availability_pct,omitempty"`
	Measured     float64     `json:"measured_pct"` // the share of all minutes that are known, rounded down
	Days         []DayReport `json:"days"`         // 90, the earliest first
}

// DayReport is the report about a day. The last day ends with the last merge.
type DayReport struct {
	Date string `json:"date"`
	Summary

	Oldest int64 `json:"oldest_version_seconds,omitzero"`
	// Served is the longest time from the verification of a result to the answer with it, in seconds.
	Served float64 `json:"served_seconds,omitzero"`
}

// Report returns the report about all targets, each with a row for every day.
func (l *Log) Report() Report {
	r := Report{Updated: wire.Instant(l.Updated), Targets: []TargetReport{}}
	edges := 0
	names := slices.Sorted(maps.Keys(l.Targets))
	if i := slices.Index(names, Public); i > 0 {
		names = slices.Insert(slices.Delete(names, i, i+1), 0, Public)
	}
	for _, name := range names {
		t := TargetReport{Name: Public}
		if name != Public {
			edges++
			t.Name = fmt.Sprintf("edge %d", edges)
		}
		var up, known, all int
		for before := Days - 1; before >= 0; before-- {
			row := l.row(l.Targets[name], l.Updated.UTC().AddDate(0, 0, -before))
			t.Days = append(t.Days, row)
			up, known, all = up+row.Up, known+row.Up+row.Down, all+row.Up+row.Down+row.Unknown
		}
		if known > 0 {
			share := percent(up, known)
			t.Availability = &share
		}
		if all > 0 {
			t.Measured = percent(known, all)
		}
		r.Targets = append(r.Targets, t)
	}
	return r
}

// percent is part of all in percent, rounded down to three decimals, so that one minute of 90 days is seen.
func percent(part, all int) float64 { return float64(part*100_000/all) / 1000 }

// row is the report about the day of an instant.
func (l *Log) row(days map[string]*Day, at time.Time) DayReport {
	row := DayReport{Date: at.Format(dateForm)}
	d, known := days[row.Date]
	if !known {
		d = &Day{Minutes: make([]Minute, minutesOfDay)}
	}
	row.Summary, row.Oldest = d.Closed, d.Oldest
	if d.Minutes != nil {
		end := minutesOfDay
		if at.Equal(l.Updated) {
			end = at.Hour()*60 + at.Minute()
		}
		row.Summary = summary(d.Minutes[:end])
	}
	for _, s := range d.Served {
		row.Served = max(row.Served, s.Seconds)
	}
	return row
}
