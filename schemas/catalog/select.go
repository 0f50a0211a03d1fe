package catalog

import (
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
		var p pair
		p, rest = nextPair(rest)
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
	before, ok, problem := *v, false, ""
	switch param.Name {
	case typeParam:
		if i := slices.Index(param.Values, string(value)); i >= 0 {
			v.Type, ok = param.Values[i], true
		}
		problem = "no such type"
	case yearParam:
		v.Year, ok = parseYear(value)
		if problem = "not a year of four digits"; ok && !k.Has(v.Year) {
			ok, problem = false, "no such season"
		}
	case sessionKeyParam:
		v.SessionKey, ok = parseSessionKey(value)
		problem = "not a session key"
	case pageParam:
		v.Page, ok = parsePage(value)
		problem = "not the number of a page"
	}
	switch {
	case before.has(param.Name):
		return refuse("given more than once")
	case !fits || !ok:
		return refuse(problem)
	}
	return nil
}

// has reports whether a parameter is noted.
func (v *Variant) has(param string) bool {
	switch param {
	case typeParam:
		return v.Type != ""
	case yearParam:
		return v.Year != 0
	case pageParam:
		return v.Page != 0
	default:
		return v.SessionKey != 0
	}
}

// complete fills in the defaults.
func (e *Endpoint) complete(v Variant, k Known) Variant {
	if v.SessionKey != 0 {
		if season := v.Season(); !k.Has(season) || v.Year != 0 && v.Year != season {
			v.SessionKey = NoSession
		}
		v.Year = 0
	}
	if v.Page != 0 {
		v.Year = 0 // a page is of all seasons
		if v.Page == lastPage {
			v.Page = NoPage
		}
	}
	if param := e.param([]byte(typeParam)); param != nil && v.Type == "" {
		v.Type = param.Values[0]
	}
	if e.pattern(v) == nil {
		v.Year = k.Current // every variant of this endpoint is of one season
	}
	return v
}

// parseYear reads ^[0-9]{4}$; the year 0 does not exist.
func parseYear[T string | []byte](s T) (int, bool) {
	if len(s) != 4 {
		return 0, false
	}
	n, ok := parseDigits(s)
	return int(n), ok && n > 0
}

// parseSessionKey reads ^[1-9][0-9]{0,15}$.
func parseSessionKey[T string | []byte](s T) (int64, bool) {
	if len(s) == 0 || len(s) > 16 || s[0] == '0' {
		return 0, false
	}
	return parseDigits(s)
}

// parsePage reads ^[1-9][0-9]{0,5}$.
func parsePage[T string | []byte](s T) (int, bool) {
	if len(s) == 0 || len(s) > 6 || s[0] == '0' {
		return 0, false
	}
	n, ok := parseDigits(s)
	return int(n), ok
}

func parseDigits[T string | []byte](s T) (int64, bool) {
	var n int64
	for i := range len(s) {
		c := s[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	return n, true
}

// allowed lists the allowed values of a parameter in words.
func allowed(param *Param, k Known) string {
	switch param.Name {
	case yearParam:
		return "one season " + seasonRanges(k.Seasons)
	case sessionKeyParam:
		return "one whole number of 1 to 16 digits that does not start with 0"
	case pageParam:
		return "one whole number of 1 to 6 digits that does not start with 0"
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
