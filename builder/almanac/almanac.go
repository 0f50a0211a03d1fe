// Package almanac joins the facts of the archive with the decisions of the ledger. It alone knows
// the state of every round at an instant, the part of it that may be published, the due work, and the
// possible decisions of an operator. The form on the wire is not its concern.
//
// Join makes the whole almanac, Rounds only the rounds of some seasons, which costs a hundredth.
// The package has no clock: the instant comes from the view. It does not repeat a rule of the ledger:
// a decision is allowed if the ledger would accept its event.
package almanac

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"gridcast/builder/ledger"
	"gridcast/builder/season"
)

// Almanac is everything that may be published at an instant. It is immutable and safe for concurrent use.
type Almanac struct {
	At      time.Time
	Current int     // the season to look ahead to, see ahead; 0 if no season is known
	Years   []*Year // ascending
	Grid    []GridEntry

	view    *season.View
	state   *ledger.Fold
	digests func() map[int]Digest // by year
	results sync.Map              // of Shared in this almanac, by resultKey
	earlier Results
}

// Results are results of Shared that a later almanac may use.
//
// Cache, by the digest of the season: counting the races of all seasons takes 80 ms of each build.
type Results map[any]any

// resultKey identifies a result of a type by the inputs that it was made from.
type resultKey[T any] struct {
	year   int
	inputs Digest
}

// Shared returns the result of count for a season. The first call for a season and a type counts, and later calls get
// the same result, because several documents are made from it. Nobody may change it. count uses nothing but the season.
func Shared[T any](a *Almanac, y *Year, count func(y *Year) T) T {
	key := resultKey[T]{year: y.Year, inputs: a.digests()[y.Year]}
	once, found := a.earlier[key]
	if !found {
		once = sync.OnceValue(func() T { return count(y) })
	}
	once, _ = a.results.LoadOrStore(key, once)
	return once.(func() T)() //nolint:forcetypeassert // a key has results of one type
}

// Reuse lets Shared find the results of another almanac. Call it before the first Shared.
func (a *Almanac) Reuse(earlier Results) { a.earlier = earlier }

// Results returns all results of Shared so far.
func (a *Almanac) Results() Results {
	results := Results{}
	a.results.Range(func(key, once any) bool {
		results[key] = once
		return true
	})
	return results
}

// Log returns the changes of published rounds in the order in which the ledger has them. Later ones only follow.
func (a *Almanac) Log() []ledger.LoggedEvent { return a.state.Log() }

// Lasting returns the identifier that a driver keeps for ever.
func (a *Almanac) Lasting(driver season.DriverID) string { return string(a.state.Lasting(driver)) }

// Aliases returns the current identifier of every earlier identifier of a driver.
func (a *Almanac) Aliases() map[season.DriverID]season.DriverID { return a.state.Aliases() }

// Facts returns the facts behind the almanac.
func (a *Almanac) Facts() season.View {
	return *a.view
}

// Year is one season. The functions compute their value on the first call and keep it. It is read only.
type Year struct {
	Year         int
	Rounds       []*Round // in order of their start
	Drivers      func() []DriverStanding
	Constructors func() []ConstructorStanding
	Progress     func() []Championship         // after each counted round, in order of their start
	Decisions    func() []ChampionshipDecision // those that stand about the championships
	Codes        func() map[season.DriverID]string
}

// Join makes the almanac of v.At from the view and from the ledger folded up to that instant. If years
// are given, it holds only those seasons. It leaves out rounds without a session key, and seasons
// without any round that has one: they are published once the ledger has assigned a key.
func Join(v *season.View, s *ledger.Fold, years ...int) *Almanac {
	a := &Almanac{At: v.At, view: v, state: s}
	for i := range v.Seasons {
		facts := &v.Seasons[i]
		if len(years) > 0 && !slices.Contains(years, facts.Year) {
			continue
		}
		all := join(v, s, facts)
		slices.SortStableFunc(all, byStart) // the calendar numbers a moved round later
		rounds := slices.DeleteFunc(slices.Clone(all), func(r *Round) bool { return r.Session == 0 })
		if len(rounds) == 0 && len(facts.Rounds) > 0 {
			continue
		}
		codes := func() map[season.DriverID]string { return nil }
		if len(rounds) > 0 {
			codes = rounds[0].codes
		}
		verified := sync.OnceValue(func() []*Round { return counted(facts.Year, rounds) })
		decided := sync.OnceValue(func() []ChampionshipDecision { return decisionsOf(facts.Year, rounds, s) })
		a.Years = append(a.Years, &Year{
			Year: facts.Year, Rounds: rounds, Codes: codes,
			Decisions:    decided,
			Drivers:      sync.OnceValue(func() []DriverStanding { return driverStandings(v, facts, rounds, verified(), decided()) }),
			Constructors: sync.OnceValue(func() []ConstructorStanding { return constructorStandings(v, facts, rounds, verified(), decided()) }),
			Progress: sync.OnceValue(func() []Championship {
				progress := make([]Championship, len(verified()))
				for i, r := range verified() {
					sofar := verified()[:i+1]
					progress[i] = Championship{r, driverStandings(v, facts, rounds, sofar, decided()), constructorStandings(v, facts, rounds, sofar, decided())}
				}
				return progress
			}),
		})
	}
	a.digests = sync.OnceValue(a.makeDigests)
	a.Current = a.ahead()
	a.Grid = a.latestGrid()
	return a
}

// Rounds returns the rounds of the seasons from a year on, by season and in calendar order, as
// Join makes them, and also the rounds without a session key: their Session is 0.
func Rounds(v *season.View, s *ledger.Fold, from int) []*Round {
	var all []*Round
	for i := range v.Seasons {
		if v.Seasons[i].Year >= from {
			all = append(all, join(v, s, &v.Seasons[i])...)
		}
	}
	return all
}

func join(v *season.View, s *ledger.Fold, facts *season.Season) []*Round {
	rounds := make([]*Round, len(facts.Rounds))
	spoken := sync.OnceValue(func() []season.DriverID { return spokenOf(rounds...) })
	codes := sync.OnceValue(func() map[season.DriverID]string { return v.Codes(facts.Year, spoken()...) })
	for i := range rounds {
		r := locate(v, s, facts.Year, &facts.Rounds[i])
		rounds[i], r.spoken, r.codes = r, spoken, codes
		r.Circuit = v.Circuits[r.Facts.Circuit]
		r.Provisional = r.Facts.Provisional() && r.Record.Override.Start.IsZero()
		r.Pick, r.LivePick = r.Record.Pick, r.Record.LivePick(ScoredCheckpoint)
		if verified := r.Record.Result(); verified != nil {
			r.Result = &verified.Classification
		} else if r.vouchable() {
			r.Result = &ledger.Classification{Rows: Rows(r.Facts.Results)} // the archive vouches
		}
		r.State = r.stateAt(v.At)
	}
	return rounds
}

// locate returns a round with its ledger record and the start that follows from it.
func locate(v *season.View, s *ledger.Fold, year int, facts *season.Round) *Round {
	r := &Round{Year: year, Facts: facts, view: v, state: s}
	r.Session, _ = s.Key(year, facts.GrandPrix)
	r.Record, _ = s.Record(r.Session) // empty for a round without a key
	r.Record.Revisions = withTeams(r.Record.Revisions, v.Aliases)
	r.Start = r.Record.Start(facts.StartsAt())
	return r
}

// spokenOf lists the drivers in all picks and results of the rounds, also in those that no longer count.
func spokenOf(rounds ...*Round) []season.DriverID {
	var drivers []season.DriverID
	for _, r := range rounds {
		for _, p := range []*ledger.FrozenPick{r.Pick, r.LivePick} {
			if p != nil {
				drivers = append(drivers, p.P1, p.P2, p.P3)
				for _, c := range p.Chances {
					drivers = append(drivers, c.Driver)
				}
			}
		}
		var rows []ledger.Row
		for _, v := range r.Record.Revisions { // a later one leaves the codes of an earlier one
			rows = slices.Concat(rows, v.Rows, v.Sprint)
		}
		for _, row := range slices.Concat(rows, r.Valid(), r.Sprint()) {
			drivers = append(drivers, row.Driver)
		}
		for _, p := range r.Record.Voided {
			drivers = append(drivers, p.P1, p.P2, p.P3)
		}
		for _, w := range r.Record.Withdrawals { // possibly of a voided pick, whose first three keep their codes
			drivers = append(drivers, w.Driver)
		}
	}
	return drivers
}

// Year returns the season of a year that the almanac holds.
func (a *Almanac) Year(year int) (*Year, bool) {
	i, ok := slices.BinarySearchFunc(a.Years, year, func(y *Year, year int) int { return cmp.Compare(y.Year, year) })
	if !ok {
		return nil, false
	}
	return a.Years[i], true
}

// Round returns the round of a session key; the error wraps ledger.ErrUnknownSession if no known
// round has it.
func (a *Almanac) Round(session int64) (*Round, error) {
	if y, ok := a.Year(ledger.YearOf(session)); ok {
		for _, r := range y.Rounds {
			if r.Session == session {
				return r, nil
			}
		}
	}
	return nil, unknownSession(session)
}

func unknownSession(session int64) error {
	return fmt.Errorf("%w %d; gridcast rounds list --year YEAR shows the keys", ledger.ErrUnknownSession, session)
}

// awaitedFor is the time for which a result without a source keeps its season the one to look ahead to.
const awaitedFor = 14 * 24 * time.Hour

// ahead returns the season of the earliest round that is scheduled, live, or has awaited its result for less than two
// weeks; else the last season.
func (a *Almanac) ahead() int {
	for r := range a.All() {
		if r.State == Scheduled || r.State == Live || r.State == AwaitingResult && a.At.Sub(r.WindowEnd()) < awaitedFor {
			return r.Year
		}
	}
	if len(a.Years) == 0 {
		return 0
	}
	return a.Years[len(a.Years)-1].Year
}

// Past returns the season to look back at: the latest with a result; Current if there is none.
func (a *Almanac) Past() int {
	for _, y := range slices.Backward(a.Years) {
		if slices.ContainsFunc(y.Rounds, func(r *Round) bool { return r.Result != nil }) {
			return y.Year
		}
	}
	return a.Current
}

// Rounds returns the rounds of a year in calendar order; of the current season if year is 0.
func (a *Almanac) Rounds(year int) []*Round {
	if year == 0 {
		year = a.Current
	}
	return a.where(func(r *Round) bool { return r.Year == year })
}

// Coming returns the scheduled rounds, all of which start after the almanac's instant, over
// season boundaries, in order of their start. The first is the next race.
func (a *Almanac) Coming() []*Round {
	return a.inOrder(func(r *Round) bool { return r.State == Scheduled && a.At.Before(r.Start) })
}

// Waiting returns the rounds that have started and have no verified result, oldest first.
func (a *Almanac) Waiting() []*Round {
	return a.inOrder(func(r *Round) bool { return r.State == Live || r.State == AwaitingResult })
}

// Verified returns the rounds whose result is verified by the ledger, the last decided first.
func (a *Almanac) Verified() []*Round {
	verified := a.where(func(r *Round) bool { return r.Record.Result() != nil })
	slices.SortStableFunc(verified, func(x, y *Round) int {
		return cmp.Or(y.Record.Result().At.Compare(x.Record.Result().At), cmp.Compare(y.Session, x.Session))
	})
	return verified
}

// Differing returns the rounds with a verified result from which the source now differs,
// oldest first: an operator must correct it, or did so before the source.
func (a *Almanac) Differing() []*Round {
	return a.inOrder((*Round).Differs)
}

func (a *Almanac) inOrder(want func(*Round) bool) []*Round {
	found := a.where(want)
	slices.SortStableFunc(found, byStart)
	return found
}

// All yields the rounds of all seasons, in their order.
func (a *Almanac) All() iter.Seq[*Round] {
	return func(yield func(*Round) bool) {
		for _, y := range a.Years {
			for _, r := range y.Rounds {
				if !yield(r) {
					return
				}
			}
		}
	}
}

func (a *Almanac) where(want func(*Round) bool) []*Round {
	var found []*Round
	for r := range a.All() {
		if want(r) {
			found = append(found, r)
		}
	}
	return found
}

func byStart(x, y *Round) int { return x.Start.Compare(y.Start) }

// DueAt returns the next instant at which a status changes by itself, or the zero time if there is
// none. Until then a build with the same facts and ledger gives the same almanac.
func (a *Almanac) DueAt() time.Time {
	var due time.Time
	for _, r := range a.where(func(r *Round) bool { return r.State == Scheduled || r.State == Live }) {
		moves := r.Start
		if _, ends, dayOnly := r.day(); r.State == Live {
			moves = r.WindowEnd()
		} else if dayOnly {
			moves = ends
		}
		if due.IsZero() || moves.Before(due) {
			due = moves
		}
	}
	return due
}

// Raced returns the view with the results that only the ledger has (see Entered), and without the races that the ledger
// says have not taken place: of rounds that are postponed or cancelled, or whose end, by the valid start, is ahead. A
// current source has no result of them, but an archive of the past has, when it is replayed with
// other decisions. Nobody may predict from such a result or verify it.
func Raced(v *season.View, s *ledger.Fold) *season.View {
	raced := Entered(v, s)
	for i := range raced.Seasons {
		year := &raced.Seasons[i]
		for j := range year.Rounds {
			known := locate(v, s, year.Year, &year.Rounds[j])
			if !known.Facts.Finished() || known.Record.Override.Status == ledger.AsPlanned && !v.At.Before(known.End()) {
				continue
			}
			year.Rounds = slices.Clone(year.Rounds) // of the view: seldom more than once
			r := &year.Rounds[j]
			r.Results, r.FastestLaps, r.PitStops, r.DriverStandings, r.TeamStandings = nil, nil, nil, nil, nil
		}
	}
	return raced
}

// GridEntry is one present driver: an entry of the latest round with a finished qualifying.
type GridEntry struct {
	Driver season.Driver
	Code   string
	Team   season.Team
	Colour string
	Number int
}

// latestGrid returns the grid of the latest round with entries, by team and number.
func (a *Almanac) latestGrid() []GridEntry {
	v := a.view
	facts, round := v.LatestEntries()
	if round == nil {
		return nil
	}
	var codes map[season.DriverID]string
	if y, ok := a.Year(facts.Year); ok {
		codes = y.Codes()
	} else {
		codes = v.Codes(facts.Year)
	}
	var grid []GridEntry
	for _, e := range round.Entries {
		driver := v.Drivers[e.Driver]
		driver.HeadshotURL = v.Headshot(e.Driver, codes[e.Driver], facts.Year)
		grid = append(grid, GridEntry{
			Driver: driver, Code: codes[e.Driver],
			Team: v.Teams[e.Team], Colour: facts.Colours[e.Team], Number: e.Number,
		})
	}
	slices.SortStableFunc(grid, func(a, b GridEntry) int {
		return cmp.Or(cmp.Compare(a.Team.Name, b.Team.Name), cmp.Compare(a.Number, b.Number))
	})
	return grid
}

// withTeams returns the revisions of a result with the present identifiers of teams.
func withTeams(revisions []ledger.Verification, aliases map[season.TeamID]season.TeamID) []ledger.Verification {
	if len(aliases) == 0 {
		return revisions
	}
	renamed := slices.Clone(revisions)
	for i := range renamed {
		for _, rows := range []*[]ledger.Row{&renamed[i].Rows, &renamed[i].Sprint} {
			*rows = slices.Clone(*rows)
			for j := range *rows {
				row := &(*rows)[j]
				row.Team = cmp.Or(aliases[row.Team], row.Team)
			}
		}
	}
	return renamed
}

// Digest identifies within one process everything that the documents of a season are made from:
//
//   - the facts that the view shows of the season and of those before it: see season.View.Digests;
//   - the session keys, picks, results and decisions that the ledger records for its rounds;
//   - the drivers, teams and engines in those records, which the facts may lack;
//   - the names that drivers had before;
//   - the decisions about the championships;
//   - whether the archive vouches for a result, and whether the source differs from it;
//   - the state of each round.
//
// The instant and the head of the ledger do not count. One program renders seasons with
// equal digests to equal documents.
type Digest [sha256.Size]byte

// Digests returns the digest of each season of a.Years, by year.
func (a *Almanac) Digests() map[int]Digest { return a.digests() }

func (a *Almanac) makeDigests() map[int]Digest {
	digests := map[int]Digest{}
	facts := map[int]season.Digest{}
	for i, d := range a.view.Digests() {
		facts[a.view.Seasons[i].Year] = d
	}
	for _, y := range a.Years {
		digests[y.Year] = a.digest(y, facts[y.Year])
	}
	return digests
}

func (a *Almanac) digest(y *Year, facts season.Digest) Digest {
	h := sha256.New()
	encoder := json.NewEncoder(h)
	write := func(inputs any) {
		if err := encoder.Encode(inputs); err != nil {
			panic("BUG: the inputs of a season cannot be written as JSON: " + err.Error())
		}
	}
	write([]any{facts, a.state.Aliases(), a.state.AllChampionship(y.Year)})
	for _, r := range y.Rounds {
		inputs := struct {
			Session int64
			Vouched bool
			Differs bool
			State   State
			Record  ledger.RoundRecord
			Drivers []season.Driver
			Teams   []season.Team
			Engines []season.Engine
		}{Session: r.Session, Vouched: r.vouchable(), Differs: r.Differs(), State: r.State, Record: r.Record}
		if !r.Vouched() { // a vouched result is part of the facts, and its round has no other record
			for _, id := range append(spokenOf(r), r.foreseen()...) {
				inputs.Drivers = append(inputs.Drivers, r.view.Driver(id))
			}
		}
		for _, v := range r.Record.Revisions {
			for _, row := range slices.Concat(v.Rows, v.Sprint) {
				inputs.Teams = append(inputs.Teams, r.view.Team(row.Team))
				inputs.Engines = append(inputs.Engines, r.view.Engines[row.Engine])
			}
		}
		write(inputs)
	}
	return Digest(h.Sum(nil))
}
