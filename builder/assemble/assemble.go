// Package assemble makes the archive in use from what is there and what sources and people say. It
// is pure: the same input gives the same facts. A round is taken block by block; a block that
// changes passes the gates, or waits for a person and leaves what was there in use.
package assemble

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"gridcast/builder/season"
)

// Document is what one source, or a person, says of some seasons.
type Document struct {
	Source    string // f1db; hand for what a person entered
	Revision  string // the source's name for this state of it
	From, To  int    // the seasons it may speak of
	Facts     season.Facts
	Kind      Kind
	Forced    map[BlockID]bool   // blocks that a person wants to be used whatever the gates say
	Revisions map[BlockID]string // of blocks that have another than the document
}

// Kind says what a document may do.
type Kind int

// The kinds of documents. The zero value may do the least.
const (
	CheckOnly Kind = iota // compared with the others and never applied: its terms are not accepted
	Sparse                // an API with fewer details than the source of record
	Full                  // a source of record, such as F1DB
	Manual                // facts that people entered, as short as a person made them
)

// BlockID says which block of which round is meant.
type BlockID struct {
	Year      int                `json:"year"`
	GrandPrix season.GrandPrixID `json:"grand_prix"`
	Block     Block              `json:"block"`
}

// Release is a block that a person said and lets go of: where it still stands as they said, what
// was there before is put back, for the sources to speak of again.
type Release struct {
	BlockID
	Revision        string
	Entered, Before season.Round // of which the block alone counts
}

// Decided is what the ledger holds of a round.
type Decided struct {
	Start     time.Time         // that is valid by the ledger; zero where it leaves it to the facts
	StartHeld bool              // a person set it
	Postponed bool              // or cancelled: it has no start to be kept
	Verified  []season.DriverID // of the valid revision of its result; nil if there is none
}

// Input is what Assemble goes by.
type Input struct {
	Current   season.Facts // the archive in use
	Documents []Document   // by falling precedence
	// Accepted are the changes, by ID, that a person has let through.
	Accepted map[string]bool
	// Aliases are identifiers of drivers that a source has renamed: old to current.
	Aliases map[season.DriverID]season.DriverID
	// Named is what a person says that sources call otherwise: teams, circuits, rounds.
	Named []Alias
	// Headshots say where portraits are, also of drivers who are still to come; without a template
	// nobody has one, and nil is as the archive in use has it.
	Headshots *season.Headshots
	// Released is what people let go of since the archive in use was assembled.
	Released []Release
	// Decided returns what the ledger holds of a round.
	Decided func(year int, gp season.GrandPrixID) Decided
	Now     time.Time // race time
}

// Proposal is a block of a round that a document says anew.
type Proposal struct {
	// ID names what is said: the same block with the same content has the same ID, whichever
	// revision says it.
	ID        string             `json:"id"`
	Year      int                `json:"year"`
	GrandPrix season.GrandPrixID `json:"grand_prix"`
	Block     Block              `json:"block"`
	Source    string             `json:"source"`
	Revision  string             `json:"revision,omitempty"`
	New       bool               `json:"new,omitempty"` // the round was not known
	// Of a start: the one that was, and whether its hour was not known.
	Was         time.Time `json:"was,omitzero"`
	Provisional bool      `json:"provisional,omitempty"`
	Lines       []Line    `json:"lines,omitempty"`
	Refused     []Refusal `json:"refused,omitempty"`  // why it waits; none if it was taken
	Accepted    bool      `json:"accepted,omitempty"` // a person let it through
	Released    bool      `json:"released,omitempty"` // a person let go of what they had entered
}

// BlockID is the block that is changed.
func (c *Proposal) BlockID() BlockID { return BlockID{c.Year, c.GrandPrix, c.Block} }

// Round names for people of which round the change is, or of which season.
func (c *Proposal) Round() string {
	if c.GrandPrix == "" {
		return fmt.Sprintf("the season %d", c.Year)
	}
	return fmt.Sprintf("%s %d", c.GrandPrix, c.Year)
}

// ManualSource is the source of facts that people entered.
const ManualSource = "hand"

// Missing is a round of a season that a source speaks of without it.
type Missing struct {
	Source    string             `json:"source"`
	Year      int                `json:"year"`
	GrandPrix season.GrandPrixID `json:"grand_prix"`
}

// Rename is a driver whom a source has given another identifier.
type Rename struct {
	Source   string          `json:"source"`
	Revision string          `json:"revision"`
	From     season.DriverID `json:"from"`
	To       season.DriverID `json:"to"`
}

// Confirmation is a source that says what a person entered.
type Confirmation struct {
	BlockID
	Source string `json:"source"`
}

// Output is what came of it.
type Output struct {
	Facts      season.Facts
	Applied    []Proposal // in use from now on
	Held       []Proposal // for a person
	Disputed   []Proposal // what a document says otherwise that goes last, or is check-only
	Unlicensed []Proposal // what only a check-only document says: the terms of it are not accepted
	Missing    []Missing
	Renames    []Rename
	Confirmed  []Confirmation
	Standings  []string // where a source's standings are not the sum of its results, per driver
}

// maxVanished is how many rounds of a season may be missing from a document before the document
// counts as cut off and is not used at all.
const maxVanished = 4

// ShrunkenError says that a document lacks so many rounds that it is not believed, unless a person lets
// Proposal through.
type ShrunkenError struct {
	Proposal       Proposal // the loss of the rounds, as a change that waits: of the calendar of a year, and no Grand Prix
	Missing, Known int
}

func (e *ShrunkenError) Error() string {
	return fmt.Sprintf("%s %.12s lacks %d of the %d rounds of %d that are known: it is not used (a season may lose %d at a time)",
		e.Proposal.Source, e.Proposal.Revision, e.Missing, e.Known, e.Proposal.Year, maxVanished)
}

// Assemble judges the documents against the archive in use and returns the facts that follow it.
// A document that lacks rounds wholesale is a *ShrunkenError, and nothing of it is used, unless a person
// has let that through. The input
// is not changed; the output shares with it what is alike.
func Assemble(in Input) (Output, error) {
	out := Output{Facts: clone(in.Current)}
	for from, to := range in.Aliases {
		renameDriver(&out.Facts, from, to)
	}
	release(&out, in.Released, in.Decided)
	taken := make(map[BlockID]Document) // what a document of higher precedence has said already
	for _, d := range in.Documents {
		d.Facts = clone(d.Facts)
		if d.Kind != Manual {
			for _, alias := range in.Named {
				alias.apply(&d.Facts)
			}
		}
		for from, to := range in.Aliases {
			renameDriver(&d.Facts, from, to)
		}
		if d.Kind == Full {
			if err := in.shrunken(&out.Facts, &d, taken); err != nil {
				return Output{}, err
			}
			for _, r := range renames(&out.Facts, &d) {
				out.Renames = append(out.Renames, r)
				renameDriver(&out.Facts, r.From, r.To)
			}
		}
		in.document(&out, d, taken)
	}
	adopt(&out.Facts, in.Documents)
	for i := range out.Facts.Seasons {
		// By start, since numbers are for display; rounds that moved change places.
		slices.SortStableFunc(out.Facts.Seasons[i].Rounds, func(a, b season.Round) int {
			return cmp.Or(a.StartsAt().Compare(b.StartsAt()), cmp.Compare(a.Number, b.Number))
		})
	}
	slices.SortFunc(out.Facts.Seasons, func(a, b season.Season) int { return cmp.Compare(a.Year, b.Year) })
	prune(&out.Facts)
	in.portraits(&out)
	if err := out.Facts.Validate(); err != nil {
		return Output{}, fmt.Errorf("assemble: what follows would not hold together: %w", err)
	}
	return out, nil
}

// release puts back what was there before people said otherwise. A round that is known by them
// alone keeps its place in the calendar: what clients were told of is cancelled, not forgotten.
func release(out *Output, released []Release, decided func(int, season.GrandPrixID) Decided) {
	for i := range released {
		r := &released[i]
		s := yearOf(&out.Facts, r.Year, false)
		if s == nil {
			continue
		}
		known, ok := s.Round(r.GrandPrix)
		if !ok || !Same(r.Block, known, &r.Entered) {
			continue
		}
		calendar := r.Block == Calendar || r.Block == Start || r.Block == Sessions
		if !Has(r.Block, &r.Before) && (calendar || r.Block == Result && len(decided(r.Year, r.GrandPrix).Verified) > 0) {
			continue
		}
		was := *known
		target, origin := fields(r.Block, known), fields(r.Block, &r.Before)
		for j := range origin {
			reflect.ValueOf(target[j]).Elem().Set(reflect.ValueOf(origin[j]).Elem())
		}
		change := Proposal{
			ID: identity(r.Year, r.GrandPrix, r.Block, known), Year: r.Year, GrandPrix: r.GrandPrix, Block: r.Block,
			Source: ManualSource, Revision: r.Revision, Lines: differing(words(r.Block, &was), words(r.Block, known)), Accepted: true, Released: true,
		}
		if r.Block == Start {
			change.Was, change.Provisional = was.StartsAt(), was.Provisional()
		}
		out.Applied = append(out.Applied, change)
	}
}

// document takes from a document what passes, and notes the rest.
func (in *Input) document(out *Output, d Document, taken map[BlockID]Document) {
	for i := range d.Facts.Seasons {
		said := &d.Facts.Seasons[i]
		if said.Year < d.From || said.Year > d.To {
			continue
		}
		known := yearOf(&out.Facts, said.Year, d.Kind != CheckOnly)
		if known == nil {
			continue
		}
		compared := (d.Kind == CheckOnly || d.Kind == Sparse) // with ours; nothing follows from what it lacks
		vanished := make(map[season.GrandPrixID]*season.Round)
		for j := range known.Rounds {
			r := &known.Rounds[j]
			if _, ok := said.Round(r.GrandPrix); !ok {
				if taken[BlockID{said.Year, r.GrandPrix, Start}].Kind == Manual && !compared {
					continue // a person says that it is held
				}
				vanished[r.GrandPrix] = r
				if d.Kind == Full {
					out.Missing = append(out.Missing, Missing{d.Source, said.Year, r.GrandPrix})
				}
			}
		}
		if compared {
			out.Disputed = append(out.Disputed, in.calendars(known, said, vanished, d)...)
		}
		for j := range said.Rounds {
			is := &said.Rounds[j]
			was, ok := known.Round(is.GrandPrix)
			fresh := !ok
			if fresh {
				if d.Kind == CheckOnly || d.Kind == Manual && (!Has(Calendar, is) || !Has(Start, is)) {
					continue
				}
				was = &season.Round{GrandPrix: is.GrandPrix}
			}
			next := *was
			decided := in.Decided(said.Year, is.GrandPrix)
			held := false // a new round waits whole
			for _, block := range blocks {
				if !Has(block, is) || Same(block, was, is) {
					continue
				}
				coarse := (d.Kind == CheckOnly || d.Kind == Sparse) && Has(block, was)
				contradicted := disagreement(block, was, is)
				if coarse && len(contradicted) == 0 || d.Kind == Manual && sameOrder(block, was, is) {
					continue
				}
				proposed := next
				Copy(block, &proposed, is)
				if d.Kind == Sparse || d.Kind == CheckOnly {
					withEngines(&proposed, known)
				}
				c := candidate{
					year: said.Year, block: block, was: was, is: &proposed, new: fresh,
					decided: decided, rounds: known.Rounds, now: in.Now, seconded: in.seconded(said.Year, is, block, d.Source), byHand: d.Kind == Manual,
				}
				key := BlockID{said.Year, is.GrandPrix, block}
				change := Proposal{
					ID: identity(said.Year, is.GrandPrix, block, &proposed), Year: said.Year, GrandPrix: is.GrandPrix, Block: block,
					Source: d.Source, Revision: cmp.Or(d.Revisions[key], d.Revision), New: fresh, Lines: difference(block, was, is),
				}
				if block == Start && !fresh {
					change.Was, change.Provisional = was.StartsAt(), was.Provisional()
				}
				if coarse {
					change.Lines = contradicted
				}
				if d.Kind == CheckOnly && !Has(block, was) {
					if !outcome(block) {
						continue
					}
					change.Refused = []Refusal{{TermsGate, fmt.Sprintf("the terms of %s are not accepted; gridcast compares with it and uses nothing of it", d.Source)}}
					out.Unlicensed = append(out.Unlicensed, change)
					continue
				}
				if d.Kind == CheckOnly {
					out.Disputed = append(out.Disputed, change)
					continue
				}
				before, spoken := taken[key]
				switch {
				case !spoken:
				case d.Kind == Manual:
					continue // what a person assumed gives way
				case before.Kind == Manual && sameOrder(block, &next, is): // and it has the times
				default:
					change.Refused = []Refusal{{DisputeGate, before.Source + " says otherwise and goes first"}}
					out.Disputed = append(out.Disputed, change)
					continue
				}
				change.Refused = c.judge()
				if fresh && block == Calendar {
					for gp, r := range vanished {
						if r.Circuit == is.Circuit && r.Date.Equal(is.Date) {
							change.Refused = append(change.Refused, Refusal{RenameGate, fmt.Sprintf(
								"%s stands on %s at %s, where %s has vanished", is.Name, is.Date.Format(time.DateOnly), is.Circuit, gp,
							)})
							held = true
						}
					}
				}
				if in.Accepted[change.ID] || d.Forced[key] {
					change.Accepted, change.Refused, held = true, nil, false
				}
				if held && len(change.Refused) == 0 {
					change.Refused = []Refusal{{RenameGate, "its round waits, and waits whole"}}
				}
				if len(change.Refused) > 0 {
					out.Held = append(out.Held, change)
					continue
				}
				next = proposed
				if !spoken {
					taken[key] = d
				}
				out.Applied = append(out.Applied, change)
			}
			for _, block := range blocks { // what agrees goes first too
				key := BlockID{said.Year, is.GrandPrix, block}
				if !Has(block, is) {
					continue
				}
				before, ok := taken[key]
				if ok && before.Kind == Manual && d.Kind != Manual && (Same(block, &next, is) || sameOrder(block, &next, is)) {
					out.Confirmed = append(out.Confirmed, Confirmation{key, d.Source})
				}
				if !ok && d.Kind != CheckOnly {
					taken[key] = d
				}
			}
			switch {
			case d.Kind == CheckOnly:
			case !fresh:
				*was = next
			case Has(Calendar, &next) && Has(Start, &next):
				known.Rounds = append(known.Rounds, next)
			}
		}
		if d.Kind != CheckOnly && len(said.Colours) > 0 {
			known.Colours = maps.Clone(known.Colours)
			if known.Colours == nil {
				known.Colours = make(map[season.TeamID]string)
			}
			maps.Copy(known.Colours, said.Colours)
		}
		if d.Kind != CheckOnly {
			out.Standings = append(out.Standings, standingsFaults(said)...)
		}
	}
}

// calendars says which rounds of a season only one of two calendars has: ours, or that of a document
// that is compared. A document that lacks many says nothing by it: it knows a part of the season.
func (in *Input) calendars(ours, theirs *season.Season, vanished map[season.GrandPrixID]*season.Round, d Document) []Proposal {
	var all []Proposal
	say := func(r *season.Round, was, is string) {
		all = append(all, Proposal{
			ID: identity(ours.Year, r.GrandPrix, Calendar, r), Year: ours.Year, GrandPrix: r.GrandPrix, Block: Calendar,
			Source: d.Source, Revision: d.Revision, Lines: []Line{{About: "round", Was: was, Is: is}},
		})
	}
	lacking := len(vanished) <= maxVanished
	for i := range ours.Rounds {
		r := &ours.Rounds[i]
		if vanished[r.GrandPrix] != nil && lacking && !in.Decided(ours.Year, r.GrandPrix).Postponed {
			say(r, "on "+r.Date.Format(time.DateOnly)+" in our calendar", "not in that of "+d.Source)
		}
	}
	for i := range theirs.Rounds {
		r := &theirs.Rounds[i]
		if _, ok := ours.Round(r.GrandPrix); !ok && d.Kind == CheckOnly { // else it is taken
			say(r, "not in our calendar", "on "+r.Date.Format(time.DateOnly)+" in that of "+d.Source)
		}
	}
	return all
}

// seconded reports whether another document says the same of a block.
func (in *Input) seconded(year int, r *season.Round, b Block, source string) bool {
	for _, d := range in.Documents {
		if d.Source == source {
			continue
		}
		for i := range d.Facts.Seasons {
			if d.Facts.Seasons[i].Year != year {
				continue
			}
			if other, ok := d.Facts.Seasons[i].Round(r.GrandPrix); ok && Has(b, other) && Same(b, r, other) {
				return true
			}
		}
	}
	return false
}

// shrunken returns an error if a document lacks rounds wholesale, and no person has let that through.
func (in *Input) shrunken(current *season.Facts, d *Document, taken map[BlockID]Document) error {
	for i := range d.Facts.Seasons {
		said := &d.Facts.Seasons[i]
		known := yearOf(current, said.Year, false)
		if known == nil || said.Year < d.From || said.Year > d.To {
			continue
		}
		var missing []Line
		sum := sha256.New()
		sum.Write(fmt.Appendf(nil, "%d\n%s\n%s\n", said.Year, ShrinkGate, d.Source))
		for j := range known.Rounds {
			r := &known.Rounds[j]
			if _, ok := said.Round(r.GrandPrix); !ok && taken[BlockID{said.Year, r.GrandPrix, Start}].Kind != Manual {
				missing = append(missing, Line{About: string(r.GrandPrix), Was: "on " + r.Date.Format(time.DateOnly)})
				sum.Write(fmt.Appendln(nil, r.GrandPrix))
			}
		}
		err := &ShrunkenError{
			Proposal: Proposal{
				ID: hex.EncodeToString(sum.Sum(nil))[:12], Year: said.Year, Block: Calendar, Source: d.Source, Revision: d.Revision, Lines: missing,
			},
			Missing: len(missing), Known: len(known.Rounds),
		}
		if len(missing) > maxVanished && !in.Accepted[err.Proposal.ID] {
			err.Proposal.Refused = []Refusal{{ShrinkGate, err.Error()}}
			return err
		}
	}
	return nil
}

// identity is the ID of a change.
func identity(year int, gp season.GrandPrixID, b Block, r *season.Round) string {
	sum := sha256.New()
	sum.Write(fmt.Appendf(nil, "%d\n%s\n%s\n", year, gp, b))
	encoder := json.NewEncoder(sum)
	for _, field := range fields(b, r) {
		if err := encoder.Encode(field); err != nil {
			panic(fmt.Sprintf("BUG: block %s is not JSON: %v", b, err))
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:12]
}

// yearOf returns the season of a year, made if asked for; nil if there is none.
func yearOf(f *season.Facts, year int, make bool) *season.Season {
	for i := range f.Seasons {
		if f.Seasons[i].Year == year {
			return &f.Seasons[i]
		}
	}
	if !make {
		return nil
	}
	f.Seasons = append(f.Seasons, season.Season{Year: year})
	return &f.Seasons[len(f.Seasons)-1]
}

// clone copies facts as deep as Assemble writes: seasons and their lists of rounds. Rows are
// shared, and replaced whole.
func clone(f season.Facts) season.Facts {
	f.Seasons = slices.Clone(f.Seasons)
	for i := range f.Seasons {
		f.Seasons[i].Rounds = slices.Clone(f.Seasons[i].Rounds)
	}
	return f
}

// adopt takes the names that documents give what rows refer to: those of the first document that
// knows a thing. Names are cosmetic and pass no gate.
func adopt(f *season.Facts, documents []Document) {
	f.Drivers, f.Teams, f.Engines, f.Circuits = maps.Clone(f.Drivers), maps.Clone(f.Teams), maps.Clone(f.Engines), maps.Clone(f.Circuits)
	for _, d := range slices.Backward(documents) {
		if d.Kind == CheckOnly {
			continue
		}
		if d.Kind == Manual { // a person introduces what nobody else knows
			adoptNames(f.Drivers, d.Facts.Drivers, true)
			adoptNames(f.Teams, d.Facts.Teams, true)
			adoptNames(f.Engines, d.Facts.Engines, true)
			adoptNames(f.Circuits, d.Facts.Circuits, true)
			continue
		}
		for id, driver := range d.Facts.Drivers {
			if _, known := f.Drivers[id]; known && d.Kind == Sparse {
				continue
			}
			driver.HeadshotURL = cmp.Or(driver.HeadshotURL, f.Drivers[id].HeadshotURL)
			f.Drivers[id] = driver
		}
		adoptNames(f.Teams, d.Facts.Teams, d.Kind == Sparse)
		adoptNames(f.Engines, d.Facts.Engines, d.Kind == Sparse)
		adoptNames(f.Circuits, d.Facts.Circuits, d.Kind == Sparse)
		for _, l := range d.Facts.Lineages {
			adoptLineage(f, l)
		}
	}
}

// adoptNames takes names over, of a sparse document only those of what is not known.
func adoptNames[K comparable, V any](into, from map[K]V, sparse bool) {
	for id, thing := range from {
		if _, known := into[id]; !known || !sparse {
			into[id] = thing
		}
	}
}

// withEngines gives the rows of a round, which a sparse document has without, the engines that their
// teams have in the season: a team with another engine would be another constructor.
func withEngines(r *season.Round, known *season.Season) {
	engines := make(map[season.TeamID]season.EngineID)
	for i := range known.Rounds {
		for _, row := range known.Rounds[i].Entries {
			if row.Engine != "" {
				engines[row.Team] = row.Engine
			}
		}
	}
	for _, rows := range []*[]season.Result{&r.Results, &r.SprintResults} {
		*rows = slices.Clone(*rows)
		for i, row := range *rows {
			(*rows)[i].Engine = cmp.Or(row.Engine, engines[row.Team])
		}
	}
	r.TeamStandings = slices.Clone(r.TeamStandings)
	for i, row := range r.TeamStandings {
		r.TeamStandings[i].Engine = cmp.Or(row.Engine, engines[row.Team])
	}
	r.Entries = slices.Clone(r.Entries)
	for i, row := range r.Entries {
		r.Entries[i].Engine = cmp.Or(row.Engine, engines[row.Team])
	}
}

// adoptLineage joins a lineage with the one that shares a team and a year with it.
func adoptLineage(f *season.Facts, l season.Lineage) {
	f.Lineages = slices.Clone(f.Lineages)
	for i := range f.Lineages {
		known := slices.Clone(f.Lineages[i].Links)
		if !slices.ContainsFunc(known, func(a season.Link) bool {
			return slices.ContainsFunc(l.Links, func(b season.Link) bool { return a.Team == b.Team && a.From == b.From })
		}) {
			continue
		}
		for _, link := range l.Links {
			at := slices.IndexFunc(known, func(a season.Link) bool { return a.Team == link.Team && a.From == link.From })
			if at < 0 {
				known = append(known, link)
			} else {
				known[at] = link
			}
		}
		slices.SortFunc(known, func(a, b season.Link) int {
			return cmp.Or(cmp.Compare(a.From, b.From), strings.Compare(string(a.Team), string(b.Team)))
		})
		f.Lineages[i].Links = known
		return
	}
	f.Lineages = append(f.Lineages, l)
}

// prune removes seasons in which no round was taken, and drivers whom no row names any more.
func prune(f *season.Facts) {
	f.Seasons = slices.DeleteFunc(f.Seasons, func(s season.Season) bool { return len(s.Rounds) == 0 })
	named := make(map[season.DriverID]bool, len(f.Drivers))
	for i := range f.Seasons {
		for j := range f.Seasons[i].Rounds {
			drivers(&f.Seasons[i].Rounds[j], func(id season.DriverID) { named[id] = true })
		}
	}
	maps.DeleteFunc(f.Drivers, func(id season.DriverID, _ season.Driver) bool { return !named[id] })
}

// portraits names the drivers of the archive who have a portrait, by the identifiers of today.
func (in *Input) portraits(out *Output) {
	wanted := out.Facts.Headshots
	if in.Headshots != nil {
		wanted = *in.Headshots
	}
	current := make(map[season.DriverID]season.DriverID)
	maps.Copy(current, in.Aliases)
	for _, r := range out.Renames {
		current[r.From] = r.To
	}
	out.Facts.Headshots = season.Headshots{Template: wanted.Template}
	for _, driver := range wanted.Drivers {
		for to, renamed := current[driver]; renamed && to != driver; to, renamed = current[driver] {
			driver = to
		}
		if _, known := out.Facts.Drivers[driver]; known && !slices.Contains(out.Facts.Headshots.Drivers, driver) {
			out.Facts.Headshots.Drivers = append(out.Facts.Headshots.Drivers, driver)
		}
	}
}

// standingsFaults returns, after each round of a season whose points add up from results, where the
// source's standings differ from the sum.
func standingsFaults(s *season.Season) []string {
	if s.Year < 2010 {
		return nil
	}
	var faults []string
	sum := make(map[season.DriverID]float64)
	for i := range s.Rounds {
		r := &s.Rounds[i]
		for _, rows := range [][]season.Result{r.SprintResults, r.Results} {
			for _, row := range rows {
				sum[row.Driver] += row.Points
			}
		}
		if len(r.Results) == 0 {
			continue
		}
		for _, row := range r.DriverStandings {
			if row.Points != sum[row.Driver] {
				faults = append(faults, fmt.Sprintf("%d %s: the source's standings give %s %g points, the results %g",
					s.Year, r.Name, row.Driver, row.Points, sum[row.Driver]))
			}
		}
	}
	return faults
}
