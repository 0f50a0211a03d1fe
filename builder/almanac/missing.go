package almanac

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"gridcast/builder/ledger"
	"gridcast/builder/season"
)

// The waits after which a missing fact is overdue.
const (
	qualifyingGrace = 30 * time.Minute    // after the end of qualifying
	gridBefore      = 30 * time.Minute    // before lights out, for the grid and the pick
	hourBefore      = 14 * 24 * time.Hour // before the day of a race of unknown hour
	resultGrace     = 2 * time.Hour       // after the end of the race
)

// MissingFact is a fact that the archive should have by now.
type MissingFact struct {
	Code    MissingCode `json:"code"`                 // fixed, for programs
	Since   time.Time   `json:"since"`                // overdue since, race time
	Until   time.Time   `json:"-"`                    // nobody waits for it after this race time; zero: until it comes
	Session int64       `json:"session_key,omitzero"` // the key of its round; 0: no particular round
	Name    string      `json:"-"`                    // of that round
	Urgent  bool        `json:"urgent"`               // the pick or lights out is at stake: an operator must act now
	Text    string      `json:"text"`                 // the missing fact, for people: a sentence without its full stop
	Fix     string      `json:"mend"`                 // the command that fixes it
	Sums    MissingCode `json:"-"`                    // the kind of facts that it sums up; empty: none
}

// MissingCode names a kind of missing fact.
type MissingCode string

// The kinds of missing facts.
const (
	NoFutureRound    MissingCode = "no_future_round"
	ArchiveOld       MissingCode = "archive_old" // it lacks facts that a season of this year should have by now
	HourUnknown      MissingCode = "hour_unknown"
	QualifyingMissed MissingCode = "qualifying_overdue"
	GridMissed       MissingCode = "grid_overdue"
	PickMissing      MissingCode = "pick_missing"
	ResultMissed     MissingCode = "result_overdue"
	SettingsUnread   MissingCode = "settings_unreadable" // no fact of the archive: the builder adds it
	DecisionWaits    MissingCode = "decision_waits"      // the source's table of a championship shows one that nobody has entered
)

// MissingCodes lists all kinds of missing facts.
var MissingCodes = []MissingCode{NoFutureRound, ArchiveOld, HourUnknown, QualifyingMissed, GridMissed, PickMissing, ResultMissed, SettingsUnread, DecisionWaits}

// Missing lists the facts that the archive of v will lack at the instant by unless they come: first those of
// the whole archive, then by round. A fact may be overdue only from an instant after v.At
// on, and may no longer be overdue at the instant by.
//
//   - a round to come;
//   - the calendar of this year, or the results of two races and more;
//   - the hour of a race, from 14 days before it;
//   - qualifying, from 30 minutes after its end until the start, while there is neither a grid nor
//     a frozen pick;
//   - the grid, from 30 minutes before the start until then; urgent while no pick is frozen;
//   - the pick, from 30 minutes before the start until a result is verified, unless the race began before the
//     ledger was opened; always urgent;
//   - a result, from 2 hours after the end of the race until one is verified;
//   - a decision about a championship that only the source's table shows.
//
// Postponed and cancelled rounds lack nothing.
func Missing(v *season.View, s *ledger.Fold, by time.Time) []MissingFact {
	m := missing{ledger: s, by: by}
	var last *Round // of the rounds that take place
	coming := false
	seasons := map[int][]*Round{}
	for _, r := range Rounds(v, s, v.At.UTC().Year()-1) {
		seasons[r.Year] = append(seasons[r.Year], r)
		if r.Off() {
			continue
		}
		if last == nil || !r.Start.Before(last.Start) {
			last = r
		}
		coming = coming || r.State == Scheduled
		m.round(r)
	}
	for _, year := range slices.Sorted(maps.Keys(seasons)) {
		m.decisions(year, seasons[year])
	}
	return append(m.whole(v, last, coming), m.facts...)
}

// missing collects the missing facts about rounds.
type missing struct {
	ledger  *ledger.Fold
	by      time.Time
	facts   []MissingFact
	results []*Round // whose result is overdue
}

// round adds the facts that a round lacks.
func (m *missing) round(r *Round) {
	miss := func(code MissingCode, since time.Time, urgent bool, fix, text string) {
		if m.by.Before(since) || r.Session == 0 { // the next build gives it a key
			return
		}
		var until time.Time
		if r.State == Scheduled && code != PickMissing {
			until = r.Start.UTC()
		}
		m.facts = append(m.facts, MissingFact{
			Code: code, Since: since.UTC(), Until: until, Session: r.Session, Name: r.Facts.Name, Urgent: urgent,
			Text: fmt.Sprintf(text, fmt.Sprintf("%s of %d", r.Facts.Name, r.Year)), Fix: strings.ReplaceAll(fix, "KEY", strconv.FormatInt(r.Session, 10)),
		})
	}
	if r.Pick == nil && r.Result == nil && r.Start.After(m.ledger.OpenedAt()) {
		if r.State == Scheduled {
			miss(PickMissing, r.Start.Add(-gridBefore), true, "gridcast grid set KEY --file FILE", "the %s has no pick")
		} else {
			miss(PickMissing, r.Start.Add(-gridBefore), true, "gridcast results verify KEY", "the %s began without a pick and stays without one")
		}
	}
	switch {
	case r.State == Scheduled:
		if r.Provisional {
			miss(HourUnknown, r.Start.Add(-hourBefore), false,
				"gridcast rounds move KEY --start INSTANT --reason TEXT", "no source names the hour of the %s")
		}
		known := len(r.Facts.Grid) > 0
		if !known && r.Pick == nil && len(r.Facts.Qualifying) == 0 {
			miss(QualifyingMissed, r.Facts.QualifyingKnownAt().Add(qualifyingGrace), true,
				"gridcast source pull, or gridcast qualifying set KEY --order CODES --reason TEXT", "qualifying of the %s is over and its result has not come")
		}
		if !known {
			miss(GridMissed, r.Start.Add(-gridBefore), r.Pick == nil,
				"gridcast source pull, or gridcast grid set KEY --order CODES --reason TEXT", "the grid of the %s has not come")
		}
	case r.Result == nil && !r.Facts.Finished():
		miss(ResultMissed, r.End().Add(resultGrace), false,
			"gridcast source pull, or gridcast results enter KEY --file FILE --reason TEXT", "the result of the %s has not come")
		if !m.by.Before(r.End().Add(resultGrace)) {
			m.results = append(m.results, r)
		}
	}
}

// decisions adds the decisions about the championships of a season that only the source's table shows.
func (m *missing) decisions(year int, rounds []*Round) {
	for _, o := range Offers(rounds) {
		flag := ""
		if o.Constructors {
			flag = " --constructors"
		}
		m.facts = append(m.facts, MissingFact{
			Code: DecisionWaits, Since: o.From.End().UTC(), Session: o.From.Session, Name: o.From.Facts.Name, Text: o.String(),
			Fix: fmt.Sprintf("gridcast championship accept %d %s%s --reason TEXT", year, o.Competitor, flag),
		})
	}
}

// whole returns the facts that the archive as a whole lacks. last is the last round that takes place, nil if there is none.
func (m *missing) whole(v *season.View, last *Round, coming bool) (facts []MissingFact) {
	if !coming {
		fact := MissingFact{Code: NoFutureRound, Text: "no race to come is known", Fix: "gridcast source pull, or gridcast archive import f1db PATH"}
		if last != nil {
			fact.Since = last.Start.UTC()
		} else if n := len(v.Seasons); n > 0 {
			fact.Since = season.BeginsAt(v.Seasons[n-1].Year + 1)
		}
		facts = append(facts, fact)
	}
	switch current := v.CurrentSeason(); {
	case current != 0 && current < v.At.UTC().Year():
		facts = append(facts, MissingFact{
			Code: ArchiveOld, Since: season.BeginsAt(current + 1), Fix: "gridcast source pull, or gridcast archive import",
			Text: fmt.Sprintf("the archive ends with the season %d", current),
		})
	case len(m.results) > 1:
		first := m.results[0]
		facts = append(facts, MissingFact{
			Code: ArchiveOld, Sums: ResultMissed, Since: m.results[1].End().Add(resultGrace).UTC(), Fix: "gridcast source pull, or gridcast archive import",
			Text: fmt.Sprintf("the archive lacks the results of %d races, the first of them the %s of %d", len(m.results), first.Facts.Name, first.Year),
		})
	}
	return facts
}

// NextChange returns the instant at which something about a season is next expected to change. An instant before the
// almanac's is overdue: the change may come at any moment. It is zero if
// nothing is expected any more, as of a season with all results verified. The year 0 stands for
// all seasons and for the calendar that is not known yet.
func (a *Almanac) NextChange(year int) time.Time {
	var next time.Time
	expect := func(at time.Time) {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	for _, r := range a.where(func(r *Round) bool { return year == 0 || r.Year == year }) {
		switch r.State {
		case Scheduled:
			expect(r.Start)
			if r.Pick == nil {
				expect(r.FreezeBy())
			}
			if known := r.Facts.GridKnownAt(); len(r.Facts.Entries) == 0 || a.At.Before(known) {
				expect(known)
			}
		case Live:
			expect(r.End())
		case AwaitingResult:
			expect(r.WindowEnd())
		}
	}
	if n := len(a.Years); year == 0 && n > 0 {
		expect(season.CalendarKnownAt(a.Years[n-1].Year + 1))
	}
	return next
}
