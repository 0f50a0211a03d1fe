package catalog

import (
	"bytes"
	"encoding/hex"
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
		var names, values [maxValue]byte // as long as the longest name, too
		name, known, wellFormed := decode(names[:0], p.name)
		value, fits, too := decode(values[:0], p.value)
		if !wellFormed || !too {
			return Variant{}, malformed(p)
		}
		param := e.param(name)
		if !known || param == nil {
			continue
		}
		if err := given.set(param, p, value, fits, k); err != nil {
			return Variant{}, err
		}
	}
	return e.complete(given, k), nil
}

// maxValue is the length of the longest value of any parameter, a session key.
const maxValue = 16

// param finds the parameter with the name, nil if the endpoint has none.
func (e *Endpoint) param(name []byte) *Param {
	for i := range e.Params {
		if string(name) == e.Params[i].Name {
			return &e.Params[i]
		}
	}
	return nil
}

// set notes one parameter in a variant, where zero values are absent. value is the decoded value of p, if it fits. set returns
// a *ParamError or nil.
func (v *Variant) set(param *Param, p pair, value []byte, fits bool, k Known) error {
	refuse := func(problem string) error {
		return &ParamError{Param: param.Name, Value: text(p.value), Problem: problem, Allowed: allowed(param, k)}
	}
	if len(p.value) == 0 {
		return refuse("the value is empty")
	}
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
	decoded, fits, _ := decode(buf, encoded)
	s := strings.ToValidUTF8(string(decoded), "\uFFFD")
	if !fits {
		s = strings.TrimSuffix(s, "\uFFFD") + "…" // the cut may have split a character
	}
	return s
}

// pair is one name=value of a raw query, still encoded. Without "=" the value is empty.
type pair struct{ name, value []byte }

// decode appends the decoded bytes to dst as far as its capacity allows. It reports whether all of them found room, and
// whether every "%" is followed by two hexadecimal digits. A "%" that encodes nothing stands for itself.
func decode(dst, encoded []byte) (decoded []byte, fits, wellFormed bool) {
	fits, wellFormed = true, true
	for len(encoded) > 0 {
		c, n := encoded[0], 1
		switch c {
		case '+':
			c = ' '
		case '%':
			var plain [1]byte
			if made, err := hex.Decode(plain[:], encoded[1:min(3, len(encoded))]); err != nil || made == 0 {
				wellFormed = false
			} else {
				c, n = plain[0], 3
			}
		}
		if fits = fits && len(dst) < cap(dst); fits {
			dst = append(dst, c)
		}
		encoded = encoded[n:]
	}
	return dst, fits, wellFormed
}
