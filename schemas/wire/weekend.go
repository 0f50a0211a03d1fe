package wire

// ResultsBody are verified classifications.
//
// Rounds with a verified result, in the order of the calendar; empty where there is none.
type ResultsBody = Success[[]ResultRecord]

// ResultRecord is the verified classification of one round.
type ResultRecord struct {
	SessionKey SessionKey `json:"session_key"`
	GPName     GPName     `json:"gp_name"`
	// When the result was verified and revised, oldest first. The rows are those of the last one. Empty: the
	// result was there when the service began, and nobody has revised it.
	Revisions []Revision `json:"revisions"`
	// The classification of the race.
	Race []ResultRow `json:"race" minItems:"1"`
	// The classification of the weekend's sprint, which is verified together with the race; absent if there was
	// none.
	Sprint []ResultRow `json:"sprint,omitzero"`
}

// Revision is one verification of a result.
type Revision struct {
	// 1 for the first.
	Revision int `json:"revision" minimum:"1"`
	// When it was verified.
	At Instant `json:"at"`
	// The actor of the verification: a person; a rule, once the result had been unchanged for some time; or the
	// archive, which had it long before.
	By Actor `json:"by"`
	// Why the result was revised.
	Reason string `json:"reason,omitzero"`
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

// ResultRow is the result of one driver.
type ResultRow struct {
	// Place; absent if not classified.
	Position int        `json:"position,omitzero"`
	Driver   DriverCode `json:"driver"`
	DriverID DriverID   `json:"driver_id"`
	// Name of the driver.
	Name string `json:"name"`
	// Name of the team.
	Team       string `json:"team"`
	TeamID     TeamID `json:"team_id"`
	TeamColour Colour `json:"team_colour,omitzero"`
	// The number on the car; absent if unknown, and for number 0 of 1973, 1993 and 1994.
	Number int `json:"number,omitzero" minimum:"0"`
	// Whether the driver was classified, and if not, why.
	Status ResultStatus `json:"status"`
	// Place on the grid; absent if the driver started from the pit lane, or it is not known.
	Grid int `json:"grid,omitzero"`
	// Laps completed; absent if unknown, as for a driver in another's car.
	Laps *int `json:"laps,omitzero"`
	// Time of the winner, in milliseconds.
	TimeMS int64 `json:"time_ms,omitzero"`
	// The time behind the winner, in milliseconds; absent for a lapped driver.
	GapMS int64 `json:"gap_ms,omitzero" minimum:"0"`
	// Laps behind the winner, for a lapped driver.
	GapLaps int `json:"gap_laps,omitzero"`
	// Points scored.
	Points float64 `json:"points"`
	// Why the driver retired, did not start, or was disqualified, in the words of the source. A driver may retire
	// and be classified.
	Reason string `json:"reason,omitzero"`
	// Another driver had started in this car.
	Shared bool `json:"shared,omitzero"`
}

// WeekendsBody is where and when rounds are held, session by session.
//
// In the order of the calendar.
type WeekendsBody = Success[[]Weekend]

// Weekend is one round with all its sessions.
type Weekend struct {
	SessionKey SessionKey `json:"session_key"`
	// Number in the calendar; may change when the calendar does.
	Round  int    `json:"round" minimum:"1"`
	GPName GPName `json:"gp_name"`
	// Identifier of the Grand Prix, the same for ever. /identifiers has the names that other sources have for it.
	GPID    string  `json:"gp_id"`
	Circuit Circuit `json:"circuit"`
	// Whether the weekend has a sprint.
	Sprint bool `json:"sprint"`
	// Where the round stands, as in /calendar.
	Status Status `json:"status"`
	// Why the round was moved, postponed, cancelled or reinstated last; absent if it stands as first published.
	Reason string `json:"reason,omitzero"`
	// The start of the race before it was last moved or postponed; absent if it had none, or has it again.
	Was Instant `json:"was,omitzero"`
	// In order of time; the race is the last. Sessions of which not even the day is known are left out.
	Sessions []WeekendSession `json:"sessions" minItems:"1"`
}

// Circuit is where a round is held.
type Circuit struct {
	// Identifier of the circuit, the same for ever. /identifiers has the names that other sources have for it.
	ID string `json:"id"`
	// Name of the circuit.
	Name string `json:"name"`
	// Town of the circuit.
	Locality string `json:"locality"`
	// Country of the circuit, which is not always the one the Grand Prix is named for.
	Country string `json:"country"`
	// IANA name of the time zone, by whose clocks the weekend is run.
	TimeZone TimeZone `json:"time_zone,omitzero"`
}

// WeekendSession is one session of a weekend.
type WeekendSession struct {
	// Which session.
	Session string `json:"session" enum:"practice_1,practice_2,practice_3,practice_4,sprint_qualifying,sprint,qualifying,race"`
	// UTC day of the start.
	Date Day `json:"date"`
	// Start of the session; of the race, of its formation lap. Absent if the hour is unknown.
	DateStart Instant `json:"date_start,omitzero"`
	// The status of the race is that of the round. Another session is finished once its outcome is known, or the
	// race is under way.
	Status Status `json:"status"`
	// Assumed start of a race of unknown hour: the local hour of the last edition. Absent once the hour is known.
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

// ChangesBody are changes of published rounds.
//
// The newest first; empty where nothing has changed.
type ChangesBody = Success[[]Change]

// Change is one decision about a round or a championship.
//
//schema:when kind=driver_withdrawn,driver_returned: +driver +driver_id -old -new -championship
//schema:else -driver -driver_id
//schema:when kind=championship_decided: +championship -old -new
//schema:else -championship
//schema:when kind=round_added: -old +new
//schema:else +old
//schema:when kind=pick_voided: -new
//schema:else +new
type Change struct {
	// The round; of a decision about a championship, the first round whose table has it.
	SessionKey SessionKey `json:"session_key"`
	GPName     GPName     `json:"gp_name"`
	// The kind of change.
	Kind ChangeKind `json:"kind"`
	// When it was decided.
	At Instant `json:"at"`
	// The actor: a person; a source of the facts; a rule; or the service itself.
	By Actor `json:"by"`
	// Why.
	Reason string `json:"reason,omitzero"`
	// The published values before, as far as they differ.
	Old *ChangeState `json:"old,omitzero"`
	// The published values now, as far as they differ.
	New *ChangeState `json:"new,omitzero"`
	// The competitor and the decision; only of a decision about a championship.
	Championship *ChangedChampionship `json:"championship,omitzero"`
	// The driver of the frozen pick who does not start, or starts after all; only of these two kinds.
	Driver DriverCode `json:"driver,omitzero"`
	// Identifier of that driver, the same for ever.
	DriverID string `json:"driver_id,omitzero"`
}

// ChangesLogBody is a page of the log of changes: at most 200, in the order in which they became known.
type ChangesLogBody = Success[ChangesPage]

// ChangesPage is one page of the log.
type ChangesPage struct {
	// Number of the page; absent while there is no such page.
	Page int `json:"page,omitzero"`
	// Address of the next page; absent until this page is full. Then this page never changes again.
	Next string `json:"next,omitzero" pattern:"^/api/v1/changes/log\\?page=[1-9][0-9]{0,5}$"`
	// The changes, oldest first.
	Changes []LoggedChange `json:"changes" maxItems:"200"`
}

// LoggedChange is a change of a published round. It has nothing that can change later, such as a name; the
// documents of the session key have that.
type LoggedChange struct {
	// The round; of a decision about a championship, the first round whose table has it.
	SessionKey SessionKey `json:"session_key"`
	// The kind of change.
	Kind ChangeKind `json:"kind"`
	// When it was decided.
	At Instant `json:"at"`
	// The actor: a person; a source of the facts; a rule; or the service itself.
	By Actor `json:"by"`
	// Why.
	Reason string `json:"reason,omitzero"`
	// Before the change.
	Old *LoggedState `json:"old,omitzero"`
	// After the change.
	New *LoggedState `json:"new,omitzero"`
	// The competitor and the decision; only of a decision about a championship.
	Championship *ChangedChampionship `json:"championship,omitzero"`
	// Identifier, the same for ever, of the driver of the frozen pick who does not start, or starts after all;
	// only of these two kinds.
	DriverID string `json:"driver_id,omitzero"`
}

// LoggedState is one side of a change, with the fields that differ.
type LoggedState struct {
	// Of the round.
	Status OpenStatus `json:"status,omitzero"`
	// Start of the race; absent if the hour is unknown, or the start is as before.
	DateStart Instant `json:"date_start,omitzero"`
	// Of the result; absent for the one that was there when the service began.
	Revision int `json:"revision,omitzero"`
}

// ChangeState is one side of a change: only the differing values.
type ChangeState struct {
	// Of the round.
	Status OpenStatus `json:"status,omitzero"`
	// Start of the race; absent if the hour is unknown, or the start is as before.
	DateStart Instant `json:"date_start,omitzero"`
	// Of the result; absent for the one that was there when the service began.
	Revision int `json:"revision,omitzero"`
	// The rows of the race that differ.
	Race []ChangedRow `json:"race,omitzero"`
	// The rows of the sprint that differ.
	Sprint []ChangedRow `json:"sprint,omitzero"`
	// The pick that no longer counts.
	Prediction *Prediction `json:"prediction,omitzero"`
}

// ChangedRow is a driver's row on one side of a change.
type ChangedRow struct {
	// Place; absent if not classified.
	Position int        `json:"position,omitzero"`
	Driver   DriverCode `json:"driver"`
	DriverID DriverID   `json:"driver_id"`
	// Name of the team.
	Team   string `json:"team"`
	TeamID TeamID `json:"team_id"`
	// Points scored.
	Points float64 `json:"points"`
}
