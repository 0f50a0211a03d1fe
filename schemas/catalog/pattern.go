package catalog

import (
	"slices"
	"strconv"
	"strings"
)

// pattern is the shape of the paths of some variants of an endpoint, by segments.
type pattern []segment

// segment is one part of a pattern: a literal, a parameter, or a parameter with the one value
// that no request can send.
type segment struct {
	param   string // the name of a parameter; "" is a literal
	literal string // the text of the segment, if it is always the same
}

// endpoint completes a row of Endpoints: its path and its patterns begin with its name.
func endpoint(e Endpoint, shapes ...string) Endpoint {
	e.Path, e.patterns = "/"+string(e.Name), make([]pattern, len(shapes))
	for i, shape := range shapes {
		for part := range strings.SplitSeq(string(e.Name)+shape, "/") {
			s := segment{literal: part}
			if inner, ok := strings.CutPrefix(part, "{"); ok {
				s.param, s.literal, _ = strings.Cut(strings.TrimSuffix(inner, "}"), "=")
			}
			e.patterns[i] = append(e.patterns[i], s)
		}
	}
	return e
}

// number is a parameter whose values are numbers.
type number struct {
	param       string
	least, most int    // digits of a value; it does not begin with 0 if its length may vary
	problem     string // the fault of another value
	none        int64  // stands for every value without a body of its own, or for all seasons
	beyond      string // a value that selects none; empty: to leave the parameter out does
}

var numbers = []number{
	{yearParam, 4, 4, "not a year of four digits", 0, ""},
	{sessionKeyParam, 1, 16, "not a session key", NoSession, "1"}, // of the year 0, which has no races
	{pageParam, 1, 6, "not the number of a page", NoPage, strconv.Itoa(lastPage)},
}

// numberOf returns the row of a parameter, nil if its values are no numbers.
func numberOf(param string) *number {
	for i := range numbers {
		if numbers[i].param == param {
			return &numbers[i]
		}
	}
	return nil
}

// read reads a value of the parameter.
func read[T string | []byte](n *number, s T) (value int64, ok bool) {
	if len(s) < n.least || len(s) > n.most || n.least < n.most && s[0] == '0' {
		return 0, false
	}
	for i := range len(s) {
		c := s[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		value = 10*value + int64(c-'0')
	}
	return value, value > 0
}

// number returns the value of a parameter that is a number, 0 if it has none.
func (v *Variant) number(param string) int64 {
	switch param {
	case yearParam:
		return int64(v.Year)
	case sessionKeyParam:
		return v.SessionKey
	case pageParam:
		return int64(v.Page)
	}
	return 0
}

// setNumber sets the value of a parameter that is a number.
func (v *Variant) setNumber(param string, value int64) {
	switch param {
	case yearParam:
		v.Year = int(value)
	case sessionKeyParam:
		v.SessionKey = value
	case pageParam:
		v.Page = int(value)
	}
}

// fits reports whether the variant has this pattern: a segment for every set field, and no other.
// It does not allocate.
func (p pattern) fits(v Variant) bool {
	left := v // the fields without a segment
	left.Endpoint = ""
	for _, s := range p {
		value := v.number(s.param)
		switch {
		case s.param == "":
		case s.param == typeParam:
			if v.Type == "" {
				return false
			}
			left.Type = ""
		case s.literal == "" && value <= 0, s.literal != "" && value != numberOf(s.param).none:
			return false
		default:
			left.setNumber(s.param, 0)
		}
	}
	return left == Variant{}
}

// path spells the path of a variant that fits.
func (p pattern) path(v Variant) string {
	var room [64]byte
	return string(p.appendPath(room[:0], v))
}

func (p pattern) appendPath(path []byte, v Variant) []byte {
	for i, s := range p {
		if i > 0 {
			path = append(path, '/')
		}
		switch {
		case s.literal != "":
			path = append(path, s.literal...)
		case s.param == typeParam:
			path = append(path, v.Type...)
		default:
			path = strconv.AppendInt(path, v.number(s.param), 10)
		}
	}
	return path
}

// query spells the parameters of a variant that fits.
func (p pattern) query(v Variant) []string {
	var pairs []string
	for _, s := range p {
		if s.param == "" {
			continue
		}
		value := strconv.FormatInt(v.number(s.param), 10)
		switch {
		case s.param == typeParam:
			value = v.Type
		case s.literal != "":
			value = numberOf(s.param).beyond
		}
		if value != "" {
			pairs = append(pairs, s.param+"="+value)
		}
	}
	return pairs
}

// parse reads a path of the endpoint by the pattern.
func (p pattern) parse(e *Endpoint, path string) (v Variant, ok bool) {
	v.Endpoint = e.Name
	for i, s := range p {
		part, rest, more := strings.Cut(path, "/")
		if more != (i < len(p)-1) {
			return v, false
		}
		path = rest
		n := numberOf(s.param)
		switch {
		case s.literal != "":
			if ok = part == s.literal; n != nil {
				v.setNumber(s.param, n.none)
			}
		case n == nil:
			v.Type, ok = part, slices.Contains(e.param([]byte(typeParam)).Values, part)
		default:
			var value int64
			value, ok = read(n, part)
			v.setNumber(s.param, value)
		}
		if !ok {
			return v, false
		}
	}
	return v, true
}

// expand returns every variant of the endpoint that has the pattern.
func (p pattern) expand(e *Endpoint, k Known, sessions []int64) []Variant {
	all := []Variant{{Endpoint: e.Name}}
	for _, s := range p {
		var values []Variant // with this parameter alone
		add := func(value int64) {
			var v Variant
			v.setNumber(s.param, value)
			values = append(values, v)
		}
		switch {
		case s.param == "":
			continue
		case s.param == typeParam:
			for _, kind := range e.param([]byte(typeParam)).Values {
				values = append(values, Variant{Type: kind})
			}
		case s.literal != "":
			add(numberOf(s.param).none)
		case s.param == yearParam:
			for _, year := range k.Seasons {
				add(int64(year))
			}
		case s.param == sessionKeyParam:
			for _, key := range sessions {
				add(key)
			}
		case s.param == pageParam:
			for n := range k.Pages {
				add(int64(n + 1))
			}
		}
		next := make([]Variant, 0, len(all)*len(values))
		for _, v := range all {
			for _, value := range values {
				next = append(next, Variant{
					Endpoint: v.Endpoint, Type: v.Type + value.Type,
					Year: v.Year + value.Year, SessionKey: v.SessionKey + value.SessionKey, Page: v.Page + value.Page,
				})
			}
		}
		all = next
	}
	return all
}
