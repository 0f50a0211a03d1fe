package archive

import (
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/go-json-experiment/json"

	"gridcast/builder/season"
)

// lineReader reads seasons in the spelling of Pack: members in the order of the fields, no blanks, no escapes. That takes a
// fraction of the time of package json, which reads every other spelling. A lineReader serves one goroutine.
type lineReader struct {
	lines []byte // of the part, a buffer for the next
	line  []byte
	at    int             // the next byte of line
	texts [1 << 12]string // read last, by hash: most texts are read again and again
	read  plan            // of season.Season
}

func newLineReader() *lineReader {
	return &lineReader{read: planOf(reflect.TypeFor[season.Season]())}
}

// plan reads a value of one type to its address. It returns false if the value has another spelling. It takes an
// address, so that it needs no reflect.Value for each member.
type plan func(l *lineReader, into unsafe.Pointer) bool

// season reads a line by the plan of season.Season, or by package json.
func (l *lineReader) season(line []byte, into *season.Season) error {
	if l.fast(line, into) {
		return nil
	}
	if line[len(line)-1] != '\n' {
		return io.ErrUnexpectedEOF
	}
	*into = season.Season{}
	return json.Unmarshal(line, into, spelling)
}

func (l *lineReader) fast(line []byte, into *season.Season) bool {
	l.line, l.at = line, 0
	return utf8.Valid(line) && l.read(l, unsafe.Pointer(into)) && string(line[l.at:]) == "\n" //nolint:gosec // plans write within the type they were made for
}

func (l *lineReader) skip(token string) bool {
	end := l.at + len(token)
	if end > len(l.line) || string(l.line[l.at:end]) != token {
		return false
	}
	l.at = end
	return true
}

func (l *lineReader) skipByte(c byte) bool {
	if l.at == len(l.line) || l.line[l.at] != c {
		return false
	}
	l.at++
	return true
}

// list reads elements between two brackets, with commas between them.
func (l *lineReader) list(begin, end byte, element func() bool) bool {
	if !l.skipByte(begin) {
		return false
	}
	if l.skipByte(end) {
		return true
	}
	for element() {
		if l.skipByte(end) {
			return true
		}
		if !l.skipByte(',') {
			return false
		}
	}
	return false
}

// text reads a text without escapes.
func (l *lineReader) text() (string, bool) {
	if !l.skipByte('"') {
		return "", false
	}
	hash := uint32(0)
	for i, c := range l.line[l.at:] {
		switch {
		case c == '"':
			text, known := l.line[l.at:l.at+i], &l.texts[hash>>20]
			if l.at += i + 1; *known != string(text) {
				*known = string(text)
			}
			return *known, true
		case c == '\\' || c < ' ':
			return "", false
		}
		hash = (hash + uint32(c)) * 0x9E3779B1
	}
	return "", false
}

// digits reads a whole number without a sign.
func (l *lineReader) digits() (n int64, ok bool) {
	begin := l.at
	for ; l.at < len(l.line) && l.at < begin+18 && '0' <= l.line[l.at] && l.line[l.at] <= '9'; l.at++ {
		n = 10*n + int64(l.line[l.at]-'0')
	}
	return n, l.at == begin+1 || l.at > begin && l.line[begin] != '0'
}

func planOf(t reflect.Type) plan {
	switch t {
	case reflect.TypeFor[time.Time]():
		return readInstant
	case reflect.TypeFor[time.Duration]():
		return func(l *lineReader, into unsafe.Pointer) bool {
			n, ok := l.digits()
			*(*time.Duration)(into) = time.Duration(n) * time.Millisecond
			return ok && n < 1<<40
		}
	}
	switch t.Kind() {
	case reflect.String:
		return func(l *lineReader, into unsafe.Pointer) (ok bool) {
			*(*string)(into), ok = l.text()
			return ok
		}
	case reflect.Int:
		return func(l *lineReader, into unsafe.Pointer) bool {
			n, ok := l.digits()
			*(*int)(into) = int(n)
			return ok
		}
	case reflect.Float64:
		return readFloat
	case reflect.Bool:
		return func(l *lineReader, into unsafe.Pointer) bool {
			*(*bool)(into) = true
			return l.skip("true") // Pack omits false
		}
	case reflect.Array:
		element, size := planOf(t.Elem()), t.Elem().Size()
		return func(l *lineReader, into unsafe.Pointer) bool {
			n := 0
			whole := l.list('[', ']', func() bool {
				n++
				return n <= t.Len() && element(l, unsafe.Add(into, uintptr(n-1)*size))
			})
			return whole && n == t.Len()
		}
	case reflect.Slice:
		return planOfRows(t)
	case reflect.Map:
		readKey, readValue := planOf(t.Key()), planOf(t.Elem())
		return func(l *lineReader, into unsafe.Pointer) bool {
			read := reflect.MakeMap(t)
			reflect.NewAt(t, into).Elem().Set(read)
			return l.list('{', '}', func() bool {
				key, value := reflect.New(t.Key()), reflect.New(t.Elem())
				if !readKey(l, key.UnsafePointer()) || read.MapIndex(key.Elem()).IsValid() ||
					!l.skipByte(':') || !readValue(l, value.UnsafePointer()) {
					return false
				}
				read.SetMapIndex(key.Elem(), value.Elem())
				return true
			})
		}
	case reflect.Struct:
		return planOfStruct(t)
	default:
		panic("BUG: a season has a value of type " + t.String())
	}
}

// planOfRows collects the rows of a list in a longer one, so that the result has no spare capacity.
func planOfRows(t reflect.Type) plan {
	element, size := planOf(t.Elem()), t.Elem().Size()
	rows := reflect.MakeSlice(t, 32, 32)
	return func(l *lineReader, into unsafe.Pointer) bool {
		if l.skip("null") {
			return true
		}
		n := 0
		whole := l.list('[', ']', func() bool {
			if n == rows.Len() {
				longer := reflect.MakeSlice(t, 2*n, 2*n)
				reflect.Copy(longer, rows)
				rows = longer
			}
			n++
			return element(l, unsafe.Add(rows.UnsafePointer(), uintptr(n-1)*size))
		})
		list := reflect.MakeSlice(t, n, n)
		reflect.Copy(list, rows)
		reflect.NewAt(t, into).Elem().Set(list)
		rows.Slice(0, n).Clear()
		return whole
	}
}

func planOfStruct(t reflect.Type) plan {
	type field struct {
		name   string // with quotes and colon
		offset uintptr
		read   plan
	}
	fields := make([]field, t.NumField())
	for i := range fields {
		f := t.Field(i)
		fields[i] = field{strconv.Quote(f.Tag.Get("json")) + ":", f.Offset, planOf(f.Type)}
	}
	return func(l *lineReader, into unsafe.Pointer) bool {
		i := 0
		return l.list('{', '}', func() bool {
			for ; i < len(fields); i++ {
				if f := &fields[i]; l.skip(f.name) {
					i++
					return f.read(l, unsafe.Add(into, f.offset))
				}
			}
			return false
		})
	}
}

// readFloat reads a number without a sign and an exponent.
func readFloat(l *lineReader, into unsafe.Pointer) bool {
	begin := l.at
	n, ok := l.digits()
	if *(*float64)(into) = float64(n); !ok || !l.skipByte('.') {
		return ok && n < 1<<53
	}
	point := l.at
	for l.at < len(l.line) && '0' <= l.line[l.at] && l.line[l.at] <= '9' {
		l.at++
	}
	f, err := strconv.ParseFloat(string(l.line[begin:l.at]), 64)
	*(*float64)(into) = f
	return err == nil && l.at > point
}

// readInstant reads a day, or an instant in UTC.
func readInstant(l *lineReader, into unsafe.Pointer) bool {
	layout := time.DateOnly
	text, ok := l.text()
	if strings.Contains(text, "T") {
		layout = time.RFC3339Nano
	}
	t, err := time.Parse(layout, text)
	*(*time.Time)(into) = t.UTC()
	return ok && err == nil
}
