package f1db

import "gridcast/builder/season"

// table is a table of the release: a file of its own in the split form, a key of f1db.json, of
// its races or of its seasons in the single form.
type table struct {
	stem     string // file name without "f1db-" and ".json"
	key      string
	required bool
}

func (t table) file() string { return "f1db-" + t.stem + ".json" }

// The tables of things.
var (
	countriesTable    = table{"countries", "countries", true}
	driversTable      = table{"drivers", "drivers", true}
	constructorsTable = table{"constructors", "constructors", true}
	enginesTable      = table{"engine-manufacturers", "engineManufacturers", true}
	circuitsTable     = table{"circuits", "circuits", true}
	grandsPrixTable   = table{"grands-prix", "grandsPrix", true}
	racesTable        = table{"races", "races", true}
	chronologyTable   = table{"constructors-chronology", "chronology", false}
)

// The tables of rows, one set of rows per race.
var (
	raceResults      = table{"races-race-results", "raceResults", true}
	qualifying       = table{"races-qualifying-results", "qualifyingResults", false}
	sprintQualifying = table{"races-sprint-qualifying-results", "sprintQualifyingResults", false}
	sprintGrid       = table{"races-sprint-starting-grid-positions", "sprintStartingGridPositions", false}
	sprintResults    = table{"races-sprint-race-results", "sprintRaceResults", false}
	startingGrid     = table{"races-starting-grid-positions", "startingGridPositions", false}
	fastestLaps      = table{"races-fastest-laps", "fastestLaps", false}
	pitStops         = table{"races-pit-stops", "pitStops", false}
	driverStandings  = table{"races-driver-standings", "driverStandings", false}
	teamStandings    = table{"races-constructor-standings", "constructorStandings", false}
	practice         = [4]table{
		{"races-free-practice-1-results", "freePractice1Results", false},
		{"races-free-practice-2-results", "freePractice2Results", false},
		{"races-free-practice-3-results", "freePractice3Results", false},
		{"races-free-practice-4-results", "freePractice4Results", false},
	}
)

// The tables of rows of a season.
var (
	finalDrivers = table{"seasons-driver-standings", "driverStandings", false}
	finalTeams   = table{"seasons-constructor-standings", "constructorStandings", false}
)

var raceTables = []table{
	practice[0], practice[1], practice[2], practice[3], sprintQualifying, sprintGrid, sprintResults,
	qualifying, startingGrid, raceResults, fastestLaps, pitStops, driverStandings, teamStandings,
}

var seasonTables = []table{finalDrivers, finalTeams}

// The rows of the release, with the keys that are used. Keys are null where nothing is known,
// and older releases lack some: both leave the zero value.
type (
	country struct {
		ID    string `json:"id"`
		Name  string `json:"name"`
		Alpha string `json:"alpha3Code"`
	}
	driver struct {
		ID           season.DriverID `json:"id"`
		Name         string          `json:"name"`
		FirstName    string          `json:"firstName"`
		LastName     string          `json:"lastName"`
		Abbreviation string          `json:"abbreviation"`
		Country      string          `json:"nationalityCountryId"`
	}
	constructor struct {
		ID         season.TeamID `json:"id"`
		Name       string        `json:"name"`
		Country    string        `json:"countryId"`
		Chronology []link        `json:"chronology"` // single form only
	}
	link struct {
		Parent season.TeamID `json:"parentConstructorId"` // split form only
		Order  int           `json:"positionDisplayOrder"`
		Team   season.TeamID `json:"constructorId"`
		From   int           `json:"yearFrom"`
		To     int           `json:"yearTo"`
	}
	engine struct {
		ID   season.EngineID `json:"id"`
		Name string          `json:"name"`
	}
	circuit struct {
		ID      season.CircuitID `json:"id"`
		Name    string           `json:"fullName"`
		Place   string           `json:"placeName"`
		Country string           `json:"countryId"`
	}
	grandPrix struct {
		ID   season.GrandPrixID `json:"id"`
		Name string             `json:"fullName"`
	}
)

// race is a row of races.
type race struct {
	ID               int                `json:"id"`
	Year             int                `json:"year"`
	Round            int                `json:"round"`
	Date             string             `json:"date"`
	Time             string             `json:"time"`
	GrandPrix        season.GrandPrixID `json:"grandPrixId"`
	QualifyingFormat string             `json:"qualifyingFormat"`
	SprintFormat     string             `json:"sprintQualifyingFormat"`
	Circuit          season.CircuitID   `json:"circuitId"`
	CircuitType      string             `json:"circuitType"`
	CourseLength     float64            `json:"courseLength"`
	Laps             int                `json:"laps"`
	ScheduledLaps    int                `json:"scheduledLaps"`
	SprintLaps       int                `json:"sprintRaceLaps"`

	Practice1Date        string `json:"freePractice1Date"`
	Practice1Time        string `json:"freePractice1Time"`
	Practice2Date        string `json:"freePractice2Date"`
	Practice2Time        string `json:"freePractice2Time"`
	Practice3Date        string `json:"freePractice3Date"`
	Practice3Time        string `json:"freePractice3Time"`
	Practice4Date        string `json:"freePractice4Date"`
	Practice4Time        string `json:"freePractice4Time"`
	Qualifying1Date      string `json:"qualifying1Date"`
	Qualifying1Time      string `json:"qualifying1Time"`
	Qualifying2Date      string `json:"qualifying2Date"`
	Qualifying2Time      string `json:"qualifying2Time"`
	QualifyingDate       string `json:"qualifyingDate"`
	QualifyingTime       string `json:"qualifyingTime"`
	SprintQualifyingDate string `json:"sprintQualifyingDate"`
	SprintQualifyingTime string `json:"sprintQualifyingTime"`
	SprintDate           string `json:"sprintRaceDate"`
	SprintTime           string `json:"sprintRaceTime"`
}

// row is a row of any table of a race or a season; each table fills some of it.
type row struct {
	RaceID       int             `json:"raceId"`
	Year         int             `json:"year"`
	Order        int             `json:"positionDisplayOrder"`
	Position     int             `json:"positionNumber"`
	PositionText string          `json:"positionText"`
	Number       string          `json:"driverNumber"`
	Driver       season.DriverID `json:"driverId"`
	Team         season.TeamID   `json:"constructorId"`
	Engine       season.EngineID `json:"engineManufacturerId"`
	Shared       bool            `json:"sharedCar"`
	Laps         int             `json:"laps"`
	Time         int64           `json:"timeMillis"`
	Q1           int64           `json:"q1Millis"`
	Q2           int64           `json:"q2Millis"`
	Q3           int64           `json:"q3Millis"`
	Reason       string          `json:"reasonRetired"`
	Points       float64         `json:"points"`
	Grid         int             `json:"gridPositionNumber"`
	Stop         int             `json:"stop"`
	Lap          int             `json:"lap"`

	n int // its place in the table, or in the rows of its race in single form; from 1
}
