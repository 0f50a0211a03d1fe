package season

import (
	"fmt"
	"time"
)

// Facts are seasons and what their rows refer to.
type Facts struct {
	Source    string                `json:"source"` // what the facts were imported from, for attribution
	Drivers   map[DriverID]Driver   `json:"drivers"`
	Teams     map[TeamID]Team       `json:"teams"`
	Engines   map[EngineID]Engine   `json:"engines"`
	Circuits  map[CircuitID]Circuit `json:"circuits"`
	Lineages  []Lineage             `json:"lineages"`
	Headshots Headshots             `json:"headshots"`
	Seasons   []Season              `json:"-"` // by ascending year; each is a line of its own in a file
}

// Archive holds all facts, of the past and of a known future. It is immutable.
type Archive struct {
	facts Facts
	index *index
}

// New returns an archive of the facts, which the caller must not change afterwards. It returns
// the first fault that Validate finds.
func New(facts Facts) (*Archive, error) {
	if err := facts.Validate(); err != nil {
		return nil, fmt.Errorf("make archive: %w", err)
	}
	return &Archive{facts: facts, index: newIndex(&facts)}, nil
}

// Facts returns everything, known or yet to be known: for storing and inspecting an archive.
// What is published or predicted comes from AsOf.
func (a *Archive) Facts() Facts { return a.facts }

// Round returns the round of a Grand Prix in a year.
func (f *Facts) Round(year int, gp GrandPrixID) (*Round, bool) {
	for i := range f.Seasons {
		if f.Seasons[i].Year == year {
			return f.Seasons[i].Round(gp)
		}
	}
	return nil, false
}

// View is what was known at an instant. Drivers, teams, engines and circuits are there once
// something known refers to them.
type View struct {
	At        time.Time
	Drivers   map[DriverID]Driver
	Teams     map[TeamID]Team
	Engines   map[EngineID]Engine
	Circuits  map[CircuitID]Circuit
	Lineages  []Lineage
	Headshots Headshots
	Seasons   []Season // by ascending year

	archive *Archive // of which it is a view; nil: of none
}
