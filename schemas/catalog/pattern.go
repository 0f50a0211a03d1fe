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

// patterns parses the patterns of a row of Endpoints.
func patterns(shapes ...string) []pattern {
	parsed := make([]pattern, len(shapes))
	for i, shape := range shapes {
		for part := range strings.SplitSeq(shape, "/") {
			s := segment{literal: part}
			if inner, ok := strings.CutPrefix(part, "{"); ok {
				s.param, s.literal, _ = strings.Cut(strings.TrimSuffix(inner, "}"), "=")
			}
			parsed[i] = append(parsed[i], s)
		}
	}
	return parsed
}

// fits reports whether the variant has this pattern: a segment for every set field, and no other.
// It does not allocate.
func (p pattern) fits(v Variant) bool {
	var kind, year, session, page bool // accounted for
	for _, s := range p {
		switch s.param {
		case typeParam:
			kind = v.Type != ""
			if !kind {
				return false
			}
		case yearParam:
			year = s.literal == "" && v.Year != 0
			if !year && (s.literal == "" || v.Year != 0) {
				return false
			}
		case sessionKeyParam:
			session = s.literal == "" && v.SessionKey > 0 || s.literal != "" && v.SessionKey == NoSession
			if !session {
				return false
			}
		case pageParam:
			page = s.literal == "" && v.Page > 0 || s.literal != "" && v.Page == NoPage
			if !page {
				return false
			}
		}
	}
	return (kind || v.Type == "") && (year || v.Year == 0) && (session || v.SessionKey == 0) && (page || v.Page == 0)
}

// path spells the path of a variant that fits.
func (p pattern) path(v Variant) string {
	parts := make([]string, len(p))
	for i, s := range p {
		if parts[i] = s.literal; s.literal == "" {
			parts[i] = v.value(s.param)
		}
	}
	return strings.Join(parts, "/")
}

// query spells the parameters of a variant that fits.
func (p pattern) query(v Variant) []string {
	var pairs []string
	for _, s := range p {
		switch {
		case s.param == sessionKeyParam && s.literal != "":
			pairs = append(pairs, s.param+"=1") // of the year 0, which has no races
		case s.param == pageParam && s.literal != "":
			pairs = append(pairs, s.param+"="+strconv.Itoa(lastPage))
		case s.param != "" && s.literal == "":
			pairs = append(pairs, s.param+"="+v.value(s.param))
		}
	}
	return pairs
}

// value spells a parameter as requests do.
func (v Variant) value(param string) string {
	switch param {
	case typeParam:
		return v.Type
	case yearParam:
		return strconv.Itoa(v.Year)
	case pageParam:
		return strconv.Itoa(v.Page)
	default:
		return strconv.FormatInt(v.SessionKey, 10)
	}
}

// parse reads a path of the endpoint by the pattern.
func (p pattern) parse(e *Endpoint, path string) (v Variant, ok bool) {
	v.Endpoint = e.Name
	for i, s := range p {
		part, rest, more := strings.Cut(path, "/")
		if more != (i < len(p)-1) {
			return v, false
		}
		path, ok = rest, true
		switch {
		case s.literal != "":
			ok = part == s.literal
			switch s.param {
			case sessionKeyParam:
				v.SessionKey = NoSession
			case pageParam:
				v.Page = NoPage
			}
		case s.param == typeParam:
			v.Type, ok = part, slices.Contains(e.param([]byte(typeParam)).Values, part)
		case s.param == yearParam:
			v.Year, ok = parseYear(part)
		case s.param == sessionKeyParam:
			v.SessionKey, ok = parseSessionKey(part)
		case s.param == pageParam:
			v.Page, ok = parsePage(part)
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
		switch {
		case s.param == typeParam:
			for _, kind := range e.param([]byte(typeParam)).Values {
				values = append(values, Variant{Type: kind})
			}
		case s.param == yearParam && s.literal == "":
			for _, year := range k.Seasons {
				values = append(values, Variant{Year: year})
			}
		case s.param == sessionKeyParam && s.literal == "":
			for _, key := range sessions {
				values = append(values, Variant{SessionKey: key})
			}
		case s.param == sessionKeyParam:
			values = append(values, Variant{SessionKey: NoSession})
		case s.param == pageParam && s.literal == "":
			for n := range k.Pages {
				values = append(values, Variant{Page: n + 1})
			}
		case s.param == pageParam:
			values = append(values, Variant{Page: NoPage})
		default:
			continue // a literal, or all seasons
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
