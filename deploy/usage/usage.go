// Package usage keeps the requests of each API key by day, from the counters of the edges.
//
// A [Collector] in each scheduler asks every edge once a minute, and stores the growth of its counters. A stored
// object holds the sums together with the counters at which they were taken, so one conditional write
// changes both: a crash loses no request of an edge that goes on, and several schedulers count each request once.
package usage

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"gridcast/edge"
	"gridcast/edge/keys"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/chain"
)

// Months is the time for which usage is kept.
const Months = 13

// Day is a day of UTC, such as 2026-11-27.
type Day string

// DayOf returns the day of an instant.
func DayOf(t time.Time) Day { return Day(t.UTC().Format(time.DateOnly)) }

// Days returns the last n days up to that of an instant. A day of UTC has 24 hours, and one of a time zone may not.
func Days(until time.Time, n int) (days []Day) {
	for ago := n - 1; ago >= 0; ago-- {
		days = append(days, DayOf(until.Add(-24*time.Hour*time.Duration(ago))))
	}
	return days
}

// Why is the reason of a Gap.
type Why string

// The reasons.
const (
	Lost   Why = "lost"   // the edge ended before its counters were read: its requests are not counted
	Late   Why = "late"   // the edge was read too late to tell the days apart: its requests count on the day of To
	Wrong  Why = "wrong"  // a counter fell, or cannot be right: the requests of Key are not counted
	Clock  Why = "clock"  // the clocks of scheduler and edge disagree about this time: its requests may count on a wrong day
	Unread Why = "unread" // the edge has not answered since From: its requests are not counted yet
)

// text explains each reason to operators.
var text = map[Why]string{
	Lost:   "not counted, because the edge ended before its counters were read",
	Late:   "counted on the last of these days, because the edge was read too late",
	Wrong:  "not counted, because a counter of the key cannot be right",
	Clock:  "perhaps counted on a wrong day, because a clock was set",
	Unread: "not counted yet, because no scheduler reads the edge",
}

// Gap is a time of an edge in which requests could not be counted as they came. Instants are real time.
type Gap struct {
	Edge string    `json:"edge"`
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	Why  Why       `json:"why"`
	Key  string    `json:"key,omitzero"` // the gap is one of this key alone
}

// String describes the gap to operators.
func (g Gap) String() string {
	of := ""
	if g.Key != "" {
		of = ", key " + g.Key
	}
	return fmt.Sprintf("edge %s%s, %s to %s UTC: %s", g.Edge, of, g.From.UTC().Format(time.DateTime), g.To.UTC().Format(time.DateTime), text[g.Why])
}

// sheet is the content of a stored object. A new one follows each month. The last one alone is open, and its writers carry
// the counters over from the one before, which nobody changes any more.
type sheet struct {
	Format    int                            `json:"format"`
	Written   time.Time                      `json:"written"` // the latest reading in it
	Closed    bool                           `json:"closed,omitzero"`
	Days      map[Day]map[string]keys.Counts `json:"days"` // by the id of the key
	Gaps      []Gap                          `json:"gaps"`
	Edges     map[string]edgeState           `json:"edges"`     // by name
	Instances map[string]counters            `json:"instances"` // by edge.UsageDocument.Instance
	// Forgotten is the latest reading of an instance that is no longer in Instances. Requests of an unknown
	// instance that began before may have been counted.
	Forgotten time.Time `json:"forgotten,omitzero"`
}

// edgeState is the latest contact of schedulers with an edge.
type edgeState struct {
	Asked time.Time `json:"asked"`          // the latest try
	Read  time.Time `json:"read"`           // the latest answer; the first try if there was none
	Ended bool      `json:"ended,omitzero"` // the answer was its last: no request came after it
}

// counters are those of an instance that have been counted.
type counters struct {
	Read     time.Time              `json:"read"`
	Answer   int64                  `json:"answer"`
	UptimeMS int64                  `json:"uptime_ms"`
	Keys     map[string]keys.Counts `json:"keys"`
}

// reading is the answer of an edge, or its silence.
type reading struct {
	edge  string
	at    time.Time           // just before the edge was asked
	took  time.Duration       // the time until its answer
	usage *edge.UsageDocument // nil: it did not answer
	ended bool                // no request comes after it
}

// day is the day on which the requests before the reading count: at midnight the day before.
func (r reading) day() Day { return DayOf(r.at.Add(-time.Minute / 2)) }

// Format is the format of the stored objects.
const Format = 1

const (
	// unreadAfter is the time without an answer after which an edge is named.
	unreadAfter = 3 * time.Minute
	// retired is the time after which an edge that no scheduler asks is taken for one that was removed.
	retired = 24 * time.Hour
	// remembered is the time for which the counters of an instance are kept.
	remembered = 7 * 24 * time.Hour
	// clockSlack is the difference of two clocks that is no fault.
	clockSlack = 2 * time.Minute
	// most days of keys, and most gaps, before another object begins: some MB.
	mostKeyDays, mostGaps = 50_000, 5_000
	maxSize               = 256 << 20
)

func objects(store blob.Store) chain.Chain { return chain.Chain{Store: store, Prefix: "usage/"} }

// document returns the object with a number.
func document(store blob.Store, number int64) blob.Document[sheet] {
	return blob.Document[sheet]{
		Store: store, Key: objects(store).Key(number), Limit: maxSize, Copied: true,
		Encode: func(l sheet) ([]byte, error) { return json.Marshal(l) },
		Decode: func(data []byte) (sheet, error) {
			l := sheet{Format: Format, Days: map[Day]map[string]keys.Counts{}, Gaps: []Gap{}, Edges: map[string]edgeState{}, Instances: map[string]counters{}}
			err := blob.DecodeJSON(data, &l)
			if err == nil && l.Format != Format {
				err = fmt.Errorf("format %d, this program reads %d", l.Format, Format)
			}
			return l, err
		},
	}
}

// full reports whether another object should follow on a day.
func (l *sheet) full(today Day) bool {
	n, first := 0, today
	for day, counts := range l.Days {
		n, first = n+len(counts), min(first, day)
	}
	return first[:7] < today[:7] || n > mostKeyDays || len(l.Gaps) > mostGaps
}

// follow makes an empty object the one after another.
func (l *sheet) follow(closed *sheet) {
	l.Edges, l.Instances, l.Forgotten, l.Written = maps.Clone(closed.Edges), maps.Clone(closed.Instances), closed.Forgotten, closed.Written
	l.Gaps = slices.DeleteFunc(slices.Clone(closed.Gaps), func(g Gap) bool { return !closed.carries(g) })
}

// carries reports whether the next object has a gap of this one too. There another scheduler may still shorten it.
func (l *sheet) carries(g Gap) bool { return l.Written.Sub(g.To) < retired }

// take counts the growth from the reading before.
func (l *sheet) take(r reading) {
	of, known := l.Edges[r.edge]
	if !known {
		of.Read = r.at
	}
	of.Asked = latest(of.Asked, r.at)
	defer func() { l.Edges[r.edge], l.Written = of, latest(l.Written, r.at) }()
	if r.usage == nil {
		return
	}
	gap := func(why Why, from, to time.Time, key string) {
		l.Gaps = append(l.Gaps, Gap{Edge: r.edge, From: from.UTC(), To: to.UTC(), Why: why, Key: key})
	}
	uptime := time.Duration(r.usage.UptimeMS) * time.Millisecond
	before, counted := l.Instances[r.usage.Instance]
	from, began := before.Read, r.at.Add(r.took-uptime) // at the earliest: a slow answer must not hide the end of the instance before
	switch {
	case counted && r.usage.Answer <= before.Answer: // another scheduler has counted more
		return
	case counted:
		if passed := uptime - time.Duration(before.UptimeMS)*time.Millisecond; (r.at.Sub(from) - passed).Abs() > clockSlack {
			gap(Clock, from, r.at, "")
		}
	default:
		from = began
		if known && !of.Ended && of.Read.Before(began) {
			gap(Lost, of.Read, began, "")
		}
	}
	l.found(r.edge, from, r.at)
	unknown := !counted && began.Before(l.Forgotten)
	day := r.day()
	switch {
	case unknown:
		gap(Lost, began, r.at, "")
	case DayOf(from.Add(time.Minute/2)) < day:
		gap(Late, from, r.at, "")
	}
	now := counters{Read: r.at.UTC(), Answer: r.usage.Answer, UptimeMS: r.usage.UptimeMS, Keys: make(map[string]keys.Counts, len(r.usage.Keys))}
	for _, k := range r.usage.Keys {
		grown, right := k.Since(before.Keys[k.ID])
		now.Keys[k.ID] = k.Counts
		switch {
		case !right:
			gap(Wrong, from, r.at, k.ID)
		case !unknown && grown != keys.Counts{}:
			if l.Days[day] == nil {
				l.Days[day] = map[string]keys.Counts{}
			}
			l.Days[day][k.ID] = l.Days[day][k.ID].Plus(grown)
		}
	}
	l.Instances[r.usage.Instance] = now
	of.Read, of.Ended = latest(of.Read, r.at), r.ended
}

// found takes a time out of the gaps of an edge, because another scheduler has read an instance that the one before
// it missed.
func (l *sheet) found(edge string, from, to time.Time) {
	for i := range l.Gaps {
		g := &l.Gaps[i]
		if g.Why != Lost || g.Edge != edge || !g.From.Before(to) || !from.Before(g.To) {
			continue
		}
		rest := *g
		if rest.From = to.UTC(); rest.From.Before(rest.To) {
			l.Gaps = append(l.Gaps, rest)
		}
		l.Gaps[i].To = latest(g.From, from)
	}
	l.Gaps = slices.DeleteFunc(l.Gaps, func(g Gap) bool { return g.Why == Lost && !g.From.Before(g.To) })
}

// forget removes edges and instances that have not been read for long.
func (l *sheet) forget() {
	for name, e := range l.Edges {
		if l.Written.Sub(e.Asked) > retired {
			if !e.Ended {
				l.Gaps = append(l.Gaps, Gap{Edge: name, From: e.Read, To: l.Written, Why: Lost})
			}
			delete(l.Edges, name)
		}
	}
	for id, c := range l.Instances {
		if l.Written.Sub(c.Read) > remembered {
			l.Forgotten = latest(l.Forgotten, c.Read)
			delete(l.Instances, id)
		}
	}
	slices.SortFunc(l.Gaps, func(a, b Gap) int {
		return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Edge, b.Edge), cmp.Compare(a.Key, b.Key))
	})
}

// open lists the gaps that last at an instant.
func (l *sheet) open(at time.Time) (gaps []Gap) {
	for _, name := range slices.Sorted(maps.Keys(l.Edges)) {
		if e := l.Edges[name]; !e.Ended && at.Sub(e.Read) > unreadAfter {
			gaps = append(gaps, Gap{Edge: name, From: e.Read, To: at.UTC(), Why: Unread})
		}
	}
	return gaps
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b.UTC()
	}
	return a.UTC()
}
