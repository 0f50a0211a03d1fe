package f1db

import (
	"path"
	"strings"
)

// Spelled is a table as its lines and as the YAML parser give it.
type Spelled struct {
	Lines, Parsed any
	Plain         bool // plainRows reads it
	Err           error
}

// Spell reads a table in both ways.
func Spell(content string) Spelled {
	var rows []yamlRow
	err := decodeYAML([]byte(content), &rows)
	lines, plain := plainRows(content)
	return Spelled{lines, rows, plain, err}
}

// TablesOf returns the tables of a tree by file.
func TablesOf(t *Tree) map[string]string {
	tables := make(map[string]string)
	for name, content := range t.files {
		if _, ok := raceFiles[path.Base(name)]; ok && strings.HasPrefix(name, "seasons/") {
			tables[name] = string(content)
		}
	}
	return tables
}
