package sandbox

import (
	"time"

	"gridcast/schemas/catalog"
	"gridcast/snapshots"
	"gridcast/snapshots/clock"
)

// Hour is the real time of a weekend in the service. Tests replay faster.
const Hour = time.Hour

// weekend is a weekend of the timetable. The timetable is a function of real time, so that every scheduler and every
// restart has the same one.
type weekend struct {
	kind
	cycle  int64
	number int       // in the cycle, from 0
	begins time.Time // real time
	ends   time.Time // real time
}

// at returns the weekend that runs at an instant of real time, or the one that follows it by some weekends.
func at(now time.Time, length time.Duration, later int) weekend {
	n := now.UnixNano()/int64(length) + int64(later)
	begins := time.Unix(0, n*int64(length)).UTC()
	return weekend{
		kind: kinds[n%int64(len(kinds))], cycle: n / int64(len(kinds)), number: int(n % int64(len(kinds))),
		begins: begins, ends: begins.Add(length),
	}
}

func (w weekend) clock(lightsOut time.Time) (clock.Clock, error) {
	return clock.At(lightsOut.Add(before), w.begins, float64(duration)/float64(w.ends.Sub(w.begins)))
}

func (w weekend) entry() snapshots.SandboxWeekend {
	share := float64(-before) / float64(duration)
	return snapshots.SandboxWeekend{
		Kind: catalog.SandboxKinds[w.number].Name, BeginsAt: w.begins, EndsAt: w.ends,
		LightsOut: w.begins.Add(time.Duration(share * float64(w.ends.Sub(w.begins)))),
	}
}

// timetable returns the entries of a version: the weekend that runs, and as many as a cycle has after it.
func (w weekend) timetable() snapshots.Sandbox {
	s := snapshots.Sandbox{Cycle: w.cycle, Weekend: w.entry()}
	for later := range kinds {
		s.Next = append(s.Next, at(w.begins, w.ends.Sub(w.begins), later+1).entry())
	}
	return s
}
