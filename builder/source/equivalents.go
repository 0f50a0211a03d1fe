package source

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gridcast/builder/season"
)

// Equivalents translate the names of an upstream into identifiers of F1DB. Nothing is guessed: a
// name without a row is an error that names the row to add.
//
// The text has a row a line, "driver max_verstappen = max-verstappen", of driver, team, circuit,
// grand_prix or nationality; "team rb = racing-bulls 2025" counts from that season on, until another row does.
// Empty lines and those that begin with # are skipped.
type Equivalents struct {
	file    string
	rows    map[[2]string][]equivalent     // by kind and foreign name, the latest season first
	foreign map[string]map[string][]string // by kind and our identifier, ascending
}

type equivalent struct {
	from int
	ours string
}

// ReadEquivalents reads the text of a file, which errors name.
func ReadEquivalents(file, text string) (Equivalents, error) {
	e := Equivalents{file: file, rows: make(map[[2]string][]equivalent), foreign: make(map[string]map[string][]string)}
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		n++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		kind, rest, _ := strings.Cut(line, " ")
		foreign, ours, ok := strings.Cut(rest, " = ")
		if !ok {
			return e, fmt.Errorf("%s, line %d: %q is not of the form KIND THEIRS = OURS [YEAR]", file, n, line)
		}
		row := equivalent{ours: ours}
		if id, year, dated := strings.Cut(ours, " "); dated {
			from, err := strconv.Atoi(year)
			if err != nil {
				return e, fmt.Errorf("%s, line %d: %q is not a season", file, n, year)
			}
			row = equivalent{from, id}
		}
		key := [2]string{kind, foreign}
		if before := e.rows[key]; len(before) > 0 && before[0].from >= row.from {
			return e, fmt.Errorf("%s, line %d: %s %q is there already, of %d", file, n, kind, foreign, before[0].from)
		}
		e.rows[key] = append([]equivalent{row}, e.rows[key]...)
		if e.foreign[kind] == nil {
			e.foreign[kind] = make(map[string][]string)
		}
		e.foreign[kind][row.ours] = append(e.foreign[kind][row.ours], foreign)
		slices.Sort(e.foreign[kind][row.ours])
	}
	return e, nil
}

func (e Equivalents) find(kind, foreign string, year int) (string, error) {
	for _, row := range e.rows[[2]string{kind, foreign}] {
		if year >= row.from {
			return row.ours, nil
		}
	}
	return "", fmt.Errorf("%s %q of %d is not known: add the line \"%s %s = ID\" to %s", kind, foreign, year, kind, foreign, e.file)
}

// Foreign returns the names that the upstream has for our identifiers of a kind, by identifier. Callers only read them.
func (e Equivalents) Foreign(kind string) map[string][]string { return e.foreign[kind] }

// Driver returns our identifier of a driver.
func (e Equivalents) Driver(foreign string, year int) (season.DriverID, error) {
	id, err := e.find("driver", foreign, year)
	return season.DriverID(id), err
}

// Team returns our identifier of a team in a season.
func (e Equivalents) Team(foreign string, year int) (season.TeamID, error) {
	id, err := e.find("team", foreign, year)
	return season.TeamID(id), err
}

// Circuit returns our identifier of a circuit.
func (e Equivalents) Circuit(foreign string, year int) (season.CircuitID, error) {
	id, err := e.find("circuit", foreign, year)
	return season.CircuitID(id), err
}

// GrandPrix returns our identifier of a Grand Prix.
func (e Equivalents) GrandPrix(foreign string, year int) (season.GrandPrixID, error) {
	id, err := e.find("grand_prix", foreign, year)
	return season.GrandPrixID(id), err
}

// Country returns the ISO 3166-1 alpha-3 code of a nationality.
func (e Equivalents) Country(nationality string) (string, error) {
	return e.find("nationality", nationality, 0)
}
