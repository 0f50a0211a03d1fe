package season

import (
	"fmt"
	"time"
)

// Facts are seasons, and the drivers, teams, engines and circuits of their rows.
type Facts struct {
	Source    string                `json:"source"` // the source of the import, for attribution
	Drivers   map[DriverID]Driver   `json:"drivers"`
	Teams     map[TeamID]Team       `json:"teams"`
	Engines   map[EngineID]Engine   `json:"engines"`
	Circuits  map[CircuitID]Circuit `json:"circuits"`
	Lineages  []Lineage             `json:"lineages"`
	Headshots Headshots             `json:"headshots"`
	// Aliases holds the present identifiers of teams by the ones that they had, because the ledger keeps those.
	Aliases map[TeamID]TeamID `json:"aliases"`
	Seasons []Season          `json:"-"` // by ascending year; each is a separate line of a file
}

// NewFacts returns empty facts to which drivers, teams, engines and circuits can be added.
func NewFacts() Facts {
	return Facts{Drivers: map[DriverID]Driver{}, Teams: map[TeamID]Team{}, Engines: map[EngineID]Engine{}, Circuits: map[CircuitID]Circuit{}}
}

// Archive holds all facts, of the past and of a known future. It is immutable.
type Archive struct {
	facts Facts
	index *index
}

// New returns an archive of the facts, which the caller must not change afterwards. It returns
// the first fault that Validate finds.
func New(facts Facts) (*Archive, error) {
	facts = facts.AssumeHours()
	seen, err := facts.validate()
	if err != nil {
		return nil, fmt.Errorf("make archive: %w", err)
	}
	return &Archive{facts: facts, index: newIndex(&facts, seen)}, nil
}

// Facts returns all facts, also of the future. Use it to store and inspect an archive, and AsOf for
// everything that is published or predicted.
func (a *Archive) Facts() Facts { return a.facts }

// Round returns the round of a Grand Prix in a year.
func (f *Facts) Round(year int, gp GrandPrixID) (*Round, bool) {
	if s, ok := f.Season(year); ok {
		return s.Round(gp)
	}
	return nil, false
}

// Season returns the season of a year.
func (f *Facts) Season(year int) (*Season, bool) {
	for i := len(f.Seasons) - 1; i >= 0; i-- { // callers mostly want a late one
		if f.Seasons[i].Year == year {
			return &f.Seasons[i], true
		}
	}
	return nil, false
}

// View holds the facts that were known at an instant. It has a driver, team, engine or circuit as soon
// as a known fact refers to it.
type View struct {
	At time.Time
	Facts
}
