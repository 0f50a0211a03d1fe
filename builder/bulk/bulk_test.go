package bulk_test

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"gridcast/builder/bulk"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/schemas/catalog"
)

// TestEveryEndpointIsInTheDownload names an endpoint that no table of the download has.
func TestEveryEndpointIsInTheDownload(t *testing.T) {
	without := map[catalog.Name]string{
		catalog.Drivers:  "it is the grid of today, not of a season",
		catalog.NextRace: "it changes every second",
		catalog.Live:     "it is provisional; the verified result is in the download",
		catalog.Forecast: "it changes with each session of a weekend, and the record keeps its scores",
		catalog.Bulk:     "it is the download",

		catalog.ChangesLog: "it is of all seasons; the changes of a season are in its download",

		catalog.Overview:      "it repeats rows of other documents",
		catalog.Identifiers:   "it is of all seasons; the rows of the download have the identifiers",
		catalog.FormerCareers: "it is of all seasons; those of a season are in its download",
	}
	paths := bulk.Season{Year: 2024}.Paths()
	for _, e := range catalog.Endpoints {
		has := slices.ContainsFunc(paths, func(path string) bool { return path == string(e.Name) || strings.HasPrefix(path, string(e.Name)+"/") })
		if reason := without[e.Name]; has == (reason != "") {
			t.Errorf("%s: in the download %t, reason to leave it out %q: add a row to the function tables in bulk.go", e.Name, has, reason)
		}
	}
}

// TestDocumentationHasTheColumns compares the columns of a download with those that the documentation shows. Each table
// has a key or a reason to have none, and its columns exist.
func TestDocumentationHasTheColumns(t *testing.T) {
	season := bulk.Season{Year: 2024}
	documents := map[string][]byte{}
	for _, path := range season.Paths() {
		documents[path] = []byte(`{"ok":true,"data":[]}`)
		if name, _, _ := strings.Cut(path, "/"); name == "accuracy" || name == "track-record" || name == "title-odds" {
			documents[path] = []byte(`{"ok":true,"data":{}}`)
		}
	}
	data := must.Get(season.Zip(documents))(t)
	packed := must.Get(zip.NewReader(bytes.NewReader(data), int64(len(data))))(t)
	text := must.Get(fs.ReadFile(packed, "gridcast-2024/columns.csv"))(t)
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	golden.File(t, "../../schemas/docs/columns.csv", text)
	columns := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		file, rest, _ := strings.Cut(line, ".csv,")
		column, _, _ := strings.Cut(rest, ",")
		columns[file] = append(columns[file], column)
	}
	for table, has := range columns {
		key, ok := bulk.KeyOf(table)
		if table != "file,column,type,optional,key\n" && !ok {
			t.Errorf("%s has no key: add it to identified in bulk.go", table)
		}
		for _, column := range key {
			if !slices.Contains(has, column) {
				t.Errorf("%s has no column %s, which is in its key", table, column)
			}
		}
	}
	must.Hold(t, len(columns) >= 50, "got %d tables", len(columns))
}

// TestReadmeNamesEveryTable holds the list of tables in the README of the download to the tables.
func TestReadmeNamesEveryTable(t *testing.T) {
	readme := must.Get(os.ReadFile("README.txt"))(t)
	season := bulk.Season{Year: 2024}
	documents := map[string][]byte{}
	for _, path := range season.Paths() {
		documents[path] = []byte(`{"ok":true,"data":[]}`)
	}
	for name := range season.Named(documents) {
		must.Show(t, "README.txt", string(readme), "\n    "+name+" ")
	}
}

// A cell that a spreadsheet would run as a formula has an apostrophe before it. Numbers and times stay.
func TestCellsAreInert(t *testing.T) {
	document := []byte(`{"ok":true,"data":[{"session_key":1001,"gp_name":"=cmd|' /C calc'!A0","kind":"round_moved","at":"1001-01-02T00:00:00+00:00",` +
		`"by":"operator","reason":"-2+3"},{"session_key":1002,"gp_name":"@SUM(A1)","kind":"round_moved","at":"1001-01-02T00:00:00+00:00","by":"operator","reason":"-2.5"}],"meta":{}}`)
	packed := must.Get(bulk.Season{Year: 1001}.Zip(map[string][]byte{"changes/1001": document}))(t)
	files := must.Get(zip.NewReader(bytes.NewReader(packed), int64(len(packed))))(t)
	file := must.Get(files.Open("gridcast-1001/changes.csv"))(t)
	rows := must.Get(csv.NewReader(file).ReadAll())(t)
	for i, want := range []map[string]string{
		{"session_key": "1001", "gp_name": "'=cmd|' /C calc'!A0", "reason": "'-2+3", "at": "1001-01-02T00:00:00+00:00"},
		{"session_key": "1002", "gp_name": "'@SUM(A1)", "reason": "-2.5"},
	} {
		for j, column := range rows[0] {
			if value, ok := want[column]; ok && rows[i+1][j] != value {
				t.Errorf("row %d: %s is %q, want %q", i+1, column, rows[i+1][j], value)
			}
		}
	}
}
