package archive

import (
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"gridcast/builder/season"
)

// lineReader reads a season in the spelling of Pack: members in the order of the fields, no blanks, no escapes. That takes a
// fraction of the time of package json, which reads every other spelling.
type lineReader struct {
	rest  []byte
	texts map[string]string              // each text once
	rows  map[reflect.Type]reflect.Value // a slice of each type, to collect rows in
}

// plan reads a value of one type. It returns false if the value has another spelling.
type plan func(l *lineReader, into reflect.Value) bool

// readSeason reads a line by the plan of season.Season, or by package json.
func readSeason(read plan, text []byte, into *season.Season) error {
	if readLine(read, text, into) {
		return nil
	}
	*into = season.Season{}
	return json.Unmarshal(text, into, spelling)
}

func readLine(read plan, text []byte, into *season.Season) bool {
	l := lineReader{text, map[string]string{}, map[reflect.Type]reflect.Value{}}
	return utf8.Valid(text) && read(&l, reflect.ValueOf(into).Elem()) && string(l.rest) == "\n"
}

func (l *lineReader) skip(token string) bool {
	if len(l.rest) < len(token) || string(l.rest[:len(token)]) != token {
		return false
	}
	l.rest = l.rest[len(token):]
	return true
}

// list reads elements between two brackets, with commas between them.
func (l *lineReader) list(begin, end string, element func() bool) bool {
	if !l.skip(begin) {
		return false
	}
	if l.skip(end) {
		return true
	}
	for element() {
		if l.skip(end) {
			return true
		}
		if !l.skip(",") {
			return false
		}
	}
	return false
}

// text reads a text without escapes.
func (l *lineReader) text() (string, bool) {
	if !l.skip(`"`) {
		return "", false
	}
	for i, c := range l.rest {
		switch {
		case c == '"':
			text, ok := l.texts[string(l.rest[:i])]
			if !ok {
				text = string(l.rest[:i])
				l.texts[text] = text
			}
			l.rest = l.rest[i+1:]
			return text, true
		case c == '\\' || c < ' ':
			return "", false
		}
	}
	return "", false
}

// digits reads a whole number without a sign.
func (l *lineReader) digits() (n int64, ok bool) {
	i := 0
	for ; i < len(l.rest) && i < 18 && '0' <= l.rest[i] && l.rest[i] <= '9'; i++ {
		n = 10*n + int64(l.rest[i]-'0')
	}
	ok = i == 1 || i > 1 && l.rest[0] != '0'
	l.rest = l.rest[i:]
	return n, ok
}

// planOf returns the plan of a type in a season.
func planOf(t reflect.Type) plan {
	switch t {
	case reflect.TypeFor[time.Time]():
		return readInstant
	case reflect.TypeFor[time.Duration]():
		return func(l *lineReader, into reflect.Value) bool {
			n, ok := l.digits()
			into.SetInt(n * int64(time.Millisecond))
			return ok && n < 1<<40
		}
	}
	switch t.Kind() {
	case reflect.String:
		return func(l *lineReader, into reflect.Value) bool {
			text, ok := l.text()
			into.SetString(text)
			return ok
		}
	case reflect.Int:
		return func(l *lineReader, into reflect.Value) bool {
			n, ok := l.digits()
			into.SetInt(n)
			return ok
		}
	case reflect.Float64:
		return readFloat
	case reflect.Bool:
		return func(l *lineReader, into reflect.Value) bool {
			into.SetBool(true)
			return l.skip("true") // Pack omits false
		}
	case reflect.Array:
		element := planOf(t.Elem())
		return func(l *lineReader, into reflect.Value) bool {
			n := 0
			whole := l.list("[", "]", func() bool {
				n++
				return n <= into.Len() && element(l, into.Index(n-1))
			})
			return whole && n == into.Len()
		}
	case reflect.Slice:
		return planOfRows(t)
	case reflect.Map:
		readKey, readValue := planOf(t.Key()), planOf(t.Elem())
		return func(l *lineReader, into reflect.Value) bool {
			into.Set(reflect.MakeMap(t))
			return l.list("{", "}", func() bool {
				key, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
				if !readKey(l, key) || into.MapIndex(key).IsValid() || !l.skip(":") || !readValue(l, value) {
					return false
				}
				into.SetMapIndex(key, value)
				return true
			})
		}
	case reflect.Struct:
		return planOfStruct(t)
	default:
		panic("BUG: a season has a value of type " + t.String())
	}
}

// planOfRows collects rows in a slice that all of the type share, so that the result has no spare capacity.
func planOfRows(t reflect.Type) plan {
	element, zero := planOf(t.Elem()), reflect.Zero(t.Elem())
	return func(l *lineReader, into reflect.Value) bool {
		if l.skip("null") {
			return true
		}
		rows, ok := l.rows[t]
		if !ok {
			rows = reflect.New(t).Elem()
			l.rows[t] = rows
		}
		rows.SetLen(0)
		whole := l.list("[", "]", func() bool {
			n := rows.Len()
			rows.Grow(1)
			rows.SetLen(n + 1)
			row := rows.Index(n)
			row.Set(zero)
			return element(l, row)
		})
		into.Set(reflect.MakeSlice(t, rows.Len(), rows.Len()))
		reflect.Copy(into, rows)
		return whole
	}
}

func planOfStruct(t reflect.Type) plan {
	names, fields := make([]string, t.NumField()), make([]plan, t.NumField())
	for i := range names {
		names[i], fields[i] = strconv.Quote(t.Field(i).Tag.Get("json"))+":", planOf(t.Field(i).Type)
	}
	return func(l *lineReader, into reflect.Value) bool {
		i := -1
		return l.list("{", "}", func() bool {
			for i++; i < len(names); i++ {
				if l.skip(names[i]) {
					return fields[i](l, into.Field(i))
				}
			}
			return false
		})
	}
}

// readFloat reads a number without a sign and an exponent.
func readFloat(l *lineReader, into reflect.Value) bool {
	begin := l.rest
	n, ok := l.digits()
	if into.SetFloat(float64(n)); !ok || !l.skip(".") {
		return ok && n < 1<<53
	}
	size := len(l.rest)
	for len(l.rest) > 0 && '0' <= l.rest[0] && l.rest[0] <= '9' {
		l.rest = l.rest[1:]
	}
	f, err := strconv.ParseFloat(string(begin[:len(begin)-len(l.rest)]), 64)
	into.SetFloat(f)
	return err == nil && len(l.rest) < size
}

// readInstant reads a day, or an instant in UTC.
func readInstant(l *lineReader, into reflect.Value) bool {
	layout := time.DateOnly
	text, ok := l.text()
	if strings.Contains(text, "T") {
		layout = time.RFC3339Nano
	}
	t, err := time.Parse(layout, text)
	into.Set(reflect.ValueOf(t.UTC()))
	return ok && err == nil
}
