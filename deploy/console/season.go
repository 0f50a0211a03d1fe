package console

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/render"
	"gridcast/builder/season"
	"gridcast/builder/stewards"
	"gridcast/deploy/operator"
)

// comingRace is the next one.
type comingRace struct {
	Session     int64
	Name        string
	Circuit     string
	Start       time.Time
	Provisional bool
	Pick        *pickView
	PickDue     time.Time // when the pick is frozen, as far as known
}

// pickView is a pick as people read it.
type pickView struct {
	Places     [3]string // driver codes
	Confidence string
	FrozenAt   time.Time
	Model      string
}

func newPick(r *almanac.Round) *pickView {
	if r.Pick == nil {
		return nil
	}
	return &pickView{
		Places:     [3]string{r.Code(r.Pick.P1), r.Code(r.Pick.P2), r.Code(r.Pick.P3)},
		Confidence: percent(r.Pick.WinProbability), FrozenAt: r.Pick.FrozenAt, Model: r.Pick.Model,
	}
}

func percent(p float64) string { return fmt.Sprintf("%.1f %%", 100*p) }

// nextRace is the scheduled round that starts first; nil if none is known.
func nextRace(a *almanac.Almanac) *comingRace {
	coming := a.Coming()
	if len(coming) == 0 {
		return nil
	}
	next := coming[0]
	return &comingRace{
		Session: next.Session, Name: next.Facts.Name, Circuit: next.Circuit.Name, Start: next.Start,
		Provisional: next.Provisional, Pick: newPick(next), PickDue: next.Facts.GridKnownAt(),
	}
}

// waitingResult is a race that has begun and has no verified result: the pick beside what the
// source says.
type waitingResult struct {
	Session int64
	Name    string
	Year    int
	Start   time.Time
	State   string
	Pick    *pickView
	Rows    []classified // empty: the source has nothing yet
	Digest  string       // of what is shown, to verify just this
	Hit     bool         // the pick names the winner
	finishing
}

// classified is a row of a classification.
type classified struct {
	Place  string
	Code   string
	Name   string
	Team   string
	Points string
	Picked string // the place the driver was picked for
}

func newWaiting(r *almanac.Round) waitingResult {
	w := waitingResult{
		Session: r.Session, Name: r.Facts.Name, Year: r.Year, Start: r.Start, State: stateWord(r.State), Pick: newPick(r),
	}
	w.finishing = newFinishing(stewards.Session{Round: r})
	rows := r.Source()
	if rows == nil {
		w.Order = started(r)
		return w
	}
	w.Digest = operator.SeenRound(r)
	for _, row := range rows {
		c := classified{
			Place: "–", Code: r.Code(row.Driver), Name: r.Driver(row.Driver).Name, Team: r.Team(row.Team).Name,
			Points: fmt.Sprintf("%g", row.Points),
		}
		if row.Position > 0 {
			c.Place = strconv.Itoa(row.Position)
		}
		if place := r.PickedFor(row.Driver); place > 0 {
			c.Picked = fmt.Sprintf("P%d", place)
			w.Hit = w.Hit || place == 1 && row.Position == 1
		}
		w.Rows = append(w.Rows, c)
	}
	return w
}

// differingResult is a verified result, of any season, of which the source has another classification by now.
type differingResult struct {
	Session int64
	Name    string
	Year    int
	Tables  []differingRows
}

// differingRows is what the race or the sprint has otherwise.
type differingRows struct {
	Caption string
	Rows    []differingRow
}

type differingRow struct{ Code, Name, Counts, Source string }

func newDiffering(r *almanac.Round) differingResult {
	d := differingResult{Session: r.Session, Name: r.Facts.Name, Year: r.Year}
	add := func(caption string, counts, source []ledger.Row) {
		t := differingRows{Caption: caption}
		for _, p := range almanac.Compare(counts, source) {
			if p.Changed() {
				t.Rows = append(t.Rows, differingRow{
					r.Code(p.Driver), r.Driver(p.Driver).Name, almanac.PlaceAndPoints(p.Before), almanac.PlaceAndPoints(p.After),
				})
			}
		}
		if len(t.Rows) > 0 {
			d.Tables = append(d.Tables, t)
		}
	}
	add("Race", r.Valid(), r.Source())
	if sprint := r.SourceSprint(); sprint != nil {
		add("Sprint", r.Sprint(), sprint)
	}
	return d
}

// stateWord is how people call a state.
func stateWord(s almanac.State) string {
	if s == almanac.AwaitingResult {
		return "awaiting result"
	}
	return string(render.Status(s))
}

// seasonView is the current season's rounds with picks and results.
type seasonView struct {
	Year   int
	Rounds []seasonRound
	Scored int
	Hits   int
	Podium int // picked drivers that finished on the podium
}

// WinnerPct is the winner hit rate.
func (s seasonView) WinnerPct() string { return share(s.Hits, s.Scored) }

// PodiumPct is the podium accuracy.
func (s seasonView) PodiumPct() string { return share(s.Podium, 3*s.Scored) }

// share is a part of a whole in percent; a dash while there is no whole.
func share(part, whole int) string {
	if whole == 0 {
		return "–"
	}
	return percent(float64(part) / float64(whole))
}

// seasonRound is a round of the season's table.
type seasonRound struct {
	Number  int
	Session int64
	Name    string
	Start   time.Time
	State   string
	Pick    *pickView
	Result  []string // codes of the podium, once verified
	Scored  bool
	Hit     bool
	OnPod   int // picked drivers on the podium
	Allowed []almanac.Decision
	Differs bool       // the source has another classification than the verified one
	Sprint  *finishing // nil: there was none, or it is not verified
	finishing
}

// finishing is the order of a race or a sprint, as a form begins with it.
type finishing struct {
	Order []string // codes of those who have a place, as it counts now or as known; else of those who take part
	Names string   // codes and names of those who took part, for the list that is dragged
}

func newFinishing(s stewards.Session) finishing {
	var f finishing
	for _, row := range s.Counts() {
		if row.Position > 0 && !row.Shared {
			f.Order = append(f.Order, s.Round.Code(row.Driver))
		}
	}
	var names []string
	for _, row := range s.TookPart() {
		if !row.Shared {
			names = append(names, s.Round.Code(row.Driver)+" "+s.Round.Driver(row.Driver).Name)
		}
	}
	f.Names = strings.Join(names, "|")
	return f
}

// started lists those who take part, in the order in which they start as far as that is known: to be
// put in finishing order.
func started(r *almanac.Round) []string {
	var order []string
	add := func(d season.DriverID) {
		if code := r.Code(d); code != "" && !slices.Contains(order, code) {
			order = append(order, code)
		}
	}
	for _, slot := range r.Facts.Grid {
		add(slot.Driver)
	}
	for _, row := range r.Facts.Qualifying {
		add(row.Driver)
	}
	for _, e := range r.Facts.Entries {
		add(e.Driver)
	}
	return order
}

func newSeason(a *almanac.Almanac) seasonView {
	s := seasonView{Year: a.Current}
	for _, r := range a.Rounds(0) {
		row := seasonRound{
			Number: r.Facts.Number, Session: r.Session, Name: r.Facts.Name, Start: r.Start, State: stateWord(r.State), Pick: newPick(r), Allowed: r.Allowed(), Differs: r.Differs(),
			finishing: newFinishing(stewards.Session{Round: r}),
		}
		if r.Sprint() != nil {
			sprint := newFinishing(stewards.Session{Round: r, Sprint: true})
			row.Sprint = &sprint
		}
		if r.Result != nil {
			podium := almanac.Podium(r.Result.Rows)
			for _, d := range podium {
				row.Result = append(row.Result, r.Code(d))
			}
			if r.Pick != nil {
				row.Scored = true
				row.Hit, row.OnPod = podium.Score(almanac.Picked(r.Pick))
				s.Scored++
				s.Podium += row.OnPod
				if row.Hit {
					s.Hits++
				}
			}
		}
		s.Rounds = append(s.Rounds, row)
	}
	return s
}
