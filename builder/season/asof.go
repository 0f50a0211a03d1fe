package season

import "time"

// Archive holds all facts, of the past and of a known future. It is immutable once made.
type Archive struct {
	Source   string // what the facts were imported from, for attribution
	Drivers  map[DriverID]Driver
	Teams    map[TeamID]Team
	Engines  map[EngineID]Engine
	Circuits map[CircuitID]Circuit
	Lineages []Lineage
	Seasons  []Season // by ascending year
}

// View is what was known at an instant. Its values are shared with the archive: read only.
type View struct {
	At       time.Time
	Drivers  map[DriverID]Driver
	Teams    map[TeamID]Team
	Engines  map[EngineID]Engine
	Circuits map[CircuitID]Circuit
	Lineages []Lineage
	Seasons  []Season
}
