package season

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
	"time"
)

// usualHour is the local hour of a race without an earlier edition.
const usualHour = 15

// AssumeHours returns the facts in which each round of a day without an hour has an assumed one: the local hour of its last
// edition, else of the last race at its circuit, else 15:00 there. Seasons before the first with known hours keep
// 13:00 UTC, and so do circuits of unknown time zone.
func (f Facts) AssumeHours() Facts {
	first := slices.IndexFunc(f.Seasons, func(s Season) bool {
		return slices.ContainsFunc(s.Rounds, func(r Round) bool { return !r.Provisional() })
	})
	for i := max(first, 0); first >= 0 && i < len(f.Seasons); i++ {
		copied := false
		for k := range f.Seasons[i].Rounds {
			if r := &f.Seasons[i].Rounds[k]; !r.Provisional() || r.AssumedHour == f.assumedHour(i, r) {
				continue
			}
			if !copied {
				f.Seasons = slices.Clone(f.Seasons)
				f.Seasons[i].Rounds, copied = slices.Clone(f.Seasons[i].Rounds), true
			}
			r := &f.Seasons[i].Rounds[k]
			r.AssumedHour = f.assumedHour(i, r)
		}
	}
	return f
}

func (f *Facts) assumedHour(year int, r *Round) time.Duration {
	zone := LocationOf(r.Circuit)
	if zone == nil {
		return 0
	}
	hour, minute := f.lastClock(year, r)
	y, m, d := r.Date.Date()
	for _, day := range []int{d, d - 1, d + 1} { // Date is the day in UTC, also of a race in the evening of the day before
		if at := time.Date(y, m, day, hour, minute, 0, 0, zone); DayOf(at).Equal(r.Date) {
			return at.Sub(r.Date)
		}
	}
	return 0
}

// lastClock returns the local time of the last edition of a round in the seasons before an index, else of the last race at
// its circuit.
func (f *Facts) lastClock(before int, r *Round) (hour, minute int) {
	for _, same := range []func(*Round) bool{
		func(was *Round) bool { return was.GrandPrix == r.GrandPrix },
		func(was *Round) bool { return was.Circuit == r.Circuit },
	} {
		for i := min(before, len(f.Seasons)) - 1; i >= 0; i-- {
			for k := range f.Seasons[i].Rounds {
				if was := &f.Seasons[i].Rounds[k]; same(was) && !was.Provisional() && LocationOf(was.Circuit) != nil {
					at := was.Start.In(LocationOf(was.Circuit))
					return at.Hour(), at.Minute()
				}
			}
		}
	}
	return usualHour, 0
}

// UTCDay returns the day in UTC of a race that is held on a day at its circuit, at the hour of its start or, if that is unknown, at
// the one of lastClock. The two days differ for a race in the evening, as in Las Vegas.
func (f *Facts) UTCDay(r *Round, local time.Time) time.Time {
	zone := LocationOf(r.Circuit)
	if zone == nil {
		return local
	}
	before := slices.IndexFunc(f.Seasons, func(s Season) bool { return s.Year >= local.Year() })
	if before < 0 {
		before = len(f.Seasons)
	}
	hour, minute := f.lastClock(before, r)
	if !r.Start.IsZero() {
		hour, minute, _ = r.Start.In(zone).Clock()
	}
	y, m, d := local.Date()
	return DayOf(time.Date(y, m, d, hour, minute, 0, 0, zone))
}

// StartOn returns the start of a round of known hour on another day in UTC, at the same hour at its circuit.
func (r *Round) StartOn(day time.Time) time.Time {
	zone := LocationOf(r.Circuit)
	if zone == nil {
		zone = time.UTC
	}
	start := r.Start.In(zone)
	for range 2 { // an evening may be of another day in UTC once the clocks have changed
		start = start.AddDate(0, 0, int(day.Sub(DayOf(start)).Hours()/24))
	}
	return start.UTC()
}

// LocalDay returns the day of a race at its circuit, as midnight UTC.
func (r *Round) LocalDay() time.Time {
	zone := LocationOf(r.Circuit)
	if zone == nil {
		return r.Date
	}
	y, m, d := r.StartsAt().In(zone).Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

// LocationOf returns the time zone of a circuit, nil if it is unknown.
func LocationOf(circuit CircuitID) *time.Location {
	name := TimeZone(circuit)
	if name == "" {
		return nil
	}
	if zone, ok := locations.Load(name); ok {
		return zone.(*time.Location)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil
	}
	locations.Store(name, zone)
	return zone
}

// Cache, by the name of the zone: reading one from the system takes 9 µs, a third of the time of a schedule.
var locations sync.Map

// zonesText has a line for each circuit: its identifier and its zone. The zone is that of the circuit's town, by the file
// zone1970.tab of the tz database (https://www.iana.org/time-zones).
//
//go:embed zones.txt
var zonesText string

var zones = sync.OnceValue(func() map[CircuitID]string {
	all := map[CircuitID]string{}
	for line := range strings.Lines(zonesText) {
		circuit, zone, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[CircuitID(circuit)] = zone
	}
	return all
})

// TimeZone returns the IANA name of a circuit's time zone, such as "America/Los_Angeles". It is empty for a circuit outside
// the table.
func TimeZone(circuit CircuitID) string { return zones()[circuit] }
