// Package season holds the facts of motor racing as plain values: seasons, rounds, sessions, results
// and standings. It does no I/O and has no clock.
//
// An Archive holds all facts. Rendering and prediction use a View instead: Archive.AsOf returns a View
// with the facts that were known at an instant, and a View gives no access to later facts. Archives
// and views are immutable and safe for concurrent use. Their slices and maps are shared, so callers
// must not write to them.
//
// The tags define the form of an archive file. The file omits zero values.
package season

import (
	"strings"
	"time"
)

// DriverID identifies a driver. This and the other identifiers are those of F1DB: lower-case
// slugs, stable across releases.
type DriverID string

// TeamID identifies a team, which is F1DB's constructor.
type TeamID string

// EngineID identifies an engine manufacturer.
type EngineID string

// CircuitID identifies a circuit.
type CircuitID string

// GrandPrixID identifies a Grand Prix through the years; within a season, a round.
type GrandPrixID string

// Driver is a participant of at least one session.
type Driver struct {
	ID           DriverID `json:"id"`
	Name         string   `json:"name"` // "Max Verstappen"
	FirstName    string   `json:"first_name"`
	LastName     string   `json:"last_name"`
	Abbreviation string   `json:"abbreviation"` // F1DB's, not unique; codes of the API come from Codes
	Country      string   `json:"country"`      // ISO 3166-1 alpha-3 of the nationality
	HeadshotURL  string   `json:"headshot_url"` // empty if unknown
}

// Team is a constructor.
type Team struct {
	ID      TeamID `json:"id"`
	Name    string `json:"name"`
	Country string `json:"country"` // ISO 3166-1 alpha-3
}

// Lineage is one team through its changes of name and owner, oldest link first. It has no name of its
// own. The source's name for it is that of the newest link, which a view of the past must not show.
type Lineage struct {
	Links []Link `json:"links"`
}

// Link is one name of a lineage. To is 0 for a present name. Two links share a year in which the name
// changed.
type Link struct {
	Team TeamID `json:"team"`
	From int    `json:"from"` // years, inclusive
	To   int    `json:"to"`
}

// Engine is an engine manufacturer.
type Engine struct {
	ID   EngineID `json:"id"`
	Name string   `json:"name"`
}

// Circuit is the place of a round.
type Circuit struct {
	ID       CircuitID `json:"id"`
	Name     string    `json:"name"`
	Locality string    `json:"locality"`
	Country  string    `json:"country"` // English short name
}

// Season is one championship year, with its rounds in calendar order.
type Season struct {
	Year    int               `json:"year"`
	Rounds  []Round           `json:"rounds"`
	Colours map[TeamID]string `json:"colours"` // #RRGGBB, upper case; teams of unknown colour are absent
}

// Round is one Grand Prix with its sessions. A nil slice is a session without a known outcome. Rows
// are in the order of the source.
type Round struct {
	Number        int         `json:"round"`
	GrandPrix     GrandPrixID `json:"grand_prix"` // identifies the round within its season, through renumbering
	Name          string      `json:"name"`       // "Monaco Grand Prix"
	Circuit       CircuitID   `json:"circuit"`
	Street        bool        `json:"street"`         // street circuit
	CourseKm      float64     `json:"course_km"`      // length of a lap
	ScheduledLaps int         `json:"scheduled_laps"` // 0 if unknown; the laps of the race are the winner's
	Date          time.Time   `json:"date"`           // midnight UTC of the day of the start
	Start         time.Time   `json:"start"`          // zero if the hour is unknown; see StartsAt
	// AssumedHour is the time from midnight UTC to the assumed start, for a round of unknown hour. It follows from the other
	// facts, by AssumeHours.
	AssumedHour time.Duration `json:"-"`
	Sprint      bool          `json:"sprint"`   // the weekend has a sprint
	Sessions    []Session     `json:"sessions"` // the other sessions of known date, in order of time

	Entries          []Entry          `json:"entries"`  // participants of the race, else of qualifying, by car number
	Practice         [4][]TimedLap    `json:"practice"` // free practice 1 to 4
	Qualifying       []QualifyingRow  `json:"qualifying"`
	SprintQualifying []QualifyingRow  `json:"sprint_qualifying"`
	SprintGrid       []GridSlot       `json:"sprint_grid"`
	SprintResults    []Result         `json:"sprint_results"`
	Grid             []GridSlot       `json:"grid"`
	Results          []Result         `json:"results"`
	FastestLaps      []FastestLap     `json:"fastest_laps"`
	PitStops         []PitStop        `json:"pit_stops"`
	DriverStandings  []DriverStanding `json:"driver_standings"` // after the race
	TeamStandings    []TeamStanding   `json:"team_standings"`   // after the race; none before 1958
}

// SessionKind names a session of a weekend other than the race.
type SessionKind string

// The sessions of a weekend.
const (
	Practice1        SessionKind = "practice-1"
	Practice2        SessionKind = "practice-2"
	Practice3        SessionKind = "practice-3"
	Practice4        SessionKind = "practice-4"
	Qualifying       SessionKind = "qualifying"
	SprintQualifying SessionKind = "sprint-qualifying"
	Sprint           SessionKind = "sprint"
)

// kinds are all sessions of a weekend.
var kinds = []SessionKind{Practice1, Practice2, Practice3, Practice4, Qualifying, SprintQualifying, Sprint}

// practices are the kinds of Round.Practice, in its order.
var practices = [...]SessionKind{Practice1, Practice2, Practice3, Practice4}

// Session is the time of a session. Start is zero if only the day is known. A cancelled session was announced and is not
// held.
type Session struct {
	Kind      SessionKind `json:"session"`
	Date      time.Time   `json:"date"` // midnight UTC
	Start     time.Time   `json:"start"`
	Cancelled bool        `json:"cancelled"`
}

// Entry is a driver's entry in a race.
type Entry struct {
	Driver DriverID `json:"driver"`
	Team   TeamID   `json:"team"`
	Engine EngineID `json:"engine"`
	Number int      `json:"number"` // the one on the car
}

// TimedLap is a driver's best lap of a practice session; Time is 0 if there is none.
type TimedLap struct {
	Driver DriverID      `json:"driver"`
	Team   TeamID        `json:"team"`
	Time   time.Duration `json:"time"`
	Laps   int           `json:"laps"`
}

// QualifyingRow is a driver's qualifying: the best lap of each knockout segment, or Time
// where the session had no segments. Missing times are 0.
type QualifyingRow struct {
	Driver   DriverID         `json:"driver"`
	Team     TeamID           `json:"team"`
	Position int              `json:"position"` // 0 if unranked
	Time     time.Duration    `json:"time"`
	Segments [3]time.Duration `json:"segments"`
}

// GridSlot is a place on the starting grid, in starting order.
type GridSlot struct {
	Driver   DriverID `json:"driver"`
	Team     TeamID   `json:"team"`
	Position int      `json:"position"` // 0: starts from the pit lane
	Penalty  int      `json:"penalty"`  // places by which the stewards moved the driver back; 0 if none or unknown
	Back     bool     `json:"back"`     // the stewards sent the driver to the back of the grid
}

// Outcome is the reason why a result has no position.
type Outcome string

// The outcomes of the source.
const (
	DidNotFinish        Outcome = "DNF"
	DidNotStart         Outcome = "DNS"
	Disqualified        Outcome = "DSQ"
	NotClassified       Outcome = "NC" // still running at the flag, too few laps
	DidNotQualify       Outcome = "DNQ"
	DidNotPreQualify    Outcome = "DNPQ"
	DidNotPractise      Outcome = "DNP"
	ExcludedBeforeStart Outcome = "EX"
)

// Result is a row of a race or sprint classification. The drivers of a shared car have a row each,
// with the same Position. A driver of several cars has several rows.
type Result struct {
	Driver   DriverID      `json:"driver"`
	Team     TeamID        `json:"team"`
	Engine   EngineID      `json:"engine"`
	Position int           `json:"position"` // 0 if not classified
	Outcome  Outcome       `json:"outcome"`  // why there is no position, else empty
	Grid     int           `json:"grid"`     // 0: pit lane or unknown
	Laps     int           `json:"laps"`     // completed
	Time     time.Duration `json:"time"`     // 0 if not on the lead lap at the flag, or unknown
	Points   float64       `json:"points"`
	Reason   string        `json:"reason"` // why the driver retired, in the source's words
	Shared   bool          `json:"shared"` // the car had been started by another driver
	Number   int           `json:"number"` // the one on the car; 0: that of the driver's entry
}

// Started reports whether the driver took the start.
func (r *Result) Started() bool {
	switch r.Outcome {
	case "", DidNotFinish, Disqualified, NotClassified:
		return true
	}
	return false
}

// FastestLap is a driver's fastest lap of the race.
type FastestLap struct {
	Driver DriverID      `json:"driver"`
	Lap    int           `json:"lap"`
	Time   time.Duration `json:"time"`
}

// PitStop is one stop; Time is the time in the pit lane, 0 if unknown.
type PitStop struct {
	Driver DriverID      `json:"driver"`
	Stop   int           `json:"stop"`
	Lap    int           `json:"lap"`
	Time   time.Duration `json:"time"`
}

// DriverStanding is a row of the drivers' championship.
type DriverStanding struct {
	Driver   DriverID `json:"driver"`
	Position int      `json:"position"` // 0 if unranked
	Points   float64  `json:"points"`
}

// TeamStanding is a row of the constructors' championship, in which each pair of a chassis and an
// engine is a constructor. A team that was excluded and then entered again in the same season has two
// rows: one without a position and one with a position.
type TeamStanding struct {
	Team     TeamID   `json:"team"`
	Engine   EngineID `json:"engine"`
	Position int      `json:"position"` // 0 if unranked
	Points   float64  `json:"points"`
}

// Competitor takes part in a championship: a driver, or a team with an engine.
type Competitor struct {
	ID     string
	Engine EngineID // empty for a driver
}

// String returns the identifiers for people.
func (c Competitor) String() string { return strings.TrimSpace(c.ID + " " + string(c.Engine)) }

// Competitor returns the driver or the team that gets the points of the row in the drivers' or the constructors' championship.
func (r *Result) Competitor(constructors bool) Competitor {
	if constructors {
		return Competitor{string(r.Team), r.Engine}
	}
	return Competitor{ID: string(r.Driver)}
}

// Standing is a row of either championship.
type Standing struct {
	Competitor

	Position int // 0 if unranked
	Points   float64
}

// Standings returns the source's table of a championship after the round.
func (r *Round) Standings(constructors bool) []Standing {
	var rows []Standing
	if constructors {
		for _, s := range r.TeamStandings {
			rows = append(rows, Standing{Competitor{string(s.Team), s.Engine}, s.Position, s.Points})
		}
		return rows
	}
	for _, s := range r.DriverStandings {
		rows = append(rows, Standing{Competitor{ID: string(s.Driver)}, s.Position, s.Points})
	}
	return rows
}
