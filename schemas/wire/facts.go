package wire

// FactsState is the part of /status about the facts behind a version: their sources, their state,
// and the next expected change.
type FactsState struct {
	NextChange    Instant        `json:"next_change,omitzero"` // in the past: overdue since then; absent: none is expected
	Sources       []SourceState  `json:"sources"`
	Rounds        []RoundState   `json:"rounds"`         // of the season of the next race, in calendar order
	NonCommercial []BorrowedFact `json:"non_commercial"` // parts of rounds from sources with non-commercial terms
}

// SourceState is a source of facts.
type SourceState struct {
	Source        string  `json:"source"`
	Licence       string  `json:"licence,omitzero"`
	NonCommercial bool    `json:"non_commercial,omitzero"`
	Use           string  `json:"use"`                    // published or compared
	Revision      string  `json:"revision,omitzero"`      // of its latest document
	ChangedAt     Instant `json:"changed_at,omitzero"`    // arrival of that document
	Silent        bool    `json:"silent,omitzero"`        // it has had no useful answer for more than half an hour
	SilentSince   Instant `json:"silent_since,omitzero"`  // its last useful answer; absent: there was none
	Waiting       int     `json:"waiting,omitzero"`       // changes held for an operator
	Disagreements int     `json:"disagreements,omitzero"` // parts of rounds from which it differs
}

// How a source is used.
const (
	UsePublished = "published"
	UseCompared  = "compared"
)

// RoundState is the state of the facts of a round.
type RoundState struct {
	SessionKey int64     `json:"session_key"`
	GPName     string    `json:"gp_name"`
	Status     Status    `json:"status"`
	Result     string    `json:"result,omitzero"`     // absent before the end of the race
	Revision   int       `json:"revision,omitzero"`   // of a verified result; 1 is the first
	PickBasis  string    `json:"pick_basis,omitzero"` // grid, qualifying or form; absent without a pick
	FrozenAt   Instant   `json:"frozen_at,omitzero"`
	Disputed   []Dispute `json:"disputed,omitzero"` // parts on which sources disagree
}

// The states of a result's facts.
const (
	FactsAwaited     = "awaited"     // no source has it
	FactsProvisional = "provisional" // a source has it; nothing published shows it
	FactsVerified    = "verified"
	FactsRevised     = "revised" // verified, and corrected since
)

// Dispute is a part of a round from which a source differs. The source's value is not published.
type Dispute struct {
	Part   string `json:"part"` // start, qualifying, grid, sprint, result, …
	Source string `json:"source"`
}

// BorrowedFact is a part of a round that a source with non-commercial terms gave.
type BorrowedFact struct {
	SessionKey int64  `json:"session_key"`
	GPName     string `json:"gp_name"`
	Part       string `json:"part"`
	Source     string `json:"source"`
	Licence    string `json:"licence"`
}
