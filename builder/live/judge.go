package live

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"gridcast/builder/season"
)

var (
	// ErrImplausible says that an observation contradicts the earlier ones, so that its source is wrong.
	ErrImplausible = errors.New("impossible after the observations before")
	// ErrHeld says that an observation is stored, but does not count, or not fully. The text names the condition and the command.
	ErrHeld = errors.New("held")
	// ErrNoEffect says that a person's order or phase would change nothing.
	ErrNoEffect = errors.New("it would change nothing")
)

// The limits of a possible race.
const (
	// fastestLap is a time that no leader beats.
	fastestLap = 40 * time.Second
	// carriedLaps is the number of lines for which a running car is carried on that they do not name. Then it is out.
	carriedLaps = 2
	// wholeShare is the share of the running cars that a line must name: four fifths.
	wholeShare = .8
	// crashShare is the share from which the other cars may have stopped, so that they are carried on no longer than any.
	crashShare = 2. / 3
	// turnedShare is the share of the pairs of cars that change places in an order upside down. The largest of two laps in
	// a row is .55 in the lap times of 1996 to 2024, of grid and first lap .5.
	turnedShare = .75
	// comparable is the number of cars from which orders are compared.
	comparable = 4
)

// reduction is a race while Reduce makes it.
type reduction struct {
	Race

	of        Fixture
	ended     time.Time               // when the race was over
	stopped   bool                    // the race was suspended once
	early     *Stored                 // over before half distance, which waits for a second line
	held      *Stored                 // an order that waits for a second line
	why       string                  // held
	aside     *Stored                 // the latest order of a source while a person's counts
	reopened  int                     // lap at which a person reopened the race; -1: nobody did
	restarted bool                    // since the latest order, so that cars may return
	unseen    map[season.DriverID]int // lines in a row that name most cars, but not this one
}

// distance is the number of laps of the race, 0 if it is unknown.
func (r *reduction) distance() int {
	if r.of.Laps > 0 {
		return r.of.Laps
	}
	return r.Laps
}

func (r *reduction) hold(line, why, by string) string {
	return fmt.Sprintf("%s is held, because %s; it counts when a second line says so, or with: gridcast live set %d %s", line, why, r.of.Session, by)
}

func (r *reduction) turn(state State) {
	r.restarted = r.restarted || r.State == Stopped && state == Running
	r.stopped = r.stopped || state == Stopped
	r.State, r.Turns = state, append(r.Turns, r.Lap)
}

// phase applies a phase. A source cannot change an ended race; a person can reopen it.
func (r *reduction) phase(o *Stored) {
	to := Running
	switch {
	case r.State == Ended && !o.Hand:
		return
	case o.Phase == Over && !o.Hand && r.doubtful(o):
		if r.reopened < 0 && r.early == nil {
			r.early = o
		}
		return
	case o.Phase == Over:
		to = Ended
	case o.Phase == Suspended:
		to = Stopped
	case o.Phase == Resumed && r.State == Waiting && !o.Hand:
		return
	}
	if o.Hand && to != Ended && (r.State == Ended || r.early != nil) {
		r.reopened = r.Lap
	}
	if r.State != to {
		r.turn(to)
	} else if to != Stopped && r.early == nil {
		return
	}
	if r.early, r.Seen = nil, o.Seen(); to == Ended {
		r.ended = r.Seen
	}
}

// doubtful reports whether over needs a second line: before half distance, and after a person has reopened the race until
// the leader completes another lap.
func (r *reduction) doubtful(o *Stored) bool {
	if r.reopened >= 0 && r.Lap <= r.reopened {
		return true
	}
	return 2*r.Lap < r.distance() && (r.reopened >= 0 || r.early == nil || !o.Seen().After(r.early.Seen()))
}

func (r *reduction) order(o *Stored) {
	if r.State == Ended && o.Seen().After(r.ended.Add(grace)) || o.Lap < r.Lap {
		return
	}
	again := o.Lap == r.Lap
	if again && !o.Hand && !r.Moments[len(r.Moments)-1].Partial && !r.Moments[len(r.Moments)-1].Hand {
		return // a repetition
	}
	before := r.cars(again)
	if !o.Hand {
		why := r.suspect(before, o.Cars)
		if why != "" && (r.held == nil || r.suspect(r.held.Cars, o.Cars) != "") {
			r.held, r.why = o, why
			return
		}
	}
	m := r.moment(before, o)
	if again {
		if m.Partial && !o.Hand {
			return
		}
		r.Moments[len(r.Moments)-1] = m
	} else {
		r.Lap, r.Moments, r.early = o.Lap, append(r.Moments, m), nil
		if r.State == Waiting || r.State == Stopped && o.Lap >= r.Turns[len(r.Turns)-1]+restart {
			r.turn(Running)
		}
	}
	r.held, r.restarted = nil, r.restarted && r.State == Stopped
	r.Seen = o.Seen()
	if o.Laps > 0 {
		r.Laps = o.Laps
	}
}

// cars returns the cars of the latest moment, or of the one before it, or the grid.
func (r *reduction) cars(again bool) []Car {
	n := len(r.Moments)
	if again {
		n--
	}
	if n > 0 {
		return r.Moments[n-1].Cars
	}
	grid := make([]Car, len(r.of.Grid))
	for i, driver := range r.of.Grid {
		grid[i] = Car{Driver: driver}
	}
	return grid
}

// suspect returns the reason why an order cannot follow at once on the cars before. It is empty if the order can.
func (r *reduction) suspect(before, now []Car) string {
	place, ran, gone := map[season.DriverID]int{}, 0, 0
	for i, c := range before {
		if !c.Out {
			place[c.Driver], ran = i, ran+1
		}
	}
	var places []int
	for _, c := range now {
		if at, ok := place[c.Driver]; ok && c.Out {
			gone++
		} else if ok {
			places = append(places, at)
		}
	}
	turned, pairs := 0, 0
	for i := range places {
		for _, behind := range places[i+1:] {
			if pairs++; behind < places[i] {
				turned++
			}
		}
	}
	switch {
	case len(places) >= comparable && float64(turned) > turnedShare*float64(pairs):
		return "its order is upside down against the one before"
	case ran >= comparable && 2*gone > ran:
		return fmt.Sprintf("%d of %d running cars are out at once", gone, ran)
	}
	return ""
}

// moment completes an order by the cars before it. A car that was out stays out without a restart or a person.
func (r *reduction) moment(before []Car, o *Stored) Moment {
	m := Moment{Stored: *o}
	named, missing, ran := map[season.DriverID]bool{}, 0, 0
	for _, c := range o.Cars {
		named[c.Driver] = true
	}
	var running, out []Car
	for _, c := range o.Cars {
		if c.Out || !o.Hand && !r.restarted && slices.ContainsFunc(before, func(b Car) bool { return b.Driver == c.Driver && b.Out && !b.Carried }) {
			c.Out = true
			out = append(out, c)
		} else {
			running = append(running, c)
		}
	}
	for _, c := range before {
		if !c.Out {
			ran++
			if !named[c.Driver] {
				missing++
			}
		}
	}
	stopped := float64(ran-missing) >= crashShare*float64(ran)
	unseen, place, carried := map[season.DriverID]int{}, 0, 0
	for _, c := range before {
		at := place
		if !c.Out {
			place++
		}
		if named[c.Driver] {
			continue
		}
		unseen[c.Driver] = r.unseen[c.Driver]
		if stopped {
			unseen[c.Driver]++
		}
		switch {
		case c.Out:
			out = append(out, c)
		case unseen[c.Driver] > carriedLaps:
			out = append(out, Car{Driver: c.Driver, Stops: c.Stops, Out: true, Carried: true})
		default:
			carried++
			running = slices.Insert(running, min(at, len(running)), Car{Driver: c.Driver, Stops: c.Stops, Carried: true})
		}
	}
	m.Partial = float64(carried) > (1-wholeShare)*float64(len(running))
	m.Cars, r.unseen = slices.Concat(running, out), unseen
	return m
}

// maxAlike limits the stored lines of sources about one lap, and their phases in a minute, so that a source that changes
// its mind without end cannot fill the store.
const maxAlike = 10

// judge reports whether the log takes the observation, and returns its fault.
func (t *Tape) judge(of Fixture, o *Observation) (news bool, verdict error) {
	var earlier []Stored // than the observation, which may come late
	alike := 0           // lines of sources about the same lap, or phases within a minute
	for _, s := range t.Observations {
		if !s.Hand && (o.Lap > 0 && s.Lap == o.Lap || o.Phase != "" && s.Phase != "" && o.Received.Sub(s.Received) < time.Minute) {
			alike++
		}
		if same := !o.Hand && !s.Hand && s.Phase == o.Phase && s.Lap == o.Lap; same && (s.At.Equal(o.At) || o.Lap > 0 && reflect.DeepEqual(s.Cars, o.Cars)) {
			return false, nil
		}
		if !s.Seen().After(o.Seen()) {
			earlier = append(earlier, s)
		}
	}
	then, now := reduce(earlier, of), Reduce(t.Observations, of)
	if !o.Hand {
		if err := then.possible(o); err != nil {
			return false, fmt.Errorf("observation of %d: %w: %w", o.Session, ErrImplausible, err)
		}
	}
	after := Reduce(append(t.Observations[:len(t.Observations):len(t.Observations)], Stored{Observation: *o}), of)
	changed := now.State != after.State || now.Lap != after.Lap || now.Hand != after.Hand || now.Held != after.Held ||
		len(now.Turns) != len(after.Turns) || len(now.Moments) != len(after.Moments) || !reflect.DeepEqual(now.Latest(), after.Latest()) ||
		after.State == Stopped && after.Seen.Sub(now.Seen) >= stillStopped
	switch {
	case o.Hand && !changed:
		return false, fmt.Errorf("%w: the race is %s at lap %d%s", ErrNoEffect, now.State, now.Lap, reopening(&now, o.Session))
	case !o.Hand && alike >= maxAlike && (changed || o.Lap > 0 && now.Hand):
		return false, fmt.Errorf("observation of %d: %w: the log has %d lines about this lap, or phases of the last minute, and takes no more from a source; a person can enter it: gridcast live set %d", o.Session, ErrImplausible, alike, o.Session)
	case after.Held != "" && after.Held != now.Held:
		return true, fmt.Errorf("observation of %d: %w: %s", o.Session, ErrHeld, after.Held)
	case !changed && o.Lap > 0 && now.Hand: // set aside until a person releases the order by hand
		return true, nil
	case !changed:
		return false, nil
	}
	return true, after.notes(o)
}

// reopening names the command that reopens an ended race.
func reopening(r *Race, session int64) string {
	if r.State != Ended {
		return ""
	}
	return fmt.Sprintf("; this reopens it: gridcast live set %d --phase resumed", session)
}

// possible holds a source's observation against the race at its instant.
func (r *reduction) possible(o *Observation) error {
	of, passed := r.of, time.Duration(0)
	if !of.Start.IsZero() {
		passed = o.Seen().Sub(of.Start) + maxAhead
	}
	switch {
	case o.Phase == Resumed && r.State != Ended && !r.stopped:
		return errors.New("the race is not suspended, so it cannot be resumed")
	case o.Phase != "" && o.Phase != Over && r.State == Ended:
		return errors.New("the race is over" + reopening(&r.Race, o.Session))
	case o.Phase == Over && r.reopened >= 0 && r.doubtful(&Stored{Observation: *o}):
		return fmt.Errorf("a person reopened the race at lap %d; this ends it: gridcast live set %d --phase over", r.reopened, o.Session)
	case o.Phase != "":
		return nil
	case of.Laps > 0 && o.Lap > of.Laps:
		return fmt.Errorf("lap %d of a race of %d laps", o.Lap, of.Laps)
	case !of.Start.IsZero() && passed < 0:
		return fmt.Errorf("lap %d before lights out at %s; if the start has moved: gridcast rounds move %d --start INSTANT", o.Lap, of.Start.UTC().Format(time.RFC3339), o.Session)
	case !of.Start.IsZero() && time.Duration(o.Lap-1)*fastestLap > passed:
		return fmt.Errorf("lap %d only %s after lights out", o.Lap, (passed - maxAhead).Round(time.Second))
	case r.State == Ended && o.Lap > r.Lap && o.Seen().After(r.ended.Add(grace)):
		return errors.New("the race is over" + reopening(&r.Race, o.Session))
	}
	if !of.Start.IsZero() {
		for _, c := range o.Cars {
			if c.GapMS != nil && !c.Out && time.Duration(*c.GapMS)*time.Millisecond > passed {
				return fmt.Errorf("driver %s is %d ms behind the leader, longer than the race has run", c.Driver, *c.GapMS)
			}
		}
	}
	last := r.Latest()
	switch {
	case last == nil:
	case o.Lap < last.Lap && !slices.ContainsFunc(r.Moments, func(m Moment) bool { return m.Lap == o.Lap }):
		return fmt.Errorf("lap %d after lap %d: laps never fall", o.Lap, last.Lap)
	default:
		if laps, passed := o.Lap-last.Lap, o.Seen().Sub(last.Seen()); time.Duration(laps-1)*fastestLap > max(passed, 0) {
			return fmt.Errorf("lap %d only %s after lap %d", o.Lap, passed.Round(time.Second), last.Lap)
		}
	}
	return nil
}

// notes names the shortcomings of an order that counts.
func (r *Race) notes(o *Observation) error {
	m := r.Latest()
	if o.Lap == 0 || o.Hand || m == nil || m.Lap != o.Lap {
		return nil
	}
	var back []string
	for _, c := range o.Cars {
		if !c.Out && slices.ContainsFunc(m.Cars, func(now Car) bool { return now.Driver == c.Driver && now.Out }) {
			back = append(back, string(c.Driver))
		}
	}
	switch {
	case m.Partial:
		return fmt.Errorf("observation of %d: %w: lap %d names %d cars, under four fifths of those that run: no chances follow from it", o.Session, ErrHeld, o.Lap, len(o.Cars))
	case back != nil:
		return fmt.Errorf("observation of %d: %w: %s was out and stays out on lap %d; a car returns after a restart, or with: gridcast live set %d --lap %d --order CODES",
			o.Session, ErrHeld, strings.Join(back, ", "), o.Lap, o.Session, o.Lap)
	}
	return nil
}
