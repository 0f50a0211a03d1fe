package season

import (
	"slices"
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
	hour, minute := usualHour, 0
	last := func(same func(*Round) bool) bool {
		for i := year - 1; i >= 0; i-- {
			for k := range f.Seasons[i].Rounds {
				if was := &f.Seasons[i].Rounds[k]; same(was) && !was.Provisional() && LocationOf(was.Circuit) != nil {
					at := was.Start.In(LocationOf(was.Circuit))
					hour, minute = at.Hour(), at.Minute()
					return true
				}
			}
		}
		return false
	}
	if !last(func(was *Round) bool { return was.GrandPrix == r.GrandPrix }) {
		last(func(was *Round) bool { return was.Circuit == r.Circuit })
	}
	y, m, d := r.Date.Date()
	for _, day := range []int{d, d - 1, d + 1} { // Date is the day in UTC, also of a race in the evening of the day before
		if at := time.Date(y, m, day, hour, minute, 0, 0, zone); DayOf(at).Equal(r.Date) {
			return at.Sub(r.Date)
		}
	}
	return 0
}

// LocationOf returns the time zone of a circuit, nil if it is unknown.
func LocationOf(circuit CircuitID) *time.Location {
	name := TimeZone(circuit)
	if name == "" {
		return nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil
	}
	return zone
}
