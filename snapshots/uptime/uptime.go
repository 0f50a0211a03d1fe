// Package uptime keeps measurements of the service: for each address and minute, whether it answered, and how fast.
// Schedulers merge their measurements into one document of the store. Edges show its report.
//
// The minutes of a day stay until the next day has ended; after that only their counts do. All instants are real time, UTC.
package uptime

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"gridcast/schemas/wire"
	"gridcast/snapshots/blob"
)

const (
	// Key is the store key of the document.
	Key = "uptime.json"
	// Public is the name of the public address among the targets. The name of an edge is its address.
	Public = "public"
	// Days is the number of days that the document keeps and the report shows.
	Days = 90
	// slow is the time from which an answer is slow.
	slow = time.Second

	minutesOfDay = 24 * 60
)

// Fault is the reason why a minute is down.
type Fault string

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

// faults has the positions that minutes store, so it only grows at its end.
var faults = []Fault{DNS, TLS, Refused, Timeout, Connection, Redirect, ClientError, ServerError, NotReady, NotGridcast}

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

// Log is the content of the document. The zero value is empty. It is not safe for concurrent use.
type Log struct {
	Updated time.Time                  `json:"updated"` // of the last merge
	Targets map[string]map[string]*Day `json:"targets"` // by name and date
}

// Day is a day of a target. Up, down and unknown are 1440 minutes together, and fewer on the day of the last merge.
type Day struct {
	Date    string        `json:"date"`
	Minutes []Minute      `json:"minutes,omitempty"` // all of the day; nil in a report, and once the next day has ended
	Up      int           `json:"up"`
	Down    int           `json:"down"`
	Unknown int           `json:"unknown"`
	Slow    int           `json:"slow"` // of up: the answer took a second or more
	Late    int           `json:"late"` // of up: a newer version was overdue, or not confirmed
	P50     int           `json:"p50_ms,omitzero"`
	P99     int           `json:"p99_ms,omitzero"`
	Faults  map[Fault]int `json:"faults,omitempty"` // down minutes
	Worst   *Outage       `json:"worst_outage,omitempty"`
	Oldest  int64         `json:"oldest_version_seconds,omitzero"` // age of the oldest version served
	// Served is the longest time from the verification of a result to the answer with it, in seconds.
	Served float64 `json:"served_seconds,omitzero"`
}

// Outage is a run of minutes that are down, within a day.
type Outage struct {
	From    string `json:"from"` // 15:04
	Minutes int    `json:"minutes"`
	Fault   Fault  `json:"fault"` // of its first minute
}

// Document is the document of a store. Load refuses days that no scheduler wrote.
func Document(store blob.Store) blob.Document[Log] {
	return blob.Document[Log]{Store: store, Key: Key, Copied: true, Decode: func(data []byte) (l Log, err error) {
		err = blob.DecodeJSON(data, &l)
		for _, days := range l.Targets {
			for date, d := range days {
				if d == nil || d.Date != date || len(d.Minutes) != minutesOfDay && d.Minutes != nil {
					return l, fmt.Errorf("%q is no day with 1440 minutes", date)
				}
			}
		}
		return l, err
	}}
}

// Heal replaces a damaged or lost document by its copy; see [blob.Document.Heal].
func Heal(ctx context.Context, store blob.Store) (bool, error) { return Document(store).Heal(ctx) }

// Day returns the day of an instant, and makes it if there is none.
func (l *Log) Day(target string, at time.Time) *Day {
	date := at.UTC().Format(time.DateOnly)
	if l.Targets == nil {
		l.Targets = map[string]map[string]*Day{}
	}
	if l.Targets[target] == nil {
		l.Targets[target] = map[string]*Day{}
	}
	if l.Targets[target][date] == nil {
		l.Targets[target][date] = &Day{Date: date, Minutes: make([]Minute, minutesOfDay)}
	}
	return l.Targets[target][date]
}

// Add enters the measurement of a minute, and the age of the served version in seconds.
func (l *Log) Add(target string, at time.Time, m Minute, age int64) {
	if d, i := l.Day(target, at), minuteOf(at); d.Minutes != nil { // else a clock was set back by days
		d.Minutes[i], d.Oldest = max(d.Minutes[i], m), max(d.Oldest, age)
	}
}

func minuteOf(at time.Time) int { return at.UTC().Hour()*60 + at.UTC().Minute() }

// Merge adds the measurements that another log has of this day and the day before, counts, and removes the earliest days
// beyond Days. To merge a log twice changes nothing, and so does the order of two logs. It ignores days to come, which a
// clock that was ahead wrote.
func (l *Log) Merge(from *Log, now time.Time) {
	l.Updated = now.UTC().Truncate(time.Second)
	open := []time.Time{l.Updated.AddDate(0, 0, -1), l.Updated}
	for target, days := range from.Targets {
		for _, at := range open {
			d := days[at.Format(time.DateOnly)]
			if d == nil {
				continue
			}
			own := l.Day(target, at)
			for i := range min(len(d.Minutes), len(own.Minutes)) { // none, if a clock was ahead
				own.Minutes[i] = max(own.Minutes[i], d.Minutes[i])
			}
			own.Oldest, own.Served = max(own.Oldest, d.Oldest), max(own.Served, d.Served)
		}
	}
	today, before := open[1].Format(time.DateOnly), open[0].Format(time.DateOnly)
	for _, days := range l.Targets {
		maps.DeleteFunc(days, func(date string, _ *Day) bool { return date > today })
		for len(days) > Days {
			delete(days, slices.Min(slices.Collect(maps.Keys(days))))
		}
		for date, d := range days {
			if d.Minutes == nil {
				continue
			}
			if d.count(d.Minutes); date == today {
				d.count(d.Minutes[:minuteOf(l.Updated)])
			} else if date < before {
				d.Minutes = nil
			}
		}
	}
	maps.DeleteFunc(l.Targets, func(_ string, days map[string]*Day) bool { return len(days) == 0 })
}

// count sets the figures that follow from minutes.
func (d *Day) count(minutes []Minute) {
	*d = Day{Date: d.Date, Minutes: d.Minutes, Oldest: d.Oldest, Served: d.Served, Faults: map[Fault]int{}, Worst: &Outage{}}
	var took []int
	var run Outage
	for i, m := range minutes {
		if m < failed {
			run = Outage{}
		}
		switch {
		case m == 0:
			d.Unknown++
		case m >= failed:
			fault := faults[min(int(m-failed), len(faults)-1)] // a later release may store others
			d.Down++
			d.Faults[fault]++
			if run.Minutes++; run.Minutes == 1 {
				run.From, run.Fault = fmt.Sprintf("%02d:%02d", i/60, i%60), fault
			}
			if run.Minutes > d.Worst.Minutes {
				*d.Worst = run
			}
		default:
			d.Up++
			d.Late += int(m / late)
			took = append(took, int(m%late))
			if took[len(took)-1] >= int(slow.Milliseconds()) {
				d.Slow++
			}
		}
	}
	if d.Down == 0 {
		d.Worst = nil
	}
	if slices.Sort(took); d.Up > 0 {
		d.P50, d.P99 = took[(d.Up-1)*50/100], took[(d.Up-1)*99/100]
	}
}

// Report is the public form of a log.
type Report struct {
	Updated wire.Instant   `json:"updated,omitzero"` // absent: nothing is measured
	Targets []TargetReport `json:"targets"`          // the public address first
}

// TargetReport is the report about a target. Both shares are in percent, rounded down to three decimals, so that a minute
// of 90 days is seen.
type TargetReport struct {
	Name         string      `json:"name"`                       // "public", or "edge 1": addresses of edges are not public
	Availability json.Number `json:"availability_pct,omitempty"` // share of the known minutes that are up; empty: none is known
	Measured     json.Number `json:"measured_pct,omitempty"`     // share of all minutes that are known
	Days         []Day       `json:"days"`                       // 90, the earliest first
}

// Report returns the report about the targets that were measured in its days, each with a row for every day.
func (l *Log) Report() Report {
	r := Report{Updated: wire.Instant(l.Updated), Targets: []TargetReport{}}
	first := l.Updated.AddDate(0, 0, 1-Days).Format(time.DateOnly)
	targets := maps.Clone(l.Targets)
	maps.DeleteFunc(targets, func(_ string, days map[string]*Day) bool { // an edge that was removed
		return len(days) == 0 || slices.Max(slices.Collect(maps.Keys(days))) < first
	})
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(targets)), func(name string) bool { return name == Public })
	for i, name := range slices.Insert(names, 0, Public) {
		t := TargetReport{Name: Public}
		if i > 0 {
			t.Name = fmt.Sprintf("edge %d", i)
		}
		var up, known, all int
		for ago := range Days {
			row := Day{Date: l.Updated.AddDate(0, 0, ago+1-Days).Format(time.DateOnly), Unknown: minutesOfDay}
			if d := l.Targets[name][row.Date]; d != nil {
				row = *d
				row.Minutes = nil
			}
			t.Days = append(t.Days, row)
			up, known, all = up+row.Up, known+row.Up+row.Down, all+row.Up+row.Down+row.Unknown
		}
		if t.Availability, t.Measured = percent(up, known), percent(known, all); targets[name] != nil {
			r.Targets = append(r.Targets, t)
		}
	}
	return r
}

func percent(part, all int) json.Number {
	if all == 0 {
		return ""
	}
	return json.Number(fmt.Sprintf("%.3f", float64(part*100_000/all)/1000))
}
