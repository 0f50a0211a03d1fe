package wire

// OverviewBody is a season at a glance, for a page that makes one request.
type OverviewBody = Success[Overview]

// Overview is a season at a glance. Its values are those of /calendar, /predictions, /drivers, /standings, /careers and
// /head-to-head.
type Overview struct {
	// The season of the drivers' figures and of the team-mates. Without year: the latest with a result.
	Season int `json:"season"`
	// The rounds in the order of the calendar. Without year those of later seasons follow.
	Rounds []OverviewRound `json:"rounds"`
	// The championship. Without year the other drivers of the grid follow.
	Drivers []OverviewDriver `json:"drivers"`
	// Every two team-mates.
	TeamMates []HeadToHead `json:"team_mates"`
}

// OverviewRound is a round with its pick and its winner.
type OverviewRound struct {
	SessionKey SessionKey `json:"session_key"`
	GPName     GPName     `json:"gp_name"`
	// Name of the circuit.
	Circuit string `json:"circuit"`
	// Country of the circuit.
	Country string `json:"country"`
	// The day of the start in UTC.
	Date string `json:"date" format:"date"`
	// The start of the race; absent if the hour is unknown.
	DateStart Instant `json:"date_start,omitzero"`
	// Where the round stands, as in /calendar.
	Status Status `json:"status"`
	// The frozen pick; absent until there is one, and when it is void.
	Prediction *Prediction `json:"prediction,omitzero"`
	// The winner; present if and only if the status is finished.
	Winner DriverCode `json:"winner,omitzero"`
}

// OverviewDriver is a driver with the figures of the season and of the career.
type OverviewDriver struct {
	Driver   DriverCode `json:"driver"`
	DriverID DriverID   `json:"driver_id"`
	// Full name.
	Name string `json:"name"`
	// Last name.
	LastName string `json:"last_name"`
	// ISO 3166-1 alpha-3 code of the nationality; absent if unknown.
	Country string `json:"country,omitzero" pattern:"^[A-Z]{3}$"`
	// The number on the car; absent if the driver is not on the grid, and with year.
	Number int `json:"number,omitzero"`
	// The team on the grid, otherwise that of the latest race.
	Team string `json:"team"`
	// The team's colour; absent if unknown.
	TeamColour Colour `json:"team_colour,omitzero"`
	// The row of /standings; absent without a result.
	Standing *Figures `json:"standing,omitzero"`
	// The row of /careers; absent before the first start, and with year.
	Career *Figures `json:"career,omitzero"`
}

// Figures are the results of a driver in a season or in a career.
type Figures struct {
	// Place in the championship; absent if unranked, and of a career.
	Position int `json:"position,omitzero"`
	// Races started in a career; absent of a season.
	Starts int `json:"starts,omitzero"`
	// Championships won in a career; absent if there is none, and of a season.
	Titles int `json:"titles,omitzero"`
	// Races won.
	Wins int `json:"wins"`
	// Races finished among the first three.
	Podiums int `json:"podiums"`
	// Points.
	Points float64 `json:"points"`
}

// NewOverview returns the overview of a season without a row.
func NewOverview(season int) Overview {
	return Overview{Season: season, Rounds: []OverviewRound{}, Drivers: []OverviewDriver{}, TeamMates: []HeadToHead{}}
}
