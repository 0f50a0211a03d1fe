// Package live holds the observations of a running race: their form, their log in the store, and the
// pure function that reduces them to the race at each lap.
//
// An Observation is a line of JSON. It shows the running order at the end of a lap of the leader, or a
// phase of the race. Any source of a running order sends such lines, and a recording is a file of them:
//
//	{"session_key":2024022,"at":"2024-11-24T06:41:10Z","lap":25,"laps":50,"cars":[{"driver":"RUS","gap_ms":0,"stops":1},{"driver":"HAM","gap_ms":6100,"stops":1},{"driver":"GAS","out":true}]}
//	{"session_key":2024022,"at":"2024-11-24T07:22:12Z","phase":"over"}
//
// A source sends one line for each lap, when the leader completes it. Repeated and late lines change
// nothing.
package live

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"gridcast/builder/season"
	"gridcast/snapshots/blob/chain"
)

// Observation is the report of a source about a race at an instant: the order at the end of a lap of the leader, a phase,
// or the end of an order by hand.
type Observation struct {
	Session  int64     `json:"session_key"`
	At       time.Time `json:"at"`                // by the clock of the source
	Received time.Time `json:"received,omitzero"` // race time at which gridcast received it
	Source   string    `json:"source,omitzero"`   // its name, or the actor of an order by hand
	Phase    Phase     `json:"phase,omitzero"`
	Lap      int       `json:"lap,omitzero"`  // completed by the leader
	Laps     int       `json:"laps,omitzero"` // of the race, if the source knows
	Cars     []Car     `json:"cars,omitzero"` // in running order, then the cars that are out
	// Hand marks a person's order or phase. A person's order counts instead of every source's until an
	// observation with Released.
	Hand     bool `json:"by_hand,omitzero"`
	Released bool `json:"released,omitzero"`
}

// Car is a car of the running order. Its place is its index.
type Car struct {
	Driver   season.DriverID `json:"driver"`             // in the log the id; in a line also the code or the number of the car
	GapMS    *int            `json:"gap_ms,omitzero"`    // behind the leader; nil: not known
	LapsDown int             `json:"laps_down,omitzero"` // whole laps behind the leader
	Stops    *int            `json:"stops,omitzero"`     // pit stops made; nil: not known
	Out      bool            `json:"out,omitzero"`       // no longer running
	Carried  bool            `json:"-"`                  // in a Moment: its line does not name the car, which stands where it was
}

// Fixture is a race to be observed, as the facts have it. Observations are judged by it.
type Fixture struct {
	Session int64             // our key
	Start   time.Time         // lights out, as planned; zero: unknown
	Laps    int               // scheduled; 0: unknown
	Grid    []season.DriverID // of the cars that start, the first place first; empty: unknown
}

// Phase is a change of the race as a whole. It comes from race control or the status of the session, never
// from a clock.
type Phase string

// The phases.
const (
	Started   Phase = "started"
	Suspended Phase = "suspended" // red flag
	Resumed   Phase = "resumed"
	Over      Phase = "over"
)

// Limits of an observation.
const (
	maxLap  = 250 // Indianapolis had 200
	maxCars = 60
	// maxAhead is how far the clock of a source may be ahead of ours.
	maxAhead = 2 * time.Minute
	maxLine  = 64 << 10 // bytes
	maxGapMS = int(4 * time.Hour / time.Millisecond)
)

// Check returns every fault of an observation by itself.
func (o *Observation) Check() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if o.Session <= 0 {
		fault("session_key is required")
	}
	if o.At.IsZero() {
		fault("at is required: the instant by the clock of the source")
	}
	if !o.Received.IsZero() && o.At.After(o.Received.Add(maxAhead)) {
		fault("at is %s, more than %s after it was received: the clock of the source is wrong", o.At.UTC().Format(time.RFC3339), maxAhead)
	}
	if err := chain.CheckText("source", o.Source); err != nil {
		faults = append(faults, err)
	}
	if !o.Hand && strings.Contains(o.Source, ":") {
		fault("source %q: the name of a source has no colon, because names with one are those of people", o.Source)
	}
	kinds := 0
	for _, is := range []bool{o.Phase != "", o.Lap != 0 || o.Cars != nil, o.Released} {
		if is {
			kinds++
		}
	}
	if kinds != 1 {
		fault("an observation is either a lap with its cars, or a phase")
	}
	if o.Phase != "" && !slices.Contains([]Phase{Started, Suspended, Resumed, Over}, o.Phase) {
		fault("phase %q: must be one of started, suspended, resumed, over", o.Phase)
	}
	if o.Lap != 0 || o.Cars != nil {
		faults = append(faults, o.checkOrder())
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("observation of %d: %w", o.Session, err)
	}
	return nil
}

func (o *Observation) checkOrder() error {
	switch {
	case o.Lap < 1 || o.Lap > maxLap:
		return fmt.Errorf("lap %d: must be 1 to %d", o.Lap, maxLap)
	case o.Laps != 0 && (o.Laps < o.Lap || o.Laps > maxLap):
		return fmt.Errorf("lap %d of a race of %d laps", o.Lap, o.Laps)
	case len(o.Cars) == 0 || len(o.Cars) > maxCars:
		return fmt.Errorf("%d cars: must be 1 to %d", len(o.Cars), maxCars)
	case o.Cars[0].Out:
		return errors.New("no car is running")
	}
	seen, gap := map[season.DriverID]bool{}, 0
	for i, c := range o.Cars {
		switch {
		case c.Driver == "":
			return fmt.Errorf("car %d has no driver", i+1)
		case seen[c.Driver]:
			return fmt.Errorf("driver %s is there twice", c.Driver)
		case i > 0 && o.Cars[i-1].Out && !c.Out:
			return fmt.Errorf("driver %s is running, but comes after a driver who is out", c.Driver)
		case c.LapsDown < 0 || c.LapsDown >= max(o.Lap, 1) && !c.Out:
			return fmt.Errorf("driver %s is %d laps down on lap %d", c.Driver, c.LapsDown, o.Lap)
		case c.Stops != nil && (*c.Stops < 0 || *c.Stops > o.Lap+1):
			return fmt.Errorf("driver %s has made %d stops in %d laps", c.Driver, *c.Stops, o.Lap)
		case c.GapMS != nil && *c.GapMS > maxGapMS:
			return fmt.Errorf("driver %s has gap_ms %d: must be at most %d, four hours", c.Driver, *c.GapMS, maxGapMS)
		case c.GapMS != nil && *c.GapMS < 0 || i == 0 && (c.LapsDown != 0 || c.GapMS != nil && *c.GapMS != 0):
			return fmt.Errorf("the gap of driver %s is impossible: a gap is to the leader and not negative", c.Driver)
		case c.GapMS != nil && !c.Out && *c.GapMS < gap:
			return fmt.Errorf("driver %s is %d ms behind the leader, the car ahead %d ms: order and gaps contradict each other", c.Driver, *c.GapMS, gap)
		}
		seen[c.Driver] = true
		if c.GapMS != nil && !c.Out {
			gap = *c.GapMS
		}
	}
	return nil
}

// Seen is the instant that the observation shows. A source whose clock is ahead shows no later instant than its
// arrival.
func (o *Observation) Seen() time.Time {
	if !o.Received.IsZero() && o.Received.Before(o.At) {
		return o.Received
	}
	return o.At
}

// Resolve replaces every driver of a line by the id that find returns for it.
func (o *Observation) Resolve(find func(text string) (season.DriverID, error)) error {
	o.Cars = slices.Clone(o.Cars)
	for i := range o.Cars {
		id, err := find(string(o.Cars[i].Driver))
		if err != nil {
			return fmt.Errorf("observation of %d: %w", o.Session, err)
		}
		o.Cars[i].Driver = id
	}
	return nil
}

// ParseLine reads one line of a feed or a recording.
func ParseLine(line []byte) (Observation, error) {
	var o Observation
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return o, fmt.Errorf("observation: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if d.More() {
		return o, errors.New("observation: more than one value in a line")
	}
	return o, o.Check()
}

// Lines calls each for every line of a feed, with its number from 1 on and its fault. Empty lines are skipped. A line
// that is too long is a fault as any other. Lines stops at the first error of each.
func Lines(r io.Reader, each func(n int, o Observation, err error) error) error {
	lines := bufio.NewReaderSize(r, maxLine)
	for n, long := 1, false; ; {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = true
			continue
		}
		var o Observation
		var fault error
		if long {
			fault = fmt.Errorf("observation: the line has more than %d bytes", maxLine)
		} else if line = bytes.TrimSpace(line); len(line) > 0 {
			o, fault = ParseLine(line)
		}
		if long || len(line) > 0 {
			if err := each(n, o, fault); err != nil {
				return err
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		n, long = n+1, false
	}
}
