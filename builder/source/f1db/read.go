package f1db

import (
	"archive/zip"
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"gridcast/builder/season"
)

// release holds the rows of a release in F1DB's own terms.
type release struct {
	things     map[table][]thing
	races      []race
	chronology []link
	rows       map[table]map[int][]row // by race id; tables of a season by year
	report     Report

	unread map[string]error // things that cannot be read, by their file in a repository
	faults []fault

	// Of a repository.
	files   map[table]map[int]string // by race id or year, as for rows
	unknown map[string][]string      // times by file that cannot be read and count as unknown
}

// fault is a table or a part of a race that cannot be read.
type fault struct {
	race    int // its id
	section season.Section
	err     error
}

// reader reads the files of a release and counts the bytes.
type reader struct {
	files       files
	done, total int64
	limit       int64
	progress    func(phase string, done, total int)
}

// newRelease returns a release without rows.
func newRelease() *release {
	rel := &release{things: make(map[table][]thing), rows: make(map[table]map[int][]row), unread: make(map[string]error)}
	for _, t := range append(raceTables, seasonTables...) {
		rel.rows[t] = make(map[int][]row)
	}
	return rel
}

func read(f files, opts Options) (*release, error) {
	if _, ok := f[racesTable.file()]; !ok {
		return nil, errNotF1DB
	}
	in := &reader{files: f, limit: cmp.Or(opts.MaxBytes, DefaultMaxBytes), progress: opts.Progress}
	rel := newRelease()
	if err := in.read(rel); err != nil {
		return nil, err
	}
	for _, r := range rel.races {
		for _, t := range raceTables {
			if !opts.asked(r.Year) {
				delete(rel.rows[t], r.ID)
			}
		}
	}
	for _, t := range seasonTables {
		maps.DeleteFunc(rel.rows[t], func(year int, _ []row) bool { return !opts.asked(year) })
	}
	return rel, nil
}

func (in *reader) read(rel *release) error {
	type reading struct {
		table
		row func(*jsontext.Decoder) error
	}
	var readings []reading
	for _, t := range thingTables {
		readings = append(readings, reading{t, eachRow(rel.appendThing(t))})
	}
	readings = append(readings, reading{racesTable, eachRow(rel.appendRace)}, reading{chronologyTable, eachRow(rel.appendLink)})
	for _, t := range raceTables {
		readings = append(readings, reading{t, eachRow(rel.appendRow(t, func(r row) int { return r.RaceID }))})
	}
	for _, t := range seasonTables {
		readings = append(readings, reading{t, eachRow(rel.appendRow(t, func(r row) int { return r.Year }))})
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

// decode decodes the next row. It leaves out a value of a wrong type, and returns the error about it as unread.
func decode(d *jsontext.Decoder, into any) (unread, err error) {
	text, err := d.ReadValue()
	if err != nil {
		return nil, err
	}
	wrongType := new(json.SemanticError)
	if err = json.Unmarshal(text, into, d.Options()); !errors.As(err, &wrongType) {
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
			_ = json.Unmarshal(one, into, d.Options()) // the values that can be read
		}
	}
	return unread, nil
}

// eachRow returns a function that decodes the next row of a table and hands it over with its number, from 1, and the error
// about a value of a wrong type.
func eachRow[T any](take func(n int, value T, unread error)) func(*jsontext.Decoder) error {
	n := 0
	return func(d *jsontext.Decoder) error {
		n++
		var value T
		unread, err := decode(d, &value)
		if err == nil {
			take(n, value, unread)
		}
		return err
	}
}

// appendThing returns a function that takes a thing. A thing that cannot be read is in rel.unread, under the file that it
// has in a repository.
func (rel *release) appendThing(t table) func(int, thing, error) {
	return func(n int, value thing, unread error) {
		if unread != nil {
			rel.unread[t.place(value.ID)] = fmt.Errorf("%s, row %d: %w", t.file(), n, unread)
			return
		}
		rel.things[t] = append(rel.things[t], value)
	}
}

// appendLink takes a link of a chronology.
func (rel *release) appendLink(_ int, l link, unread error) {
	if unread != nil {
		rel.unread[fmt.Sprintf("%s/%s-%d.yml", chronologyTable.stem, l.Parent, l.Order)] = fmt.Errorf("%s: %w", chronologyTable.file(), unread)
		return
	}
	rel.chronology = append(rel.chronology, l)
}

// appendRace takes a race. A value that cannot be read leaves out the part to which it belongs.
func (rel *release) appendRace(n int, r race, unread error) {
	if rel.races = append(rel.races, r); unread == nil {
		return
	}
	section := season.CalendarSection
	switch key, _, _ := strings.Cut(unread.Error(), " "); {
	case key == "date", key == "time":
		section = season.StartSection
	case strings.HasSuffix(key, "Date"), strings.HasSuffix(key, "Time"):
		section = season.SessionsSection
	}
	rel.faults = append(rel.faults, fault{r.ID, section, fmt.Errorf("%s, row %d: %w", racesTable.file(), n, unread)})
}

// appendRow returns a function that files a row of a table by its key.
func (rel *release) appendRow(t table, key func(row) int) func(int, row, error) {
	return func(n int, r row, unread error) {
		r.n, r.unread = n, unread
		rel.rows[t][key(r)] = append(rel.rows[t][key(r)], r)
	}
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

// files are the files of a release by base name, in whichever folder.
type files map[string]file

type file struct {
	size int64
	open func() (io.ReadCloser, error)
}

// errNotF1DB says that a path holds no release.
var errNotF1DB = errors.New("not an F1DB release: want f1db-json-splitted.zip, or the folder it unpacks to, with f1db-races.json in it")

func inFolder(name string) (files, error) {
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	found := make(files)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			continue
		}
		whole := filepath.Join(name, e.Name())
		found[e.Name()] = file{info.Size(), func() (io.ReadCloser, error) { return os.Open(whole) }}
	}
	return found, nil
}

func inZip(packed io.ReaderAt, size int64) (files, error) {
	z, err := zip.NewReader(packed, size)
	if errors.Is(err, zip.ErrFormat) {
		return nil, errNotF1DB
	}
	if err != nil {
		return nil, fmt.Errorf("open zip: %w", err)
	}
	found := make(files)
	for _, f := range z.File {
		if f.FileInfo().IsDir() {
			continue
		}
		base := path.Base(f.Name)
		if _, ok := found[base]; ok {
			return nil, fmt.Errorf("%s is in the zip twice", base)
		}
		found[base] = file{int64(min(f.UncompressedSize64, 1<<62)), f.Open}
	}
	return found, nil
}
