package laps

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// eachRow calls f with the named columns of every row of all files of the table.
func eachRow(dir, table string, columns []string, f func(row []string) error) error {
	paths, err := filepath.Glob(filepath.Join(dir, table+"*.csv*"))
	if err != nil {
		return fmt.Errorf("list %s in %s: %w", table, dir, err)
	}
	if len(paths) == 0 {
		return fmt.Errorf("no %s*.csv or .csv.gz in %s", table, dir)
	}
	for _, path := range paths {
		if err := eachRowOf(path, columns, f); err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
	}
	return nil
}

func eachRowOf(path string, columns []string, f func(row []string) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read
	var in io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(file); err != nil {
			return err
		}
	}
	r := csv.NewReader(in)
	r.ReuseRecord = true
	head, err := r.Read()
	if err != nil {
		return err
	}
	at := make([]int, len(columns))
	for i, c := range columns {
		if at[i] = slices.Index(head, c); at[i] < 0 {
			return fmt.Errorf("no column %q", c)
		}
	}
	row := make([]string, len(columns))
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for i, j := range at {
			row[i] = strings.Clone(record[j])
		}
		if err := f(row); err != nil {
			return err
		}
	}
}
