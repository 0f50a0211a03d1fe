package console

import (
	"slices"
	"strings"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/builder/stewards"
	"gridcast/deploy/operator"
	"gridcast/deploy/view"
)

// waitingResult is a race without a verified result: the pick beside the source's classification.
type waitingResult struct {
	view.Round

	Rows   []view.Result // empty: the source has nothing yet
	Digest string        // of the shown classification, which the action must match
	Hit    bool          // the pick names the winner
	finishing
}

func newWaiting(r *almanac.Round) waitingResult {
	w := waitingResult{Round: view.RoundOf(r), finishing: newFinishing(stewards.Session{Round: r})}
	rows := r.Source()
	if rows == nil {
		w.Order = started(r)
		return w
	}
	w.Digest = operator.SeenRound(r)
	w.Rows = view.Compare(r, nil, rows)
	w.Hit = r.Pick != nil && almanac.Podium(rows)[0] == r.Pick.P1
	return w
}

// differingResult is a verified result, of any season, that differs from the source's present
// classification.
type differingResult struct {
	view.Round

	Tables []differingRows
}

// differingRows are the drivers with different rows in the verified classification and in the source's, of the
// race or the sprint.
type differingRows struct {
	Caption string
	Rows    []view.Result
}

func newDiffering(r *almanac.Round) differingResult {
	d := differingResult{Round: view.RoundOf(r)}
	add := func(caption string, counts, source []ledger.Row) {
		rows := slices.DeleteFunc(view.Compare(r, counts, source), func(row view.Result) bool { return !row.Changed })
		if len(rows) > 0 {
			d.Tables = append(d.Tables, differingRows{caption, rows})
		}
	}
	add("Race", r.Valid(), r.Source())
	if sprint := r.SourceSprint(); sprint != nil {
		add("Sprint", r.Sprint(), sprint)
	}
	return d
}

func newResults(a *almanac.Almanac) resultsSection {
	missing, waiting := view.Waiting(a)
	differing := a.Differing()
	s := resultsSection{AllWaiting: len(waiting), AllDiffering: len(differing)}
	earlier, shown := view.Recent(waiting)
	if len(earlier) > 0 {
		s.Earlier = view.Results(earlier)
	}
	if len(waiting) > 0 {
		s.All = view.Results(waiting)
	}
	s.Waiting, s.Missing = view.Each(shown, newWaiting), view.Each(missing, newWaiting)
	_, differing = view.Recent(differing)
	s.Differing = view.Each(differing, newDiffering)
	return s
}

// seasonSection is a season's rounds with picks and results.
type seasonSection struct {
	scores
	Year   int
	Years  []int // all seasons, the latest first
	Rounds []seasonRound

	Decisions []decisionRow          // about the championships, that stand
	Offers    []almanac.Offer        // that only the source's table shows
	Counted   []almanac.Championship // the tables, the latest first
}

type decisionRow struct {
	almanac.ChampionshipDecision

	Number int
	Name   string // of the championship
	From   string // the round
}

type scores struct {
	Races  int
	Hits   int
	Podium int // picked drivers that finished on the podium
}

// add counts the pick of a round. It returns whether the winner was picked, and the picked drivers on the podium; scored
// is false if the round has no pick, or no verified result.
func (s *scores) add(r *almanac.Round) (hit bool, onPodium int, scored bool) {
	if r.Pick == nil || r.Result == nil {
		return false, 0, false
	}
	hit, onPodium = almanac.Podium(r.Result.Rows).Score(almanac.Picked(r.Pick))
	s.Races++
	s.Podium += onPodium
	if hit {
		s.Hits++
	}
	return hit, onPodium, true
}

// WinnerPct is the winner hit rate.
func (s scores) WinnerPct() string { return share(s.Hits, s.Races) }

// PodiumPct is the podium accuracy.
func (s scores) PodiumPct() string { return share(s.Podium, 3*s.Races) }

// share is a part of a whole in percent; a dash while there is no whole.
func share(part, whole int) string {
	if whole == 0 {
		return "–"
	}
	return view.Percent(float64(part) / float64(whole))
}

type seasonRound struct {
	view.Round

	Result  []string // codes of the podium, once verified
	Scored  bool
	Hit     bool
	OnPod   int        // picked drivers on the podium
	Differs bool       // the source has another classification than the verified one
	Sprint  *finishing // nil: there was none, or it is not verified
	finishing
}

// finishing is the initial order in a form for a race or a sprint.
type finishing struct {
	Order []string // codes of placed drivers in valid or known order; without a result, of all who take part
	Names string   // codes and names of all who took part, for sortable lists
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

// started lists the drivers who take part, in starting order as far as it is known.
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

// newSeason returns the season of a year; the current one if the almanac has none of that year.
func newSeason(a *almanac.Almanac, year int) seasonSection {
	s := seasonSection{Year: a.Current}
	for _, y := range slices.Backward(a.Years) {
		s.Years = append(s.Years, y.Year)
	}
	if slices.Contains(s.Years, year) {
		s.Year = year
	}
	for _, r := range a.Rounds(s.Year) {
		row := seasonRound{Round: view.RoundOf(r), Differs: r.Differs(), finishing: newFinishing(stewards.Session{Round: r})}
		if r.Sprint() != nil {
			sprint := newFinishing(stewards.Session{Round: r, Sprint: true})
			row.Sprint = &sprint
		}
		if r.Result != nil {
			podium := almanac.Podium(r.Result.Rows)
			row.Result = view.Each(podium[:], r.Code)
		}
		row.Hit, row.OnPod, row.Scored = s.add(r)
		s.Rounds = append(s.Rounds, row)
	}
	if y, ok := a.Year(s.Year); ok {
		for i, d := range y.Decisions() {
			shown := decisionRow{ChampionshipDecision: d, Number: i + 1, Name: almanac.ChampionshipName(d.Constructors)}
			if d.Round != nil {
				shown.From = d.Round.Facts.Name
			}
			s.Decisions = append(s.Decisions, shown)
		}
		s.Offers, s.Counted = y.Offers(), slices.Clone(y.Progress())
		slices.Reverse(s.Counted)
	}
	return s
}
