package wire

// IdentifiersBody are the identifiers of drivers, constructors, circuits or Grands Prix, with the names that other
// sources have for them.
//
// By identifier.
type IdentifiersBody = Success[[]Identity]

// Identity is one driver, constructor, circuit or Grand Prix.
type Identity struct {
	// The driver_id, team_id, gp_id or circuit.id of the other documents, the same for ever.
	ID string `json:"id"`
	// Present name.
	Name string `json:"name"`
	// F1DB's present identifier.
	F1DB string `json:"f1db"`
	// Jolpica's identifiers; of a Grand Prix, its names. Absent if unknown.
	Jolpica []string `json:"jolpica,omitzero"`
	// OpenF1's names: acronyms of drivers, names of teams, circuits and meetings. Absent if unknown.
	OpenF1 []string `json:"openf1,omitzero"`
	// Further identifiers that F1DB had in between; absent if there are none.
	Aliases []string `json:"aliases,omitzero"`
	// Three-letter codes of a driver by season; absent without a race weekend.
	Codes []SeasonCode `json:"codes,omitzero"`
}

// SeasonCode is a code and the seasons in which it named the driver.
type SeasonCode struct {
	// Three letters, unique within a season.
	Code DriverCode `json:"code"`
	// First season.
	From int `json:"from" minimum:"1950"`
	// Last season so far.
	To int `json:"to" minimum:"1950"`
}
