package check

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"gridcast/schemas/wire"
)

// maxUnpacked is the most that a file in a download may have, in bytes.
const maxUnpacked = 64 << 20

// Bulk checks the download of a season as its readers use it: the zip with every checksum, the lines of
// each file against the records of its document, and the columns of each table. documents has the
// documents by the name of their file without its ending. No record may belong to a round in without.
func Bulk(download []byte, documents map[string][]byte, without []int64) error {
	archive, err := zip.NewReader(bytes.NewReader(download), int64(len(download)))
	if err != nil {
		return err
	}
	lines := map[string]int{}
	var sheets []sheet // checked after the lines, which count their rows
	seen := map[string]bool{}
	for _, f := range archive.File {
		name := path.Base(f.Name)
		text, err := unpack(f)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		if seen[f.Name] || len(text) == 0 && !strings.HasSuffix(name, ".ndjson") {
			return fmt.Errorf("%s: twice, or empty", f.Name)
		}
		seen[f.Name] = true
		table, ending, _ := strings.Cut(name, ".")
		switch ending {
		case "ndjson":
			if lines[table], err = checkLines(text, documents[table], without); err != nil {
				return fmt.Errorf("%s: %w", f.Name, inWords(err))
			}
		case "csv":
			sheets = append(sheets, sheet{f.Name, text})
		}
	}
	for _, s := range sheets {
		if err := s.check(lines, without); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	for _, table := range slices.Sorted(maps.Keys(documents)) {
		if _, ok := lines[table]; !ok {
			return fmt.Errorf("%s is not in it", table)
		}
	}
	return nil
}

func unpack(f *zip.File) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(r, maxUnpacked)) // which compares the checksum at the end
	return text, errors.Join(err, r.Close())
}

// checkLines compares lines with the records of the document, and returns the number of rows in its table: a
// record is one, and a classification has one for each driver of the race.
func checkLines(text, document []byte, without []int64) (int, error) {
	var body wire.Success[jsontext.Value]
	if err := json.Unmarshal(document, &body); err != nil {
		return 0, fmt.Errorf("its document: %w", err)
	}
	records := []jsontext.Value{body.Data}
	if bytes.HasPrefix(body.Data, []byte("[")) {
		records = nil
		if err := json.Unmarshal(body.Data, &records); err != nil {
			return 0, err
		}
	}
	var want []byte
	n, rows := 0, 0
	for _, record := range records {
		var of struct {
			SessionKey int64            `json:"session_key"`
			Race       []jsontext.Value `json:"race"`
		}
		if err := json.Unmarshal(record, &of); err != nil {
			return 0, err
		}
		if !slices.Contains(without, of.SessionKey) {
			want = append(append(want, record...), '\n')
			n++
			if rows++; of.Race != nil {
				rows += len(of.Race) - 1
			}
		}
	}
	if !bytes.Equal(text, want) {
		return 0, fmt.Errorf("%d bytes that are not the %d records of its document", len(text), n)
	}
	return rows, nil
}

// sheet is a table of a download.
type sheet struct {
	name string // of its file
	text []byte
}

func (s sheet) check(lines map[string]int, without []int64) error {
	rows, err := csv.NewReader(bytes.NewReader(s.text)).ReadAll() // each row as long as the first
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return errors.New("no columns")
	}
	header := rows[0]
	for i, column := range header {
		if column == "" || slices.Index(header, column) != i {
			return fmt.Errorf("columns %q", header)
		}
	}
	if n, ok := lines[strings.TrimSuffix(path.Base(s.name), ".csv")]; ok && n != len(rows)-1 {
		return fmt.Errorf("%d rows, want %d", len(rows)-1, n)
	}
	if i := slices.Index(header, "session_key"); i >= 0 {
		for _, row := range rows[1:] {
			if key, err := strconv.ParseInt(row[i], 10, 64); err != nil || slices.Contains(without, key) {
				return fmt.Errorf("a row of the round %q", row[i])
			}
		}
	}
	return nil
}
