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
	var given selection
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
	return e.variant(given, k), nil
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

// selection holds the parameters given so far; zero values are absent.
type selection struct {
	championship string
	year         int
	sessionKey   int64
	page         int
}

// set notes one parameter. It returns a *ParamError or nil.
func (s *selection) set(param *Param, p pair, k Known) error {
	refuse := func(problem string) error {
		return &ParamError{Param: param.Name, Value: text(p.value), Problem: problem, Allowed: allowed(param, k)}
	}
	if len(p.value) == 0 {
		return refuse("the value is empty")
	}
	var buf [16]byte // the longest value of any parameter is a session key of 16 digits
	value, fits := decode(buf[:0], p.value)
	switch param.Name {
	case typeParam:
		if s.championship != "" {
			return refuse("given more than once")
		}
		i := slices.Index(param.Values, string(value))
		if !fits || i < 0 {
			return refuse("no such type")
		}
		s.championship = param.Values[i]
	case yearParam:
		if s.year != 0 {
			return refuse("given more than once")
		}
		year, ok := parseYear(value)
		if !fits || !ok {
			return refuse("not a year of four digits")
		}
		if !k.Has(year) {
			return refuse("no such season")
		}
		s.year = year
	case sessionKeyParam:
		if s.sessionKey != 0 {
			return refuse("given more than once")
		}
		key, ok := parseSessionKey(value)
		if !fits || !ok {
			return refuse("not a session key")
		}
		s.sessionKey = key
	case pageParam:
		if s.page != 0 {
			return refuse("given more than once")
		}
		n, ok := parsePage(value)
		if !fits || !ok {
			return refuse("not the number of a page")
		}
		s.page = n
	}
	return nil
}

// variant fills in the defaults.
func (e *Endpoint) variant(given selection, k Known) Variant {
	v := Variant{Endpoint: e.Name, Type: given.championship, Year: given.year}
	if given.sessionKey != 0 {
		v.Year, v.SessionKey = 0, sessionIn(given, k)
	}
	if given.page != 0 {
		v.Year, v.Page = 0, given.page // a page is of all seasons
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

// sessionIn returns the session key of the request, or NoSession if its season does not match.
func sessionIn(given selection, k Known) int64 {
	year := int(given.sessionKey / KeysPerSeason)
	if !k.Has(year) || given.year != 0 && given.year != year {
		return NoSession
	}
	return given.sessionKey
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
