package wire

// Identity is a record of /identifiers: a driver, a constructor, a circuit or a Grand Prix, and its names elsewhere.
type Identity struct {
	ID      string       `json:"id"` // the same for ever
	Name    string       `json:"name"`
	F1DB    string       `json:"f1db"` // the present identifier there
	Jolpica []string     `json:"jolpica,omitzero"`
	OpenF1  []string     `json:"openf1,omitzero"`
	Aliases []string     `json:"aliases,omitzero"` // further identifiers that F1DB had in between
	Codes   []SeasonCode `json:"codes,omitzero"`   // of a driver
}

// SeasonCode is a three-letter code and the seasons in which it named a driver at a race.
type SeasonCode struct {
	Code string `json:"code"`
	From int    `json:"from"`
	To   int    `json:"to"`
}
