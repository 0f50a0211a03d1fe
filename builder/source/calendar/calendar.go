// Package calendar reads the calendar of a season from a file: a table with commas from a spreadsheet,
// or the iCalendar file of an organiser. It recognises a known round by the names that the sport has used for its
// Grand Prix, else by its place, and says which word decided. It guesses nothing: a row or an event in doubt is left
// out with the reason, and two events that claim to be one session are a fault.
package calendar

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // for a machine without time zones, such as an image from scratch

	"gridcast/builder/names"
	"gridcast/builder/season"
)

// Round is a round of a calendar. Values that the calendar leaves out are zero.
type Round struct {
	Place     string // in the file, for people: "line 3", an event
	Year      int
	Number    int
	GrandPrix season.GrandPrixID
	Name      string // of a new Grand Prix
	Circuit   season.CircuitID
	Venue     *season.Circuit // a new circuit
	Date      time.Time       // midnight UTC
	Start     time.Time       // zero: the hour is not known
	Sprint    bool
	Sessions  []season.Session
}

// Over returns the round with the statements of the calendar. Where the calendar says nothing, the
// round is as known or, if known is nil, as in the latest edition on the same circuit.
func (r Round) Over(known *season.Round, latest season.Round) season.Round {
	next := season.Round{GrandPrix: r.GrandPrix, Name: r.Name, Number: r.Number}
	if known != nil {
		next = *known
		if r.Number > 0 {
			next.Number = r.Number
		}
	} else if latest.Name != "" {
		next.Name = latest.Name
		if latest.Circuit == r.Circuit {
			next.Street, next.CourseKm, next.ScheduledLaps = latest.Street, latest.CourseKm, latest.ScheduledLaps
		}
	}
	switch {
	case !r.Start.IsZero():
		next.Start = r.Start
	case r.Circuit != next.Circuit: // the hour is of another circuit
		next.Start = time.Time{}
	case !next.Start.IsZero(): // another day, at the hour that is known at the circuit
		next.Start = next.StartOn(r.Date)
	}
	next.Circuit, next.Date, next.Sprint = r.Circuit, r.Date, next.Sprint || r.Sprint
	next.Sessions = slices.Clone(next.Sessions)
	for _, s := range r.Sessions {
		i := slices.IndexFunc(next.Sessions, func(other season.Session) bool { return other.Kind == s.Kind })
		switch {
		case s.Cancelled && i >= 0:
			next.Sessions[i].Cancelled = true
		case s.Cancelled && s.Kind == season.Sprint && next.Sprint:
			next.Sessions = append(next.Sessions, season.Session{Kind: s.Kind, Date: r.Date.AddDate(0, 0, -1), Cancelled: true})
		case s.Cancelled: // nobody was told of it
		case i >= 0:
			next.Sessions[i] = s
		default:
			next.Sessions = append(next.Sessions, s)
		}
	}
	season.SortSessions(next.Sessions)
	return next
}

// Known holds the known seasons and circuits.
type Known struct {
	Seasons  []season.Season // by year
	Circuits map[season.CircuitID]season.Circuit
}

// Editions returns the latest round of every Grand Prix.
func (k Known) Editions() map[season.GrandPrixID]season.Round {
	editions := make(map[season.GrandPrixID]season.Round)
	for i := range k.Seasons {
		for _, r := range k.Seasons[i].Rounds {
			editions[r.GrandPrix] = r
		}
	}
	return editions
}

// Reading is a calendar as read. The texts are for people.
type Reading struct {
	Rounds []Round  // by date
	Listed []string // each row or event in use, with its round and the word that decided
	Left   []string // each row, event or detail that is left out, with the reason
}

// maxFile is the size of the largest file that is read, in bytes.
const maxFile = 1 << 20

// Read reads the rounds of a calendar. mapped names the Grand Prix, or NoGrandPrix, of the events and rows with a text.
// The error names two events that claim to be one session, or the faults of a file without any round.
func Read(file []byte, known Known, mapped map[string]string) (Reading, error) {
	if len(file) > maxFile {
		return Reading{}, fmt.Errorf("the calendar has %d bytes, at most %d are read", len(file), maxFile)
	}
	l, err := newLexicon(known, mapped)
	if err != nil {
		return Reading{}, err
	}
	file = bytes.TrimPrefix(file, []byte("\ufeff"))
	read := readTable
	if bytes.HasPrefix(bytes.TrimSpace(file), []byte("BEGIN:VCALENDAR")) {
		read = readEvents
	}
	found, err := read(file, l)
	if err != nil {
		return Reading{}, err
	}
	slices.SortStableFunc(found.Rounds, func(a, b Round) int { return cmp.Or(a.Date.Compare(b.Date), a.Start.Compare(b.Start)) })
	return found, nil
}

// Kinds are the sessions before the race. A column of a table has the name of its kind.
var Kinds = []season.SessionKind{
	season.Practice1, season.Practice2, season.Practice3, season.SprintQualifying, season.Sprint, season.Qualifying,
}

// Columns are the allowed columns of a table. It needs grand_prix and start.
var Columns = []string{
	"round", "grand_prix", "name", "circuit", "circuit_name", "locality", "country", "start",
	"practice-1", "practice-2", "practice-3", "sprint-qualifying", "sprint", "qualifying",
}

// readTable reads a table with commas or semicolons. Its first line names the columns. A row without a day, a known
// Grand Prix or a circuit is left out, and so is a cell that cannot be read.
func readTable(file []byte, l *lexicon) (Reading, error) {
	comma := ','
	if first, _, _ := bytes.Cut(file, []byte("\n")); bytes.Count(first, []byte(";")) > bytes.Count(first, []byte(",")) {
		comma = ';'
	}
	var header []string
	var read Reading
	var faults []error
	type edition struct {
		gp   season.GrandPrixID
		year int
	}
	seen := make(map[edition]string)
	line := 0
	for text := range strings.Lines(string(file)) {
		line++
		place := fmt.Sprintf("line %d", line)
		r := csv.NewReader(strings.NewReader(text)) // of one line, so that a quote without an end costs no other
		r.TrimLeadingSpace, r.Comment, r.Comma = true, '#', comma
		fields, err := r.Read()
		switch {
		case errors.Is(err, io.EOF): // an empty line, or a remark
			continue
		case err != nil && header == nil:
			return Reading{}, fmt.Errorf("%s: the first line names the columns: %w", place, errors.Unwrap(err))
		case err != nil:
			read.Left = append(read.Left, fmt.Sprintf("%s is left out: %q: %v", place, strings.TrimSpace(text), errors.Unwrap(err)))
			continue
		case header == nil:
			if header, err = columnsOf(fields); err != nil {
				return Reading{}, fmt.Errorf("%s: %w", place, err)
			}
			continue
		}
		row := make(map[string]string)
		for i, value := range fields {
			if i < len(header) {
				row[header[i]] = strings.TrimSpace(value)
			}
		}
		if n := len(header); len(fields) > n && strings.TrimSpace(strings.Join(fields[n:], "")) != "" { // a comma without quotes moves the cells behind it
			read.Left = append(read.Left, fmt.Sprintf("%s is left out: it has %d cells, and the first line names %d columns", place, len(fields), n))
			continue
		}
		round, by, lost, err := readRow(row, l)
		if err != nil {
			read.Left = append(read.Left, fmt.Sprintf("%s is left out: %v", place, err))
			continue
		}
		for _, detail := range lost {
			read.Left = append(read.Left, place+": "+detail)
		}
		round.Place = place
		id := edition{round.GrandPrix, round.Year}
		if at, twice := seen[id]; twice {
			faults = append(faults, fmt.Errorf("%s: %s is in %s already", place, round.GrandPrix, at))
		}
		seen[id] = place
		read.Rounds = append(read.Rounds, round)
		read.Listed = append(read.Listed, fmt.Sprintf("%s: %s of %d, by %q", place, round.GrandPrix, round.Year, by))
	}
	switch {
	case header == nil:
		faults = append(faults, errors.New("the calendar is empty: the first line names the columns"))
	case len(read.Rounds) == 0 && len(read.Left) == 0:
		faults = append(faults, errors.New("the calendar has no rounds"))
	case len(read.Left) > 0 && (len(read.Rounds) == 0 || len(faults) > 0):
		faults = append(faults, errors.New(strings.Join(read.Left, "\n")))
	}
	return read, errors.Join(faults...)
}

// columnsOf returns the names of the columns in lower case.
func columnsOf(fields []string) ([]string, error) {
	header := make([]string, len(fields))
	for i, name := range fields {
		header[i] = strings.ToLower(strings.TrimSpace(name))
		if !slices.Contains(Columns, header[i]) {
			return nil, fmt.Errorf("unknown column %q; allowed are %s", name, strings.Join(Columns, ", "))
		}
		if slices.Contains(header[:i], header[i]) {
			return nil, fmt.Errorf("the column %s is there twice", header[i])
		}
	}
	for _, needed := range []string{"grand_prix", "start"} {
		if !slices.Contains(header, needed) {
			return nil, fmt.Errorf("the column %s is missing", needed)
		}
	}
	return header, nil
}

// readRow returns the round of a row, the word that names its Grand Prix, and the cells that cannot be read. The error is
// the reason to leave the row out.
func readRow(row map[string]string, l *lexicon) (r Round, by string, lost []string, err error) {
	if text := row["round"]; text != "" {
		if r.Number, err = strconv.Atoi(text); err != nil || r.Number < 1 || r.Number > 99 {
			r.Number, lost = 0, append(lost, fmt.Sprintf("round %q is left out: a whole number from 1 to 99", text))
		}
	}
	var hour error
	if r.Date, r.Start, hour = instant(row["start"]); r.Date.IsZero() {
		return r, "", nil, fmt.Errorf("start: %w", hour)
	} else if hour != nil {
		lost = append(lost, fmt.Sprintf("the hour of the start is left out: %v", hour))
	}
	r.Year = r.Date.Year()
	text := row["grand_prix"]
	m := l.find(text, "", r.Year)
	if p := strings.TrimSuffix(phrase(text), " gp"); m.gp == "" {
		m = match{gp: l.named(p, r.Year), by: p, why: m.why}
	}
	switch {
	case m.gp != "":
		r.GrandPrix = m.gp
	case row["name"] != "" && names.Slug(text) == text:
		r.GrandPrix, r.Name, m.by = season.GrandPrixID(text), row["name"], text
	default:
		return r, "", nil, fmt.Errorf("grand_prix %q is not known%s Write a new one in lower case with hyphens, and give it a name; --map '%s=grand-prix' names a known one",
			text, cmp.Or(l.near(text), "."), text)
	}
	latest := l.editions[r.GrandPrix].Circuit
	if s, ok := l.season(r.Year); ok {
		if known, ok := s.Round(r.GrandPrix); ok {
			latest = known.Circuit
		}
	}
	if r.Circuit, r.Venue, err = l.circuit(row, latest); err != nil {
		return r, "", nil, err
	}
	for _, kind := range Kinds {
		text := row[string(kind)]
		s := season.Session{Kind: kind}
		switch {
		case text == "":
			continue
		case kind == season.Sprint && text == "yes":
			r.Sprint = true
			continue
		case text == "cancelled", kind == season.Sprint && text == "no":
			s.Cancelled = true
		default:
			if s.Date, s.Start, err = instant(text); err != nil {
				lost = append(lost, fmt.Sprintf("the hour of %s is left out: %v", kind, err))
			}
			if s.Date.IsZero() {
				continue
			}
			r.Sprint = r.Sprint || kind == season.Sprint
		}
		r.Sessions = append(r.Sessions, s)
	}
	season.SortSessions(r.Sessions)
	return r, m.by, lost, nil
}

// circuit returns the circuit of a row, else that of the latest edition.
func (k Known) circuit(row map[string]string, latest season.CircuitID) (season.CircuitID, *season.Circuit, error) {
	text := row["circuit"]
	if text == "" {
		if latest == "" {
			return "", nil, errors.New("the circuit is missing")
		}
		return latest, nil, nil
	}
	for _, id := range slices.Sorted(maps.Keys(k.Circuits)) {
		if text == string(id) || strings.EqualFold(text, k.Circuits[id].Name) {
			return id, nil, nil
		}
	}
	venue := season.Circuit{ID: season.CircuitID(text), Name: row["circuit_name"], Locality: row["locality"], Country: row["country"]}
	if names.Slug(text) != text || venue.Name == "" || venue.Locality == "" || venue.Country == "" {
		return "", nil, fmt.Errorf("circuit %q is not known. Write a new one in lower case with hyphens, and give it circuit_name, locality and country", text)
	}
	return venue.ID, &venue, nil
}

// instant reads a day, or an instant with its offset. With the error it returns the day, if the text begins with one.
func instant(text string) (date, start time.Time, err error) {
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day, time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02 15:04Z07:00"} {
		if at, err := time.Parse(layout, text); err == nil {
			at = at.UTC()
			return season.DayOf(at), at, nil
		}
	}
	if len(text) > len(time.DateOnly) {
		date, _ = time.Parse(time.DateOnly, text[:len(time.DateOnly)])
	}
	return date, start, fmt.Errorf("%q: an instant with its offset such as 2027-03-07T15:00:00+11:00, or a day such as 2027-03-07", text)
}
