package catalog

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Select returns the variant that a request with this raw query selects in a version that
// knows k. The error, if any, is a *ParamError. Select decodes names and values as query strings
// ("+" is a space), and ignores unknown parameters with good percent-encoding.
//
// A session key whose season is not known, or is not the requested year, gives NoSession.
// Select cannot know whether a round has a pick: where the version has no variant for a
// session key, serve the one of NoSession.
//
// Select does not allocate, unless it returns an error.
func (e *Endpoint) Select(rawQuery []byte, k Known) (Variant, error) {
	given := Variant{Endpoint: e.Name}
	for rest := rawQuery; len(rest) > 0; {
		var first []byte
		var p pair
		first, rest, _ = bytes.Cut(rest, []byte{'&'})
		p.name, p.value, _ = bytes.Cut(first, []byte{'='})
		if !wellFormed(p.name) || !wellFormed(p.value) {
			return Variant{}, malformed(p)
		}
		param := e.param(p.name)
		if param == nil {
			continue
		}
		if err := given.set(param, p, k); err != nil {
			return Variant{}, err
		}
	}
	return e.complete(given, k), nil
}

// param finds the parameter with the encoded name, nil if the endpoint has none.
func (e *Endpoint) param(name []byte) *Param {
	for i := range e.Params {
		if decodesTo(name, e.Params[i].Name) {
			return &e.Params[i]
		}
	}
	return nil
}

// set notes one parameter in a variant, where zero values are absent. It returns a *ParamError or nil.
func (v *Variant) set(param *Param, p pair, k Known) error {
	refuse := func(problem string) error {
		return &ParamError{Param: param.Name, Value: text(p.value), Problem: problem, Allowed: allowed(param, k)}
	}
	if len(p.value) == 0 {
		return refuse("the value is empty")
	}
	var buf [16]byte // the longest value of any parameter is a session key of 16 digits
	value, fits := decode(buf[:0], p.value)
	again, ok, problem := v.number(param.Name) != 0 || param.Name == typeParam && v.Type != "", false, "no such type"
	if n := numberOf(param.Name); n != nil {
		var number int64
		number, ok = read(n, value)
		v.setNumber(param.Name, number)
		if problem = n.problem; ok && param.Name == yearParam && !k.Has(v.Year) {
			ok, problem = false, "no such season"
		}
	} else if i := slices.Index(param.Values, string(value)); i >= 0 {
		v.Type, ok = param.Values[i], true
	}
	switch {
	case again:
		return refuse("given more than once")
	case !fits || !ok:
		return refuse(problem)
	}
	return nil
}

func (e *Endpoint) complete(v Variant, k Known) Variant {
	if v.SessionKey != 0 {
		if season := v.Season(); !k.Has(season) || v.Year != 0 && v.Year != season {
			v.SessionKey = NoSession
		}
		v.Year = 0
	}
	switch {
	case v.Page == lastPage:
		v.Page = NoPage
	case v.Page == 0 && e.param([]byte(pageParam)) != nil:
		v.Page = 1
	}
	if param := e.param([]byte(typeParam)); param != nil && v.Type == "" {
		v.Type = param.Values[0]
	}
	if e.pattern(v) == nil {
		v.Year = k.Default(e.Name) // every variant of this endpoint is of one season
	}
	return v
}

func allowed(param *Param, k Known) string {
	if param.Name == yearParam {
		return "one season " + seasonRanges(k.Seasons)
	}
	if n := numberOf(param.Name); n != nil {
		return fmt.Sprintf("one whole number of 1 to %d digits that does not start with 0", n.most)
	}
	return "one of " + strings.Join(param.Values, ", ")
}

// seasonRanges lists ascending years, runs of them as "from 1950 to 2026".
func seasonRanges(seasons []int) string {
	if len(seasons) == 0 {
		return "(none is known yet)"
	}
	var ranges []string
	for i := 0; i < len(seasons); {
		last := i
		for last+1 < len(seasons) && seasons[last+1] == seasons[last]+1 {
			last++
		}
		words := strconv.Itoa(seasons[last])
		if last > i {
			words = "from " + strconv.Itoa(seasons[i]) + " to " + words
		}
		ranges = append(ranges, words)
		i = last + 1
	}
	return strings.Join(ranges, ", ")
}

// ParamError is the reason for refusing a query. Its text is the public message of a 422.
type ParamError struct {
	Param   string // the parameter's name, decoded; clipped, and quoted if it is not a plain word
	Value   string // the value, decoded; clipped
	Problem string // the fault of the value
	Allowed string // the allowed values
}

// Error names the parameter, the value and the allowed values. It clips long text and escapes
// unprintable text, because a stranger sent it.
func (e *ParamError) Error() string {
	return fmt.Sprintf("bad value %q for parameter %s: %s; allowed: %s",
		e.Value, e.Param, e.Problem, e.Allowed)
}

// clipAt is the number of bytes of a name or value that a message repeats.
const clipAt = 40

// malformed is the error for a pair with bad percent-encoding, in its name or its value.
func malformed(p pair) *ParamError {
	name := text(p.name)
	if name == "" || strings.Trim(name, "_abcdefghijklmnopqrstuvwxyz") != "" {
		name = strconv.Quote(name)
	}
	return &ParamError{
		Param:   name,
		Value:   text(p.value),
		Problem: "malformed percent-encoding",
		Allowed: "% followed by two hexadecimal digits, in names and values",
	}
}

// text decodes for a message: clipped, and valid UTF-8.
func text(encoded []byte) string {
	buf := make([]byte, 0, clipAt)
	decoded, fits := decode(buf, encoded)
	s := strings.ToValidUTF8(string(decoded), "\uFFFD")
	if !fits {
		s = strings.TrimSuffix(s, "\uFFFD") + "…" // the cut may have split a character
	}
	return s
}

// pair is one name=value of a raw query, still encoded. Without "=" the value is empty.
type pair struct{ name, value []byte }

// wellFormed reports whether every "%" is followed by two hexadecimal digits.
func wellFormed(encoded []byte) bool {
	for i := bytes.IndexByte(encoded, '%'); i >= 0 && i < len(encoded); i++ {
		if encoded[i] != '%' {
			continue
		}
		if i+2 >= len(encoded) || unhex(encoded[i+1]) < 0 || unhex(encoded[i+2]) < 0 {
			return false
		}
	}
	return true
}

// nextByte decodes the first byte and returns the number of bytes it consumed. A "%" that encodes
// nothing stands for itself.
func nextByte(encoded []byte) (c byte, n int) {
	switch c = encoded[0]; {
	case c == '+':
		return ' ', 1
	case c == '%' && len(encoded) > 2 && unhex(encoded[1]) >= 0 && unhex(encoded[2]) >= 0:
		return byte(unhex(encoded[1])<<4 | unhex(encoded[2])), 3
	}
	return c, 1
}

// decodesTo reports whether encoded stands for the plain text.
func decodesTo(encoded []byte, plain string) bool {
	for i := range len(plain) {
		if len(encoded) == 0 {
			return false
		}
		c, n := nextByte(encoded)
		if c != plain[i] {
			return false
		}
		encoded = encoded[n:]
	}
	return len(encoded) == 0
}

// decode appends the decoded bytes to dst as far as its capacity allows, and reports whether
// all of them found room.
func decode(dst, encoded []byte) ([]byte, bool) {
	for len(encoded) > 0 {
		if len(dst) == cap(dst) {
			return dst, false
		}
		c, n := nextByte(encoded)
		dst, encoded = append(dst, c), encoded[n:]
	}
	return dst, true
}

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
