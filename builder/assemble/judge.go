package assemble

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"gridcast/builder/season"
)

// assembly is one run of Assemble.
type assembly struct {
	*Input
	out Output
	// first is the first document that has a block and may apply it. Later documents yield to it or
	// dispute it.
	first map[BlockID]*Document
	// things are the drivers, teams, engines and circuits from a year on. They are counted again for each document.
	things map[int]*things
}

// judge compares a document with the seasons in use, applies the blocks that pass and reports the others.
func (a *assembly) judge(d *Document) {
	may := kinds[d.Kind]
	a.things = make(map[int]*things)
	if may.wholeSeasons {
		a.lose(d)
	}
	if may.applies {
		a.refuseUnread(d)
	}
	for i := range d.Facts.Seasons {
		theirs := &d.Facts.Seasons[i]
		if theirs.Year < d.From || theirs.Year > d.To {
			continue
		}
		ours, ok := a.out.Facts.Season(theirs.Year)
		if !ok {
			if !may.applies {
				continue
			}
			a.out.Facts.Seasons = append(a.out.Facts.Seasons, season.Season{Year: theirs.Year})
			ours = &a.out.Facts.Seasons[len(a.out.Facts.Seasons)-1]
		}
		absent := a.absent(d, ours, theirs)
		if may.wholeSeasons {
			for _, r := range absent {
				a.out.Missing = append(a.out.Missing, Missing{d.Source, ours.Year, r.GrandPrix})
			}
		}
		if may.comparesCalendars {
			a.compareCalendars(d, ours, theirs, absent)
		}
		for j := range theirs.Rounds {
			a.judgeRound(d, ours, &theirs.Rounds[j], absent)
			a.wait(d, ours, &theirs.Rounds[j])
		}
		if may.applies {
			colours := make(map[season.TeamID]string)
			maps.Copy(colours, ours.Colours)
			maps.Copy(colours, theirs.Colours)
			ours.Colours = colours
			if !slices.ContainsFunc(d.Unread, func(u season.Unread) bool { return u.Year == theirs.Year }) {
				a.doubt(d.Source, theirs)
			}
		}
	}
}

// absent returns our rounds of a season that a document does not have.
func (a *assembly) absent(d *Document, ours, theirs *season.Season) []*season.Round {
	var absent []*season.Round
	for i := range ours.Rounds {
		r := &ours.Rounds[i]
		if _, ok := theirs.Round(r.GrandPrix); ok {
			continue
		}
		if first, ok := a.first[BlockID{ours.Year, r.GrandPrix, Start}]; ok && kinds[first.Kind].keepsRounds && !kinds[d.Kind].comparesCalendars {
			continue
		}
		absent = append(absent, r)
	}
	return absent
}

// compareCalendars disputes the rounds that only one of two calendars has. More than maxVanished
// absent rounds are not disputed, because then the document covers only a part of the season.
func (a *assembly) compareCalendars(d *Document, ours, theirs *season.Season, absent []*season.Round) {
	dispute := func(r *season.Round, before, after string) {
		a.out.Disputed = append(a.out.Disputed, Proposal{
			ID: identity(ours.Year, r.GrandPrix, Calendar, r), Year: ours.Year, GrandPrix: r.GrandPrix, Block: Calendar,
			Source: d.Source, Revision: d.Revision, Lines: []Line{{About: "round", Was: before, Is: after}},
		})
	}
	if len(absent) <= maxVanished {
		for _, r := range absent {
			if !a.Decided(ours.Year, r.GrandPrix).Postponed {
				dispute(r, "on "+r.Date.Format(time.DateOnly)+" in our calendar", "not in the calendar of "+d.Source)
			}
		}
	}
	if kinds[d.Kind].addsRounds {
		return
	}
	for i := range theirs.Rounds {
		r := &theirs.Rounds[i]
		if _, ok := ours.Round(r.GrandPrix); !ok {
			dispute(r, "not in our calendar", "on "+r.Date.Format(time.DateOnly)+" in the calendar of "+d.Source)
		}
	}
}

// judgement judges one round of a document, block by block.
type judgement struct {
	*assembly
	document *Document
	may      permissions
	season   *season.Season  // ours
	absent   []*season.Round // ours that the document does not have
	ours     *season.Round   // before the document; only its Grand Prix if the round is new
	theirs   *season.Round
	next     season.Round // ours with the blocks that were applied so far
	new      bool         // the round is not in the archive
	held     Gate         // it holds the calendar entry of a new round, so that all blocks of the round wait
	decided  Decided
	breaches func() map[Block][]Refusal // of the invariants, checked at the first call
}

func (a *assembly) judgeRound(d *Document, s *season.Season, theirs *season.Round, absent []*season.Round) {
	may := kinds[d.Kind]
	ours, found := s.Round(theirs.GrandPrix)
	if !found {
		if !may.addsRounds || !Has(Calendar, theirs) || !Has(Start, theirs) {
			return
		}
		ours = &season.Round{GrandPrix: theirs.GrandPrix}
	}
	if may.wholeSeasons {
		theirs = a.lostSessions(ours, theirs)
	}
	if !may.contradictionsOnly {
		theirs = sameHour(ours, theirs)
	}
	j := judgement{
		assembly: a, document: d, may: may, season: s, absent: absent,
		ours: ours, theirs: theirs, next: *ours, new: !found, decided: a.Decided(s.Year, theirs.GrandPrix),
	}
	j.breaches = sync.OnceValue(func() map[Block][]Refusal {
		held, _ := j.weekend().breaches()
		return held
	})
	for _, block := range blocks {
		if slices.ContainsFunc(d.Unread, func(u season.Unread) bool {
			return u.Year == s.Year && u.GrandPrix == theirs.GrandPrix && blockOf(u.Section) == block
		}) {
			continue // the rest of the block may belong to the part that cannot be read
		}
		j.apply(j.decide(block))
	}
	j.agree()
	switch {
	case !may.applies:
	case found:
		*ours = j.next
	case Has(Calendar, &j.next) && Has(Start, &j.next):
		s.Rounds = append(s.Rounds, j.next)
	}
}

// decide compares, proposes and gates a block. It ignores a block that is the same.
func (j *judgement) decide(b Block) (p Proposal, after season.Round, v verdict) {
	lines, differs := j.compare(b)
	if !differs {
		return p, after, ignored
	}
	p, after = j.propose(b, lines)
	if unknown := j.unknown(b); unknown != "" && !j.may.archiveNames { // people get an error at once
		if !j.may.applies {
			return p, after, ignored
		}
		p.refuse(UnreadGate, "%s is not known, because no document names it: the block waits for the next revision", unknown)
		return p, after, held
	}
	v = j.gate(&p, &after)
	if v == applied && b == Entries && j.may.derivesEntries && !p.Accepted {
		for _, from := range []Block{Qualifying, Grid, Result} {
			if _, _, v := j.decide(from); v == held {
				p.refuse(DerivedGate, "they follow from the %s, which is held", from)
				return p, after, held
			}
		}
	}
	return p, after, v
}

// unknown returns a thing in the document's block that neither the facts nor a document names.
func (j *judgement) unknown(b Block) (name string) {
	part := Only(b, j.theirs)
	if part.Circuit != "" && !named(j.assembly, part.Circuit, func(f *season.Facts) map[season.CircuitID]season.Circuit { return f.Circuits }) {
		return string(part.Circuit)
	}
	part.References(func(driver season.DriverID, team season.TeamID, engine season.EngineID, _ time.Time) {
		switch {
		case driver != "" && !named(j.assembly, driver, func(f *season.Facts) map[season.DriverID]season.Driver { return f.Drivers }):
			name = string(driver)
		case team != "" && !named(j.assembly, team, func(f *season.Facts) map[season.TeamID]season.Team { return f.Teams }):
			name = string(team)
		case engine != "" && !named(j.assembly, engine, func(f *season.Facts) map[season.EngineID]season.Engine { return f.Engines }):
			name = string(engine)
		}
	})
	return name
}

// named reports whether the facts or a document that names new things have a thing.
func named[K comparable, V any](a *assembly, id K, things func(*season.Facts) map[K]V) bool {
	_, ok := things(&a.out.Facts)[id]
	return ok || slices.ContainsFunc(a.Documents, func(d Document) bool {
		_, ok := things(&d.Facts)[id]
		return ok && kinds[d.Kind].namesNew
	})
}

// refuseUnread reports the parts that a document left out, because a value cannot be read, and the names.
func (a *assembly) refuseUnread(d *Document) {
	for _, u := range d.Unread {
		p := Proposal{
			ID: idOf([]byte(u.Reason)), Year: cmp.Or(u.Year, d.From), GrandPrix: u.GrandPrix, Block: blockOf(u.Section),
			Source: d.Source, Revision: d.Revision,
		}
		if p.Year < d.From || p.Year > d.To {
			continue
		}
		p.refuse(UnreadGate, "%s: the block stays as it was until a revision can be read", u.Reason)
		a.out.Held = append(a.out.Held, p)
	}
}

// compare returns how the document's block differs from ours, for people.
func (j *judgement) compare(b Block) (lines []Line, differs bool) {
	switch {
	case Same(b, j.ours, j.theirs), j.may.orderOnly && sameOrder(b, j.ours, j.theirs):
		return nil, false
	case j.may.contradictionsOnly && Has(b, j.ours):
		lines = contradictions(b, j.ours, j.theirs)
		return lines, len(lines) > 0
	}
	merged := *j.ours
	Copy(b, &merged, j.theirs)
	return diff(b, j.ours, &merged), true
}

// propose returns the change that the document asks for, and the round after it.
func (j *judgement) propose(b Block, lines []Line) (p Proposal, after season.Round) {
	after = j.next
	Copy(b, &after, j.theirs)
	if j.may.addsEngines {
		addEngines(&after, j.season)
	}
	id := BlockID{j.season.Year, j.theirs.GrandPrix, b}
	p = Proposal{
		ID: identity(id.Year, id.GrandPrix, b, &after), Year: id.Year, GrandPrix: id.GrandPrix, Block: b,
		Source: j.document.Source, Revision: cmp.Or(j.document.Revisions[id], j.document.Revision), New: j.new, Lines: lines,
	}
	if b == Start && !j.new {
		p.Was, p.Provisional = j.ours.StartsAt(), j.ours.Provisional()
	}
	return p, after
}

// verdict is the outcome of a proposal.
type verdict int

const (
	ignored verdict = iota
	applied
	held       // until a person accepts it
	disputed   // the archive or an earlier document has another value, which stays
	unlicensed // the archive has no such block, and the terms of the source are not accepted
)

// gate decides on a proposal. It adds a refusal for each reason against applying it.
func (j *judgement) gate(p *Proposal, after *season.Round) verdict {
	if !j.may.applies {
		switch {
		case Has(p.Block, j.ours):
			return disputed
		case !outcome(p.Block):
			return ignored
		}
		p.refuse(TermsGate, "the terms of %s are not accepted: gridcast only compares its facts", p.Source)
		return unlicensed
	}
	if first, ok := j.first[p.BlockID()]; ok {
		switch {
		case j.may.yields:
			return ignored
		case !kinds[first.Kind].orderOnly || !sameOrder(p.Block, &j.next, j.theirs):
			p.refuse(DisputeGate, "%s has another value and takes precedence", first.Source)
			return disputed
		}
		// The order is the same, and this document adds the times.
	}
	j.judgeBlock(p, after)
	if j.new && p.Block == Calendar {
		for _, r := range j.absent {
			if r.Circuit == j.theirs.Circuit && r.Date.Equal(j.theirs.Date) {
				p.refuse(RenameGate, "%s is new on %s at %s: it may be %s, which is absent, under another name",
					j.theirs.Name, r.Date.Format(time.DateOnly), r.Circuit, r.GrandPrix)
			}
		}
		if len(p.Refused) > 0 {
			j.held = p.Refused[0].Gate
		}
	}
	if j.Accepted[p.ID] || j.document.Forced[p.BlockID()] {
		p.Accepted, p.Refused, j.held = true, nil, ""
	}
	j.refusedByLedger(p)
	if j.held != "" && len(p.Refused) == 0 {
		p.refuse(j.held, "its round is new and its calendar entry is held: all blocks of the round wait")
	}
	if len(p.Refused) > 0 {
		return held
	}
	return applied
}

// apply writes an applied proposal into the round, and reports every proposal that is not ignored.
func (j *judgement) apply(p Proposal, after season.Round, v verdict) {
	switch v {
	case applied:
		j.next = after
		j.out.Applied = append(j.out.Applied, p)
	case held:
		j.out.Held = append(j.out.Held, p)
	case disputed:
		j.out.Disputed = append(j.out.Disputed, p)
	case unlicensed:
		j.out.Unlicensed = append(j.out.Unlicensed, p)
	case ignored:
	}
}

// agree reports the blocks in which the document agrees with a person. It also records the document as
// the first one with a block, whether or not the block changed.
func (j *judgement) agree() {
	for _, b := range blocks {
		if !Has(b, j.theirs) {
			continue
		}
		id := BlockID{j.season.Year, j.theirs.GrandPrix, b}
		first, ok := j.first[id]
		switch {
		case !ok && j.may.applies:
			j.first[id] = j.document
		case ok && kinds[first.Kind].confirmable && !j.may.confirmable && (Same(b, &j.next, j.theirs) || sameOrder(b, &j.next, j.theirs)):
			j.out.Confirmed = append(j.out.Confirmed, Confirmation{id, j.document.Source})
		}
	}
}

// shrunken returns an error if a document lacks more rounds of a season than maxVanished, and no
// person has accepted that loss.
func (a *assembly) shrunken(d *Document) error {
	for i := range d.Facts.Seasons {
		theirs := &d.Facts.Seasons[i]
		ours, ok := a.out.Facts.Season(theirs.Year)
		if !ok || theirs.Year < d.From || theirs.Year > d.To {
			continue
		}
		absent := a.absent(d, ours, theirs)
		if len(absent) <= maxVanished {
			continue
		}
		var lines []Line
		for _, r := range absent {
			lines = append(lines, Line{About: string(r.GrandPrix), Was: "on " + r.Date.Format(time.DateOnly)})
		}
		if err := a.withhold(d, theirs.Year, ShrinkGate, lines, "%s %.12s lacks %d of the %d known rounds of %d: it is not used (a season may lose %d at a time)",
			d.Source, d.Revision, len(absent), len(ours.Rounds), theirs.Year, maxVanished); err != nil {
			return err
		}
	}
	return nil
}

// stepsBack returns an error if a document is older than the last one of its source that was judged, and
// no person has accepted that. A rebased branch has newer commits, so that it passes.
func (a *assembly) stepsBack(d *Document) error {
	if d.Committed.IsZero() || !d.Committed.Before(d.Latest) {
		return nil
	}
	return a.withhold(d, a.Now.UTC().Year(), BackGate, []Line{{About: d.Revision, Was: "committed at " + instant(d.Latest), Is: "committed at " + instant(d.Committed)}},
		"%s %.12s was committed at %s, before the revision in use of %s: it is not used, and a newer one ends this",
		d.Source, d.Revision, instant(d.Committed), instant(d.Latest))
}

// withhold returns the error that withholds a whole document, or nil if a person has accepted it.
func (a *assembly) withhold(d *Document, year int, g Gate, lines []Line, format string, args ...any) error {
	p := Proposal{Year: year, Block: Calendar, Source: d.Source, Revision: d.Revision, Lines: lines}
	content := fmt.Appendf(nil, "%d\n%s\n%s\n", year, g, d.Source)
	for _, line := range lines {
		content = fmt.Appendln(content, line.About)
	}
	p.ID = idOf(content)
	if a.Accepted[p.ID] {
		return nil
	}
	p.refuse(g, format, args...)
	return &WithheldError{p}
}

// identity is the ID of a proposal: the same content of the same block has the same ID.
func identity(year int, gp season.GrandPrixID, b Block, r *season.Round) string {
	var content bytes.Buffer
	fmt.Fprintf(&content, "%d\n%s\n%s\n", year, gp, b)
	encoder := json.NewEncoder(&content)
	for _, f := range fields {
		if f.block != b {
			continue
		}
		if err := encoder.Encode(f.value(r)); err != nil {
			panic(fmt.Sprintf("BUG: block %s is not JSON: %v", b, err))
		}
	}
	return idOf(content.Bytes())
}

// idOf returns the ID of a proposal with the content: the first twelve digits of its SHA-256.
func idOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:6])
}

// wait reports the invariants of a weekend for which the verification of a document's result waits.
func (a *assembly) wait(d *Document, s *season.Season, theirs *season.Round) {
	ours, ok := s.Round(theirs.GrandPrix)
	if !ok || !kinds[d.Kind].applies || kinds[d.Kind].archiveNames || len(theirs.Results)+len(theirs.SprintResults) == 0 || s.Year < a.Since {
		return
	}
	j := judgement{assembly: a, document: d, season: s, ours: ours, theirs: theirs}
	if _, waits := j.weekend().breaches(); len(waits) > 0 {
		a.out.Doubted = append(a.out.Doubted, Doubt{BlockID{s.Year, theirs.GrandPrix, Result}, d.Source, waits})
	}
}

// doubt reports where a source's standings rise by other points than its results and the known decisions give. It covers
// seasons in which points add. A fault is reported once, at the round with which it comes.
func (a *assembly) doubt(source string, s *season.Season) {
	if !season.PointsAdd(s.Year) {
		return
	}
	for _, constructors := range []bool{false, true} {
		sum, known, listed := make(map[season.Competitor]float64), make(map[season.Competitor]float64), make(map[season.Competitor]bool) // known: the differences so far
		for i := range s.Rounds {
			r := &s.Rounds[i]
			for _, row := range slices.Concat(r.SprintResults, r.Results) {
				sum[row.Competitor(constructors)] += row.Points
			}
			if len(r.Results) == 0 {
				continue
			}
			standings := make(map[season.Competitor]float64)
			for _, row := range r.Standings(constructors) {
				standings[row.Competitor] = row.Points
			}
			for _, d := range a.Decided(s.Year, r.GrandPrix).Championship {
				for who := range standings {
					if d.Constructors == constructors && d.Competitor == who.ID && (d.Engine == "" || d.Engine == who.Engine) {
						known[who] += d.Points
						listed[who] = listed[who] || d.Listed
					}
				}
			}
			doubt := Doubt{BlockID{s.Year, r.GrandPrix, Result}, source, nil}
			for who, points := range standings {
				if difference := points - sum[who]; math.Abs(difference-known[who]) > 1e-9 && !listed[who] {
					known[who] = difference
					doubt.Lines = append(doubt.Lines, fmt.Sprintf("%d %s: %s has %g points in the source's standings and %g in its results", s.Year, r.Name, who, points, sum[who]))
				}
			}
			if slices.Sort(doubt.Lines); doubt.Lines != nil {
				a.out.Doubted = append(a.out.Doubted, doubt)
			}
		}
	}
}

// lose reports the published facts that a source had and has no longer: a season, a verified result, a
// driver of one. A document with parts that cannot be read may still have them.
func (a *assembly) lose(d *Document) {
	if len(d.Unread) > 0 {
		return
	}
	lost := func(format string, args ...any) {
		a.out.Lost = append(a.out.Lost, Loss{d.Source, fmt.Sprintf(format, args...)})
	}
	for i := range a.out.Facts.Seasons {
		ours := &a.out.Facts.Seasons[i]
		if !d.Earlier[ours.Year] || ours.Year < d.From || ours.Year > d.To {
			continue
		}
		theirs, ok := d.Facts.Season(ours.Year)
		if !ok {
			lost("%s no longer has the season %d", d.Source, ours.Year)
			continue
		}
		present := make(map[season.DriverID]bool)
		for j := range theirs.Rounds {
			drivers(&theirs.Rounds[j], present)
		}
		for j := range ours.Rounds {
			verified := a.Decided(ours.Year, ours.Rounds[j].GrandPrix).Verified
			if r, ok := theirs.Round(ours.Rounds[j].GrandPrix); len(verified) > 0 && (!ok || len(r.Results) == 0) {
				lost("%s no longer has the verified result of the %s of %d", d.Source, ours.Rounds[j].Name, ours.Year)
			}
			for _, id := range verified {
				if !present[id] {
					present[id] = true
					lost("%s no longer has %s in any round of %d", d.Source, id, ours.Year)
				}
			}
		}
	}
}

// lostSessions returns the round of a source with the sessions that it no longer has before the race. They are cancelled,
// because readers have them in their calendars. A session that was held or that another source cancelled stays as it is.
func (a *assembly) lostSessions(ours, theirs *season.Round) *season.Round {
	if len(theirs.Sessions) == 0 {
		return theirs // it knows no sessions of the weekend
	}
	round := *theirs
	round.Sessions = slices.Clone(theirs.Sessions)
	has := func(kind season.SessionKind) bool {
		return slices.ContainsFunc(round.Sessions, func(s season.Session) bool { return s.Kind == kind })
	}
	known := slices.Clone(ours.Sessions)
	if ours.Sprint && !slices.ContainsFunc(known, func(s season.Session) bool { return s.Kind == season.Sprint }) {
		known = append(known, season.Session{Kind: season.Sprint, Date: ours.Date.AddDate(0, 0, -1)})
	}
	for _, s := range known {
		ofSprint := s.Kind == season.Sprint || s.Kind == season.SprintQualifying
		switch {
		case has(s.Kind), theirs.TookPlace(s.Kind), ofSprint && theirs.Sprint:
		case s.Cancelled, !ours.TookPlace(s.Kind) && a.Now.Before(ours.StartsAt()):
			s.Cancelled = true
			round.Sessions = append(round.Sessions, s)
		}
	}
	season.SortSessions(round.Sessions)
	return &round
}

// sameHour returns a document's round that has another day than ours and no hour with the known hour at the circuit. At
// another circuit the hour stays unknown.
func sameHour(ours, theirs *season.Round) *season.Round {
	elsewhere := theirs.Circuit != "" && theirs.Circuit != ours.Circuit
	if ours.Start.IsZero() || !theirs.Start.IsZero() || theirs.Date.IsZero() || theirs.Date.Equal(ours.Date) || elsewhere {
		return theirs
	}
	round := *theirs
	round.Start = ours.StartOn(theirs.Date)
	return &round
}
