package almanac

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"gridcast/builder/ledger"
	"gridcast/builder/names"
	"gridcast/builder/season"
)

// ChampionshipDecision is a decision about a championship, as it counts in the tables of a season: one of the ledger, or
// a fact of the archive. A fact of the archive has no EventID, no Actor but ledger.ArchiveActor and no instant.
type ChampionshipDecision struct {
	ledger.ChampionshipDecision

	Round *Round // of Session; nil if the archive no longer has it: then the decision counts from the first round on
}

// begins returns the start of the first round that the decision counts in; zero without a Round.
func (d *ChampionshipDecision) begins() time.Time {
	if d.Round == nil {
		return time.Time{}
	}
	return d.Round.Start
}

// counts reports whether the decision counts in the table after a round.
func (d *ChampionshipDecision) counts(after *Round) bool { return !d.begins().After(after.Start) }

// Is reports whether the decision is about a competitor. A decision without an engine is about each engine of a team.
func (d *ChampionshipDecision) Is(constructors bool, competitor string, engine season.EngineID) bool {
	return d.Constructors == constructors && d.Competitor == competitor && (d.Engine == "" || d.Engine == engine)
}

// Entry returns the number of the entry with which a team stands in the table after a round; 0 if the team has only one
// in the season.
func (y *Year) Entry(team season.TeamID, after *Round) (entry int) {
	all := y.Decisions()
	for i := range all {
		if d := &all[i]; d.NewEntry && d.Competitor == string(team) {
			entry = max(entry, 1)
			if d.counts(after) {
				entry++
			}
		}
	}
	return entry
}

// decisionsOf returns the decisions that stand about the championships of a season: first those that the archive knows,
// then those of the ledger in its order.
func decisionsOf(year int, rounds []*Round, s *ledger.Fold) []ChampionshipDecision {
	all := append(archived(year, rounds, false), archived(year, rounds, true)...)
	for _, d := range s.Championship(year) {
		decision := ChampionshipDecision{ChampionshipDecision: d}
		for _, r := range rounds {
			if r.Session == d.Session {
				decision.Round = r
			}
		}
		all = append(all, decision)
	}
	return all
}

// firstSums is the first season in which every result counted, so that the source's table shows decisions.
const firstSums = 1991

// reasons names the decisions of the past. The archive knows each of them from the tables of its source.
var reasons = map[string]string{
	"1995 benetton":           "fuel of another specification in Brazil: the constructors' points of that race were taken",
	"1995 williams":           "fuel of another specification in Brazil: the constructors' points of that race were taken",
	"1997 michael-schumacher": "excluded for the collision in the European Grand Prix",
	"2000 mclaren":            "a seal was missing in Austria: the constructors' points of the winner were taken",
	"2007 mclaren":            "excluded for the possession of confidential documents of Ferrari",
	"2018 force-india":        "the team changed its owner: its entry was excluded, and it entered anew",
	"2020 racing-point":       "brake ducts designed by another team",
}

// archived returns the decisions that the archive knows about a championship: where the source's table departs from the
// results for which the archive vouches. Before firstSums it returns none.
func archived(year int, rounds []*Round, constructors bool) (all []ChampionshipDecision) {
	if year < firstSums {
		return nil
	}
	ours := slices.DeleteFunc(slices.Clone(rounds), func(r *Round) bool { return !r.vouchable() })
	for _, d := range departures(ours, constructors, nil) {
		reason := cmp.Or(reasons[fmt.Sprint(year, " ", d.Competitor)], "as the table of the source has it")
		all = append(all, ChampionshipDecision{ledger.ChampionshipDecision{
			Championship: d.Championship, Session: d.from.Session, Actor: ledger.ArchiveActor, Reason: reason,
		}, d.from})
	}
	return all
}

// departure is a difference between the source's table and its results, from a round on.
type departure struct {
	ledger.Championship

	from *Round
}

// departures compares the source's tables after these rounds, in order of their start, with the sum of its results and of
// the decisions that are known. A departure begins with the round after which the table shows it.
func departures(rounds []*Round, constructors bool, known []ChampionshipDecision) (all []departure) {
	sum, departed := map[season.Competitor]float64{}, map[season.Competitor]float64{}
	excluded, twice := map[season.Competitor]bool{}, map[season.Competitor]int{}
	if len(rounds) > 0 {
		for _, row := range rounds[len(rounds)-1].Facts.Standings(constructors) {
			twice[row.Competitor]++
		}
	}
	for _, r := range rounds {
		before := maps.Clone(sum)
		for _, row := range slices.Concat(r.Facts.Results, r.Facts.SprintResults) {
			sum[row.Competitor(constructors)] += row.Points
		}
		listed := map[season.Competitor]bool{}
		for _, row := range r.Facts.Standings(constructors) {
			k := row.Competitor
			if listed[k] {
				continue // an entry that ended: the first row is the one that goes on
			}
			listed[k] = true
			want, out := sum[k], excluded[k]
			for i := range known {
				if d := &known[i]; d.counts(r) && d.Is(constructors, k.ID, k.Engine) {
					if want += d.Points; d.NewEntry {
						want -= d.endedWith(rounds, known, k.Engine)
					}
					out = out || d.Excluded
				}
			}
			is := ledger.Championship{Constructors: constructors, Competitor: k.ID, Engine: k.Engine}
			switch difference := row.Points - want; {
			case row.Position == 0 && want > 0:
				if excluded[k] = true; !out {
					is.Excluded = true
					all = append(all, departure{is, r})
				}
			case equal(difference, departed[k]):
			case twice[k] > 1 && equal(difference, -before[k]):
				departed[k], is.NewEntry = difference, true
				all = append(all, departure{is, r})
			default:
				is.Points, departed[k] = difference-departed[k], difference
				all = append(all, departure{is, r})
			}
		}
	}
	return all
}

// equal reports whether two sums of points are the same. Their order of addition may differ.
func equal(x, y float64) bool { return math.Abs(x-y) < 1e-9 }

// endedWith returns the points of a team before a decision counts, by the source's results of these rounds and the known
// decisions.
func (d *ChampionshipDecision) endedWith(rounds []*Round, known []ChampionshipDecision, engine season.EngineID) (points float64) {
	for i := range known {
		if o := &known[i]; o.Is(true, d.Competitor, engine) && o.begins().Before(d.begins()) {
			points += o.Points
		}
	}
	for _, r := range rounds {
		for _, row := range slices.Concat(r.Facts.Results, r.Facts.SprintResults) {
			if !d.counts(r) && string(row.Team) == d.Competitor && row.Engine == engine {
				points += row.Points
			}
		}
	}
	return points
}

// maxOffered is the number of competitors whose points a table may change by decisions. A table that departs from the
// results of more of them lags behind, or is wrong.
const maxOffered = 2

// Offer is a decision that a source's table shows and that nobody has entered.
type Offer struct {
	ledger.Championship

	Name string // of the competitor
	From *Round // the first round after which the table shows it
}

// Offers returns the decisions of a season that only the source's tables show. The rounds are all of the season. A
// table counts only if the source's results up to it are the verified ones.
func Offers(rounds []*Round) (offers []Offer) {
	if len(rounds) == 0 || !season.PointsAdd(rounds[0].Year) {
		return nil
	}
	counted := counted(rounds[0].Year, rounds)
	if i := slices.IndexFunc(counted, func(r *Round) bool { return !r.Facts.Finished() || r.Differs() }); i >= 0 {
		counted = counted[:i]
	}
	known := decisionsOf(rounds[0].Year, rounds, rounds[0].state)
	entered := func(d ChampionshipDecision) bool { return d.EventID != "" }
	for _, constructors := range []bool{false, true} {
		shown := departures(counted, constructors, slices.DeleteFunc(slices.Clone(known), entered))
		var of []Offer
		departed := map[string]bool{} // competitors
		for _, d := range departures(counted, constructors, known) {
			if !slices.ContainsFunc(shown, func(o departure) bool { return o.Competitor == d.Competitor && o.Engine == d.Engine }) {
				continue // the source only lacks a decision that a person entered
			}
			i := slices.IndexFunc(of, func(o Offer) bool {
				return o.Competitor == d.Competitor && o.Engine == d.Engine && o.Points != 0 && d.Points != 0
			})
			if departed[d.Competitor] = true; i >= 0 {
				of[i].Points += d.Points // a table that went back, or changed again
				continue
			}
			of = append(of, Offer{d.Championship, d.from.competitor(constructors, d.Competitor), d.from})
		}
		of = slices.DeleteFunc(of, func(o Offer) bool { return !o.Excluded && !o.NewEntry && equal(o.Points, 0) })
		if len(departed) <= maxOffered {
			offers = append(offers, of...)
		}
	}
	return offers
}

// Offers returns the decisions of the season that only the source's tables show: see the function Offers.
func (y *Year) Offers() []Offer { return Offers(y.Rounds) }

// String describes the offer as the clause of a sentence.
func (o *Offer) String() string {
	return fmt.Sprintf("the source's table of the %s of %d has %s %s from the %s on, and no race shows it",
		ChampionshipName(o.Constructors), o.From.Year, o.Name, &o.Championship, o.From.Facts.Name)
}

// ChampionshipName names a championship in texts for people, and in the API.
func ChampionshipName(constructors bool) string {
	if constructors {
		return "constructors"
	}
	return "drivers"
}

func (r *Round) competitor(constructors bool, id string) string {
	if constructors {
		return r.Team(season.TeamID(id)).Name
	}
	return r.Driver(season.DriverID(id)).Name
}

// ErrNoCompetitor says that nobody of a name takes part in a championship.
var ErrNoCompetitor = errors.New("no such competitor")

// Competitor returns the driver or team of a season by identifier, code or name. The error wraps ErrNoCompetitor and names
// the nearest known identifier.
func (y *Year) Competitor(constructors bool, text string) (id, name string, err error) {
	known := map[string]string{} // names by identifier
	for _, r := range y.Rounds {
		note := func(driver season.DriverID, team season.TeamID, _ season.EngineID, _ time.Time) {
			id := string(driver)
			if constructors {
				id = string(team)
			}
			known[id] = r.competitor(constructors, id)
		}
		r.Facts.References(note)
		for _, row := range slices.Concat(r.Valid(), r.Sprint()) {
			note(row.Driver, row.Team, row.Engine, r.Start)
		}
	}
	spellings := func(id string) []string { return []string{id, known[id], y.Codes()[season.DriverID(id)]} } // a team has no code
	ids := slices.Sorted(maps.Keys(known))
	for _, id := range ids {
		if slices.ContainsFunc(spellings(id), func(as string) bool { return as != "" && strings.EqualFold(as, text) }) {
			return id, known[id], nil
		}
	}
	if len(ids) == 0 {
		return "", "", fmt.Errorf("%w: the %s of %d are not known yet", ErrNoCompetitor, ChampionshipName(constructors), y.Year)
	}
	return "", "", fmt.Errorf("%w: %q is not among the %s of %d%s", ErrNoCompetitor, text, ChampionshipName(constructors), y.Year,
		names.DidYouMean(names.Nearest(text, len(text), ids, spellings)))
}
