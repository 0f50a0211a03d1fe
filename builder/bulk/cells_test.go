package bulk_test

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"testing"

	"gridcast/builder/bulk"
)

// A cell that a spreadsheet would run as a formula has an apostrophe before it. Numbers and times stay.
func TestCellsAreInert(t *testing.T) {
	document := []byte(`{"ok":true,"data":[{"session_key":1001,"gp_name":"=cmd|' /C calc'!A0","kind":"round_moved","at":"1001-01-02T00:00:00+00:00",` +
		`"by":"operator","reason":"-2+3"},{"session_key":1002,"gp_name":"@SUM(A1)","kind":"round_moved","at":"1001-01-02T00:00:00+00:00","by":"operator","reason":"-2.5"}],"meta":{}}`)
	packed, err := bulk.Season{Year: 1001}.Zip(map[string][]byte{"changes/1001": document})
	if err != nil {
		t.Fatal(err)
	}
	files, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		t.Fatal(err)
	}
	file, err := files.Open("gridcast-1001/changes.csv")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
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
