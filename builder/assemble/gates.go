package assemble

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"gridcast/builder/season"
)

// Gate is a rule that a changed block must pass before it is applied. It is a label of metrics.
type Gate string

// The gates.
const (
	PositionsGate Gate = "positions"     // positions are unique and without a gap
	OnceGate      Gate = "once"          // a driver and a car appear once in a session
	OutcomeGate   Gate = "outcome"       // a driver without a position has no points
	PointsGate    Gate = "points"        // points follow from positions by the regulations of the year
	VerifiedGate  Gate = "verified"      // no driver of a known result disappears from it
	StartGate     Gate = "start"         // a start moves only within the limits for sources
	ShortGate     Gate = "short_grid"    // a grid has at least four fifths of the qualified drivers
	EarlyGate     Gate = "early"         // a session has no outcome before its start
	CarsGate      Gate = "cars"          // a driver has the team and the number of the qualifying or the grid applied before
	DerivedGate   Gate = "derived"       // entries follow from tables that are applied
	PastGate      Gate = "past"          // a known season gets no new round in the past
	RenameGate    Gate = "renamed_round" // a new Grand Prix does not take the day and circuit of an absent one
	ShrinkGate    Gate = "shrunken"      // a season does not lose many rounds at once
	BackGate      Gate = "back"          // a source does not step back behind the revision in use
	IdentityGate  Gate = "identity"      // a new identifier is no second name of a known driver, team, engine or circuit
	CodeGate      Gate = "code"          // a published code stays
	DisputeGate   Gate = "disputed"      // a person or an earlier source has another value
	TermsGate     Gate = "terms"         // the operator has accepted the terms of the source
	UnreadGate    Gate = "unread"        // each value of the block can be read, and each thing in it is known
	LedgerGate    Gate = "ledger"        // the ledger takes the event that follows; no person can accept another
)

// Gates returns all gates.
func Gates() []Gate {
	gates := []Gate{
		PositionsGate, OnceGate, OutcomeGate, PointsGate, VerifiedGate, StartGate, ShortGate, EarlyGate, CarsGate, DerivedGate, PastGate,
		RenameGate, ShrinkGate, BackGate, IdentityGate, CodeGate, DisputeGate, TermsGate, UnreadGate, LedgerGate,
	}
	for _, inv := range invariants {
		if !inv.waits {
			gates = append(gates, inv.name)
		}
	}
	return gates
}

// Refusal is the reason why a proposal is not applied.
type Refusal struct {
	Gate   Gate   `json:"gate"`
	Reason string `json:"reason"`
}

func (p *Proposal) refuse(g Gate, format string, args ...any) {
	p.Refused = append(p.Refused, Refusal{g, fmt.Sprintf(format, args...)})
}

// refusedByLedger holds a proposal, accepted or not, if the ledger refuses the event that follows from it.
func (a *assembly) refusedByLedger(p *Proposal) bool {
	reason, refused := a.Refused[p.ID]
	if refused {
		p.Accepted = false
		p.refuse(LedgerGate, "%s", reason)
	}
	return refused
}

// Limits for a source that moves a known start. A move beyond them waits for a person or for a second
// source. In May 2026 Miami was brought forward by three hours with eight hours of notice: that move
// passes. In November 2025 a mistake moved Las Vegas to the day before, into the past: that move waits.
const (
	maxMove   = 48 * time.Hour
	minNotice = time.Hour
)

// judgeBlock refuses a proposal for each gate that its block does not pass. after is the round with
// the proposed block.
func (j *judgement) judgeBlock(p *Proposal, after *season.Round) {
	j.judgeIdentity(p, after)
	switch p.Block {
	case Start:
		j.judgeStart(p, after)
	case Qualifying:
		j.judgeEarly(p, "qualifying", after.QualifyingStartsAt())
		judgeRows(p, "qualifying", after.Qualifying, false, qualifyingPlace)
	case Entries:
		judgeRows(p, "entries", after.Entries, false, func(row season.Entry) (season.DriverID, int) { return row.Driver, 0 })
		cars := make(map[int]season.DriverID)
		for _, row := range after.Entries {
			if other, ok := cars[row.Number]; ok && row.Number != 0 {
				p.refuse(OnceGate, "car %d belongs to both %s and %s", row.Number, other, row.Driver)
			}
			cars[row.Number] = row.Driver
		}
	case Grid:
		judgeRows(p, "grid", after.Grid, true, gridPlace)
		j.judgeShort(p, after)
	case Sprint:
		for _, session := range []struct {
			kind season.SessionKind
			rows int
		}{{season.SprintQualifying, len(after.SprintQualifying)}, {season.Sprint, len(after.SprintResults)}} {
			if s, _ := after.Session(session.kind); session.rows > 0 { // an unknown start is none to come
				j.judgeEarly(p, string(session.kind), s.Start)
			}
		}
		judgeRows(p, "sprint qualifying", after.SprintQualifying, false, qualifyingPlace)
		judgeRows(p, "sprint grid", after.SprintGrid, true, gridPlace)
		judgeClassification(p, "sprint", after.SprintResults, season.Awards(p.Year, p.GrandPrix, true))
		j.judgeCars(p, season.Section(season.Sprint), after.SprintResults, j.ours.SprintQualifying, j.ours.SprintGrid)
	case Result:
		j.judgeEarly(p, "race", j.lightsOut())
		var awards []season.Award // in earlier seasons cars and points were shared
		if season.PointsAdd(p.Year) {
			awards = season.Awards(p.Year, p.GrandPrix, false)
		}
		judgeClassification(p, "race", after.Results, awards)
		j.judgeDisappeared(p, after)
		j.judgeCars(p, season.ResultSection, after.Results, j.ours.Qualifying, j.ours.Grid)
	case Calendar:
		// Readers would see a race without a result.
		if at := j.theirs.StartsAt(); j.new && at.Before(j.Now) && j.document.Earlier[j.season.Year] {
			p.refuse(PastGate, "%s is new on %s, which is past: an earlier revision of %s had the season without it", j.theirs.Name, instant(at), j.document.Source)
		}
	}
	j.judgeWhole(p)
}

// judgeWhole refuses a block that breaks an invariant of its weekend, unless people entered it or another gate holds it.
func (j *judgement) judgeWhole(p *Proposal) {
	if j.may.archiveNames || j.season.Year < j.Since || len(p.Refused) > 0 {
		return
	}
	for i, r := range j.breaches()[p.Block] {
		if i == 0 {
			r.Reason += fmt.Sprintf(". If all of it is true: gridcast source accept %s --reason TEXT", p.ID)
		}
		p.refuse(r.Gate, "%s", r.Reason)
	}
}

// weekend returns the round with everything that the document says of it.
func (j *judgement) weekend() *weekend {
	w := &weekend{year: j.season.Year, round: *j.ours, before: j.ours, earlier: j.season.Rounds, circuits: j.out.Facts.Circuits}
	for _, b := range blocks {
		Copy(b, &w.round, j.theirs)
	}
	if j.may.addsEngines {
		addEngines(&w.round, j.season)
	}
	said, _ := j.document.Facts.Season(j.season.Year) // it has the round
	w.rounds = said.Rounds
	w.numbers = regularNumbers(j.out.Facts.Seasons, w.year)
	if s, ok := j.out.Facts.Season(w.year - 1); ok && len(s.Rounds) > 0 {
		w.last = &s.Rounds[len(s.Rounds)-1]
	}
	for _, s := range j.document.Sheets {
		if s.Year == w.year && s.GrandPrix == j.theirs.GrandPrix {
			w.sheets = append(w.sheets, s)
		}
	}
	w.began = slices.ContainsFunc(j.ours.Sessions, func(s season.Session) bool { return !s.Start.IsZero() && !j.Now.Before(s.Start) })
	return w
}

// judgeCars refuses a classification in which a driver has another team or number than in the qualifying or
// on the grid that were applied before: the source may have exchanged two drivers. It accepts a driver without a
// row in either, such as a substitute, and a number where none or an assumed one was known.
func (j *judgement) judgeCars(p *Proposal, section season.Section, rows []season.Result, qualifying []season.QualifyingRow, grid []season.GridSlot) {
	teams := make(map[season.DriverID]season.TeamID)
	for _, row := range qualifying {
		teams[row.Driver] = row.Team
	}
	for _, row := range grid {
		teams[row.Driver] = row.Team
	}
	numbers := make(map[season.DriverID]int) // of a driver who is there twice the last one
	for _, row := range j.sheet(section).Rows {
		numbers[row.Driver] = row.Number
	}
	for _, row := range rows {
		team, known := teams[row.Driver]
		if !known {
			continue
		}
		if team != row.Team && team != "" && row.Team != "" {
			p.refuse(CarsGate, "%s drives for %s and was in the car of %s before the race", row.Driver, row.Team, team)
			continue
		}
		number, entry := numbers[row.Driver], j.ours.Entry(row.Driver)
		if entry != nil && number != 0 && entry.Number != 0 && number != entry.Number && !j.assumed(entry) {
			p.refuse(CarsGate, "%s drives car %d and was in car %d before the race", row.Driver, number, entry.Number)
		}
	}
}

// sheet returns a table of the document's round. It is empty if the document lacks it.
func (j *judgement) sheet(section season.Section) season.Sheet {
	for _, s := range j.document.Sheets {
		if s.Year == j.season.Year && s.GrandPrix == j.theirs.GrandPrix && s.Section == section {
			return s
		}
	}
	return season.Sheet{}
}

// assumed reports whether the number of an entry was assumed for a list of drivers that a person entered. It is that of
// the driver's latest entry, and the driver may have another one since.
func (j *judgement) assumed(entry *season.Entry) bool {
	return slices.ContainsFunc(j.Documents, func(d Document) bool {
		r, ok := d.Facts.Round(j.season.Year, j.theirs.GrandPrix)
		if !ok || !d.Assumed {
			return false
		}
		assumed := r.Entry(entry.Driver)
		return assumed != nil && assumed.Number == entry.Number
	})
}

// judgeShort refuses a grid with less than four fifths of the qualified drivers, because the builder makes
// the pick of it at once. Without qualifying, it takes the number from the entries of the latest earlier round.
func (j *judgement) judgeShort(p *Proposal, after *season.Round) {
	expected, from := len(after.Qualifying), "qualifying"
	for _, year := range []int{p.Year - 1, p.Year} {
		s, ok := j.out.Facts.Season(year)
		if !ok || len(after.Qualifying) > 0 {
			continue
		}
		for i := range s.Rounds {
			if r := &s.Rounds[i]; len(r.Entries) > 0 && r.StartsAt().Before(after.StartsAt()) {
				expected, from = len(r.Entries), fmt.Sprintf("the %s of %d", r.Name, year)
			}
		}
	}
	if 5*len(after.Grid) < 4*expected {
		p.refuse(ShortGate, "the grid has %d drivers, but %s had %d", len(after.Grid), from, expected)
	}
}

// judgeDisappeared refuses a result without a driver of the verified result or of the archive's.
func (j *judgement) judgeDisappeared(p *Proposal, after *season.Round) {
	classified := slices.Clone(j.decided.Verified)
	for _, row := range j.ours.Results {
		if !slices.Contains(classified, row.Driver) {
			classified = append(classified, row.Driver)
		}
	}
	for _, driver := range classified {
		if !slices.ContainsFunc(after.Results, func(row season.Result) bool { return row.Driver == driver }) {
			p.refuse(VerifiedGate, "%s is in the known result and not in this one", driver)
		}
	}
}

// lightsOut is the valid start: the ledger's if it has one, else the archive's.
func (j *judgement) lightsOut() time.Time {
	if !j.decided.Start.IsZero() {
		return j.decided.Start
	}
	return j.ours.StartsAt()
}

func (j *judgement) judgeEarly(p *Proposal, session string, start time.Time) {
	if j.Now.Before(start) {
		p.refuse(EarlyGate, "%s starts at %s, %s from now: the start was brought forward, or this is not the outcome",
			session, instant(start), start.Sub(j.Now).Round(time.Minute))
	}
}

// judgeStart judges a move of lights out. A new round passes, because no client knows its start. So
// does a first hour, if the move is short and the start lies ahead.
func (j *judgement) judgeStart(p *Proposal, after *season.Round) {
	if j.new || j.seconded() {
		return
	}
	from, to := j.lightsOut(), after.StartsAt()
	if from.Equal(to) {
		return // the ledger already has this start
	}
	move := to.Sub(from)
	if j.ours.Provisional() && j.decided.Start.IsZero() && move.Abs() <= maxMove && j.Now.Before(to) {
		return
	}
	if j.decided.StartHeld && !j.may.movesHeldStart {
		p.refuse(DisputeGate, "a person set the start to %s", instant(from))
	}
	if move.Abs() > maxMove && !j.decided.Postponed {
		p.refuse(StartGate, "from %s to %s: a source may move it by %.0f hours at most", instant(from), instant(to), maxMove.Hours())
	}
	if to.Sub(j.Now) < minNotice {
		p.refuse(StartGate, "to %s: a source may move it to %.0f minutes from now at the earliest", instant(to), minNotice.Minutes())
	}
	for i := range j.season.Rounds {
		other := &j.season.Rounds[i]
		if other.GrandPrix == p.GrandPrix || j.decided.Postponed {
			continue
		}
		if at := other.StartsAt(); at.After(from) != at.After(to) {
			p.refuse(StartGate, "across the %s at %s", other.Name, instant(at))
		}
	}
}

// seconded reports whether another document has the same start.
func (j *judgement) seconded() bool {
	for _, d := range j.Documents {
		if d.Source == j.document.Source {
			continue
		}
		if r, ok := d.Facts.Round(j.season.Year, j.theirs.GrandPrix); ok && Has(Start, r) && Same(Start, j.theirs, r) {
			return true
		}
	}
	return false
}

func qualifyingPlace(row season.QualifyingRow) (season.DriverID, int) {
	return row.Driver, row.Position
}
func gridPlace(row season.GridSlot) (season.DriverID, int) { return row.Driver, row.Position }
func resultPlace(row season.Result) (season.DriverID, int) { return row.Driver, row.Position }

// judgeRows refuses a table with a driver twice, a position twice or a gap between positions.
// Position 0 means none. With emptySlots, positions may have gaps up to the number of rows: the slots
// of drivers in the pit lane stay empty.
func judgeRows[T any](p *Proposal, session string, rows []T, emptySlots bool, place func(T) (season.DriverID, int)) {
	drivers, positions := make(map[season.DriverID]bool), make(map[int]season.DriverID)
	last := 0
	for _, row := range rows {
		driver, position := place(row)
		if drivers[driver] {
			p.refuse(OnceGate, "%s has %s twice", session, driver)
		}
		drivers[driver] = true
		if position == 0 {
			continue
		}
		if other, ok := positions[position]; ok {
			p.refuse(PositionsGate, "%s has P%d twice, %s and %s", session, position, other, driver)
		}
		positions[position], last = driver, max(last, position)
	}
	if emptySlots && last <= len(rows) {
		return
	}
	for position := 1; position < last; position++ {
		if _, ok := positions[position]; !ok {
			p.refuse(PositionsGate, "%s has P%d but nobody in P%d", session, last, position)
			return
		}
	}
}

// judgeClassification refuses rows that break the order of positions. It also refuses points that fit
// none of the awards. Without an award it accepts all points.
func judgeClassification(p *Proposal, session string, rows []season.Result, awards []season.Award) {
	judgeRows(p, session, rows, false, resultPlace)
	for _, row := range rows {
		if row.Position == 0 && row.Points != 0 {
			p.refuse(OutcomeGate, "%s: %s is %s and has %g points", session, row.Driver, cmp.Or(string(row.Outcome), "without a place"), row.Points)
		}
	}
	if len(awards) == 0 || slices.ContainsFunc(awards, func(a season.Award) bool { return pointsFault(rows, a) == "" }) {
		return
	}
	p.refuse(PointsGate, "%s: %s", session, pointsFault(rows, awards[0]))
}

// pointsFault describes the rows with other points than the award gives. It is empty if all rows fit.
func pointsFault(rows []season.Result, award season.Award) string {
	var wrong []string
	taken := false // the point for the fastest lap
	for _, row := range rows {
		if row.Position == 0 {
			continue
		}
		fastestLap, ok := award.Gives(row.Position, row.Points)
		if !ok || fastestLap && taken {
			wrong = append(wrong, fmt.Sprintf("P%d %s has %g points, want %g", row.Position, row.Driver, row.Points, award.Place(row.Position)))
		}
		taken = taken || fastestLap
	}
	return strings.Join(wrong, "; ")
}
