// Package view describes rounds, results, versions and keys for people: as the rows that command line and
// console both show.
package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/edge/keys"
	"gridcast/snapshots"
)

// Ended ends a text with a full stop, unless it is a question.
func Ended(text string) string {
	if strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}

// Sentence capitalises a text.
func Sentence(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// Each applies of to each element of a list and returns the results.
func Each[T, R any](list []T, of func(T) R) []R {
	results := make([]R, len(list))
	for i, v := range list {
		results[i] = of(v)
	}
	return results
}

// First joins the first names of a list, and counts the others: "a, b and 3 more".
func First(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// State names the state of a round.
func State(s almanac.State) string {
	return map[almanac.State]string{
		almanac.Scheduled: "scheduled", almanac.Live: "live", almanac.AwaitingResult: "awaiting its result",
		almanac.Finished: "finished", almanac.Postponed: "postponed", almanac.Cancelled: "cancelled",
	}[s]
}

// Count combines a number with a noun: one as it is, more after the number: "One change", "2 changes".
func Count(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// Results counts the results of rounds, which are in calendar order: "768 results of 1950 to 2006".
func Results(rounds []*almanac.Round) string {
	return fmt.Sprintf("%s of %s", Count(len(rounds), "1 result", "results"), span(rounds[0].Year, rounds[len(rounds)-1].Year))
}

// span names one year or the years from one to another.
func span(from, to int) string {
	if from == to {
		return strconv.Itoa(to)
	}
	return fmt.Sprintf("%d to %d", from, to)
}

// Shown is the number of rounds or facts of a kind that people see one by one. The earlier ones are counted.
const Shown = 5

// Waiting splits the rounds without a verified result, oldest first: the source lacks the first ones, and an operator
// can verify the others.
func Waiting(a *almanac.Almanac) (missing, waiting []*almanac.Round) {
	for _, r := range a.Waiting() {
		if r.Source() == nil {
			missing = append(missing, r)
		} else {
			waiting = append(waiting, r)
		}
	}
	return missing, waiting
}

// Recent splits rounds, oldest first, into those to count and the last ones, which are shown.
func Recent(rounds []*almanac.Round) (earlier, shown []*almanac.Round) {
	n := max(0, len(rounds)-Shown)
	return rounds[:n], rounds[n:]
}

// Missing sums up missing facts of a kind in one fact for people. unanswered says that no source has answered yet.
func Missing(facts []almanac.MissingFact, unanswered bool) []almanac.MissingFact {
	var order []almanac.MissingCode
	kinds := map[almanac.MissingCode][]almanac.MissingFact{}
	for _, fact := range facts {
		if kinds[fact.Code] == nil {
			order = append(order, fact.Code)
		}
		kinds[fact.Code] = append(kinds[fact.Code], fact)
	}
	var summed []almanac.MissingFact
	for _, code := range order {
		of := kinds[code]
		first, last := of[0], of[len(of)-1]
		if len(kinds[first.Sums]) > 0 {
			continue
		}
		if len(of) > 1 {
			first.Text = fmt.Sprintf("%d %s of %s are missing, %s to %s", len(of), missingNouns[code], span(ledger.YearOf(first.Session), ledger.YearOf(last.Session)), first.Name, last.Name)
			first.Fix = strings.ReplaceAll(first.Fix, strconv.FormatInt(first.Session, 10), "KEY")
			first.Urgent = slices.ContainsFunc(of, func(fact almanac.MissingFact) bool { return fact.Urgent })
		}
		if unanswered && code != almanac.PickMissing {
			first.Text += "; the source has not answered yet"
		}
		summed = append(summed, first)
	}
	return summed
}

var missingNouns = map[almanac.MissingCode]string{
	almanac.HourUnknown: "hours", almanac.QualifyingMissed: "qualifying results", almanac.GridMissed: "grids", almanac.PickMissing: "picks", almanac.ResultMissed: "results",
}

// Pick is a frozen pick.
type Pick struct {
	Places     [3]string // drivers by code
	Confidence string
	FrozenAt   time.Time
}

// PickOf returns the pick of a round; nil if it has none.
func PickOf(r *almanac.Round) *Pick {
	if r.Pick == nil {
		return nil
	}
	return &Pick{
		Places:     [3]string{r.Code(r.Pick.P1), r.Code(r.Pick.P2), r.Code(r.Pick.P3)},
		Confidence: Percent(r.Pick.WinProbability), FrozenAt: r.Pick.FrozenAt,
	}
}

// Round is a round in a table.
type Round struct {
	Session      int64
	Year, Number int
	Name         string
	Circuit      string
	Start        time.Time
	Provisional  bool // the hour of the start is assumed
	State        string
	Pick         *Pick     // nil: none yet
	PickDue      time.Time // when the pick is frozen, as far as known
	Allowed      []almanac.Decision
	Sessions     []string // of the weekend, that can be cancelled
	Cancelled    []string // of the weekend
}

// RoundOf describes a round.
func RoundOf(r *almanac.Round) Round {
	row := Round{
		Session: r.Session, Year: r.Year, Number: r.Facts.Number, Name: r.Facts.Name, Circuit: r.Circuit.Name, Start: r.Start.UTC(),
		Provisional: r.Provisional, State: State(r.State), Pick: PickOf(r), PickDue: r.Facts.GridKnownAt(), Allowed: r.Allowed(),
	}
	for _, s := range r.Facts.Sessions {
		switch {
		case s.Cancelled:
			row.Cancelled = append(row.Cancelled, string(s.Kind))
		case !r.Facts.TookPlace(s.Kind):
			row.Sessions = append(row.Sessions, string(s.Kind))
		}
	}
	return row
}

// Percent formats a probability.
func Percent(p float64) string { return fmt.Sprintf("%.1f %%", 100*p) }

// Result is a row of a classification, next to another classification and to the pick.
type Result struct {
	Place, Code, Name, Team string
	Points                  string // of After
	Picked                  string // such as P1; empty: not picked
	Before, After           string // place and points in both classifications
	Change                  string // of the points
	Changed                 bool
}

// Compare lists the drivers of two classifications of a round, in the order of after. Drivers that only before
// has come last.
func Compare(r *almanac.Round, before, after []ledger.Row) []Result {
	return Each(almanac.Compare(before, after), func(p almanac.Pair) Result {
		row := Result{
			Code: r.Code(p.Driver), Name: r.Driver(p.Driver).Name, Before: almanac.PlaceAndPoints(p.Before), After: almanac.PlaceAndPoints(p.After),
			Change: fmt.Sprintf("%+g", p.Points()), Changed: p.Changed(),
		}
		if place := r.PickedFor(p.Driver); place > 0 {
			row.Picked = "P" + strconv.Itoa(place)
		}
		if p.After == nil {
			row.Team = r.Team(p.Before.Team).Name
		} else {
			row.Team, row.Place, row.Points = r.Team(p.After.Team).Name, "–", fmt.Sprintf("%g", p.After.Points)
			if p.After.Position > 0 {
				row.Place = strconv.Itoa(p.After.Position)
			}
		}
		return row
	})
}

// VersionRow is a row of the history of versions.
type VersionRow struct {
	snapshots.Summary

	State   string // its status, and its damage
	Because string
}

// VersionOf describes a version.
func VersionOf(s snapshots.Summary) VersionRow {
	v := VersionRow{Summary: s, State: string(s.Status), Because: s.Reason}
	if s.Held {
		v.State += ", held"
	}
	if s.Damage != "" {
		v.State += ", damaged: " + s.Damage
	}
	if s.RollbackOf > 0 {
		v.Because = fmt.Sprintf("rollback to %d: %s", s.RollbackOf, s.Reason)
	}
	return v
}

// KeyState names the state of a key.
func KeyState(k *keys.StoredKey, now time.Time) string {
	switch {
	case !k.Revoked.IsZero():
		return "revoked"
	case !k.Active(now):
		return "expired"
	}
	return "active"
}
