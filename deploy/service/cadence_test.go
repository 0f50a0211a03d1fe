package service_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/schemas/catalog"
	"gridcast/schemas/docs"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
)

// cadence counts how often the answers of the season 2025 changed, and compares the counts with the table that readers
// see at /docs/coverage. A race weekend is the five days that end on the day after the race; the season is from the first
// to the last of them, and the rest of the year is winter.
func (u *unattended) cadence(t *testing.T) {
	t.Helper()
	var races []time.Time
	for _, e := range published[[]wire.CalendarEntry](t, u, "calendar/2025") {
		races = append(races, must.Get(time.Parse(time.DateOnly, e.Date))(t))
	}
	const day = 24 * time.Hour
	inWeekend := func(at time.Time) bool {
		return slices.ContainsFunc(races, func(r time.Time) bool { return !at.Before(r.Add(-3*day)) && at.Before(r.Add(2*day)) })
	}
	begins, ends := races[0].Add(-3*day), races[len(races)-1].Add(2*day)
	weeks := [3]float64{float64(len(races)), (ends.Sub(begins) - time.Duration(len(races))*5*day).Hours() / 168, (365*day - ends.Sub(begins)).Hours() / 168}

	h := must.Get(snapshots.LoadHistory(t.Context(), u.store))(t)
	versions := slices.Clone(h.Versions)
	slices.Reverse(versions)
	counts := map[catalog.Name]*[3]int{}
	before := map[string]string{}
	for _, v := range versions {
		m := must.Get(snapshots.LoadManifest(t.Context(), u.store, v))(t)
		if m.BuiltAt.Year() != 2025 {
			continue
		}
		period := 2
		switch {
		case inWeekend(m.BuiltAt):
			period = 0
		case m.BuiltAt.After(begins) && m.BuiltAt.Before(ends):
			period = 1
		}
		changed := map[catalog.Name]bool{}
		for _, e := range m.Entries {
			variant, err := catalog.ParsePath(e.Path)
			if err != nil || variant.SessionKey != 0 || variant.Year != 0 && variant.Year < 2025 {
				continue
			}
			if was, known := before[e.Path]; known && was != e.SHA256 {
				changed[variant.Endpoint] = true
			}
			before[e.Path] = e.SHA256
		}
		for name := range changed {
			if counts[name] == nil {
				counts[name] = &[3]int{}
			}
			counts[name][period]++
		}
	}
	var said, counted strings.Builder
	for _, c := range docs.Cadences() {
		n := counts[catalog.Name(strings.TrimPrefix(c.Endpoint, "/"))]
		if n == nil {
			n = &[3]int{}
		}
		if c.Weekend == "" { // the replay has no laps and no files
			t.Logf("%s has no figures; counted: %d in %.1f weekends, %d in %.1f weeks, %d in %.1f weeks of winter", c.Endpoint, n[0], weeks[0], n[1], weeks[1], n[2], weeks[2])
			continue
		}
		fmt.Fprintln(&said, c.Endpoint, c.Weekend, c.Between, c.Winter)
		fmt.Fprint(&counted, c.Endpoint)
		for i := range n {
			fmt.Fprint(&counted, " ", rounded(float64(n[i])/weeks[i]))
		}
		fmt.Fprintln(&counted)
	}
	must.Equal(t, "changes a weekend, a week between two, and a week of winter", said.String(), counted.String())
}

// rounded is a figure as the table has it: a whole number, or below 2 one digit behind the point.
func rounded(f float64) string {
	if f >= 2 {
		return strconv.Itoa(int(f + .5))
	}
	return strconv.FormatFloat(f, 'f', 1, 64)
}
