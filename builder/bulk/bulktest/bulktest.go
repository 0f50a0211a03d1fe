// Package bulktest checks downloads in tests.
package bulktest

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// CheckKeys reports two rows of a table of a download that have the same key, by its columns.csv.
func CheckKeys(t testing.TB, download []byte) {
	t.Helper()
	tables, keys := tablesOf(t, download), map[string][]string{}
	for _, c := range tables["columns.csv"] {
		if c[4] == "yes" {
			keys[c[0]] = append(keys[c[0]], c[1])
		}
	}
	delete(tables, "columns.csv")
	for name, rows := range tables {
		seen := map[string]int{}
		for line, row := range rows[1:] {
			key := make([]string, 0, len(keys[name]))
			for _, part := range keys[name] {
				key = append(key, row[slices.Index(rows[0], part)])
			}
			text := fmt.Sprintf("%q", key)
			if first, ok := seen[text]; ok && len(key) > 0 {
				t.Errorf("%s: rows %d and %d have the key %s", name, first, line+1, text)
			}
			seen[text] = line + 1
		}
	}
}

// Has reports whether a column of a file in a download has any value.
func Has(t testing.TB, download []byte, file, column string) bool {
	t.Helper()
	rows := tablesOf(t, download)[file]
	if rows == nil {
		return false
	}
	i := slices.Index(rows[0], column)
	if i < 0 {
		t.Fatalf("%s has no column %s", file, column)
	}
	return slices.ContainsFunc(rows[1:], func(row []string) bool { return row[i] != "" })
}

// tablesOf returns the tables of a download by the names of their files.
func tablesOf(t testing.TB, download []byte) map[string][][]string {
	t.Helper()
	packed, err := zip.NewReader(bytes.NewReader(download), int64(len(download)))
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string][][]string{}
	for _, f := range packed.File {
		if !strings.HasSuffix(f.Name, ".csv") {
			continue
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if tables[path.Base(f.Name)], err = csv.NewReader(r).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	return tables
}
