package render

import (
	"cmp"
	_ "embed"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gridcast/builder/almanac"
	"gridcast/builder/season"
	"gridcast/schemas/wire"
)

// layoutsText has F1DB's layouts, a line each: circuit, length of a lap in km, first year with that length, identifier
// of the layout, turns and direction. A test makes it from the release.
//
//go:embed layouts.txt
var layoutsText string

// layout is a line of layoutsText.
type layout struct {
	lengthKm  float64
	since     int
	id        string
	turns     int
	direction string
}

// layouts are the lines of layoutsText by circuit, in order of the year.
var layouts = sync.OnceValue(func() map[season.CircuitID][]layout {
	all := map[season.CircuitID][]layout{}
	for line := range strings.Lines(layoutsText) {
		cells := strings.Fields(line)
		length, err := strconv.ParseFloat(cells[1], 64)
		since, err2 := strconv.Atoi(cells[2])
		turns, err3 := strconv.Atoi(cells[4])
		if err := cmp.Or(err, err2, err3); err != nil {
			panic("BUG: builder/render/layouts.txt: " + err.Error())
		}
		id := season.CircuitID(cells[0])
		all[id] = append(all[id], layout{length, since, cells[3], turns, cells[5]})
	}
	return all
})

// layoutOf returns the layout of a round: that of its circuit and length. The zero layout is unknown.
func layoutOf(r *almanac.Round) (found layout) {
	for _, l := range layouts()[r.Circuit.ID] {
		if l.since <= r.Year && math.Abs(l.lengthKm-r.Facts.CourseKm) < .0005 {
			found = l
		}
	}
	return found
}

func circuits(a *almanac.Almanac, year int) []wire.CircuitRecord {
	by := map[season.CircuitID]*wire.CircuitRecord{}
	for r := range a.All() {
		if year != 0 && r.Year != year || r.State == almanac.Cancelled {
			continue
		}
		c := by[r.Circuit.ID]
		if c == nil {
			c = &wire.CircuitRecord{ID: string(r.Circuit.ID), TimeZone: season.TimeZone(r.Circuit.ID)}
			by[r.Circuit.ID] = c
		}
		addRound(c, r)
		if r.Result != nil {
			addRace(c, r)
		}
	}
	all := make([]wire.CircuitRecord, 0, len(by))
	for _, c := range by {
		slices.SortStableFunc(c.Winners, func(x, y wire.CircuitWinner) int {
			return cmp.Or(cmp.Compare(y.Wins, x.Wins), cmp.Compare(y.LastSession, x.LastSession))
		})
		c.LapRecord = c.Layouts[len(c.Layouts)-1].LapRecord
		all = append(all, *c)
	}
	slices.SortFunc(all, func(x, y wire.CircuitRecord) int { return cmp.Compare(x.ID, y.ID) })
	return all
}

// addRound notes the place and the layout of a later round.
func addRound(c *wire.CircuitRecord, r *almanac.Round) {
	known := layoutOf(r)
	c.Name, c.Locality, c.Country = r.Circuit.Name, r.Circuit.Locality, r.Circuit.Country
	c.LengthKm, c.Turns, c.Direction, c.Street = r.Facts.CourseKm, known.turns, known.direction, r.Facts.Street
	l := wire.CircuitLayout{LayoutID: known.id}
	if i := slices.IndexFunc(c.Layouts, func(o wire.CircuitLayout) bool {
		return o.LayoutID == known.id && (known.id != "" || o.LengthKm == c.LengthKm)
	}); i >= 0 {
		l = c.Layouts[i]
		c.Layouts = slices.Delete(c.Layouts, i, i+1)
	}
	l.LengthKm, l.Turns, l.Direction = c.LengthKm, c.Turns, c.Direction
	if !slices.Contains(l.Years, r.Year) {
		l.Years = append(l.Years, r.Year)
	}
	c.Layouts = append(c.Layouts, l)
}

func addRace(c *wire.CircuitRecord, r *almanac.Round) {
	c.RacesHeld++
	c.FirstSession, c.LastSession = cmp.Or(c.FirstSession, r.Session), r.Session
	for _, row := range r.Result.Rows {
		if row.Position != 1 {
			continue
		}
		id := r.Lasting(row.Driver)
		i := slices.IndexFunc(c.Winners, func(w wire.CircuitWinner) bool { return w.DriverID == id })
		if i < 0 {
			i, c.Winners = len(c.Winners), append(c.Winners, wire.CircuitWinner{DriverID: id})
		}
		w := &c.Winners[i]
		w.Name, w.Wins, w.LastSession = r.Driver(row.Driver).Name, w.Wins+1, r.Session
	}
	if len(r.Facts.FastestLaps) == 0 {
		return
	}
	// The first has the fastest. The lap of a disqualified driver may be last, and does not count.
	lap, on := r.Facts.FastestLaps[0], &c.Layouts[len(c.Layouts)-1]
	if ms := lap.Time.Milliseconds(); ms > 0 && (on.LapRecord == nil || ms < on.LapRecord.TimeMS) {
		on.LapRecord = &wire.LapRecord{TimeMS: ms, DriverID: r.Lasting(lap.Driver), Name: r.Driver(lap.Driver).Name, SessionKey: r.Session, Lap: lap.Lap}
	}
}
