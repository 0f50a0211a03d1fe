package wire

// ResultRecord is one record of /results: the verified classification of a round.
type ResultRecord struct {
	SessionKey int64       `json:"session_key"`
	GPName     string      `json:"gp_name"`
	Revisions  []Revision  `json:"revisions"` // oldest first; empty: as the archive had it from the beginning
	Race       []ResultRow `json:"race"`
	Sprint     []ResultRow `json:"sprint,omitzero"`
}

// Revision is a verification of a classification, or its correction.
type Revision struct {
	Revision int     `json:"revision"` // 1 for the first
	At       Instant `json:"at"`
	By       string  `json:"by"`              // operator, rule, archive
	Reason   string  `json:"reason,omitzero"` // of a correction
}

// ResultStatus is the reason for a driver's place in a classification, or for having none.
type ResultStatus string

// The results that a driver may have.
const (
	Classified       ResultStatus = "classified"
	DidNotFinish     ResultStatus = "did_not_finish"
	DidNotStart      ResultStatus = "did_not_start"
	Disqualified     ResultStatus = "disqualified"
	NotClassified    ResultStatus = "not_classified"
	DidNotQualify    ResultStatus = "did_not_qualify"
	DidNotPreQualify ResultStatus = "did_not_prequalify"
	DidNotPractise   ResultStatus = "did_not_practise"
	Excluded         ResultStatus = "excluded"
)

// ResultRow is one line of a classification. Only the winner has a time; the others have a gap to
// it, in time or in laps.
type ResultRow struct {
	Position   int          `json:"position,omitzero"` // absent if not classified
	Driver     string       `json:"driver"`            // three-letter code
	DriverID   string       `json:"driver_id"`
	Name       string       `json:"name"`
	Team       string       `json:"team"`
	TeamID     string       `json:"team_id"`
	TeamColour string       `json:"team_colour,omitzero"` // #RRGGBB, upper case
	Number     int          `json:"number,omitzero"`      // the one on the car
	Status     ResultStatus `json:"status"`
	Grid       int          `json:"grid,omitzero"` // absent: from the pit lane, or unknown
	Laps       *int         `json:"laps,omitzero"` // completed
	TimeMS     int64        `json:"time_ms,omitzero"`
	GapMS      int64        `json:"gap_ms,omitzero"`
	GapLaps    int          `json:"gap_laps,omitzero"`
	Points     float64      `json:"points"`
	Reason     string       `json:"reason,omitzero"` // why the driver retired, did not start, or was disqualified
	Shared     bool         `json:"shared,omitzero"` // another driver had started in the car
}

// Weekend is one record of /weekends: where and when a round is held, session by session.
type Weekend struct {
	SessionKey int64            `json:"session_key"`
	Round      int              `json:"round"`
	GPName     string           `json:"gp_name"`
	GPID       string           `json:"gp_id"` // F1DB's, the same every year
	Circuit    Circuit          `json:"circuit"`
	Sprint     bool             `json:"sprint"`
	Status     Status           `json:"status"`
	Reason     string           `json:"reason,omitzero"` // of the last decision that moved, postponed, cancelled or reinstated it
	Was        Instant          `json:"was,omitzero"`    // its start before it was last moved or postponed; absent if it had none, or has it again
	Sessions   []WeekendSession `json:"sessions"`        // in order of time; the race is the last
}

// Circuit is where a round is held.
type Circuit struct {
	ID       string `json:"id"` // F1DB's
	Name     string `json:"name"`
	Locality string `json:"locality"`
	Country  string `json:"country"`
	TimeZone string `json:"time_zone,omitzero"` // IANA name
}

// WeekendSession is one session of a weekend.
type WeekendSession struct {
	Session   string  `json:"session"`             // practice_1 … practice_4, sprint_qualifying, sprint, qualifying, race
	Date      string  `json:"date"`                // YYYY-MM-DD, UTC day of the start
	DateStart Instant `json:"date_start,omitzero"` // absent if the hour is unknown
	Status    Status  `json:"status"`
	// ProvisionalStart is the start that gridcast assumes for a race of unknown hour: the local hour of the last edition.
	ProvisionalStart Instant `json:"provisional_start,omitzero"`
}

// ChangeKind names the kind of a change to a published round.
type ChangeKind string

// The changes.
const (
	RoundMoved      ChangeKind = "round_moved"
	RoundPostponed  ChangeKind = "round_postponed"
	RoundCancelled  ChangeKind = "round_cancelled"
	RoundReinstated ChangeKind = "round_reinstated"
	ResultRevised   ChangeKind = "result_revised"
	PickVoided      ChangeKind = "pick_voided"
	RoundAdded      ChangeKind = "round_added"

	ChampionshipDecided ChangeKind = "championship_decided" // session_key is the first round whose table has it

	DriverWithdrawn ChangeKind = "driver_withdrawn" // a driver of the frozen pick does not start
	DriverReturned  ChangeKind = "driver_returned"  // a driver who had withdrawn starts after all
)

// Change is one record of /changes. Old and New hold only the differing fields.
type Change struct {
	SessionKey int64        `json:"session_key"`
	GPName     string       `json:"gp_name"`
	Kind       ChangeKind   `json:"kind"`
	At         Instant      `json:"at"`
	By         string       `json:"by"` // operator, source, rule, archive or builder
	Reason     string       `json:"reason,omitzero"`
	Old        *ChangeState `json:"old,omitzero"`
	New        *ChangeState `json:"new,omitzero"`

	Championship *ChangedChampionship `json:"championship,omitzero"`

	Driver   string `json:"driver,omitzero"`    // code of the driver who withdrew or returned
	DriverID string `json:"driver_id,omitzero"` // the same for ever
}

// ChangesPage is the body of /changes with page: changes in the order in which they became known. A page with a next one
// is full and never changes again.
type ChangesPage struct {
	Page    int            `json:"page,omitzero"` // absent: the page is to come
	Next    string         `json:"next,omitzero"` // the address of the next page; absent until this one is full
	Changes []LoggedChange `json:"changes"`
}

// LoggedChange is one change of a page. It holds nothing that can change later, such as a name: the documents of the
// session key have that.
type LoggedChange struct {
	SessionKey int64        `json:"session_key"`
	Kind       ChangeKind   `json:"kind"`
	At         Instant      `json:"at"`
	By         string       `json:"by"` // operator, source, rule, archive or builder
	Reason     string       `json:"reason,omitzero"`
	Old        *LoggedState `json:"old,omitzero"`
	New        *LoggedState `json:"new,omitzero"`

	Championship *ChangedChampionship `json:"championship,omitzero"` // without the name

	DriverID string `json:"driver_id,omitzero"` // of the driver who withdrew or returned, the same for ever
}

// LoggedState is one side of a LoggedChange.
type LoggedState struct {
	Status    Status  `json:"status,omitzero"`
	DateStart Instant `json:"date_start,omitzero"`
	Revision  int     `json:"revision,omitzero"` // of the result; absent before the first
}

// ChangeState is one side of a change.
type ChangeState struct {
	Status     Status       `json:"status,omitzero"`
	DateStart  Instant      `json:"date_start,omitzero"` // absent if the hour is unknown
	Revision   int          `json:"revision,omitzero"`   // of the result; absent before the first
	Race       []ChangedRow `json:"race,omitzero"`       // the rows that differ
	Sprint     []ChangedRow `json:"sprint,omitzero"`
	Prediction *Prediction  `json:"prediction,omitzero"` // a pick that no longer counts
}

// ChangedRow is a driver's row on one side of a change.
type ChangedRow struct {
	Position int     `json:"position,omitzero"` // absent if not classified
	Driver   string  `json:"driver"`
	DriverID string  `json:"driver_id"`
	Team     string  `json:"team"`
	TeamID   string  `json:"team_id"`
	Points   float64 `json:"points"`
}
