package f1db

import (
	"strings"

	"gridcast/builder/season"
)

// table is a table of the release, in a file of its own.
type table struct {
	stem     string // file name without "f1db-" and ".json"
	required bool
	section  season.Section // of a round; empty for other tables
}

func (t table) file() string { return "f1db-" + t.stem + ".json" }

// beside returns the file of a table of rows in the repository, in the folder of its race or season.
func (t table) beside() string {
	_, name, _ := strings.Cut(t.stem, "-")
	return name + ".yml"
}

// place returns the file of a thing in the repository, below src/data.
func (t table) place(id string) string { return t.stem + "/" + id + ".yml" }

// The tables of things.
var (
	countriesTable    = table{stem: "countries", required: true}
	driversTable      = table{stem: "drivers", required: true}
	constructorsTable = table{stem: "constructors", required: true}
	enginesTable      = table{stem: "engine-manufacturers", required: true}
	circuitsTable     = table{stem: "circuits", required: true}
	grandsPrixTable   = table{stem: "grands-prix", required: true}
	racesTable        = table{stem: "races", required: true}
	chronologyTable   = table{stem: "constructors-chronology"}
)

// thingTables are the tables of things. The repository has a folder of each, with a file for each thing.
var thingTables = []table{countriesTable, driversTable, constructorsTable, enginesTable, circuitsTable, grandsPrixTable}

// homed reports whether the things of a table have a country.
func (t table) homed() bool {
	return t == driversTable || t == constructorsTable || t == circuitsTable
}

// The tables of rows, one set of rows per race.
var (
	raceResults      = table{"races-race-results", true, season.ResultSection}
	qualifying       = table{"races-qualifying-results", false, season.Section(season.Qualifying)}
	sprintQualifying = table{"races-sprint-qualifying-results", false, season.Section(season.SprintQualifying)}
	sprintGrid       = table{"races-sprint-starting-grid-positions", false, season.SprintGridSection}
	sprintResults    = table{"races-sprint-race-results", false, season.Section(season.Sprint)}
	startingGrid     = table{"races-starting-grid-positions", false, season.GridSection}
	fastestLaps      = table{"races-fastest-laps", false, season.FastestLapsSection}
	pitStops         = table{"races-pit-stops", false, season.PitStopsSection}
	driverStandings  = table{"races-driver-standings", false, season.DriverStandingsSection}
	teamStandings    = table{"races-constructor-standings", false, season.TeamStandingsSection}
	practice         = [4]table{
		{"races-free-practice-1-results", false, season.Section(season.Practice1)},
		{"races-free-practice-2-results", false, season.Section(season.Practice2)},
		{"races-free-practice-3-results", false, season.Section(season.Practice3)},
		{"races-free-practice-4-results", false, season.Section(season.Practice4)},
	}
)

// The tables of rows of a season.
var (
	finalDrivers = table{stem: "seasons-driver-standings"}
	finalTeams   = table{stem: "seasons-constructor-standings"}
)

var raceTables = []table{
	practice[0], practice[1], practice[2], practice[3], sprintQualifying, sprintGrid, sprintResults,
	qualifying, startingGrid, raceResults, fastestLaps, pitStops, driverStandings, teamStandings,
}

var seasonTables = []table{finalDrivers, finalTeams}

// The rows of the release with the keys in use. A null key, and a key that an older release lacks,
// leave the zero value.
type (
	// thing is a country, a driver, a constructor, an engine manufacturer, a circuit or a Grand Prix; each fills some of it.
	thing struct {
		ID           string `json:"id" yaml:"id"`
		Name         string `json:"name" yaml:"name"`
		FullName     string `json:"fullName" yaml:"fullName"`
		FirstName    string `json:"firstName" yaml:"firstName"`
		LastName     string `json:"lastName" yaml:"lastName"`
		Abbreviation string `json:"abbreviation" yaml:"abbreviation"`
		Nationality  string `json:"nationalityCountryId" yaml:"nationalityCountryId"` // of a driver
		Country      string `json:"countryId" yaml:"countryId"`                       // of the others
		Born         string `json:"dateOfBirth" yaml:"dateOfBirth"`
		Place        string `json:"placeName" yaml:"placeName"`
		Alpha        string `json:"alpha3Code" yaml:"alpha3Code"`
		Chronology   []link `json:"-" yaml:"chronology"` // of a constructor in the repository; a release has a table instead
	}
	link struct {
		Parent season.TeamID `json:"parentConstructorId" yaml:"parentConstructorId"`
		Order  int           `json:"positionDisplayOrder" yaml:"positionDisplayOrder"`
		Team   season.TeamID `json:"constructorId" yaml:"constructorId"`
		From   int           `json:"yearFrom" yaml:"yearFrom"`
		To     int           `json:"yearTo" yaml:"yearTo"`
	}
)

// race is a row of races.
type race struct {
	ID               int                `json:"id" yaml:"id"`
	Year             int                `json:"year" yaml:"year"`
	Round            int                `json:"round" yaml:"round"`
	Date             string             `json:"date" yaml:"date"`
	Time             string             `json:"time" yaml:"time"`
	GrandPrix        season.GrandPrixID `json:"grandPrixId" yaml:"grandPrixId"`
	QualifyingFormat string             `json:"qualifyingFormat" yaml:"qualifyingFormat"`
	SprintFormat     string             `json:"sprintQualifyingFormat" yaml:"sprintQualifyingFormat"`
	Circuit          season.CircuitID   `json:"circuitId" yaml:"circuitId"`
	CircuitType      string             `json:"circuitType" yaml:"circuitType"`
	CourseLength     float64            `json:"courseLength" yaml:"courseLength"`
	Laps             int                `json:"laps" yaml:"laps"`
	ScheduledLaps    int                `json:"scheduledLaps" yaml:"scheduledLaps"`
	SprintLaps       int                `json:"sprintRaceLaps" yaml:"sprintRaceLaps"`

	dates `yaml:",inline"`
}

// dates are the days and hours of a race's sessions.
type dates struct {
	Practice1Date        string `json:"freePractice1Date" yaml:"freePractice1Date"`
	Practice1Time        string `json:"freePractice1Time" yaml:"freePractice1Time"`
	Practice2Date        string `json:"freePractice2Date" yaml:"freePractice2Date"`
	Practice2Time        string `json:"freePractice2Time" yaml:"freePractice2Time"`
	Practice3Date        string `json:"freePractice3Date" yaml:"freePractice3Date"`
	Practice3Time        string `json:"freePractice3Time" yaml:"freePractice3Time"`
	Practice4Date        string `json:"freePractice4Date" yaml:"freePractice4Date"`
	Practice4Time        string `json:"freePractice4Time" yaml:"freePractice4Time"`
	Qualifying1Date      string `json:"qualifying1Date" yaml:"qualifying1Date"`
	Qualifying1Time      string `json:"qualifying1Time" yaml:"qualifying1Time"`
	Qualifying2Date      string `json:"qualifying2Date" yaml:"qualifying2Date"`
	Qualifying2Time      string `json:"qualifying2Time" yaml:"qualifying2Time"`
	QualifyingDate       string `json:"qualifyingDate" yaml:"qualifyingDate"`
	QualifyingTime       string `json:"qualifyingTime" yaml:"qualifyingTime"`
	SprintQualifyingDate string `json:"sprintQualifyingDate" yaml:"sprintQualifyingDate"`
	SprintQualifyingTime string `json:"sprintQualifyingTime" yaml:"sprintQualifyingTime"`
	SprintDate           string `json:"sprintRaceDate" yaml:"sprintRaceDate"`
	SprintTime           string `json:"sprintRaceTime" yaml:"sprintRaceTime"`
}

// row is a row of any table of a race or a season; each table fills some of it. A release has numbers, a repository texts.
type row struct {
	RaceID       int             `json:"raceId" yaml:"-"`
	Year         int             `json:"year" yaml:"-"`
	Round        int             `json:"round" yaml:"-"` // 0 in a repository
	Order        int             `json:"positionDisplayOrder" yaml:"-"`
	Position     int             `json:"positionNumber" yaml:"-"`
	PositionText string          `json:"positionText" yaml:"position"`
	Number       string          `json:"driverNumber" yaml:"driverNumber"`
	Driver       season.DriverID `json:"driverId" yaml:"driverId"`
	Team         season.TeamID   `json:"constructorId" yaml:"constructorId"`
	Engine       season.EngineID `json:"engineManufacturerId" yaml:"engineManufacturerId"`
	Shared       bool            `json:"sharedCar" yaml:"sharedCar"`
	Laps         int             `json:"laps" yaml:"-"`
	LapsText     string          `json:"-" yaml:"laps"`
	Time         int64           `json:"timeMillis" yaml:"-"`
	Q1           int64           `json:"q1Millis" yaml:"-"`
	Q2           int64           `json:"q2Millis" yaml:"-"`
	Q3           int64           `json:"q3Millis" yaml:"-"`
	TimeText     string          `json:"-" yaml:"time"`
	Q1Text       string          `json:"-" yaml:"q1"`
	Q2Text       string          `json:"-" yaml:"q2"`
	Q3Text       string          `json:"-" yaml:"q3"`
	Reason       string          `json:"reasonRetired" yaml:"reasonRetired"`
	Points       float64         `json:"points" yaml:"points"`
	Grid         int             `json:"gridPositionNumber" yaml:"-"`
	GridText     string          `json:"gridPositionText" yaml:"gridPosition"`
	Penalty      string          `json:"gridPenalty" yaml:"gridPenalty"`
	Gap          string          `json:"gap" yaml:"gap"`
	Interval     string          `json:"interval" yaml:"interval"`
	Stop         int             `json:"stop" yaml:"stop"`
	Lap          int             `json:"lap" yaml:"lap"`

	n      int   // its place in the table, from 1
	unread error // about a cell that cannot be read
}
