package openf1

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"gridcast/builder/live"
	"gridcast/builder/season"
)

// timing holds the rows of a running session. Rows are merged by key, so a row that comes again changes nothing.
type timing struct {
	positions map[int]map[time.Time]int            // of a car, at an instant
	gaps      map[int]map[time.Time]*time.Duration // to the leader; nil: unknown, as of a lapped car
	started   map[int]map[int]time.Time            // laps of a car, by number
	took      map[int]map[int]time.Duration
	stops     map[int]map[time.Time]bool // of a car, by the end of the stop
	control   map[controlRow]bool
}

// controlRow is a message of race control.
type controlRow struct {
	Date     time.Time `json:"date"`
	Category string    `json:"category"`
	Flag     string    `json:"flag"`
	Message  string    `json:"message"`
}

func newTiming() *timing {
	return &timing{
		positions: map[int]map[time.Time]int{}, gaps: map[int]map[time.Time]*time.Duration{}, started: map[int]map[int]time.Time{},
		took: map[int]map[int]time.Duration{}, stops: map[int]map[time.Time]bool{}, control: map[controlRow]bool{},
	}
}

func put[K comparable, V any](of map[int]map[K]V, car int, key K, value V) {
	if of[car] == nil {
		of[car] = map[K]V{}
	}
	of[car][key] = value
}

// merge adds the answer of an endpoint, and returns the latest date in it.
func (r *timing) merge(endpoint string, answer []byte) (latest time.Time, err error) {
	var list []struct {
		controlRow
		Car      int            `json:"driver_number"`
		Position *int           `json:"position"`
		Gap      jsontext.Value `json:"gap_to_leader"`
		Lap      int            `json:"lap_number"`
		Start    time.Time      `json:"date_start"`
		Duration *float64       `json:"lap_duration"`
	}
	if err := json.Unmarshal(answer, &list, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		return latest, err
	}
	for _, row := range list {
		switch endpoint {
		case "position":
			if row.Position != nil {
				put(r.positions, row.Car, row.Date, *row.Position)
			}
		case "intervals":
			put(r.gaps, row.Car, row.Date, gapOf(row.Gap))
		case "laps":
			if r.started[row.Car] == nil {
				r.started[row.Car] = map[int]time.Time{} // it takes part
			}
			if !row.Start.IsZero() {
				put(r.started, row.Car, row.Lap, row.Start)
			}
			if row.Duration != nil {
				put(r.took, row.Car, row.Lap, seconds(*row.Duration))
			}
		case "pit":
			put(r.stops, row.Car, row.Date, true)
		case "race_control":
			r.control[row.controlRow] = true
		}
		latest = season.Later(season.Later(latest, row.Date), row.Start)
	}
	return latest, nil
}

// gapOf reads a gap, which is a number of seconds, words, null or a list.
func gapOf(raw jsontext.Value) *time.Duration {
	s, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return nil
	}
	gap := seconds(s)
	return &gap
}

// completed is the instant at which a car completed a lap, zero if it is not known.
func (r *timing) completed(car, lap int) time.Time {
	if next, ok := r.started[car][lap+1]; ok {
		return next
	}
	if start, ok := r.started[car][lap]; ok && r.took[car][lap] > 0 {
		return start.Add(r.took[car][lap])
	}
	return time.Time{}
}

// leads returns the instant at which the first car completed a lap, and the car; zero if nobody has.
func (r *timing) leads(lap int) (at time.Time, leader int) {
	for _, car := range slices.Sorted(maps.Keys(r.started)) {
		if t := r.completed(car, lap); !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at, leader = t, car
		}
	}
	return at, leader
}

// asOf returns the value of the latest instant that is not after t.
func asOf[V any](of map[time.Time]V, t time.Time) (value V, ok bool) {
	var at time.Time
	for instant, v := range of {
		if !instant.After(t) && (!ok || instant.After(at)) {
			at, value, ok = instant, v, true
		}
	}
	return value, ok
}

const (
	// settle is the time after the end of a lap in which the rows of that instant arrive.
	settle = 5 * time.Second
	// tolerance is the largest difference between the two feeds that is normal: gaps come every four seconds.
	tolerance = 5 * time.Second
	// maxDoubts is the number of cars in an order whose gap may contradict their place.
	maxDoubts = 2
	// noFlag is the time after the last lap in which the flag is awaited. In 2023 one race of 22 had no message of it.
	noFlag = 2 * time.Minute
	// missing is the time without a lap after which a car is out.
	missing = 4 * time.Minute
)

// errContradiction means that position and laps or gaps disagree, as when one of the feeds is frozen.
var errContradiction = errors.New("the feeds contradict each other")

// observe returns the observations in the rows up to an instant: every phase, and every completed lap with a valid order.
// It leaves out the laps that are stored already. faults are the laps without a valid order.
func (r *timing) observe(race live.Fixture, now time.Time, stored map[int]bool) (seen []live.Observation, faults []error) {
	for _, c := range r.phases(race) {
		if !c.At.After(now) {
			seen = append(seen, c)
		}
	}
	flagged := slices.ContainsFunc(seen, func(o live.Observation) bool { return o.Phase == live.Over })
	if at, _ := r.leads(race.Laps); race.Laps > 0 && !at.IsZero() && !flagged && now.After(at.Add(noFlag)) {
		seen = append(seen, live.Observation{Session: race.Session, At: at, Source: "openf1", Phase: live.Over})
	}
	last := 0
	for _, laps := range r.started {
		for lap := range laps {
			last = max(last, lap)
		}
	}
	for lap := 1; lap <= last; lap++ {
		if stored[lap] {
			continue
		}
		at, leader := r.leads(lap)
		if at.IsZero() || at.Add(settle).After(now) {
			continue // nobody's time of it is known, or it has just ended
		}
		o := live.Observation{Session: race.Session, At: at, Source: "openf1", Lap: lap}
		if race.Laps >= lap {
			o.Laps = race.Laps
		}
		var err error
		if o.Cars, err = r.order(lap, at, leader); err == nil {
			err = o.Check()
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("lap %d: %w", lap, err))
			continue
		}
		seen = append(seen, o)
	}
	slices.SortStableFunc(seen, func(a, b live.Observation) int { return a.At.Compare(b.At) })
	return seen, faults
}

// order returns the cars when the leader completed a lap. Of two cars with the same position, because a row was lost, the
// one with the smaller gap is ahead. A car without any position never changed its place, and has the
// place that is left.
func (r *timing) order(lap int, at time.Time, leader int) ([]live.Car, error) {
	type placed struct {
		car, position int
		gap           time.Duration
	}
	const unknown = time.Duration(math.MaxInt64)
	gapAt := func(car int) time.Duration {
		if gap, _ := asOf(r.gaps[car], at.Add(time.Second)); gap != nil {
			return *gap
		}
		return unknown
	}
	var cars []placed
	taken, without := map[int]bool{}, []int{}
	taking := maps.Clone(r.started)
	for car := range r.positions {
		taking[car] = nil
	}
	for _, car := range slices.Sorted(maps.Keys(taking)) {
		position, ok := asOf(r.positions[car], at.Add(time.Second))
		if !ok {
			without = append(without, car)
			continue
		}
		cars, taken[position] = append(cars, placed{car, position, gapAt(car)}), true
	}
	place := 1
	for _, car := range without {
		for taken[place] {
			place++
		}
		cars, taken[place] = append(cars, placed{car, place, gapAt(car)}), true
	}
	slices.SortStableFunc(cars, func(a, b placed) int { return cmp.Or(cmp.Compare(a.position, b.position), cmp.Compare(a.gap, b.gap)) })
	var running, out []live.Car
	gap, doubts := time.Duration(0), 0
	for _, p := range cars {
		c := live.Car{Driver: season.DriverID(strconv.Itoa(p.car))} // observations may name a car by its number
		current, since := r.current(p.car, at)
		if lap > 1 && at.Sub(since) > missing {
			out = append(out, live.Car{Driver: c.Driver, Out: true})
			continue
		}
		if len(running) == 0 && p.car != leader && r.completed(p.car, lap).Sub(at).Abs() > tolerance {
			return nil, fmt.Errorf("%w: car %d leads, but car %d completed the lap first", errContradiction, p.car, leader)
		}
		c.LapsDown = min(max(0, lap-current), max(lap-1, 0))
		stops := 0
		for stop := range r.stops[p.car] {
			if !stop.After(at) {
				stops++
			}
		}
		c.Stops = &stops
		switch {
		case len(running) == 0:
			p.gap, c.LapsDown = 0, 0
		case c.LapsDown > 0:
			p.gap = unknown
		case p.gap < gap-tolerance: // one of the two has just been in the pits
			p.gap = unknown
			doubts++
		}
		if p.gap != unknown {
			gap = max(gap, p.gap)
			ms := int(gap.Milliseconds())
			c.GapMS = &ms
		}
		running = append(running, c)
	}
	switch {
	case len(running) == 0:
		return nil, errors.New("no car has a position")
	case doubts > maxDoubts:
		return nil, fmt.Errorf("%w: %d cars have a smaller gap than a car ahead of them", errContradiction, doubts)
	}
	return append(running, out...), nil
}

// current is the lap that a car was on at an instant, and the start of it. Before its second lap the start is unknown,
// and counts as the instant itself.
func (r *timing) current(car int, at time.Time) (lap int, since time.Time) {
	lap, since = 1, at
	for n, start := range r.started[car] {
		if !start.After(at) && n >= lap {
			lap, since = n, start
		}
	}
	return lap, since
}

// phases reads the messages of race control. The pit exit opens when a race starts and when it is resumed. Before the
// start, and while nothing is suspended, it says nothing.
func (r *timing) phases(race live.Fixture) (seen []live.Observation) {
	messages := slices.Collect(maps.Keys(r.control))
	slices.SortFunc(messages, func(a, b controlRow) int {
		return cmp.Or(a.Date.Compare(b.Date), strings.Compare(a.Message, b.Message))
	})
	state := live.Phase("")
	for _, m := range messages {
		next := live.Phase("")
		status := m.Category == "SessionStatus"
		switch text := strings.ToUpper(m.Message); {
		case m.Flag == "CHEQUERED", status && strings.Contains(text, "FINISHED"), strings.Contains(text, "WILL NOT BE RESUMED"):
			next = live.Over
		case m.Flag == "RED" && state != "":
			next = live.Suspended
		case state == live.Suspended && (status && strings.Contains(text, "STARTED") || strings.HasPrefix(text, "GREEN LIGHT - PIT EXIT OPEN")):
			next = live.Resumed
		case state == "" && (status && strings.Contains(text, "STARTED") || strings.HasPrefix(text, "GREEN LIGHT - PIT EXIT OPEN") && m.Date.After(race.Start)):
			next = live.Started
		}
		if next == "" || next == state || state == live.Over {
			continue
		}
		state = next
		seen = append(seen, live.Observation{Session: race.Session, At: m.Date.UTC(), Source: "openf1", Phase: next})
	}
	return seen
}
