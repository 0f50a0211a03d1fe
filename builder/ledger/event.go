package ledger

import (
	"time"

	"gridcast/builder/season"
)

// Kind says whether the picks of a ledger were made in real time or in hindsight.
type Kind string

// The kinds of ledger. They never mix.
const (
	Real      Kind = "real"
	Simulated Kind = "simulated"

	// AnyKind is for readers that take either, such as an audit. Nobody can append with it.
	AnyKind Kind = ""
)

// Type names what an event says.
type Type string

// The events, each with the fields that it uses besides ID, At and Actor.
const (
	Opened          Type = "opened"           // first event: Kind
	KeysAssigned    Type = "keys_assigned"    // Keys
	PickFrozen      Type = "pick_frozen"      // Session, Pick, Start, GridKnown
	PickVoided      Type = "pick_voided"      // Session, Reason
	LivePickFrozen  Type = "live_pick_frozen" // Session, Pick, Checkpoint, Start
	ResultVerified  Type = "result_verified"  // Session, Result, Start; Reason from revision 2 on
	RoundPostponed  Type = "round_postponed"  // Session, Reason; Was if the hour was known
	RoundCancelled  Type = "round_cancelled"  // Session, Reason
	RoundMoved      Type = "round_moved"      // Session, Reason, Start, Was
	RoundReinstated Type = "round_reinstated" // Session, Reason; Start if it has a new one
)

// Event is one fact. Fields that its Type does not use are zero and absent from the file.
// ID, At and Actor are filled in by Append.
type Event struct {
	ID      string    `json:"id"` // unique; tells a lost answer from a lost race
	Type    Type      `json:"type"`
	At      time.Time `json:"at"`    // race time, UTC; never before that of the event before
	Actor   string    `json:"actor"` // who or what decided: "builder", "operator:anna"
	Session int64     `json:"session_key,omitzero"`
	Reason  string    `json:"reason,omitzero"`

	Kind       Kind            `json:"kind,omitzero"`
	Keys       []KeyAssignment `json:"keys,omitzero"`
	Pick       *Pick           `json:"pick,omitzero"`
	Checkpoint int             `json:"checkpoint_pct,omitzero"` // of the scheduled distance; 0 with a live pick: end of lap 1
	Start      time.Time       `json:"start,omitzero"`          // lights out that is valid from this event on
	Was        time.Time       `json:"was,omitzero"`            // lights out that was valid until this event changed it
	GridKnown  bool            `json:"grid_known,omitzero"`     // a pick made with the grid
	Result     *Classification `json:"result,omitzero"`
}

// KeyAssignment binds a session key to a round for ever.
type KeyAssignment struct {
	Session   int64              `json:"session_key"`
	Year      int                `json:"year"`
	GrandPrix season.GrandPrixID `json:"grand_prix"`
}

// Pick is a prediction as frozen.
type Pick struct {
	P1             season.DriverID `json:"p1"`
	P2             season.DriverID `json:"p2"`
	P3             season.DriverID `json:"p3"`
	WinProbability float64         `json:"win_probability"` // of P1, in (0, 1]
	Model          string          `json:"model"`           // name and version of what made it
}

// Classification is a result as verified: the whole of it, in the order of the source.
type Classification struct {
	Revision int   `json:"revision"` // 1 for the first
	Rows     []Row `json:"rows"`
}

// Row is a line of a classification.
type Row struct {
	Driver   season.DriverID `json:"driver"`
	Team     season.TeamID   `json:"team"`
	Engine   season.EngineID `json:"engine,omitzero"`
	Position int             `json:"position,omitzero"` // 0: not classified
	Points   float64         `json:"points,omitzero"`
	Shared   bool            `json:"shared,omitzero"` // he shared the car of the first row with this position
}
