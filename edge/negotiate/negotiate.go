// Package negotiate reads the request headers in which a client names the accepted forms of a
// response: Accept-Encoding, If-None-Match and Accept (RFC 9110, sections 12.5 and 13.1.2). It
// does not allocate. No header is an error: negotiate ignores an unreadable part.
package negotiate

// Encoding is a content coding that the service stores.
type Encoding int

// The codings, by falling preference among equals.
const (
	Brotli Encoding = iota
	Zstd
	Gzip
	Identity

	Encodings // the number of codings
)

var tokens = [Encodings]string{"br", "zstd", "gzip", "identity"}

// Token returns the coding's name in Accept-Encoding and Content-Encoding.
func (e Encoding) Token() string { return tokens[e] }

// Suffix returns the suffix of the coding's ETag and stored object: "br", "zst", "gz",
// and "" for the identity.
func (e Encoding) Suffix() string { return [Encodings]string{"br", "zst", "gz", ""}[e] }

// unset is the quality of a coding that no member of the list names.
const unset = -1

// Best reads the value of Accept-Encoding, and returns the stored coding that the client prefers. Without a value only the
// identity is left. A coding without a member has the quality of "*"; the identity, if "*" is
// missing too, is acceptable but the last choice. A client that refuses it gets it nevertheless, because there is nothing
// better. Of members with the same coding the last counts; an unreadable member is ignored.
func Best(header []byte, stored [Encodings]bool) Encoding {
	quality := [Encodings]int{unset, unset, unset, unset}
	star := unset
	for len(header) > 0 {
		var member []byte
		member, header = cut(header, ',')
		token, parameters := cut(member, ';')
		q, ok := weight(parameters)
		if !ok {
			continue
		}
		switch token = trim(token); {
		case string(token) == "*":
			star = q
		case EqualFold(token, "x-gzip"):
			quality[Gzip] = q
		default:
			for e := range tokens {
				if EqualFold(token, tokens[e]) {
					quality[e] = q
				}
			}
		}
	}
	best, most := Identity, 0
	for e, q := range quality {
		if q == unset {
			q = star
		}
		if stored[e] && q > most { // the codings before it are preferred among equals
			best, most = Encoding(e), q
		}
	}
	return best
}

// weight reads the parameters of a member, of which only q has a meaning, and returns the
// quality in thousandths.
func weight(parameters []byte) (q int, ok bool) {
	q = 1000
	for len(parameters) > 0 {
		var parameter []byte
		parameter, parameters = cut(parameters, ';')
		name, value := cut(parameter, '=')
		if !EqualFold(trim(name), "q") {
			continue
		}
		if q, ok = qvalue(trim(value)); !ok {
			return 0, false
		}
	}
	return q, true
}

// qvalue reads 0 to 1 with at most three decimals.
func qvalue(s []byte) (int, bool) {
	if len(s) == 0 || len(s) > 5 || s[0] != '0' && s[0] != '1' || len(s) > 1 && s[1] != '.' {
		return 0, false
	}
	q := int(s[0]-'0') * 1000
	unit := 100
	for _, c := range s[min(2, len(s)):] {
		if c < '0' || c > '9' {
			return 0, false
		}
		q += int(c-'0') * unit
		unit /= 10
	}
	return q, q <= 1000
}

// cut splits s at the first sep; without sep the first part is all of s. For the few bytes of a member it takes half
// the time of bytes.Cut.
func cut(s []byte, sep byte) (before, after []byte) {
	for i, c := range s {
		if c == sep {
			return s[:i], s[i+1:]
		}
	}
	return s, nil
}

// trim removes the optional white space of HTTP: spaces and tabs.
func trim(s []byte) []byte {
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for len(s) > 0 && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}

// EqualFold reports whether s is the word, which is in lower case, in any case of its ASCII letters.
func EqualFold(s []byte, lower string) bool {
	if len(s) != len(lower) {
		return false
	}
	for i, c := range s {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}
