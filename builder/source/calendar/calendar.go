// Package calendar reads the calendar of a season from a file: a table with commas from a spreadsheet,
// or the iCalendar file of an organiser. It recognises a known round by the identifier or the name of
// its Grand Prix, and guesses nothing.
package calendar

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // for a machine without time zones, such as an image from scratch

	ics "github.com/arran4/golang-ical"

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
	if !r.Start.IsZero() {
		next.Start = r.Start
	}
	next.Circuit, next.Date, next.Sprint = r.Circuit, r.Date, next.Sprint || r.Sprint
	next.Sessions = slices.Clone(next.Sessions)
	for _, s := range r.Sessions {
		if i := slices.IndexFunc(next.Sessions, func(other season.Session) bool { return other.Kind == s.Kind }); i >= 0 {
			next.Sessions[i] = s
		} else {
			next.Sessions = append(next.Sessions, s)
		}
	}
	season.SortSessions(next.Sessions)
	return next
}

// Known holds the known Grand Prix and circuits.
type Known struct {
	Editions map[season.GrandPrixID]season.Round // the latest of every Grand Prix
	Circuits map[season.CircuitID]season.Circuit
}

// maxFile is the size of the largest file that is read, in bytes.
const maxFile = 1 << 20

// Read reads the rounds of a calendar, by date. Notes name the parts that were left out. The error
// names every faulty place, its value and the allowed values.
func Read(file []byte, known Known) (rounds []Round, notes []string, err error) {
	if len(file) > maxFile {
		return nil, nil, fmt.Errorf("the calendar has %d bytes, at most %d are read", len(file), maxFile)
	}
	file = bytes.TrimPrefix(file, []byte("\ufeff"))
	if bytes.HasPrefix(bytes.TrimSpace(file), []byte("BEGIN:VCALENDAR")) {
		rounds, notes, err = readEvents(file, known)
	} else {
		rounds, err = readTable(file, known)
	}
	if err != nil {
		return nil, nil, err
	}
	slices.SortStableFunc(rounds, func(a, b Round) int { return cmp.Or(a.Date.Compare(b.Date), a.Start.Compare(b.Start)) })
	return rounds, notes, nil
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

// readTable reads a table with commas or semicolons. Its first line names the columns.
func readTable(file []byte, known Known) ([]Round, error) {
	r := csv.NewReader(bytes.NewReader(file))
	r.FieldsPerRecord, r.TrimLeadingSpace, r.Comment = -1, true, '#'
	if first, _, _ := bytes.Cut(file, []byte("\n")); bytes.Count(first, []byte(";")) > bytes.Count(first, []byte(",")) {
		r.Comma = ';'
	}
	header, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("read the calendar: the first line names the columns: %w", err)
	}
	for i, name := range header {
		header[i] = strings.ToLower(strings.TrimSpace(name))
		if !slices.Contains(Columns, header[i]) {
			return nil, fmt.Errorf("line 1: unknown column %q; allowed are %s", name, strings.Join(Columns, ", "))
		}
	}
	for _, needed := range []string{"grand_prix", "start"} {
		if !slices.Contains(header, needed) {
			return nil, fmt.Errorf("line 1: the column %s is missing", needed)
		}
	}
	var rounds []Round
	var faults []error
	seen := make(map[season.GrandPrixID]string)
	for {
		fields, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the calendar: %w", err)
		}
		line, _ := r.FieldPos(0)
		row := make(map[string]string)
		for i, value := range fields {
			if i < len(header) {
				row[header[i]] = strings.TrimSpace(value)
			}
		}
		round, err := readRow(row, known)
		round.Place = fmt.Sprintf("line %d", line)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", round.Place, err))
			continue
		}
		if at, twice := seen[round.GrandPrix]; twice {
			faults = append(faults, fmt.Errorf("%s: %s is in %s already", round.Place, round.GrandPrix, at))
		}
		seen[round.GrandPrix] = round.Place
		rounds = append(rounds, round)
	}
	if len(rounds) == 0 && len(faults) == 0 {
		faults = append(faults, errors.New("the calendar has no rounds"))
	}
	return rounds, errors.Join(faults...)
}

func readRow(row map[string]string, known Known) (Round, error) {
	var r Round
	var err error
	if text := row["round"]; text != "" {
		if r.Number, err = strconv.Atoi(text); err != nil || r.Number < 1 || r.Number > 99 {
			return r, fmt.Errorf("round %q: a whole number from 1 to 99", text)
		}
	}
	if r.Date, r.Start, err = instant(row["start"]); err != nil {
		return r, fmt.Errorf("start: %w", err)
	}
	r.Year = r.Date.Year()
	id, found := known.find(row["grand_prix"])
	switch {
	case found:
		r.GrandPrix = id
	case row["name"] != "" && names.Slug(row["grand_prix"]) == row["grand_prix"]:
		r.GrandPrix, r.Name = season.GrandPrixID(row["grand_prix"]), row["name"]
	default:
		return r, fmt.Errorf("grand_prix %q is not known%s Write a new one in lower case with hyphens, and give it a name",
			row["grand_prix"], cmp.Or(known.near(row["grand_prix"]), "."))
	}
	if r.Circuit, r.Venue, err = known.circuit(row, known.Editions[r.GrandPrix].Circuit); err != nil {
		return r, err
	}
	for _, kind := range Kinds {
		text := row[string(kind)]
		if kind == season.Sprint && (text == "yes" || text == "no") {
			r.Sprint = text == "yes"
			continue
		}
		if text == "" {
			continue
		}
		s := season.Session{Kind: kind}
		if s.Date, s.Start, err = instant(text); err != nil {
			return r, fmt.Errorf("%s: %w", kind, err)
		}
		r.Sprint = r.Sprint || kind == season.Sprint
		r.Sessions = append(r.Sessions, s)
	}
	season.SortSessions(r.Sessions)
	return r, nil
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
	for id, c := range k.Circuits {
		if text == string(id) || strings.EqualFold(text, c.Name) {
			return id, nil, nil
		}
	}
	venue := season.Circuit{ID: season.CircuitID(text), Name: row["circuit_name"], Locality: row["locality"], Country: row["country"]}
	if names.Slug(text) != text || venue.Name == "" || venue.Locality == "" || venue.Country == "" {
		return "", nil, fmt.Errorf("circuit %q is not known. Write a new one in lower case with hyphens, and give it circuit_name, locality and country", text)
	}
	return venue.ID, &venue, nil
}

// instant reads a day, or an instant with its offset.
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
	return date, start, fmt.Errorf("%q: an instant with its offset such as 2027-03-07T15:00:00+11:00, or a day such as 2027-03-07", text)
}

// find returns the Grand Prix with an identifier or a name. The name may lack "Grand Prix".
func (k Known) find(text string) (season.GrandPrixID, bool) {
	if _, ok := k.Editions[season.GrandPrixID(text)]; ok {
		return season.GrandPrixID(text), true
	}
	for id, r := range k.Editions {
		if key(text) != "" && (key(text) == key(r.Name) || key(text) == key(string(id))) {
			return id, true
		}
	}
	return "", false
}

// near suggests the Grand Prix that a text may mean.
func (k Known) near(text string) string {
	ids := slices.Sorted(maps.Keys(k.Editions))
	near := names.Nearest(text, 3, ids, func(id season.GrandPrixID) []string { return []string{string(id), key(k.Editions[id].Name)} })
	suggestions := make([]string, len(near))
	for i, id := range near {
		suggestions[i] = string(id)
	}
	return names.DidYouMean(suggestions)
}

// key returns the part of a name that identifies a Grand Prix.
func key(name string) string {
	text := spaced(name)
	text = strings.ReplaceAll(text, " gp ", " ")
	text = strings.ReplaceAll(text, " grand prix ", " ")
	return strings.TrimSpace(text)
}

// spaced returns the words of a name in lower case, with a blank before and after each.
func spaced(name string) string { return " " + strings.ReplaceAll(names.Slug(name), "-", " ") + " " }

// readEvents reads an iCalendar file: an event for each session, or for the race alone.
func readEvents(file []byte, known Known) ([]Round, []string, error) {
	parsed, err := ics.ParseCalendar(bytes.NewReader(file))
	if err != nil {
		return nil, nil, fmt.Errorf("read the calendar: %w", err)
	}
	type edition struct {
		gp   season.GrandPrixID
		year int
	}
	at := make(map[edition]int)
	var rounds []Round
	var notes []string
	var faults []error
	for _, event := range parsed.Events() {
		text := func(p ics.ComponentProperty) string {
			if property := event.GetProperty(p); property != nil {
				return property.Value
			}
			return ""
		}
		summary := text(ics.ComponentPropertySummary)
		gp, found := known.within(summary + " " + text(ics.ComponentPropertyLocation))
		if strings.EqualFold(text(ics.ComponentPropertyStatus), "CANCELLED") || !found {
			notes = append(notes, fmt.Sprintf("%q is left out: it names no known Grand Prix, or is cancelled", summary))
			continue
		}
		kind := kindOf(summary)
		race, alone := known.isRace(summary, gp)
		if kind == "" && !race && !alone {
			notes = append(notes, fmt.Sprintf("%q is left out: it is neither the race nor a known session", summary))
			continue
		}
		date, start, err := startOf(event)
		if err != nil {
			faults = append(faults, fmt.Errorf("event %q: %w", summary, err))
			continue
		}
		i, ok := at[edition{gp, date.Year()}]
		if !ok {
			i = len(rounds)
			at[edition{gp, date.Year()}] = i
			rounds = append(rounds, Round{Place: fmt.Sprintf("event %q", summary), Year: date.Year(), GrandPrix: gp, Circuit: known.Editions[gp].Circuit})
		}
		if kind == "" {
			if race || rounds[i].Date.IsZero() {
				rounds[i].Date, rounds[i].Start = date, start
			} else {
				notes = append(notes, fmt.Sprintf("%q is left out: another event is the race", summary))
			}
			continue
		}
		rounds[i].Sprint = rounds[i].Sprint || kind == season.Sprint
		rounds[i].Sessions = append(rounds[i].Sessions, season.Session{Kind: kind, Date: date, Start: start})
	}
	for i := range rounds {
		season.SortSessions(rounds[i].Sessions)
		if rounds[i].Date.IsZero() {
			faults = append(faults, fmt.Errorf("%s: the %s has sessions but no race", rounds[i].Place, known.Editions[rounds[i].GrandPrix].Name))
		}
	}
	if len(rounds) == 0 && len(faults) == 0 {
		faults = append(faults, errors.New("no event of the calendar is the race or a session of a known Grand Prix"))
	}
	return rounds, notes, errors.Join(faults...)
}

// within returns the Grand Prix with the longest name in a text.
func (k Known) within(text string) (season.GrandPrixID, bool) {
	text = spaced(text)
	best, length := season.GrandPrixID(""), 0
	for id, r := range k.Editions {
		for _, name := range []string{key(r.Name), key(string(id))} {
			if n := len(name); (n > length || n == length && id < best) && n > 0 && strings.Contains(text, " "+name+" ") {
				best, length = id, n
			}
		}
	}
	return best, length > 0
}

var (
	separator = regexp.MustCompile(`\s[-–—]\s|[:|·(),]`)
	general   = regexp.MustCompile(`\b(formula (1|one)|f1|fia|round \d+|r\d+|\d{4})\b`)
)

// isRace reports whether a part of a summary is the word race, as in "F1: Race (São Paulo GP)", and whether the summary
// names the Grand Prix alone, as "São Paulo GP" or with sponsors as "FORMULA 1 HEINEKEN LAS VEGAS GRAND PRIX 2027".
func (k Known) isRace(summary string, gp season.GrandPrixID) (race, alone bool) {
	edition := k.Editions[gp]
	circuit := k.Circuits[edition.Circuit]
	parts := separator.Split(summary, -1)
	_, alone = k.within(summary)
	for _, part := range parts {
		text := " " + key(part) + " "
		for _, name := range []string{edition.Name, string(gp), circuit.Name, circuit.Locality} {
			text = strings.ReplaceAll(text, " "+key(name)+" ", " ")
		}
		text = strings.TrimSpace(general.ReplaceAllString(text, ""))
		race = race || text == "race"
		alone = alone && text == ""
	}
	if title := strings.TrimRight(spaced(summary), " 0123456789"); len(parts) == 1 && strings.HasPrefix(title, " formula 1 ") {
		alone = alone || strings.HasSuffix(title, " grand prix") || strings.HasSuffix(title, " "+key(edition.Name))
	}
	return race, alone
}

// kindOf returns the kind of session of an event, empty for the race and for an unknown event.
func kindOf(summary string) season.SessionKind {
	text := spaced(summary)
	for _, k := range []struct {
		kind  season.SessionKind
		words []string
	}{
		{season.SprintQualifying, []string{"sprint qualifying", "sprint shootout"}},
		{season.Sprint, []string{"sprint"}},
		{season.Practice1, []string{"practice 1", "fp1", "first practice", "free practice 1"}},
		{season.Practice2, []string{"practice 2", "fp2", "second practice"}},
		{season.Practice3, []string{"practice 3", "fp3", "third practice"}},
		{season.Qualifying, []string{"qualifying"}},
	} {
		for _, words := range k.words {
			if strings.Contains(text, " "+words+" ") {
				return k.kind
			}
		}
	}
	return ""
}

// startOf returns the start of an event: a day, or an instant in a named time zone.
func startOf(event *ics.VEvent) (date, start time.Time, err error) {
	property := event.GetProperty(ics.ComponentPropertyDtStart)
	if property == nil {
		return date, start, errors.New("it has no start")
	}
	if len(property.Value) == len("20060102") {
		day, err := event.GetAllDayStartAt()
		if err != nil {
			return date, start, fmt.Errorf("its day %q: %w", property.Value, err)
		}
		y, m, d := day.Date()
		return time.Date(y, m, d, 0, 0, 0, 0, time.UTC), time.Time{}, nil
	}
	const form = "20060102T150405"
	if utc, ok := strings.CutSuffix(property.Value, "Z"); ok {
		start, err = time.Parse(form, utc)
	} else {
		named := property.ICalParameters["TZID"]
		if len(named) != 1 {
			return date, start, fmt.Errorf("its start %q names no time zone: want one in UTC, such as 20270307T040000Z, or with TZID", property.Value)
		}
		location, zoneErr := zone(named[0])
		if zoneErr != nil {
			return date, start, fmt.Errorf("its start %q: %w", property.Value, zoneErr)
		}
		start, err = time.ParseInLocation(form, property.Value, location)
	}
	if err != nil {
		return date, start, fmt.Errorf("its start %q: %w", property.Value, err)
	}
	return season.DayOf(start), start.UTC(), nil
}

// zone returns a time zone by its IANA name.
func zone(name string) (*time.Location, error) {
	if name == "" || name == "Local" { // the empty and the local name depend on the machine
		return nil, fmt.Errorf("the time zone %q is not allowed: want an IANA name such as Europe/London", name)
	}
	known, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("the time zone %q is not known: want an IANA name such as Europe/London", name)
	}
	return known, nil
}
