package f1db

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// rowFields returns the fields of a row by their key. It looks at the type when a table is first read, because most
// commands read none.
var rowFields = sync.OnceValue(func() map[string]int {
	fields := make(map[string]int)
	for i := range reflect.TypeFor[yamlRow]().NumField() {
		fields[reflect.TypeFor[yamlRow]().Field(i).Tag.Get("yaml")] = i
	}
	return fields
})

// plainRows reads a table as F1DB spells all of them: a list of rows, one line for each key with at most one plain
// or quoted value. It needs a twentieth of the time of a YAML parser, which reads every other file: plainRows
// returns false where it could differ from the parser.
func plainRows(content string) (rows []yamlRow, ok bool) {
	var keys []string // of the last row
	for line := range strings.Lines(content) {
		line = strings.TrimSuffix(line, "\n")
		first := strings.HasPrefix(line, "- ")
		if first {
			rows, keys = append(rows, yamlRow{}), keys[:0]
		}
		if !first && !strings.HasPrefix(line, "  ") || len(rows) == 0 {
			return nil, false
		}
		key, value, colon := strings.Cut(line[2:], ":")
		if !colon || !isPlain(key) || strings.Contains(key, " ") || slices.Contains(keys, key) {
			return nil, false
		}
		keys = append(keys, key)
		if value == "" {
			continue
		}
		if value, ok = strings.CutPrefix(value, " "); !ok {
			return nil, false
		}
		text, quoted := strings.CutPrefix(value, `"`)
		if quoted {
			text, quoted = strings.CutSuffix(text, `"`)
		}
		if !quoted && !isPlain(value) || quoted && strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
			return nil, false
		}
		if field, known := rowFields()[key]; known && !setPlain(reflect.ValueOf(&rows[len(rows)-1]).Elem().Field(field), text, quoted) {
			return nil, false
		}
	}
	return rows, len(rows) > 0
}

// setPlain sets a field of a row. It returns false for a value of another type or in an unusual spelling.
func setPlain(field reflect.Value, text string, quoted bool) bool {
	switch field.Kind() {
	case reflect.String:
		field.SetString(text)
		return true
	case reflect.Int:
		n, _ := strconv.Atoi(text)
		field.SetInt(int64(n))
		return !quoted && strconv.Itoa(n) == text
	case reflect.Float64:
		x, _ := strconv.ParseFloat(text, 64)
		field.SetFloat(x)
		return !quoted && strconv.FormatFloat(x, 'f', -1, 64) == text
	default:
		field.SetBool(text == "true")
		return !quoted && (text == "true" || text == "false")
	}
}

// isPlain reports whether YAML reads an unquoted text as it stands, which is neither null nor of more than one value.
func isPlain(text string) bool {
	letter := func(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' }
	if text == "" || !letter(text[0]) || text[len(text)-1] == ' ' || strings.EqualFold(text, "null") {
		return false
	}
	for i := range len(text) {
		if !letter(text[i]) && strings.IndexByte(" .+-/()", text[i]) < 0 {
			return false
		}
	}
	return true
}
