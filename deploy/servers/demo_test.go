package servers

import (
	"bytes"
	"net"
	"slices"
	"testing"
	"time"

	"gridcast/builder/archive"
	"gridcast/builder/live"
	"gridcast/builder/season"
	"gridcast/deploy/flags"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/deploy/sandbox"
	"gridcast/deploy/terminal"
	"gridcast/snapshots/blob/memblob"
)

// A visitor has ten minutes of real time to verify the result, at every speed.
func TestVisitorHasTenMinutes(t *testing.T) {
	const speed, minutes = 6000, 10 * time.Minute
	w := Weekend{Round: season.Round{Start: time.Date(2024, 11, 24, 6, 0, 0, 0, time.UTC)}}
	must.Hold(t, demoVerifiesAfter == minutes, "a demo waits %s for its visitor, want %s", demoVerifiesAfter, minutes)
	if events := w.events(speed * demoVerifiesAfter); events[3].at.Sub(events[2].at) != speed*minutes {
		t.Errorf("the result is verified by itself %s after the race, want ten minutes of real time", events[3].at.Sub(events[2].at))
	}
}

// A default port that is in use makes way for a free one, and the demo says so. A port that the
// caller named does not.
func TestDemoTakesFreePorts(t *testing.T) {
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer func() { _ = listener.Close() }()
	busy := listener.Addr().String()

	var said bytes.Buffer
	c := Serve{Edge: flags.Edge{Listen: busy}, Console: flags.Console{OperatorListen: busy}}
	must.Do(t, c.choosePorts(t.Context(), terminal.New(&bytes.Buffer{}, &said)))
	if c.Listen == busy || c.OperatorListen == busy || c.Listen == c.OperatorListen {
		t.Errorf("got %s and %s, want two other addresses than %s", c.Listen, c.OperatorListen, busy)
	}
	golden.Sentence(t, "ports in use", said.String(), busy, "BUSY", c.Listen, "API", c.OperatorListen, "CONSOLE")

	c.Listen = busy
	s := terminal.New(&bytes.Buffer{}, &said)
	s.Given = map[string]bool{"listen": true}
	golden.Sentence(t, "a named port in use", c.choosePorts(t.Context(), s), busy, "BUSY")
	must.Equal(t, "the named port", busy, c.Listen)
}

// TestMadeOrder makes the order of every race of the embedded seasons: the log takes each observation, and the last lap
// has the cars in the order of the result.
func TestMadeOrder(t *testing.T) {
	embedded := must.Get(archive.Embedded())(t)
	races := 0
	for _, year := range embedded.Archive.Facts().Seasons {
		for i := range year.Rounds {
			r := &year.Rounds[i]
			seen := sandbox.Order(7, r)
			if len(r.Results) == 0 {
				continue
			}
			races++
			stored := make([]live.Stored, len(seen))
			for j, o := range seen {
				o.Received = o.At
				if err := o.Check(); err != nil {
					t.Fatalf("%s %d, lap %d: %v", r.Name, year.Year, o.Lap, err)
				}
				stored[j] = live.Stored{Observation: o}
			}
			race := live.Reduce(stored, live.Fixture{Laps: r.ScheduledLaps})
			if race.State != live.Ended || race.Lap != r.Winner().Laps || len(race.Moments) != race.Lap {
				t.Errorf("%s %d: %s after lap %d with %d moments", r.Name, year.Year, race.State, race.Lap, len(race.Moments))
			}
			last, first := race.Latest().Cars, race.Moments[0].Cars
			for place := range 3 {
				if p := r.Place(place + 1); p != nil && last[place].Driver != p.Driver {
					t.Errorf("%s %d: %s is in place %d at the end, want %s", r.Name, year.Year, last[place].Driver, place+1, p.Driver)
				}
			}
			if pole := onPole(r); pole != "" && !slices.ContainsFunc(first[:3], func(c live.Car) bool { return c.Driver == pole }) {
				t.Errorf("%s %d: the driver on pole, %s, is not among the first three after lap 1", r.Name, year.Year, pole)
			}
			if races%40 == 0 {
				takes(t, seen)
			}
		}
	}
	must.Hold(t, races >= 60, "%d races, want all", races)
}

// takes fails the test unless the log takes every observation.
func takes(t *testing.T, seen []live.Observation) {
	t.Helper()
	log := live.Log{Store: memblob.New()}
	for _, o := range seen {
		o.Received = o.At
		_, news, err := log.Append(t.Context(), live.Fixture{}, o)
		must.Require(t, err == nil && news, "lap %d: news %t, %v", o.Lap, news, err)
	}
}

// onPole returns the driver on pole, empty if that driver was not classified.
func onPole(r *season.Round) season.DriverID {
	for _, row := range r.Results {
		if row.Grid == 1 && row.Position > 0 {
			return row.Driver
		}
	}
	return ""
}
