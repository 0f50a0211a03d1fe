package wire

// SessionsBody are the sessions of one round beside the classifications of race and sprint.
//
// One round; empty where no session has a known outcome.
type SessionsBody = Success[[]WeekendSessions]

// WeekendSessions is the sessions of one round. A list is absent while its session has no known outcome.
type WeekendSessions struct {
	SessionKey SessionKey `json:"session_key"`
	GPName     GPName     `json:"gp_name"`
	// The drivers in the rows below.
	Drivers []SessionDriver `json:"drivers"`
	// Practice, session by session, the fastest first.
	Practice []PracticeRow `json:"practice,omitzero"`
	// The qualifying of the sprint.
	SprintQualifying []QualifyingRow `json:"sprint_qualifying,omitzero"`
	// The starting grid of the sprint.
	SprintGrid []GridRow `json:"sprint_grid,omitzero"`
	// The qualifying of the race.
	Qualifying []QualifyingRow `json:"qualifying,omitzero"`
	// The starting grid of the race, penalties applied.
	Grid []GridRow `json:"grid,omitzero"`
	// Each driver's fastest lap of the race, in the order of the source: the fastest first, but the lap of a
	// disqualified driver may be last. Absent until the result is verified.
	FastestLaps []FastestLap `json:"fastest_laps,omitzero"`
	// The stops of the race; absent until the result is verified.
	PitStops []PitStop `json:"pit_stops,omitzero"`
}

// SessionDriver is a driver of the round.
type SessionDriver struct {
	DriverID DriverID `json:"driver_id"`
	// Three letters that name the driver within the season; absent for a driver who took part in practice alone.
	Driver DriverCode `json:"driver,omitzero"`
	// Name of the driver.
	Name string `json:"name"`
	// Name of the team.
	Team   string `json:"team"`
	TeamID TeamID `json:"team_id"`
}

// PracticeRow is a driver's practice session.
type PracticeRow struct {
	// The practice session.
	Session string `json:"session" enum:"practice_1,practice_2,practice_3,practice_4"`
	// Place by lap time; absent without a lap time.
	Position int      `json:"position,omitzero"`
	DriverID DriverID `json:"driver_id"`
	// The best lap, in milliseconds.
	TimeMS int64 `json:"time_ms,omitzero"`
	// Completed laps; absent if unknown.
	Laps int `json:"laps,omitzero"`
}

// QualifyingRow is a driver's qualifying.
type QualifyingRow struct {
	// Place; absent if unranked.
	Position int      `json:"position,omitzero"`
	DriverID DriverID `json:"driver_id"`
	// The best lap of a qualifying without parts, in milliseconds. At Indianapolis until 1960 it is the time of
	// four laps, in the first six races of 2005 the sum of two.
	TimeMS int64 `json:"time_ms,omitzero"`
	// The best lap of the first part, in milliseconds.
	Q1MS int64 `json:"q1_ms,omitzero"`
	// The best lap of the second part, in milliseconds.
	Q2MS int64 `json:"q2_ms,omitzero"`
	// The best lap of the third part, in milliseconds.
	Q3MS int64 `json:"q3_ms,omitzero"`
}

// GridRow is a place on a starting grid.
type GridRow struct {
	// Place; absent for a start from the pit lane.
	Position int      `json:"position,omitzero"`
	DriverID DriverID `json:"driver_id"`
	// The driver starts from the pit lane; absent otherwise.
	PitLane bool `json:"pit_lane,omitzero"`
	// The driver's place in qualifying: on the grid of a sprint in its own, which was that of the race in 2021 and
	// 2022. Absent if there is none.
	Qualified int `json:"qualified,omitzero"`
	// Places lost between qualifying and grid; negative if won. In the sprint weekends of 2021 and 2022 the sprint
	// set the grid of the race, so its places count too. Absent unless both are known.
	PlacesLost *int `json:"places_lost,omitzero" minimum:"none"`
	// Places by which the stewards moved the driver back; the driver may lose fewer. Absent if there is none or it
	// is unknown.
	Penalty int `json:"penalty,omitzero"`
	// The stewards sent the driver to the back of the grid; absent otherwise.
	ToTheBack bool `json:"to_the_back,omitzero"`
}

// FastestLap is a driver's fastest lap of the race.
type FastestLap struct {
	// Place in this order; every driver with the time of the first has place 1.
	Position int      `json:"position" minimum:"1"`
	DriverID DriverID `json:"driver_id"`
	// The number of the lap; absent if unknown.
	Lap int `json:"lap,omitzero"`
	// The lap time, in milliseconds.
	TimeMS int64 `json:"time_ms,omitzero"`
}

// PitStop is one stop in the race.
type PitStop struct {
	DriverID DriverID `json:"driver_id"`
	// The number of the driver's stop.
	Stop int `json:"stop" minimum:"1"`
	// The lap on which the driver stopped.
	Lap int `json:"lap"`
	// The time in the pit lane, in milliseconds.
	TimeMS int64 `json:"time_ms,omitzero"`
}

// StandingsProgressBody is one championship after every verified round of a season. Before 2010: up to the first
// round whose result is not verified. The last round has the figures of /standings.
//
// Rows by their last position; empty before the season's first result, and for constructors in seasons without
// their championship.
type StandingsProgressBody = Success[[]DriverProgress]

// StandingsProgressConstructorsBody is the body for the constructors.
type StandingsProgressConstructorsBody = Success[[]ConstructorProgress]

// DriverProgress is one driver or one team through the season. A row of a driver has driver, driver_id and name; a
// row of a team has none of them. A team whose entry was excluded, and which entered anew, has a row for each
// entry.
//
//schema:name StandingProgress
type DriverProgress struct {
	// Code of the driver; absent in the constructors' championship.
	Driver DriverCode `json:"driver"`
	// Identifier of the driver, the same for ever; absent in the constructors' championship.
	DriverID string `json:"driver_id"`
	// Full name of the driver; absent in the constructors' championship.
	Name string `json:"name"`
	// The team; of a driver, that of the latest race.
	Team   string `json:"team"`
	TeamID TeamID `json:"team_id"`
	// The team's colour; absent if unknown.
	TeamColour Colour `json:"team_colour,omitzero"`
	// The rounds since the driver or team is in the championship, in order of their start.
	Rounds []RoundProgress `json:"rounds" minItems:"1"`
	// The decisions that count in the points or the rank, and that no race shows; absent without any.
	Decisions []ChampionshipDecision `json:"decisions,omitzero"`
}

// ConstructorProgress is a row of a team. It shares its schema with DriverProgress.
//
//schema:name StandingProgress
type ConstructorProgress struct {
	// The team; of a driver, that of the latest race.
	Team   string `json:"team"`
	TeamID TeamID `json:"team_id"`
	// The engine, in every round of a season that ranks the team with several engines apart.
	Engine string `json:"engine,omitzero"`
	// Number of the entry, where the team has several in the season.
	Entry int `json:"entry,omitzero"`
	// The team's colour; absent if unknown.
	TeamColour Colour `json:"team_colour,omitzero"`
	// The rounds since the driver or team is in the championship, in order of their start.
	Rounds []RoundProgress `json:"rounds" minItems:"1"`
	// The decisions that count in the points or the rank, and that no race shows; absent without any.
	Decisions []ChampionshipDecision `json:"decisions,omitzero"`
}

// Ruling is the kind of a decision about a championship.
type Ruling string

// The decisions about a competitor of a championship.
const (
	PointsAdded  Ruling = "points_added"
	PointsTaken  Ruling = "points_taken"
	ExcludedFrom Ruling = "excluded"     // it has no rank; its points stay listed
	EnteredAnew  Ruling = "entered_anew" // its entry was excluded, and it goes on as another one without points
)

// ChampionshipDecision is a decision about a competitor of a championship that no race shows.
type ChampionshipDecision struct {
	SessionKey int64   `json:"session_key"` // of the first round whose table has it
	Decision   Ruling  `json:"decision"`
	Points     float64 `json:"points,omitzero"` // added or taken
	By         string  `json:"by"`              // operator or archive
	At         Instant `json:"at,omitzero"`     // absent for a fact of the archive
	Reason     string  `json:"reason"`
}

// ChangedChampionship is the competitor and the decision of a change.
type ChangedChampionship struct {
	Type     string  `json:"type"` // drivers or constructors
	ID       string  `json:"id"`   // of the driver or team
	Name     string  `json:"name,omitzero"`
	Engine   string  `json:"engine,omitzero"` // where the season ranks a team with several engines apart
	Decision Ruling  `json:"decision"`
	Points   float64 `json:"points,omitzero"`   // added or taken
	Restored bool    `json:"restored,omitzero"` // the decision has ended: the tables are as if it had not been made
}

// RoundProgress is a competitor's championship after a verified round, its sprint included.
type RoundProgress struct {
	SessionKey int64   `json:"session_key"`
	Round      int     `json:"round"`
	Position   int     `json:"position,omitzero"` // absent if unranked
	Points     float64 `json:"points"`
	Wins       int     `json:"wins"`
}

// HeadToHeadBody are team-mates of one season compared over the rounds in which both took part for their team.
//
// Pairs of team-mates, by team; empty before the season's first qualifying.
type HeadToHeadBody = Success[[]HeadToHead]

// HeadToHead are two drivers of a team. The first is the one with the lower identifier.
type HeadToHead struct {
	// Name of the team.
	Team   string `json:"team"`
	TeamID TeamID `json:"team_id"`
	// The team's colour; absent if unknown.
	TeamColour Colour `json:"team_colour,omitzero"`
	// Rounds in which both have a place in qualifying.
	QualifyingRounds int `json:"qualifying_rounds"`
	// Median of the second driver's gap to the first in qualifying, in milliseconds, each in the last part in
	// which both set a time, or of time_ms in /sessions; negative if the second is faster. Absent without such a
	// round.
	MedianGapMS *int64 `json:"median_gap_ms,omitzero" minimum:"none"`
	// Verified races in which both are classified.
	RaceRounds int `json:"race_rounds"`
	// Verified races whose classification, with its sprint, has both for the team, also without a start.
	PointsRounds int `json:"points_rounds"`
	// The first driver.
	First Teammate `json:"first"`
	// The second driver.
	Second Teammate `json:"second"`
}

// Teammate is one side of a comparison.
type Teammate struct {
	Driver   DriverCode `json:"driver"`
	DriverID DriverID   `json:"driver_id"`
	// Name of the driver.
	Name string `json:"name"`
	// Rounds ahead in qualifying.
	QualifyingAhead int `json:"qualifying_ahead"`
	// Races ahead, of those in which both are classified.
	RaceAhead int `json:"race_ahead"`
	// Points of races and sprints in the counted rounds.
	Points float64 `json:"points"`
}

// CareersBody are the records of drivers, or of constructors, over verified rounds: of one season or of all.
//
// Most wins first, then most podiums, then most starts.
type CareersBody = Success[[]Career]

// FormerCareersBody are the careers that have ended.
type FormerCareersBody = CareersBody

// Career is one driver or constructor.
type Career struct {
	// The driver_id or team_id of the other documents, the same for ever.
	ID string `json:"id"`
	// Full name.
	Name string `json:"name"`
	// ISO 3166-1 alpha-3 code of the nationality; absent if unknown.
	Country string `json:"country,omitzero" pattern:"^[A-Z]{3}$"`
	// Races started, that is, with the status classified, not_classified, did_not_finish or disqualified in
	// /results; of a constructor, races with a car at the start.
	Starts int `json:"starts"`
	// Races classified, also without reaching the flag. A driver of several cars counts once, with the best place.
	// Of a constructor, cars.
	Classified int `json:"classified"`
	// Races with the status did_not_finish: neither finished nor classified. Of a constructor, cars.
	Retired int `json:"retired"`
	// Races won.
	Wins int `json:"wins"`
	// Races finished among the first three; of a constructor, cars.
	Podiums int `json:"podiums"`
	// First places on the starting grid of a race; in the sprint weekends of 2022, in qualifying.
	Poles int `json:"poles"`
	// First places among the fastest laps of a race, as in /sessions; several drivers may share one.
	FastestLaps int `json:"fastest_laps"`
	// Points of every race and sprint, also where only the best results count for the championship, and without
	// decisions about it; of a constructor, those of its drivers.
	Points float64 `json:"points"`
	// Championships won in seasons that are over.
	Titles int `json:"titles"`
	// The first race with a row in /results, also without a start.
	FirstSession SessionKey `json:"first_session_key"`
	// The latest race with a row in /results, also without a start.
	LastSession SessionKey `json:"last_session_key"`
	// The teams of a driver, in order of the first race; absent before the first start.
	Teams []CareerTeam `json:"teams,omitzero"`
	// The drivers of a constructor, in order of the first race; absent before the first start.
	Drivers []CareerDriver `json:"drivers,omitzero"`
}

// CareerTeam is a team of a driver.
type CareerTeam struct {
	TeamID TeamID `json:"team_id"`
	// Name of the team.
	Name string `json:"name"`
	// Races that the driver started for the team.
	Starts int `json:"starts" minimum:"1"`
}

// CareerDriver is a driver of a constructor.
type CareerDriver struct {
	DriverID DriverID `json:"driver_id"`
	// Name of the driver.
	Name string `json:"name"`
	// Races that the driver started for the team.
	Starts int `json:"starts" minimum:"1"`
}
