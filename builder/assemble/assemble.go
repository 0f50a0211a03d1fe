// Package assemble makes the facts that follow the archive in use from the documents of the sources
// and of people. It is pure: the same input gives the same facts.
//
// It judges a document block by block, in four steps:
//   - compare: find the blocks that differ from the archive in use
//   - propose: make the change that the document asks for
//   - gate: decide whether the change is applied, held for a person, disputed, unlicensed or ignored
//   - apply: write an applied change into the facts, and report every change
//
// The permissions of each kind of document are a table, in kinds.go.
package assemble

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"gridcast/builder/season"
)

// Document holds the facts of one source, or of people, about some seasons.
type Document struct {
	Source   string // such as f1db; ManualSource for facts that people entered
	Revision string // the source's name for this state
	From, To int    // the seasons that it covers; others are ignored
	Facts    season.Facts
	Kind     Kind
	// Assumed facts follow from others that people entered. No gate compares a source's numbers with them.
	Assumed bool
	// Forced holds the blocks that a person wants applied in spite of the gates.
	Forced map[BlockID]bool
	// Earlier holds the seasons that an earlier document of this source has covered. A season that is not
	// in it is taken with its past rounds.
	Earlier map[int]bool
	// Committed is the source's time of the document, and Latest that of the last one that was judged. Both
	// may be zero.
	Committed, Latest time.Time
	// Sheets holds the tables of the document with the columns that facts do not keep.
	Sheets []season.Sheet
	Born   map[season.DriverID]string // birth dates, as far as the source has them
	// Unread holds the parts that are not in the facts, because a value cannot be read.
	Unread []season.Unread
	// Revisions holds the revisions of blocks that differ from the document's.
	Revisions map[BlockID]string
}

// BlockID identifies a block of a round.
type BlockID struct {
	Year      int                `json:"year"`
	GrandPrix season.GrandPrixID `json:"grand_prix"`
	Block     Block              `json:"block"`
}

// Release ends the rule of a block that a person entered. If the archive in use still has the entered
// block, Assemble puts back the block from before, so that sources may change it again.
type Release struct {
	BlockID
	Revision string
	// Entered and Before hold only the block.
	Entered, Before season.Round
}

// Decided is the ledger's record of a round.
type Decided struct {
	Start     time.Time         // zero if the ledger leaves it to the facts
	StartHeld bool              // a person set Start
	Postponed bool              // or cancelled: there is no start to keep
	Verified  []season.DriverID // of the valid revision of the result; nil if there is none

	Championship []Adjustment // decisions about the championships that count from the round on
}

// Adjustment is a decision about a competitor of a championship that a source's table may show.
type Adjustment struct {
	Constructors bool
	Competitor   string          // a driver or a team
	Engine       season.EngineID // empty: each engine of the team
	Points       float64         // added
	Listed       bool            // without a rank or as another entry, so that the source may list any points
}

// Input is the input of Assemble.
type Input struct {
	Current   season.Facts // the archive in use
	Documents []Document   // by falling precedence
	// Accepted holds the IDs of held proposals that a person has accepted.
	Accepted map[string]bool
	// Refused holds the reasons of the ledger against an event, by the ID of the proposal or the Rename from which it follows.
	Refused map[string]string
	// Aliases maps former identifiers of drivers to current ones.
	Aliases map[season.DriverID]season.DriverID
	// Named holds the other aliases: of teams, circuits and rounds.
	Named []Alias
	// Headshots name the drivers with a portrait, also future drivers. Nil leaves the headshots of the
	// archive in use.
	Headshots *season.Headshots
	// Released holds the releases since the archive in use was assembled.
	Released []Release
	// Decided returns the ledger's record of a round.
	Decided func(year int, gp season.GrandPrixID) Decided
	// Since is the first season that is held to the invariants of a weekend. Earlier ones are exempt.
	Since int
	Now   time.Time // race time
}

// Proposal is a change of a block that a document asks for.
type Proposal struct {
	// ID identifies the content: the same block with the same content has the same ID in every
	// revision.
	ID        string             `json:"id"`
	Year      int                `json:"year"`
	GrandPrix season.GrandPrixID `json:"grand_prix"`
	Driver    season.DriverID    `json:"driver,omitzero"` // of a change of Names
	Block     Block              `json:"block"`
	Source    string             `json:"source"`
	Revision  string             `json:"revision,omitempty"`
	New       bool               `json:"new,omitempty"` // the round is not in the archive in use
	// Was and Provisional describe the former start, if the block is a start.
	Was         time.Time `json:"was,omitzero"`
	Provisional bool      `json:"provisional,omitempty"`
	Lines       []Line    `json:"lines,omitempty"`
	Refused     []Refusal `json:"refused,omitempty"`  // why it is not applied
	Accepted    bool      `json:"accepted,omitempty"` // a person accepted it
	Released    bool      `json:"released,omitempty"` // it is a Release
}

// BlockID identifies the block that the proposal changes.
func (p *Proposal) BlockID() BlockID { return BlockID{p.Year, p.GrandPrix, p.Block} }

// Round names the round of the proposal for people, or the season of a WithheldError.
func (p *Proposal) Round() string {
	if p.Driver != "" {
		return string(p.Driver)
	}
	if p.GrandPrix == "" {
		return fmt.Sprintf("the season %d", p.Year)
	}
	return fmt.Sprintf("%s %d", p.GrandPrix, p.Year)
}

// ManualSource is the source of facts that people entered.
const ManualSource = "hand"

// Missing is a round that a source with whole seasons does not have.
type Missing struct {
	Source    string             `json:"source"`
	Year      int                `json:"year"`
	GrandPrix season.GrandPrixID `json:"grand_prix"`
}

// Rename is a new identifier that a source gave a driver.
type Rename struct {
	Source   string          `json:"source"`
	Revision string          `json:"revision"`
	From     season.DriverID `json:"from"`
	To       season.DriverID `json:"to"`
}

// ID identifies the rename as that of a proposal does.
func (r Rename) ID() string { return idOf(fmt.Appendf(nil, "rename %s\n%s\n", r.From, r.To)) }

// Confirmation is a source that agrees with a block that a person entered.
type Confirmation struct {
	BlockID
	Source string `json:"source"`
}

// Output is the result of Assemble.
type Output struct {
	Facts      season.Facts
	Applied    []Proposal
	Held       []Proposal // until a person accepts them
	Disputed   []Proposal // values from a lower-precedence or check-only source that differ from the applied ones
	Unlicensed []Proposal // blocks that only a check-only source has
	Missing    []Missing
	Renames    []Rename
	Confirmed  []Confirmation
	Doubted    []Doubt
	Lost       []Loss // published facts that a source had and has no longer
	Recoded    []CodeChange
}

// Doubt is a result that contradicts its source's standings: they rise by other points.
type Doubt struct {
	BlockID
	Source string
	Lines  []string // for people, by competitor
}

// Loss is a published fact that a source had in an earlier document and no longer has. The fact stays.
type Loss struct {
	Source string `json:"source"`
	Text   string `json:"text"` // for people
}

// CodeChange is a published code that changes, because a person accepted Proposal.
type CodeChange struct {
	Proposal string // its ID
	Year     int
	Driver   season.DriverID
	From, To string
}

// maxVanished is the number of rounds of a season that a document may lack. A document that lacks
// more is taken for cut off.
const maxVanished = 4

// WithheldError reports a document that is not used at all until a person accepts Proposal: it lacks
// more than maxVanished rounds of a season, or steps back behind a later one.
type WithheldError struct {
	Proposal Proposal // held, for the calendar of a year, without a Grand Prix
}

func (e *WithheldError) Error() string { return e.Proposal.Refused[0].Reason }

// Assemble judges the documents against the archive in use and returns the facts that follow it. The
// error is a *WithheldError if a document lacks many rounds of a season or steps back, and no person has
// accepted that. Assemble does not change the input; the output shares unchanged parts with it.
func Assemble(in Input) (Output, error) {
	a := assembly{Input: &in, out: Output{Facts: clone(in.Current)}, first: make(map[BlockID]*Document)}
	a.rename(&a.out.Facts)
	for _, alias := range in.Named {
		if alias.Kind == TeamAlias {
			addAlias(&a.out.Facts, season.TeamID(alias.From), season.TeamID(alias.To))
		}
	}
	for i := range in.Released {
		a.release(&in.Released[i])
	}
	for _, d := range in.Documents {
		d.Facts = clone(d.Facts)
		if !kinds[d.Kind].archiveNames {
			for _, alias := range in.Named {
				alias.apply(&d.Facts)
			}
		}
		for from, to := range in.Aliases {
			renameDriver(&d.Facts, from, to)
		}
		for _, r := range a.out.Renames { // by an earlier document
			renameDriver(&d.Facts, r.From, r.To)
		}
		if kinds[d.Kind].wholeSeasons {
			if err := errors.Join(a.stepsBack(&d), a.shrunken(&d)); err != nil {
				return Output{}, err
			}
			for _, r := range renames(&a.out.Facts, &d) {
				p := Proposal{
					ID: r.ID(), Year: in.Now.UTC().Year(), Driver: r.From, Block: Names, Source: r.Source, Revision: r.Revision,
					Lines: []Line{{"identifier", string(r.From), string(r.To)}},
				}
				if a.refusedByLedger(&p) {
					a.out.Held = append(a.out.Held, p)
					renameDriver(&d.Facts, r.To, r.From) // the rows of the document are still those of the known driver
					continue
				}
				a.out.Renames = append(a.out.Renames, r)
				renameDriver(&a.out.Facts, r.From, r.To)
			}
		}
		d.Sheets = a.aliasSheets(&d)
		a.judge(&d)
	}
	facts := &a.out.Facts
	// The assumed hours and the last season of a code follow from the order of the seasons.
	slices.SortFunc(facts.Seasons, func(x, y season.Season) int { return cmp.Compare(x.Year, y.Year) })
	*facts = facts.AssumeHours()
	named := facts.Drivers
	adoptNames(facts, in.Documents)
	a.judgeCodes(named)
	for i := range facts.Seasons {
		// Sort by start, because numbers are for display and rounds may change places.
		slices.SortStableFunc(facts.Seasons[i].Rounds, func(x, y season.Round) int {
			return cmp.Or(x.StartsAt().Compare(y.StartsAt()), cmp.Compare(x.Number, y.Number))
		})
	}
	prune(facts)
	a.headshots()
	if err := facts.Validate(); err != nil {
		return Output{}, fmt.Errorf("assemble: the resulting facts are invalid: %w", err)
	}
	return a.out, nil
}

// rename gives drivers, teams, engines and circuits the identifiers that they have by all aliases.
func (a *assembly) rename(f *season.Facts) {
	for from, to := range a.Aliases {
		renameDriver(f, from, to)
	}
	for _, alias := range a.Named {
		if alias.Kind != RoundAlias { // a round keeps its key by its Grand Prix
			alias.apply(f)
		}
	}
}

// release puts back a block from before a person entered another. A round that only people entered
// keeps its calendar entry, because clients know it: the operator cancels it instead.
func (a *assembly) release(r *Release) {
	named := season.Facts{Seasons: []season.Season{{Rounds: []season.Round{r.Entered, r.Before}}}}
	a.rename(&named) // the facts have their present names
	entered, former := &named.Seasons[0].Rounds[0], &named.Seasons[0].Rounds[1]
	ours, ok := a.out.Facts.Round(r.Year, r.GrandPrix)
	if !ok || !Same(r.Block, ours, entered) {
		return
	}
	if !Has(r.Block, former) {
		switch r.Block {
		case Calendar, Start, Sessions:
			return
		case Result:
			if len(a.Decided(r.Year, r.GrandPrix).Verified) > 0 {
				return
			}
		}
	}
	before := *ours
	replace(r.Block, ours, former)
	p := Proposal{
		ID: identity(r.Year, r.GrandPrix, r.Block, ours), Year: r.Year, GrandPrix: r.GrandPrix, Block: r.Block,
		Source: ManualSource, Revision: r.Revision, Lines: diff(r.Block, &before, ours), Accepted: true, Released: true,
	}
	if r.Block == Start {
		p.Was, p.Provisional = before.StartsAt(), before.Provisional()
	}
	a.out.Applied = append(a.out.Applied, p)
}

// clone copies seasons and their lists of rounds, because Assemble writes to them. Rows are shared:
// Assemble replaces lists of rows and never writes to a row.
func clone(f season.Facts) season.Facts {
	f.Seasons = slices.Clone(f.Seasons)
	for i := range f.Seasons {
		f.Seasons[i].Rounds = slices.Clone(f.Seasons[i].Rounds)
	}
	return f
}
