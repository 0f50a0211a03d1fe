package live

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"gridcast/builder/season"
)

// State is the state of a race as observed.
type State string

// The states.
const (
	Waiting State = "waiting" // nothing has been observed
	Running State = "running"
	Stopped State = "suspended"
	Ended   State = "over"
)

// Fresh is the age up to which an observation may be used, and the least time for which one is valid.
const Fresh = 180 * time.Second

// FreshStopped is the time for which an observation of a suspended race is valid.
const FreshStopped = 10 * time.Minute

const (
	// grace is the time after the flag in which the order at the last lap may still come.
	grace = 3 * time.Minute
	// stillStopped is the time after which a repeated suspension is news, because it says that the source lives.
	stillStopped = FreshStopped / 2
	// restart is the number of laps after a suspension that show that the race runs again, although no source said so.
	restart = 2
	usual   = 90 * time.Second // of a lap
)

// Stored is an observation of the log. The hash of its file names every observation up to it.
type Stored struct {
	Observation
	Seq    int64
	SHA256 string
}

// Moment is the race when its leader completed a lap. Its cars are all cars of the race: a running car that the line does
// not name is carried on, see Car.Carried.
type Moment struct {
	Stored

	Partial bool // the line names too few of the running cars to say how the race stands
}

// Running is the number of cars that run.
func (m *Moment) Running() (n int) {
	for i := range m.Cars {
		if !m.Cars[i].Out {
			n++
		}
	}
	return n
}

// Complete reports whether chances follow from the moment: its line names four fifths of the running cars, and at least three
// cars run, which is a podium.
func (m *Moment) Complete() bool { return !m.Partial && m.Running() >= len(season.Podium{}) }

// Race is a race as its observations show it.
type Race struct {
	State   State
	Lap     int // completed by the leader
	Laps    int // of the race, as a source said; 0: no source said it
	Moments []Moment
	Seen    time.Time // of the latest observation that counts
	Turns   []int     // the laps in which State changed, oldest first
	Hand    bool      // a person's order counts until it is released
	Held    string    // the line that waits for a second one or for a person, and why; empty: none
}

// At returns the first whole moment of two laps, the given one and the next; nil if there is none.
func (r *Race) At(lap int) *Moment {
	i, _ := slices.BinarySearchFunc(r.Moments, lap, func(m Moment, lap int) int { return cmp.Compare(m.Lap, lap) })
	for ; i < len(r.Moments) && r.Moments[i].Lap <= lap+1; i++ {
		if r.Moments[i].Complete() {
			return &r.Moments[i]
		}
	}
	return nil
}

// Latest returns the last moment, nil if there is none.
func (r *Race) Latest() *Moment {
	if len(r.Moments) == 0 {
		return nil
	}
	return &r.Moments[len(r.Moments)-1]
}

// LapTime is the time of the fastest of the last laps.
func (r *Race) LapTime() time.Duration {
	fastest := time.Duration(0)
	for i := max(1, len(r.Moments)-3); i < len(r.Moments); i++ {
		a, b := &r.Moments[i-1], &r.Moments[i]
		if lap := b.Seen().Sub(a.Seen()) / time.Duration(b.Lap-a.Lap); fastest == 0 || lap < fastest {
			fastest = lap
		}
	}
	return cmp.Or(fastest, usual)
}

// ValidUntil is the instant from which the latest observation is stale. It is zero before the first one and after the
// end, when nothing more is expected.
func (r *Race) ValidUntil() time.Time {
	if r.State == Waiting || r.State == Ended {
		return time.Time{}
	}
	if r.State == Stopped {
		return r.Seen.Add(FreshStopped)
	}
	return r.Seen.Add(max(Fresh, 2*r.LapTime()))
}

// Reduce makes the race from its observations, judged by the race that they belong to. It depends only on their set:
// neither order nor repetition matters. Source times order the observations. Laps never fall: an observation of an
// earlier lap than one before it is left out. Of several observations of a lap the earliest whole one counts.
//
// The race runs from its first phase or lap on. It is suspended until a source says that it resumed, or until the
// leader has completed two more laps. After the end only the order at the flag may still come, unless a person
// reopens the race.
func Reduce(observations []Stored, of Fixture) Race { return reduce(observations, of).Race }

func reduce(observations []Stored, of Fixture) *reduction {
	sorted := inOrder(observations)
	r := &reduction{Race: Race{State: Waiting}, of: of, reopened: -1}
	for i := range sorted {
		switch o := &sorted[i]; {
		case o.Released:
			if r.aside != nil {
				r.order(r.aside)
			}
			r.aside = nil
		case o.Phase != "":
			r.phase(o)
		case !o.Hand && byHand(sorted, o.Received):
			r.aside = o
		default:
			r.order(o)
		}
	}
	if len(sorted) > 0 && r.State != Ended {
		r.Hand = byHand(sorted, slices.MaxFunc(sorted, func(a, b Stored) int { return a.Received.Compare(b.Received) }).Received)
	}
	switch {
	case r.early != nil:
		r.Held = r.hold("over", "the leader has completed "+strconv.Itoa(r.Lap)+" of "+strconv.Itoa(r.distance())+" laps", "--phase over")
	case r.held != nil:
		r.Held = r.hold("lap "+strconv.Itoa(r.held.Lap), r.why, fmt.Sprintf("--lap %d --order CODES", r.held.Lap))
	}
	return r
}

// byHand says whether an order by hand counted at an instant instead of a source's order.
func byHand(sorted []Stored, at time.Time) bool {
	counts, since, seq := false, time.Time{}, int64(0)
	for i := range sorted {
		if h := &sorted[i]; (h.Released || h.Hand && h.Lap > 0) && !h.Received.After(at) && cmp.Or(h.Received.Compare(since), cmp.Compare(h.Seq, seq)) >= 0 {
			counts, since, seq = !h.Released, h.Received, h.Seq
		}
	}
	return counts
}

// inOrder returns the observations by the instant that they show, each once. Their bytes decide between equal
// instants, so that the order is that of the set.
func inOrder(observations []Stored) []Stored {
	text := func(o Stored) []byte {
		text, err := json.Marshal(o.Observation)
		if err != nil {
			panic("BUG: live: an observation without a JSON form: " + err.Error())
		}
		return text
	}
	byInstant := func(a, b Stored) int { return cmp.Or(a.Seen().Compare(b.Seen()), a.Received.Compare(b.Received)) }
	sorted := slices.SortedFunc(slices.Values(observations), func(a, b Stored) int {
		if order := byInstant(a, b); order != 0 { // nearly always, and a text takes long
			return order
		}
		return cmp.Or(bytes.Compare(text(a), text(b)), cmp.Compare(a.Seq, b.Seq))
	})
	return slices.CompactFunc(sorted, func(a, b Stored) bool { return byInstant(a, b) == 0 && bytes.Equal(text(a), text(b)) })
}
