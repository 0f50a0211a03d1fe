package f1db

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"gridcast/builder/season"
)

// release holds the rows of a release in F1DB's own terms.
type release struct {
	countries    []country
	drivers      []driver
	constructors []constructor
	engines      []engine
	circuits     []circuit
	grandsPrix   []grandPrix
	races        []race
	chronology   []link
	rows         map[table]map[int][]row // by race id; tables of a season by year
	report       Report

	careful bool             // one by one, because a value of a wrong type was found; it takes twice the time
	unread  map[string]error // things that cannot be read, by their file in a repository
	faults  []fault

	// Of a repository.
	files   map[table]map[int]string // by race id or year, as for rows
	unknown map[string][]string      // times by file that cannot be read and count as unknown
}

// fault is a table or a part of a race that cannot be read.
type fault struct {
	race int // its id
	part season.Part
	err  error
}

// reader reads the files of a release and counts the bytes.
type reader struct {
	files       files
	done, total int64
	limit       int64
	progress    func(phase string, done, total int)
}

func read(f files, opts Options) (*release, error) {
	if _, ok := f[racesTable.file()]; !ok {
		return nil, errNotF1DB
	}
	for careful := false; ; careful = true {
		in := &reader{files: f, limit: cmp.Or(opts.MaxBytes, DefaultMaxBytes), progress: opts.Progress}
		rel := &release{rows: make(map[table]map[int][]row), unread: make(map[string]error), careful: careful}
		for _, t := range append(raceTables, seasonTables...) {
			rel.rows[t] = make(map[int][]row)
		}
		err := in.read(rel, opts)
		if wrongType := new(json.SemanticError); careful || !errors.As(err, &wrongType) {
			return rel, err
		}
	}
}

func (in *reader) read(rel *release, opts Options) error {
	type reading struct {
		table
		row func(*jsontext.Decoder) error
	}
	races, seasons := rel.keys(opts)
	readings := append(make([]reading, 0, 8+len(raceTables)+len(seasonTables)),
		reading{countriesTable, appendTo(rel, countriesTable, &rel.countries, func(c *country) string { return c.ID })},
		reading{driversTable, appendTo(rel, driversTable, &rel.drivers, func(d *driver) string { return string(d.ID) })},
		reading{constructorsTable, appendTo(rel, constructorsTable, &rel.constructors, func(c *constructor) string { return string(c.ID) })},
		reading{enginesTable, appendTo(rel, enginesTable, &rel.engines, func(e *engine) string { return string(e.ID) })},
		reading{circuitsTable, appendTo(rel, circuitsTable, &rel.circuits, func(c *circuit) string { return string(c.ID) })},
		reading{grandsPrixTable, appendTo(rel, grandsPrixTable, &rel.grandsPrix, func(g *grandPrix) string { return string(g.ID) })},
		reading{racesTable, rel.appendRace},
		reading{chronologyTable, appendTo(rel, chronologyTable, &rel.chronology, func(l *link) string { return fmt.Sprint(l.Parent, "-", l.Order) })},
	)
	for _, t := range raceTables {
		readings = append(readings, reading{t, rel.appendRow(t, races)})
	}
	for _, t := range seasonTables {
		readings = append(readings, reading{t, rel.appendRow(t, seasons)})
	}
	used := make(map[string]bool)
	for _, t := range readings {
		used[t.file()] = true
		in.total += in.files[t.file()].size
	}
	for _, t := range readings {
		if _, ok := in.files[t.file()]; !ok {
			if t.required {
				return fmt.Errorf("%s is missing", t.file())
			}
			rel.report.skip(t.file(), "not in this release", 0)
			continue
		}
		rows, err := in.readArray(t.file(), t.row)
		if err != nil {
			return err
		}
		rel.report.Tables = append(rel.report.Tables, Table{Name: t.stem, Rows: rows})
	}
	for _, name := range slices.Sorted(maps.Keys(in.files)) {
		switch {
		case used[name]:
		case strings.HasSuffix(name, ".schema.json"):
			rel.report.skip("*.schema.json", "schemas, not data", 1)
		default:
			rel.report.skip(name, "not needed", 0)
		}
	}
	return nil
}

// decode decodes a row. A careful one leaves out a value of a wrong type and returns the error about it as unread.
func (rel *release) decode(d *jsontext.Decoder, into any) (unread, err error) {
	if !rel.careful {
		return nil, json.UnmarshalDecode(d, into)
	}
	text, err := d.ReadValue()
	if err != nil {
		return nil, err
	}
	return rel.decodeText(text, into, d.Options())
}

func (rel *release) decodeText(text jsontext.Value, into any, opts json.Options) (unread, err error) {
	wrongType := new(json.SemanticError)
	if err = json.Unmarshal(text, into, opts); !rel.careful || !errors.As(err, &wrongType) {
		return nil, err
	}
	var cells map[string]jsontext.Value
	if json.Unmarshal(text, &cells) != nil {
		return nil, err // no row at all
	}
	key, _, _ := strings.Cut(strings.TrimPrefix(string(wrongType.JSONPointer), "/"), "/")
	unread = fmt.Errorf("%s %s cannot be read", key, cells[key])
	for key, value := range cells {
		if one, err := json.Marshal(map[string]jsontext.Value{key: value}); err == nil {
			_ = json.Unmarshal(one, into, opts) // the values that can be read
		}
	}
	return unread, nil
}

// appendTo returns a function that decodes one row of a table of things into the list. A thing that cannot be read is in
// rel.unread, under the file that it has in a repository.
func appendTo[T any](rel *release, t table, list *[]T, id func(*T) string) func(*jsontext.Decoder) error {
	n := 0
	return func(d *jsontext.Decoder) error {
		n++
		var value T
		unread, err := rel.decode(d, &value)
		switch {
		case err != nil:
			return err
		case unread != nil:
			rel.unread[t.stem+"/"+id(&value)+".yml"] = fmt.Errorf("%s, row %d: %w", t.file(), n, unread)
		default:
			*list = append(*list, value)
		}
		return nil
	}
}

// appendRace decodes a race. A value that cannot be read leaves out the part to which it belongs.
func (rel *release) appendRace(d *jsontext.Decoder) error {
	var r race
	unread, err := rel.decode(d, &r)
	if err != nil {
		return err
	}
	if rel.races = append(rel.races, r); unread != nil {
		part := season.CalendarPart
		switch key, _, _ := strings.Cut(unread.Error(), " "); {
		case key == "date", key == "time":
			part = season.StartPart
		case strings.HasSuffix(key, "Date"), strings.HasSuffix(key, "Time"):
			part = season.SessionsPart
		}
		rel.faults = append(rel.faults, fault{r.ID, part, fmt.Errorf("%s, row %d: %w", racesTable.file(), len(rel.races), unread)})
	}
	return nil
}

// key is the number by which the rows of a table are filed.
type key struct {
	name string
	of   func(row) int
	skip func(int) bool // of a season that is not asked for; nil in a whole import
}

func (rel *release) keys(opts Options) (races, seasons key) {
	races, seasons = key{name: "raceId", of: func(r row) int { return r.RaceID }}, key{name: "year", of: func(r row) int { return r.Year }}
	if opts.From == 0 && opts.To == 0 {
		return races, seasons
	}
	years := make(map[int]int)
	races.skip = func(id int) bool {
		if len(years) == 0 { // the races themselves are read by now
			for _, r := range rel.races {
				years[r.ID] = r.Year
			}
		}
		year, ok := years[id]
		return ok && !opts.asked(year)
	}
	seasons.skip = func(year int) bool { return !opts.asked(year) }
	return races, seasons
}

// appendRow returns a function that decodes one row of a table and files it by its key. It decodes only the key of a
// row to skip, because most of a release is from other seasons.
func (rel *release) appendRow(t table, by key) func(*jsontext.Decoder) error {
	n := 0
	return func(d *jsontext.Decoder) error {
		n++
		r := row{n: n}
		if by.skip == nil {
			var err error
			if r.unread, err = rel.decode(d, &r); err != nil {
				return err
			}
		} else {
			text, err := d.ReadValue()
			if err != nil {
				return err
			}
			if id, ok := by.in(text); ok && by.skip(id) {
				return nil
			}
			if r.unread, err = rel.decodeText(text, &r, d.Options()); err != nil {
				return err
			}
		}
		rel.rows[t][by.of(r)] = append(rel.rows[t][by.of(r)], r)
		return nil
	}
}

// in finds the key in a row in the form of F1DB's releases. A row in another form must be decoded.
func (k key) in(text jsontext.Value) (int, bool) {
	_, after, _ := bytes.Cut(text, []byte(`"`+k.name+`":`))
	digits, _, _ := bytes.Cut(after, []byte(","))
	id, err := strconv.Atoi(string(digits))
	return id, err == nil
}

// readArray calls row for every element of the array in a file, and counts them.
func (in *reader) readArray(name string, row func(*jsontext.Decoder) error) (n int, err error) {
	r, err := in.open(name)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	d := jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) // which takes less time
	n, err = decodeArray(d, row)
	if err != nil {
		return 0, fmt.Errorf("%s, %w", name, err)
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("%s: more after the end of the array", name)
	}
	return n, nil
}

// decodeArray calls row for every element of the next array. Errors begin with the row, from 1.
func decodeArray(d *jsontext.Decoder, row func(*jsontext.Decoder) error) (int, error) {
	if err := expect(d, '['); err != nil {
		return 0, fmt.Errorf("row 1: %w", err)
	}
	n := 0
	for d.PeekKind() != ']' {
		n++
		if err := row(d); err != nil {
			return 0, fmt.Errorf("row %d: %w", n, unexpectedEnd(err))
		}
	}
	if err := expect(d, ']'); err != nil {
		return 0, fmt.Errorf("row %d: %w", n+1, err)
	}
	return n, nil
}

func expect(d *jsontext.Decoder, want jsontext.Kind) error {
	got, err := d.ReadToken()
	if err != nil {
		return unexpectedEnd(err)
	}
	if got.Kind() != want {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	return nil
}

// unexpectedEnd turns an end of file in the middle of an array into io.ErrUnexpectedEOF.
func unexpectedEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// open opens a file. Its bytes count towards the limit of the reader.
func (in *reader) open(name string) (io.ReadCloser, error) {
	r, err := in.files[name].open()
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{bufio.NewReaderSize(counted{r, in}, 1<<16), r}, nil
}

// counted is a file with a limit shared by all files.
type counted struct {
	file io.Reader
	in   *reader
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.file.Read(p)
	c.in.done += int64(n)
	if c.in.done > c.in.limit {
		return 0, fmt.Errorf("release is larger than %d bytes unpacked", c.in.limit)
	}
	if c.in.progress != nil {
		c.in.progress("importing", int(c.in.done), int(max(c.in.total, c.in.done)))
	}
	return n, err
}
