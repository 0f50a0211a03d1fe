// Package bulk makes the download of a season: a zip of everything published for it, as NDJSON, as CSV
// and with a description, for computing. It is a pure function of the
// published documents: equal documents give equal bytes, at any time and on any machine.
//
// It leaves out facts of sources with non-commercial terms: the rounds with such facts, and with these
// every table that sums up the season.
package bulk

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"gridcast/schemas"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// format changes whenever the same documents would give other bytes.
const format = "bulk-4"

// Season is the input of a season's download.
type Season struct {
	Year    int
	Rounds  map[catalog.Name][]int64 // of /sessions and /forecast-history: the session keys with a document of their own, ascending
	Without []Borrowed               // rounds that are left out, by ascending session key
}

// Borrowed is a round with a part from a source with non-commercial terms.
type Borrowed struct {
	SessionKey int64
	GPName     string
}

// table is a document and its table.
type table struct {
	name    string
	variant catalog.Variant
	more    []catalog.Variant // documents whose rows follow
	row     reflect.Type
	list    bool     // the document is a list of rows, and not one row
	keys    []string // the columns by which the lists within a row refer to it
	rows    string   // the list that is the table; the row itself has only keys. Empty: the row is
	sum     bool     // it sums up the season, so it would be wrong without one of its rounds
}

func listOf[T any](name string, v catalog.Variant, sum bool, keys ...string) table {
	return table{name: name, variant: v, row: reflect.TypeFor[T](), list: true, sum: sum, keys: keys}
}

func (t table) paths() []string {
	paths := append(make([]string, 0, 1+len(t.more)), t.variant.Path())
	for _, v := range t.more {
		paths = append(paths, v.Path())
	}
	return paths
}

// document returns the document of the table, made from all of its documents; false if the version lacks one.
func (t table) document(documents map[string][]byte) ([]byte, bool) {
	whole, ok := documents[t.variant.Path()]
	if len(t.more) == 0 || !ok {
		return whole, ok
	}
	joined := wire.Success[[]jsontext.Value]{OK: true, Data: []jsontext.Value{}}
	for _, path := range t.paths() {
		var one wire.Success[[]jsontext.Value]
		if json.Unmarshal(documents[path], &one) != nil {
			return nil, false
		}
		joined.Data = append(joined.Data, one.Data...)
	}
	whole, err := wire.Marshal(joined)
	return whole, err == nil
}

func (s Season) tables() []table {
	of := func(endpoint catalog.Name) catalog.Variant { return catalog.Variant{Endpoint: endpoint, Year: s.Year} }
	byRound := func(t table, endpoint catalog.Name) table {
		t.variant = catalog.Variant{Endpoint: endpoint, SessionKey: catalog.NoSession}
		for _, key := range s.Rounds[endpoint] {
			t.more = append(t.more, catalog.Variant{Endpoint: endpoint, SessionKey: key})
		}
		return t
	}
	return []table{
		listOf[wire.CalendarEntry]("calendar", of(catalog.Calendar), false, "session_key"),
		listOf[wire.Weekend]("weekends", of(catalog.Weekends), false, "session_key"),
		{
			name: "results", variant: of(catalog.Results), row: reflect.TypeFor[wire.ResultRecord](), list: true,
			keys: []string{"session_key", "gp_name"}, rows: "results_race",
		},
		byRound(listOf[wire.WeekendSessions]("sessions", catalog.Variant{}, false, "session_key"), catalog.Sessions),
		byRound(listOf[wire.ForecastHistory]("forecast_history", catalog.Variant{}, false, "session_key", "step"), catalog.ForecastHistory),
		listOf[wire.DriverStanding]("standings_drivers", catalog.Variant{Endpoint: catalog.Standings, Type: catalog.DriversType, Year: s.Year}, true),
		listOf[wire.ConstructorStanding]("standings_constructors", catalog.Variant{Endpoint: catalog.Standings, Type: catalog.ConstructorsType, Year: s.Year}, true),
		listOf[wire.DriverProgress]("standings_progress_drivers", catalog.Variant{Endpoint: catalog.StandingsProgress, Type: catalog.DriversType, Year: s.Year}, true, "driver_id"),
		listOf[wire.ConstructorProgress]("standings_progress_constructors", catalog.Variant{Endpoint: catalog.StandingsProgress, Type: catalog.ConstructorsType, Year: s.Year}, true, "team_id", "engine"),
		listOf[wire.HeadToHead]("head_to_head", of(catalog.HeadToHead), true),
		listOf[wire.Career]("careers_drivers", catalog.Variant{Endpoint: catalog.Careers, Type: catalog.DriversType, Year: s.Year}, true, "id"),
		listOf[wire.Career]("careers_constructors", catalog.Variant{Endpoint: catalog.Careers, Type: catalog.ConstructorsType, Year: s.Year}, true, "id"),
		listOf[wire.CircuitRecord]("circuits", of(catalog.Circuits), true, "id"),
		listOf[wire.Change]("changes", of(catalog.Changes), false, "session_key", "kind", "at"),
		listOf[wire.PredictionRecord]("predictions", of(catalog.Predictions), false, "session_key"),
		listOf[wire.ProbabilityRecord]("probabilities", of(catalog.Probabilities), false, "session_key"),
		{name: "accuracy", variant: of(catalog.Accuracy), row: reflect.TypeFor[wire.Accuracy](), sum: true},
		{name: "track_record", variant: of(catalog.TrackRecord), row: reflect.TypeFor[wire.TrackRecord](), sum: true, keys: []string{"checkpoint_pct", "by_hand"}},
		{name: "title_odds", variant: of(catalog.TitleOdds), row: reflect.TypeFor[wire.TitleOdds](), sum: true, keys: []string{"session_key"}},
	}
}

// identified lists the tables by the columns that together identify a row. A table without any is one row, or
// a list whose rows have no key: decisions, and the bins of a reliability.
var identified = map[string]string{
	"session_key":                              "calendar weekends sessions predictions probabilities forecast_history title_odds_after_rounds",
	"session_key session":                      "weekends_sessions",
	"session_key driver_id number":             "results results_sprint", // drivers who share a car, or take over another one, have a row for each car
	"session_key revision":                     "results_revisions",
	"session_key driver_id":                    "sessions_drivers sessions_qualifying sessions_grid sessions_sprint_qualifying sessions_sprint_grid sessions_fastest_laps probabilities_drivers title_odds_after_rounds_drivers",
	"session_key session driver_id":            "sessions_practice",
	"session_key driver_id stop":               "sessions_pit_stops",
	"session_key step":                         "forecast_history_forecasts",
	"session_key step driver_id":               "forecast_history_forecasts_drivers",
	"session_key team_id":                      "title_odds_after_rounds_constructors",
	"session_key kind at driver_id":            "changes",
	"session_key kind at driver_id position":   "changes_old_race changes_old_sprint changes_new_race changes_new_sprint",
	"driver":                                   "standings_drivers",
	"driver_id":                                "standings_progress_drivers title_odds_drivers",
	"driver_id session_key":                    "standings_progress_drivers_rounds",
	"team engine position":                     "standings_constructors", // a team that was excluded and entered anew has a row without a position
	"team_id":                                  "title_odds_constructors",
	"team_id engine entry":                     "standings_progress_constructors",
	"team_id engine session_key":               "standings_progress_constructors_rounds",
	"team_id first_driver_id second_driver_id": "head_to_head",
	"id":                     "careers_drivers careers_constructors circuits",
	"id driver_id":           "careers_drivers_drivers careers_constructors_drivers circuits_winners",
	"id team_id":             "careers_drivers_teams careers_constructors_teams",
	"id layout_id length_km": "circuits_layouts",
	"year":                   "track_record_real_seasons track_record_hindsight_seasons",
	"basis":                  "track_record_real_as_frozen track_record_real_forecasts track_record_hindsight_as_frozen track_record_hindsight_forecasts",
	"checkpoint_pct by_hand": "track_record_real_live track_record_hindsight_live",
	"": "accuracy track_record title_odds standings_progress_drivers_decisions standings_progress_constructors_decisions " +
		"track_record_real_reliability track_record_hindsight_reliability track_record_real_live_reliability track_record_hindsight_live_reliability",
}

// keyOf returns the columns that identify a row of a table, and false for a table that identified lacks.
func keyOf(name string) (columns []string, ok bool) {
	for key, tables := range identified {
		if slices.Contains(strings.Fields(tables), name) {
			return strings.Fields(key), true
		}
	}
	return nil, false
}

// Paths lists the documents of the download, by catalog path. A version may lack some.
func (s Season) Paths() []string {
	var paths []string
	for _, t := range s.tables() {
		if !t.sum || len(s.Without) == 0 {
			paths = append(paths, t.paths()...)
		}
	}
	return paths
}

// Named returns the documents by the names of their tables.
func (s Season) Named(documents map[string][]byte) map[string][]byte {
	named := map[string][]byte{}
	for _, t := range s.tables() {
		if body, ok := t.document(documents); ok {
			named[t.name] = body
		}
	}
	return named
}

// Keys lists the session keys of the rounds that are left out.
func (s Season) Keys() []int64 {
	keys := make([]int64, len(s.Without))
	for i, b := range s.Without {
		keys[i] = b.SessionKey
	}
	return keys
}

// Source names the input of a download, given the SHA-256 of each document, by path.
// Equal names mean equal bytes. Different names may also give equal bytes.
func (s Season) Source(documents map[string]string) string {
	h := sha256.New()
	h.Write(fmt.Appendln(nil, format, s.Year, s.Without))
	h.Write([]byte(readme))
	for _, t := range s.tables() {
		_, text := schemas.File(t.variant)
		h.Write(fmt.Appendln(nil, t.name, sha256.Sum256(text)))
		for _, path := range t.paths() {
			h.Write(fmt.Appendln(nil, documents[path]))
		}
	}
	_, text := schemas.CommonFile()
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil))
}

//go:embed README.txt
var readme string

var readmeTemplate = template.Must(template.New("README.txt").Parse(readme))

// fileTime is the constant instant of every file in a zip, so that the bytes do not depend on the time of
// the build.
var fileTime = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// Zip makes the download of the existing documents, by path.
func (s Season) Zip(documents map[string][]byte) ([]byte, error) {
	var buffer bytes.Buffer
	archive := zip.NewWriter(&buffer)
	write := func(name string, data []byte) { // into memory, which takes everything
		w, err := archive.CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("gridcast-%d/%s", s.Year, name), Method: zip.Deflate, Modified: fileTime})
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			panic("BUG: a download cannot be written: " + err.Error())
		}
	}
	var intro bytes.Buffer
	if err := readmeTemplate.Execute(&intro, s); err != nil {
		return nil, fmt.Errorf("download of %d: %w", s.Year, err)
	}
	write("README.txt", intro.Bytes())
	name, text := schemas.CommonFile()
	described := map[string][]byte{name: text}
	columns := [][]string{{"file", "column", "type", "optional", "key"}}
	for _, t := range s.tables() {
		body, ok := t.document(documents)
		if !ok || t.sum && len(s.Without) > 0 {
			continue
		}
		lines, sheets, err := s.read(t, body)
		if err != nil {
			return nil, fmt.Errorf("download of %d: %s: %w", s.Year, t.variant.Path(), err)
		}
		write(t.name+".ndjson", lines)
		for _, sheet := range sheets {
			columns = append(columns, sheet.described()...)
			write(sheet.name+".csv", csvOf(append([][]string{sheet.header()}, sheet.rows...)))
		}
		name, text := schemas.File(t.variant)
		described[name] = text
	}
	write("columns.csv", csvOf(columns))
	for _, name := range slices.Sorted(maps.Keys(described)) {
		write("schemas/"+name, described[name])
	}
	err := archive.Close()
	return buffer.Bytes(), err
}

// csvOf writes rows by RFC 4180.
func csvOf(rows [][]string) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.UseCRLF = true
	_ = w.WriteAll(rows) // a buffer takes everything
	return b.Bytes()
}

// read turns a document into its lines, and into a sheet of its rows and of each list within them.
func (s Season) read(t table, body []byte) (lines []byte, sheets []*sheet, err error) {
	var document wire.Success[jsontext.Value]
	if err := json.Unmarshal(body, &document); err != nil {
		return nil, nil, err
	}
	rows := []jsontext.Value{document.Data}
	if t.list {
		rows = nil
		if err := json.Unmarshal(document.Data, &rows); err != nil {
			return nil, nil, err
		}
	}
	b := &book{keys: t.keys, sheets: map[string]*sheet{}}
	b.add(t.name, t.row, reflect.Value{}, nil) // the columns, even without rows
	for _, row := range rows {
		value := reflect.New(t.row)
		if err := json.Unmarshal(row, value.Interface()); err != nil {
			return nil, nil, err
		}
		if s.leavesOut(value.Elem()) {
			continue
		}
		lines = append(append(lines, row...), '\n')
		b.add(t.name, t.row, value.Elem(), nil)
	}
	for _, name := range b.order {
		switch sheet := b.sheets[name]; {
		case name == t.rows:
			sheet.name = t.name
			sheets = append(sheets, sheet)
		case name != t.name || t.rows == "":
			sheets = append(sheets, sheet)
		}
	}
	return lines, sheets, nil
}

func (s Season) leavesOut(row reflect.Value) bool {
	session := row.FieldByName("SessionKey")
	return session.IsValid() && slices.ContainsFunc(s.Without, func(b Borrowed) bool { return b.SessionKey == session.Int() })
}

// sheet is a file of CSV.
type sheet struct {
	name    string
	columns []column
	rows    [][]string
}

type column struct {
	name, kind string
	optional   bool
}

func (s *sheet) header() []string {
	header := make([]string, len(s.columns))
	for i, c := range s.columns {
		header[i] = c.name
	}
	return header
}

func (s *sheet) described() [][]string {
	word := map[bool]string{true: "yes", false: "no"}
	key, _ := keyOf(s.name)
	rows := make([][]string, len(s.columns))
	for i, c := range s.columns {
		rows[i] = []string{s.name + ".csv", c.name, c.kind, word[c.optional], word[slices.Contains(key, c.name)]}
	}
	return rows
}

// book makes sheets of values: a column for each scalar, one for each scalar of a nested struct, named after
// both, and a separate sheet for each list, whose rows start with the keys of their parent row.
type book struct {
	keys   []string
	order  []string
	sheets map[string]*sheet
}

// cell is a column and its value in a row.
type cell struct {
	column
	text string
}

// add adds a row. An invalid value adds the columns alone.
func (b *book) add(name string, typ reflect.Type, value reflect.Value, keys []cell) {
	s := b.sheets[name]
	if s == nil {
		s = &sheet{name: name}
		b.sheets[name], b.order = s, append(b.order, name)
	}
	cells := slices.Clone(keys)
	type list struct {
		name  string
		typ   reflect.Type
		value reflect.Value
	}
	var lists []list
	var walk func(prefix string, typ reflect.Type, value reflect.Value, optional bool)
	walk = func(prefix string, typ reflect.Type, value reflect.Value, optional bool) {
		for i := range typ.NumField() {
			label, options, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			label = prefix + label
			field, inner := typ.Field(i).Type, reflect.Value{}
			if value.IsValid() {
				inner = value.Field(i)
			}
			omitted := optional || options == "omitzero"
			if field.Kind() == reflect.Pointer {
				field = field.Elem()
				if inner.IsValid() {
					inner = inner.Elem() // of nil: invalid
				}
			} else if options == "omitzero" && inner.IsValid() && inner.IsZero() {
				inner = reflect.Value{}
			}
			switch kind := kindOf(field); {
			case kind != "":
				cells = append(cells, cell{column{label, kind, omitted}, textOf(inner)})
			case field.Kind() == reflect.Slice:
				lists = append(lists, list{name + "_" + label, field.Elem(), inner})
			default:
				walk(label+"_", field, inner, omitted)
			}
		}
	}
	walk("", typ, value, false)
	if s.columns == nil {
		for _, c := range cells {
			s.columns = append(s.columns, c.column)
		}
	}
	if value.IsValid() {
		row := make([]string, len(cells))
		for i, c := range cells {
			row[i] = c.text
		}
		s.rows = append(s.rows, row)
	}
	var mine []cell
	for _, c := range cells {
		if slices.Contains(b.keys, c.name) {
			mine = append(mine, c)
		}
	}
	for _, l := range lists {
		switch {
		case !value.IsValid():
			b.add(l.name, l.typ, reflect.Value{}, mine)
		case l.value.IsValid():
			for i := range l.value.Len() {
				b.add(l.name, l.typ, l.value.Index(i), mine)
			}
		}
	}
}

// kindOf names the type of a scalar or of a list of scalars, which is one cell; empty: it is neither.
func kindOf(typ reflect.Type) string {
	switch {
	case typ.Kind() == reflect.Slice && kindOf(typ.Elem()) != "":
		return kindOf(typ.Elem()) + "s"
	case typ == reflect.TypeFor[wire.Instant]():
		return "instant"
	case typ.Implements(reflect.TypeFor[json.Marshaler]()):
		return "number"
	}
	switch typ.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Float64:
		return "number"
	}
	return ""
}

// inert returns a text that a spreadsheet does not run as a formula: with an apostrophe before it, if it begins
// like one.
func inert(text string) string {
	if text == "" || !strings.ContainsRune("=+@-\t\r", rune(text[0])) {
		return text
	}
	if _, err := strconv.ParseFloat(text, 64); text[0] == '-' && err == nil {
		return text
	}
	return "'" + text
}

// textOf formats a scalar like the documents, a text inert; an unknown value is empty. Spaces separate the members of a
// list.
func textOf(value reflect.Value) string {
	if !value.IsValid() {
		return ""
	}
	switch value.Kind() {
	case reflect.String:
		return inert(value.String())
	case reflect.Slice:
		cells := make([]string, value.Len())
		for i := range cells {
			cells[i] = textOf(value.Index(i))
		}
		return strings.Join(cells, " ")
	}
	text, err := json.Marshal(value.Interface())
	if err != nil {
		panic("BUG: a scalar of a document cannot be written: " + err.Error())
	}
	return strings.Trim(string(text), `"`)
}
