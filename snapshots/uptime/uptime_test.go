package uptime_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/uptime"
)

var noon = time.Date(2026, 11, 20, 12, 0, 20, 0, time.UTC)

const edge = "10.0.0.2:9100"

// random is a log of measurements around an instant.
func random(r *rand.Rand, at time.Time) *uptime.Log {
	l := &uptime.Log{}
	for range r.IntN(4000) {
		m := uptime.Answered(time.Duration(r.IntN(6000))*time.Millisecond, r.IntN(9) == 0)
		if r.IntN(7) == 0 {
			m = uptime.Failed([]uptime.Fault{uptime.DNS, uptime.TLS, uptime.Timeout, uptime.NotGridcast}[r.IntN(4)])
		}
		l.Add([]string{uptime.Public, edge}[r.IntN(2)], at.Add(-time.Duration(r.IntN(3000))*time.Minute), m, int64(r.IntN(1e6)))
	}
	l.Day(edge, at).Served = r.Float64()
	return l
}

// copied is a log as the store keeps it.
func copied(t *testing.T, l *uptime.Log) *uptime.Log {
	t.Helper()
	again := &uptime.Log{}
	must.Do(t, json.Unmarshal(must.Get(json.Marshal(l))(t), again))
	return again
}

// TestTwoSchedulersCountOnce: logs merge to the same content in any order and however often, and each closed day has 1440
// minutes that are up, down or unknown.
func TestTwoSchedulersCountOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		stored := &uptime.Log{}
		for day := range 5 {
			at := noon.AddDate(0, 0, day)
			one, two := random(r, at), random(r, at)
			other := copied(t, stored)
			stored.Merge(one, at)
			stored.Merge(two, at)
			other.Merge(two, at)
			other.Merge(one, at)
			other.Merge(two, at)
			must.Equal(t, "two schedulers in another order", stored, other)
		}
		for _, target := range stored.Report().Targets {
			must.Equal(t, "days", 90, len(target.Days))
			for i, d := range target.Days {
				want := 1440
				if i == 89 {
					want = 12 * 60 // up to noon
				}
				if got := d.Up + d.Down + d.Unknown; got != want || d.Slow+d.Late > 2*d.Up {
					t.Fatalf("%s %s: %d up + %d down + %d unknown = %d minutes, want %d", target.Name, d.Date, d.Up, d.Down, d.Unknown, got, want)
				}
				faults := 0
				for _, n := range d.Faults {
					faults += n
				}
				must.Equal(t, "minutes by fault", d.Down, faults)
			}
		}
	}
}

// TestDayOfATarget: every figure of a day follows from its minutes.
func TestDayOfATarget(t *testing.T) {
	var l uptime.Log
	day := noon.Add(-12*time.Hour - 20*time.Second).In(time.FixedZone("a machine in India", 19800)) // half an hour beside UTC
	minute := func(n int, m uptime.Minute) {
		l.Add(uptime.Public, day.Add(time.Duration(n)*time.Minute), m, 3600)
	}
	for n := range 100 {
		minute(n, uptime.Answered(time.Duration(n+1)*time.Millisecond, n == 5))
	}
	minute(100, uptime.Failed(uptime.TLS)) // one minute, then two, with an unknown one between
	minute(102, uptime.Failed(uptime.DNS))
	minute(103, uptime.Failed(uptime.Timeout))
	minute(7, uptime.Answered(1200*time.Millisecond, false)) // of another scheduler: the worse one counts
	minute(103, uptime.Answered(time.Millisecond, false))
	l.Day(uptime.Public, noon).Served = 2.5
	l.Add("edge.internal:9100", day, uptime.Answered(time.Millisecond, false), 0)
	var stored uptime.Log
	stored.Merge(&l, noon)
	report := stored.Report()
	must.Equal(t, "the last day", uptime.Day{
		Date: "2026-11-20", Oldest: 3600, Served: 2.5, Up: 100, Down: 3, Unknown: 617, Slow: 1, Late: 1, P50: 51, P99: 100,
		Faults: map[uptime.Fault]int{uptime.TLS: 1, uptime.DNS: 1, uptime.Timeout: 1},
		Worst:  &uptime.Outage{From: "01:42", Minutes: 2, Fault: uptime.DNS},
	}, report.Targets[0].Days[89])
	must.Equal(t, "availability", "97.087", report.Targets[0].Availability.String())
	must.Equal(t, "a day before", uptime.Day{Date: "2026-11-19", Unknown: 1440}, report.Targets[0].Days[88])
	must.Equal(t, "the name of an edge", "edge 1", report.Targets[1].Name)
	must.Hide(t, "the report", string(must.Get(json.Marshal(report))(t)), "internal")
}

// TestUnknownIsNeverUp: a day that nobody measured, a target that never answered, and one minute in 90 days.
func TestUnknownIsNeverUp(t *testing.T) {
	var l uptime.Log
	for day := range 90 {
		for m := range 1440 {
			if day == 44 {
				continue
			}
			at := noon.Truncate(24*time.Hour).AddDate(0, 0, day-89).Add(time.Duration(m) * time.Minute)
			what := uptime.Answered(time.Millisecond, false)
			if day == 30 && m == 700 {
				what = uptime.Failed(uptime.Refused)
			}
			l.Add(uptime.Public, at, what, 0)
		}
		l.Merge(&uptime.Log{}, noon.AddDate(0, 0, day-89).Add(11*time.Hour))
	}
	got := l.Report().Targets[0]
	must.Equal(t, "the day without a scheduler", uptime.Day{Date: got.Days[44].Date, Unknown: 1440}, got.Days[44])
	if got.Availability != "99.999" || got.Measured >= "99" {
		t.Errorf("one minute of 90 days down: %v %%, measured %v %%", got.Availability, got.Measured)
	}
	var none uptime.Log
	none.Day(edge, noon).Served = 1
	none.Merge(&uptime.Log{}, noon)
	if got := none.Report().Targets[0]; got.Availability != "" || got.Measured != "0.000" {
		t.Errorf("without a measurement: %v, want no availability", got.Availability)
	}
}

// TestOnlyNinetyDaysStay: the document is bounded, also after a clock that was ahead, and a target without a day leaves.
func TestOnlyNinetyDaysStay(t *testing.T) {
	var l uptime.Log
	for day := range 200 {
		at := noon.AddDate(0, 0, day)
		from := &uptime.Log{}
		from.Add(uptime.Public, at, uptime.Answered(time.Millisecond, false), 0)
		from.Add(edge, at.AddDate(1, 0, 0), uptime.Answered(time.Millisecond, false), 0)
		l.Merge(from, at)
	}
	l.Day("removed.edge", noon.AddDate(0, 0, 109)) // the report of 199 begins a day later
	l.Day("removed.later", noon.AddDate(0, 0, 110))
	must.Equal(t, "targets of the report", 2, len(l.Report().Targets))
	delete(l.Targets, "removed.edge")
	delete(l.Targets, "removed.later")
	must.Equal(t, "days", 90, len(l.Targets[uptime.Public]))
	must.Equal(t, "targets", 1, len(l.Targets))
	size := len(must.Get(json.Marshal(l))(t))
	must.Hold(t, size <= 24<<10, "a target of 90 days has %d bytes", size)
}

// TestDocumentIsPutBack: a document that was damaged comes back from its copy.
func TestDocumentIsPutBack(t *testing.T) {
	store := memblob.New()
	written := must.Get(uptime.Document(store).Update(t.Context(), func(l *uptime.Log) error {
		from := &uptime.Log{}
		from.Add(edge, noon.Add(-time.Hour), uptime.Failed(uptime.DNS), 60)
		l.Merge(from, noon)
		return nil
	}))(t)
	object := must.Get(store.Get(t.Context(), uptime.Key, blob.MaxDocument))(t)
	must.Get(store.Swap(t.Context(), uptime.Key, object.Tag, object.Data[:100]))(t)
	must.Hold(t, must.Get(uptime.Heal(t.Context(), store))(t), "nothing is healed")
	healed, _ := must.Get2(uptime.Document(store).Load(t.Context()))(t)
	must.Equal(t, "the document", written, healed)
}

// TestDamagedDocument: a document that no scheduler wrote is refused, and not merged.
func TestDamagedDocument(t *testing.T) {
	said := map[string]string{}
	for _, text := range []string{
		`{"targets":{"public":{"2026-11-20":{"date":"2026-11-20","minutes":[1,2]}}}}`, `{"targets":{"public":{"yesterday":{}}}}`,
		`{"targets":{"public":{"2026-11-20":null}}}`, `[]`, `{"updated":7}`,
	} {
		store := memblob.New()
		must.Get(store.Create(t.Context(), uptime.Key, []byte(text)))(t)
		_, _, err := uptime.Document(store).Load(t.Context())
		said[text] = fmt.Sprint(err)
	}
	golden.Inputs(t, "testdata/damaged.txt", said)
}
