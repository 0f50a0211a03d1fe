package wire

// WeekendSessions is one record of /sessions: what a round's sessions brought beside the classifications of its
// race and sprint, which /results has. A list of a session without a known outcome is absent. Rows name drivers by
// identifier, because a driver who took part in practice alone has no code.
type WeekendSessions struct {
	SessionKey       int64           `json:"session_key"`
	GPName           string          `json:"gp_name"`
	Drivers          []SessionDriver `json:"drivers"`
	Practice         []PracticeRow   `json:"practice,omitzero"` // by session, then by lap time
	SprintQualifying []QualifyingRow `json:"sprint_qualifying,omitzero"`
	SprintGrid       []GridRow       `json:"sprint_grid,omitzero"`
	Qualifying       []QualifyingRow `json:"qualifying,omitzero"`
	Grid             []GridRow       `json:"grid,omitzero"`
	FastestLaps      []FastestLap    `json:"fastest_laps,omitzero"` // of a verified race
	PitStops         []PitStop       `json:"pit_stops,omitzero"`    // of a verified race
}

// SessionDriver is a driver in the rows of a round's sessions.
type SessionDriver struct {
	DriverID string `json:"driver_id"`       // the same for ever; see Identity
	Driver   string `json:"driver,omitzero"` // three-letter code
	Name     string `json:"name"`
	Team     string `json:"team"`
	TeamID   string `json:"team_id"`
}

// PracticeRow is a driver's best lap of a practice session.
type PracticeRow struct {
	Session  string `json:"session"`           // practice_1 … practice_4
	Position int    `json:"position,omitzero"` // absent without a lap time
	DriverID string `json:"driver_id"`
	TimeMS   int64  `json:"time_ms,omitzero"`
	Laps     int    `json:"laps,omitzero"`
}

// QualifyingRow is a driver's qualifying: the best lap of each part, or of a session without parts.
type QualifyingRow struct {
	Position int    `json:"position,omitzero"` // absent if unranked
	DriverID string `json:"driver_id"`
	TimeMS   int64  `json:"time_ms,omitzero"` // of a session without parts
	Q1MS     int64  `json:"q1_ms,omitzero"`
	Q2MS     int64  `json:"q2_ms,omitzero"`
	Q3MS     int64  `json:"q3_ms,omitzero"`
}

// GridRow is a place on a starting grid.
type GridRow struct {
	Position   int    `json:"position,omitzero"` // absent: starts from the pit lane
	DriverID   string `json:"driver_id"`
	PitLane    bool   `json:"pit_lane,omitzero"`
	Qualified  int    `json:"qualified,omitzero"`   // the place in qualifying
	PlacesLost *int   `json:"places_lost,omitzero"` // between qualifying and grid; below zero: won. Absent unless both are known
	Penalty    int    `json:"penalty,omitzero"`     // places, as the stewards gave it; the driver may lose fewer
	ToTheBack  bool   `json:"to_the_back,omitzero"` // the stewards sent the driver to the back
}

// FastestLap is a driver's fastest lap of the race.
type FastestLap struct {
	Position int    `json:"position"`
	DriverID string `json:"driver_id"`
	Lap      int    `json:"lap,omitzero"`
	TimeMS   int64  `json:"time_ms,omitzero"`
}

// PitStop is one stop in the race. The time is that in the pit lane.
type PitStop struct {
	DriverID string `json:"driver_id"`
	Stop     int    `json:"stop"`
	Lap      int    `json:"lap"`
	TimeMS   int64  `json:"time_ms,omitzero"`
}

// DriverProgress is a driver's way through the championship of a season.
type DriverProgress struct {
	Driver     string          `json:"driver"`
	DriverID   string          `json:"driver_id"`
	Name       string          `json:"name"`
	Team       string          `json:"team"`
	TeamID     string          `json:"team_id"`
	TeamColour string          `json:"team_colour,omitzero"`
	Rounds     []RoundProgress `json:"rounds"`

	Decisions []ChampionshipDecision `json:"decisions,omitzero"` // those that stand
}

// ConstructorProgress is a constructor's way through the championship of a season. A team whose entry was excluded, and
// which entered anew, has one for each entry.
type ConstructorProgress struct {
	Team       string          `json:"team"`
	TeamID     string          `json:"team_id"`
	Engine     string          `json:"engine,omitzero"`
	Entry      int             `json:"entry,omitzero"` // from 1; absent: the team has one entry
	TeamColour string          `json:"team_colour,omitzero"`
	Rounds     []RoundProgress `json:"rounds"`

	Decisions []ChampionshipDecision `json:"decisions,omitzero"` // those that stand
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

// HeadToHead compares two drivers of a team over the rounds of a season in which both took part for it. First is
// the driver with the lower identifier.
type HeadToHead struct {
	Team             string   `json:"team"`
	TeamID           string   `json:"team_id"`
	TeamColour       string   `json:"team_colour,omitzero"`
	QualifyingRounds int      `json:"qualifying_rounds"`      // both have a place in qualifying
	MedianGapMS      *int64   `json:"median_gap_ms,omitzero"` // of second to first in the last part in which both have a time
	RaceRounds       int      `json:"race_rounds"`            // both are classified in the verified race
	PointsRounds     int      `json:"points_rounds"`          // both are in the verified race or sprint
	First            Teammate `json:"first"`
	Second           Teammate `json:"second"`
}

// Teammate is one side of a HeadToHead.
type Teammate struct {
	Driver          string  `json:"driver"`
	DriverID        string  `json:"driver_id"`
	Name            string  `json:"name"`
	QualifyingAhead int     `json:"qualifying_ahead"`
	RaceAhead       int     `json:"race_ahead"`
	Points          float64 `json:"points"`
}

// Career is a record of /careers and /former-careers: that of a driver or a constructor over verified rounds: of one season, or
// of all. Points are those of every classification of race and sprint, also where only the best results counted for the title.
type Career struct {
	ID           string         `json:"id"` // the same for ever; see Identity
	Name         string         `json:"name"`
	Country      string         `json:"country,omitzero"` // ISO 3166-1 alpha-3
	Starts       int            `json:"starts"`           // races; of a constructor: races with a car at the start
	Classified   int            `json:"classified"`       // races; of a constructor: cars
	Retired      int            `json:"retired"`
	Wins         int            `json:"wins"`
	Podiums      int            `json:"podiums"`
	Poles        int            `json:"poles"` // first places on the grid
	FastestLaps  int            `json:"fastest_laps"`
	Points       float64        `json:"points"`
	Titles       int            `json:"titles"` // of finished seasons
	FirstSession int64          `json:"first_session_key"`
	LastSession  int64          `json:"last_session_key"`
	Teams        []CareerTeam   `json:"teams,omitzero"`   // of a driver, in the order of the first race
	Drivers      []CareerDriver `json:"drivers,omitzero"` // of a constructor, in the order of the first race
}

// CareerTeam is a team of a driver.
type CareerTeam struct {
	TeamID string `json:"team_id"`
	Name   string `json:"name"`
	Starts int    `json:"starts"` // of the driver for the team
}

// CareerDriver is a driver of a constructor.
type CareerDriver struct {
	DriverID string `json:"driver_id"`
	Name     string `json:"name"`
	Starts   int    `json:"starts"` // of the driver for the team
}
